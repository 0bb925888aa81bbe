/* estimate_sampler.c - walks over the ring from the newest to the oldest entry: once to count and
 * to find deleted posts, and once to look at every n-th; or to find examples, followed by the logs.
 *
 * If the ring loses its oldest entries meanwhile, the walk ends at its new beginning. The part of a
 * slot that a log does not reach back to is not counted as time without events. */
#include "gateway/delivery/estimate_sampler.h"

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

struct estimate_sampler {
    struct catch_up_job job; /* must be the first member */
    struct deliver *deliver;
    struct estimate *estimate;
    estimate_sampler_done_fn done;
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

static void begin_walk(struct estimate_sampler *sampler, enum stage stage)
{
    sampler->stage = stage;
    sampler->at = sampler->end_at;
    sampler->newer_ms = sampler->to_ms;
    sampler->walked = 0;
}

/* The next older entry; NULL: there is none. */
static const struct segment_entry *walk(struct estimate_sampler *sampler)
{
    const struct ring *ring = &sampler->deliver->ring;
    const struct segment_entry *entry;
    struct segment *segment;
    size_t index;

    if (sampler->at <= ring->oldest)
        return NULL;
    segment = ring_find(ring, --sampler->at, &index);
    entry = &segment->entries[index];
    if (entry->id)
        sampler->newer_ms = sl_id_time_ms(entry->id);
    return entry;
}

static bool is_within(const struct estimate_sampler *sampler, const struct segment_entry *entry)
{
    return entry->event && event_is_for_clients(entry->event) &&
           sampler->newer_ms >= sampler->from_ms && sampler->newer_ms < sampler->to_ms;
}

static unsigned slot_of(const struct estimate_sampler *sampler, uint64_t ms)
{
    return (unsigned)((ms - sampler->from_ms) * sampler->slots /
                      (sampler->to_ms - sampler->from_ms));
}

static int keep_example(struct estimate_sampler *sampler, struct event *event)
{
    if (!sampler->has_examples && event->kind != EVENT_DELETE &&
        !(event->kind == EVENT_POST && id_set_has(&sampler->deleted, event->view.sample_id)))
        sampler->has_examples = estimate_keep_example(sampler->estimate, event);
    return 0;
}

/* 0; 1: this stage has ended; -ENOMEM. */
static int count_entry(struct estimate_sampler *sampler)
{
    const struct segment_entry *entry = walk(sampler);

    if (!entry)
        return 1;
    sampler->passed += is_within(sampler, entry);
    if (entry->event && entry->event->kind == EVENT_DELETE && entry->event->view.sample_id)
        return id_set_add(&sampler->deleted, entry->event->view.sample_id);
    return 0;
}

static int look_at_entry(struct estimate_sampler *sampler)
{
    const struct segment_entry *entry = walk(sampler);
    bool is_match;
    int r;

    if (!entry)
        return 1;
    if (!is_within(sampler, entry) || sampler->walked++ % sampler->stride != 0)
        return 0;
    r = estimate_look(sampler->estimate, slot_of(sampler, sampler->newer_ms), entry->event,
                      &is_match);
    return r == 0 && is_match ? keep_example(sampler, entry->event) : r;
}

static int find_example(struct estimate_sampler *sampler)
{
    const struct segment_entry *entry =
        sampler->has_examples || sampler->walked == EXAMPLE_EVENTS ? NULL : walk(sampler);
    bool is_match;
    int r;

    if (!entry)
        return 1;
    if (!entry->event || !event_is_for_clients(entry->event))
        return 0;
    sampler->walked++;
    r = estimate_wants(sampler->estimate, entry->event, &is_match);
    return r == 0 && is_match ? keep_example(sampler, entry->event) : r;
}

/* --- the logs ----------------------------------------------------------------------------- */

static uint64_t slot_begin_ms(const struct estimate_sampler *sampler, unsigned slot)
{
    return sampler->from_ms + (sampler->to_ms - sampler->from_ms) * slot / sampler->slots;
}

/* The last id of the slot. */
static uint64_t slot_end(const struct estimate_sampler *sampler, unsigned slot)
{
    return sl_id_first_at(slot_begin_ms(sampler, slot + 1)) - 1;
}

static int look_at_batch(struct estimate_sampler *sampler, unsigned slot, uint64_t to,
                         const struct cached_batch *batch)
{
    const struct segment *segment = batch->segment;
    const uint64_t begin_ms = slot_begin_ms(sampler, slot), end_ms = sl_id_time_ms(to) + 1;
    const size_t most = ESTIMATE_EVENTS / sampler->slots;
    uint64_t oldest_ms = end_ms;
    size_t index = segment_find_above(segment, to), count = 0;
    bool is_match;

    for (; index > 0 && count < most; index--, count++) {
        const struct segment_entry *entry = &segment->entries[index - 1];

        if (sl_id_time_ms(entry->id) < begin_ms)
            break;
        oldest_ms = sl_id_time_ms(entry->id);
        if (entry->event && estimate_look(sampler->estimate, slot, entry->event, &is_match) < 0)
            return -ENOMEM;
    }
    if (index > 0 && count < most) /* it continues before the slot */
        oldest_ms = begin_ms;
    if (oldest_ms < sampler->oldest_ms)
        sampler->oldest_ms = begin_ms > sampler->from_ms ? begin_ms : sampler->from_ms;
    estimate_set_slot(sampler->estimate, slot, (double)(end_ms - oldest_ms) / 1000,
                      1.0 / sampler->deliver->ring.shards);
    return 0;
}

/* 0; 1: all are done; -EAGAIN: waits for a batch; -ENOMEM. */
static int look_at_slot(struct estimate_sampler *sampler, struct log_cache *log)
{
    const unsigned slot = sampler->slot - 1;
    struct cached_batch *batch = NULL;
    uint32_t shard;
    uint64_t to;
    int r = 0;

    if (sampler->slot == 0)
        return 1;
    shard = slot % sampler->deliver->ring.shards;
    to = slot_end(sampler, slot);
    if (!sampler->is_missing) {
        batch = log_cache_find_back(log, shard, sampler->last_id ? sampler->last_id : to);
        if (!batch) {
            r = log_cache_ask_back(log, shard, to);
            return r < 0 ? r : -EAGAIN;
        }
        log_cache_note_use(log, batch);
        r = look_at_batch(sampler, slot, to, batch);
    }
    sampler->is_missing = false;
    sampler->last_id = 0;
    sampler->slot--;
    return r;
}

static void on_batch(struct catch_up_job *job, uint32_t shard, uint64_t to,
                     const struct cached_batch *batch)
{
    struct estimate_sampler *sampler = (struct estimate_sampler *)job;
    const unsigned slot = sampler->slot - 1;
    const struct segment *segment = batch ? batch->segment : NULL;

    if (shard != slot % sampler->deliver->ring.shards || to != slot_end(sampler, slot))
        return;
    sampler->is_missing = !segment;
    sampler->last_id = segment ? segment->entries[segment->count - 1].id : 0;
}

/* The time before the very first event is not time without events. But the period has at least a
 * minute, so that a single event does not give a high rate. */
static void begin_at_first(struct estimate_sampler *sampler)
{
    uint64_t latest = sampler->to_ms > MINUTE_MS ? sampler->to_ms - MINUTE_MS : 0;
    uint64_t begin_ms = sampler->newer_ms < latest ? sampler->newer_ms : latest;

    if (begin_ms > sampler->from_ms)
        sampler->from_ms = begin_ms;
}

/* --- stages ------------------------------------------------------------------------------- */

static void end_ring(struct estimate_sampler *sampler)
{
    const double seconds = (double)(sampler->to_ms - sampler->from_ms) / 1000;

    for (unsigned slot = 0; slot < sampler->slots; slot++)
        estimate_set_slot(sampler->estimate, slot, seconds / sampler->slots,
                          1.0 / (double)sampler->stride);
    estimate_set_span(sampler->estimate, seconds);
    sampler->stage = STAGE_DONE;
}

static void end_stage(struct estimate_sampler *sampler)
{
    switch (sampler->stage) {
    case STAGE_COUNT:
        sampler->stride = (sampler->passed + ESTIMATE_EVENTS - 1) / ESTIMATE_EVENTS;
        sampler->stride += sampler->stride == 0;
        if (sampler->has_all)
            begin_at_first(sampler);
        begin_walk(sampler, sampler->has_ring ? STAGE_RING : STAGE_EXAMPLES);
        break;
    case STAGE_RING:
        end_ring(sampler);
        break;
    case STAGE_EXAMPLES:
        sampler->stage = STAGE_LOGS;
        break;
    case STAGE_LOGS:
        estimate_set_span(sampler->estimate, (double)(sampler->to_ms - sampler->oldest_ms) / 1000);
        sampler->stage = STAGE_DONE;
        break;
    case STAGE_DONE:
        break;
    }
}

static int run_stage(struct estimate_sampler *sampler, struct log_cache *log)
{
    switch (sampler->stage) {
    case STAGE_COUNT:
        return count_entry(sampler);
    case STAGE_RING:
        return look_at_entry(sampler);
    case STAGE_EXAMPLES:
        return find_example(sampler);
    case STAGE_LOGS:
        return log ? look_at_slot(sampler, log) : -EAGAIN;
    case STAGE_DONE:
        break;
    }
    return 1;
}

static enum job_progress work(struct catch_up_job *job, struct log_cache *log, uint64_t until_us)
{
    struct estimate_sampler *sampler = (struct estimate_sampler *)job;

    for (size_t i = 1; sampler->stage != STAGE_DONE; i++) {
        int r = run_stage(sampler, log);

        if (r == -EAGAIN)
            return JOB_WAITS_FOR_LOG;
        if (r < 0) {
            sampler->done(sampler->owner, r);
            return JOB_IS_DONE;
        }
        if (r > 0)
            end_stage(sampler);
        sampler->steps++;
        if ((sampler->stage == STAGE_LOGS || i % CLOCK_EVENTS == 0) &&
            clock_monotonic_us() >= until_us)
            return JOB_GOES_ON;
    }
    sampler->done(sampler->owner, 0);
    return JOB_IS_DONE;
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

struct estimate_sampler *estimate_sampler_begin(struct deliver *deliver, struct estimate *estimate,
                                                uint64_t from, estimate_sampler_done_fn done,
                                                void *owner)
{
    const struct ring *ring = &deliver->ring;
    uint64_t newest = deliver->closed > ring->newest ? deliver->closed : ring->newest;
    uint64_t ring_ms = ring_begin_ms(ring), hour_ms;
    struct estimate_sampler *sampler = mem_zalloc(sizeof(*sampler));

    if (!sampler)
        return NULL;
    *sampler = (struct estimate_sampler){
        .job = {.work = work, .batch = on_batch},
        .deliver = deliver,
        .estimate = estimate,
        .done = done,
        .owner = owner,
        .to_ms = sl_id_time_ms(newest) + 1,
        .end_at = ring->next,
    };
    hour_ms = sampler->to_ms > HOUR_MS ? sampler->to_ms - HOUR_MS : 0;
    sampler->from_ms = from ? sl_id_time_ms(from) + 1 : ring_ms;
    if (sampler->from_ms < hour_ms)
        sampler->from_ms = hour_ms;
    if (sampler->from_ms >= sampler->to_ms)
        sampler->from_ms = sampler->to_ms - 1;
    sampler->has_ring = sampler->from_ms >= ring_ms;
    sampler->has_all = ring_ms == 0;
    sampler->slots = sampler->has_ring ? ESTIMATE_SLOTS : slots_of(ring->shards);
    sampler->slot = sampler->slots;
    sampler->oldest_ms = sampler->to_ms;
    begin_walk(sampler, STAGE_COUNT);
    catch_up_job_start(deliver->catch_up, &sampler->job);
    return sampler;
}

uint64_t estimate_sampler_steps(const struct estimate_sampler *sampler)
{
    return sampler->steps;
}

void estimate_sampler_free(struct estimate_sampler *sampler)
{
    if (!sampler)
        return;
    catch_up_job_stop(sampler->deliver->catch_up, &sampler->job);
    id_set_done(&sampler->deleted);
    mem_free(sampler);
}
