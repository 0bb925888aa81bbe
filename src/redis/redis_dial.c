/* redis_dial.c - tries all addresses of a name in the order of the resolver.
 *
 * They share the available time: each may take an equal part of what is left, the last one all of
 * it. The time of the look-up itself is up to the resolver. */
#include "src/redis/redis_dial.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/call/reply.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_tls.h"

static uint64_t part_of_time_ms(uint64_t deadline_ms, unsigned parts)
{
    uint64_t now_ms = clock_monotonic_ms();

    return now_ms + (deadline_ms > now_ms ? (deadline_ms - now_ms) / parts : 0);
}

/* The common parameters of all attempts. */
struct dialing {
    const struct sl_redis_address *address;
    const struct sl_redis_endpoint *endpoint;
    uint32_t connect_ms, answer_ms;
};

static int connect_to(const struct dialing *dialing, const struct addrinfo *to,
                      uint64_t deadline_ms, struct sl_redis_connection **ret_connection,
                      struct failure *reterr)
{
    struct sl_redis_tls *tls = NULL;
    int r = 0;

    if (dialing->address->is_tls)
        r = sl_redis_tls_new(dialing->address, dialing->endpoint->host, &tls, reterr);
    if (r < 0)
        return r;
    return sl_redis_connection_open_take(to->ai_addr, to->ai_addrlen, tls, deadline_ms,
                                         dialing->answer_ms, ret_connection, reterr);
}

static int connect_to_first(const struct dialing *dialing, const struct addrinfo *addresses,
                            struct sl_redis_connection **ret_connection, struct failure *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + dialing->connect_ms;
    unsigned untried = 0;
    int r = -ECONNREFUSED;

    for (const struct addrinfo *to = addresses; to; to = to->ai_next)
        untried++;
    for (const struct addrinfo *to = addresses; to; to = to->ai_next) {
        r = connect_to(dialing, to, part_of_time_ms(deadline_ms, untried--), ret_connection,
                       reterr);
        if (r != -ECONNREFUSED)
            break;
    }
    return r;
}

static int connect_by_name(const struct dialing *dialing,
                           struct sl_redis_connection **ret_connection, struct failure *reterr)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV,
    };
    struct addrinfo *addresses = NULL;
    char port[sizeof("65535")];
    int r;

    snprintf(port, sizeof(port), "%u", (unsigned)dialing->endpoint->port);
    r = getaddrinfo(dialing->endpoint->host, port, &hints, &addresses);
    if (r != 0)
        return failure_set(reterr, -ECONNREFUSED, "%s", gai_strerror(r));
    r = connect_to_first(dialing, addresses, ret_connection, reterr);
    freeaddrinfo(addresses);
    return r;
}

static int connect_to_path(const struct dialing *dialing,
                           struct sl_redis_connection **ret_connection, struct failure *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, dialing->address->path, sizeof(address.sun_path));
    return sl_redis_connection_open_take((const struct sockaddr *)&address, sizeof(address), NULL,
                                         clock_monotonic_ms() + dialing->connect_ms,
                                         dialing->answer_ms, ret_connection, reterr);
}

/* Maps the error of an established connection that broke during the handshake. */
static int broken(int r)
{
    return r == -EACCES || r == -EPROTO || r == -ENOMEM ? r : -ECONNREFUSED;
}

/* With TLS 1.3, Redis checks the client certificate after our side of the handshake is complete.
 * Only its first reply shows that the certificate was accepted. */
static int await_word(struct sl_redis_connection *connection, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_redis_connection_append(connection, 1, (const char *[]){"PING"}, NULL, reterr);
    if (r == 0)
        r = sl_redis_connection_read(connection, &reply, reterr);
    freeReplyObject(reply);
    return r < 0 ? broken(r) : 0;
}

int sl_redis_dial(const struct sl_redis_address *address, const struct sl_redis_endpoint *endpoint,
                  uint32_t connect_ms, uint32_t answer_ms,
                  struct sl_redis_connection **ret_connection, struct failure *reterr)
{
    const struct dialing dialing = {address, endpoint, connect_ms, answer_ms};

    struct sl_redis_connection *connection = NULL;
    int r;

    r = address->path[0] ? connect_to_path(&dialing, &connection, reterr)
                         : connect_by_name(&dialing, &connection, reterr);
    if (r == 0 && address->is_tls)
        r = await_word(connection, reterr);
    if (r < 0)
        sl_redis_connection_close(connection);
    else
        *ret_connection = connection;
    return r;
}

int sl_redis_ask(struct sl_redis_connection *connection, int argc, const char *const *argv,
                 const size_t *argvlen, struct redisReply **ret_reply, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_redis_connection_append(connection, argc, argv, argvlen, reterr);
    if (r == 0)
        r = sl_redis_connection_read(connection, &reply, reterr);
    if (r < 0)
        return broken(r);
    r = sl_reply_check(reply, reterr);
    if (r < 0)
        freeReplyObject(reply);
    else
        *ret_reply = reply;
    return r;
}

int sl_redis_greet(struct sl_redis_connection *connection, int argc, const char *const *argv,
                   struct failure *reterr)
{
    redisReply *reply = NULL;
    int r = sl_redis_ask(connection, argc, argv, NULL, &reply, reterr);

    freeReplyObject(reply);
    return r;
}

int sl_redis_log_in(struct sl_redis_connection *connection, const struct sl_redis_login *login,
                    struct failure *reterr)
{
    if (login->user[0])
        return sl_redis_greet(connection, 3, (const char *[]){"AUTH", login->user, login->password},
                              reterr);
    if (login->password[0])
        return sl_redis_greet(connection, 2, (const char *[]){"AUTH", login->password}, reterr);
    return 0;
}
