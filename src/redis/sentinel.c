/* sentinel.c - builders and parsers of three commands: SENTINEL get-master-addr-by-name, SUBSCRIBE
 * +switch-master, ROLE.
 *
 * Sending and repeating them is up to sentinels.c and the gateway's connections. Answers are not
 * trusted: an invalid port, or a name that is too long, is an error. */
#include "src/redis/sentinel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"

int sl_sentinel_master_call(struct sl_call *call, const char *master_name, struct failure *reterr)
{
    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "SENTINEL");
    sl_call_add_str(call, "GET-MASTER-ADDR-BY-NAME");
    sl_call_add_str(call, master_name);
    return sl_call_finish(call, reterr);
}

int sl_sentinel_master_reply(const struct redisReply *reply, struct sl_redis_endpoint *ret_endpoint,
                             struct failure *reterr)
{
    struct sl_redis_endpoint endpoint = {.port = 0};
    struct sl_slice host;
    uint64_t port;
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type == REDIS_REPLY_NIL)
        return failure_set(reterr, -ENOENT, "the sentinel knows no master of this name");
    r = sl_reply_check_array(reply, 2, reterr);
    if (r == 0)
        r = sl_reply_read_id(reply, 1, &port, reterr);
    if (r < 0)
        return r;
    host = sl_reply_at(reply, 0);
    if (host.size == 0 || host.size >= sizeof(endpoint.host) || port > UINT16_MAX)
        return sl_reply_unexpected(reterr);
    memcpy(endpoint.host, host.data, host.size);
    endpoint.port = (uint16_t)port;
    *ret_endpoint = endpoint;
    return 0;
}

#define CHANNEL "+switch-master"

int sl_sentinel_listen_call(struct sl_call *call, struct failure *reterr)
{
    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "SUBSCRIBE");
    sl_call_add_str(call, CHANNEL);
    return sl_call_finish(call, reterr);
}

/* The message is "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT"; names contain no spaces. */
int sl_sentinel_news_reply(const struct redisReply *reply, const char *master_name,
                           struct sl_sentinel_news *ret_news, struct failure *reterr)
{
    struct sl_sentinel_news news = {0};
    unsigned old_port, new_port;
    char name[64];
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (sl_reply_check_array(reply, 3, NULL) < 0 ||
        !sl_slice_is(sl_reply_at(reply, 0), "message") ||
        !sl_slice_is(sl_reply_at(reply, 1), CHANNEL) ||
        reply->element[2]->type != REDIS_REPLY_STRING)
        return -ENOENT;
    if (sscanf(reply->element[2]->str, "%63s %255s %5u %255s %5u", name, news.old_master.host,
               &old_port, news.new_master.host, &new_port) != 5 ||
        old_port > UINT16_MAX || new_port > UINT16_MAX)
        return sl_reply_unexpected(reterr);
    if (strcmp(name, master_name) != 0)
        return -ENOENT;
    news.old_master.port = (uint16_t)old_port;
    news.new_master.port = (uint16_t)new_port;
    *ret_news = news;
    return 0;
}

int sl_sentinel_role_call(struct sl_call *call, struct failure *reterr)
{
    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "ROLE");
    return sl_call_finish(call, reterr);
}

int sl_sentinel_role_reply(const struct redisReply *reply, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 1, reterr);

    if (r < 0 || sl_slice_is(sl_reply_at(reply, 0), "master"))
        return r;
    if (sl_slice_is(sl_reply_at(reply, 0), "slave"))
        return failure_set(reterr, -EROFS, "this Redis is a replica");
    return sl_reply_unexpected(reterr);
}
