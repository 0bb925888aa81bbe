/* redis_socket.c - what libuv closes later lives apart from what its owner frees now.
 *
 * A connection is a `link` of its own, and so is a name look-up: both outlive the socket until the
 * loop has let go of them, and know by `socket` being NULL that nobody waits any more. */
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

/* hiredis parses pieces of this size fastest; see redisReader. */
enum { CHUNK_SIZE = 16 * 1024, TURN_MAX_BYTES = 1024 * 1024 };

/* Our commands are short; more than this unsent means that nobody reads. */
enum { UNSENT_MAX_BYTES = 1024 * 1024 };

struct lookup {
    uv_getaddrinfo_t request;
    struct redis_socket *socket; /* NULL: forgotten */
};

struct link {
    uv_poll_t poll;
    int fd;
    bool is_open;                /* connect() has succeeded */
    struct redis_socket *socket; /* NULL: closed */
};

struct redis_socket {
    uv_loop_t *loop;
    struct sl_redis_address address;
    struct redis_socket_callbacks callbacks;
    void *context;
    struct lookup *lookup;      /* while the name is looked up */
    struct addrinfo *addresses; /* while connecting by TCP: what the look-up found */
    struct addrinfo *next;      /* of `addresses`: what to try when this one fails */
    struct link *link;          /* while connecting or connected */
    struct buffer unsent;
};

struct redis_socket *redis_socket_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      const struct redis_socket_callbacks *callbacks, void *context)
{
    struct redis_socket *sock = mem_zalloc(sizeof(*sock));

    if (!sock)
        return NULL;
    sock->loop = loop;
    sock->address = *address;
    sock->callbacks = *callbacks;
    sock->context = context;
    sock->unsent.limit = UNSENT_MAX_BYTES;
    return sock;
}

void redis_socket_free(struct redis_socket *sock)
{
    if (!sock)
        return;
    redis_socket_close(sock);
    buffer_done(&sock->unsent);
    mem_free(sock);
}

/* ---- closing ---- */

static void on_link_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

static void close_link(struct redis_socket *sock)
{
    struct link *link = sock->link;

    if (!link)
        return;
    sock->link = NULL;
    link->socket = NULL;
    uv_close((uv_handle_t *)&link->poll, on_link_closed);
    close(link->fd);
}

static void forget_addresses(struct redis_socket *sock)
{
    uv_freeaddrinfo(sock->addresses);
    sock->addresses = NULL;
    sock->next = NULL;
}

void redis_socket_close(struct redis_socket *sock)
{
    close_link(sock);
    forget_addresses(sock);
    buffer_clear(&sock->unsent);
    if (sock->lookup) {
        sock->lookup->socket = NULL;
        uv_cancel((uv_req_t *)&sock->lookup->request);
        sock->lookup = NULL;
    }
}

void redis_socket_set_place(struct redis_socket *sock, const struct sl_redis_place *place)
{
    assert(!sock->link && !sock->lookup && !sock->address.path[0]);
    sock->address.place = *place;
}

static void lose(struct redis_socket *sock, const char *reason)
{
    redis_socket_close(sock);
    sock->callbacks.on_lost(sock->context, reason);
}

/* ---- bytes ---- */

static void watch(struct link *link, int events);

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
    watch(sock->link, unsent->size > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
    return 0;
}

void redis_socket_send(struct redis_socket *sock, struct sl_slice bytes)
{
    buffer_append_slice(&sock->unsent, bytes);
    if (!sock->link || !sock->link->is_open)
        return;
    if (sock->unsent.failed)
        watch(sock->link, UV_READABLE | UV_WRITABLE); /* the next turn ends the connection */
    else
        flush(sock); /* errors are left to the next turn, which finds the socket readable */
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
    if (!reason && sock->unsent.failed)
        reason = "Redis does not read";
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
        watch(link, UV_READABLE);
        events = UV_READABLE;
    }
    if (link->is_open)
        on_open_events(link, events);
    else
        on_connected(link);
}

static void watch(struct link *link, int events)
{
    uv_poll_start(&link->poll, events, on_poll); /* can fail for bad events only */
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
    link->poll.data = link;
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

/* 0: a connection to the next address is under way; -ENOENT: there is none left; else why the last
 * one failed at once. */
static int connect_next(struct redis_socket *sock)
{
    int r = -ENOENT;

    while (sock->next) {
        const struct addrinfo *address = sock->next;

        sock->next = address->ai_next;
        r = connect_to(sock, address->ai_addr, address->ai_addrlen);
        if (r == 0)
            break;
    }
    return r;
}

static void on_lookup(uv_getaddrinfo_t *request, int status, struct addrinfo *addresses)
{
    struct lookup *lookup = request->data;
    struct redis_socket *sock = lookup->socket;
    int r;

    mem_free(lookup);
    if (!sock) {
        uv_freeaddrinfo(addresses);
        return;
    }
    sock->lookup = NULL;
    sock->addresses = addresses;
    sock->next = addresses;
    r = status < 0 ? status : connect_next(sock);
    if (r < 0)
        lose(sock, uv_strerror(r));
}

static int look_up(struct redis_socket *sock)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct lookup *lookup = mem_zalloc(sizeof(*lookup));
    char port[sizeof("65535")];
    int r;

    if (!lookup)
        return -ENOMEM;
    snprintf(port, sizeof(port), "%u", (unsigned)sock->address.place.port);
    r = uv_getaddrinfo(sock->loop, &lookup->request, on_lookup, sock->address.place.host, port,
                       &hints);
    if (r < 0) {
        mem_free(lookup);
        return r;
    }
    lookup->request.data = lookup;
    lookup->socket = sock;
    sock->lookup = lookup;
    return 0;
}

int redis_socket_open(struct redis_socket *sock)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (sock->address.path[0] == '\0')
        return look_up(sock);
    memcpy(address.sun_path, sock->address.path, sizeof(address.sun_path));
    return connect_to(sock, (const struct sockaddr *)&address, sizeof(address));
}
