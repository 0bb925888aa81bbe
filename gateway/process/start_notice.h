/* gateway/process/start_notice.h - who wants to know when sluiced serves: the descriptor of
 * ready-fd, the process that waits in the foreground (background), the service manager, and the
 * log. */
#pragma once

#include <sys/types.h>

#include "base/failure.h"
#include "gateway/config/config.h"
#include "gateway/http/listener.h"

struct start_notice {
    int ready_fd;   /* -1: none, or told */
    int started_fd; /* -1: none, or told */
};

/* What is to be told. */
struct start_facts {
    const struct listener *listeners;
    const char *redis_url;
    unsigned workers;
    pid_t pid;
};

/* Takes `started_fd` (-1: none). 0; -EBADF: *reterr says that ready-fd is no open descriptor. */
int start_notice_init(struct start_notice *notice, const struct config *config, int started_fd,
                      struct failure *reterr);
/* The service manager; before a predecessor's end can be taken for ours. */
void start_notice_tell_manager(const struct start_facts *facts);
/* Everybody else; once. */
void start_notice_tell(struct start_notice *notice, const struct start_facts *facts);
/* Who has been told nothing by now sees the end. In a forked child: closes what is the parent's. */
void start_notice_done(struct start_notice *notice);
