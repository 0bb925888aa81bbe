/* src/database/revocations.h - revocations: tokens that are withdrawn before they expire.
 *
 * A revocation selects tokens by their claims; a token must match all members that it has.
 * Revocations are stored in shard 0 until they no longer matter. The log of shard 0 has an event
 * for each revocation and for each withdrawal of one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"

struct json_t;
struct json_t;
struct redisReply;

enum {
    SL_REVOCATIONS_MAX = 100000, /* in force at the same time */
    SL_REVOCATION_SUB_MAX = 64,  /* bytes */
    SL_REVOCATION_NAME_MAX = 512 /* of a jti, or the name of a key */
};

struct sl_revocation {
    uint64_t id;        /* of the event that announced it */
    uint64_t at_ms;     /* Unix time of its creation */
    uint64_t before_ms; /* Unix time: applies to tokens issued earlier; 0: to all */
    uint64_t until_ms;  /* Unix time until which it is kept; 0 for a new one: as long as a token can
                           live */
    struct sl_slice sub, jti, kid; /* without data: any */
    struct sl_slice by;            /* who made it; without data: unknown */
    struct json_t *json;           /* owns the bytes of the slices; NULL: owned elsewhere */
};

/* Checks a revocation that is to be made at `now_ms`. 0; -EINVAL: *reterr says what is wrong, and
 * *ret_member names the wrong member. */
int sl_revocation_check(const struct sl_revocation *revocation, uint64_t now_ms,
                        const char **ret_member, struct failure *reterr);

/* Parses a time (src/model/moment.h), or `now`. 0; -EINVAL. */
int sl_revocation_time(struct sl_slice text, uint64_t now_ms, uint64_t *ret_ms,
                       struct failure *reterr);

/* Makes a revocation that was checked. The answer (sl_write_reply()) contains its id; -EDQUOT:
 * there are SL_REVOCATIONS_MAX. 0; -EINVAL: not a request id; -ENOMEM. */
int sl_revoke_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_revocation *revocation, struct failure *reterr);
/* Withdraws a revocation. The answer contains the id of the event; -ENOENT: there is none. 0;
 * -EINVAL: not a request id; -ENOMEM. */
int sl_unrevoke_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                     uint64_t id, struct failure *reterr);

/* Reads some revocations: the first `limit` after the id `after`, oldest first; or the last before
 * the id `before` (0: of all), newest first. 0; -ENOMEM. */
int sl_revocations_call(struct sl_call *call, uint64_t after, size_t limit, struct failure *reterr);
int sl_revocations_back_call(struct sl_call *call, uint64_t before, size_t limit,
                             struct failure *reterr);
/* 0, or as sl_reply_check(). */
int sl_revocations_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr);
/* The JSON of revocation `i`, in the form shown to users. */
struct sl_slice sl_revocations_json(const struct redisReply *reply, size_t i);

/* Parses the JSON of a revocation, or of the event that announced it. 0: call sl_revocation_done()
 * at the end; -EBADMSG; -ENOMEM. */
int sl_revocation_parse(struct sl_slice json, struct sl_revocation *ret_revocation,
                        struct failure *reterr);
void sl_revocation_done(struct sl_revocation *revocation);
/* Parses the JSON of the event that withdraws a revocation. 0, *ret_id is the revocation's id;
 * -EBADMSG. */
int sl_unrevocation_parse(struct sl_slice json, uint64_t *ret_id, struct failure *reterr);
