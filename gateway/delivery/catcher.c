/* catcher.c - from what has passed, or was logged, to one client's outbox.
 *
 * Batches say which of their events the lane wants; so a catcher goes from one wanted event to the
 * next, and what lies between moves its ids on. Costs are counted in bytes against the budget of
 * the turn.
 *
 * The logs of several shards are merged by id: a heap holds, for as long as a step lasts, where
 * each log goes on. Finding that out costs a look at every shard once a step; from one event to the
 * next only the shard is looked at that was read. */
#include "gateway/delivery/catcher.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"

enum {
    STEP_BYTES = 64 << 10, /* a catcher is given so much at once */
    STEP_COST = 64,        /* finding the next event that is wanted costs as much as these bytes */
    LOOK_COST = 4,         /* and each that is not, these */
    WARN_EVERY_MS = 60000
};

/* --- where it stands --- */

/* All shards have been given up to there: not beyond the last event of one that is quiet. */
static uint64_t least_after(const struct catcher *catcher)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t shard = 0; shard < catcher->catch_up->ring->shards; shard++) {
        if (catcher->after[shard] < least)
            least = catcher->after[shard];
    }
    return least > catcher->had ? least : catcher->had;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What was reached holds until something passes that is older; who reads the ring has all that
 * passed before, besides. */
uint64_t catcher_position(const struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t reached, in_ring;

    if (ring->shards == 1)
        return least_after(catcher);
    reached = lower(catcher->reached, id_floor_from(&ring->floor, catcher->reached_at) - 1);
    in_ring = catcher->in_ring ? ring_cursor_at(ring, catcher->sequence) : 0;
    return reached > in_ring ? reached : in_ring;
}

void catcher_has_reached(struct catcher *catcher, uint64_t cursor)
{
    catcher->reached = cursor;
    catcher->reached_at = catcher->catch_up->ring->next;
}

/* Is it known that nothing at or below this id is still to come live, or that such an event has
 * been read already? */
static bool is_certain(const struct catcher *catcher, uint32_t shard)
{
    return catcher->after[shard] <= catcher->catch_up->ring->head[shard] ||
           (catcher->begun >> shard & 1);
}

static bool ring_has_rest_of(const struct catcher *catcher, uint32_t shard)
{
    if (catcher->skips[shard] >= catcher->catch_up->ring->oldest)
        return true; /* what it has stands behind that */
    return catcher->after[shard] >= catcher->catch_up->ring->lost[shard] &&
           is_certain(catcher, shard);
}

static bool ring_has_rest(const struct catcher *catcher)
{
    for (uint32_t shard = 0; shard < catcher->catch_up->ring->shards; shard++) {
        if (!ring_has_rest_of(catcher, shard))
            return false;
    }
    return true;
}

bool catcher_is_not_ahead(const struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        if (catcher->after[shard] > ring->passed[shard])
            return false;
    }
    return true;
}

/* --- giving --- */

static int give(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    return outbox_append(&catcher->outbox, event, catcher_position(catcher), tail, 0);
}

static int give_control_take(struct catcher *catcher, struct event *event)
{
    int r = event ? give(catcher, event, SL_SLICE_NONE) : -ENOMEM;

    event_unref(event);
    return r;
}

static int give_gap(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to,
                    enum gap_reason reason)
{
    const struct gap gap = {shard, from, to, reason};

    metric_add(catcher->catch_up->settings.metrics, metric_at(METRIC_GAPS_TOLD, reason), 1);
    return give_control_take(catcher, gap_event(&gap));
}

void catch_up_sample_clocks(struct catch_up *catch_up)
{
    catch_up->wall_ms = clock_wall_ms();
    catch_up->monotonic_ms = clock_monotonic_ms();
}

uint64_t catch_up_happened_ms(const struct catch_up *catch_up, const struct event *event)
{
    uint64_t received_ms = event->received_us / 1000;
    uint64_t age_ms =
        catch_up->monotonic_ms > received_ms ? catch_up->monotonic_ms - received_ms : 0;

    return event->id ? sl_id_time_ms(event->id) : catch_up->wall_ms - age_ms;
}

/* A guess while the log is read, which may be ahead of what has passed here. */
uint64_t catcher_events_behind(const struct catcher *catcher)
{
    uint64_t next = catcher->catch_up->ring->next;

    return next > catcher->sequence ? next - catcher->sequence : 0;
}

/* Told when the socket has just taken all there was, so that it is read while it is still true. */
static int warn_if_due(struct catcher *catcher, uint64_t event_wall_ms)
{
    struct catch_up *catch_up = catcher->catch_up;
    uint64_t now_ms = uv_now(catch_up->settings.loop);
    struct client *client = catcher->client;
    char json[128];
    int size;

    if (!catcher->has_fallen || (client->warned_ms && now_ms - client->warned_ms < WARN_EVERY_MS))
        return 0;
    client->warned_ms = now_ms;
    size = snprintf(json, sizeof(json),
                    "{\"type\":\"warning\",\"code\":\"behind\",\"events\":%" PRIu64
                    ",\"ms\":%" PRIu64 "}",
                    catcher_events_behind(catcher),
                    catch_up->wall_ms > event_wall_ms ? catch_up->wall_ms - event_wall_ms : 0);
    return give_control_take(catcher,
                             event_new_control(EVENT_WARNING, sl_slice(json, (size_t)size)));
}

static bool has_room(const struct catcher *catcher, uint64_t bytes_before)
{
    return catcher->outbox.bytes - bytes_before < STEP_BYTES && catcher->catch_up->budget > 0;
}

static int offer(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    uint64_t bytes = catcher->outbox.bytes;
    int r;

    if (client_is_beyond(catcher->client->until, event->id))
        return 0;
    catcher->fed_wall_ms = catch_up_happened_ms(catcher->catch_up, event);
    r = warn_if_due(catcher, catcher->fed_wall_ms);
    if (r == 0)
        r = give(catcher, event, tail);
    catch_up_spend(catcher->catch_up, catcher->outbox.bytes - bytes);
    return r;
}

static int next_wanted(struct catcher *catcher, struct segment *segment, size_t index,
                       size_t *ret_index, struct sl_slice *ret_tail)
{
    int r = lane_next_wanted(catcher->lane, segment, index, ret_index, ret_tail);

    if (r == 0)
        catch_up_spend(catcher->catch_up, STEP_COST + (*ret_index - index) * LOOK_COST);
    return r;
}

/* An event names `previous` as the one before it. Where that is older than the one that the client
 * has got, a failover has lost what lies between. 0; -ENOMEM. */
static int tell_rewound(struct catcher *catcher, uint32_t shard, uint64_t previous)
{
    uint64_t after = catcher->after[shard];
    const struct gap *told = &catcher->rewound;

    if (!(catcher->begun >> shard & 1) || sl_id_shard(after) != shard || previous >= after)
        return 0;
    if (told->shard == shard && previous >= told->from && after <= told->to)
        return 0;
    return give_gap(catcher, shard, previous, after, GAP_REWOUND);
}

/* Has everything up to `until` been given, when this comes next? Of one shard, yes; other shards
 * may be a little behind. */
static bool completes(const struct catcher *catcher, uint64_t id)
{
    uint64_t until = catcher->client->until;

    if (!client_is_beyond(until, id))
        return false;
    return catcher->catch_up->ring->shards == 1 ||
           sl_id_time_ms(id) > sl_id_time_ms(until) + CLIENT_UNTIL_GRACE_MS;
}

/* --- from the ring --- */

/* Whose cursor is the last of what was rewound has got it, and may have left before it was told. */
static bool knows_gap(const struct catcher *catcher, const struct event *gap)
{
    return gap->is_rewound ? gap->gap_to < catcher->entered_ring_at
                           : gap->gap_to <= catcher->entered_ring_at;
}

/* A clock that was behind at the failover may have given out ids again that are lost. */
static bool may_come_again(const struct catcher *catcher, const struct segment_entry *entry)
{
    const struct gap *rewound = &catcher->rewound;

    return entry->id > rewound->from && entry->id <= rewound->to &&
           entry->event->shard == rewound->shard;
}

/* It stands before a rewound gap behind which the client is. */
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
    return (entry->id == catcher->had || entry->id <= catcher->after[event->shard]) &&
           !may_come_again(catcher, entry);
}

/* What the client has of the shard goes back as far as the shard did. */
static void go_back(struct catcher *catcher, const struct event *gap)
{
    uint64_t *after = &catcher->after[gap->shard];

    if (*after > gap->gap_from && *after <= gap->gap_to)
        *after = gap->gap_from;
    if (catcher->had > gap->gap_from && catcher->had <= gap->gap_to &&
        sl_id_shard(catcher->had) == gap->shard)
        catcher->had = gap->gap_from;
}

static void pass_by(struct catcher *catcher, const struct segment_entry *entry)
{
    uint32_t shard = entry->event->shard;

    if (is_behind(catcher, entry->event)) {
        catcher->sequence++;
        return;
    }
    if (entry->event->is_rewound)
        go_back(catcher, entry->event);
    if (entry->id && entry->id >= catcher->after[shard]) {
        catcher->after[shard] = entry->id;
        catcher->begun |= UINT64_C(1) << shard;
    }
    catcher->sequence++;
}

/* 0; -ENOMEM. */
static int give_entry(struct catcher *catcher, const struct segment_entry *entry,
                      struct sl_slice tail)
{
    struct event *event = entry->event;

    if (was_given(catcher, entry))
        return 0;
    if (event->is_rewound)
        catcher->rewound = (struct gap){event->shard, event->gap_from, event->gap_to, GAP_REWOUND};
    return offer(catcher, event, tail);
}

/* An event that is new. */
static int tell_if_rewound(struct catcher *catcher, const struct segment_entry *entry)
{
    uint32_t shard = entry->event->shard;

    if (is_behind(catcher, entry->event) || entry->id <= catcher->after[shard])
        return 0;
    return tell_rewound(catcher, shard, entry->previous);
}

static enum progress read_ring(struct catcher *catcher, uint64_t bytes_before)
{
    const struct ring *ring = catcher->catch_up->ring;
    struct segment *segment;
    size_t index;

    assert(catcher->sequence <= ring->next);
    if (catcher->sequence < ring->oldest) {
        catcher->left_ring_at = catcher_position(catcher);
        catcher_has_reached(catcher, catcher->left_ring_at);
        catcher->in_ring = false;
        if (catcher->sequence > catcher->unlogged_from)
            catcher->unlogged_from = catcher->sequence;
        return PROGRESS;
    }
    if (catcher->sequence == ring->next)
        return PROGRESS_AT_HEAD;
    segment = ring_find(ring, catcher->sequence, &index);
    while (index < segment->count && has_room(catcher, bytes_before)) {
        const struct segment_entry *entry;
        struct sl_slice tail;
        size_t next;

        if (next_wanted(catcher, segment, index, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        for (; index < next; index++) {
            if (completes(catcher, segment->entries[index].id))
                return PROGRESS_COMPLETE;
            if (tell_if_rewound(catcher, &segment->entries[index]) < 0)
                return PROGRESS_OUT_OF_MEMORY;
            pass_by(catcher, &segment->entries[index]);
        }
        if (index == segment->count)
            break;
        entry = &segment->entries[index++];
        if (completes(catcher, entry->id))
            return PROGRESS_COMPLETE;
        if (tell_if_rewound(catcher, entry) < 0 || give_entry(catcher, entry, tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        pass_by(catcher, entry);
    }
    return PROGRESS;
}

/* Does it stand behind the last rewound gap of a shard, and not before, too? */
static void find_skips(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t looked_for = 0, found = 0;

    if (ring->last_rewind < ring->oldest)
        return;
    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        const struct ring_rewind *rewind = &ring->rewinds[shard];
        uint64_t after = catcher->after[shard];

        if (rewind->sequence < ring->oldest || catcher->skips[shard] == rewind->sequence ||
            after <= rewind->from || after > rewind->to)
            continue;
        if (after != looked_for)
            found = ring_first_with(ring, looked_for = after);
        if (found > rewind->sequence)
            catcher->skips[shard] = rewind->sequence;
    }
}

static enum progress enter_ring(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    catcher->in_ring = true;
    catcher->rewound = (struct gap){0};
    catcher->entered_ring_at = least_after(catcher);
    catcher->sequence = ring->oldest;
    if (ring->lost_unlogged <= catcher->unlogged_from)
        return PROGRESS;
    catcher->unlogged_from = ring->lost_unlogged;
    return give_gap(catcher, 0, catcher->left_ring_at, catcher_position(catcher), GAP_UNLOGGED) < 0
               ? PROGRESS_OUT_OF_MEMORY
               : PROGRESS;
}

/* --- from the log --- */

/* The log's end, as far as this batch knows. */
static enum progress end_of_log(struct catcher *catcher, struct cached_batch *batch)
{
    struct catch_up *catch_up = catcher->catch_up;
    const struct ring *ring = catch_up->ring;
    uint32_t shard = batch->shard;
    uint64_t *after = &catcher->after[shard];
    bool has_begun = catcher->begun >> shard & 1;
    uint64_t lost_to = batch->is_unreadable ? ring->lost[shard] : batch->known;

    if (!is_certain(catcher, shard) && batch->number <= catcher->came_after) {
        log_cache_drop(catch_up->log, batch); /* from before that event may have been logged */
        return PROGRESS_NEEDS_LOG;
    }
    if (!is_certain(catcher, shard))
        *after = ring->passed[shard]; /* no event of ours, and in the future */
    if (*after >= ring->lost[shard])
        return PROGRESS;
    if (*after >= lost_to) { /* the ring has lost more since the batch was read */
        log_cache_drop(catch_up->log, batch);
        return PROGRESS_NEEDS_LOG;
    }
    if (has_begun && batch->is_trimmed && batch->segment->count == 0)
        return PROGRESS_OVERTAKEN;
    if (give_gap(catcher, shard, *after, lost_to,
                 batch->is_unreadable ? GAP_REDIS : GAP_RETENTION) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    *after = lost_to;
    return PROGRESS;
}

/* What it has been given, or told, of the shard. */
static uint64_t had_of_shard(const struct catcher *catcher, uint32_t shard)
{
    uint64_t after = catcher->after[shard];

    return sl_id_shard(catcher->had) == shard && catcher->had > after ? catcher->had : after;
}

static void reach(struct catcher *catcher, uint64_t id)
{
    if (id > catcher->reached)
        catcher->reached = lower(id, catcher->reaches);
}

/* What the log does not hold any more between what was given and this entry. A client that is told
 * so when it begins goes on, and so does one that comes to a hole; one that was too slow for the
 * log comes back and is told then. */
static enum progress tell_missing(struct catcher *catcher, const struct cached_batch *batch,
                                  size_t index)
{
    uint32_t shard = batch->shard;
    uint64_t had = had_of_shard(catcher, shard), previous = batch->segment->entries[index].previous;

    if (tell_rewound(catcher, shard, previous) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    if (previous <= had)
        return PROGRESS;
    if (catcher->begun >> shard & 1 && index == 0 && batch->is_trimmed)
        return PROGRESS_OVERTAKEN;
    if (give_gap(catcher, shard, had, previous, GAP_RETENTION) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    catcher->after[shard] = previous;
    reach(catcher, previous);
    return PROGRESS;
}

static void pass_log(struct catcher *catcher, const struct cached_batch *batch, size_t from,
                     size_t to)
{
    uint64_t id = batch->segment->entries[to - 1].id;

    assert(from < to && id > catcher->after[batch->shard]);
    catcher->after[batch->shard] = id;
    catcher->begun |= UINT64_C(1) << batch->shard;
    catcher->sequence += to - from;
    reach(catcher, id);
}

void catcher_ask_log(struct catcher *catcher, uint32_t shard)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catch_up->log)
        log_cache_ask(catch_up->log, shard, catcher->after[shard], catch_up->ring->passed[shard]);
}

/* Where a shard's log goes on. */
struct branch {
    struct cached_batch *batch; /* NULL: it has ended, or its batch is not here */
    size_t index;
    uint64_t id; /* of the entry there, or of the last that is missing before it */
};

static uint64_t id_of_branch(const struct catcher *catcher, const struct branch *branch)
{
    const struct segment_entry *entry = &branch->batch->segment->entries[branch->index];

    return entry->previous > had_of_shard(catcher, branch->batch->shard) ? entry->previous
                                                                         : entry->id;
}

static enum progress find_branch(struct catcher *catcher, uint32_t shard, struct branch *ret)
{
    struct log_cache *log = catcher->catch_up->log;
    struct cached_batch *batch = log ? log_cache_find(log, shard, catcher->after[shard]) : NULL;

    *ret = (struct branch){.id = UINT64_MAX};
    if (!batch)
        return PROGRESS_NEEDS_LOG;
    ret->index = segment_find_above(batch->segment, catcher->after[shard]);
    if (ret->index < batch->segment->count) {
        ret->batch = batch;
        ret->id = id_of_branch(catcher, ret);
        return PROGRESS;
    }
    return end_of_log(catcher, batch);
}

/* The first index from `index` on with an id that is not below `limit`. */
static size_t end_of_branch(const struct segment *segment, size_t index, uint64_t limit)
{
    if (segment->entries[index].id >= limit)
        return index;
    if (index + 1 < segment->count && segment->entries[index + 1].id < limit)
        return segment_find_above(segment, limit - 1);
    return index + 1;
}

/* Reads on in the branch's batch, up to below the id `limit`. */
static enum progress read_branch(struct catcher *catcher, struct branch *branch, uint64_t limit,
                                 uint64_t bytes_before)
{
    struct cached_batch *batch = branch->batch;
    const struct segment_entry *entries = batch->segment->entries;
    size_t end = end_of_branch(batch->segment, branch->index, limit);
    enum progress progress;
    struct sl_slice tail;
    size_t next, seen, hole;

    if (end == branch->index) /* only what is missing before it */
        return tell_missing(catcher, batch, end);
    while (branch->index < end && has_room(catcher, bytes_before)) {
        size_t index = branch->index;

        progress = tell_missing(catcher, batch, index);
        if (progress != PROGRESS)
            return progress;
        if (next_wanted(catcher, batch->segment, index, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        seen = next < end ? next + 1 : end;
        hole = segment_find_hole(batch->segment, index, seen);
        if (hole < seen || next >= end) {
            pass_log(catcher, batch, index, hole);
            branch->index = hole;
            continue;
        }
        if (next > index)
            pass_log(catcher, batch, index, next);
        if (entries[next].id != catcher->had && offer(catcher, entries[next].event, tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        pass_log(catcher, batch, next, next + 1);
        branch->index = next + 1;
    }
    return PROGRESS;
}

/* All the logs, for one step. */
struct merge {
    struct branch branches[SL_SHARDS_MAX];
    uint8_t heap[SL_SHARDS_MAX]; /* the shards whose logs go on, the oldest event's first */
    uint32_t count;
    uint32_t missing; /* a shard whose batch is not here; UINT32_MAX: none */
    uint32_t lacking; /* shards of which the ring does not have the rest */
};

static bool is_before(const struct merge *merge, uint32_t a, uint32_t b)
{
    return merge->branches[merge->heap[a]].id < merge->branches[merge->heap[b]].id;
}

/* The one at `at` may be newer than those below it. */
static void sift_down(struct merge *merge, uint32_t at)
{
    for (;;) {
        uint32_t first = at, below = 2 * at + 1;
        uint8_t shard = merge->heap[at];

        for (uint32_t i = below; i < below + 2 && i < merge->count; i++) {
            if (is_before(merge, i, first))
                first = i;
        }
        if (first == at)
            return;
        merge->heap[at] = merge->heap[first];
        merge->heap[first] = shard;
        at = first;
    }
}

/* The id of the event that follows when the first branch has been read; UINT64_MAX: none does. */
static uint64_t second_id(const struct merge *merge)
{
    uint64_t id = UINT64_MAX;

    for (uint32_t i = 1; i < 3 && i < merge->count; i++) {
        if (merge->branches[merge->heap[i]].id < id)
            id = merge->branches[merge->heap[i]].id;
    }
    return id;
}

/* Nothing is left of this shard's log. What it has got since lies in the ring, and behind what was
 * given of it. */
static uint64_t reaches_without(const struct catcher *catcher, uint32_t shard)
{
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t after = catcher->after[shard];
    uint64_t before_ring = id_floor_from(&ring->floor, ring->oldest) - 1;

    if (after >= ring->head[shard])
        return UINT64_MAX;
    return after > before_ring ? after : before_ring;
}

/* All batches are here: up to where is everything given, and how far may that go while they are
 * read in the order of ids? */
static void find_reached(struct catcher *catcher, const struct merge *merge)
{
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t first = merge->count > 0 ? merge->branches[merge->heap[0]].id : ring->newest + 1;

    catcher->reaches = UINT64_MAX;
    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        if (!merge->branches[shard].batch)
            catcher->reaches = lower(catcher->reaches, reaches_without(catcher, shard));
    }
    catcher_has_reached(catcher,
                        lower(first == catcher->had ? first : first - 1, catcher->reaches));
}

/* Looks where every log goes on, and asks for the batches that are not here. */
static enum progress merge_begin(struct catcher *catcher, struct merge *merge)
{
    const struct ring *ring = catcher->catch_up->ring;

    merge->count = merge->lacking = 0;
    merge->missing = UINT32_MAX;
    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        enum progress progress = find_branch(catcher, shard, &merge->branches[shard]);

        if (progress == PROGRESS_NEEDS_LOG) {
            merge->missing = shard;
            catcher_ask_log(catcher, shard);
        } else if (progress != PROGRESS) {
            return progress;
        }
        merge->lacking += !ring_has_rest_of(catcher, shard);
        if (merge->branches[shard].batch)
            merge->heap[merge->count++] = (uint8_t)shard;
    }
    for (uint32_t i = merge->count / 2; i-- > 0;)
        sift_down(merge, i);
    if (merge->missing == UINT32_MAX)
        find_reached(catcher, merge);
    else
        catcher->reaches = catcher->reached;
    return PROGRESS;
}

/* The log that was read goes on, or does not. */
static enum progress merge_go_on(struct catcher *catcher, struct merge *merge)
{
    uint32_t shard = merge->heap[0];
    struct branch *branch = &merge->branches[shard];
    enum progress progress = PROGRESS;

    if (branch->index < branch->batch->segment->count)
        branch->id = id_of_branch(catcher, branch);
    else
        progress = find_branch(catcher, shard, branch);
    if (!branch->batch) {
        merge->heap[0] = merge->heap[--merge->count];
        catcher->reaches = lower(catcher->reaches, reaches_without(catcher, shard));
    }
    sift_down(merge, 0);
    return progress;
}

/* Reads in the log whose next event is the oldest, until another's is. */
static enum progress merge_read(struct catcher *catcher, struct merge *merge, uint64_t bytes_before)
{
    uint32_t shard = merge->heap[0];
    struct branch *branch = &merge->branches[shard];
    bool was_lacking = !ring_has_rest_of(catcher, shard);
    enum progress progress;

    assert(branch->batch && branch->index < branch->batch->segment->count);
    if (catcher->batch != branch->batch->number)
        log_cache_note_use(catcher->catch_up->log, branch->batch);
    catcher->batch = branch->batch->number;
    progress = read_branch(catcher, branch, second_id(merge), bytes_before);
    if (progress == PROGRESS)
        progress = merge_go_on(catcher, merge);
    merge->lacking -= was_lacking && ring_has_rest_of(catcher, shard);
    return progress;
}

/* Reads until the ring has the rest, or a batch is missing. When the batches of several logs push
 * each other out of memory, it takes what is there at last, in an order between shards that is not
 * promised. */
static enum progress read_log(struct catcher *catcher, uint64_t bytes_before)
{
    uint32_t shards = catcher->catch_up->ring->shards;
    struct merge merge;
    enum progress progress;

    find_skips(catcher);
    if (ring_has_rest(catcher))
        return enter_ring(catcher);
    progress = merge_begin(catcher, &merge);
    if (progress != PROGRESS)
        return progress;
    if (merge.missing < shards && (merge.count == 0 || catcher->waits <= 2 * shards)) {
        catcher->waits_for_shard = merge.missing;
        return PROGRESS_NEEDS_LOG;
    }
    while (progress == PROGRESS && merge.count > 0 && merge.lacking > 0 &&
           has_room(catcher, bytes_before)) {
        catcher->waits = 0;
        if (merge.missing == UINT32_MAX &&
            client_is_beyond(catcher->client->until, merge.branches[merge.heap[0]].id))
            return PROGRESS_COMPLETE;
        progress = merge_read(catcher, &merge, bytes_before);
        if (merge.missing < shards)
            break; /* it may have come */
    }
    return progress == PROGRESS_NEEDS_LOG ? PROGRESS : progress; /* it is asked for in its turn */
}

/* --- both --- */

enum progress catcher_read(struct catcher *catcher)
{
    uint64_t bytes_before = catcher->outbox.bytes;
    enum progress progress;

    if (!lane_is_ready(catcher->lane))
        return PROGRESS_NEEDS_LANE;
    do {
        progress =
            catcher->in_ring ? read_ring(catcher, bytes_before) : read_log(catcher, bytes_before);
    } while (progress == PROGRESS && has_room(catcher, bytes_before));
    return progress;
}
