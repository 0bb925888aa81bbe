/* tests/support/redis_server.h - a real redis-server that belongs to one test program.
 *
 * It listens on a unix socket in a fresh folder and on no port, unless it is told to. It dies with
 * the test program, whatever becomes of that. Any trouble fails the running test. */
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
    const char *const *options; /* more of them, up to a NULL; NULL: none */
};

/* Makes the folder and starts a server in it; returns when it accepts connections. With
 * `append_only`, data outlives redis_server_kill() and redis_server_restart(). */
void redis_server_init(struct redis_server *server, bool append_only);
/* The same with options of the test's own, "--port", "7000", NULL, which outlive the server. */
void redis_server_init_with(struct redis_server *server, const char *const *options);
void redis_server_done(struct redis_server *server);

/* A free port that nobody gets who asks for any, as outgoing connections do. */
unsigned redis_server_free_port(void);

/* SIGKILL, as a crash would; then it is down until the next restart. */
void redis_server_kill(struct redis_server *server);
/* Starts it on the same socket and data. */
void redis_server_restart(struct redis_server *server);

/* A connection of the caller's own; redisFree() ends it. */
redisContext *redis_server_connect(const struct redis_server *server);

/* A command that must not fail. redis_server_ask(): the reply is the caller's. */
redisReply *redis_server_ask(redisContext *redis, const char *format, va_list args);
void redis_server_run(redisContext *redis, const char *format, ...);
