/* cache_memcached.c - a non-blocking socket, poll(2), and one deadline for the whole call.
 *
 * All requests of a call are sent together and answered in order. The connection is closed by an
 * answer that violates the protocol, is too long, or is about something else, and by data that
 * arrives while it is idle.
 *
 * Limits: the deadline is checked before each receive, even if data is available. A value has at
 * most `max_bytes`, a line of the protocol LINE_MAX_BYTES, and there are no more values than
 * keys. */
#include "src/cache/cache_memcached.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"

enum { LINE_MAX_BYTES = 1024, READ_BYTES = 16384 };

struct sl_memcached {
    const char *host;
    uint16_t port;
    uint32_t timeout_ms;
    size_t max_bytes;
    int fd;               /* -1: not connected */
    uint64_t deadline_ms; /* of the current call */
    struct buffer out;
    struct buffer in; /* received bytes; the first `taken` have been processed */
    size_t taken;
};

static void disconnect(struct sl_memcached *server)
{
    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
    buffer_clear(&server->in);
    server->taken = 0;
}

struct sl_memcached *sl_memcached_new(const char *host, uint16_t port, uint32_t timeout_ms,
                                      size_t max_bytes)
{
    struct sl_memcached *server = mem_zalloc(sizeof(*server));

    if (!server)
        return NULL;
    server->host = host;
    server->port = port;
    server->timeout_ms = timeout_ms;
    server->max_bytes = max_bytes;
    server->fd = -1;
    return server;
}

void sl_memcached_free(struct sl_memcached *server)
{
    if (!server)
        return;
    disconnect(server);
    buffer_done(&server->in);
    buffer_done(&server->out);
    mem_free(server);
}

/* ---- waiting ---- */

static int fail_with(int error, struct failure *reterr)
{
    return failure_set(reterr, -EIO, "%s", strerror(error));
}

static int fail_nonsense(struct failure *reterr)
{
    return failure_set(reterr, -EIO, "what it answers is not memcached's protocol");
}

/* The time until the deadline in ms; -EIO: it has passed. */
static int time_left(const struct sl_memcached *server, struct failure *reterr)
{
    uint64_t now_ms = clock_monotonic_ms();

    if (now_ms >= server->deadline_ms)
        return failure_set(reterr, -EIO, "no answer within %" PRIu32 " ms", server->timeout_ms);
    return (int)(server->deadline_ms - now_ms);
}

static int wait_for(struct sl_memcached *server, short events, struct failure *reterr)
{
    struct pollfd poll_fd = {.fd = server->fd, .events = events};

    for (;;) {
        int left_ms = time_left(server, reterr), ready;

        if (left_ms < 0)
            return left_ms;
        ready = poll(&poll_fd, 1, left_ms);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return fail_with(errno, reterr);
    }
}

/* ---- connecting ---- */

static int try_address(struct sl_memcached *server, const struct sockaddr *address, socklen_t size,
                       struct failure *reterr)
{
    socklen_t error_size = sizeof(int);
    int error = 0, r, on = 1;

    server->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server->fd < 0)
        return fail_with(errno, reterr);
    if (server->port > 0)
        setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(server->fd, address, size) == 0)
        return 0;
    if (errno != EINPROGRESS) {
        r = fail_with(errno, reterr);
    } else {
        r = wait_for(server, POLLOUT, reterr);
        if (r == 0 && getsockopt(server->fd, SOL_SOCKET, SO_ERROR, &error, &error_size) < 0)
            error = errno;
        if (r == 0 && error != 0)
            r = fail_with(error, reterr);
    }
    if (r < 0)
        disconnect(server);
    return r;
}

static int connect_to_socket(struct sl_memcached *server, struct failure *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->host);
    return try_address(server, (const struct sockaddr *)&address, sizeof(address), reterr);
}

static int connect_to_host(struct sl_memcached *server, struct failure *reterr)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    char port[8];
    int r;

    snprintf(port, sizeof(port), "%u", server->port);
    r = getaddrinfo(server->host, port, &hints, &addresses);
    if (r != 0)
        return failure_set(reterr, -EIO, "%s", gai_strerror(r));
    r = -EIO;
    for (const struct addrinfo *at = addresses; r < 0 && at; at = at->ai_next)
        r = try_address(server, at->ai_addr, at->ai_addrlen, reterr);
    freeaddrinfo(addresses);
    return r;
}

/* A kept connection is unusable if something has arrived on it unasked: its end, or a late
 * answer. */
static bool is_usable(const struct sl_memcached *server)
{
    struct pollfd poll_fd = {.fd = server->fd, .events = POLLIN};

    return server->fd >= 0 && server->taken == server->in.size && poll(&poll_fd, 1, 0) == 0;
}

static int begin(struct sl_memcached *server, struct failure *reterr)
{
    buffer_clear(&server->out);
    server->deadline_ms = clock_monotonic_ms() + server->timeout_ms;
    if (is_usable(server))
        return 0;
    disconnect(server);
    return server->port > 0 ? connect_to_host(server, reterr) : connect_to_socket(server, reterr);
}

/* ---- sending and receiving ---- */

static int send_all(struct sl_memcached *server, struct failure *reterr)
{
    struct sl_slice left = buffer_slice(&server->out);

    if (server->out.failed)
        return failure_set(reterr, -ENOMEM, "out of memory");
    while (left.size > 0) {
        ssize_t sent = send(server->fd, left.data, left.size, MSG_NOSIGNAL);
        int r;

        if (sent > 0) {
            left = sl_slice_from(left, (size_t)sent);
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return fail_with(errno, reterr);
        r = wait_for(server, POLLOUT, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

static int receive(struct sl_memcached *server, struct failure *reterr)
{
    char *room = buffer_reserve(&server->in, READ_BYTES);

    if (!room)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (;;) {
        int r = time_left(server, reterr);
        ssize_t count;

        if (r < 0)
            return r;
        count = recv(server->fd, room, READ_BYTES, 0);
        if (count > 0) {
            server->in.size += (size_t)count;
            return 0;
        }
        if (count == 0)
            return failure_set(reterr, -EIO, "it closed the connection");
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return fail_with(errno, reterr);
        r = wait_for(server, POLLIN, reterr);
        if (r < 0)
            return r;
    }
}

/* The next line, without its end; valid until the next one is read. */
static int read_line(struct sl_memcached *server, struct sl_slice *ret_line, struct failure *reterr)
{
    int r = 0;

    assert(server->taken <= server->in.size);
    buffer_consume(&server->in, server->taken);
    server->taken = 0;
    for (;;) {
        const struct sl_slice have = buffer_slice(&server->in);
        const char *end = memchr(have.data, '\n', have.size);

        if (end && end > have.data && end[-1] == '\r') {
            *ret_line = sl_slice(have.data, (size_t)(end - have.data) - 1);
            server->taken = ret_line->size + 2;
            return 0;
        }
        if (end || have.size > LINE_MAX_BYTES)
            return fail_nonsense(reterr);
        r = receive(server, reterr);
        if (r < 0)
            return r;
    }
}

/* What follows the line: `size` bytes and a line end. The bytes of the line may move: *line is
 * updated. */
static int read_bytes(struct sl_memcached *server, size_t size, struct sl_slice *line,
                      struct sl_slice *ret_bytes, struct failure *reterr)
{
    const size_t at = server->taken;

    while (server->in.size < at + size + 2) {
        int r = receive(server, reterr);

        if (r < 0)
            return r;
    }
    if (memcmp(server->in.data + at + size, "\r\n", 2) != 0)
        return fail_nonsense(reterr);
    server->taken = at + size + 2;
    line->data = server->in.data;
    *ret_bytes = sl_slice(server->in.data + at, size);
    return 0;
}

/* ---- requests ---- */

/* Removes the word up to the next space, and the space. */
static struct sl_slice take_word(struct sl_slice *line)
{
    const char *space = memchr(line->data, ' ', line->size);
    struct sl_slice word = sl_slice(line->data, space ? (size_t)(space - line->data) : line->size);

    *line = sl_slice_from(*line, word.size + (space ? 1 : 0));
    return word;
}

static bool read_size(struct sl_slice text, size_t max, size_t *ret_size)
{
    size_t size = 0;

    for (size_t i = 0; i < text.size && size <= max; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        size = 10 * size + (size_t)(text.data[i] - '0');
    }
    *ret_size = size;
    return text.size > 0 && size <= max;
}

/* Reads "VALUE key flags bytes" and the value, or END. `found` NULL: only END is valid. */
static int read_value(struct sl_memcached *server, sl_memcached_found_fn found, void *context,
                      bool *ret_is_end, struct failure *reterr)
{
    struct sl_slice line, rest, key, value;
    size_t size;
    int r;

    r = read_line(server, &line, reterr);
    if (r < 0)
        return r;
    *ret_is_end = sl_slice_is(line, "END");
    if (*ret_is_end)
        return 0;
    rest = line;
    if (!found || !sl_slice_is(take_word(&rest), "VALUE"))
        return fail_nonsense(reterr);
    key = take_word(&rest);
    take_word(&rest); /* flags */
    if (!read_size(take_word(&rest), server->max_bytes, &size))
        return fail_nonsense(reterr);
    r = read_bytes(server, size, &line, &value, reterr);
    if (r < 0)
        return r;
    key.data = line.data + strlen("VALUE ");
    found(context, key, value);
    return 0;
}

/* After any error the connection is closed. */
static int finish(struct sl_memcached *server, int r)
{
    if (r < 0)
        disconnect(server);
    return r;
}

int sl_memcached_get(struct sl_memcached *server, const struct sl_slice *keys, size_t count,
                     sl_memcached_found_fn found, void *context, struct failure *reterr)
{
    bool is_end = false;
    int r = begin(server, reterr);

    buffer_append_str(&server->out, "get");
    for (size_t i = 0; i < count; i++) {
        buffer_append_char(&server->out, ' ');
        buffer_append_slice(&server->out, keys[i]);
    }
    buffer_append_str(&server->out, "\r\n");
    if (r == 0)
        r = send_all(server, reterr);
    for (size_t values = 0; r == 0 && !is_end; values++)
        r = read_value(server, values < count ? found : NULL, context, &is_end, reterr);
    return finish(server, r);
}

static int read_stored(struct sl_memcached *server, size_t *stored, struct failure *reterr)
{
    struct sl_slice line;
    int r = read_line(server, &line, reterr);

    if (r < 0)
        return r;
    if (sl_slice_is(line, "STORED"))
        ++*stored;
    else if (!sl_slice_is(line, "NOT_STORED") &&
             !sl_slice_starts_with(line, SL_SLICE("SERVER_ERROR ")))
        return fail_nonsense(reterr);
    return 0;
}

int sl_memcached_put(struct sl_memcached *server, const struct sl_slice *keys,
                     const struct sl_slice *values, size_t count, uint32_t ttl_s,
                     size_t *ret_stored, struct failure *reterr)
{
    int r = begin(server, reterr);

    *ret_stored = 0;
    for (size_t i = 0; i < count; i++) {
        buffer_append_format(&server->out, "set %.*s 0 %" PRIu32 " %zu\r\n", SL_SLICE_ARG(keys[i]),
                             ttl_s, values[i].size);
        buffer_append_slice(&server->out, values[i]);
        buffer_append_str(&server->out, "\r\n");
    }
    if (r == 0)
        r = send_all(server, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_stored(server, ret_stored, reterr);
    return finish(server, r);
}

static int read_deleted(struct sl_memcached *server, struct failure *reterr)
{
    struct sl_slice line;
    int r = read_line(server, &line, reterr);

    if (r == 0 && !sl_slice_is(line, "DELETED") && !sl_slice_is(line, "NOT_FOUND"))
        r = fail_nonsense(reterr);
    return r;
}

int sl_memcached_drop(struct sl_memcached *server, const struct sl_slice *keys, size_t count,
                      struct failure *reterr)
{
    int r = begin(server, reterr);

    for (size_t i = 0; i < count; i++) {
        buffer_append_str(&server->out, "delete ");
        buffer_append_slice(&server->out, keys[i]);
        buffer_append_str(&server->out, "\r\n");
    }
    if (r == 0)
        r = send_all(server, reterr);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_deleted(server, reterr);
    return finish(server, r);
}
