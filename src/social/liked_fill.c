#include "src/social/liked_fill.h"

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"

/* Elements of a reply: before the likes, and of each like. */
enum { PLACE = 2, LIKE = 3 };

int sl_shard_users_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        struct sl_slice cursor, struct failure *reterr)
{
    sl_call_begin_repeatable(call, &sl_script_list_users, shard, meta->shards);
    sl_call_add(call, cursor);
    return sl_call_finish(call, reterr);
}

int sl_shard_users_reply(const struct redisReply *reply, struct sl_slice *ret_cursor,
                         size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 1, reterr);

    if (r < 0)
        return r;
    *ret_cursor = sl_reply_at(reply, 0);
    *ret_count = reply->elements - 1;
    return ret_cursor->size > 0 ? 0 : sl_reply_unexpected(reterr);
}

int sl_shard_users_at(const struct redisReply *reply, size_t i, uint64_t *ret_user,
                      struct failure *reterr)
{
    return sl_reply_read_id(reply, i + 1, ret_user, reterr);
}

int sl_likes_of_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                     const struct sl_likes_place *place, struct failure *reterr)
{
    sl_call_begin_repeatable(call, &sl_script_list_likes, sl_id_shard(user), meta->shards);
    sl_call_add_id(call, user);
    sl_call_add_id(call, place->post);
    sl_call_add_id(call, place->like);
    return sl_call_finish(call, reterr);
}

int sl_likes_of_reply(const struct redisReply *reply, struct sl_likes_place *ret_place,
                      struct failure *reterr)
{
    struct sl_likes_place place;
    int r = sl_reply_check_array(reply, PLACE, reterr);

    if (r == 0)
        r = sl_reply_read_number(reply, 0, &place.post, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 1, &place.like, reterr);
    if (r < 0)
        return r;
    if ((reply->elements - PLACE) % LIKE != 0)
        return sl_reply_unexpected(reterr);
    *ret_place = place;
    return 0;
}

int sl_note_likes_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                       const struct redisReply *likes, size_t *ret_count, struct failure *reterr)
{
    size_t count = 0;

    sl_call_begin_repeatable(call, &sl_script_note_likes, shard, meta->shards);
    call->is_write = true;
    for (size_t i = PLACE; i < likes->elements; i += LIKE) {
        uint64_t user;
        int r = sl_reply_read_id(likes, i, &user, reterr);

        if (r < 0)
            return r;
        if (sl_id_shard(user) != shard)
            continue;
        for (size_t part = 0; part < LIKE; part++)
            sl_call_add(call, sl_reply_at(likes, i + part));
        count++;
    }
    *ret_count = count;
    return sl_call_finish(call, reterr);
}

int sl_note_likes_reply(const struct redisReply *reply, uint64_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer < 0)
        return sl_reply_unexpected(reterr);
    *ret_count = (uint64_t)reply->integer;
    return 0;
}
