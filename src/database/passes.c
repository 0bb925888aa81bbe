#include "src/database/passes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/keys.h"

/* The name is a hash, so any part of it is uniformly distributed. */
static uint32_t shard_of(const char *name, uint32_t shards)
{
    uint32_t number = 0;

    for (size_t i = 0; i < 8 && name[i]; i++)
        number = number * 31 + (unsigned char)name[i];
    return number % shards;
}

static void begin(struct sl_call *call, const char *command, uint32_t shards,
                  enum sl_pass_kind kind, const char *name, bool is_repeatable)
{
    static const char *const kinds[] = {"ticket", "session"};
    uint32_t shard = shard_of(name, shards);
    char own[SL_KEY_SIZE], key[SL_KEY_SIZE];

    snprintf(own, sizeof(own), "%s:%s", kinds[kind], name);
    sl_call_begin(call, shard, is_repeatable);
    sl_call_add_str(call, command);
    sl_call_add_str(call, sl_key(shard, own, key));
}

int sl_pass_put_call(struct sl_call *call, uint32_t shards, enum sl_pass_kind kind,
                     const char *name, struct sl_slice text, uint64_t ttl_ms,
                     struct failure *reterr)
{
    begin(call, "SET", shards, kind, name, true);
    call->is_write = true;
    sl_call_add(call, text);
    sl_call_add_str(call, "PX");
    sl_call_add_id(call, ttl_ms);
    return sl_call_finish(call, reterr);
}

int sl_pass_put_reply(const struct redisReply *reply, struct failure *reterr)
{
    return sl_reply_check(reply, reterr);
}

int sl_pass_get_call(struct sl_call *call, uint32_t shards, enum sl_pass_kind kind,
                     const char *name, struct failure *reterr)
{
    begin(call, "GET", shards, kind, name, true);
    return sl_call_finish(call, reterr);
}

int sl_pass_take_call(struct sl_call *call, uint32_t shards, enum sl_pass_kind kind,
                      const char *name, struct failure *reterr)
{
    begin(call, "GETDEL", shards, kind, name, false);
    call->is_write = true;
    return sl_call_finish(call, reterr);
}

int sl_pass_reply(const struct redisReply *reply, struct sl_slice *ret_text, struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type == REDIS_REPLY_NIL)
        return failure_set(reterr, -ENOENT, "there is none");
    if (reply->type != REDIS_REPLY_STRING)
        return sl_reply_unexpected(reterr);
    *ret_text = sl_slice(reply->str, reply->len);
    return 0;
}
