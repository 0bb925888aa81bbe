/* src/social/included.h - what is shown with posts and users: their newest comments and likers, and
 * what the reader has to do with them.
 *
 * For posts that have just been read, in one round trip for all of them, and one more for what
 * lives in other shards than its post:
 *
 *     sl_included_call()          for up to SL_INCLUDED_POSTS_MAX posts of one shard
 *     sl_included_at()            rows, each then read with sl_post_list_at(), sl_user_list_at()
 *     sl_viewer_call()            in the same round: does the reader follow, hide from, mute these?
 *     sl_posts_calls(), sl_users_calls()    those of which a row has the id only
 *
 * Comments are those that the reader may see, by the rule of every read; likers are those of the
 * post's own list. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/model/database.h"
#include "src/social/post_rows.h"
#include "src/social/user_list.h"

enum {
    SL_INCLUDED_MAX = 10,       /* comments, or likers, of one post */
    SL_INCLUDED_SPARE = 3,      /* more comments than asked for, where some live elsewhere */
    SL_INCLUDED_POSTS_MAX = 20, /* posts in one call: the script's time has a bound */
};

/* How many of each post at most; 0: none. */
struct sl_included_wish {
    size_t comments, likers; /* 0 .. SL_INCLUDED_MAX */
};

/* `posts` live in one shard. 0; -EINVAL: there cannot be such a reader, such posts or so many;
 * -ENOMEM. */
SL_EXPORT int sl_included_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                               const struct sl_included_wish *wish, const uint64_t *posts,
                               size_t count, struct failure *reterr);
/* Are there answers for `count` posts? 0, or as sl_reply_check(). */
SL_EXPORT int sl_included_reply(const struct redisReply *reply, size_t count,
                                struct failure *reterr);

struct sl_included {
    bool is_liked;                              /* by the reader */
    size_t comment_count, liker_count;          /* rows */
    const struct redisReply *comments, *likers; /* of the reply */
};

/* Of post `i` < count. The comments may be SL_INCLUDED_SPARE more than were asked for. 0; -EBADMSG.
 */
SL_EXPORT int sl_included_at(const struct redisReply *reply, size_t i,
                             struct sl_included *ret_included, struct failure *reterr);

/* What `user`, an id, has to do with `others`. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_viewer_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                             const uint64_t *others, size_t count, struct failure *reterr);
SL_EXPORT int sl_viewer_reply(const struct redisReply *reply, size_t count, struct failure *reterr);

struct sl_viewer {
    bool follows, hides, mutes;
};

/* `i` < count. 0; -EBADMSG. */
SL_EXPORT int sl_viewer_at(const struct redisReply *reply, size_t i, struct sl_viewer *ret_viewer,
                           struct failure *reterr);
