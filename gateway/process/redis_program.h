/* gateway/process/redis_program.h - runs the program redis-server for a private Redis: starts it in
 * a directory, checks whether it answers, and reads its last log line. private_redis.h decides
 * when. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#define REDIS_PROGRAM_LOG_FILE "redis.log"

enum { REDIS_PROGRAM_LINE_SIZE = 200 };

/* Starts `program` in `dir`, on a Unix socket there, with only the descriptor `lock`, default
 * signals and its own session (Ctrl-C is not for Redis). 0; a negative errno. */
int redis_program_spawn(const char *program, const char *dir, int lock, pid_t *ret_pid);

/* A connection whose calls return within a fifth of a second; a negative errno. */
int redis_program_connect(const struct sockaddr_un *address);

/* Reads the first line of its reply: "+PONG", "-LOADING ..."; empty: none. */
void redis_program_ping(int fd, char *ret_reply, size_t size);
bool redis_program_is_pong(const char *reply);

/* Reads its last log line, which says why it did not start; empty: there is none. */
void redis_program_read_last_line(const char *dir, char room[static REDIS_PROGRAM_LINE_SIZE]);
