/* event_log.c - reads a shard's stream with XRANGE, and checks the entries.
 *
 * An entry has the id `<id>-0` and contains the id of the entry before it and the event's bytes;
 * other fields are ignored, because newer writers may add some. Ids must be ascending and within
 * the requested range. The caller's `count` limits the number of entries. */
#include "src/database/event_log.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"

int sl_event_log_range_call(struct sl_call *call, uint32_t shard, uint64_t after, uint64_t to,
                            size_t count, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    assert(after < to && to <= SL_ID_MAX);
    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "XRANGE");
    sl_call_add_str(call, sl_key(shard, "log", key));
    sl_call_add_id(call, after + 1);
    sl_call_add_id(call, to);
    sl_call_add_str(call, "COUNT");
    sl_call_add_id(call, count);
    return sl_call_finish(call, reterr);
}

/* `<id>-0` */
static int read_entry_id(struct sl_slice text, uint64_t *ret_id)
{
    if (text.size < 3 || memcmp(text.data + text.size - 2, "-0", 2) != 0)
        return -EINVAL;
    return sl_id_parse(sl_slice(text.data, text.size - 2), ret_id);
}

static int read_entry(const redisReply *reply, struct sl_event_log_entry *ret_entry)
{
    struct sl_event_log_entry entry = {.event = SL_SLICE_NONE};
    const redisReply *fields;
    bool has_previous = false;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        read_entry_id(sl_reply_at(reply, 0), &entry.id) < 0)
        return -EBADMSG;
    fields = reply->element[1];
    if (fields->type != REDIS_REPLY_ARRAY)
        return -EBADMSG;
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        struct sl_slice name = sl_reply_at(fields, i);

        if (sl_slice_is(name, "p"))
            has_previous = sl_reply_read_number(fields, i + 1, &entry.previous, NULL) == 0;
        else if (sl_slice_is(name, "e"))
            entry.event = sl_reply_at(fields, i + 1);
    }
    if (!has_previous || !entry.event.data || entry.previous >= entry.id)
        return -EBADMSG;
    *ret_entry = entry;
    return 0;
}

int sl_event_log_range_reply(const struct redisReply *reply, uint32_t shard, uint64_t after,
                             uint64_t to, size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r < 0)
        return r;
    for (size_t i = 0; i < reply->elements; i++) {
        struct sl_event_log_entry entry;

        if (read_entry(reply->element[i], &entry) < 0 || sl_id_shard(entry.id) != shard ||
            entry.id <= after || entry.id > to)
            return sl_reply_unexpected(reterr);
        after = entry.id;
    }
    *ret_count = reply->elements;
    return 0;
}

int sl_event_log_back_call(struct sl_call *call, uint32_t shard, uint64_t to, size_t count,
                           struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    assert(to > 0 && to <= SL_ID_MAX);
    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "XREVRANGE");
    sl_call_add_str(call, sl_key(shard, "log", key));
    sl_call_add_id(call, to);
    sl_call_add_str(call, "-");
    sl_call_add_str(call, "COUNT");
    sl_call_add_id(call, count);
    return sl_call_finish(call, reterr);
}

int sl_event_log_back_reply(const struct redisReply *reply, uint32_t shard, uint64_t to,
                            size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r < 0)
        return r;
    for (size_t i = 0; i < reply->elements; i++) {
        struct sl_event_log_entry entry;

        if (read_entry(reply->element[i], &entry) < 0 || sl_id_shard(entry.id) != shard ||
            entry.id > to)
            return sl_reply_unexpected(reterr);
        to = entry.id - 1;
    }
    *ret_count = reply->elements;
    return 0;
}

struct sl_event_log_entry sl_event_log_entry_at(const struct redisReply *reply, size_t i)
{
    struct sl_event_log_entry entry = {.event = SL_SLICE_NONE};
    int r;

    assert(i < reply->elements);
    r = read_entry(reply->element[i], &entry);
    assert(r == 0);
    (void)r;
    return entry;
}

int sl_event_log_end_call(struct sl_call *call, uint32_t shard, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "XREVRANGE");
    sl_call_add_str(call, sl_key(shard, "log", key));
    sl_call_add_str(call, "+");
    sl_call_add_str(call, "-");
    sl_call_add_str(call, "COUNT");
    sl_call_add_str(call, "1");
    return sl_call_finish(call, reterr);
}

int sl_event_log_end_reply(const struct redisReply *reply, uint32_t shard, uint64_t *ret_id,
                           struct failure *reterr)
{
    size_t count;
    int r = sl_event_log_range_reply(reply, shard, 0, SL_ID_MAX, &count, reterr);

    if (r < 0)
        return r;
    if (count > 1)
        return sl_reply_unexpected(reterr);
    *ret_id = count == 0 ? 0 : sl_event_log_entry_at(reply, 0).id;
    return 0;
}

int sl_event_log_check_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                            struct failure *reterr)
{
    assert(shard < meta->shards);
    sl_call_begin_repeatable(call, &sl_script_log_check, shard, meta->shards);
    return sl_call_finish(call, reterr);
}

int sl_event_log_check_reply(const struct redisReply *reply, struct failure *reterr)
{
    return sl_reply_check(reply, reterr);
}

int sl_event_log_state_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                            struct failure *reterr)
{
    assert(shard < meta->shards);
    sl_call_begin_repeatable(call, &sl_script_log_state, shard, meta->shards);
    return sl_call_finish(call, reterr);
}

int sl_event_log_state_reply(const struct redisReply *reply, struct sl_event_log_state *ret_state,
                             struct failure *reterr)
{
    struct sl_event_log_state state;
    int r = sl_reply_check_array(reply, 3, reterr);

    if (r == 0)
        r = sl_reply_read_number(reply, 0, &state.count, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 1, &state.oldest, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 2, &state.bytes, reterr);
    if (r == 0)
        *ret_state = state;
    return r;
}

int sl_event_log_rate_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                           uint32_t window_ms, uint32_t most, struct failure *reterr)
{
    assert(shard < meta->shards && most >= 1 && most <= 10000);
    sl_call_begin_repeatable(call, &sl_script_log_rate, shard, meta->shards);
    sl_call_add_id(call, window_ms);
    sl_call_add_id(call, most);
    return sl_call_finish(call, reterr);
}

int sl_event_log_rate_reply(const struct redisReply *reply, uint64_t *ret_count, uint64_t *ret_ms,
                            struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 2, reterr);

    if (r == 0)
        r = sl_reply_read_count(reply, 0, ret_count, reterr);
    return r == 0 ? sl_reply_read_count(reply, 1, ret_ms, reterr) : r;
}
