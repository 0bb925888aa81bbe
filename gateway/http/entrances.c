#include "gateway/http/entrances.h"

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
    LAST_ACCEPTS = 4096 /* the listeners' backlog: what comes later than the end comes too late */
};

/* To one listener. */
struct entrance {
    uv_poll_t poll;
    struct entrances *all;
    int listener;
    struct entrance *next;
};

struct entrances {
    struct entrances_settings settings;
    bool is_open;
    struct entrance *first; /* NULL: closed */
    int spare_fd;           /* given up to accept and close when descriptors run out */
    struct log_rate exhausted_rate;
};

static void shed(struct entrances *entrances, int listener)
{
    uint64_t held_back;
    int fd;

    metric_add(entrances->settings.metrics, METRIC_ACCEPT_EXHAUSTED, 1);
    if (log_rate_allows(&entrances->exhausted_rate, uv_now(entrances->settings.loop), &held_back))
        log_error("out_of_descriptors", "held_back=%" PRIu64 " advice=\"raise LimitNOFILE\"",
                  held_back);
    if (entrances->spare_fd >= 0)
        close(entrances->spare_fd);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    entrances->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_some(struct entrance *entrance, int most)
{
    const struct entrances_settings *settings = &entrance->all->settings;

    for (int i = 0; i < most; i++) {
        int fd = accept4(entrance->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            settings->welcome(settings->owner, fd);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE)
            shed(entrance->all, entrance->listener);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        /* ECONNABORTED and the like concern that one connection. */
    }
}

static void on_connections(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    accept_some(LIST_OWNER(poll, struct entrance, poll), ACCEPTS_PER_TURN);
}

static int add_entrance(struct entrances *entrances, int listener)
{
    struct entrance *entrance = mem_zalloc(sizeof(*entrance));

    if (!entrance || uv_poll_init(entrances->settings.loop, &entrance->poll, listener) < 0) {
        mem_free(entrance);
        return -ENOMEM;
    }
    entrance->all = entrances;
    entrance->listener = listener;
    entrance->next = entrances->first;
    entrances->first = entrance;
    return 0;
}

struct entrances *entrances_new(const struct entrances_settings *settings)
{
    struct entrances *entrances = mem_zalloc(sizeof(*entrances));
    int r;

    if (!entrances)
        return NULL;
    entrances->settings = *settings;
    entrances->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    r = entrances->spare_fd < 0 ? -errno : 0;
    for (unsigned i = 0; r == 0 && i < settings->listener_count; i++)
        r = add_entrance(entrances, settings->listeners[i]);
    if (r < 0) {
        entrances_free(entrances);
        return NULL;
    }
    return entrances;
}

/* Connections inherit these from the listener, which saves two calls for each. */
static void set_options(const struct entrances_settings *settings, int listener)
{
    const int on = 1;

    setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* we gather */
    setsockopt(listener, IPPROTO_TCP, TCP_USER_TIMEOUT, &settings->user_timeout_ms,
               sizeof(settings->user_timeout_ms));
}

void entrances_open(struct entrances *entrances)
{
    entrances->is_open = true;
    for (struct entrance *entrance = entrances->first; entrance; entrance = entrance->next) {
        set_options(&entrances->settings, entrance->listener);
        uv_poll_start(&entrance->poll, UV_READABLE, on_connections);
    }
}

static void free_entrance(uv_handle_t *poll)
{
    mem_free(LIST_OWNER(poll, struct entrance, poll));
}

void entrances_close(struct entrances *entrances, bool empties_queues)
{
    bool accepts = empties_queues && entrances->is_open; /* who was never open leaves them alone */
    struct entrance *entrance;

    while ((entrance = entrances->first)) {
        entrances->first = entrance->next;
        if (accepts)
            accept_some(entrance, LAST_ACCEPTS);
        uv_close((uv_handle_t *)&entrance->poll, free_entrance);
    }
}

void entrances_free(struct entrances *entrances)
{
    if (!entrances)
        return;
    entrances_close(entrances, false);
    if (entrances->spare_fd >= 0)
        close(entrances->spare_fd);
    mem_free(entrances);
}
