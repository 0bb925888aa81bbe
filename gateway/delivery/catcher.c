/* catcher.c - from what has passed, or was logged, to one client's outbox.
 *
 * Batches say which of their events the lane wants; so a catcher goes from one wanted event to the
 * next, and what lies between moves its position on. Costs are counted in bytes against the budget
 * of the turn.
 *
 * The logs of several shards are merged by id: a heap holds, for as long as a step lasts, where
 * each log goes on. Finding that out costs a look at every shard once a step; from one event to the
 * next only the shard is looked at that was read. A shard of which the ring has lost nothing is not
 * read at all, and none further than the ring has lost. It takes a batch of each of the others at
 * once: for one catcher at a time they are kept until all are here, so that catchers which push
 * each other's batches out of memory get on one after the other. */
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

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- where it stands --- */

static uint64_t of_shard(const struct catcher *catcher, uint32_t shard)
{
    return position_of_shard(&catcher->at, shard);
}

/* The same, or beyond that up to the end of what it was told is missing. */
static uint64_t had_of_shard(const struct catcher *catcher, uint32_t shard)
{
    uint64_t at = of_shard(catcher, shard), last = catcher->last[shard];

    return last > at ? last : at;
}

/* While it is not known whether its own event has happened, that one is looked for. */
uint64_t catcher_after(const struct catcher *catcher, uint32_t shard)
{
    return had_of_shard(catcher, shard) - catcher->is_unsure;
}

static bool ring_has_rest_of(const struct catcher *catcher, uint32_t shard)
{
    const struct ring *ring = catcher->catch_up->ring;

    return had_of_shard(catcher, shard) >= ring->lost[shard] ||
           catcher->skips[shard] >= ring->oldest; /* what it has stands behind that */
}

bool catch_up_has_heard_of(const struct catch_up *catch_up, uint64_t id)
{
    return id <= catch_up->ring->newest || id <= catch_up->ring->head[sl_id_shard(id)];
}

bool catcher_is_not_ahead(const struct catcher *catcher)
{
    return catcher->at.id <= catcher->catch_up->ring->newest;
}

/* It comes to this event in the ring: nothing before it, of any shard but those that were behind
 * then, is missing. */
static void move_in_ring(struct position *at, const struct event *event)
{
    const struct sl_cursor id = {.id = event->id};

    position_reach(at, event->cursor ? event->cursor : &id);
}

/* The same in the merged logs. Of shards that are behind now, more may be logged before it; late
 * events that the ring has are before it, too, and come from there, or from the log when they have
 * left it. */
static void move_in_log(const struct catcher *catcher, struct position *at, uint32_t shard,
                        uint64_t id)
{
    const struct position *passed = catcher->catch_up->settings.passed;
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t lows[SL_SHARDS_MAX];

    for (uint32_t i = 0; i < ring->shards && (passed->behind | ring->late_shards); i++)
        lows[i] = ring->late_shards >> i & 1 ? ring->lost[i] : passed->low[i];
    position_pass(at, shard, id, passed->behind | ring->late_shards, lows);
}

/* A late event passes while it is there, or has come since: what it has of the shard ends before.
 */
static bool is_late_news(const struct catcher *catcher, const struct event *event)
{
    return event->is_late && event->sequence >= catcher->came_at;
}

/* --- giving --- */

static int give_control(struct catcher *catcher, struct event *event)
{
    const struct sl_cursor before = position_cursor(&catcher->at);

    return outbox_append(&catcher->outbox, event, &before, SL_SLICE_NONE, 0);
}

static bool is_same(const struct sl_cursor *a, const struct sl_cursor *b)
{
    if (a->id != b->id || a->group_count != b->group_count)
        return false;
    for (uint32_t i = 0; i < a->group_count; i++) {
        if (a->groups[i].low != b->groups[i].low || a->groups[i].shards != b->groups[i].shards)
            return false;
    }
    return true;
}

/* What others are given of the event says where they stand. One that does not stand there, for a
 * shard is behind or the event late for it alone, is given a copy that says where it does. */
static int give_as_it_stands(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    struct position after = catcher->at;
    struct sl_cursor before, cursor, id = {.id = event->id};
    bool is_late = event->id < catcher->at.id;
    struct event *copy;
    int r;

    if (is_late_news(catcher, event))
        position_lower_shard(&after, event->shard, event->previous);
    before = position_cursor(&after);
    if (catcher->in_ring)
        move_in_ring(&after, event);
    else
        move_in_log(catcher, &after, event->shard, event->id);
    cursor = position_cursor(&after);
    if (is_late == event->is_late && is_same(&cursor, event->cursor ? event->cursor : &id))
        return outbox_append(&catcher->outbox, event, &before, tail, 0);
    copy = event_copy_with_cursor(event, &cursor, is_late);
    if (!copy)
        return -ENOMEM;
    r = outbox_append(&catcher->outbox, copy, &before, tail, 0);
    event_unref(copy);
    return r;
}

static int give(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    const struct sl_cursor before = {.id = catcher->at.id};

    if (event->id && catcher->catch_up->ring->shards > 1 &&
        (!position_is_plain(&catcher->at) || event->cursor || event->id < catcher->at.id ||
         !position_is_plain(catcher->catch_up->settings.passed)))
        return give_as_it_stands(catcher, event, tail);
    if (!event->id && !position_is_plain(&catcher->at))
        return give_control(catcher, event);
    return outbox_append(&catcher->outbox, event, &before, tail, 0);
}

static int give_control_take(struct catcher *catcher, struct event *event)
{
    int r = event ? give_control(catcher, event) : -ENOMEM;

    event_unref(event);
    return r;
}

static int give_gap(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to,
                    enum gap_reason reason)
{
    const struct gap gap = {shard, from, to, reason};

    metric_add(catcher->catch_up->settings.metrics, metric_at(METRIC_GAPS_TOLD, reason), 1);
    return give_control_take(
        catcher, gap_event(&gap, catcher->catch_up->ring->shards > 1 && reason != GAP_UNLOGGED));
}

int catcher_tell_late(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to)
{
    uint64_t had = catcher->had.id;
    const struct gap *told = &catcher->late;

    if (!catcher->has_come || had <= from || had > to)
        return 0;
    if (sl_cursor_of_shard(&catcher->had, shard) < had)
        return 0; /* it knows what it has of the shard */
    if (told->shard == shard && told->to == had && told->from <= from)
        return 0;
    catcher->late = (struct gap){shard, from, had, GAP_LATE};
    catcher->client->came_with = 0;
    return give_gap(catcher, shard, from, had, GAP_LATE);
}

/* Of the marks among these entries. */
static int tell_marks(struct catcher *catcher, const struct segment *segment, size_t from,
                      size_t to)
{
    for (; segment->has_marks && from < to; from++) {
        const struct event *event = segment->entries[from].event;

        if (event && event->kind == EVENT_LATE &&
            catcher_tell_late(catcher, event->shard, event->late_from, event->late_to) < 0)
            return -ENOMEM;
    }
    return 0;
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
    uint64_t last = catcher->last[shard];
    const struct gap *told = &catcher->rewound;

    if (sl_id_shard(last) != shard || previous >= last)
        return 0;
    if (told->shard == shard && previous >= told->from && last <= told->to)
        return 0;
    catcher->last[shard] = previous;
    return give_gap(catcher, shard, previous, last, GAP_REWOUND);
}

/* Has everything up to `until` been given, when this comes next? */
static bool completes(const struct catcher *catcher, uint64_t id)
{
    return id > catcher->at.id && client_is_beyond(catcher->client->until, id);
}

/* --- from the ring --- */

/* Whose cursor is the last of what was rewound has got it, and may have left before it was told. */
static bool knows_gap(const struct catcher *catcher, const struct event *gap)
{
    if (!gap->is_rewound)
        return gap->gap_to <= of_shard(catcher, gap->shard);
    return catcher->catch_up->ring->shards == 1 && gap->gap_to < catcher->at.id;
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
    if (event->is_late)
        return entry->id <= catcher->last[event->shard] ||
               (event->sequence < catcher->came_at &&
                entry->id <= sl_cursor_of_shard(&catcher->had, event->shard));
    return entry->id <= of_shard(catcher, event->shard) && !may_come_again(catcher, entry);
}

/* What the client has of the shard goes back as far as the shard did. Of one shard, a cursor from
 * behind the gap may have been given out by then. */
static void go_back(struct catcher *catcher, const struct event *gap)
{
    uint32_t shard = gap->shard;

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
    if (is_behind(catcher, event))
        return;
    if (event->is_rewound)
        go_back(catcher, event);
    if (!entry->id)
        return;
    if (is_late_news(catcher, event))
        position_lower_shard(&catcher->at, shard, entry->previous);
    if (entry->id >= of_shard(catcher, shard) && entry->id > catcher->last[shard])
        catcher->last[shard] = entry->id;
    move_in_ring(&catcher->at, event);
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

    if (is_behind(catcher, entry->event) || entry->id <= of_shard(catcher, shard))
        return 0;
    return tell_rewound(catcher, shard, entry->previous);
}

/* Late events that it had not come to are in the log now. */
static void leave_ring(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        const struct ring_late *late = &ring->late[shard];
        uint64_t last = catcher->last[shard];

        if (late->sequence >= catcher->sequence)
            position_lower_shard(&catcher->at, shard, last ? last : late->low);
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
        leave_ring(catcher);
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
        if (tell_marks(catcher, segment, index, next) < 0)
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
        uint64_t at = of_shard(catcher, shard);

        if (rewind->sequence < ring->oldest || catcher->skips[shard] == rewind->sequence ||
            at <= rewind->from || (ring->shards == 1 && at > rewind->to))
            continue;
        if (at != looked_for)
            found = ring_first_with(ring, looked_for = at);
        if (found > rewind->sequence)
            catcher->skips[shard] = rewind->sequence;
    }
}

static enum progress enter_ring(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    catcher_let_go_of_batches(catcher);
    for (uint32_t shard = 0; shard < ring->shards; shard++) { /* it may have been told a gap */
        if (catcher->last[shard] >= ring->lost[shard])
            move_in_log(catcher, &catcher->at, shard, ring->lost[shard]);
    }
    catcher->in_ring = true;
    catcher->rewound = (struct gap){0};
    catcher->sequence = ring->oldest;
    if (ring->lost_unlogged <= catcher->unlogged_from)
        return PROGRESS;
    catcher->unlogged_from = ring->lost_unlogged;
    return give_gap(catcher, 0, catcher->left_ring_at, catcher->at.id, GAP_UNLOGGED) < 0
               ? PROGRESS_OUT_OF_MEMORY
               : PROGRESS;
}

/* --- from the log --- */

void catcher_ask_log(struct catcher *catcher, uint32_t shard)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catch_up->log)
        log_cache_ask(catch_up->log, shard, catcher_after(catcher, shard),
                      catch_up->ring->passed[shard]);
}

void catcher_let_go_of_batches(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catch_up->pinner != catcher)
        return;
    catch_up->pinner = NULL;
    if (catch_up->log)
        log_cache_unpin_all(catch_up->log);
}

/* NULL: it is not here, but asked for. */
static struct cached_batch *find_batch(struct catcher *catcher, uint32_t shard)
{
    struct log_cache *log = catcher->catch_up->log;
    struct cached_batch *batch =
        log ? log_cache_find(log, shard, catcher_after(catcher, shard)) : NULL;

    if (!batch)
        catcher_ask_log(catcher, shard);
    return batch;
}

/* It came with an id above the newest that has passed: of an event that has not passed yet, or of
 * none. The log tells; where it has nothing as new as that, the client begins with what has
 * happened since it came. */
static enum progress make_sure(struct catcher *catcher)
{
    uint32_t shard = sl_id_shard(catcher->at.id);
    struct cached_batch *batch;

    if (catch_up_has_heard_of(catcher->catch_up, catcher->at.id)) {
        catcher->is_unsure = false;
        return PROGRESS;
    }
    batch = find_batch(catcher, shard);
    if (batch && segment_find_above(batch->segment, catcher->at.id - 1) == batch->segment->count &&
        batch->number <= catcher->came_after) {
        log_cache_drop(catcher->catch_up->log, batch); /* from before that may have been logged */
        batch = find_batch(catcher, shard);
    }
    if (!batch) {
        catcher->waits_for_shard = shard;
        return PROGRESS_NEEDS_LOG;
    }
    catcher->is_unsure = false;
    if (segment_find_above(batch->segment, catcher->at.id - 1) == batch->segment->count) {
        catcher->had = (struct sl_cursor){.id = catcher->came_newest};
        position_set(&catcher->at, &catcher->had);
    }
    return PROGRESS;
}

/* What the log does not hold any more up to here, and the ring neither. A client that is told so
 * when it begins goes on, and so does one that comes to a hole; one that was too slow for the log
 * comes back and is told then. The gap is told before anything else behind where the client stands,
 * for until then its cursor does not cover the gap. */
static enum progress tell_missing(struct catcher *catcher, const struct cached_batch *batch,
                                  uint64_t to, enum gap_reason reason)
{
    uint32_t shard = batch->shard;

    if (give_gap(catcher, shard, had_of_shard(catcher, shard), to, reason) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    catcher->last[shard] = to;
    if (catcher->catch_up->ring->shards == 1)
        catcher->at.id = to;
    return PROGRESS;
}

/* The log's end, as far as this batch knows. */
static enum progress end_of_log(struct catcher *catcher, struct cached_batch *batch)
{
    struct catch_up *catch_up = catcher->catch_up;
    uint32_t shard = batch->shard;
    uint64_t lost = catch_up->ring->lost[shard];

    if (!batch->is_unreadable && batch->known < lost) { /* the ring has lost more since then */
        log_cache_drop(catch_up->log, batch);
        catcher_ask_log(catcher, shard);
        return PROGRESS_NEEDS_LOG;
    }
    if (catcher->last[shard] && batch->is_trimmed && batch->segment->count == 0)
        return PROGRESS_OVERTAKEN;
    return tell_missing(catcher, batch, lost, batch->is_unreadable ? GAP_REDIS : GAP_RETENTION);
}

/* Where a shard's log goes on. */
struct branch {
    struct cached_batch *batch; /* NULL: it has ended, or its batch is not here */
    size_t index;
    uint64_t id; /* of the entry there */
};

/* The entry at which the branch stands: tells what is missing before it. From the first on that the
 * ring has, the branch has ended. */
static enum progress look_at_entry(struct catcher *catcher, struct branch *branch)
{
    struct cached_batch *batch = branch->batch;
    const struct segment_entry *entry = &batch->segment->entries[branch->index];
    uint32_t shard = batch->shard;
    uint64_t lost = catcher->catch_up->ring->lost[shard];
    uint64_t missing_to = lower(entry->previous, lost);

    branch->id = entry->id;
    if (tell_rewound(catcher, shard, entry->previous) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    if (entry->id > lost)
        branch->batch = NULL;
    if (missing_to > had_of_shard(catcher, shard)) {
        if (catcher->last[shard] && branch->index == 0 && batch->is_trimmed)
            return PROGRESS_OVERTAKEN;
        return tell_missing(catcher, batch, missing_to, GAP_RETENTION);
    }
    if (entry->id > lost) /* what was lost has happened no more */
        catcher->last[shard] = lost;
    return PROGRESS;
}

/* The ring has the rest of the shard, or its log goes on with an event that the ring has lost. */
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
    ret->index = segment_find_above(batch->segment, had_of_shard(catcher, shard));
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

    assert(from < to && id > had_of_shard(catcher, batch->shard));
    catcher->last[batch->shard] = id;
    catcher->sequence += to - from;
    move_in_log(catcher, &catcher->at, batch->shard, id);
}

/* Reads on in the branch's batch, from the entry at which it stands up to the id `last`. */
static enum progress read_branch(struct catcher *catcher, struct branch *branch, uint64_t last,
                                 uint64_t bytes_before)
{
    struct cached_batch *batch = branch->batch;
    const struct segment_entry *entries = batch->segment->entries;
    size_t end = end_of_branch(batch->segment, branch->index, last);
    enum progress progress;
    struct sl_slice tail;
    size_t next, seen, hole;

    while (branch->index < end && has_room(catcher, bytes_before)) {
        size_t index = branch->index;

        progress = look_at_entry(catcher, branch);
        if (progress != PROGRESS)
            return progress;
        if (next_wanted(catcher, batch->segment, index, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        seen = next < end ? next + 1 : end;
        if (tell_marks(catcher, batch->segment, index, seen) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        hole = segment_find_hole(batch->segment, index, seen);
        if (hole < seen || next >= end) {
            pass_log(catcher, batch, index, hole);
            branch->index = hole;
            continue;
        }
        if (next > index)
            pass_log(catcher, batch, index, next);
        if (offer(catcher, entries[next].event, tail) < 0)
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

/* Looks where every log goes on, and asks for the batches that are not here. */
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
    catcher_let_go_of_batches(catcher);
    for (uint32_t i = merge->count / 2; i-- > 0;)
        sift_down(merge, i);
    return PROGRESS;
}

/* The log that was read goes on, or does not. */
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

/* Reads in the log whose next event is the oldest, until another's is. */
static enum progress merge_read(struct catcher *catcher, struct merge *merge, uint64_t bytes_before)
{
    uint32_t shard = merge->heap[0];
    struct branch *branch = &merge->branches[shard];
    uint64_t lost = catcher->catch_up->ring->lost[shard], next = second_id(merge);
    enum progress progress;

    assert(branch->batch && branch->index < branch->batch->segment->count);
    if (catcher->batch != branch->batch->number)
        log_cache_note_use(catcher->catch_up->log, branch->batch);
    catcher->batch = branch->batch->number;
    progress = read_branch(catcher, branch, next <= lost ? next - 1 : lost, bytes_before);
    return progress == PROGRESS ? merge_go_on(catcher, merge) : progress;
}

/* Reads until the ring has the rest, or a batch is missing. */
static enum progress read_log(struct catcher *catcher, uint64_t bytes_before)
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
        return enter_ring(catcher);
    while (progress == PROGRESS && merge.count > 0 && has_room(catcher, bytes_before)) {
        if (completes(catcher, merge.branches[merge.heap[0]].id))
            return PROGRESS_COMPLETE;
        progress = merge_read(catcher, &merge, bytes_before);
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
