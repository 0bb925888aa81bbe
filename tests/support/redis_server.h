/* tests/support/redis_server.h - a real redis-server that belongs to one test program.
 *
 * It listens on a unix socket in a fresh folder, and on no port unless it is told to. It ends with
 * the test program in any case. Any error fails the running test. */
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
    const char *const *options; /* further options, terminated by NULL; NULL: none */
};

/* Creates the folder and starts a server in it; returns when it accepts connections. With
 * `append_only`, data survive redis_server_kill() and redis_server_restart(). */
void redis_server_init(struct redis_server *server, bool append_only);
/* The same with further options, "--port", "7000", NULL, which must outlive the server. */
void redis_server_init_with(struct redis_server *server, const char *const *options);
void redis_server_done(struct redis_server *server);

/* Returns a free port outside of the range from which the kernel assigns ports. */
unsigned redis_server_free_port(void);

/* SIGKILL, like a crash; then it is down until the next restart. */
void redis_server_kill(struct redis_server *server);
/* Starts it on the same socket and data. */
void redis_server_restart(struct redis_server *server);

/* Returns a new connection; redisFree() closes it. */
redisContext *redis_server_connect(const struct redis_server *server);

/* Runs a command, which must not fail. redis_server_ask(): the caller frees the reply. */
redisReply *redis_server_ask(redisContext *redis, const char *format, va_list args);
void redis_server_run(redisContext *redis, const char *format, ...);
