/* gateway/delivery/catcher_parts.h - internal to catcher: what its files share.
 *
 *     catcher.c        reads the ring; switches from the logs to it and back
 *     catcher_log.c    reads the logs of all shards, merged by id
 *     catcher_count.c  counts, if its lane counts
 *     catcher_give.c   its position, and what it is given there */
#pragma once

#include "base/clock.h"
#include "gateway/delivery/catcher.h"

enum { CATCHER_STEP_BYTES = 64 << 10 /* the maximum for one step */ };

/* What it has of the shard, according to its position; and the same, extended by what it was told
 * is missing. */
uint64_t catcher_at_shard(const struct catcher *catcher, uint32_t shard);
uint64_t catcher_had_of_shard(const struct catcher *catcher, uint32_t shard);

/* Moves `at` to this event of the ring, before which nothing is missing except of shards that were
 * behind then; or of the merged logs. */
void catcher_move_in_ring(struct position *at, const struct event *event);
void catcher_move_in_log(const struct catcher *catcher, struct position *at, uint32_t shard,
                         uint64_t id);
/* For a late event: the client's cursor covers it, so it has the event, or was told. */
bool catcher_claims(const struct catcher *catcher, const struct event *event);
/* The shard, from which no events were expected any more, has created one. If the cursor is an
 * event of this shard, it stays valid, because all lower ids were created before. */
void catcher_take_back_claim(struct catcher *catcher, uint32_t shard);
/* Whether a late event that passes now, or since it came, is new to it: what it has of the shard
 * ends before the event. */
bool catcher_is_late_news(const struct catcher *catcher, const struct event *event);

/* Whether more can be given in this step, which began with `bytes_before` owed. */
static inline bool catcher_has_room(const struct catcher *catcher, uint64_t bytes_before)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catcher->counter && clock_monotonic_us() >= catch_up->count_until_us)
        catch_up->budget = 0;
    return catcher->outbox.bytes - bytes_before < CATCHER_STEP_BYTES && catch_up->budget > 0;
}
/* Whether everything up to the client's `until` has been given, if the event `id` is next in the
 * ring. */
bool catcher_completes(const struct catcher *catcher, uint64_t id);
/* The first entry that the lane wants, from `index` on; see lane_next_wanted(). 0; -ENOMEM. */
int catcher_next_wanted(struct catcher *catcher, struct segment *segment, size_t index,
                        size_t *ret_index, struct sl_slice *ret_tail);
/* Gives or counts the event, unless it is after the client's `until`. 0; -EAGAIN: buckets before it
 * must be closed first; -ENOMEM. */
int catcher_offer(struct catcher *catcher, struct event *event, struct sl_slice tail);

/* The following return 0 or -ENOMEM. */
int catcher_tell_gap(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to,
                     enum gap_reason reason);
/* The same if its counter has it already. */
int catcher_send_gap(struct catcher *catcher, const struct gap *gap);
/* For the late marks among these entries. */
int catcher_tell_marks(struct catcher *catcher, const struct segment *segment, size_t from,
                       size_t to);
/* An event, the first one after what the client has, names `previous` as the event before it. If
 * that is older than the one that the client has, a failover has lost what is between them. */
int catcher_tell_rewound(struct catcher *catcher, uint32_t shard, uint64_t previous);

/* 0; -EAGAIN: the open bucket must be closed first; -ENOMEM. */
int catcher_count(struct catcher *catcher, struct event *event, struct sl_slice tail);
/* Closes buckets that have ended, and gives their messages. PROGRESS: more are left, if there was
 * no room. */
enum progress catcher_close_buckets(struct catcher *catcher);
/* After reading with the result `progress`: says which buckets end, and counts again what is
 * necessary: for counts at the head, when picking before the bucket ends, because what is picked
 * is not taken back. */
enum progress catcher_settle_counts(struct catcher *catcher, enum progress progress);
/* It passes this entry of the ring. */
void catcher_pass_counting(struct catcher *catcher, const struct event *event);
/* The logs have been read: it continues in the ring, or, if the next entry has left the ring, in
 * the logs. true: as below. */
bool catcher_enter_ring_counting(struct catcher *catcher);
/* What it would count next has left the ring. true: it must be told that it will not find unlogged
 * events. */
bool catcher_leave_ring_counting(struct catcher *catcher);
/* The id up to which it reads the log of this shard. */
static inline uint64_t catcher_log_end(const struct catcher *catcher, uint32_t shard)
{
    const struct ring *ring = catcher->catch_up->ring;

    if (!catcher->counter)
        return ring->lost[shard];
    return catcher->seam[shard] < ring->passed[shard] ? catcher->seam[shard] : ring->passed[shard];
}

/* Reads until the rest is in the ring (PROGRESS_LOG_IS_READ), a batch is missing, or there is no
 * room. */
enum progress catcher_read_log(struct catcher *catcher, uint64_t bytes_before);
