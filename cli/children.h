/* cli/children.h - programs that this one has started, and that end with it.
 *
 * Each is in a session of its own, so that the Ctrl-C of a terminal reaches this program alone,
 * which ends them in order; if it dies without that they get SIGTERM. Signals are waited for, not
 * handled: whoever has called children_listen() sleeps in children_rest() only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"

struct child {
    pid_t pid;       /* 0: does not run */
    int status;      /* as waitpid() tells it, once it has ended */
    uint64_t end_ms; /* when that was noticed, clock_monotonic_ms() */
};

/* From now on SIGINT, SIGTERM, SIGHUP and the end of a child end a rest. */
void children_listen(void);
/* Waits for so long, or until a child ends. 0; -EINTR: this program is to end. */
int children_rest(uint32_t ms);

/* Runs `argv`, ended by NULL, in `folder` (NULL: here); what it prints is appended to the file
 * `log`. `fd` is its descriptor 3, unless that is -1. 0; -ENOENT: there is no such program; another
 * errno. */
int child_start(struct child *child, const char *const *argv, const char *folder, const char *log,
                int fd, struct failure *reterr);
/* Runs `work(context)` instead of another program; what it returns is the exit status. */
int child_fork(struct child *child, int (*work)(void *context), void *context, const char *log,
               struct failure *reterr);

/* Whether it runs still. */
bool child_runs(struct child *child);

enum { CHILD_END_SIZE = 64, CHILD_WORDS_SIZE = 384 };

/* How one that has ended did: "with status 1". */
void child_describe_end(const struct child *child, char room[static CHILD_END_SIZE]);

/* The last line of a log. */
void child_last_words(const char *log, char room[static CHILD_WORDS_SIZE]);

/* Sends `signal` to all that run and waits for their end, and after `ms` kills them. */
void children_stop(struct child *children, size_t count, int signal, uint32_t ms);
