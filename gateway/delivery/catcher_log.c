/* catcher_log.c - merges the logs of several shards by id.
 *
 * During a step, a heap contains the next position in each log. Building it costs a look at every
 * shard once per step; after that, only the shard that was read is looked at. A shard of which the
 * ring has lost nothing is not read at all, and the others only up to what the ring has lost.
 * Several batches are needed at the same time, one of each of these shards. They are pinned for one
 * catcher at a time until all have arrived, so that catchers that push each other's batches out of
 * memory make progress one after the other. */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "gateway/delivery/catcher_parts.h"

enum { MAX_AHEAD_MS = 1000 };

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool ring_has_rest_of(const struct catcher *catcher, uint32_t shard)
{
    return catcher_had_of_shard(catcher, shard) >= catcher_log_end(catcher, shard) ||
           (!catcher->counter && /* the client is after that */
            catcher->skips[shard] >= catcher->catch_up->ring->oldest);
}

/* It has not reached the last rewound gap of the shard. */
static bool is_before(const struct catcher *catcher, uint32_t shard)
{
    const struct ring *ring = catcher->catch_up->ring;
    const struct ring_rewind *rewind = &ring->rewinds[shard];
    uint64_t at = catcher_at_shard(catcher, shard);

    return at <= rewind->from || (ring->shards == 1 && at > rewind->to);
}

/* Finds the rewound gaps of a shard after which, and not before which, the client is. If it is not
 * after the last one, it may be after others. */
static void find_skips(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t looked_for = 0, found = 0;

    if (catcher->counter || ring->last_rewind < ring->oldest)
        return;
    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        const struct ring_rewind *rewind = &ring->rewinds[shard];
        uint64_t at = catcher_at_shard(catcher, shard);
        bool has_others = ring->shards > 1 && rewind->before >= ring->oldest;

        if (rewind->sequence < ring->oldest || catcher->skips[shard] == rewind->sequence ||
            (is_before(catcher, shard) && !has_others))
            continue;
        if (at != looked_for)
            found = ring_first_with(ring, looked_for = at);
        if (found > rewind->sequence && !is_before(catcher, shard))
            catcher->skips[shard] = rewind->sequence;
        else if (has_others && found && found < rewind->sequence)
            catcher->skips[shard] = found - 1;
    }
}

void catcher_ask_log(struct catcher *catcher, uint32_t shard)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catch_up->log)
        log_cache_ask(catch_up->log, shard, catcher_after(catcher, shard),
                      catch_up->ring->passed[shard]);
}

void catcher_release_batches(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catch_up->pinner != catcher)
        return;
    catch_up->pinner = NULL;
    if (catch_up->log)
        log_cache_unpin_all(catch_up->log);
}

/* NULL: it is not here, but was requested. */
static struct cached_batch *find_batch(struct catcher *catcher, uint32_t shard)
{
    struct log_cache *log = catcher->catch_up->log;
    struct cached_batch *batch =
        log ? log_cache_find(log, shard, catcher_after(catcher, shard)) : NULL;

    if (!batch)
        catcher_ask_log(catcher, shard);
    return batch;
}

static bool has_as_new_as(const struct cached_batch *batch, uint64_t id)
{
    return segment_find_above(batch->segment, id - 1) < batch->segment->count;
}

/* A batch of the shard's log that was requested after the client came, or that contains its
 * event. */
static struct cached_batch *find_sure_batch(struct catcher *catcher, uint32_t shard)
{
    struct cached_batch *batch;

    while ((batch = find_batch(catcher, shard)) != NULL && batch->number <= catcher->came_after &&
           !has_as_new_as(batch, catcher->at.id))
        log_cache_drop(catcher->catch_up->log, batch); /* it may be older than the event */
    return batch;
}

/* The shard's log contains nothing as new as the client's cursor: a failover has lost it, or it is
 * not the id of an event. What the cursor says about the other shards remains valid if that can
 * have happened: there is less than MAX_AHEAD_MS to wait. */
static void come_without(struct catcher *catcher, uint32_t shard)
{
    bool can_have_happened = sl_id_time_ms(catcher->at.id) <= clock_wall_ms() + MAX_AHEAD_MS;

    if (catcher->catch_up->ring->shards > 1 && can_have_happened)
        sl_cursor_lower(&catcher->had, shard, catcher->came_newest);
    else
        catcher->had = (struct sl_cursor){.id = catcher->came_newest};
    position_set(&catcher->at, &catcher->had);
}

/* The client came with an id above the newest that has passed: of an event that has not passed yet,
 * or of no event. The log shows which. If it contains nothing as new as that, the client begins
 * with what has happened since it came. */
static enum progress make_sure(struct catcher *catcher)
{
    uint32_t shard = sl_id_shard(catcher->at.id);
    struct cached_batch *batch;

    if (catch_up_has_heard_of(catcher->catch_up, catcher->at.id)) {
        catcher->is_unsure = false;
        return PROGRESS;
    }
    batch = find_sure_batch(catcher, shard);
    if (!batch) {
        catcher->waits_for_shard = shard;
        return PROGRESS_NEEDS_LOG;
    }
    catcher->is_unsure = false;
    if (!has_as_new_as(batch, catcher->at.id))
        come_without(catcher, shard);
    return PROGRESS;
}

/* The id after which nothing of the shard has reached it. That may be further than its position,
 * because others were sent events before it was known that some of this shard's are missing. */
static uint64_t missing_from(const struct catcher *catcher, uint32_t shard)
{
    uint64_t last = catcher->last[shard], had = sl_cursor_of_shard(&catcher->had, shard);

    if (!last)
        return catcher_at_shard(catcher, shard);
    return catcher->claims >> shard & 1 && had > last ? had : last;
}

/* Reports what neither the log nor the ring contains up to here. A client that is told this at its
 * beginning, or at a hole, continues; one that was too slow for the log reconnects, and is told
 * then. The gap is reported before any event after the client's position, because its cursor does
 * not cover the gap before that. */
static enum progress tell_missing(struct catcher *catcher, const struct cached_batch *batch,
                                  uint64_t to, enum gap_reason reason)
{
    uint32_t shard = batch->shard;

    if (catcher_tell_gap(catcher, shard, missing_from(catcher, shard), to, reason) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    catcher->last[shard] = to;
    if (catcher->catch_up->ring->shards == 1)
        catcher->at.id = to;
    return PROGRESS;
}

/* The log has lost what the client was about to read, and it could not be told in the middle of
 * other events. While reading for trends without printing, the client is sent nothing, so it can
 * continue. */
static bool is_overtaken(const struct catcher *catcher, uint32_t shard)
{
    return catcher->last[shard] &&
           !(catcher->counter && catcher->last[shard] <= counter_silent_until(catcher->counter));
}

/* The end of the log, as far as this batch shows. */
static enum progress end_of_log(struct catcher *catcher, struct cached_batch *batch)
{
    struct catch_up *catch_up = catcher->catch_up;
    uint32_t shard = batch->shard;
    uint64_t lost = catcher_log_end(catcher, shard);

    if (!batch->is_unreadable && batch->known < lost) { /* the ring has lost more since then */
        log_cache_drop(catch_up->log, batch);
        catcher_ask_log(catcher, shard);
        return PROGRESS_NEEDS_LOG;
    }
    if (is_overtaken(catcher, shard) && batch->is_trimmed && batch->segment->count == 0)
        return PROGRESS_OVERTAKEN;
    return tell_missing(catcher, batch, lost, batch->is_unreadable ? GAP_REDIS : GAP_RETENTION);
}

/* The position in the log of a shard. */
struct branch {
    struct cached_batch *batch; /* NULL: it has ended, or its batch is not here */
    size_t index;
    uint64_t id; /* of the entry at `index` */
};

/* Reports what is missing before the current entry. The branch ends with the first entry that is in
 * the ring. */
static enum progress look_at_entry(struct catcher *catcher, struct branch *branch)
{
    struct cached_batch *batch = branch->batch;
    const struct segment_entry *entry = &batch->segment->entries[branch->index];
    uint32_t shard = batch->shard;
    uint64_t lost = catcher_log_end(catcher, shard);
    uint64_t missing_to = lower(entry->previous, lost);

    branch->id = entry->id;
    if (catcher_tell_rewound(catcher, shard, entry->previous) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    if (entry->id > lost)
        branch->batch = NULL;
    if (missing_to > catcher_had_of_shard(catcher, shard)) {
        if (is_overtaken(catcher, shard) && branch->index == 0 && batch->is_trimmed)
            return PROGRESS_OVERTAKEN;
        return tell_missing(catcher, batch, missing_to, GAP_RETENTION);
    }
    if (entry->id > lost) /* what was lost no longer counts */
        catcher->last[shard] = lost;
    return PROGRESS;
}

/* The ring has the rest of the shard, or its log continues with an event that the ring has lost. */
static enum progress find_branch(struct catcher *catcher, uint32_t shard, struct branch *ret)
{
    struct cached_batch *batch;

    *ret = (struct branch){.id = UINT64_MAX};
    if (ring_has_rest_of(catcher, shard))
        return PROGRESS;
    batch = find_batch(catcher, shard);
    if (!batch)
        return PROGRESS_NEEDS_LOG;
    if (catcher->catch_up->pinner == catcher)
        log_cache_pin(batch);
    ret->index = segment_find_above(batch->segment, catcher_had_of_shard(catcher, shard));
    if (ret->index == batch->segment->count)
        return end_of_log(catcher, batch);
    ret->batch = batch;
    return look_at_entry(catcher, ret);
}

/* The first index from `index` on with an id above `last`. */
static size_t end_of_branch(const struct segment *segment, size_t index, uint64_t last)
{
    if (index + 1 < segment->count && segment->entries[index + 1].id <= last)
        return segment_find_above(segment, last);
    return index + 1;
}

static void pass_log(struct catcher *catcher, const struct cached_batch *batch, size_t from,
                     size_t to)
{
    uint64_t id = batch->segment->entries[to - 1].id;

    assert(from < to && id > catcher_had_of_shard(catcher, batch->shard));
    catcher->last[batch->shard] = id;
    catcher->sequence += to - from;
    catcher_move_in_log(catcher, &catcher->at, batch->shard, id);
}

/* Reads the branch's batch from its current entry up to the id `last`. */
static enum progress read_branch(struct catcher *catcher, struct branch *branch, uint64_t last,
                                 uint64_t bytes_before)
{
    struct cached_batch *batch = branch->batch;
    const struct segment_entry *entries = batch->segment->entries;
    size_t end = end_of_branch(batch->segment, branch->index, last);
    enum progress progress;
    struct sl_slice tail;
    size_t next, seen, hole;
    int r;

    while (branch->index < end && catcher_has_room(catcher, bytes_before)) {
        size_t index = branch->index;

        progress = look_at_entry(catcher, branch);
        if (progress != PROGRESS)
            return progress;
        if (catcher_next_wanted(catcher, batch->segment, index, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        seen = next < end ? next + 1 : end;
        if (catcher_tell_marks(catcher, batch->segment, index, seen) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        hole = segment_find_hole(batch->segment, index, seen);
        if (hole < seen || next >= end) {
            pass_log(catcher, batch, index, hole);
            branch->index = hole;
            continue;
        }
        if (next > index)
            pass_log(catcher, batch, index, next);
        r = catcher_offer(catcher, entries[next].event, tail);
        if (r < 0)
            return r == -EAGAIN ? PROGRESS_BUCKET : PROGRESS_OUT_OF_MEMORY;
        pass_log(catcher, batch, next, next + 1);
        branch->index = next + 1;
    }
    return PROGRESS;
}

/* All logs, for one step. */
struct merge {
    struct branch branches[SL_SHARDS_MAX];
    uint8_t heap[SL_SHARDS_MAX]; /* shards with a next event, oldest event first */
    uint32_t count;
};

static bool goes_before(const struct merge *merge, uint32_t a, uint32_t b)
{
    return merge->branches[merge->heap[a]].id < merge->branches[merge->heap[b]].id;
}

/* The element at `at` may be newer than those below it. */
static void sift_down(struct merge *merge, uint32_t at)
{
    for (;;) {
        uint32_t first = at, below = 2 * at + 1;
        uint8_t shard = merge->heap[at];

        for (uint32_t i = below; i < below + 2 && i < merge->count; i++) {
            if (goes_before(merge, i, first))
                first = i;
        }
        if (first == at)
            return;
        merge->heap[at] = merge->heap[first];
        merge->heap[first] = shard;
        at = first;
    }
}

/* The id of the next event of the other branches; UINT64_MAX: there is none. */
static uint64_t second_id(const struct merge *merge)
{
    uint64_t id = UINT64_MAX;

    for (uint32_t i = 1; i < 3 && i < merge->count; i++) {
        if (merge->branches[merge->heap[i]].id < id)
            id = merge->branches[merge->heap[i]].id;
    }
    return id;
}

/* Finds the position in every log, and requests the batches that are not here. */
static enum progress merge_begin(struct catcher *catcher, struct merge *merge)
{
    struct catch_up *catch_up = catcher->catch_up;
    bool is_missing = false;

    merge->count = 0;
    for (uint32_t shard = 0; shard < catch_up->ring->shards; shard++) {
        enum progress progress = find_branch(catcher, shard, &merge->branches[shard]);

        if (progress == PROGRESS_NEEDS_LOG) {
            catcher->waits_for_shard = shard;
            is_missing = true;
        } else if (progress != PROGRESS) {
            return progress;
        }
        if (merge->branches[shard].batch)
            merge->heap[merge->count++] = (uint8_t)shard;
    }
    if (is_missing) {
        if (!catch_up->pinner)
            catch_up->pinner = catcher;
        return PROGRESS_NEEDS_LOG;
    }
    catcher_release_batches(catcher);
    for (uint32_t i = merge->count / 2; i-- > 0;)
        sift_down(merge, i);
    return PROGRESS;
}

/* Advances in the log that was read, or removes it from the heap. */
static enum progress merge_go_on(struct catcher *catcher, struct merge *merge)
{
    uint32_t shard = merge->heap[0];
    struct branch *branch = &merge->branches[shard];
    enum progress progress;

    if (branch->index < branch->batch->segment->count)
        progress = look_at_entry(catcher, branch);
    else
        progress = find_branch(catcher, shard, branch);
    if (!branch->batch)
        merge->heap[0] = merge->heap[--merge->count];
    sift_down(merge, 0);
    return progress;
}

/* Reads the log whose next event is the oldest, until another log's is older. */
static enum progress merge_read(struct catcher *catcher, struct merge *merge, uint64_t bytes_before)
{
    uint32_t shard = merge->heap[0];
    struct branch *branch = &merge->branches[shard];
    uint64_t lost = catcher_log_end(catcher, shard), next = second_id(merge);
    enum progress progress;

    assert(branch->batch && branch->index < branch->batch->segment->count);
    if (catcher->batch != branch->batch->number)
        log_cache_note_use(catcher->catch_up->log, branch->batch);
    catcher->batch = branch->batch->number;
    progress = read_branch(catcher, branch, next <= lost ? next - 1 : lost, bytes_before);
    return progress == PROGRESS ? merge_go_on(catcher, merge) : progress;
}

/* The logs continue after `until`. But what was hidden by a gap that has left the ring is read
 * before what the ring has of other shards, and late events are in the ring after newer ones. */
static enum progress end_at_until(const struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t until = catcher->client->until;

    if (catcher->counter || (until <= ring->lost_of_all && !ring_has_late(ring, until)))
        return PROGRESS_COMPLETE;
    return PROGRESS_LOG_IS_READ;
}

enum progress catcher_read_log(struct catcher *catcher, uint64_t bytes_before)
{
    struct merge merge;
    enum progress progress = PROGRESS;

    if (catcher->is_unsure)
        progress = make_sure(catcher);
    if (progress != PROGRESS)
        return progress;
    find_skips(catcher);
    progress = merge_begin(catcher, &merge);
    if (progress != PROGRESS)
        return progress;
    if (merge.count == 0)
        return PROGRESS_LOG_IS_READ;
    while (progress == PROGRESS && merge.count > 0 && catcher_has_room(catcher, bytes_before)) {
        if (client_is_beyond(catcher->client->until, merge.branches[merge.heap[0]].id))
            return end_at_until(catcher);
        progress = merge_read(catcher, &merge, bytes_before);
    }
    if (progress == PROGRESS_NEEDS_LOG || progress == PROGRESS_BUCKET)
        return PROGRESS; /* a batch is requested later */
    return progress;
}
