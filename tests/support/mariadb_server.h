/* tests/support/mariadb_server.h - a real mariadbd that belongs to one test program.
 *
 * It listens on a unix socket in a fresh folder and on no port, and believes whoever comes
 * (--skip-grant-tables): what users may do is the system tests' matter. It dies with the test
 * program, whatever becomes of that. Any trouble fails the running test. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/slice.h"

struct mariadb_server {
    pid_t pid;       /* 0: not running */
    char folder[64]; /* removed by mariadb_server_done() */
    char socket[96];
    int output; /* what it says */
};

/* Is there a mariadbd on this machine? */
bool mariadb_server_is_installed(void);

/* Makes the folder and starts a server in it; returns when it accepts connections. */
void mariadb_server_init(struct mariadb_server *server);
void mariadb_server_done(struct mariadb_server *server);

/* SIGKILL, as a crash would; then it is down until the next restart. */
void mariadb_server_kill(struct mariadb_server *server);
/* Starts it on the same socket and data; `option` NULL: as before, "--innodb-read-only=1": so. */
void mariadb_server_restart(struct mariadb_server *server, const char *option);
/* It hangs: whoever is connected, or connects, hears nothing. */
void mariadb_server_freeze(struct mariadb_server *server);
void mariadb_server_thaw(struct mariadb_server *server);

/* A connection of the caller's own; mysql_close() ends it. */
struct st_mysql *mariadb_server_connect(const struct mariadb_server *server);
/* A statement that must not fail. */
void mariadb_server_run(struct st_mysql *mysql, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The first value of a query, as a number. */
long long mariadb_server_ask(struct st_mysql *mysql, const char *sql);
