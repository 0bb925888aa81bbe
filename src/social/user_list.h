/* src/social/user_list.h - a page of users: who follows somebody, whom somebody follows, who likes
 * a post.
 *
 * The builders are in follows.h and likes.h; the replies are all read in this way. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/call/read.h"
#include "src/social/users.h"

struct redisReply;

struct sl_listed_user {
    uint64_t position; /* the id of the follow or like, which is a time */
    struct sl_user_row row;
};

/* *ret_count rows, each then read with sl_user_list_at(): up to the limit as long as there are that
 * many. 0; -ENOENT: no such user, or post; else as sl_reply_check(). */
SL_EXPORT int sl_user_list_reply(const struct redisReply *reply, size_t *ret_count,
                                 struct failure *reterr);
/* A user of another shard has the id only, and `name` is absent: sl_users_calls() tells the rest.
 * The slices are the reply's. 0; -EBADMSG. */
SL_EXPORT int sl_user_list_at(const struct redisReply *reply, size_t i,
                              struct sl_listed_user *ret_listed, struct failure *reterr);
