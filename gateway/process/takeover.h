/* gateway/process/takeover.h - replaces a running sluiced without closing its port.
 *
 * The running sluiced listens on a Unix socket in its data directory. The new one connects and
 * receives the listening sockets themselves (so that no connection in their queues is lost or
 * refused) and the lock of the directory. While the new one gets ready the old one continues to
 * serve; when the new one reports that it serves, the old one says goodbye to its clients. If the
 * new one ends before that, nothing has changed.
 *
 *     new -> old   "sluice takeover 1"
 *     old -> new   "LISTENERS LOCKS OPS-LISTENERS", then packets with the descriptors in that
 *                  order, up to 64 in each
 *     new -> old   "ready"
 *
 * Both must belong to the same user. A packet is a message (SOCK_SEQPACKET). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "gateway/http/listener.h"

/* The Unix socket, a file in the data directory. */
#define TAKEOVER_SOCKET "takeover.sock"

/* --- the new sluiced --- */

/* What the running sluiced passes on; all descriptors are close-on-exec. */
struct handover {
    struct listener listeners[LISTENER_COUNT]; /* the public one has at least one socket */
    int lock;                                  /* of the data directory; -1: there was none */
    int peer;                                  /* until handover_confirm() */
    pid_t pid;                                 /* of the process that passed it on */
};

/* Asks the sluiced that serves `dir`. 0; -ENOENT: there is none; other errnos: *reterr says why
 * not. The caller takes what it needs out of *ret_handover (set what is taken to -1) and frees the
 * rest with handover_done(). */
int handover_request(const char *dir, struct handover *ret_handover, struct failure *reterr);
/* Reports that we serve: the other process leaves. */
void handover_confirm(struct handover *handover);
/* Closes the remaining sockets of a listener, so that no connections wait there. */
void handover_close_listener(struct handover *handover, enum listener_kind kind);
void handover_done(struct handover *handover);

/* The process id of the sluiced that serves `dir`; 0: none. */
pid_t takeover_find(const char *dir);

/* --- the running sluiced --- */

struct takeover;

struct takeover_offer {
    const struct listener *listeners; /* LISTENER_COUNT of them */
    int lock;                         /* -1: none */
};

/* From now on this process answers in `dir`, which must exist. 0; a negative errno. */
int takeover_new(const char *dir, struct takeover **ret_takeover, struct failure *reterr);
/* Stops answering. */
void takeover_free(struct takeover *takeover);
/* In a forked worker: closes what belongs to the parent. */
void takeover_close_in_child(struct takeover *takeover);
/* Readable when takeover_step() has something to do. */
int takeover_fd(const struct takeover *takeover);
/* Continues the conversation. true: the successor serves, and the socket in `dir` belongs to it. */
bool takeover_step(struct takeover *takeover, const struct takeover_offer *offer);
