#include "tests/support/archive_place.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mysql.h>

#include "tests/support/cmocka_all.h"

enum { VERSION_AT = 60 }; /* of user_version in the header of SQLite's file, big-endian */

bool archive_place_is_there(const char *kind)
{
    if (!kind || strcmp(kind, "mysql") != 0 || mariadb_server_is_installed())
        return true;
    fprintf(stderr, "skipped: mariadbd is not installed\n");
    return false;
}

void archive_place_init(struct archive_place *place, const char *kind)
{
    *place = (struct archive_place){
        .kind = kind && strcmp(kind, "mysql") == 0 ? ARCHIVE_KIND_MYSQL : ARCHIVE_KIND_SQLITE};
    if (place->kind == ARCHIVE_KIND_MYSQL) {
        mariadb_server_init(&place->server);
        place->mysql = mariadb_server_connect(&place->server);
        /* with more patience than usual: the machine may be slow */
        snprintf(place->url, sizeof(place->url), "mysql://root@/posts?timeout=60&socket=%s",
                 place->server.socket);
        return;
    }
    snprintf(place->folder, sizeof(place->folder), "/tmp/sluice-test-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->path, sizeof(place->path), "%s/posts.db", place->folder);
    snprintf(place->url, sizeof(place->url), "sqlite:%s", place->path);
}

void archive_place_empty(struct archive_place *place)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    if (place->kind == ARCHIVE_KIND_MYSQL) {
        mariadb_server_run(place->mysql, "DROP DATABASE IF EXISTS posts");
        mariadb_server_run(place->mysql, "CREATE DATABASE posts");
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        char name[128];

        snprintf(name, sizeof(name), "%s%s", place->path, ends[i]);
        unlink(name);
    }
}

void archive_place_done(struct archive_place *place)
{
    if (place->kind == ARCHIVE_KIND_MYSQL) {
        mysql_close(place->mysql);
        mariadb_server_done(&place->server);
        return;
    }
    archive_place_empty(place);
    rmdir(place->folder);
}

void archive_place_set_version(struct archive_place *place, unsigned version)
{
    const unsigned char bytes[] = {0, 0, 0, (unsigned char)version};
    int fd;

    if (place->kind == ARCHIVE_KIND_MYSQL) {
        mariadb_server_run(place->mysql, "UPDATE posts.sluice_archive SET version = %u", version);
        return;
    }
    fd = open(place->path, O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, sizeof(bytes), VERSION_AT), sizeof(bytes));
    close(fd);
}
