/* src/home/home_sets.h - what decides whose posts belong on a user's home stream.
 *
 * Read by a gateway once for each user who is on a home stream, and kept current by events. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

enum sl_home_set {
    SL_HOME_FOLLOWED,  /* by the user */
    SL_HOME_HIDDEN_BY, /* these hide from the user */
    SL_HOME_MUTED,     /* by the user */
    SL_HOME_SETS,
};

/* The ids of all sets behind each other: those of `set` from begin[set] to begin[set + 1]. */
struct sl_home_sets {
    size_t begin[SL_HOME_SETS + 1];
};

/* All sets as they are at one moment. 0; -EINVAL: no id of this database; -ENOMEM. */
SL_EXPORT int sl_home_sets_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                                struct failure *reterr);
/* 0, or as sl_reply_check(). */
SL_EXPORT int sl_home_sets_reply(const struct redisReply *reply, struct sl_home_sets *ret_sets,
                                 struct failure *reterr);
/* `i` < begin[SL_HOME_SETS]. An id as decimal text; the slice is the reply's. */
SL_EXPORT struct sl_slice sl_home_sets_at(const struct redisReply *reply,
                                          const struct sl_home_sets *sets, size_t i);
