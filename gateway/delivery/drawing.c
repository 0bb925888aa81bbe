/* drawing.c - walks over the ring from the newest to the oldest entry: once to count and to find
 * deleted posts, and once to look at every n-th; or to find examples, followed by the logs.
 *
 * If the ring loses its oldest entries meanwhile, the walk ends at its new beginning. The part of a
 * slot that a log does not reach back to is not counted as time without events. */
#include "gateway/delivery/drawing.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/delivery/id_set.h"

enum {
    HOUR_MS = 3600000,
    MINUTE_MS = 60000,
    EXAMPLE_EVENTS = 500, /* of the ring, searched for examples only */
    CLOCK_EVENTS = 32     /* between two looks at the clock */
};

enum stage { STAGE_COUNT, STAGE_RING, STAGE_EXAMPLES, STAGE_LOGS, STAGE_DONE };

struct drawing {
    struct catch_up_guest guest; /* must be the first member */
    struct deliver *deliver;
    struct estimate *estimate;
    drawing_done_fn done;
    void *owner;
    enum stage stage;
    bool has_ring;           /* it covers the whole period */
    bool has_all;            /* and everything before it */
    bool has_examples;       /* enough of them */
    uint64_t from_ms, to_ms; /* Unix times of the period */
    uint64_t at, end_at;     /* of the ring: entries below `at` are left to be walked over */
    uint64_t newer_ms;       /* the time of the last entry */
    size_t passed, stride;   /* entries in the period; the distance between those looked at */
    size_t walked;           /* in this stage */
    uint64_t steps;
    unsigned slots;
    unsigned slot;         /* of the logs: this and later ones are done */
    uint64_t oldest_ms;    /* beginning of the oldest slot with data */
    uint64_t last_id;      /* the newest event of its shard's log in the slot; 0: unknown */
    bool is_missing;       /* there is none */
    struct id_set deleted; /* posts */
};

/* --- the ring ----------------------------------------------------------------------------- */

static void begin_walk(struct drawing *drawing, enum stage stage)
{
    drawing->stage = stage;
    drawing->at = drawing->end_at;
    drawing->newer_ms = drawing->to_ms;
    drawing->walked = 0;
}

/* The next older entry; NULL: there is none. */
static const struct segment_entry *walk(struct drawing *drawing)
{
    const struct ring *ring = &drawing->deliver->ring;
    const struct segment_entry *entry;
    struct segment *segment;
    size_t index;

    if (drawing->at <= ring->oldest)
        return NULL;
    segment = ring_find(ring, --drawing->at, &index);
    entry = &segment->entries[index];
    if (entry->id)
        drawing->newer_ms = sl_id_time_ms(entry->id);
    return entry;
}

static bool is_within(const struct drawing *drawing, const struct segment_entry *entry)
{
    return entry->event && event_is_for_clients(entry->event) &&
           drawing->newer_ms >= drawing->from_ms && drawing->newer_ms < drawing->to_ms;
}

static unsigned slot_of(const struct drawing *drawing, uint64_t ms)
{
    return (unsigned)((ms - drawing->from_ms) * drawing->slots /
                      (drawing->to_ms - drawing->from_ms));
}

static int keep_example(struct drawing *drawing, struct event *event)
{
    if (!drawing->has_examples && event->kind != EVENT_DELETE &&
        !(event->kind == EVENT_POST && id_set_has(&drawing->deleted, event->view.sample_id)))
        drawing->has_examples = estimate_keep_example(drawing->estimate, event);
    return 0;
}

/* 0; 1: this stage has ended; -ENOMEM. */
static int count_entry(struct drawing *drawing)
{
    const struct segment_entry *entry = walk(drawing);

    if (!entry)
        return 1;
    drawing->passed += is_within(drawing, entry);
    if (entry->event && entry->event->kind == EVENT_DELETE && entry->event->view.sample_id)
        return id_set_add(&drawing->deleted, entry->event->view.sample_id);
    return 0;
}

static int look_at_entry(struct drawing *drawing)
{
    const struct segment_entry *entry = walk(drawing);
    bool is_match;
    int r;

    if (!entry)
        return 1;
    if (!is_within(drawing, entry) || drawing->walked++ % drawing->stride != 0)
        return 0;
    r = estimate_look(drawing->estimate, slot_of(drawing, drawing->newer_ms), entry->event,
                      &is_match);
    return r == 0 && is_match ? keep_example(drawing, entry->event) : r;
}

static int find_example(struct drawing *drawing)
{
    const struct segment_entry *entry =
        drawing->has_examples || drawing->walked == EXAMPLE_EVENTS ? NULL : walk(drawing);
    bool is_match;
    int r;

    if (!entry)
        return 1;
    if (!entry->event || !event_is_for_clients(entry->event))
        return 0;
    drawing->walked++;
    r = estimate_wants(drawing->estimate, entry->event, &is_match);
    return r == 0 && is_match ? keep_example(drawing, entry->event) : r;
}

/* --- the logs ----------------------------------------------------------------------------- */

static uint64_t slot_begin_ms(const struct drawing *drawing, unsigned slot)
{
    return drawing->from_ms + (drawing->to_ms - drawing->from_ms) * slot / drawing->slots;
}

/* The last id of the slot. */
static uint64_t slot_end(const struct drawing *drawing, unsigned slot)
{
    return sl_id_first_at(slot_begin_ms(drawing, slot + 1)) - 1;
}

static int look_at_batch(struct drawing *drawing, unsigned slot, uint64_t to,
                         const struct cached_batch *batch)
{
    const struct segment *segment = batch->segment;
    const uint64_t begin_ms = slot_begin_ms(drawing, slot), end_ms = sl_id_time_ms(to) + 1;
    const size_t most = ESTIMATE_EVENTS / drawing->slots;
    uint64_t oldest_ms = end_ms;
    size_t index = segment_find_above(segment, to), count = 0;
    bool is_match;

    for (; index > 0 && count < most; index--, count++) {
        const struct segment_entry *entry = &segment->entries[index - 1];

        if (sl_id_time_ms(entry->id) < begin_ms)
            break;
        oldest_ms = sl_id_time_ms(entry->id);
        if (entry->event && estimate_look(drawing->estimate, slot, entry->event, &is_match) < 0)
            return -ENOMEM;
    }
    if (index > 0 && count < most) /* it continues before the slot */
        oldest_ms = begin_ms;
    if (oldest_ms < drawing->oldest_ms)
        drawing->oldest_ms = begin_ms > drawing->from_ms ? begin_ms : drawing->from_ms;
    estimate_set_slot(drawing->estimate, slot, (double)(end_ms - oldest_ms) / 1000,
                      1.0 / drawing->deliver->ring.shards);
    return 0;
}

/* 0; 1: all are done; -EAGAIN: waits for a batch; -ENOMEM. */
static int look_at_slot(struct drawing *drawing, struct log_cache *log)
{
    const unsigned slot = drawing->slot - 1;
    struct cached_batch *batch = NULL;
    uint32_t shard;
    uint64_t to;
    int r = 0;

    if (drawing->slot == 0)
        return 1;
    shard = slot % drawing->deliver->ring.shards;
    to = slot_end(drawing, slot);
    if (!drawing->is_missing) {
        batch = log_cache_find_back(log, shard, drawing->last_id ? drawing->last_id : to);
        if (!batch) {
            r = log_cache_ask_back(log, shard, to);
            return r < 0 ? r : -EAGAIN;
        }
        log_cache_note_use(log, batch);
        r = look_at_batch(drawing, slot, to, batch);
    }
    drawing->is_missing = false;
    drawing->last_id = 0;
    drawing->slot--;
    return r;
}

static void on_batch(struct catch_up_guest *guest, uint32_t shard, uint64_t to,
                     const struct cached_batch *batch)
{
    struct drawing *drawing = (struct drawing *)guest;
    const unsigned slot = drawing->slot - 1;
    const struct segment *segment = batch ? batch->segment : NULL;

    if (shard != slot % drawing->deliver->ring.shards || to != slot_end(drawing, slot))
        return;
    drawing->is_missing = !segment;
    drawing->last_id = segment ? segment->entries[segment->count - 1].id : 0;
}

/* The time before the very first event is not time without events. But the period has at least a
 * minute, so that a single event does not give a high rate. */
static void begin_at_first(struct drawing *drawing)
{
    uint64_t latest = drawing->to_ms > MINUTE_MS ? drawing->to_ms - MINUTE_MS : 0;
    uint64_t begin_ms = drawing->newer_ms < latest ? drawing->newer_ms : latest;

    if (begin_ms > drawing->from_ms)
        drawing->from_ms = begin_ms;
}

/* --- stages ------------------------------------------------------------------------------- */

static void end_ring(struct drawing *drawing)
{
    const double seconds = (double)(drawing->to_ms - drawing->from_ms) / 1000;

    for (unsigned slot = 0; slot < drawing->slots; slot++)
        estimate_set_slot(drawing->estimate, slot, seconds / drawing->slots,
                          1.0 / (double)drawing->stride);
    estimate_set_span(drawing->estimate, seconds);
    drawing->stage = STAGE_DONE;
}

static void end_stage(struct drawing *drawing)
{
    switch (drawing->stage) {
    case STAGE_COUNT:
        drawing->stride = (drawing->passed + ESTIMATE_EVENTS - 1) / ESTIMATE_EVENTS;
        drawing->stride += drawing->stride == 0;
        if (drawing->has_all)
            begin_at_first(drawing);
        begin_walk(drawing, drawing->has_ring ? STAGE_RING : STAGE_EXAMPLES);
        break;
    case STAGE_RING:
        end_ring(drawing);
        break;
    case STAGE_EXAMPLES:
        drawing->stage = STAGE_LOGS;
        break;
    case STAGE_LOGS:
        estimate_set_span(drawing->estimate, (double)(drawing->to_ms - drawing->oldest_ms) / 1000);
        drawing->stage = STAGE_DONE;
        break;
    case STAGE_DONE:
        break;
    }
}

static int run_stage(struct drawing *drawing, struct log_cache *log)
{
    switch (drawing->stage) {
    case STAGE_COUNT:
        return count_entry(drawing);
    case STAGE_RING:
        return look_at_entry(drawing);
    case STAGE_EXAMPLES:
        return find_example(drawing);
    case STAGE_LOGS:
        return log ? look_at_slot(drawing, log) : -EAGAIN;
    case STAGE_DONE:
        break;
    }
    return 1;
}

static enum guest_progress work(struct catch_up_guest *guest, struct log_cache *log,
                                uint64_t until_us)
{
    struct drawing *drawing = (struct drawing *)guest;

    for (size_t i = 1; drawing->stage != STAGE_DONE; i++) {
        int r = run_stage(drawing, log);

        if (r == -EAGAIN)
            return GUEST_WAITS_FOR_LOG;
        if (r < 0) {
            drawing->done(drawing->owner, r);
            return GUEST_IS_DONE;
        }
        if (r > 0)
            end_stage(drawing);
        drawing->steps++;
        if ((drawing->stage == STAGE_LOGS || i % CLOCK_EVENTS == 0) &&
            clock_monotonic_us() >= until_us)
            return GUEST_GOES_ON;
    }
    drawing->done(drawing->owner, 0);
    return GUEST_IS_DONE;
}

/* After this time the ring has all events of all shards. */
static uint64_t ring_begin_ms(const struct ring *ring)
{
    uint64_t begin_ms = 0;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        uint64_t lost_ms = ring->lost[shard] ? sl_id_time_ms(ring->lost[shard]) + 1 : 0;

        begin_ms = lost_ms > begin_ms ? lost_ms : begin_ms;
    }
    return begin_ms;
}

/* A multiple of the number of shards, so that each shard is used equally often. */
static unsigned slots_of(uint32_t shards)
{
    unsigned slots = (ESTIMATE_SLOTS + shards - 1) / shards * shards;

    return slots < ESTIMATE_SLOTS_MAX ? slots : ESTIMATE_SLOTS_MAX;
}

struct drawing *drawing_begin(struct deliver *deliver, struct estimate *estimate, uint64_t from,
                              drawing_done_fn done, void *owner)
{
    const struct ring *ring = &deliver->ring;
    uint64_t newest = deliver->closed > ring->newest ? deliver->closed : ring->newest;
    uint64_t ring_ms = ring_begin_ms(ring), hour_ms;
    struct drawing *drawing = mem_zalloc(sizeof(*drawing));

    if (!drawing)
        return NULL;
    *drawing = (struct drawing){
        .guest = {.work = work, .batch = on_batch},
        .deliver = deliver,
        .estimate = estimate,
        .done = done,
        .owner = owner,
        .to_ms = sl_id_time_ms(newest) + 1,
        .end_at = ring->next,
    };
    hour_ms = drawing->to_ms > HOUR_MS ? drawing->to_ms - HOUR_MS : 0;
    drawing->from_ms = from ? sl_id_time_ms(from) + 1 : ring_ms;
    if (drawing->from_ms < hour_ms)
        drawing->from_ms = hour_ms;
    if (drawing->from_ms >= drawing->to_ms)
        drawing->from_ms = drawing->to_ms - 1;
    drawing->has_ring = drawing->from_ms >= ring_ms;
    drawing->has_all = ring_ms == 0;
    drawing->slots = drawing->has_ring ? ESTIMATE_SLOTS : slots_of(ring->shards);
    drawing->slot = drawing->slots;
    drawing->oldest_ms = drawing->to_ms;
    begin_walk(drawing, STAGE_COUNT);
    catch_up_guest_start(deliver->catch_up, &drawing->guest);
    return drawing;
}

uint64_t drawing_steps(const struct drawing *drawing)
{
    return drawing->steps;
}

void drawing_free(struct drawing *drawing)
{
    if (!drawing)
        return;
    catch_up_guest_stop(drawing->deliver->catch_up, &drawing->guest);
    id_set_done(&drawing->deleted);
    mem_free(drawing);
}
