/* tests/support/mariadb_server.h - a real mariadbd that belongs to one test program.
 *
 * It listens on a unix socket in a fresh folder, on no port, and accepts any user
 * (--skip-grant-tables): permissions are tested by the system tests. It ends with the test program
 * in any case. Any error fails the running test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/slice.h"

struct mariadb_server {
    pid_t pid;       /* 0: not running */
    char folder[64]; /* removed by mariadb_server_done() */
    char socket[96];
    int output; /* its output */
};

/* Is there a mariadbd on this machine? */
bool mariadb_server_is_installed(void);

/* Creates the folder and starts a server in it; returns when it accepts connections. */
void mariadb_server_init(struct mariadb_server *server);
void mariadb_server_done(struct mariadb_server *server);

/* SIGKILL, like a crash; then it is down until the next restart. */
void mariadb_server_kill(struct mariadb_server *server);
/* Starts it on the same socket and data; `option` NULL: as before, otherwise with a further option,
 * such as "--innodb-read-only=1". */
void mariadb_server_restart(struct mariadb_server *server, const char *option);
/* It hangs: existing and new connections get no answer. */
void mariadb_server_freeze(struct mariadb_server *server);
void mariadb_server_thaw(struct mariadb_server *server);

/* Returns a new connection; mysql_close() closes it. */
struct st_mysql *mariadb_server_connect(const struct mariadb_server *server);
/* Runs a statement, which must not fail. */
void mariadb_server_run(struct st_mysql *mysql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Returns the first value of a query, as a number. */
long long mariadb_server_ask(struct st_mysql *mysql, const char *sql);
