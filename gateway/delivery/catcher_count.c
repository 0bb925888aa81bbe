/* catcher_count.c - a catcher whose lane counts: the buckets are owed to its own outbox.
 *
 * A bucket must contain what the log contains. So a counter reads the logs up to everything that
 * had passed when it began, even if a part is in the ring, because late events come after others
 * there; then it continues in the ring, with the entry that was next at that moment. What it cannot
 * count in order there, it reads again when it has reached the head. */
#include <errno.h>
#include <string.h>

#include "gateway/delivery/catcher_parts.h"

enum {
    COUNT_COST = 64,  /* the cost of counting an event or closing a bucket, in bytes */
    STEP_WORK = 2048, /* for closing, in units of trends.h: some tenths of a ms */
};

/* The current event, because of which it may have fallen behind, has not passed: it will be read.
 * Late events of a shard that was behind are counted, however low their ids: from the ring, or from
 * the log when they have left the ring. */
static void take_seam(struct catcher *catcher)
{
    const struct catch_up *catch_up = catcher->catch_up;

    for (uint32_t shard = 0; shard < catch_up->ring->shards; shard++)
        position_lower_shard(&catcher->counts_from, shard, catch_up->ring->passed[shard]);
    memcpy(catcher->seam, catch_up->ring->passed, sizeof(catcher->seam));
    catcher->seam_sequence = catcher->sequence = catch_up->passed_to;
    catcher->in_ring = false;
}

void catcher_begin_counting(struct catcher *catcher)
{
    const struct sl_cursor before = {.id = counter_before(catcher->counter)};

    position_set(&catcher->at, &before);
    memset(catcher->last, 0, sizeof(catcher->last));
    memset(catcher->skips, 0, sizeof(catcher->skips));
    catcher->rewound = (struct gap){0};
    catcher->is_unsure = false;
    catcher->close_to = 0;
    position_set(&catcher->counts_from, &before);
    take_seam(catcher);
}

static void begin_before(struct catcher *catcher, const struct event *event)
{
    const uint32_t shard = event->shard;

    if (event->id == 0 || event->id > catcher->catch_up->ring->passed[shard])
        return;
    if (event->sequence >= catcher->seam_sequence && event->id <= catcher->seam[shard])
        catcher->seam[shard] = event->id - 1;
    position_lower_shard(&catcher->counts_from, shard, event->id - 1);
}

/* Those that have an end do not tell what is unlogged, and others than picks do not count it. */
static bool lacks_unlogged(const struct catcher *catcher, uint64_t from)
{
    const struct pick_question *pick = &catcher->lane->question.pick;

    return pick->posts && !pick->behind && catcher->catch_up->ring->unlogged_to > from;
}

/* In the ring, it begins with the first of them, and before everything that passed since: what was
 * not wanted then may be wanted now. If the first one has left the ring, the logs have all of it
 * that was logged. */
bool catcher_begin_before(struct catcher *catcher, const struct told_list *held)
{
    const struct catch_up *catch_up = catcher->catch_up;
    const struct told *first = told_list_first(held);

    if (first && first->event->sequence >= catch_up->ring->oldest &&
        first->event->sequence < catcher->seam_sequence)
        catcher->seam_sequence = catcher->sequence = first->event->sequence;
    for (size_t i = held->first; i < held->count; i++)
        begin_before(catcher, held->list[i].event);
    for (uint64_t next = catcher->seam_sequence; next < catch_up->passed_to; next++) {
        size_t index;
        const struct segment *segment = ring_find(catch_up->ring, next, &index);

        begin_before(catcher, segment->entries[index].event);
    }
    return first && first->event->sequence < catch_up->ring->oldest &&
           lacks_unlogged(catcher, first->event->sequence);
}

int catcher_count_from(struct catcher *catcher, const struct gap *lost)
{
    const struct count_question *question = &catcher->lane->question;
    uint64_t until = catcher->client->until;

    catcher->counter =
        lost->to ? counter_new_rewound(question, &catcher->had, until, lost->from, lost->to)
                 : counter_new(question, &catcher->had, until);
    if (!catcher->counter)
        return -ENOMEM;
    catcher_begin_counting(catcher);
    return 0;
}

/* Counts again without reading again what it has read, except for the open bucket; ids of late
 * events that are still to be read may be lower. */
static void read_again(struct catcher *catcher, const uint64_t *read)
{
    const uint64_t sequence = catcher->in_ring ? catcher->sequence : catcher->seam_sequence;
    uint64_t seam[SL_SHARDS_MAX];

    memcpy(seam, catcher->in_ring ? read : catcher->seam, sizeof(seam));
    catcher_begin_counting(catcher);
    memcpy(catcher->seam, seam, sizeof(seam));
    catcher->seam_sequence = catcher->sequence = sequence;
    for (uint32_t shard = 0; shard < catcher->catch_up->ring->shards; shard++)
        position_lower_shard(&catcher->counts_from, shard, read[shard]);
}

int catcher_count_again(struct catcher *catcher)
{
    const struct sl_cursor had = counter_cursor(catcher->counter);
    uint64_t read[SL_SHARDS_MAX], passed[SL_SHARDS_MAX];
    struct counter *again;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        uint64_t from = position_of_shard(&catcher->counts_from, shard);
        uint64_t before = counter_passed(catcher->counter, shard);

        read[shard] = catcher->last[shard] > from ? catcher->last[shard] : from;
        passed[shard] = read[shard] > before ? read[shard] : before;
    }
    again = counter_new_again(catcher->counter, &had, passed);
    if (!again)
        return -ENOMEM;
    counter_free(catcher->counter);
    catcher->counter = again;
    read_again(catcher, read);
    return 0;
}

bool catcher_enter_ring_counting(struct catcher *catcher)
{
    if (catcher->seam_sequence < catcher->catch_up->ring->oldest)
        return catcher_leave_ring_counting(catcher);
    catcher->sequence = catcher->seam_sequence;
    catcher->in_ring = true;
    return false;
}

bool catcher_leave_ring_counting(struct catcher *catcher)
{
    const uint64_t next = catcher->in_ring ? catcher->sequence : catcher->seam_sequence;

    take_seam(catcher);
    return lacks_unlogged(catcher, next);
}

void catcher_pass_counting(struct catcher *catcher, const struct event *event)
{
    if (event->is_rewound)
        catcher->last[event->shard] = event->gap_from;
    if (!event->id)
        return;
    catcher->last[event->shard] = event->id;
    if (event->id > catcher->at.id)
        catcher->at.id = event->id;
}

/* A gap in the ring is reported at its position. */
static int pass_on(struct catcher *catcher, struct event *event)
{
    const struct sl_cursor before = counter_cursor(catcher->counter);

    if (event->gap_to)
        counter_gap(catcher->counter, event->shard, event->gap_from, event->gap_to,
                    event->is_rewound ? GAP_REWOUND : GAP_RETENTION);
    return outbox_append(&catcher->outbox, event, &before, SL_SLICE_NONE, 0);
}

/* 1: there was something to send; 0: nothing; -ENOMEM. */
static int tell_next(struct catcher *catcher)
{
    uint64_t bytes = catcher->outbox.bytes;
    struct sl_cursor before;
    struct told told;
    int r = counter_next(catcher->counter, &told, &before);

    if (r <= 0)
        return r;
    if (catcher->lane->finds)
        lane_tell_outlets(catcher->lane, &told, &before);
    else
        r = outbox_append(&catcher->outbox, told.event, &before, told_tail(&told), 0);
    metric_add(catcher->catch_up->settings.metrics, METRIC_POSTS_SKIPPED, told.skipped);
    told_done(&told);
    catch_up_spend(catcher->catch_up, COUNT_COST + (catcher->outbox.bytes - bytes));
    return r < 0 ? r : 1;
}

int catcher_count(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    struct count_keys keys = {0};
    int r;

    catch_up_spend(catcher->catch_up, COUNT_COST);
    if (event_is_for_all(event))
        return pass_on(catcher, event);
    if (catcher->lane->rules)
        keys = rule_set_hits(catcher->lane->rules);
    r = lane_read_words(catcher->lane, event, &keys);
    if (r == 0)
        r = counter_add(catcher->counter, event, &keys, tail);
    if (r == -EAGAIN)
        catcher->close_to = event->id;
    if (r == 0)
        r = tell_next(catcher); /* at most one */
    return r > 0 ? 0 : r;
}

enum progress catcher_close_buckets(struct catcher *catcher)
{
    uint64_t bytes_before = catcher->outbox.bytes;

    for (;;) {
        size_t work = STEP_WORK;
        int r;

        if (!catcher_has_room(catcher, bytes_before))
            return PROGRESS;
        r = tell_next(catcher);
        if (r == 0) {
            if (counter_open(catcher->counter) >= catcher->close_to)
                return PROGRESS;
            catch_up_spend(catcher->catch_up, COUNT_COST);
            r = counter_close(catcher->counter, catcher->close_to, &work);
        }
        if (r < 0)
            return PROGRESS_OUT_OF_MEMORY;
    }
}

enum progress catcher_settle_counts(struct catcher *catcher, enum progress progress)
{
    uint64_t until = catcher->client->until, closed = *catcher->catch_up->settings.closed;
    bool picks = catcher->lane->question.pick.posts > 0;

    if (picks && progress == PROGRESS && counter_retell_from(catcher->counter))
        return catcher_count_again(catcher) < 0 ? PROGRESS_OUT_OF_MEMORY : PROGRESS;
    if (progress == PROGRESS_COMPLETE)
        catcher->close_to = until + 1;
    else if (progress == PROGRESS_AT_HEAD)
        catcher->close_to = client_is_beyond(until, closed) ? until + 1 : closed + 1;
    else
        return progress;
    if (counter_open(catcher->counter) < catcher->close_to)
        return PROGRESS;
    if (counter_retell_from(catcher->counter))
        return catcher_count_again(catcher) < 0 ? PROGRESS_OUT_OF_MEMORY : PROGRESS;
    if (until && counter_cursor(catcher->counter).id >= until)
        return PROGRESS_COMPLETE;
    return PROGRESS_AT_HEAD;
}
