/* look_back.c - searches one segment at a time, from the newest to the oldest.
 *
 * A segment, of the ring or a batch of a log, is matched as for clients that catch up, and then
 * walked from its end. For each shard there is the id up to which events have not been looked at.
 * The log with the highest of these ids is read next, and what is found in the logs is kept in the
 * order of ids, so that the newest events of all shards remain. The ids of deleted posts are kept
 * in a hash set.
 *
 * Limits: `wanted` references to events, with LOOK_BACK_BYTES in total, and an id for each deletion
 * among the events looked at: the ring, and LOOK_BACK_EVENTS. */
#include "gateway/delivery/look_back.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/delivery/id_set.h"

struct found {
    struct event *event;
    char *tail; /* NULL: none */
    size_t tail_size;
};

struct look_back {
    const struct ring *ring;
    size_t wanted, count;
    struct found *found; /* newest first; an array of `wanted` */
    size_t of_ring;      /* found in the ring, before all others */
    size_t bytes;
    struct id_set deleted; /* posts */
    bool keeps_deletions;
    uint64_t sequence;            /* of the ring: entries below it have not been looked at */
    size_t looked;                /* number of logged events */
    uint64_t rest[SL_SHARDS_MAX]; /* by shard: ids up to it are left; 0: none */
};

struct look_back *look_back_new(const struct ring *ring, uint32_t wanted, bool keeps_deletions)
{
    struct look_back *look_back = mem_zalloc(sizeof(*look_back));

    if (!look_back)
        return NULL;
    look_back->ring = ring;
    look_back->wanted = wanted;
    look_back->keeps_deletions = keeps_deletions;
    look_back->sequence = ring->next;
    memcpy(look_back->rest, ring->head, sizeof(look_back->rest));
    look_back->found = mem_alloc(mem_array_size(wanted, sizeof(*look_back->found)));
    if (!look_back->found) {
        look_back_free(look_back);
        return NULL;
    }
    return look_back;
}

static void let_go(struct look_back *look_back, struct found *found)
{
    look_back->bytes -= found->event->bytes;
    event_unref(found->event);
    mem_free(found->tail);
}

void look_back_free(struct look_back *look_back)
{
    if (!look_back)
        return;
    while (look_back->count > 0)
        let_go(look_back, &look_back->found[--look_back->count]);
    mem_free(look_back->found);
    id_set_done(&look_back->deleted);
    mem_free(look_back);
}

/* --- found events --- */

static bool has_enough(const struct look_back *look_back)
{
    return look_back->count == look_back->wanted || look_back->bytes >= LOOK_BACK_BYTES;
}

/* Events of the logs are sorted by id, after those of the ring. */
static size_t place_of(const struct look_back *look_back, const struct event *event, bool is_log)
{
    size_t at = look_back->count;

    while (is_log && at > look_back->of_ring && look_back->found[at - 1].event->id < event->id)
        at--;
    return at;
}

static int keep(struct look_back *look_back, struct event *event, struct sl_slice tail, bool is_log)
{
    size_t at = place_of(look_back, event, is_log);
    struct found found = {.event = event, .tail_size = tail.size};

    if (has_enough(look_back)) {
        if (at == look_back->count)
            return 0;
        let_go(look_back, &look_back->found[--look_back->count]);
    }
    if (tail.size > 0) {
        found.tail = mem_copy(tail.data, tail.size);
        if (!found.tail)
            return -ENOMEM;
    }
    event_ref(event);
    memmove(&look_back->found[at + 1], &look_back->found[at],
            (look_back->count - at) * sizeof(found));
    look_back->found[at] = found;
    look_back->count++;
    look_back->bytes += event->bytes;
    look_back->of_ring += !is_log;
    return 0;
}

/* --- a segment --- */

static bool is_passed_over(const struct look_back *look_back, const struct event *event)
{
    if (event->kind == EVENT_DELETE)
        return !look_back->keeps_deletions;
    return event->kind == EVENT_POST && id_set_has(&look_back->deleted, event->view.sample_id);
}

/* Determines which of the first `end` entries the lane wants. */
static int find_wanted(struct lane *lane, struct segment *segment, size_t end,
                       uint64_t ret_wanted[static SEGMENT_EVENTS / 64])
{
    struct sl_slice tail;
    size_t index = 0;
    int r;

    memset(ret_wanted, 0, SEGMENT_EVENTS / 8);
    while (index < end) {
        r = lane_next_wanted(lane, segment, index, &index, &tail);
        if (r < 0)
            return r;
        if (index < end)
            ret_wanted[index / 64] |= UINT64_C(1) << index % 64;
        index++;
    }
    return 0;
}

static int look_at_entry(struct look_back *look_back, struct lane *lane, struct segment *segment,
                         size_t index, bool is_wanted, bool is_log)
{
    struct event *event = segment->entries[index].event;
    struct sl_slice tail;
    int r = 0;

    if (!event || !event_is_for_clients(event))
        return 0;
    if (event->kind == EVENT_DELETE)
        r = id_set_add(&look_back->deleted, event->view.sample_id);
    if (r < 0 || !is_wanted || is_passed_over(look_back, event))
        return r;
    r = lane_next_wanted(lane, segment, index, &index, &tail); /* for its tail */
    return r < 0 ? r : keep(look_back, event, tail, is_log);
}

/* From the last of the first `end` entries to the first. 0; -ENOMEM. */
static int look_at(struct look_back *look_back, struct lane *lane, struct segment *segment,
                   size_t end, bool is_log)
{
    uint64_t wanted[SEGMENT_EVENTS / 64];
    int r = find_wanted(lane, segment, end, wanted);

    for (size_t index = end; r == 0 && index-- > 0;) {
        const struct segment_entry *entry = &segment->entries[index];

        if (!is_log && has_enough(look_back))
            break;
        r = look_at_entry(look_back, lane, segment, index, wanted[index / 64] >> index % 64 & 1,
                          is_log);
        look_back->looked += entry->id > 0;
        if (!is_log && entry->id && entry->previous < look_back->rest[entry->event->shard])
            look_back->rest[entry->event->shard] = entry->previous;
    }
    return r;
}

/* --- the ring, then the logs --- */

static int look_at_ring(struct look_back *look_back, struct lane *lane, size_t *ret_events)
{
    struct segment *segment;
    size_t index;

    segment = ring_find(look_back->ring, look_back->sequence - 1, &index);
    look_back->sequence -= index + 1;
    *ret_events = index + 1;
    return look_at(look_back, lane, segment, index + 1, false);
}

/* The shard whose log has the newest event that was not looked at; UINT32_MAX: no log can have an
 * event newer than those found. */
static uint32_t next_shard(const struct look_back *look_back)
{
    const struct found *oldest = &look_back->found[look_back->count - 1];
    uint32_t next = UINT32_MAX;

    for (uint32_t shard = 0; shard < look_back->ring->shards; shard++) {
        uint64_t rest = look_back->rest[shard];

        if (rest == 0 || (has_enough(look_back) &&
                          (look_back->count == look_back->of_ring || rest < oldest->event->id)))
            continue;
        if (next == UINT32_MAX || rest > look_back->rest[next])
            next = shard;
    }
    return next;
}

enum looking look_back_step(struct look_back *look_back, struct lane *lane, struct log_cache *log,
                            size_t *ret_events, uint32_t *ret_shard)
{
    struct cached_batch *batch;
    uint32_t shard;
    uint64_t rest;

    *ret_events = 0;
    if (look_back->sequence > look_back->ring->oldest && !has_enough(look_back))
        return look_at_ring(look_back, lane, ret_events) < 0 ? LOOKING_FAILED : LOOKING;
    shard = next_shard(look_back);
    if (!log || shard == UINT32_MAX || look_back->looked >= LOOK_BACK_EVENTS)
        return LOOKING_HAS_ENDED;
    rest = look_back->rest[shard];
    batch = log_cache_find_back(log, shard, rest);
    if (!batch) {
        *ret_shard = shard;
        return log_cache_ask_back(log, shard, rest) < 0 ? LOOKING_FAILED : LOOKING_WAITS;
    }
    log_cache_note_use(log, batch);
    look_back->rest[shard] = batch->after;
    *ret_events = segment_find_above(batch->segment, rest);
    return look_at(look_back, lane, batch->segment, *ret_events, true) < 0 ? LOOKING_FAILED
                                                                           : LOOKING;
}

void look_back_batch(struct look_back *look_back, uint32_t shard, uint64_t before,
                     const struct cached_batch *batch)
{
    const struct segment *segment = batch ? batch->segment : NULL;

    if (look_back->rest[shard] == before)
        look_back->rest[shard] = segment ? segment->entries[segment->count - 1].id : 0;
}

int look_back_give(const struct look_back *look_back, struct outbox *outbox)
{
    struct sl_cursor before = {.id = 0};

    for (size_t i = look_back->count; i-- > 0;) {
        const struct found *found = &look_back->found[i];
        struct sl_slice tail =
            found->tail ? sl_slice(found->tail, found->tail_size) : SL_SLICE_NONE;

        if (outbox_append(outbox, found->event, &before, tail, 0) < 0)
            return -ENOMEM;
        before.id = found->event->id ? found->event->id : before.id;
    }
    return 0;
}
