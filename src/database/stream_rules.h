/* src/database/stream_rules.h - the stored rules of a subject's streams: a Redis hash for each.
 *
 * The name of the hash is a hash of the subject (43 bytes), which also determines the shard. A rule
 * is an opaque text here. A change names the version of the rules that was read, and is refused if
 * they have changed since, so that concurrent changes are not lost. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"

struct redisReply;

enum { SL_RULES_ADDED_MAX = 1000 /* in one change */ };

/* 0; -ENOMEM. */
int sl_rules_get_call(struct sl_call *call, uint32_t shards, const char *name,
                      struct failure *reterr);
/* 0: *ret_version is the version of the rules (0: there never were any), and sl_rules_at() returns
 * *ret_count entries, some of which may be empty; or as sl_reply_check(). */
int sl_rules_get_reply(const struct redisReply *reply, uint64_t *ret_version, size_t *ret_count,
                       struct failure *reterr);
/* false: there is no rule at `i`. The rules are in no particular order. */
bool sl_rules_at(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                 struct sl_slice *ret_text);

/* Reads only the version. 0; -ENOMEM. */
int sl_rules_version_call(struct sl_call *call, uint32_t shards, const char *name,
                          struct failure *reterr);
/* 0, or as sl_reply_check(). */
int sl_rules_version_reply(const struct redisReply *reply, uint64_t *ret_version,
                           struct failure *reterr);

struct sl_rules_change {
    uint64_t version; /* of the rules that the change is based on */
    uint64_t by;      /* random number of 52 bits, which makes the change repeatable */
    const uint64_t *removed;
    size_t removed_count;
    const struct sl_slice *added;
    size_t added_count; /* at most SL_RULES_ADDED_MAX */
};
/* 0; -ENOMEM. */
int sl_rules_change_call(struct sl_call *call, uint32_t shards, const char *name,
                         const struct sl_rules_change *change, struct failure *reterr);
/* 0: *ret_version is the new version, and sl_rules_id() returns the ids; -ESTALE: the rules have
 * changed since they were read; or as sl_reply_check(). */
int sl_rules_change_reply(const struct redisReply *reply, uint64_t *ret_version,
                          struct failure *reterr);
/* The id of the rule added[i] of the change that led to this version. */
static inline uint64_t sl_rules_id(uint64_t version, size_t i)
{
    return version * SL_RULES_ADDED_MAX + i;
}
