/* src/social/user_list.h - reads a page of users, such as followers, followed users, or likers of a
 * post.
 *
 * The builders are in follows.h and likes.h; all their replies are read in the same way. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/call/read.h"
#include "src/social/users.h"

struct redisReply;

struct sl_listed_user {
    uint64_t position; /* the id of the follow or like, which contains its time */
    struct sl_user_row row;
};

/* *ret_count rows, which sl_user_list_at() returns; fewer than the limit only at the end of the
 * list. 0; -ENOENT: no such user, or post; else as sl_reply_check(). */
SL_EXPORT int sl_user_list_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* Reads row `i`. For a user of another shard only the id is set and `name` is absent; read the rest
 * with sl_users_calls(). The slices are those of the reply. 0; -EBADMSG. */
SL_EXPORT int sl_user_list_at(const struct redisReply *reply, size_t i,
                              struct sl_listed_user *ret_listed, struct failure *reterr);
