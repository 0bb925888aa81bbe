/* gateway/process/start_notice.h - reports that sluiced serves: on the descriptor of ready-fd, to
 * the process that waits in the foreground (background), to the service manager, and in the log. */
#pragma once

#include <sys/types.h>

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/http/listener.h"

struct start_notice {
    int ready_fd;   /* -1: none, or reported */
    int started_fd; /* -1: none, or reported */
};

/* What is reported. */
struct start_facts {
    const struct listener *listeners;
    const char *redis_url;
    unsigned workers;
    pid_t pid;
};

/* Takes ownership of `started_fd` (-1: none). 0; -EBADF: *reterr says that ready-fd is not an open
 * descriptor. */
int start_notice_init(struct start_notice *notice, const struct config *config, int started_fd,
                      struct failure *reterr);
/* Tells the service manager; must happen before the end of a predecessor, which could be taken for
 * ours. */
void start_notice_tell_manager(const struct start_facts *facts);
/* Tells all others; once. */
void start_notice_tell(struct start_notice *notice, const struct start_facts *facts);
/* Closes the descriptors, so that readers that were not told see end of file. Also called in a
 * forked child, to close what belongs to the parent. */
void start_notice_done(struct start_notice *notice);
