/* src/home/home_sets.h - the sets of users that decide whose posts belong on a user's home stream.
 *
 * A gateway reads them once for each user with a home stream, and updates them by events. */
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
    SL_HOME_FOLLOWED,  /* whom the user follows */
    SL_HOME_HIDDEN_BY, /* who hides from the user */
    SL_HOME_MUTED,     /* whom the user has muted */
    SL_HOME_SETS,
};

/* The ids of all sets, concatenated: those of `set` are from begin[set] to begin[set + 1]. */
struct sl_home_sets {
    size_t begin[SL_HOME_SETS + 1];
};

/* Reads all sets at the same moment. 0; -EINVAL: not an id of this database; -ENOMEM. */
SL_EXPORT int sl_home_sets_call(struct sl_call *call, const struct sl_meta *meta, uint64_t user,
                                struct failure *reterr);
/* 0, or as sl_reply_check(). */
SL_EXPORT int sl_home_sets_reply(const struct redisReply *reply, struct sl_home_sets *ret_sets,
                                 struct failure *reterr);
/* An id as decimal text, a slice of the reply. Requires `i` < begin[SL_HOME_SETS]. */
SL_EXPORT struct sl_slice sl_home_sets_at(const struct redisReply *reply,
                                          const struct sl_home_sets *sets, size_t i);
