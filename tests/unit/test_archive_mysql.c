/* The archive in MariaDB, and what happens when the server misbehaves. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mysql.h>

#include "src/archive/archive.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka_all.h"

enum { MANY = 400, PAGE = 20, USER = 4096, OTHER = 8192 };

static const char OURS[] = "0123456789abcdef0123456789abcdef";
static const char THEIRS[] = "fedcba9876543210fedcba9876543210";
static struct archive_fixture fixture;
static struct sl_archive *archive;
static struct sl_archive_post posts[MANY]; /* more than one statement takes */
static struct failure failure;

static int start(void **state)
{
    static char text[2000];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < MANY; i++)
        posts[i] = (struct sl_archive_post){i + 1, USER, sl_slice(text, sizeof(text))};
    archive_fixture_init(&fixture, "mysql");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    archive_fixture_done(&fixture);
    return 0;
}

static struct sl_archive *must_open(const char *url, const char *database_id)
{
    struct sl_archive *opened;

    if (sl_archive_open(url, database_id, SL_ARCHIVE_MAKE, &opened, &failure) < 0)
        fail_msg("%s", failure.text);
    return opened;
}

/* Opens it with a shorter timeout; a slow machine may need several tries. */
static void open_hastily(int timeout_s)
{
    char url[160];

    snprintf(url, sizeof(url), "mysql://root@/posts?timeout=%d&socket=%s", timeout_s,
             fixture.server.socket);
    sl_archive_close(archive);
    archive = NULL;
    while (!archive) {
        int r = sl_archive_open(url, OURS, SL_ARCHIVE_MAKE, &archive, &failure);

        assert_true(r == 0 || r == -EAGAIN);
    }
}

static int begin(void **state)
{
    (void)state;
    archive_fixture_empty(&fixture);
    archive = must_open(fixture.url, OURS);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sl_archive_close(archive);
    return 0;
}

static int store(size_t count)
{
    return sl_archive_store(archive, posts, count, &failure);
}

static void assert_stored(size_t count)
{
    assert_int_equal(mariadb_server_ask(fixture.mysql, "SELECT COUNT(*) FROM posts.sluice_posts"),
                     count);
}

static void assert_listed(size_t count)
{
    struct sl_archive_page page;

    assert_int_equal(sl_archive_list(archive, USER, 0, MANY, &page, &failure), 0);
    assert_int_equal(page.count, count);
    sl_archive_page_done(&page);
}

static void assert_said(const char *text)
{
    if (!strstr(failure.text, text))
        fail_msg("'%s' does not say '%s'", failure.text, text);
    assert_non_null(strstr(failure.text, "the archive posts at /tmp/")); /* names the archive */
}

/* Like a server does after wait_timeout without a command. */
static void hang_up(void)
{
    char sql[64];
    long long id;

    while ((id = mariadb_server_ask(fixture.mysql, "SELECT COALESCE(MAX(id), 0) FROM "
                                                   "information_schema.processlist "
                                                   "WHERE db = 'posts'")) > 0) {
        snprintf(sql, sizeof(sql), "KILL CONNECTION %lld", id);
        mysql_query(fixture.mysql, sql); /* it may have ended already */
    }
}

static void restart(void)
{
    mysql_close(fixture.mysql);
    mariadb_server_restart(&fixture.server, NULL);
    fixture.mysql = mariadb_server_connect(&fixture.server);
}

/* ---- lost connections ---- */

static void test_a_connection_that_was_hung_up_is_made_anew(void **state)
{
    const uint64_t first = 1;

    (void)state;
    hang_up();
    assert_int_equal(store(2), 0);
    hang_up();
    assert_listed(2);
    hang_up();
    assert_int_equal(store(MANY), 0); /* with several statements */
    assert_stored(MANY);
    hang_up();
    assert_int_equal(sl_archive_erase(archive, &first, 1, &failure), 0);
    assert_listed(MANY - 1);
}

static void test_what_was_stored_outlives_the_server(void **state)
{
    (void)state;
    assert_int_equal(store(2), 0);
    restart();
    assert_int_equal(store(3), 0);
    assert_listed(3);
    assert_stored(3);
}

static void test_a_server_that_is_away_is_told_and_found_again(void **state)
{
    struct sl_archive *opened = NULL;

    (void)state;
    assert_int_equal(store(1), 0);
    mariadb_server_kill(&fixture.server);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(store(2), -EAGAIN);
        assert_said("Can't connect");
    }
    assert_int_equal(sl_archive_open(fixture.url, OURS, SL_ARCHIVE_MAKE, &opened, &failure),
                     -EAGAIN);
    assert_null(opened);
    restart();
    assert_int_equal(store(2), 0);
    assert_stored(2);
}

static void test_another_archive_in_its_place_is_not_taken_for_it(void **state)
{
    struct sl_archive *theirs;

    (void)state;
    mariadb_server_run(fixture.mysql, "DROP TABLE posts.sluice_archive, posts.sluice_posts");
    theirs = must_open(fixture.url, THEIRS);
    sl_archive_close(theirs);
    hang_up();
    assert_int_equal(store(1), -ESTALE);
    assert_said("belongs to another database");
    assert_stored(0);
}

static void test_a_server_that_hangs_is_not_waited_for_for_ever(void **state)
{
    struct sl_archive_page page;
    int r;

    (void)state;
    open_hastily(1);
    mariadb_server_freeze(&fixture.server);
    assert_int_equal(sl_archive_list(archive, USER, 0, MANY, &page, &failure), -EAGAIN);
    assert_int_equal(store(1), -EAGAIN); /* now it cannot connect either */
    mariadb_server_thaw(&fixture.server);
    while ((r = store(2)) == -EAGAIN)
        ;
    assert_int_equal(r, 0);
    assert_stored(2);
}

/* ---- other writers ---- */

static void test_rows_that_others_hold_are_told_and_nothing_is_stored(void **state)
{
    static const size_t counts[] = {2, MANY}; /* one statement, and a transaction of several */

    (void)state;
    open_hastily(4);
    for (size_t i = 0; i < 2; i++) {
        mariadb_server_run(fixture.mysql, "START TRANSACTION");
        mariadb_server_run(fixture.mysql,
                           "INSERT INTO posts.sluice_posts (user, id) VALUES (%d, %zu)", OTHER,
                           counts[i]);
        assert_int_equal(store(counts[i]), -EAGAIN);
        assert_stored(1); /* of the other writer */
        mariadb_server_run(fixture.mysql, "ROLLBACK");
    }
    assert_stored(0);
}

static void store_two(void)
{
    struct sl_archive *own = must_open(fixture.url, OURS);
    int r = sl_archive_store(own, posts, 2, &failure);

    sl_archive_close(own);
    if (r < 0)
        fprintf(stderr, "%s\n", failure.text);
    _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

static long long status_of(const char *name)
{
    char sql[128];

    snprintf(sql, sizeof(sql),
             "SELECT variable_value FROM information_schema.global_status "
             "WHERE variable_name = '%s'",
             name);
    return mariadb_server_ask(fixture.mysql, sql);
}

/* The other transaction has more to roll back, so MariaDB rolls back the store. */
static void test_a_deadlock_is_tried_again(void **state)
{
    long long before = status_of("INNODB_DEADLOCKS");
    int status;
    pid_t pid;

    (void)state;
    mariadb_server_run(fixture.mysql, "START TRANSACTION");
    for (int id = 100; id < 120; id++)
        mariadb_server_run(fixture.mysql,
                           "INSERT INTO posts.sluice_posts (user, id) VALUES (%d, %d)", OTHER, id);
    mariadb_server_run(fixture.mysql, "INSERT INTO posts.sluice_posts (user, id) VALUES (%d, 2)",
                       OTHER);
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        store_two();
    while (status_of("INNODB_ROW_LOCK_CURRENT_WAITS") == 0)
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    mariadb_server_run(fixture.mysql, "INSERT INTO posts.sluice_posts (user, id) VALUES (%d, 1)",
                       OTHER);
    mariadb_server_run(fixture.mysql, "ROLLBACK");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    assert_true(status_of("INNODB_DEADLOCKS") > before);
    assert_stored(2);
}

/* ---- what the server may answer ---- */

static void test_a_server_that_takes_no_writes_is_read(void **state)
{
    (void)state;
    assert_int_equal(store(1), 0);
    mariadb_server_run(fixture.mysql, "SET GLOBAL tx_read_only = 1");
    hang_up();
    assert_int_equal(store(2), -EROFS);
    assert_listed(1);
    mariadb_server_run(fixture.mysql, "SET GLOBAL tx_read_only = 0");
    hang_up();
    assert_int_equal(store(2), 0);
}

static void test_tables_that_are_missing_or_not_ours_are_told(void **state)
{
    struct sl_archive *opened = NULL;

    (void)state;
    mariadb_server_run(fixture.mysql, "DROP TABLE posts.sluice_posts");
    assert_int_equal(store(1), -ESTALE);
    assert_said("doesn't exist");
    mariadb_server_run(fixture.mysql, "CREATE TABLE posts.sluice_posts (text TEXT)");
    assert_int_equal(store(1), -EBADMSG);
    mariadb_server_run(fixture.mysql, "DROP TABLE posts.sluice_archive");
    assert_int_equal(sl_archive_open(fixture.url, NULL, SL_ARCHIVE_READ, &opened, &failure),
                     -ENOENT);
    assert_said("there is none");
    mariadb_server_run(fixture.mysql, "DROP DATABASE posts");
    assert_int_equal(sl_archive_open(fixture.url, OURS, SL_ARCHIVE_MAKE, &opened, &failure),
                     -ENOENT);
    assert_said("Unknown database");
}

/* A table of the same name, created by somebody else. */
static void test_an_identity_that_is_null_is_not_taken(void **state)
{
    static const char *const rows[] = {"(NULL, NULL)", "(1, NULL)", "(NULL, 'x')"};
    struct sl_archive *opened = NULL;

    (void)state;
    mariadb_server_run(fixture.mysql, "DROP TABLE posts.sluice_archive");
    mariadb_server_run(fixture.mysql,
                       "CREATE TABLE posts.sluice_archive (version INT, database_id TEXT, "
                       "only_row INT DEFAULT 1)");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mariadb_server_run(fixture.mysql, "DELETE FROM posts.sluice_archive");
        mariadb_server_run(fixture.mysql,
                           "INSERT INTO posts.sluice_archive (version, database_id) "
                           "VALUES %s",
                           rows[i]);
        assert_int_equal(sl_archive_open(fixture.url, OURS, SL_ARCHIVE_MAKE, &opened, &failure),
                         -EBADMSG);
        assert_said("whose it is cannot be read");
        assert_int_equal(sl_archive_open(fixture.url, NULL, SL_ARCHIVE_READ, &opened, &failure),
                         -EBADMSG);
    }
}

static void test_posts_that_are_null_are_told(void **state)
{
    struct sl_archive_page page;

    (void)state;
    mariadb_server_run(fixture.mysql, "DROP TABLE posts.sluice_posts");
    mariadb_server_run(fixture.mysql,
                       "CREATE TABLE posts.sluice_posts (user BIGINT UNSIGNED, id BIGINT UNSIGNED, "
                       "json TEXT) AS SELECT 4096 AS user, 7 AS id, NULL AS json");
    assert_int_equal(sl_archive_list(archive, USER, 0, MANY, &page, &failure), -EBADMSG);
    assert_said("a post that cannot be read");
}

/* Number of rows that the server has read since the last call. */
static long long rows_read(void)
{
    static long long before;
    long long now = mariadb_server_ask(
        fixture.mysql, "SELECT SUM(rows_read) FROM information_schema.table_statistics "
                       "WHERE table_name = 'sluice_posts'");
    long long since = now - before;

    before = now;
    return since;
}

static void test_a_page_costs_what_it_shows(void **state)
{
    const uint64_t some[] = {MANY, 1, MANY / 2};
    struct sl_archive_page page;

    (void)state;
    mariadb_server_run(fixture.mysql, "SET GLOBAL userstat = 1");
    hang_up();
    assert_int_equal(store(MANY), 0);
    assert_listed(MANY);
    rows_read();
    assert_int_equal(sl_archive_list(archive, USER, MANY / 2, PAGE, &page, &failure), 0);
    assert_int_equal(page.count, PAGE);
    assert_int_equal(page.posts[0].id, MANY / 2 - 1);
    sl_archive_page_done(&page);
    assert_in_range(rows_read(), PAGE, PAGE + 2);
    assert_int_equal(sl_archive_find(archive, some, 3, &page, &failure), 0);
    assert_int_equal(page.count, 3);
    sl_archive_page_done(&page);
    assert_in_range(rows_read(), 3, 5);
    mariadb_server_run(fixture.mysql, "SET GLOBAL userstat = 0");
}

#define MYSQL_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MYSQL_TEST(test_a_connection_that_was_hung_up_is_made_anew),
        MYSQL_TEST(test_what_was_stored_outlives_the_server),
        MYSQL_TEST(test_a_server_that_is_away_is_told_and_found_again),
        MYSQL_TEST(test_another_archive_in_its_place_is_not_taken_for_it),
        MYSQL_TEST(test_a_server_that_hangs_is_not_waited_for_for_ever),
        MYSQL_TEST(test_rows_that_others_hold_are_told_and_nothing_is_stored),
        MYSQL_TEST(test_a_deadlock_is_tried_again),
        MYSQL_TEST(test_a_server_that_takes_no_writes_is_read),
        MYSQL_TEST(test_tables_that_are_missing_or_not_ours_are_told),
        MYSQL_TEST(test_an_identity_that_is_null_is_not_taken),
        MYSQL_TEST(test_posts_that_are_null_are_told),
        MYSQL_TEST(test_a_page_costs_what_it_shows),
    };

    if (!archive_fixture_is_there("mysql"))
        return ARCHIVE_PLACE_SKIPPED;
    return cmocka_run_group_tests_name("archive_mysql", tests, start, stop);
}
