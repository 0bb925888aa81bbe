/* src/database/stream_rules.h - the rules that a subject keeps for its streams: a hash for each.
 *
 * The name is a hash of whose they are (43 bytes), and says which shard has them. What a rule says
 * is its owner's affair: here it is a text. A change is of a version that was read, and is refused
 * when the rules are others by then, so that two who change them lose nothing of each other's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"

struct redisReply;

enum { SL_RULES_ADDED_MAX = 1000 /* by one change */ };

/* 0; -ENOMEM. */
int sl_rules_get_call(struct sl_call *call, uint32_t shards, const char *name,
                      struct failure *reterr);
/* 0: *ret_version of them (0: there never were any), and sl_rules_at() has *ret_count of them, some
 * of which are none; or as sl_reply_check(). */
int sl_rules_get_reply(const struct redisReply *reply, uint64_t *ret_version, size_t *ret_count,
                       struct failure *reterr);
/* false: there is no rule at `i`. In no order. */
bool sl_rules_at(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                 struct sl_slice *ret_text);

/* Only the version. 0; -ENOMEM. */
int sl_rules_version_call(struct sl_call *call, uint32_t shards, const char *name,
                          struct failure *reterr);
/* The same. */
int sl_rules_version_reply(const struct redisReply *reply, uint64_t *ret_version,
                           struct failure *reterr);

struct sl_rules_change {
    uint64_t version; /* of the rules that were read */
    uint64_t by;      /* a random number of 52 bits: sent twice it is done once */
    const uint64_t *removed;
    size_t removed_count;
    const struct sl_slice *added;
    size_t added_count; /* at most SL_RULES_ADDED_MAX */
};
/* 0; -ENOMEM. */
int sl_rules_change_call(struct sl_call *call, uint32_t shards, const char *name,
                         const struct sl_rules_change *change, struct failure *reterr);
/* 0: *ret_version is theirs now, and sl_rules_id() has the ids; -ESTALE: they are others than those
 * that were read; or as sl_reply_check(). */
int sl_rules_change_reply(const struct redisReply *reply, uint64_t *ret_version,
                          struct failure *reterr);
/* Of the rule `i` of a change that led to this version. */
static inline uint64_t sl_rules_id(uint64_t version, size_t i)
{
    return version * SL_RULES_ADDED_MAX + i;
}
