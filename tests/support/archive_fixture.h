/* tests/support/archive_fixture.h - the archive of a test: an SQLite file, or a database of a
 * private MariaDB.
 *
 *     archive_fixture_init(&fixture, "mysql");
 *     archive_fixture_empty(&fixture);            there is none, but place.url names it
 *     archive_fixture_done(&fixture);
 *
 * Any error fails the running test. */
#pragma once

#include <stdbool.h>

#include "tests/support/mariadb_server.h"

enum archive_kind { ARCHIVE_KIND_SQLITE, ARCHIVE_KIND_MYSQL };

struct archive_fixture {
    enum archive_kind kind;
    char url[160];
    char folder[64], path[96]; /* for SQLite */
    struct mariadb_server server;
    struct st_mysql *mysql; /* for direct access */
};

/* The test program's exit status when it cannot run: SKIP_RETURN_CODE of its test. */
enum { ARCHIVE_PLACE_SKIPPED = 77 };

/* "sqlite" or "mysql"; NULL: sqlite. Prints a message if it is not installed on this machine. */
bool archive_fixture_is_there(const char *kind);
void archive_fixture_init(struct archive_fixture *fixture, const char *kind);
void archive_fixture_done(struct archive_fixture *fixture);

/* Deletes the archive. */
void archive_fixture_empty(struct archive_fixture *fixture);
/* Gives the existing archive another version. */
void archive_fixture_set_version(struct archive_fixture *fixture, unsigned version);
