/* gateway/delivery/catcher_parts.h - inside catcher: what its files share.
 *
 *     catcher.c        reads the ring, and goes from the logs to it and back
 *     catcher_log.c    reads the logs of all shards, merged by id
 *     catcher_count.c  what it counts, where that is what its lane wants
 *     catcher_give.c   where a catcher stands, and what it is given there */
#pragma once

#include "base/clock.h"
#include "gateway/delivery/catcher.h"

enum { CATCHER_STEP_BYTES = 64 << 10 /* a catcher is given so much at once */ };

/* What it has of the shard, by its position; and beyond that, up to the end of what it was told is
 * missing. */
uint64_t catcher_at_shard(const struct catcher *catcher, uint32_t shard);
uint64_t catcher_had_of_shard(const struct catcher *catcher, uint32_t shard);

/* `at` comes to this event in the ring, where nothing before it, of any shard but those that were
 * behind then, is missing; or in the merged logs. */
void catcher_move_in_ring(struct position *at, const struct event *event);
void catcher_move_in_log(const struct catcher *catcher, struct position *at, uint32_t shard,
                         uint64_t id);
/* Of a late event: it came with a cursor that covers it, so that it has the event, or was told. */
bool catcher_claims(const struct catcher *catcher, const struct event *event);
/* The shard, which was taken to be past it, has minted an event. What the cursor says of the shard
 * stands if it is an event of that: all others up to there were minted before. */
void catcher_take_back_claim(struct catcher *catcher, uint32_t shard);
/* A late event passes while it is there, or has come since: what it has of the shard ends before.
 */
bool catcher_is_late_news(const struct catcher *catcher, const struct event *event);

/* May more be given in this step, which began when so many bytes were owed? */
static inline bool catcher_has_room(const struct catcher *catcher, uint64_t bytes_before)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catcher->counter && clock_monotonic_us() >= catch_up->count_until_us)
        catch_up->budget = 0;
    return catcher->outbox.bytes - bytes_before < CATCHER_STEP_BYTES && catch_up->budget > 0;
}
/* Has everything up to the client's `until` been given, when the event `id` comes next in the ring?
 */
bool catcher_completes(const struct catcher *catcher, uint64_t id);
/* The first entry that the lane wants, from `index` on, as lane_next_wanted(). 0; -ENOMEM. */
int catcher_next_wanted(struct catcher *catcher, struct segment *segment, size_t index,
                        size_t *ret_index, struct sl_slice *ret_tail);
/* Gives the event, unless it lies beyond what the client wants, or counts it. 0; -EAGAIN: buckets
 * before it are to be closed first; -ENOMEM. */
int catcher_offer(struct catcher *catcher, struct event *event, struct sl_slice tail);

/* Each 0; -ENOMEM. */
int catcher_tell_gap(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to,
                     enum gap_reason reason);
/* Of the late marks among these entries. */
int catcher_tell_marks(struct catcher *catcher, const struct segment *segment, size_t from,
                       size_t to);
/* An event names `previous` as the one before it. Where that is older than the one that the client
 * has got, a failover has lost what lies between. */
int catcher_tell_rewound(struct catcher *catcher, uint32_t shard, uint64_t previous);

/* 0; -EAGAIN: the open bucket is to be closed first; -ENOMEM. */
int catcher_count(struct catcher *catcher, struct event *event, struct sl_slice tail);
/* Closes and tells what can be closed. PROGRESS: there is more, if there is no room left. */
enum progress catcher_close_buckets(struct catcher *catcher);
/* It has come so far in what it reads: are its buckets, too? Counts again what must be. */
enum progress catcher_settle_counts(struct catcher *catcher, enum progress progress);
/* It comes past this entry of the ring. */
void catcher_pass_counting(struct catcher *catcher, const struct event *event);
/* The logs are read: it goes on in the ring, or, if what follows has left that, in the logs. */
void catcher_enter_ring_counting(struct catcher *catcher);
/* What it would count next has left the ring. */
void catcher_leave_ring_counting(struct catcher *catcher);
/* How far it reads the log of this shard. */
static inline uint64_t catcher_log_end(const struct catcher *catcher, uint32_t shard)
{
    const struct ring *ring = catcher->catch_up->ring;

    if (!catcher->counter)
        return ring->lost[shard];
    return catcher->seam[shard] < ring->passed[shard] ? catcher->seam[shard] : ring->passed[shard];
}

/* Reads until the ring has the rest (PROGRESS_LOG_IS_READ), a batch is missing, or there is no more
 * room. */
enum progress catcher_read_log(struct catcher *catcher, uint64_t bytes_before);
