/* tests/support/archive_place.h - where a test has its archive: a file of SQLite, or a database of
 * a private MariaDB.
 *
 *     archive_place_init(&place, "mysql");
 *     archive_place_empty(&place);            there is none, and place.url names it
 *     archive_place_done(&place);
 *
 * Any trouble fails the running test. */
#pragma once

#include <stdbool.h>

#include "tests/support/mariadb_server.h"

enum archive_kind { ARCHIVE_KIND_SQLITE, ARCHIVE_KIND_MYSQL };

struct archive_place {
    enum archive_kind kind;
    char url[160];
    char folder[64], path[96]; /* of SQLite */
    struct mariadb_server server;
    struct st_mysql *mysql; /* for looking behind the scenes */
};

/* The test program's exit status when it cannot run: SKIP_RETURN_CODE of its test. */
enum { ARCHIVE_PLACE_SKIPPED = 77 };

/* "sqlite" or "mysql"; NULL: sqlite. Says so when there is no such thing on this machine. */
bool archive_place_is_there(const char *kind);
void archive_place_init(struct archive_place *place, const char *kind);
void archive_place_done(struct archive_place *place);

/* Takes the archive away. */
void archive_place_empty(struct archive_place *place);
/* Makes the archive that is there one of another version. */
void archive_place_set_version(struct archive_place *place, unsigned version);
