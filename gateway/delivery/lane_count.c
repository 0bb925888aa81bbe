/* lane_count.c - lanes whose matches are counted, or picked from, and whose clients are told
 * buckets.
 *
 * A lane has a counter while clients of it are live; the first to become live brings it, complete
 * from the start of the open bucket on. A bucket is closed when everything up to its end has
 * passed. What a lane has told wrongly its clients count again, each by itself, from the log
 * (catcher_count.c), and the lane begins anew with the first that has done so. */
#include <assert.h>
#include <errno.h>

#include "gateway/delivery/deliver_parts.h"

enum { CLOSE_AT_ONCE = 64 /* after a long silence the rest is read like anything old */ };

void lane_recount(struct lane *lane)
{
    if (!list_contains(&lane->miscounted))
        list_append(&lane->deliver->miscounted, &lane->miscounted);
}

bool lane_source_is_live(const struct lane *lane)
{
    return lane->source->counter && !list_contains(&lane->source->miscounted);
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
    int r;

    while ((r = counter_next(lane->counter, &told, &before)) > 0) {
        if (lane->finds)
            lane_tell_outlets(lane, &told, &before);
        else
            lane_owe(lane, told.event, &before, told_tail(&told));
        metric_add(lane->deliver->settings.metrics, METRIC_POSTS_SKIPPED, told.skipped);
        told_done(&told);
    }
    return r;
}

/* Buckets with ids below `id`. false: it counts again, at the end of the turn. */
static bool close_buckets(struct lane *lane, uint64_t id)
{
    for (int i = 0; counter_open(lane->counter) < id; i++) {
        if (client_is_beyond(lane->until, counter_open(lane->counter)))
            return true; /* all is told that its clients want */
        if (i == CLOSE_AT_ONCE || counter_close(lane->counter, id) < 0 || tell(lane) < 0) {
            lane_recount(lane);
            return false;
        }
    }
    return true;
}

static void count_event(struct lane *lane, struct event *event, struct sl_slice tail)
{
    struct count_keys keys = {.words = lane->deliver->words}; /* they are the event's */

    if (lane->rules)
        keys = rule_set_hits(lane->rules);
    if (client_is_beyond(lane->until, event->id) || !close_buckets(lane, event->id))
        return;
    if (counter_add(lane->counter, event, &keys, tail) < 0 || tell(lane) < 0)
        outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
}

/* A gap, or another message for everybody: it is told where it stands. */
static void count_message(struct lane *lane, struct event *event)
{
    const struct sl_cursor before = lane_head(lane);

    if (lane->source)
        lane_owe(lane, event, &before, SL_SLICE_NONE);
    if (!lane->counter)
        return;
    if (event->gap_to)
        counter_gap(lane->counter, event->gap_from, event->gap_to,
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

/* --- a counter comes and goes --- */

static void close_not_before(struct deliver *deliver, uint64_t id)
{
    if (id < deliver->next_close)
        deliver->next_close = id;
}

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
        uv_timer_start(deliver->refresher, on_refresh, first_ms > now_ms ? first_ms - now_ms : 0,
                       0);
}

static void tell_partial(struct lane *lane)
{
    const struct sl_cursor head = lane_head(lane);
    struct event *message = counter_partial(lane->counter);

    lane->refreshed_ms = uv_now(lane->deliver->settings.loop);
    if (message && !client_is_beyond(lane->until, counter_open(lane->counter)))
        lane_owe(lane, message, &head, SL_SLICE_NONE);
    event_unref(message); /* without memory there is another one soon */
}

static void on_refresh(uv_timer_t *timer)
{
    struct deliver *deliver = timer->data;
    uint64_t now_ms = uv_now(deliver->settings.loop);

    LIST_EACH(&deliver->counting, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, counting);

        if (lane->question.refresh_ms && !list_contains(&lane->miscounted) &&
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
    list_append(&deliver->counting, &lane->counting);
    close_not_before(deliver, counter_open(lane->counter));
    if (lane->question.refresh_ms)
        arm_refresh(deliver);
}

void lane_drop_counter(struct lane *lane)
{
    list_remove(&lane->deliver->counting, &lane->counting);
    counter_free(lane->counter);
    lane->counter = NULL;
}

/* --- all of them --- */

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

        if (!list_contains(&lane->miscounted) && lane_is_ready(lane))
            close_buckets(lane, deliver->closed + 1);
        close_not_before(deliver, counter_open(lane->counter));
    }
}
