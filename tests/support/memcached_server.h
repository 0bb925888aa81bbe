/* tests/support/memcached_server.h - a real memcached that belongs to one test program.
 *
 * Like redis_server.h: it listens on a unix socket in a fresh folder, and ends with the program. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct memcached_server {
    pid_t pid;       /* 0: not running */
    char folder[64]; /* removed by memcached_server_done() */
    char socket[96];
    char url[120]; /* memcached://... */
};

/* Is memcached installed? Prints a message if it is not. */
bool memcached_server_is_installed(void);

void memcached_server_init(struct memcached_server *server);
void memcached_server_done(struct memcached_server *server);

/* SIGKILL; then it is down until it is started again, empty. */
void memcached_server_kill(struct memcached_server *server);
void memcached_server_start(struct memcached_server *server);
/* SIGSTOP: it accepts connections, and answers none. And SIGCONT. */
void memcached_server_stall(struct memcached_server *server);
void memcached_server_go_on(struct memcached_server *server);

/* Sends a line, and returns when the first line of the answer has arrived, which it copies. */
void memcached_server_say(const struct memcached_server *server, const char *line,
                          char ret_answer[static 256]);
