/* takeover.c - a protocol of three messages, which must not block the supervisor.
 *
 * The running sluiced reads and writes without waiting, serves one successor at a time, and drops
 * one that disconnects or sends anything else. The new one may wait, up to TIMEOUT_S for each
 * message, because it does not serve yet. Descriptors are sent 64 in a packet, at most MOST_FDS;
 * unwanted ones are closed. Both sides check that the peer is the same user. */
#include "gateway/process/takeover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/close_fd.h"
#include "base/log.h"

enum {
    BATCH = 64,
    MESSAGE_SIZE = 64,
    TIMEOUT_S = 10,
    MOST_FDS = LISTENER_COUNT * LISTENERS_MAX + 1
};

#define QUESTION "sluice takeover 1"
#define READY    "ready"

static int make_address(const char *dir, const char *suffix, struct sockaddr_un *ret_address,
                        struct failure *reterr)
{
    int size;

    ret_address->sun_family = AF_UNIX;
    size = snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s/%s%s", dir,
                    TAKEOVER_SOCKET, suffix);
    if ((size_t)size < sizeof(ret_address->sun_path))
        return 0;
    return failure_set(reterr, -ENAMETOOLONG,
                       "the directory '%.300s' is too long by %zu bytes for a unix socket in it",
                       dir, (size_t)size + 1 - sizeof(ret_address->sun_path));
}

/* --- descriptors in messages --- */

union fd_room {
    struct cmsghdr alignment;
    char bytes[CMSG_SPACE(BATCH * sizeof(int))];
};

static int send_fds(int socket, const int *fds, unsigned count)
{
    union fd_room room = {0};
    char byte = 0;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = CMSG_SPACE(count * sizeof(int)),
    };
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);

    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(control), fds, count * sizeof(int));
    return TEMP_FAILURE_RETRY(sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT)) == 1 ? 0
                                                                                           : -errno;
}

/* Receives up to `most` descriptors. Returns their number, or a negative errno. */
static int receive_fds(int socket, int *ret_fds, unsigned most)
{
    union fd_room room = {0};
    int got[BATCH];
    char byte;
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof(room.bytes),
    };
    struct cmsghdr *control;
    unsigned count;

    if (TEMP_FAILURE_RETRY(recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) != 1)
        return -EPROTO;
    control = CMSG_FIRSTHDR(&message);
    if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS)
        return -EPROTO;
    count = (unsigned)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(got, CMSG_DATA(control), count * sizeof(int));
    if (count == 0 || count > most || (message.msg_flags & MSG_CTRUNC)) {
        while (count > 0)
            close(got[--count]);
        return -EPROTO;
    }
    memcpy(ret_fds, got, count * sizeof(int));
    return (int)count;
}

/* --- the peer --- */

static int check_peer(int socket, pid_t *ret_pid)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return -errno;
    *ret_pid = peer.pid;
    return peer.uid == geteuid() ? 0 : -EPERM;
}

/* -ENOENT: nobody listens there. */
static int connect_to(const char *dir, int *ret_socket, struct failure *reterr)
{
    const struct timeval timeout = {.tv_sec = TIMEOUT_S};
    struct sockaddr_un address = {0};
    int fd, r;

    r = make_address(dir, "", &address, reterr);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) == 0 &&
        TEMP_FAILURE_RETRY(connect(fd, (const struct sockaddr *)&address, sizeof(address))) == 0) {
        *ret_socket = fd;
        return 0;
    }
    r = errno == ECONNREFUSED || errno == ENOTDIR ? -ENOENT : -errno;
    if (fd >= 0)
        close(fd);
    return failure_set(reterr, r, "cannot ask at '%s': %s", address.sun_path, strerror(-r));
}

pid_t takeover_find(const char *dir)
{
    pid_t pid = 0;
    int fd;

    if (connect_to(dir, &fd, NULL) < 0)
        return 0;
    check_peer(fd, &pid);
    close(fd);
    return pid;
}

/* --- the new sluiced --- */

static void fill_listener(struct listener *listener, const int *sockets, unsigned count)
{
    memcpy(listener->sockets, sockets, count * sizeof(int));
    listener->count = count;
}

static int receive_handover(struct handover *handover)
{
    char said[MESSAGE_SIZE];
    unsigned listeners, locks, ops_listeners = 0;
    int fds[MOST_FDS];
    unsigned total, count = 0;
    ssize_t size;
    int r = 0;

    if (TEMP_FAILURE_RETRY(send(handover->peer, QUESTION, strlen(QUESTION), MSG_NOSIGNAL)) < 0)
        return -errno;
    size = TEMP_FAILURE_RETRY(recv(handover->peer, said, sizeof(said) - 1, 0));
    if (size <= 0)
        return size < 0 ? -errno : -ECONNRESET;
    said[size] = '\0';
    if (sscanf(said, "%u %u %u", &listeners, &locks, &ops_listeners) < 2 || listeners == 0 ||
        listeners > LISTENERS_MAX || locks > 1 || ops_listeners > LISTENERS_MAX)
        return -EPROTO;
    total = listeners + locks + ops_listeners;
    while (r >= 0 && count < total) {
        r = receive_fds(handover->peer, fds + count, total - count < BATCH ? total - count : BATCH);
        count += r > 0 ? (unsigned)r : 0;
    }
    if (r < 0) {
        while (count > 0)
            close(fds[--count]);
        return r;
    }
    fill_listener(&handover->listeners[LISTENER_PUBLIC], fds, listeners);
    handover->lock = locks ? fds[listeners] : -1;
    fill_listener(&handover->listeners[LISTENER_OPS], fds + listeners + locks, ops_listeners);
    return 0;
}

int handover_request(const char *dir, struct handover *ret_handover, struct failure *reterr)
{
    struct handover handover = {.lock = -1, .peer = -1};
    int r;

    r = connect_to(dir, &handover.peer, reterr);
    if (r < 0)
        return r;
    r = check_peer(handover.peer, &handover.pid);
    if (r < 0)
        r = failure_set(reterr, r, "the sluiced of '%s' (pid %d) belongs to another user", dir,
                        (int)handover.pid);
    else
        r = receive_handover(&handover);
    if (r == -EAGAIN || r == -EWOULDBLOCK)
        r = failure_set(reterr, -EBUSY,
                        "the sluiced of '%s' (pid %d) does not answer; another may be about to "
                        "take it over",
                        dir, (int)handover.pid);
    else if (r < 0 && r != -EPERM)
        r = failure_set(reterr, -EIO, "the sluiced of '%s' (pid %d) does not hand over: %s", dir,
                        (int)handover.pid, strerror(-r));
    if (r < 0)
        handover_done(&handover);
    else
        *ret_handover = handover;
    return r;
}

void handover_confirm(struct handover *handover)
{
    if (TEMP_FAILURE_RETRY(send(handover->peer, READY, strlen(READY), MSG_NOSIGNAL)) < 0)
        log_warn("predecessor_gone", "pid=%d", (int)handover->pid);
    close(handover->peer);
    handover->peer = -1;
}

void handover_close_listener(struct handover *handover, enum listener_kind kind)
{
    struct listener *listener = &handover->listeners[kind];

    while (listener->count > 0)
        close_fd(&listener->sockets[--listener->count]);
}

void handover_done(struct handover *handover)
{
    for (unsigned i = 0; i < LISTENER_COUNT; i++)
        handover_close_listener(handover, (enum listener_kind)i);
    close_fd(&handover->lock);
    close_fd(&handover->peer);
}

/* --- the running sluiced --- */

struct takeover {
    struct sockaddr_un address;
    int listener;
    int peer; /* -1: nobody asks */
    pid_t pid;
    bool has_offered; /* to this peer */
    bool has_left;    /* the path belongs to the successor */
};

/* Listens under a temporary name first, so that the process at the old one, perhaps a predecessor,
 * can be asked until the moment of the rename. */
static int listen_at(const char *dir, struct takeover *takeover, struct failure *reterr)
{
    struct sockaddr_un fresh = {0};
    mode_t mask;
    int r;

    r = make_address(dir, "", &takeover->address, reterr);
    if (r == 0)
        r = make_address(dir, ".new", &fresh, reterr);
    if (r < 0)
        return r;
    takeover->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(fresh.sun_path);
    mask = umask(0177);
    r = takeover->listener >= 0
            ? bind(takeover->listener, (const struct sockaddr *)&fresh, sizeof(fresh))
            : -1;
    umask(mask);
    if (r == 0 && listen(takeover->listener, 4) == 0 &&
        rename(fresh.sun_path, takeover->address.sun_path) == 0)
        return 0;
    return failure_set(reterr, -errno, "cannot listen on '%s': %s", takeover->address.sun_path,
                       strerror(errno));
}

int takeover_new(const char *dir, struct takeover **ret_takeover, struct failure *reterr)
{
    struct takeover *takeover = mem_zalloc(sizeof(*takeover));
    int r;

    if (!takeover)
        return failure_set(reterr, -ENOMEM, "out of memory");
    takeover->listener = takeover->peer = -1;
    r = listen_at(dir, takeover, reterr);
    if (r < 0) {
        takeover_close_in_child(takeover);
        return r;
    }
    *ret_takeover = takeover;
    return 0;
}

void takeover_close_in_child(struct takeover *takeover)
{
    if (!takeover)
        return;
    close_fd(&takeover->listener);
    close_fd(&takeover->peer);
    mem_free(takeover);
}

void takeover_free(struct takeover *takeover)
{
    if (takeover && !takeover->has_left)
        unlink(takeover->address.sun_path);
    takeover_close_in_child(takeover);
}

int takeover_fd(const struct takeover *takeover)
{
    return takeover->peer >= 0 ? takeover->peer : takeover->listener;
}

static void accept_successor(struct takeover *takeover)
{
    takeover->has_offered = false;
    takeover->peer =
        TEMP_FAILURE_RETRY(accept4(takeover->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (takeover->peer >= 0 && check_peer(takeover->peer, &takeover->pid) < 0) {
        log_warn("takeover_refused", "pid=%d why=\"of another user\"", (int)takeover->pid);
        close_fd(&takeover->peer);
    }
}

static int offer_all(int peer, const struct takeover_offer *offer)
{
    const struct listener *public_listener = &offer->listeners[LISTENER_PUBLIC];
    const struct listener *ops_listener = &offer->listeners[LISTENER_OPS];
    int fds[MOST_FDS];
    unsigned total = public_listener->count;
    char said[MESSAGE_SIZE];
    int size, r = 0;

    memcpy(fds, public_listener->sockets, public_listener->count * sizeof(int));
    if (offer->lock >= 0)
        fds[total++] = offer->lock;
    memcpy(fds + total, ops_listener->sockets, ops_listener->count * sizeof(int));
    total += ops_listener->count;
    size = snprintf(said, sizeof(said), "%u %u %u", public_listener->count,
                    offer->lock >= 0 ? 1u : 0u, ops_listener->count);
    if (TEMP_FAILURE_RETRY(send(peer, said, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT)) < 0)
        return -errno;
    for (unsigned sent = 0; r == 0 && sent < total; sent += BATCH)
        r = send_fds(peer, fds + sent, total - sent < BATCH ? total - sent : BATCH);
    return r;
}

/* Any other message, or the end of the connection, ends the conversation. */
static bool listen_to(struct takeover *takeover, const struct takeover_offer *offer)
{
    char said[MESSAGE_SIZE];
    ssize_t size = recv(takeover->peer, said, sizeof(said), 0);
    struct sl_slice message = sl_slice(said, size > 0 ? (size_t)size : 0);

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (!takeover->has_offered && sl_slice_is(message, QUESTION)) {
        takeover->has_offered = offer_all(takeover->peer, offer) == 0;
        if (takeover->has_offered) {
            log_info("takeover_offered", "pid=%d sockets=%u", (int)takeover->pid,
                     offer->listeners[LISTENER_PUBLIC].count +
                         offer->listeners[LISTENER_OPS].count);
            return false;
        }
    }
    if (takeover->has_offered && sl_slice_is(message, READY)) {
        log_info("taken_over", "pid=%d", (int)takeover->pid);
        takeover->has_left = true;
        return true;
    }
    if (size != 0 || takeover->has_offered)
        log_warn("takeover_given_up", "pid=%d", (int)takeover->pid);
    close_fd(&takeover->peer);
    return false;
}

bool takeover_step(struct takeover *takeover, const struct takeover_offer *offer)
{
    if (takeover->peer >= 0)
        return listen_to(takeover, offer);
    accept_successor(takeover);
    return false;
}
