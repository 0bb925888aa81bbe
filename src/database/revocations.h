/* src/database/revocations.h - tokens that were taken back before their end.
 *
 * A revocation names tokens by what they say of themselves: all that it has must hold of a token.
 * Shard 0 has them, until the time from which on they matter no more; the log of shard 0 has an
 * event of each, and of each that counts no more. */
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
    SL_REVOCATIONS_MAX = 100000, /* that count at a time */
    SL_REVOCATION_SUB_MAX = 64,  /* bytes */
    SL_REVOCATION_NAME_MAX = 512 /* of a jti, or the name of a key */
};

struct sl_revocation {
    uint64_t id;        /* of the event that told it */
    uint64_t at_ms;     /* Unix time: when it was made */
    uint64_t before_ms; /* Unix time: tokens issued before that; 0: whenever */
    uint64_t until_ms;  /* Unix time: it matters so long; 0, to be made: as long as a token lives */
    struct sl_slice sub, jti, kid; /* without data: whatever it is */
    struct sl_slice by;            /* who made it; without data: nobody says */
    struct json_t *json;           /* that slices are of; NULL: somebody else's */
};

/* What is wrong with it, to be made at `now_ms`? 0; -EINVAL: *reterr says, and *ret_member names
 * the member at fault. */
int sl_revocation_check(const struct sl_revocation *revocation, uint64_t now_ms,
                        const char **ret_member, struct failure *reterr);

/* A time as people write one (src/model/moment.h), or `now`. 0; -EINVAL. */
int sl_revocation_time(struct sl_slice text, uint64_t now_ms, uint64_t *ret_ms,
                       struct failure *reterr);

/* Makes one that was checked. The answer (sl_write_reply()) holds its id; -EDQUOT: there are
 * SL_REVOCATIONS_MAX. 0; -EINVAL: not a request id; -ENOMEM. */
int sl_revoke_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_revocation *revocation, struct failure *reterr);
/* It counts no more. The answer holds the id of the event; -ENOENT: there is none. 0; -EINVAL: not
 * a request id; -ENOMEM. */
int sl_unrevoke_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                     uint64_t id, struct failure *reterr);

/* Reads some: the first `limit` behind the id `after`, oldest first; or the last before the id
 * `before` (0: of all), newest first. 0; -ENOMEM. */
int sl_revocations_call(struct sl_call *call, uint64_t after, size_t limit, struct failure *reterr);
int sl_revocations_back_call(struct sl_call *call, uint64_t before, size_t limit,
                             struct failure *reterr);
/* 0; or as sl_reply_check(). */
int sl_revocations_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr);
/* The JSON of one, as people are shown it. */
struct sl_slice sl_revocations_json(const struct redisReply *reply, size_t i);

/* The JSON of one, or of the event that told it. 0: to be ended by sl_revocation_done(); -EBADMSG;
 * -ENOMEM. */
int sl_revocation_parse(struct sl_slice json, struct sl_revocation *ret_revocation,
                        struct failure *reterr);
void sl_revocation_done(struct sl_revocation *revocation);
/* The JSON of the event that one counts no more: its id. 0; -EBADMSG. */
int sl_unrevocation_parse(struct sl_slice json, uint64_t *ret_id, struct failure *reterr);
