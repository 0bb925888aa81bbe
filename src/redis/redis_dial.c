/* redis_dial.c - every address of a name is tried, in the resolver's order.
 *
 * They share the time there is: each may take its part of what is left, the last one all of it. The
 * look-up itself takes as long as the resolver likes. */
#include "src/redis/redis_dial.h"

#include <assert.h>
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

static uint64_t part_of_time_ms(uint64_t deadline_ms, unsigned parts)
{
    uint64_t now_ms = clock_monotonic_ms();

    return now_ms + (deadline_ms > now_ms ? (deadline_ms - now_ms) / parts : 0);
}

static int connect_to_first(const struct addrinfo *addresses, uint32_t connect_ms,
                            uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                            struct failure *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + connect_ms;
    unsigned untried = 0;
    int r = -ECONNREFUSED;

    for (const struct addrinfo *address = addresses; address; address = address->ai_next)
        untried++;
    for (const struct addrinfo *address = addresses; address; address = address->ai_next) {
        r = sl_redis_connection_open(address->ai_addr, address->ai_addrlen,
                                     part_of_time_ms(deadline_ms, untried--), answer_ms,
                                     ret_connection, reterr);
        if (r != -ECONNREFUSED)
            break;
    }
    return r;
}

static int connect_by_name(const struct sl_redis_endpoint *endpoint, uint32_t connect_ms,
                           uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                           struct failure *reterr)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_NUMERICSERV,
    };
    struct addrinfo *addresses = NULL;
    char port[sizeof("65535")];
    int r;

    snprintf(port, sizeof(port), "%u", (unsigned)endpoint->port);
    r = getaddrinfo(endpoint->host, port, &hints, &addresses);
    if (r != 0)
        return failure_set(reterr, -ECONNREFUSED, "%s", gai_strerror(r));
    r = connect_to_first(addresses, connect_ms, answer_ms, ret_connection, reterr);
    freeaddrinfo(addresses);
    return r;
}

static int connect_to_path(const char *path, uint32_t connect_ms, uint32_t answer_ms,
                           struct sl_redis_connection **ret_connection, struct failure *reterr)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    assert(strlen(path) < sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    return sl_redis_connection_open((const struct sockaddr *)&address, sizeof(address),
                                    clock_monotonic_ms() + connect_ms, answer_ms, ret_connection,
                                    reterr);
}

int sl_redis_dial(const char *path, const struct sl_redis_endpoint *endpoint, uint32_t connect_ms,
                  uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                  struct failure *reterr)
{
    return path ? connect_to_path(path, connect_ms, answer_ms, ret_connection, reterr)
                : connect_by_name(endpoint, connect_ms, answer_ms, ret_connection, reterr);
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
        return -ECONNREFUSED;
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
