/* gateway/process/takeover.h - one sluiced follows another, and the port stays open.
 *
 * The running sluiced listens on a unix socket in its data directory. The new one asks there and is
 * given the listening sockets themselves (so that no connection in their queues is lost, and none
 * is refused) and the lock of the directory. While the new one gets ready the old one goes on
 * serving; when it says that it serves, the old one takes leave of its clients. Should it end
 * before, nothing has happened.
 *
 *     new -> old   "sluice takeover 1"
 *     old -> new   "LISTENERS LOCKS OPS-LISTENERS", then packets with the descriptors in that
 *                  order, up to 64 in each
 *     new -> old   "ready"
 *
 * Both must belong to the same user. One packet is one message (SOCK_SEQPACKET). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"
#include "gateway/http/listener.h"

/* The unix socket, a file in the data directory. */
#define TAKEOVER_SOCKET "takeover.sock"

/* --- the new one --- */

/* What the running sluiced gives; every descriptor is close-on-exec. */
struct heritage {
    struct listener listeners[LISTENER_COUNT]; /* with at least one socket of the public one */
    int lock;                                  /* of the data directory; -1: it had none */
    int peer;                                  /* until heritage_accept() */
    pid_t pid;                                 /* of the one that gave it */
};

/* Asks whoever serves `dir`. 0; -ENOENT: nobody does; other errnos: *reterr says why not. The
 * caller takes what it needs out of *ret_heritage (-1 marks what is taken) and frees the rest with
 * heritage_done(). */
int heritage_ask(const char *dir, struct heritage *ret_heritage, struct failure *reterr);
/* We serve: the other one leaves. */
void heritage_accept(struct heritage *heritage);
/* What is left of a listener's sockets is closed: nobody shall wait there. */
void heritage_close_listener(struct heritage *heritage, enum listener_kind kind);
void heritage_done(struct heritage *heritage);

/* Who serves `dir`: a process id; 0: nobody. */
pid_t takeover_find(const char *dir);

/* --- the running one --- */

struct takeover;

struct takeover_offer {
    const struct listener *listeners; /* LISTENER_COUNT of them */
    int lock;                         /* -1: none */
};

/* From now on it is this process that is asked in `dir`, which exists. 0; a negative errno. */
int takeover_new(const char *dir, struct takeover **ret_takeover, struct failure *reterr);
/* Is asked no more. */
void takeover_free(struct takeover *takeover);
/* In a forked worker: closes what is the parent's. */
void takeover_let_go(struct takeover *takeover);
/* Readable when takeover_step() has something to do. */
int takeover_fd(const struct takeover *takeover);
/* Goes on with the conversation. true: the successor serves; the socket in `dir` is its by now. */
bool takeover_step(struct takeover *takeover, const struct takeover_offer *offer);
