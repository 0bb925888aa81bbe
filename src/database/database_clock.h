/* src/database/database_clock.h - the clock from which ids are minted, common to all shards of a
 * Redis.
 *
 * It is the clock of the machine that Redis runs on, unless that has been set back. Then ids would
 * be lower than those that readers have already been given, in every shard without recent writes.
 * Whoever notices the step calls sl_clock_raise_call() for each shard. From then on the scripts'
 * clock continues above the ids given out, at one eighth of the normal speed, until the machine's
 * clock has caught up at `clock_until`. That is a field of the shard's `meta`, which has no effect
 * once this time is over.
 *
 * Shards of one Redis share its clock and must have the same `clock_until`; otherwise the ids of
 * some would be ahead of the others. A caller that raises the clock of one shard must do the same
 * for the others with the value returned, and again if one of them returns a greater value. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* The time of ids minted when Redis' TIME is `time_ms`. Both are Unix times. `until_ms` is
 * clock_until, 0 if the clock was never set back. Ids minted from then on are at least
 * sl_id_first_at() of the result, unless the machine's clock is set back again. */
uint64_t sl_database_clock_ms(uint64_t time_ms, uint64_t until_ms);

/* The first `time_ms` at which sl_database_clock_ms() returns `clock_ms` or later. */
uint64_t sl_database_clock_when_ms(uint64_t clock_ms, uint64_t until_ms);

struct sl_clock_raise {
    uint64_t low;      /* all events of the shard up to this id have been delivered in order */
    uint64_t high;     /* events of other shards up to this id have been delivered; >= low */
    uint64_t until_ms; /* clock_until of another shard of this Redis, or 0 */
};

/* Makes the shard mint ids above `high` from now on. If its log has events in (low, high], a marker
 * is logged above `high` for clients that resume from an id up to there (docs/events.md, `late`).
 * Idempotent: may be called any number of times and by several programs. 0; -ENOMEM. */
int sl_clock_raise_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        const struct sl_clock_raise *raise, struct failure *reterr);

struct sl_clock_raised {
    uint64_t until_ms; /* the shard's clock_until now */
    bool is_raised;    /* by this call */
    bool is_marked;    /* by this call */
};

/* 0; -ERANGE: the clock would be more than an hour ahead of that of Redis, nothing was changed;
 * else as sl_reply_check(). */
int sl_clock_raise_reply(const struct redisReply *reply, struct sl_clock_raised *ret_raised,
                         struct failure *reterr);
