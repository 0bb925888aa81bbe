/* lane_count.c - lanes that count or pick, and whose clients are sent buckets.
 *
 * A lane has a counter while it has live clients; the first client that becomes live brings it,
 * complete from the beginning of the open bucket. A bucket is closed when everything up to its end
 * has passed. If a lane has sent counts that turn out wrong, each of its clients counts again on
 * its own, from the log (catcher_count.c), and the lane continues with the counter of the first one
 * that has finished.
 *
 * The buckets of all lanes end at the same moment, so a few of them are closed in each turn of the
 * loop. What passes meanwhile in a lane that is still to be closed is held, together with how far
 * everything had passed then: so the lane closes and counts in the same order as it would have at
 * once. */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "gateway/delivery/deliver_parts.h"

enum {
    CLOSE_AT_ONCE = 64,   /* after a long silence, the rest is read from the log */
    CLOSE_WORK = 64,      /* for closing a bucket, in units of trends.h */
    HELD_WORK = 2,        /* for counting a held event, */
    HELD_WORDS_WORK = 16, /* and where its words are read again */
    STEP_WORK = 512,      /* for trends, between two looks at the clock */
    CLOSE_US = 300        /* time limit of a turn for closing */
};

void lane_recount(struct lane *lane)
{
    if (!list_contains(&lane->miscounted))
        list_append(&lane->deliver->miscounted, &lane->miscounted);
}

int lane_read_words(struct lane *lane, const struct event *event, struct count_keys *keys)
{
    if (!lane->question.trends.window_ms)
        return 0;
    keys->words = lane->deliver->words;
    return sl_words_read(lane->deliver->words, &event->view);
}

void lane_tell_outlets(struct lane *lane, const struct told *told, const struct sl_cursor *before)
{
    LIST_EACH(&lane->outlets, node)
    {
        struct lane *outlet = LIST_OWNER(node, struct lane, outlet);

        if (!client_is_beyond(outlet->until, told->id))
            lane_owe(outlet, told->event, before, SL_SLICE_NONE);
    }
    lane->told = told->id;
}

/* 0; -ENOMEM. */
static int tell(struct lane *lane)
{
    struct sl_cursor before;
    struct told told;
    bool has_told = false;
    int r;

    while ((r = counter_next(lane->counter, &told, &before)) > 0) {
        has_told = true;
        if (lane->finds)
            lane_tell_outlets(lane, &told, &before);
        else
            lane_owe_some(lane, told.event, &before, told_tail(&told));
        metric_add(lane->deliver->settings.metrics, METRIC_POSTS_SKIPPED, told.skipped);
        told_done(&told);
    }
    if (has_told && !lane->finds)
        pace_queue(lane->deliver, &lane->outbox);
    return r;
}

/* Must not be called between counting an event and its passing: a client that falls behind would
 * begin with that event. */
static void send_told(struct lane *lane)
{
    if (outbox_gathered_bytes(&lane->outbox) > 0)
        lane_send(lane);
}

static void forget_held(struct lane *lane)
{
    if (list_contains(&lane->closing))
        list_remove(&lane->deliver->closing, &lane->closing);
    told_list_done(&lane->held);
}

/* Buckets with ids below this one are closed next. */
static uint64_t close_to(const struct lane *lane)
{
    const struct told *next = told_list_first(&lane->held);
    uint64_t passed = next ? next->id : lane->deliver->closed;
    uint64_t to = lane_is_ready(lane) ? passed + 1 : 0;

    return next && next->event->id > to ? next->event->id : to;
}

static bool is_long_over(const struct lane *lane, uint64_t to)
{
    uint64_t open_ms = sl_id_time_ms(counter_open(lane->counter));

    return lane_counts(lane) &&
           sl_id_time_ms(to) > open_ms + CLOSE_AT_ONCE * lane->question.bucket_ms;
}

/* Counts are sent when a bucket is closed, picked events perhaps at once. */
static void count(struct lane *lane, struct event *event, const struct count_keys *keys,
                  struct sl_slice tail)
{
    if (counter_add(lane->counter, event, keys, tail) < 0 || (!lane_counts(lane) && tell(lane) < 0))
        outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
}

static bool counts_rules(const struct lane *lane)
{
    return lane->rules && lane_counts(lane);
}

static bool needs_words(const struct lane *lane)
{
    return counts_rules(lane) || lane->question.trends.window_ms;
}

/* Its words, and the rules to be counted, are determined again: when rules change, everybody counts
 * the open bucket again. What is picked was matched by the rules of its time. */
static void count_held(struct lane *lane, const struct told *held)
{
    struct count_keys keys = {.words = lane->deliver->words};
    struct sl_slice tail = told_tail(held);
    int r = 1;

    if (needs_words(lane))
        r = sl_words_read(lane->deliver->words, &held->event->view) < 0 ? -ENOMEM : 1;
    if (r > 0 && counts_rules(lane))
        r = rule_set_wants(lane->rules, held->event, lane->deliver->words, &tail);
    if (r > 0 && counts_rules(lane))
        keys = rule_set_hits(lane->rules);
    if (r > 0)
        count(lane, held->event, &keys, tail);
    if (r < 0)
        outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
}

static void spend(size_t *work, size_t units)
{
    *work -= units < *work ? units : *work;
}

/* 0: a bucket is closed, or closing it has advanced; -ENOMEM, or it is better counted again. */
static int close_bucket(struct lane *lane, uint64_t to, size_t *work)
{
    size_t left = STEP_WORK;

    if (is_long_over(lane, to) || counter_close(lane->counter, to, &left) < 0)
        return -ENOMEM;
    spend(work, CLOSE_WORK + STEP_WORK - left);
    return tell(lane);
}

/* Closes the next bucket or a part of it, or counts the next held event. false: there is none. */
static bool close_next(struct lane *lane, size_t *work)
{
    uint64_t to = close_to(lane), open = counter_open(lane->counter);
    struct told next;

    if (open < to && !client_is_beyond(lane->until, open)) {
        if (close_bucket(lane, to, work) == 0)
            return true;
        lane_recount(lane);
        return false;
    }
    if (!told_list_take(&lane->held, &next))
        return false;
    spend(work, needs_words(lane) ? HELD_WORDS_WORK : HELD_WORK);
    count_held(lane, &next);
    told_done(&next);
    return true;
}

static void close_not_before(struct deliver *deliver, uint64_t id)
{
    if (id < deliver->next_close)
        deliver->next_close = id;
}

/* As far as work and time permit; not if its clients are about to count again, perhaps by other
 * rules. */
static void close_some(struct lane *lane, size_t *work, uint64_t until_us)
{
    while (*work > 0) {
        bool is_closed = list_contains(&lane->miscounted) || !close_next(lane, work);

        send_told(lane);
        if (is_closed) {
            list_remove(&lane->deliver->closing, &lane->closing);
            close_not_before(lane->deliver, counter_open(lane->counter));
            if (counter_retell_from(lane->counter))
                lane_recount(lane);
            return;
        }
        if (until_us < UINT64_MAX && clock_monotonic_us() > until_us)
            *work = 0;
    }
}

static void settle(struct lane *lane)
{
    size_t work = SIZE_MAX;

    if (list_contains(&lane->closing))
        close_some(lane, &work, UINT64_MAX);
}

bool lane_is_settled(const struct lane *lane)
{
    return lane->counter && !list_contains(&lane->miscounted) && !list_contains(&lane->closing);
}

/* 0; -ENOMEM. */
static int hold(struct lane *lane, struct event *event, struct sl_slice tail)
{
    struct told held = {.event = event_ref(event), .id = lane->deliver->closed};

    if (told_set_tail(&held, tail) < 0) {
        told_done(&held);
        return -ENOMEM;
    }
    if (!list_contains(&lane->closing) && !list_contains(&lane->miscounted))
        list_append(&lane->deliver->closing, &lane->closing);
    return told_list_append(&lane->held, &held);
}

/* No bucket is closed here, because closing would overwrite the words of the event that is being
 * matched. If clients are about to count again, the event is one of the first that they count. */
static void count_event(struct lane *lane, struct event *event, struct sl_slice tail)
{
    struct count_keys keys = {.words = lane->deliver->words}; /* those of the event */

    if (client_is_beyond(lane->until, event->id))
        return;
    if (list_contains(&lane->closing) || list_contains(&lane->miscounted) ||
        counter_open(lane->counter) < event->id) {
        if (hold(lane, event, tail) < 0)
            outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
        return;
    }
    if (lane->rules)
        keys = rule_set_hits(lane->rules);
    if (!lane_counts(lane))
        send_told(lane);
    count(lane, event, &keys, tail);
}

/* A gap, or another message for everybody, is sent at its position. */
static void count_message(struct lane *lane, struct event *event)
{
    struct sl_cursor before;

    settle(lane->source ? lane->source : lane);
    before = lane_head(lane);
    if (lane->source)
        lane_owe(lane, event, &before, SL_SLICE_NONE);
    if (!lane->counter)
        return;
    if (event->gap_to)
        counter_gap(lane->counter, event->shard, event->gap_from, event->gap_to,
                    event->is_rewound ? GAP_REWOUND : GAP_RETENTION);
    if (!lane->finds)
        lane_owe(lane, event, &before, SL_SLICE_NONE);
}

void lane_count(struct lane *lane, struct event *event, struct sl_slice tail)
{
    if (event_is_for_all(event))
        count_message(lane, event);
    else if (lane->counter)
        count_event(lane, event, tail);
    if (lane->counter && counter_retell_from(lane->counter))
        lane_recount(lane);
}

/* --- the counter --- */

static void on_refresh(uv_timer_t *timer);

static void arm_refresh(struct deliver *deliver)
{
    uint64_t now_ms = uv_now(deliver->settings.loop), first_ms = UINT64_MAX;

    LIST_EACH(&deliver->counting, node)
    {
        const struct lane *lane = LIST_OWNER(node, struct lane, counting);
        uint64_t due_ms = lane->refreshed_ms + lane->question.refresh_ms;

        if (lane->question.refresh_ms && due_ms < first_ms)
            first_ms = due_ms;
    }
    if (first_ms == UINT64_MAX)
        uv_timer_stop(deliver->refresher);
    else
        uv_timer_start(deliver->refresher, on_refresh, first_ms > now_ms ? first_ms - now_ms : 1,
                       0); /* what is closing is sent then; a timer of 0 would block the loop */
}

static void tell_partial(struct lane *lane)
{
    const struct sl_cursor head = lane_head(lane);
    struct event *message = counter_partial(lane->counter);

    lane->refreshed_ms = uv_now(lane->deliver->settings.loop);
    if (message && !client_is_beyond(lane->until, counter_open(lane->counter)))
        lane_owe(lane, message, &head, SL_SLICE_NONE);
    event_unref(message); /* out of memory: another one follows soon */
}

static void on_refresh(uv_timer_t *timer)
{
    struct deliver *deliver = timer->data;
    uint64_t now_ms = uv_now(deliver->settings.loop);

    LIST_EACH(&deliver->counting, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, counting);

        if (lane->question.refresh_ms && lane_is_settled(lane) &&
            now_ms >= lane->refreshed_ms + lane->question.refresh_ms)
            tell_partial(lane);
    }
    arm_refresh(deliver);
    pace_turn_end(deliver);
}

void lane_take_counter(struct lane *lane, struct counter **counter)
{
    struct deliver *deliver = lane->deliver;

    if (lane->source)
        return; /* which counts for all */
    if (lane->counter) {
        counter_join(lane->counter, *counter);
        return;
    }
    lane->counter = *counter;
    *counter = NULL;
    counter_share(lane->counter, deliver->ring.passed);
    list_append(&deliver->counting, &lane->counting);
    close_not_before(deliver, counter_open(lane->counter));
    if (lane->question.refresh_ms)
        arm_refresh(deliver);
}

void lane_drop_counter(struct lane *lane)
{
    list_remove(&lane->deliver->counting, &lane->counting);
    forget_held(lane);
    counter_free(lane->counter);
    lane->counter = NULL;
}

/* --- all lanes --- */

void counts_close(struct deliver *deliver, uint64_t id)
{
    if (id > deliver->closed)
        deliver->closed = id;
    if (deliver->closed < deliver->next_close)
        return;
    deliver->next_close = UINT64_MAX;
    LIST_EACH(&deliver->counting, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, counting);

        if (list_contains(&lane->closing))
            continue; /* and is included when it closes */
        if (counter_open(lane->counter) <= deliver->closed && lane_is_settled(lane) &&
            lane_is_ready(lane))
            list_append(&deliver->closing, &lane->closing);
        else
            close_not_before(deliver, counter_open(lane->counter));
    }
}

bool counts_go_on(struct deliver *deliver, size_t *work)
{
    uint64_t until_us = clock_monotonic_us() + CLOSE_US;
    struct list_node *first;

    while (*work > 0 && (first = list_first(&deliver->closing)))
        close_some(LIST_OWNER(first, struct lane, closing), work, until_us);
    return list_first(&deliver->closing);
}
