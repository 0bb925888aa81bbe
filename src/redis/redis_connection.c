/* redis_connection.c - a blocking socket with time limits, a buffer out, a parser in.
 *
 * The kernel keeps the time (SO_RCVTIMEO, SO_SNDTIMEO), so that an answer costs two system calls,
 * one to send and one to receive. Commands are gathered and leave when a reply is asked for that
 * has not come yet. The parser is fed pieces of 16 KiB: after each reply it moves what is left of
 * a piece.
 *
 * What bounds it: the callers, who know how much they append; the buffer is given back when it was
 * a large one. */
#include "src/redis/redis_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "src/redis/redis_format.h"

enum { CHUNK_SIZE = 16 * 1024, UNSENT_KEPT_BYTES = 64 * 1024 };

struct sl_redis_connection {
    int fd;
    redisReader *reader;
    struct buffer unsent;
};

static void set_time(int fd, int which, uint64_t ms)
{
    const struct timeval time = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};

    setsockopt(fd, SOL_SOCKET, which, &time, sizeof(time));
}

static uint64_t time_left_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = clock_monotonic_ms();

    return deadline_ms > now_ms ? deadline_ms - now_ms : 1; /* 0 would be for ever */
}

/* ---- opening ---- */

/* One that a signal has interrupted goes on when it is called again, and says then that it has begun
 * already when its time is over. */
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

int sl_redis_connection_open(const struct sockaddr *address, socklen_t size, uint64_t deadline_ms,
                             uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                             struct failure *reterr)
{
    static const int on = 1;
    struct sl_redis_connection *connection = mem_zalloc(sizeof(*connection));
    int r = 0;

    if (!connection)
        return failure_set(reterr, -ENOMEM, "out of memory");
    connection->reader = redisReaderCreate();
    connection->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!connection->reader)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    else if (connection->fd < 0)
        r = failure_set(reterr, -ECONNREFUSED, "%s", strerror(errno));
    else
        r = connect_in_time(connection->fd, address, size, deadline_ms, reterr);
    if (r < 0) {
        sl_redis_connection_close(connection);
        return r;
    }
    if (address->sa_family != AF_UNIX)
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
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
    buffer_done(&connection->unsent);
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

    /* On a unix socket there is nothing to do, and these fail. */
    setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    setsockopt(connection->fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

/* ---- out ---- */

int sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                               const char *const *argv, const size_t *argvlen,
                               struct failure *reterr)
{
    int r = sl_redis_format(&connection->unsent, argc, argv, argvlen);

    return r < 0 ? failure_set(reterr, r, "out of memory") : 0;
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

int sl_redis_connection_flush(struct sl_redis_connection *connection, struct failure *reterr)
{
    struct buffer *unsent = &connection->unsent;
    int r;

    if (unsent->size == 0)
        return 0;
    r = send_all(connection->fd, buffer_slice(unsent), reterr);
    buffer_clear(unsent);
    if (unsent->capacity > UNSENT_KEPT_BYTES)
        buffer_done(unsent);
    return r;
}

/* ---- in ---- */

/* 0: *ret_reply is a reply, or NULL when none is whole yet. */
static int parse(struct sl_redis_connection *connection, struct redisReply **ret_reply,
                 struct failure *reterr)
{
    void *reply = NULL;

    if (redisReaderGetReply(connection->reader, &reply) != REDIS_OK)
        return failure_set(reterr, -EIO, "%s", connection->reader->errstr);
    *ret_reply = reply;
    return 0;
}

/* Feeds the parser. 1: with something; 0: there is nothing (MSG_DONTWAIT in `flags`). */
static int receive(struct sl_redis_connection *connection, int flags, struct failure *reterr)
{
    char chunk[CHUNK_SIZE];
    ssize_t got;

    do
        got = recv(connection->fd, chunk, sizeof(chunk), flags);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return flags & MSG_DONTWAIT ? 0 : failure_set(reterr, -EIO, "Redis did not answer in time");
    if (got < 0)
        return failure_set(reterr, -EIO, "%s", strerror(errno));
    if (got == 0)
        return failure_set(reterr, -EIO, "Redis closed the connection");
    if (redisReaderFeed(connection->reader, chunk, (size_t)got) != REDIS_OK)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 1;
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
