/* catcher.c - reads the ring, and the logs where the ring has lost events, into one client's
 * outbox.
 *
 * Segments record which of their events the lane wants, so a catcher moves from one wanted event to
 * the next; the others only advance its position. */
#include "gateway/delivery/catcher.h"

#include <assert.h>
#include <errno.h>

#include "gateway/delivery/catcher_parts.h"

/* A client whose cursor is the last event of the rewound range has the gap, although it may have
 * left before it was told. */
static bool knows_gap(const struct catcher *catcher, const struct event *gap)
{
    if (!gap->is_rewound)
        return gap->gap_to <= catcher_at_shard(catcher, gap->shard);
    return catcher->catch_up->ring->shards == 1 && gap->gap_to < catcher->at.id;
}

/* A clock that was behind at the failover may have assigned lost ids again. */
static bool may_come_again(const struct catcher *catcher, const struct segment_entry *entry)
{
    const struct gap *rewound = &catcher->rewound;

    return entry->id > rewound->from && entry->id <= rewound->to &&
           entry->event->shard == rewound->shard;
}

/* The entry is before a rewound gap, and the client is after it. */
static bool is_behind(const struct catcher *catcher, const struct event *event)
{
    return (event->id || event->gap_to) && event->sequence <= catcher->skips[event->shard];
}

static bool was_given(const struct catcher *catcher, const struct segment_entry *entry)
{
    const struct event *event = entry->event;

    if (is_behind(catcher, event))
        return true;
    if (!entry->id)
        return event->sequence < catcher->unlogged_from && knows_gap(catcher, event);
    if (event->is_late)
        return entry->id <= catcher->last[event->shard] || catcher_claims(catcher, event);
    return entry->id <= catcher_at_shard(catcher, event->shard) && !may_come_again(catcher, entry);
}

/* What the client has of the shard goes back as far as the shard did. With a single shard, a cursor
 * from after the gap may have been issued by then. */
static void go_back(struct catcher *catcher, const struct event *gap)
{
    uint32_t shard = gap->shard;

    if (catcher->catch_up->ring->shards > 1 && gap->sequence < catcher->came_at &&
        sl_cursor_of_shard(&catcher->had, shard) > gap->gap_to)
        return; /* it also has what followed the gap, up to its cursor */
    if (gap->sequence >= catcher->came_at)
        catcher->claims &= ~(UINT64_C(1) << shard);
    if (catcher->catch_up->ring->shards > 1)
        position_lower_shard(&catcher->at, shard, gap->gap_from);
    else if (catcher->at.id > gap->gap_from && catcher->at.id <= gap->gap_to)
        catcher->at.id = gap->gap_from;
    if (catcher->last[shard] > gap->gap_from)
        catcher->last[shard] = gap->gap_from;
}

static void pass_by(struct catcher *catcher, const struct segment_entry *entry)
{
    const struct event *event = entry->event;
    uint32_t shard = event->shard;

    catcher->sequence++;
    if (catcher->counter) {
        catcher_pass_counting(catcher, event);
        return;
    }
    if (is_behind(catcher, event) || client_is_beyond(catcher->client->until, event->id))
        return;
    if (event->is_rewound)
        go_back(catcher, event);
    if (!entry->id)
        return;
    if (catcher_is_late_news(catcher, event))
        position_lower_shard(&catcher->at, shard, entry->previous);
    if (entry->id >= catcher_at_shard(catcher, shard) && entry->id > catcher->last[shard])
        catcher->last[shard] = entry->id;
    catcher_move_in_ring(&catcher->at, event);
}

/* 0; -EAGAIN: see catcher_offer(); -ENOMEM. */
static int give_entry(struct catcher *catcher, const struct segment_entry *entry,
                      struct sl_slice tail)
{
    struct event *event = entry->event;

    if (catcher->counter)
        return catcher_offer(catcher, event, tail);
    if (was_given(catcher, entry))
        return 0;
    if (event->is_rewound)
        catcher->rewound = (struct gap){event->shard, event->gap_from, event->gap_to, GAP_REWOUND};
    return catcher_offer(catcher, event, tail);
}

/* For an event that is new to it. */
static int tell_if_rewound(struct catcher *catcher, const struct segment_entry *entry)
{
    uint32_t shard = entry->event->shard;

    if (catcher->counter || is_behind(catcher, entry->event) ||
        entry->id <= catcher_at_shard(catcher, shard))
        return 0;
    return catcher_tell_rewound(catcher, shard, entry->previous);
}

/* The event, which passed since the client came, shows which shards are behind. */
static int tell_if_behind(struct catcher *catcher, const struct event *event)
{
    uint64_t bit = UINT64_C(1) << event->shard;

    if (!event->cursor || event->sequence < catcher->came_at)
        return 0;
    if (event->is_unforeseen)
        catcher_take_back_claim(catcher, event->shard);
    if (event->is_late && catcher->claims & ~catcher->told_behind & bit) {
        catcher->told_behind |= bit;
        if (catcher_tell_late(catcher, event->shard, event->previous, SL_ID_MAX) < 0)
            return -ENOMEM;
    }
    return catcher_tell_behind(catcher, event->cursor);
}

/* Messages before the entry. 0; -ENOMEM. */
static int tell_before(struct catcher *catcher, const struct segment_entry *entry)
{
    if (tell_if_rewound(catcher, entry) < 0)
        return -ENOMEM;
    return tell_if_behind(catcher, entry->event);
}

/* Late events that it had not reached are in the log now. */
static void leave_ring(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        const struct ring_late *late = &ring->late[shard];
        uint64_t low = catcher->last[shard] ? catcher->last[shard] : late->low;
        uint64_t had = sl_cursor_of_shard(&catcher->had, shard);

        if (late->sequence < catcher->sequence)
            continue;
        if (late->unforeseen >= catcher->sequence)
            catcher_take_back_claim(catcher, shard);
        if (catcher->claims >> shard & 1 && low < had)
            low = had;
        position_lower_shard(&catcher->at, shard, low);
    }
    catcher->left_ring_at = catcher->at.id;
    catcher->in_ring = false;
    if (catcher->sequence > catcher->unlogged_from)
        catcher->unlogged_from = catcher->sequence;
}

static enum progress read_ring(struct catcher *catcher, uint64_t bytes_before)
{
    const struct ring *ring = catcher->catch_up->ring;
    struct segment *segment;
    size_t index;

    assert(catcher->sequence <= ring->next);
    if (catcher->sequence < ring->oldest) {
        if (!catcher->counter)
            leave_ring(catcher);
        else if (catcher_leave_ring_counting(catcher) && catcher_tell_unlogged(catcher) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        return PROGRESS;
    }
    if (catcher->sequence == ring->next)
        return PROGRESS_AT_HEAD;
    segment = ring_find(ring, catcher->sequence, &index);
    while (index < segment->count && catcher_has_room(catcher, bytes_before)) {
        const struct segment_entry *entry;
        struct sl_slice tail;
        size_t next;
        int r;

        if (catcher_next_wanted(catcher, segment, index, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        if (catcher_tell_marks(catcher, segment, index, next) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        for (; index < next; index++) {
            if (catcher_completes(catcher, segment->entries[index].id))
                return PROGRESS_COMPLETE;
            if (tell_before(catcher, &segment->entries[index]) < 0)
                return PROGRESS_OUT_OF_MEMORY;
            pass_by(catcher, &segment->entries[index]);
        }
        if (index == segment->count)
            break;
        entry = &segment->entries[index++];
        if (catcher_completes(catcher, entry->id))
            return PROGRESS_COMPLETE;
        r = tell_before(catcher, entry);
        if (r == 0)
            r = give_entry(catcher, entry, tail);
        if (r < 0)
            return r == -EAGAIN ? PROGRESS : PROGRESS_OUT_OF_MEMORY;
        pass_by(catcher, entry);
    }
    return PROGRESS;
}

/* A rewind may have come while it read the logs, and have left the ring. The logs show it only with
 * the shard's next event, and the client may be live by then. 0; -ENOMEM. */
static int tell_left_rewinds(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        const struct ring_rewind *rewind = &ring->rewinds[shard];
        uint64_t last = catcher->last[shard];

        if (rewind->sequence >= catcher->unlogged_from && rewind->sequence < ring->oldest &&
            last > rewind->from && last <= rewind->to &&
            catcher_tell_rewound(catcher, shard, rewind->from) < 0)
            return -ENOMEM;
    }
    return 0;
}

static enum progress enter_ring(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    catcher_release_batches(catcher);
    if (catcher->counter && catcher_enter_ring_counting(catcher))
        return catcher_tell_unlogged(catcher) < 0 ? PROGRESS_OUT_OF_MEMORY : PROGRESS;
    if (catcher->counter)
        return PROGRESS;
    for (uint32_t shard = 0; shard < ring->shards; shard++) { /* it may have been told of a gap */
        if (catcher->last[shard] >= ring->lost[shard])
            position_raise_shard(&catcher->at, shard, ring->lost[shard]);
    }
    if (tell_left_rewinds(catcher) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    catcher->in_ring = true;
    catcher->rewound = (struct gap){0};
    catcher->sequence = ring->oldest;
    if (ring->lost_unlogged <= catcher->unlogged_from)
        return PROGRESS;
    catcher->unlogged_from = ring->lost_unlogged;
    return catcher_tell_gap(catcher, 0, catcher->left_ring_at, catcher->at.id, GAP_UNLOGGED) < 0
               ? PROGRESS_OUT_OF_MEMORY
               : PROGRESS;
}

static enum progress read_some(struct catcher *catcher)
{
    uint64_t bytes_before = catcher->outbox.bytes;
    enum progress progress;

    if (!lane_is_ready(catcher->lane))
        return PROGRESS_NEEDS_LANE;
    do {
        progress = catcher->counter ? catcher_close_buckets(catcher) : PROGRESS;
        if (progress != PROGRESS || !catcher_has_room(catcher, bytes_before))
            return progress;
        progress = catcher->in_ring ? read_ring(catcher, bytes_before)
                                    : catcher_read_log(catcher, bytes_before);
        if (progress == PROGRESS_LOG_IS_READ)
            progress = enter_ring(catcher);
        if (catcher->counter)
            progress = catcher_settle_counts(catcher, progress);
    } while (progress == PROGRESS && catcher_has_room(catcher, bytes_before));
    return progress;
}

enum progress catcher_read(struct catcher *catcher)
{
    enum progress progress = read_some(catcher);

    return catcher_tell_left_out(catcher) < 0 ? PROGRESS_OUT_OF_MEMORY : progress;
}
