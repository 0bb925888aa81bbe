/* cli/children.h - child processes, which end with this program.
 *
 * Each has its own session, so that Ctrl-C reaches only this program, which ends them in order; if
 * it dies without doing so they get SIGTERM. Signals are waited for, not handled: after
 * children_listen() the program sleeps only in children_rest(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"

struct child {
    pid_t pid;       /* 0: not running */
    int status;      /* as returned by waitpid(), after the end */
    uint64_t end_ms; /* when the end was noticed, clock_monotonic_ms() */
};

/* From now on SIGINT, SIGTERM, SIGHUP and the end of a child end a rest. */
void children_listen(void);
/* Waits for this time, or until a child ends. 0; -EINTR: this program should end. */
int children_rest(uint32_t ms);

/* Runs `argv`, ended by NULL, in `folder` (NULL: here); its output is appended to the file `log`.
 * `fd` becomes its descriptor 3, unless it is -1. 0; -ENOENT: there is no such program; another
 * errno. */
int child_start(struct child *child, const char *const *argv, const char *folder, const char *log,
                int fd, struct failure *reterr);
/* Runs `work(context)` instead of another program; its result is the exit status. */
int child_fork(struct child *child, int (*work)(void *context), void *context, const char *log,
               struct failure *reterr);

/* Whether it is still running. */
bool child_runs(struct child *child);

enum { CHILD_END_SIZE = 64, CHILD_WORDS_SIZE = 384 };

/* Describes how a child ended: "with status 1". */
void child_describe_end(const struct child *child, char room[static CHILD_END_SIZE]);

/* Reads the last line of a log. */
void child_last_words(const char *log, char room[static CHILD_WORDS_SIZE]);

/* Sends `signal` to all that are running and waits for their end; kills them after `ms`. */
void children_stop(struct child *children, size_t count, int signal, uint32_t ms);
