/* redis_connection.c - a blocking socket with time limits, an output buffer, and a parser; with TLS
 * (redis_tls.h) in between if it is used.
 *
 * The kernel measures the time (SO_RCVTIMEO, SO_SNDTIMEO), so that an answer costs two system
 * calls, one to send and one to receive. Commands are buffered and sent when a reply is requested
 * that has not arrived yet. The parser is fed pieces of 16 KiB, because after each reply it moves
 * the rest of a piece.
 *
 * The output buffer is limited only by the callers, who know how much they append; it is freed
 * after use if it was large. */
#include "src/redis/redis_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "src/redis/redis_format.h"
#include "src/redis/redis_tls.h"

enum { CHUNK_SIZE = 16 * 1024, UNSENT_KEPT_BYTES = 64 * 1024 };
enum { SEAL_MAX_BYTES = 48 * 1024 }; /* at once: three TLS records */

struct sl_redis_connection {
    int fd;
    struct sl_redis_tls *tls; /* NULL: none */
    redisReader *reader;
    struct buffer unsent; /* commands */
    struct buffer sealed; /* with TLS: encrypted bytes to be sent */
    bool was_heard;       /* Redis has sent something */
    bool is_remote;       /* over TCP */
};

static void set_time(int fd, int which, uint64_t ms)
{
    const struct timeval time = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};

    setsockopt(fd, SOL_SOCKET, which, &time, sizeof(time));
}

static uint64_t time_left_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = clock_monotonic_ms();

    return deadline_ms > now_ms ? deadline_ms - now_ms : 1; /* 0 would mean no limit */
}

/* ---- opening ---- */

/* A connect that was interrupted by a signal continues; it is called again until it succeeds or
 * fails. When its time is over, it reports that it has already begun. */
static int connect_in_time(int fd, const struct sockaddr *address, socklen_t size,
                           uint64_t deadline_ms, struct failure *reterr)
{
    int r;

    do {
        set_time(fd, SO_SNDTIMEO, time_left_ms(deadline_ms));
        r = connect(fd, address, size);
    } while (r < 0 && errno == EINTR);
    if (r == 0 || errno == EISCONN)
        return 0;
    if (errno == EINPROGRESS || errno == EALREADY || errno == EAGAIN)
        errno = ETIMEDOUT;
    return failure_set(reterr, -ECONNREFUSED, "%s", strerror(errno));
}

static int send_all(int fd, struct sl_slice bytes, struct failure *reterr)
{
    while (bytes.size > 0) {
        ssize_t sent = send(fd, bytes.data, bytes.size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return failure_set(reterr, -EIO, "Redis did not read in time");
        if (sent < 0)
            return failure_set(reterr, -EIO, "%s", strerror(errno));
        bytes = sl_slice_from(bytes, (size_t)sent);
    }
    return 0;
}

/* Sends what TLS has for Redis. */
static int send_sealed(struct sl_redis_connection *connection, struct failure *reterr)
{
    int r;

    sl_redis_tls_take(connection->tls, &connection->sealed);
    if (connection->sealed.failed)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = send_all(connection->fd, buffer_slice(&connection->sealed), reterr);
    buffer_clear(&connection->sealed);
    return r;
}

/* Feeds the parser. */
static int feed_reader(struct sl_redis_connection *connection, const char *bytes, size_t size,
                       struct failure *reterr)
{
    connection->was_heard = true;
    if (redisReaderFeed(connection->reader, bytes, size) != REDIS_OK)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
}

/* Feeds the parser everything that TLS has decrypted. */
static int open_sealed(struct sl_redis_connection *connection, struct failure *reterr)
{
    char chunk[CHUNK_SIZE];
    ssize_t size;
    int r = 0;

    do {
        size = sl_redis_tls_open(connection->tls, chunk, sizeof(chunk), reterr);
        if (size > 0)
            r = feed_reader(connection, chunk, (size_t)size, reterr);
    } while (size > 0 && r == 0);
    return size < 0 ? (int)size : r;
}

/* ---- the handshake ---- */

static int hear_handshake(struct sl_redis_connection *connection, uint64_t deadline_ms,
                          struct failure *reterr)
{
    char chunk[CHUNK_SIZE];
    ssize_t got;

    do {
        set_time(connection->fd, SO_RCVTIMEO, time_left_ms(deadline_ms));
        got = recv(connection->fd, chunk, sizeof(chunk), 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0)
        return sl_redis_tls_feed(connection->tls, sl_slice(chunk, (size_t)got), reterr);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return sl_redis_tls_time_out(connection->tls, reterr);
    return failure_set(reterr, -ECONNREFUSED,
                       "Redis closed the connection during the TLS handshake");
}

static int shake_hands(struct sl_redis_connection *connection, uint64_t deadline_ms,
                       struct failure *reterr)
{
    int r, sent;

    for (;;) {
        r = sl_redis_tls_shake_hands(connection->tls, reterr);
        set_time(connection->fd, SO_SNDTIMEO, time_left_ms(deadline_ms));
        sent = send_sealed(connection, r < 0 ? NULL : reterr);
        if (r == 0 && sent < 0)
            return sent == -ENOMEM ? sent : -ECONNREFUSED;
        if (r == 0)
            r = hear_handshake(connection, deadline_ms, reterr);
        else
            break;
        if (r < 0)
            return r;
    }
    return r < 0 ? r : open_sealed(connection, reterr);
}

static int establish(struct sl_redis_connection *connection, const struct sockaddr *address,
                     socklen_t size, uint64_t deadline_ms, struct failure *reterr)
{
    static const int on = 1;
    int r;

    connection->reader = redisReaderCreate();
    if (!connection->reader)
        return failure_set(reterr, -ENOMEM, "out of memory");
    connection->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0)
        return failure_set(reterr, -ECONNREFUSED, "%s", strerror(errno));
    r = connect_in_time(connection->fd, address, size, deadline_ms, reterr);
    if (r < 0)
        return r;
    connection->is_remote = address->sa_family != AF_UNIX;
    if (connection->is_remote)
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return connection->tls ? shake_hands(connection, deadline_ms, reterr) : 0;
}

int sl_redis_connection_open_take(const struct sockaddr *address, socklen_t size,
                                  struct sl_redis_tls *tls, uint64_t deadline_ms,
                                  uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                                  struct failure *reterr)
{
    struct sl_redis_connection *connection = mem_zalloc(sizeof(*connection));
    int r;

    if (!connection) {
        sl_redis_tls_free(tls);
        return failure_set(reterr, -ENOMEM, "out of memory");
    }
    connection->fd = -1;
    connection->tls = tls;
    r = establish(connection, address, size, deadline_ms, reterr);
    if (r < 0) {
        sl_redis_connection_close(connection);
        return r;
    }
    sl_redis_connection_set_answer_ms(connection, answer_ms);
    *ret_connection = connection;
    return 0;
}

void sl_redis_connection_close(struct sl_redis_connection *connection)
{
    if (!connection)
        return;
    if (connection->fd >= 0)
        close(connection->fd);
    if (connection->reader)
        redisReaderFree(connection->reader);
    sl_redis_tls_free(connection->tls);
    buffer_done(&connection->unsent);
    buffer_done(&connection->sealed);
    mem_free(connection);
}

void sl_redis_connection_set_answer_ms(struct sl_redis_connection *connection, uint32_t answer_ms)
{
    set_time(connection->fd, SO_SNDTIMEO, answer_ms);
    set_time(connection->fd, SO_RCVTIMEO, answer_ms);
}

void sl_redis_connection_keep_alive(struct sl_redis_connection *connection)
{
    static const int on = 1, idle_s = 15, every_s = 5, tries = 3;

    /* On a Unix socket these have no effect and fail. */
    setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

/* ---- receiving ---- */

/* 0: *ret_reply is a reply, or NULL if none is complete yet. */
static int parse(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                 struct failure *reterr)
{
    void *reply = NULL;

    if (redisReaderGetReply(connection->reader, &reply) != REDIS_OK)
        return failure_set(reterr, -EIO, "%s", connection->reader->errstr);
    *ret_reply = reply;
    return 0;
}

/* A Redis that expects TLS closes the connection on the first plain command. */
static int explain_end(const struct sl_redis_connection *connection, int error,
                       struct failure *reterr)
{
    if (connection->is_remote && !connection->tls && !connection->was_heard)
        return failure_set(reterr, -EIO,
                           "Redis closed the connection at once: if it uses TLS, the URL must "
                           "begin with rediss, not redis");
    return failure_set(reterr, -EIO, "%s", error ? strerror(error) : "Redis closed the connection");
}

/* Receives and feeds the parser. 1: something was received, but maybe nothing to parse; 0: nothing
 * was (MSG_DONTWAIT in `flags`). */
static int receive(struct sl_redis_connection *connection, int flags, struct failure *reterr)
{
    char chunk[CHUNK_SIZE];
    ssize_t got;
    int r;

    do
        got = recv(connection->fd, chunk, sizeof(chunk), flags);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return flags & MSG_DONTWAIT ? 0 : failure_set(reterr, -EIO, "Redis did not answer in time");
    if (got <= 0)
        return explain_end(connection, got < 0 ? errno : 0, reterr);
    if (!connection->tls) {
        r = feed_reader(connection, chunk, (size_t)got, reterr);
    } else {
        r = sl_redis_tls_feed(connection->tls, sl_slice(chunk, (size_t)got), reterr);
        if (r == 0)
            r = open_sealed(connection, reterr);
    }
    return r < 0 ? r : 1;
}

/* ---- sending ---- */

int sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                               const char *const *argv, const size_t *argvlen,
                               struct failure *reterr)
{
    int r = sl_redis_format(&connection->unsent, argc, argv, argvlen);

    return r < 0 ? failure_set(reterr, r, "out of memory") : 0;
}

static int seal_and_send(struct sl_redis_connection *connection, struct sl_slice bytes,
                         struct failure *reterr)
{
    int r = 0;

    while (r == 0 && bytes.size > 0) {
        size_t part = bytes.size < SEAL_MAX_BYTES ? bytes.size : SEAL_MAX_BYTES;

        r = sl_redis_tls_seal(connection->tls, sl_slice(bytes.data, part), reterr);
        if (r == 0)
            r = send_sealed(connection, reterr);
        bytes = sl_slice_from(bytes, part);
    }
    return r;
}

/* If the peer closes the connection while we send, it may have sent the reason, which is then
 * reported. `error`: otherwise, why sending failed. */
static int hear_why(struct sl_redis_connection *connection, int error, struct failure *reterr)
{
    struct failure why;
    int r;

    do
        r = receive(connection, MSG_DONTWAIT, &why);
    while (r > 0);
    return r < 0 ? failure_set(reterr, r, "%s", why.text) : error;
}

int sl_redis_connection_flush(struct sl_redis_connection *connection, struct failure *reterr)
{
    struct buffer *unsent = &connection->unsent;
    int r;

    if (unsent->size == 0)
        return 0;
    r = connection->tls ? seal_and_send(connection, buffer_slice(unsent), reterr)
                        : send_all(connection->fd, buffer_slice(unsent), reterr);
    buffer_clear(unsent);
    if (unsent->capacity > UNSENT_KEPT_BYTES)
        buffer_done(unsent);
    return r < 0 ? hear_why(connection, r, reterr) : 0;
}

int sl_redis_connection_read(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                             struct failure *reterr)
{
    struct redisReply *reply = NULL;
    int r = parse(connection, &reply, reterr);

    if (r == 0 && !reply)
        r = sl_redis_connection_flush(connection, reterr);
    while (r >= 0 && !reply) {
        r = receive(connection, 0, reterr);
        if (r >= 0)
            r = parse(connection, &reply, reterr);
    }
    if (r < 0)
        return r;
    *ret_reply = reply;
    return 0;
}

int sl_redis_connection_poll(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                             struct failure *reterr)
{
    struct redisReply *reply = NULL;
    int r = parse(connection, &reply, reterr);

    while (r >= 0 && !reply) {
        r = receive(connection, MSG_DONTWAIT, reterr);
        if (r == 0)
            break;
        if (r > 0)
            r = parse(connection, &reply, reterr);
    }
    if (r < 0)
        return r;
    *ret_reply = reply;
    return 0;
}
