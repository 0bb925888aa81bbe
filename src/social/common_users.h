/* src/social/common_users.h - who follows both of two users, and whom do both follow?
 *
 * The first user's list is gone through newest first, and those stay who are on the second's, too.
 * One page costs one round trip where both live in one shard, else two, however long the lists are:
 *
 *     sl_common_users_call()              a stretch of 2,000 of the first's list
 *     sl_common_users_reply()
 *     if needs_check:                     the second lives elsewhere
 *         sl_common_users_check_call()    which of them are on its list?
 *         sl_common_users_check_reply()
 *
 * A stretch may hold few that are common, or none: `next` tells where to go on; who stops earlier
 * goes on before the position of the last that was taken. The shorter list goes first, if it is
 * known which that is. */
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
    SL_COMMON_FOLLOWERS, /* who follows both */
    SL_COMMON_FOLLOWING, /* whom both follow */
};

struct sl_common_user {
    uint64_t position; /* in the first's list */
    uint64_t id;
};

struct sl_common_page {
    bool needs_check; /* these are on the first's list; the second's shard knows which are common */
    size_t count;     /* without needs_check, not more than the limit */
    uint64_t next;    /* `before` of the next page; 0: this was the last */
};

/* `first` and `second` are ids. 0; -EINVAL: no such users or page can be; -ENOMEM. */
SL_EXPORT int sl_common_users_call(struct sl_call *call, const struct sl_meta *meta,
                                   enum sl_common_list list, uint64_t first, uint64_t second,
                                   const struct sl_page *page, struct failure *reterr);
/* 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_common_users_reply(const struct redisReply *reply, struct sl_common_page *ret_page,
                                    struct failure *reterr);
/* `i` < the page's count. 0; -EBADMSG. */
SL_EXPORT int sl_common_users_at(const struct redisReply *reply, size_t i,
                                 struct sl_common_user *ret_user, struct failure *reterr);

/* Asks about all of `reply`, which sl_common_users_reply() accepted. 0; -EBADMSG; -ENOMEM. */
SL_EXPORT int sl_common_users_check_call(struct sl_call *call, const struct sl_meta *meta,
                                         enum sl_common_list list, uint64_t second,
                                         const struct redisReply *reply, struct failure *reterr);
/* Are there `count` answers? 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_common_users_check_reply(const struct redisReply *reply, size_t count,
                                          struct failure *reterr);
/* Is the `i`th common? 0; -EBADMSG. */
SL_EXPORT int sl_common_users_check_at(const struct redisReply *reply, size_t i,
                                       bool *ret_is_common, struct failure *reterr);
