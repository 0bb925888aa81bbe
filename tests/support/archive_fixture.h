/* tests/support/archive_fixture.h - where a test has its archive: a file of SQLite, or a database
 * of a private MariaDB.
 *
 *     archive_fixture_init(&fixture, "mysql");
 *     archive_fixture_empty(&fixture);            there is none, and place.url names it
 *     archive_fixture_done(&fixture);
 *
 * Any trouble fails the running test. */
#pragma once

#include <stdbool.h>

#include "tests/support/mariadb_server.h"

enum archive_kind { ARCHIVE_KIND_SQLITE, ARCHIVE_KIND_MYSQL };

struct archive_fixture {
    enum archive_kind kind;
    char url[160];
    char folder[64], path[96]; /* of SQLite */
    struct mariadb_server server;
    struct st_mysql *mysql; /* for looking behind the scenes */
};

/* The test program's exit status when it cannot run: SKIP_RETURN_CODE of its test. */
enum { ARCHIVE_PLACE_SKIPPED = 77 };

/* "sqlite" or "mysql"; NULL: sqlite. Says so when there is no such thing on this machine. */
bool archive_fixture_is_there(const char *kind);
void archive_fixture_init(struct archive_fixture *fixture, const char *kind);
void archive_fixture_done(struct archive_fixture *fixture);

/* Takes the archive away. */
void archive_fixture_empty(struct archive_fixture *fixture);
/* Makes the archive that is there one of another version. */
void archive_fixture_set_version(struct archive_fixture *fixture, unsigned version);
