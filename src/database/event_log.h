/* src/database/event_log.h - the event log of a shard: its events in order, until they are trimmed.
 *
 * Each entry contains the id of the entry before it, so that readers notice missing entries. A
 * batch is read with sl_event_log_range_call(), sl_event_log_range_reply() and
 * sl_event_log_entry_at(). */
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
    uint64_t previous;     /* id of the entry before; 0: this was the first */
    struct sl_slice event; /* JSON; a slice of the reply */
};

/* Reads the first `count` entries after `after`, up to and including `to`. Requires `after` < `to`.
 * 0; -ENOMEM. */
SL_EXPORT int sl_event_log_range_call(struct sl_call *call, uint32_t shard, uint64_t after,
                                      uint64_t to, size_t count, struct failure *reterr);
/* *ret_count entries, which sl_event_log_entry_at() returns. Fewer than requested: there are no
 * more up to `to`. 0; -EBADMSG: an entry that was not written by our scripts, is out of range or
 * out of order; else as sl_reply_check(). */
SL_EXPORT int sl_event_log_range_reply(const struct redisReply *reply, uint32_t shard,
                                       uint64_t after, uint64_t to, size_t *ret_count,
                                       struct failure *reterr);
/* Reads the last `count` entries up to and including `to`, from the newest to the oldest. The reply
 * is checked like that of a range. */
int sl_event_log_back_call(struct sl_call *call, uint32_t shard, uint64_t to, size_t count,
                           struct failure *reterr);
int sl_event_log_back_reply(const struct redisReply *reply, uint32_t shard, uint64_t to,
                            size_t *ret_count, struct failure *reterr);

/* Requires `i` < the count of a reply that sl_event_log_range_reply() accepted. */
SL_EXPORT struct sl_event_log_entry sl_event_log_entry_at(const struct redisReply *reply, size_t i);

/* The id of the newest entry. 0; -ENOMEM. */
SL_EXPORT int sl_event_log_end_call(struct sl_call *call, uint32_t shard, struct failure *reterr);
/* *ret_id is 0 when the log is empty. 0, or as sl_event_log_range_reply(). */
SL_EXPORT int sl_event_log_end_reply(const struct redisReply *reply, uint32_t shard,
                                     uint64_t *ret_id, struct failure *reterr);

/* Asks whether an event could be written now, by checking everything that a write depends on.
 * Writes nothing. 0; -ENOMEM. */
SL_EXPORT int sl_event_log_check_call(struct sl_call *call, const struct sl_meta *meta,
                                      uint32_t shard, struct failure *reterr);
/* 0: it could; else why not, as sl_reply_check(). */
SL_EXPORT int sl_event_log_check_reply(const struct redisReply *reply, struct failure *reterr);

struct sl_event_log_state {
    uint64_t count;  /* number of events */
    uint64_t oldest; /* id; 0: the log is empty */
    uint64_t bytes;  /* memory in Redis, estimated */
};

/* Reads length, age and size of the log. The cost does not depend on its length. 0; -ENOMEM. */
SL_EXPORT int sl_event_log_state_call(struct sl_call *call, const struct sl_meta *meta,
                                      uint32_t shard, struct failure *reterr);
SL_EXPORT int sl_event_log_state_reply(const struct redisReply *reply,
                                       struct sl_event_log_state *ret_state,
                                       struct failure *reterr);

/* Counts the log entries of the last `window_ms`, up to `most`, which is 1 to 10,000. If there are
 * more, *ret_ms is the time that the newest `most` entries span. 0; -ENOMEM. */
int sl_event_log_rate_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                           uint32_t window_ms, uint32_t most, struct failure *reterr);
int sl_event_log_rate_reply(const struct redisReply *reply, uint64_t *ret_count, uint64_t *ret_ms,
                            struct failure *reterr);
