/* acceptor.c - a poll handle for each listening socket, and a few connections for each that is
 * ready.
 *
 * At most ACCEPTS_PER_TURN connections are accepted at a time, so that existing ones are served in
 * between. When file descriptors run out, a spare one is released to accept a connection and close
 * it, because a connection that stays in the queue would keep the socket ready for ever. At the end
 * the queue is accepted once more, up to the size of the queue. */
#include "gateway/http/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"
#include "base/log.h"

enum {
    ACCEPTS_PER_TURN = 16,
    LAST_ACCEPTS = 4096 /* the backlog of the listeners: connections after that come too late */
};

/* The watch of one listening socket. */
struct listener_watch {
    uv_poll_t poll;
    struct acceptor *acceptor;
    int listener;
    struct listener_watch *next;
};

struct acceptor {
    struct acceptor_settings settings;
    bool is_open;
    struct listener_watch *first; /* NULL: closed */
    int spare_fd; /* released to accept and close when descriptors run out; -1: not regained yet */
    struct log_rate exhausted_rate;
};

static void keep_spare(struct acceptor *acceptor)
{
    if (acceptor->spare_fd < 0)
        acceptor->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void report(struct acceptor *acceptor)
{
    uint64_t held_back;

    if (log_rate_allows(&acceptor->exhausted_rate, uv_now(acceptor->settings.loop), &held_back))
        log_error("out_of_descriptors", "held_back=%" PRIu64 " advice=\"raise LimitNOFILE\"",
                  held_back);
}

/* Accepts and closes the next connection in the queue. false: the queue is empty (the kernel looks
 * for a descriptor first), or another thread took the spare one. */
static bool shed(struct acceptor *acceptor, int listener)
{
    int fd;

    if (acceptor->spare_fd >= 0)
        close(acceptor->spare_fd);
    acceptor->spare_fd = -1;
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        metric_add(acceptor->settings.metrics, METRIC_ACCEPT_EXHAUSTED, 1);
        report(acceptor);
    }
    keep_spare(acceptor);
    return fd >= 0;
}

static void accept_some(struct listener_watch *watch, int most)
{
    const struct acceptor_settings *settings = &watch->acceptor->settings;

    keep_spare(watch->acceptor);
    for (int i = 0; i < most; i++) {
        int fd = accept4(watch->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            settings->accepted(settings->owner, fd);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        else if ((errno == EMFILE || errno == ENFILE) && !shed(watch->acceptor, watch->listener))
            return;
        /* errors such as ECONNABORTED concern only one connection */
    }
}

static void on_connections(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    accept_some(LIST_OWNER(poll, struct listener_watch, poll), ACCEPTS_PER_TURN);
}

static int add_listener(struct acceptor *acceptor, int listener)
{
    struct listener_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch || uv_poll_init(acceptor->settings.loop, &watch->poll, listener) < 0) {
        mem_free(watch);
        return -ENOMEM;
    }
    watch->acceptor = acceptor;
    watch->listener = listener;
    watch->next = acceptor->first;
    acceptor->first = watch;
    return 0;
}

struct acceptor *acceptor_new(const struct acceptor_settings *settings)
{
    struct acceptor *acceptor = mem_zalloc(sizeof(*acceptor));
    int r;

    if (!acceptor)
        return NULL;
    acceptor->settings = *settings;
    acceptor->spare_fd = -1;
    keep_spare(acceptor);
    r = acceptor->spare_fd < 0 ? -EMFILE : 0;
    for (unsigned i = 0; r == 0 && i < settings->listener_count; i++)
        r = add_listener(acceptor, settings->listeners[i]);
    if (r < 0) {
        acceptor_free(acceptor);
        return NULL;
    }
    return acceptor;
}

/* Accepted connections inherit these options from the listener, which saves two system calls for
 * each. */
static void set_options(const struct acceptor_settings *settings, int listener)
{
    const int on = 1;

    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* output is gathered before it
                                                                        is sent */
    setsockopt(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, &settings->user_timeout_ms,
               sizeof(settings->user_timeout_ms));
}

void acceptor_open(struct acceptor *acceptor)
{
    acceptor->is_open = true;
    for (struct listener_watch *watch = acceptor->first; watch; watch = watch->next) {
        set_options(&acceptor->settings, watch->listener);
        uv_poll_start(&watch->poll, UV_READABLE, on_connections);
    }
}

static void free_watch(uv_handle_t *poll)
{
    mem_free(LIST_OWNER(poll, struct listener_watch, poll));
}

void acceptor_close(struct acceptor *acceptor, bool empties_queues)
{
    bool accepts = empties_queues && acceptor->is_open; /* an acceptor that was never opened leaves
                                                           the queue alone */
    struct listener_watch *watch;

    while ((watch = acceptor->first)) {
        acceptor->first = watch->next;
        if (accepts)
            accept_some(watch, LAST_ACCEPTS);
        uv_close((uv_handle_t *)&watch->poll, free_watch);
    }
}

void acceptor_free(struct acceptor *acceptor)
{
    if (!acceptor)
        return;
    acceptor_close(acceptor, false);
    if (acceptor->spare_fd >= 0)
        close(acceptor->spare_fd);
    mem_free(acceptor);
}
