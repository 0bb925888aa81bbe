/* redis_socket.c - separates what libuv closes later from what the owner frees now.
 *
 * A connection is a `link`, which outlives the socket until the loop has closed its handles;
 * `socket` is NULL then. A look-up takes as long as the resolver likes (name_lookup.h); one that
 * outlives the opening it was for serves the next one. There is at most one look-up.
 *
 * Everything sent in a turn of the loop is gathered and leaves at once, right before the loop would
 * wait. Over TLS (src/redis/redis_tls.h) it is encrypted then, as far as the kernel takes it; the
 * handshake takes turns of the loop like everything else.
 *
 * A failed connection becomes readable, and the next recv() reports the reason. libuv reports a
 * reset as an error of the watcher, which it has stopped then; that, too, is followed by reading to
 * the end. */
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
#include "base/failure.h"
#include "gateway/redis/name_lookup.h"
#include "src/redis/redis_format.h"
#include "src/redis/redis_tls.h"

/* hiredis parses pieces of this size fastest; see redisReader. */
enum { CHUNK_SIZE = 16 * 1024, TURN_MAX_BYTES = 1024 * 1024 };

/* At this size the gathered data is sent at once; memory beyond it is freed when everything has
 * left. */
enum { UNSENT_KEPT_BYTES = 64 * 1024 };

/* This much is encrypted at once: three TLS records. */
enum { SEAL_MAX_BYTES = 48 * 1024 };

struct link {
    uv_poll_t poll;
    uv_prepare_t sender; /* active while there is something to send: runs before the loop waits */
    uv_timer_t rest;     /* active while it reads nothing */
    int open_handles;    /* of these three handles */
    int fd;
    int watched;                 /* UV_READABLE, UV_WRITABLE; 0 while resting */
    bool is_connected;           /* connect() has succeeded */
    bool is_open;                /* and the TLS handshake is complete, if there is one */
    bool was_heard;              /* something was received */
    struct sl_redis_tls *tls;    /* NULL: none */
    struct failure failure;      /* why TLS has failed */
    struct redis_socket *socket; /* NULL: closed */
};

struct redis_socket {
    uv_loop_t *loop;
    struct sl_redis_address address;
    struct redis_socket_callbacks callbacks;
    void *context;
    struct name_lookup *lookup; /* while the name is looked up */
    bool awaits_lookup;         /* waits for it; false if it has outlived its opening */
    struct addrinfo *addresses; /* found by the look-up, until it is open; only for TCP */
    unsigned address_count;
    unsigned current;  /* index of the address being tried, or used last; the next look-up may find
                          fewer */
    unsigned untried;  /* addresses after it, cyclically */
    struct link *link; /* while connecting or connected */
    struct buffer unsent;
    struct buffer sealed; /* over TLS: encrypted bytes, sent before more of `unsent` is encrypted */
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

    if (--link->open_handles > 0)
        return;
    sl_redis_tls_free(link->tls);
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
        sock->current++; /* no answer within the time limit: use the next address */
    close_link(sock);
    forget_addresses(sock);
    buffer_clear(&sock->unsent);
    buffer_clear(&sock->sealed);
    sock->awaits_lookup = false;
}

void redis_socket_free(struct redis_socket *sock)
{
    if (!sock)
        return;
    redis_socket_close(sock);
    forget_lookup(sock);
    buffer_done(&sock->unsent);
    buffer_done(&sock->sealed);
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

/* It always reads, unless it rests. */
static void watch_link(struct link *link, int events)
{
    watch(link, uv_is_active((uv_handle_t *)&link->rest) ? events : events | UV_READABLE);
}

static void give_back_room(struct buffer *buffer)
{
    size_t limit = buffer->limit;

    if (buffer->size > 0 || buffer->capacity <= UNSENT_KEPT_BYTES)
        return;
    buffer_done(buffer);
    buffer->limit = limit;
}

/* Sends as much as the kernel takes. 0; negative errno. */
static int send_from(int fd, struct buffer *buffer)
{
    struct sl_slice rest = buffer_slice(buffer);
    int r = 0;

    while (rest.size > 0) {
        ssize_t sent = send(fd, rest.data, rest.size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            r = -errno;
        if (sent < 0)
            break;
        rest = sl_slice_from(rest, (size_t)sent);
    }
    buffer_consume(buffer, buffer->size - rest.size);
    return r;
}

/* Encrypts only what the kernel will take soon, because the limit applies to `unsent`. */
static int send_sealed(struct redis_socket *sock)
{
    struct sl_slice rest = buffer_slice(&sock->unsent);
    struct sl_redis_tls *tls = sock->link->tls;
    int r;

    for (;;) {
        size_t part = rest.size < SEAL_MAX_BYTES ? rest.size : SEAL_MAX_BYTES;

        sl_redis_tls_take(tls, &sock->sealed);
        r = sock->sealed.failed ? -ENOMEM : send_from(sock->link->fd, &sock->sealed);
        if (r < 0 || sock->sealed.size > 0 || part == 0)
            break;
        r = sl_redis_tls_seal(tls, sl_slice(rest.data, part), NULL);
        if (r < 0)
            break;
        rest = sl_slice_from(rest, part);
    }
    buffer_consume(&sock->unsent, sock->unsent.size - rest.size);
    give_back_room(&sock->sealed);
    return r;
}

/* 0; negative errno. */
static int flush(struct redis_socket *sock)
{
    struct link *link = sock->link;
    int r = link->tls ? send_sealed(sock) : send_from(link->fd, &sock->unsent);
    bool is_blocked = sock->unsent.size + sock->sealed.size > 0;

    if (r < 0)
        return r;
    watch_link(link, is_blocked ? UV_WRITABLE : 0);
    give_back_room(&sock->unsent);
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

/* Passes on the decrypted bytes. Returns NULL, or why the connection has ended. */
static const char *give_opened(struct link *link)
{
    char chunk[CHUNK_SIZE];
    ssize_t size;

    while ((size = sl_redis_tls_open(link->tls, chunk, sizeof(chunk), &link->failure)) > 0) {
        link->socket->callbacks.on_bytes(link->socket->context, sl_slice(chunk, (size_t)size));
        if (!link->socket)
            return NULL;
    }
    return size < 0 ? link->failure.text : NULL;
}

/* Passes on received bytes; during the handshake to TLS. Returns NULL, or why the connection has
 * ended. */
static const char *give(struct link *link, struct sl_slice bytes)
{
    link->was_heard = true;
    if (!link->tls) {
        link->socket->callbacks.on_bytes(link->socket->context, bytes);
        return NULL;
    }
    if (sl_redis_tls_feed(link->tls, bytes, &link->failure) < 0)
        return link->failure.text;
    return link->is_open ? give_opened(link) : NULL;
}

/* A Redis that expects TLS closes the connection on the first plain command. */
static const char *explain_end(const struct link *link, int error)
{
    bool is_remote = !link->socket->address.path[0];

    if (link->tls && !link->is_open)
        return "Redis closed the connection during the TLS handshake";
    if (is_remote && !link->tls && !link->was_heard)
        return "Redis closed the connection at once: if it uses TLS, the URL must begin with "
               "rediss, not redis";
    return error ? strerror(error) : "Redis closed the connection";
}

/* Returns NULL, or why the connection has ended. */
static const char *read_turn(struct link *link)
{
    char chunk[CHUNK_SIZE];
    size_t total = 0;

    while (total < TURN_MAX_BYTES) {
        ssize_t got = recv(link->fd, chunk, sizeof(chunk), 0);
        const char *reason;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return NULL;
        if (got <= 0)
            return explain_end(link, got < 0 ? errno : 0);
        reason = give(link, sl_slice(chunk, (size_t)got));
        if (reason || !link->socket || (size_t)got < sizeof(chunk))
            return reason;
        total += (size_t)got;
    }
    return NULL; /* the loop continues with the rest */
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
    if (!reason && ((events & UV_WRITABLE) || link->tls)) { /* TLS may have to answer */
        r = flush(sock);
        if (r < 0)
            reason = strerror(-r);
    }
    if (reason)
        lose(sock, reason);
}

/* ---- connecting ---- */

static int connect_next(struct redis_socket *sock);

static void open_link(struct link *link)
{
    struct redis_socket *sock = link->socket;

    link->is_open = true;
    forget_addresses(sock);
    if (flush(sock) == 0)
        sock->callbacks.on_open(sock->context);
    else
        lose(sock, "cannot write to Redis");
}

/* Decrypts bytes that arrived together with the end of the handshake. */
static void open_tls(struct link *link)
{
    struct redis_socket *sock = link->socket;
    const char *reason;

    open_link(link);
    if (!link->socket)
        return;
    reason = give_opened(link);
    if (reason && link->socket)
        lose(sock, reason);
}

static void shake_hands(struct link *link)
{
    struct redis_socket *sock = link->socket;
    int r = sl_redis_tls_shake_hands(link->tls, &link->failure);
    int sent = flush(sock); /* also after a failure, because the alert must be sent */

    if (r < 0)
        lose(sock, link->failure.text);
    else if (sent < 0)
        lose(sock, strerror(-sent));
    else if (r == 1)
        open_tls(link);
}

static void start_tls(struct link *link)
{
    struct redis_socket *sock = link->socket;

    if (sl_redis_tls_new(&sock->address, sock->address.endpoint.host, &link->tls, &link->failure) <
        0)
        lose(sock, link->failure.text);
    else
        shake_hands(link);
}

static void on_handshake_events(struct link *link, int events)
{
    const char *reason = events & UV_READABLE ? read_turn(link) : NULL;

    if (reason)
        lose(link->socket, reason);
    else
        shake_hands(link);
}

const char *redis_socket_why_not_open(struct redis_socket *sock)
{
    struct link *link = sock->link;

    if (!link || !link->tls)
        return "cannot connect in time";
    sl_redis_tls_time_out(link->tls, &link->failure);
    return link->failure.text;
}

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
    link->is_connected = true;
    if (sock->address.is_tls)
        start_tls(link);
    else
        open_link(link);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct link *link = poll->data;

    if (status < 0) { /* libuv has stopped the watcher; reading reports the error */
        link->watched = 0;
        watch(link, UV_READABLE);
        events = UV_READABLE;
    }
    if (link->is_open)
        on_open_events(link, events);
    else if (link->is_connected)
        on_handshake_events(link, events);
    else
        on_connected(link);
}

/* When a watcher is started again, libuv forgets pending events and asks the kernel. */
static void watch(struct link *link, int events)
{
    if (link->watched == events)
        return;
    link->watched = events;
    if (events != 0)
        uv_poll_start(&link->poll, events, on_poll); /* fails only for invalid events */
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

/* Takes ownership of `fd`, on which connect() was called. */
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

/* 0: connecting to the next address; -ENOENT: none is left; else why the last one failed at
 * once. */
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

/* Begins with the address that was connected last, or with the one after an address that did not
 * answer. */
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

/* A numeric address needs no look-up. NULL: it is a name, or out of memory. */
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
    if (!sock->lookup) /* a look-up of an earlier opening */
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
