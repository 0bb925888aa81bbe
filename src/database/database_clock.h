/* src/database/database_clock.h - the time that ids are minted by, in all shards of one Redis
 * alike.
 *
 * It is the clock of the machine that Redis runs on, but for when that has stepped back: then ids
 * would lie below those that readers have been given already, in every shard that was quiet. So
 * whoever notices the step calls sl_clock_raise_call() for each shard. From then on the scripts'
 * time goes on above the ids that were given out, at an eighth of the machine's speed, until its
 * clock has come up to it at `clock_until`, a field of the shard's `meta`: one number, and when it
 * is over it means nothing.
 *
 * Shards of one Redis share its clock and must have the same `clock_until`: else the ids of some
 * run ahead of the others'. Whoever calls for one shard calls for the others with the number that
 * it was told, and once more if one of them tells a greater one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

/* The time of ids minted when Redis' TIME is `time_ms`; both are Unix times. `until_ms` 0: there
 * has been no step. Ids that are minted from then on are sl_id_first_at() of it or greater, unless
 * the machine's clock steps back. */
uint64_t sl_database_clock_ms(uint64_t time_ms, uint64_t until_ms);

/* The first `time_ms` at which that is `clock_ms` or later. */
uint64_t sl_database_clock_when_ms(uint64_t clock_ms, uint64_t until_ms);

struct sl_clock_raise {
    uint64_t low;      /* up to this id all events of the shard have been given out in order */
    uint64_t high;     /* up to this id events of others have been; >= low */
    uint64_t until_ms; /* what another shard of this Redis was found to have, or 0 */
};

/* The shard mints above `high` from now on. If its log has events in (low, high], a marker is
 * logged above `high` for those who come back with an id up to there (docs/events.md, `late`). May
 * be called any number of times, by any number of programs: what is so already writes nothing. 0;
 * -ENOMEM. */
int sl_clock_raise_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        const struct sl_clock_raise *raise, struct failure *reterr);

struct sl_clock_raised {
    uint64_t until_ms; /* that the shard has now */
    bool is_raised;    /* by this call */
    bool is_marked;    /* by this call */
};

/* 0; -ERANGE: that would be more than an hour ahead of Redis' clock, and nothing was changed; else
 * as sl_reply_check(). */
int sl_clock_raise_reply(const struct redisReply *reply, struct sl_clock_raised *ret_raised,
                         struct failure *reterr);
