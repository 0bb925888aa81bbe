/* src/social/included.h - what is shown along with posts and users.
 *
 * For posts that have just been read: their newest comments and likers, and how the reader is
 * related to posts and users. It takes one round trip for all of them, and one more for what is in
 * other shards than its post:
 *
 *     sl_included_call()          for up to SL_INCLUDED_POSTS_MAX posts of one shard
 *     sl_included_at()            rows, each then read with sl_post_list_at(), sl_user_list_at()
 *     sl_viewer_call()            in the same round: does the reader follow, hide from, mute these?
 *     sl_posts_calls(), sl_users_calls()    for rows that contain only the id
 *
 * Comments are those that the reader may see, by the same rule as in all reads; likers are those of
 * the post's own list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/model/database.h"
#include "src/social/post_rows.h"
#include "src/social/user_list.h"

enum {
    SL_INCLUDED_MAX = 10,       /* comments, or likers, of a post */
    SL_INCLUDED_SPARE = 3,      /* extra comments requested if some are in other shards */
    SL_INCLUDED_POSTS_MAX = 20, /* posts in one call, to limit the time that the script takes */
};

/* The maximum for each post; 0: none. */
struct sl_included_wish {
    size_t comments, likers; /* 0 .. SL_INCLUDED_MAX */
};

/* `posts` must be in one shard. 0; -EINVAL: invalid reader or posts, or too many; -ENOMEM. */
SL_EXPORT int sl_included_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                               const struct sl_included_wish *wish, const uint64_t *posts,
                               size_t count, struct failure *reterr);
/* Checks that there are answers for `count` posts. 0, or as sl_reply_check(). */
SL_EXPORT int sl_included_reply(const struct redisReply *reply, size_t count,
                                struct failure *reterr);

struct sl_included {
    bool is_liked;                              /* by the reader */
    size_t comment_count, liker_count;          /* number of rows */
    const struct redisReply *comments, *likers; /* of the reply; read with sl_post_list_at(),
                                                   sl_user_list_at() */
};

/* Reads the answer for post `i` < count. There may be SL_INCLUDED_SPARE more comments than
 * requested. 0; -EBADMSG. */
SL_EXPORT int sl_included_at(const struct redisReply *reply, size_t i,
                             struct sl_included *ret_included, struct failure *reterr);

/* Asks how `user`, an id, is related to `others`. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_viewer_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                             const uint64_t *others, size_t count, struct failure *reterr);
SL_EXPORT int sl_viewer_reply(const struct redisReply *reply, size_t count, struct failure *reterr);

struct sl_viewer {
    bool follows, hides, mutes;
};

/* Requires `i` < count. 0; -EBADMSG. */
SL_EXPORT int sl_viewer_at(const struct redisReply *reply, size_t i, struct sl_viewer *ret_viewer,
                           struct failure *reterr);
