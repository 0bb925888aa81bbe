/* redis_dial.c - every address of a name is tried, in the resolver's order.
 *
 * hiredis looks for IPv4 addresses, for others only when there are none, and gives up at the first
 * that refuses. So the name is looked up here, and hiredis is given one numeric address after the
 * other. They share the time there is: each may take its part of what is left, the last one all of
 * it. The look-up itself takes as long as the resolver likes. */
#include "src/redis/redis_dial.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/call/reply.h"

/* An IPv6 address with the name of an interface. */
enum { HOST_SIZE = INET6_ADDRSTRLEN + 32 };

static struct timeval to_timeval(uint64_t ms)
{
    return (struct timeval){(time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};
}

/* Takes the connection over, as it is: NULL, failed, or good. */
static int check_take(redisContext *redis, redisContext **ret_redis, struct failure *reterr)
{
    if (!redis)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (redis->err) {
        failure_set(reterr, 0, "%s", redis->errstr);
        redisFree(redis);
        return -ECONNREFUSED;
    }
    *ret_redis = redis;
    return 0;
}

static int connect_to(const struct addrinfo *address, uint16_t port, uint64_t ms,
                      redisContext **ret_redis, struct failure *reterr)
{
    char host[HOST_SIZE];
    int r = getnameinfo(address->ai_addr, address->ai_addrlen, host, sizeof(host), NULL, 0,
                        NI_NUMERICHOST);

    if (r != 0)
        return failure_set(reterr, -ECONNREFUSED, "%s", gai_strerror(r));
    return check_take(redisConnectWithTimeout(host, port, to_timeval(ms)), ret_redis, reterr);
}

static uint64_t time_left_ms(uint64_t deadline_ms)
{
    uint64_t now_ms = clock_monotonic_ms();

    return deadline_ms > now_ms ? deadline_ms - now_ms : 1;
}

static int connect_to_first(const struct addrinfo *addresses, uint16_t port, uint32_t connect_ms,
                            redisContext **ret_redis, struct failure *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + connect_ms;
    unsigned untried = 0;
    int r = -ECONNREFUSED;

    for (const struct addrinfo *address = addresses; address; address = address->ai_next)
        untried++;
    for (const struct addrinfo *address = addresses; address; address = address->ai_next) {
        r = connect_to(address, port, time_left_ms(deadline_ms) / untried--, ret_redis, reterr);
        if (r != -ECONNREFUSED)
            break;
    }
    return r;
}

static int connect_by_name(const struct sl_redis_endpoint *endpoint, uint32_t connect_ms,
                           redisContext **ret_redis, struct failure *reterr)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    int r = getaddrinfo(endpoint->host, NULL, &hints, &addresses);

    if (r != 0)
        return failure_set(reterr, -ECONNREFUSED, "%s", gai_strerror(r));
    r = connect_to_first(addresses, endpoint->port, connect_ms, ret_redis, reterr);
    freeaddrinfo(addresses);
    return r;
}

int sl_redis_dial(const char *path, const struct sl_redis_endpoint *endpoint, uint32_t connect_ms,
                  uint32_t answer_ms, struct redisContext **ret_redis, struct failure *reterr)
{
    redisContext *redis = NULL;
    int r;

    if (path)
        r = check_take(redisConnectUnixWithTimeout(path, to_timeval(connect_ms)), &redis, reterr);
    else
        r = connect_by_name(endpoint, connect_ms, &redis, reterr);
    if (r < 0)
        return r;
    if (redisSetTimeout(redis, to_timeval(answer_ms)) != REDIS_OK) {
        failure_set(reterr, 0, "%s", redis->errstr);
        redisFree(redis);
        return -ECONNREFUSED;
    }
    *ret_redis = redis;
    return 0;
}

int sl_redis_ask(struct redisContext *redis, int argc, const char **argv, const size_t *argvlen,
                 struct redisReply **ret_reply, struct failure *reterr)
{
    redisReply *reply = redisCommandArgv(redis, argc, argv, argvlen);
    int r;

    if (!reply)
        return failure_set(reterr, -ECONNREFUSED, "%s", redis->errstr);
    r = sl_reply_check(reply, reterr);
    if (r < 0)
        freeReplyObject(reply);
    else
        *ret_reply = reply;
    return r;
}

int sl_redis_greet(struct redisContext *redis, int argc, const char **argv, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r = sl_redis_ask(redis, argc, argv, NULL, &reply, reterr);

    freeReplyObject(reply);
    return r;
}

int sl_redis_log_in(struct redisContext *redis, const struct sl_redis_login *login,
                    struct failure *reterr)
{
    if (login->user[0])
        return sl_redis_greet(redis, 3, (const char *[]){"AUTH", login->user, login->password},
                              reterr);
    if (login->password[0])
        return sl_redis_greet(redis, 2, (const char *[]){"AUTH", login->password}, reterr);
    return 0;
}
