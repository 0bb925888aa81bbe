/* gateway/process/redis_program.h - the program redis-server as a private Redis needs it: started
 * in a directory, asked whether it answers, and what it said last. private_redis.h decides when. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define REDIS_PROGRAM_LOG_FILE "redis.log"

enum { REDIS_PROGRAM_LINE_SIZE = 200 };

/* Starts `program` in `dir`, on a unix socket there, with the descriptor `lock` and no other: clean
 * signals, a session of its own (Ctrl-C is not for Redis). 0; a negative errno. */
int redis_program_spawn(const char *program, const char *dir, int lock, pid_t *ret_pid);

/* A connection whose calls end within a fifth of a second; a negative errno. */
int redis_program_connect(const struct sockaddr_un *address);

/* The first line of its reply: "+PONG", "-LOADING ..."; empty: none. */
void redis_program_ping(int fd, char *ret_reply, size_t size);
bool redis_program_is_pong(const char *reply);

/* What it logged last, which says why it did not start; empty: nothing. */
void redis_program_read_last_line(const char *dir, char room[static REDIS_PROGRAM_LINE_SIZE]);
