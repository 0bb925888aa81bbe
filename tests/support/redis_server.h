/* tests/support/redis_server.h - a real redis-server that belongs to one test program.
 *
 * It listens on a unix socket in a fresh folder and on no port. It dies with the test program,
 * whatever becomes of that. Any trouble fails the running test. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

struct redis_server {
    pid_t pid;       /* 0: not running */
    char folder[64]; /* removed by redis_server_done() */
    char socket[96];
    char url[112]; /* unix://... */
    bool append_only;
};

/* Makes the folder and starts a server in it; returns when it accepts connections. With
 * `append_only`, data outlives redis_server_kill() and redis_server_restart(). */
void redis_server_init(struct redis_server *server, bool append_only);
void redis_server_done(struct redis_server *server);

/* SIGKILL, as a crash would; then it is down until the next restart. */
void redis_server_kill(struct redis_server *server);
/* Starts it on the same socket and data. */
void redis_server_restart(struct redis_server *server);

/* A connection of the caller's own; redisFree() ends it. */
redisContext *redis_server_connect(const struct redis_server *server);

/* A command that must not fail. redis_server_ask(): the reply is the caller's. */
redisReply *redis_server_ask(redisContext *redis, const char *format, va_list args);
void redis_server_run(redisContext *redis, const char *format, ...);
