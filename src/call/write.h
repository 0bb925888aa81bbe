/* src/call/write.h - what all writes have in common: whom they are about, request ids, the answer.
 *
 * The builders of writes are in users.h, posts.h and follows.h. Each takes the meta of the
 * database and a request id: with one, the write can be sent again for an hour (setting repeat-for) after
 * its answer was lost, and is done once; the second answer is that of the first, marked `is_repeated`. A request
 * id is 1 to 128 printable ASCII characters without spaces, new for each request and unique in the
 * shard: begin it with the user's id when users choose theirs. SL_SLICE_NONE: none. */
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
    struct sl_slice login; /* in any spelling that folds to the user's */
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
        id; /* of the new user or post, else of the event or change; 0: nothing was to be changed */
    bool is_repeated;
};

/* Reads the answer to a write of one thing. 0, or as sl_reply_check(). */
SL_EXPORT int sl_write_reply(const struct redisReply *reply, struct sl_written *ret_written,
                             struct failure *reterr);

/* Reads the answer to a write of `count` things: how each ended is then read with
 * sl_write_many_at(). 0, or as sl_reply_check(). */
SL_EXPORT int sl_write_many_reply(const struct redisReply *reply, size_t count,
                                  bool *ret_is_repeated, struct failure *reterr);
/* `i` < count. 0: done, *ret_id as in sl_written; else why not, as sl_reply_check(). */
SL_EXPORT int sl_write_many_at(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                               struct failure *reterr);
