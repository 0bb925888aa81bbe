/* src/call/write.h - what all writes have in common: user references, request ids, the answer.
 *
 * The builders of writes are in users.h, posts.h and follows.h. Each takes the meta of the database
 * and a request id. With a request id, a write whose answer was lost can be sent again, for an hour
 * (setting repeat-for), and is executed once; the second answer equals the first, with
 * `is_repeated` set. A request id is 1 to 128 printable ASCII characters without spaces. It must be
 * new for each request and unique in the shard; if users choose their own, put the user's id in
 * front. SL_SLICE_NONE: no request id. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

struct redisReply;

/* A user, by id or by login. */
struct sl_user_ref {
    uint64_t id;           /* 0: by login */
    struct sl_slice login; /* in any spelling that folds to the user's login */
};

static inline struct sl_user_ref sl_user_by_id(uint64_t id)
{
    return (struct sl_user_ref){id, SL_SLICE_NONE};
}

static inline struct sl_user_ref sl_user_by_login(struct sl_slice login)
{
    return (struct sl_user_ref){0, login};
}

struct sl_written {
    uint64_t
        id; /* of the new user or post, else of the event or change; 0: nothing had to be changed */
    bool is_repeated;
};

/* Parses the answer to a write of one item. 0, or as sl_reply_check(). */
SL_EXPORT int sl_write_reply(const struct redisReply *reply, struct sl_written *ret_written,
                             struct failure *reterr);

/* Parses the answer to a write of `count` items; sl_write_many_at() returns the result of each. 0,
 * or as sl_reply_check(). */
SL_EXPORT int sl_write_many_reply(const struct redisReply *reply, size_t count,
                                  bool *ret_is_repeated, struct failure *reterr);
/* Requires `i` < count. 0: done, *ret_id as in sl_written; else why not, as sl_reply_check(). */
SL_EXPORT int sl_write_many_at(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                               struct failure *reterr);
