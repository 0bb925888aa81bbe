/* src/social/liked_fill.h - puts likes of before version 0.2 onto the lists of what users like
 * (sl_liked_list_call()).
 *
 * For each shard, its users (sl_shard_users_call()); for each of them, the likes of the user's
 * posts (sl_likes_of_call()); of these for each shard that has some, sl_note_likes_call(). All of
 * it may be done again: what is on a list stays as it is. Posts that only the archive has are left
 * out. Each call is bounded: 500 likes of up to 100 posts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* Some users of the shard; `cursor` is "0" at first. 0; -ENOMEM. */
int sl_shard_users_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        struct sl_slice cursor, struct failure *reterr);
/* *ret_cursor, a part of the reply, is where to go on: "0" at the end. 0; as sl_reply_check(). */
int sl_shard_users_reply(const struct redisReply *reply, struct sl_slice *ret_cursor,
                         size_t *ret_count, struct failure *reterr);
/* User `i`, some of whom are there twice. 0; -EBADMSG. */
int sl_shard_users_at(const struct redisReply *reply, size_t i, uint64_t *ret_user,
                      struct failure *reterr);

/* Where to go on among the likes of a user's posts: {0} at first, and at the end. */
struct sl_likes_place {
    uint64_t post, like;
};

int sl_likes_of_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                     const struct sl_likes_place *place, struct failure *reterr);
/* 0; as sl_reply_check(). */
int sl_likes_of_reply(const struct redisReply *reply, struct sl_likes_place *ret_place,
                      struct failure *reterr);

/* Those of the likes in the reply to sl_likes_of_call() whose users live in `shard`; *ret_count 0:
 * there are none, and nothing is to be sent. 0; -EBADMSG; -ENOMEM. */
int sl_note_likes_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                       const struct redisReply *likes, size_t *ret_count, struct failure *reterr);
/* How many were not on the list before. 0; as sl_reply_check(). */
int sl_note_likes_reply(const struct redisReply *reply, uint64_t *ret_count,
                        struct failure *reterr);
