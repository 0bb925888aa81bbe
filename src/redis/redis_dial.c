#include "src/redis/redis_dial.h"

#include <errno.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "src/call/reply.h"

static struct timeval to_timeval(uint32_t ms)
{
    return (struct timeval){ms / 1000, (suseconds_t)(ms % 1000) * 1000};
}

int sl_redis_dial(const char *path, const struct sl_redis_endpoint *endpoint, uint32_t connect_ms,
                  uint32_t answer_ms, struct redisContext **ret_redis, struct failure *reterr)
{
    struct timeval time = to_timeval(connect_ms);
    redisContext *redis = path ? redisConnectUnixWithTimeout(path, time)
                               : redisConnectWithTimeout(endpoint->host, endpoint->port, time);

    if (!redis)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (redis->err || redisSetTimeout(redis, to_timeval(answer_ms)) != REDIS_OK) {
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
