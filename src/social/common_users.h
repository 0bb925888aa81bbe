/* src/social/common_users.h - the users who follow both of two users, and those whom both follow.
 *
 * The first user's list is read newest first, and the users who are also on the second's list are
 * returned. A page takes one round trip if both users are in one shard, else two, however long the
 * lists are:
 *
 *     sl_common_users_call()              reads up to 2,000 entries of the first user's list
 *     sl_common_users_reply()
 *     if needs_check:                     the second user is in another shard
 *         sl_common_users_check_call()    asks which of the users are on the second list
 *         sl_common_users_check_reply()
 *
 * A page may contain few common users, or none: `next` says where to continue. If you stop earlier,
 * continue before the position of the last user that you took. Pass the user with the shorter list
 * first, if you know it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/call/call.h"
#include "src/call/read.h"
#include "src/model/database.h"

struct redisReply;

enum sl_common_list {
    SL_COMMON_FOLLOWERS, /* users who follow both */
    SL_COMMON_FOLLOWING, /* users whom both follow */
};

struct sl_common_user {
    uint64_t position; /* in the first user's list */
    uint64_t id;
};

struct sl_common_page {
    bool needs_check; /* these are on the first list; ask the second user's shard which are
                         common */
    size_t count;     /* without needs_check, at most the limit */
    uint64_t next;    /* `before` of the next page; 0: this was the last one */
};

/* `first` and `second` are ids. 0; -EINVAL: invalid users or page; -ENOMEM. */
SL_EXPORT int sl_common_users_call(struct sl_call *call, const struct sl_meta *meta,
                                   enum sl_common_list list, uint64_t first, uint64_t second,
                                   const struct sl_page *page, struct failure *reterr);
/* 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_common_users_reply(const struct redisReply *reply, struct sl_common_page *ret_page,
                                    struct failure *reterr);
/* Requires `i` < the page's count. 0; -EBADMSG. */
SL_EXPORT int sl_common_users_at(const struct redisReply *reply, size_t i,
                                 struct sl_common_user *ret_user, struct failure *reterr);

/* Asks about all users of `reply`, which sl_common_users_reply() accepted. 0; -EBADMSG; -ENOMEM. */
SL_EXPORT int sl_common_users_check_call(struct sl_call *call, const struct sl_meta *meta,
                                         enum sl_common_list list, uint64_t second,
                                         const struct redisReply *reply, struct failure *reterr);
/* Checks that there are `count` answers. 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_common_users_check_reply(const struct redisReply *reply, size_t count,
                                          struct failure *reterr);
/* Reads whether user `i` is common. 0; -EBADMSG. */
SL_EXPORT int sl_common_users_check_at(const struct redisReply *reply, size_t i,
                                       bool *ret_is_common, struct failure *reterr);
