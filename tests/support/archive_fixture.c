#include "tests/support/archive_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mysql.h>

#include "tests/support/cmocka_all.h"

enum { VERSION_AT = 60 }; /* of user_version in the header of SQLite's file, big-endian */

bool archive_fixture_is_there(const char *kind)
{
    if (!kind || strcmp(kind, "mysql") != 0 || mariadb_server_is_installed())
        return true;
    fprintf(stderr, "skipped: mariadbd is not installed\n");
    return false;
}

void archive_fixture_init(struct archive_fixture *fixture, const char *kind)
{
    *fixture = (struct archive_fixture){
        .kind = kind && strcmp(kind, "mysql") == 0 ? ARCHIVE_KIND_MYSQL : ARCHIVE_KIND_SQLITE};
    if (fixture->kind == ARCHIVE_KIND_MYSQL) {
        mariadb_server_init(&fixture->server);
        fixture->mysql = mariadb_server_connect(&fixture->server);
        /* with a longer timeout than usual: the machine may be slow */
        snprintf(fixture->url, sizeof(fixture->url), "mysql://root@/posts?timeout=60&socket=%s",
                 fixture->server.socket);
        return;
    }
    snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/sluice-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof(fixture->path), "%s/posts.db", fixture->folder);
    snprintf(fixture->url, sizeof(fixture->url), "sqlite:%s", fixture->path);
}

void archive_fixture_empty(struct archive_fixture *fixture)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    if (fixture->kind == ARCHIVE_KIND_MYSQL) {
        mariadb_server_run(fixture->mysql, "DROP DATABASE IF EXISTS posts");
        mariadb_server_run(fixture->mysql, "CREATE DATABASE posts");
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        char name[128];

        snprintf(name, sizeof(name), "%s%s", fixture->path, ends[i]);
        unlink(name);
    }
}

void archive_fixture_done(struct archive_fixture *fixture)
{
    if (fixture->kind == ARCHIVE_KIND_MYSQL) {
        mysql_close(fixture->mysql);
        mariadb_server_done(&fixture->server);
        return;
    }
    archive_fixture_empty(fixture);
    rmdir(fixture->folder);
}

void archive_fixture_set_version(struct archive_fixture *fixture, unsigned version)
{
    const unsigned char bytes[] = {0, 0, 0, (unsigned char)version};
    int fd;

    if (fixture->kind == ARCHIVE_KIND_MYSQL) {
        mariadb_server_run(fixture->mysql, "UPDATE posts.sluice_archive SET version = %u", version);
        return;
    }
    fd = open(fixture->path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), VERSION_AT), sizeof(bytes));
    close(fd);
}
