/* stream_rules.c - the hash of a subject's rules: read by plain commands, changed by a script.
 *
 * All calls are repeatable: a change contains a random number, and is not applied twice. Numbers
 * too large for an id are ignored, whoever has written them. */
#include "src/database/stream_rules.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"

/* The name is a hash, so any part of it is uniformly distributed. */
static uint32_t shard_of(const char *name, uint32_t shards)
{
    uint32_t number = 0;

    for (size_t i = 0; i < 8 && name[i]; i++)
        number = number * 31 + (unsigned char)name[i];
    return number % shards;
}

static void begin(struct sl_call *call, const char *command, uint32_t shards, const char *name)
{
    uint32_t shard = shard_of(name, shards);
    char own[SL_KEY_SIZE], key[SL_KEY_SIZE];

    snprintf(own, sizeof(own), "rules:%s", name);
    sl_call_begin(call, shard, true);
    sl_call_add_str(call, command);
    sl_call_add_str(call, sl_key(shard, own, key));
}

int sl_rules_get_call(struct sl_call *call, uint32_t shards, const char *name,
                      struct failure *reterr)
{
    begin(call, "HGETALL", shards, name);
    return sl_call_finish(call, reterr);
}

static bool read_id(struct sl_slice text, uint64_t *ret_id)
{
    uint64_t id = 0;

    if (!text.data || text.size == 0 || text.size > 16)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        id = id * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret_id = id;
    return id <= SL_ID_MAX;
}

int sl_rules_get_reply(const struct redisReply *reply, uint64_t *ret_version, size_t *ret_count,
                       struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r < 0)
        return r;
    *ret_version = 0;
    *ret_count = reply->elements / 2;
    for (size_t i = 0; i < *ret_count; i++) {
        if (sl_slice_is(sl_reply_at(reply, 2 * i), "version") &&
            !read_id(sl_reply_at(reply, 2 * i + 1), ret_version))
            return sl_reply_unexpected(reterr);
    }
    return 0;
}

bool sl_rules_at(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                 struct sl_slice *ret_text)
{
    *ret_text = sl_reply_at(reply, 2 * i + 1);
    return read_id(sl_reply_at(reply, 2 * i), ret_id) && ret_text->data;
}

int sl_rules_version_call(struct sl_call *call, uint32_t shards, const char *name,
                          struct failure *reterr)
{
    begin(call, "HGET", shards, name);
    sl_call_add_str(call, "version");
    return sl_call_finish(call, reterr);
}

int sl_rules_version_reply(const struct redisReply *reply, uint64_t *ret_version,
                           struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    *ret_version = 0;
    if (r < 0 || reply->type == REDIS_REPLY_NIL)
        return r;
    if (reply->type != REDIS_REPLY_STRING ||
        !read_id(sl_slice(reply->str, reply->len), ret_version))
        return sl_reply_unexpected(reterr);
    return 0;
}

int sl_rules_change_call(struct sl_call *call, uint32_t shards, const char *name,
                         const struct sl_rules_change *change, struct failure *reterr)
{
    assert(change->added_count <= SL_RULES_ADDED_MAX);
    sl_call_begin_repeatable(call, &sl_script_change_rules, shard_of(name, shards), shards);
    call->is_write = true;
    sl_call_add_str(call, name);
    sl_call_add_id(call, change->version);
    sl_call_add_id(call, change->by);
    sl_call_add_id(call, change->removed_count);
    for (size_t i = 0; i < change->removed_count; i++)
        sl_call_add_id(call, change->removed[i]);
    for (size_t i = 0; i < change->added_count; i++)
        sl_call_add(call, change->added[i]);
    return sl_call_finish(call, reterr);
}

int sl_rules_change_reply(const struct redisReply *reply, uint64_t *ret_version,
                          struct failure *reterr)
{
    bool is_done;
    int r = sl_reply_check_array(reply, 2, reterr);

    if (r < 0)
        return r;
    is_done = sl_slice_is(sl_reply_at(reply, 0), "1");
    if (!read_id(sl_reply_at(reply, 1), ret_version))
        return sl_reply_unexpected(reterr);
    return is_done ? 0 : failure_set(reterr, -ESTALE, "the rules have been changed meanwhile");
}
