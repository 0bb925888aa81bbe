/* redis_socket.c - what libuv closes later lives apart from what its owner frees now.
 *
 * A connection is a `link` of its own: it outlives the socket until the loop has let go of it, and
 * knows by `socket` being NULL that nobody waits any more. A look-up takes as long as the resolver
 * likes (name_lookup.h); so one that outlives the opening it was for serves the next one. There is
 * never more than one of them.
 *
 * What a turn of the loop sends is gathered and leaves in one go, right before the loop would wait.
 *
 * A failed connection is readable: whatever ends it, the next recv() tells. libuv reports an RST as
 * an error of the watcher, which it has stopped then: that, too, is read to its end. */
#include "gateway/redis/redis_socket.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/redis/name_lookup.h"
#include "src/redis/redis_format.h"

/* hiredis parses pieces of this size fastest; see redisReader. */
enum { CHUNK_SIZE = 16 * 1024, TURN_MAX_BYTES = 1024 * 1024 };

/* So much is sent at once, not gathered further; what a burst needed beyond it is given back when
 * all of it has left. */
enum { UNSENT_KEPT_BYTES = 64 * 1024 };

struct link {
    uv_poll_t poll;
    uv_prepare_t sender; /* while there is something to send: before the loop waits */
    uv_timer_t rest;     /* while it reads nothing */
    int open_handles;    /* of the three */
    int fd;
    int watched;                 /* UV_READABLE, UV_WRITABLE; 0 while it rests */
    bool is_open;                /* connect() has succeeded */
    struct redis_socket *socket; /* NULL: closed */
};

struct redis_socket {
    uv_loop_t *loop;
    struct sl_redis_address address;
    struct redis_socket_callbacks callbacks;
    void *context;
    struct name_lookup *lookup; /* while the name is looked up */
    bool awaits_lookup;         /* to connect; not so when it has outlived its opening */
    struct addrinfo *addresses; /* while connecting by TCP: what the look-up found */
    unsigned address_count;
    unsigned current;  /* which of them is tried, or was last; the next look-up may find fewer */
    unsigned untried;  /* behind it, and round to the beginning */
    struct link *link; /* while connecting or connected */
    struct buffer unsent;
};

struct redis_socket *redis_socket_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      size_t max_unsent_bytes,
                                      const struct redis_socket_callbacks *callbacks, void *context)
{
    struct redis_socket *sock = mem_zalloc(sizeof(*sock));

    if (!sock)
        return NULL;
    sock->loop = loop;
    sock->address = *address;
    sock->callbacks = *callbacks;
    sock->context = context;
    sock->unsent.limit = max_unsent_bytes;
    return sock;
}

/* ---- closing ---- */

static void on_link_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    if (--link->open_handles == 0)
        mem_free(link);
}

static void close_link(struct redis_socket *sock)
{
    struct link *link = sock->link;

    if (!link)
        return;
    sock->link = NULL;
    link->socket = NULL;
    uv_close((uv_handle_t *)&link->poll, on_link_closed);
    uv_close((uv_handle_t *)&link->sender, on_link_closed);
    uv_close((uv_handle_t *)&link->rest, on_link_closed);
    close(link->fd);
}

static void forget_addresses(struct redis_socket *sock)
{
    if (sock->addresses)
        freeaddrinfo(sock->addresses);
    sock->addresses = NULL;
    sock->untried = 0;
}

static void forget_lookup(struct redis_socket *sock)
{
    name_lookup_forget(sock->lookup);
    sock->lookup = NULL;
}

void redis_socket_close(struct redis_socket *sock)
{
    if (sock->addresses && sock->link)
        sock->current++; /* it has said nothing in the time there was: another one's turn */
    close_link(sock);
    forget_addresses(sock);
    buffer_clear(&sock->unsent);
    sock->awaits_lookup = false;
}

void redis_socket_free(struct redis_socket *sock)
{
    if (!sock)
        return;
    redis_socket_close(sock);
    forget_lookup(sock);
    buffer_done(&sock->unsent);
    mem_free(sock);
}

void redis_socket_set_endpoint(struct redis_socket *sock, const struct sl_redis_endpoint *endpoint)
{
    assert(!sock->link && !sock->awaits_lookup && !sock->address.path[0]);
    if (sl_redis_endpoint_equals(endpoint, &sock->address.endpoint))
        return;
    forget_lookup(sock);
    sock->address.endpoint = *endpoint;
    sock->current = 0;
}

static void lose(struct redis_socket *sock, const char *reason)
{
    redis_socket_close(sock);
    sock->callbacks.on_lost(sock->context, reason);
}

/* ---- bytes ---- */

static void watch(struct link *link, int events);

/* Whatever else it waits for, it reads, unless it rests. */
static void watch_link(struct link *link, int events)
{
    watch(link, uv_is_active((uv_handle_t *)&link->rest) ? events : events | UV_READABLE);
}

/* 0; negative errno. */
static int flush(struct redis_socket *sock)
{
    struct buffer *unsent = &sock->unsent;

    while (unsent->size > 0) {
        ssize_t sent = send(sock->link->fd, unsent->data, unsent->size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (sent < 0)
            return -errno;
        buffer_consume(unsent, (size_t)sent);
    }
    watch_link(sock->link, unsent->size > 0 ? UV_WRITABLE : 0);
    if (unsent->size == 0 && unsent->capacity > UNSENT_KEPT_BYTES) {
        size_t limit = unsent->limit;

        buffer_done(unsent);
        unsent->limit = limit;
    }
    return 0;
}

static void send_now(struct redis_socket *sock)
{
    uv_prepare_stop(&sock->link->sender);
    if (flush(sock) < 0)
        watch(sock->link, UV_READABLE | UV_WRITABLE); /* the next turn ends the connection */
}

static void on_sender(uv_prepare_t *sender)
{
    send_now(((struct link *)sender->data)->socket);
}

int redis_socket_send(struct redis_socket *sock, int argc, const char *const *argv,
                      const size_t *argvlen)
{
    struct buffer *unsent = &sock->unsent;
    int r;

    assert(sock->link && sock->link->is_open);
    r = sl_redis_format(unsent, argc, argv, argvlen);
    if (r < 0)
        return r;
    if (sock->link->watched & UV_WRITABLE)
        return 0; /* the kernel has no room */
    if (unsent->size >= UNSENT_KEPT_BYTES)
        send_now(sock);
    else
        uv_prepare_start(&sock->link->sender, on_sender);
    return 0;
}

/* NULL, or why the connection is over. */
static const char *read_turn(struct link *link)
{
    char chunk[CHUNK_SIZE];
    size_t total = 0;

    while (total < TURN_MAX_BYTES) {
        ssize_t got = recv(link->fd, chunk, sizeof(chunk), 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return NULL;
        if (got < 0)
            return strerror(errno);
        if (got == 0)
            return "Redis closed the connection";
        link->socket->callbacks.on_bytes(link->socket->context, sl_slice(chunk, (size_t)got));
        if (!link->socket || (size_t)got < sizeof(chunk))
            return NULL;
        total += (size_t)got;
    }
    return NULL; /* the loop comes back for the rest */
}

static void on_open_events(struct link *link, int events)
{
    struct redis_socket *sock = link->socket;
    const char *reason = NULL;
    int r;

    if (events & UV_READABLE) {
        reason = read_turn(link);
        if (!link->socket)
            return;
        sock->callbacks.on_turn_end(sock->context);
        if (!link->socket)
            return;
    }
    if (!reason && (events & UV_WRITABLE)) {
        r = flush(sock);
        if (r < 0)
            reason = strerror(-r);
    }
    if (reason)
        lose(sock, reason);
}

/* ---- connecting ---- */

static int connect_next(struct redis_socket *sock);

static void on_connected(struct link *link)
{
    struct redis_socket *sock = link->socket;
    int error = 0;
    socklen_t size = sizeof(error);

    if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        error = errno;
    if (error != 0) {
        int r;

        close_link(sock);
        r = connect_next(sock);
        if (r < 0)
            lose(sock, strerror(r == -ENOENT ? error : -r));
        return;
    }
    link->is_open = true;
    forget_addresses(sock);
    if (flush(sock) == 0)
        sock->callbacks.on_open(sock->context);
    else
        lose(sock, "cannot write to Redis");
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct link *link = poll->data;

    if (status < 0) { /* libuv has stopped; reading tells what it is */
        link->watched = 0;
        watch(link, UV_READABLE);
        events = UV_READABLE;
    }
    if (link->is_open)
        on_open_events(link, events);
    else
        on_connected(link);
}

/* libuv forgets what it has seen already when a watcher is started again, and asks the kernel. */
static void watch(struct link *link, int events)
{
    if (link->watched == events)
        return;
    link->watched = events;
    if (events != 0)
        uv_poll_start(&link->poll, events, on_poll); /* can fail for bad events only */
    else
        uv_poll_stop(&link->poll);
}

static void on_rested(uv_timer_t *timer)
{
    struct link *link = timer->data;

    watch_link(link, link->watched);
}

void redis_socket_rest(struct redis_socket *sock, uint32_t ms)
{
    struct link *link = sock->link;

    uv_timer_start(&link->rest, on_rested, ms, 0);
    watch_link(link, link->watched & UV_WRITABLE);
}

/* Takes over `fd`, on which connect() was called. */
static int link_take(struct redis_socket *sock, int fd)
{
    struct link *link = mem_zalloc(sizeof(*link));
    int r = link ? uv_poll_init(sock->loop, &link->poll, fd) : -ENOMEM;

    if (r < 0) {
        mem_free(link);
        close(fd);
        return r;
    }
    uv_prepare_init(sock->loop, &link->sender);
    uv_timer_init(sock->loop, &link->rest);
    link->poll.data = link->sender.data = link->rest.data = link;
    link->open_handles = 3;
    link->fd = fd;
    link->socket = sock;
    sock->link = link;
    watch(link, UV_READABLE | UV_WRITABLE);
    return 0;
}

static int connect_to(struct redis_socket *sock, const struct sockaddr *address, socklen_t size)
{
    static const int on = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int r = 0;

    if (fd < 0)
        return -errno;
    if (address->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, address, size) < 0 && errno != EINPROGRESS)
        r = -errno;
    if (r < 0) {
        close(fd);
        return r;
    }
    return link_take(sock, fd);
}

static const struct addrinfo *nth(const struct addrinfo *address, unsigned n)
{
    while (n-- > 0)
        address = address->ai_next;
    return address;
}

/* 0: a connection to the next address is under way; -ENOENT: there is none left; else why the last
 * one failed at once. */
static int connect_next(struct redis_socket *sock)
{
    int r = -ENOENT;

    while (r < 0 && sock->untried > 0) {
        const struct addrinfo *address;

        sock->untried--;
        sock->current = (sock->current + 1) % sock->address_count;
        address = nth(sock->addresses, sock->current);
        r = connect_to(sock, address->ai_addr, address->ai_addrlen);
    }
    return r;
}

/* Begins with the one that was connected last, or that is next after one that said nothing. */
static int connect_first(struct redis_socket *sock, struct addrinfo *addresses)
{
    sock->addresses = addresses;
    sock->address_count = 0;
    for (const struct addrinfo *address = addresses; address; address = address->ai_next)
        sock->address_count++;
    sock->untried = sock->address_count;
    sock->current = (sock->current % sock->address_count) + sock->address_count - 1;
    return connect_next(sock);
}

static void on_found(void *owner, struct addrinfo *addresses, const char *why)
{
    struct redis_socket *sock = owner;
    int r = 0;

    sock->lookup = NULL;
    if (!sock->awaits_lookup) {
        if (addresses)
            freeaddrinfo(addresses);
        return;
    }
    sock->awaits_lookup = false;
    if (addresses)
        r = connect_first(sock, addresses);
    if (!addresses || r < 0)
        lose(sock, addresses ? uv_strerror(r) : why);
}

/* An address in digits needs no look-up. NULL: it is a name, or there is no memory. */
static struct addrinfo *read_address(const struct sl_redis_endpoint *endpoint)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
    };
    struct addrinfo *address = NULL;
    char port[sizeof("65535")];

    snprintf(port, sizeof(port), "%u", (unsigned)endpoint->port);
    return getaddrinfo(endpoint->host, port, &hints, &address) == 0 ? address : NULL;
}

static int connect_by_name(struct redis_socket *sock)
{
    const struct sl_redis_endpoint *endpoint = &sock->address.endpoint;
    struct addrinfo *address = read_address(endpoint);
    int r = 0;

    if (address) {
        r = connect_first(sock, address);
        if (r < 0)
            forget_addresses(sock);
        return r;
    }
    if (!sock->lookup) /* of an opening before this one */
        r = name_lookup_start(sock->loop, endpoint->host, endpoint->port, on_found, sock,
                              &sock->lookup);
    sock->awaits_lookup = r == 0;
    return r;
}

int redis_socket_open(struct redis_socket *sock)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (sock->address.path[0] == '\0')
        return connect_by_name(sock);
    memcpy(address.sun_path, sock->address.path, sizeof(address.sun_path));
    return connect_to(sock, (const struct sockaddr *)&address, sizeof(address));
}
