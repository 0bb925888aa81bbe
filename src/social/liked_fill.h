/* src/social/liked_fill.h - adds likes made before version 0.2 to the lists of what users like
 * (sl_liked_list_call()).
 *
 * For each shard, list its users (sl_shard_users_call()); for each user, the likes of the user's
 * posts (sl_likes_of_call()); and send these to each shard that has some of the likers
 * (sl_note_likes_call()). All of it is idempotent: existing entries of a list stay as they are.
 * Posts that only the archive has are skipped. Each call is bounded: 500 likes of up to 100
 * posts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* Lists some users of the shard. `cursor` is "0" at first. 0; -ENOMEM. */
int sl_shard_users_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        struct sl_slice cursor, struct failure *reterr);
/* *ret_cursor, a slice of the reply, is the cursor for the next call; "0" at the end. 0, or as
 * sl_reply_check(). */
int sl_shard_users_reply(const struct redisReply *reply, struct sl_slice *ret_cursor,
                         size_t *ret_count, struct failure *reterr);
/* User `i`. A user may occur twice. 0; -EBADMSG. */
int sl_shard_users_at(const struct redisReply *reply, size_t i, uint64_t *ret_user,
                      struct failure *reterr);

/* A position among the likes of a user's posts: {0} at the beginning, and again at the end. */
struct sl_likes_place {
    uint64_t post, like;
};

int sl_likes_of_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                     const struct sl_likes_place *place, struct failure *reterr);
/* 0, or as sl_reply_check(). */
int sl_likes_of_reply(const struct redisReply *reply, struct sl_likes_place *ret_place,
                      struct failure *reterr);

/* Builds the call with those likes of the reply to sl_likes_of_call() whose users are in `shard`.
 * *ret_count 0: there are none, send nothing. 0; -EBADMSG; -ENOMEM. */
int sl_note_likes_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                       const struct redisReply *likes, size_t *ret_count, struct failure *reterr);
/* *ret_count is the number of likes added. 0, or as sl_reply_check(). */
int sl_note_likes_reply(const struct redisReply *reply, uint64_t *ret_count,
                        struct failure *reterr);
