/* src/database/event_log.h - the log: what has happened in a shard, in order, until it is trimmed.
 *
 * Each entry names the one before it, so that whoever reads sees what is missing. A batch is read
 * with sl_event_log_range_call(), sl_event_log_range_reply() and sl_event_log_entry_at(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

struct sl_event_log_entry {
    uint64_t id;
    uint64_t previous;     /* the entry before it; 0: it was the first */
    struct sl_slice event; /* JSON; the slice is the reply's */
};

/* The first `count` entries behind `after`, up to and including `to`. `after` < `to`. 0; -ENOMEM.
 */
SL_EXPORT int sl_event_log_range_call(struct sl_call *call, uint32_t shard, uint64_t after,
                                      uint64_t to, size_t count, struct failure *reterr);
/* *ret_count entries, each then read with sl_event_log_entry_at(); fewer than were asked for: there
 * are no more up to `to`. 0; -EBADMSG: not what was asked for: an entry that no script of ours
 * wrote, out of the range or out of order; else as sl_reply_check(). */
SL_EXPORT int sl_event_log_range_reply(const struct redisReply *reply, uint32_t shard,
                                       uint64_t after, uint64_t to, size_t *ret_count,
                                       struct failure *reterr);
/* The last `count` entries up to and including `to`, from the newest to the oldest; the reply is
 * checked like that of a range. */
int sl_event_log_back_call(struct sl_call *call, uint32_t shard, uint64_t to, size_t count,
                           struct failure *reterr);
int sl_event_log_back_reply(const struct redisReply *reply, uint32_t shard, uint64_t to,
                            size_t *ret_count, struct failure *reterr);

/* `i` < the count, of a reply that sl_event_log_range_reply() accepted. */
SL_EXPORT struct sl_event_log_entry sl_event_log_entry_at(const struct redisReply *reply, size_t i);

/* The id of the newest entry. 0; -ENOMEM. */
SL_EXPORT int sl_event_log_end_call(struct sl_call *call, uint32_t shard, struct failure *reterr);
/* *ret_id is 0 when the log is empty. 0, or as sl_event_log_range_reply(). */
SL_EXPORT int sl_event_log_end_reply(const struct redisReply *reply, uint32_t shard,
                                     uint64_t *ret_id, struct failure *reterr);

/* Could an event be written now? Asks everything that a write depends on, and writes nothing. 0;
 * -ENOMEM. */
SL_EXPORT int sl_event_log_check_call(struct sl_call *call, const struct sl_meta *meta,
                                      uint32_t shard, struct failure *reterr);
/* 0: it could; else why not, as sl_reply_check(). */
SL_EXPORT int sl_event_log_check_reply(const struct redisReply *reply, struct failure *reterr);

struct sl_event_log_state {
    uint64_t count;  /* of events */
    uint64_t oldest; /* id; 0: the log is empty */
    uint64_t bytes;  /* of memory in Redis, about */
};

/* How long, old and large is the log? Cheap however long it is. 0; -ENOMEM. */
SL_EXPORT int sl_event_log_state_call(struct sl_call *call, const struct sl_meta *meta,
                                      uint32_t shard, struct failure *reterr);
SL_EXPORT int sl_event_log_state_reply(const struct redisReply *reply,
                                       struct sl_event_log_state *ret_state,
                                       struct failure *reterr);

/* How many entries has the log had within the last `window_ms`? Of the newest `most` at most, 1 to
 * 10,000: where there are more, *ret_ms is the time that these took. 0; -ENOMEM. */
int sl_event_log_rate_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                           uint32_t window_ms, uint32_t most, struct failure *reterr);
int sl_event_log_rate_reply(const struct redisReply *reply, uint64_t *ret_count, uint64_t *ret_ms,
                            struct failure *reterr);
