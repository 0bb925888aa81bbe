/* pace.c - decides when to write: at the end of the turn, or when enough has been gathered.
 *
 * Outboxes with new entries in this turn are `dirty`; those that gather are `due`, soonest
 * first. */
#include "gateway/delivery/deliver_parts.h"

void pace_queue(struct deliver *deliver, struct outbox *outbox)
{
    if (!list_contains(&outbox->node))
        list_append(&deliver->dirty, &outbox->node);
}

void pace_unqueue(struct deliver *deliver, struct outbox *outbox)
{
    if (list_contains(&outbox->node))
        list_remove(outbox->due_ms ? &deliver->due : &deliver->dirty, &outbox->node);
    outbox->due_ms = 0;
}

static void queue_due(struct deliver *deliver, struct outbox *outbox)
{
    struct list_node *after = deliver->due.head.previous;

    /* Nearly always at the end, because only some clients have windows of another length. */
    while (after != &deliver->due.head &&
           LIST_OWNER(after, struct outbox, node)->due_ms > outbox->due_ms)
        after = after->previous;
    list_insert_after(&deliver->due, after, &outbox->node);
}

static void flush_due(uv_timer_t *timer);

static void arm_timer(struct deliver *deliver, uint64_t now_ms)
{
    struct list_node *first = list_first(&deliver->due);
    uint64_t due_ms;

    if (!first) {
        uv_timer_stop(deliver->timer);
        return;
    }
    due_ms = LIST_OWNER(first, struct outbox, node)->due_ms;
    uv_timer_start(deliver->timer, flush_due, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* There is a row for each encoding. */
static void tell_encoding(struct metrics *metrics, enum metric first, int encoding,
                          const uint64_t *now, const uint64_t *told)
{
    metric_add(metrics, metric_at(first, (unsigned)(encoding - ENCODING_DEFLATE)),
               now[encoding] - told[encoding]);
}

static void tell_compression(const struct deliver *deliver, const struct compressor_counts *now,
                             struct compressor_counts *told)
{
    struct metrics *metrics = deliver->settings.metrics;

    metric_add(metrics, METRIC_COMPRESSION_RESETS, now->resets - told->resets);
    metric_add(metrics, METRIC_COMPRESSION_REFUSALS, now->refusals - told->refusals);
    for (int i = ENCODING_DEFLATE; i < ENCODING_COUNT; i++) {
        tell_encoding(metrics, METRIC_COMPRESSION_BLOCKS, i, now->blocks, told->blocks);
        tell_encoding(metrics, METRIC_COMPRESSION_TIME, i, now->microseconds, told->microseconds);
    }
    metric_set(metrics, METRIC_COMPRESSION_HISTORIES, now->histories);
    metric_set(metrics, METRIC_COMPRESSION_HISTORY_BYTES, now->history_bytes);
    metric_set(metrics, METRIC_COMPRESSION_REFUSED, now->refused);
    *told = *now;
}

void pace_tell_metrics(struct deliver *deliver)
{
    struct outbox_counts *now = &deliver->counts, *told = &deliver->counted;
    struct metrics *metrics = deliver->settings.metrics;

    metric_add(metrics, METRIC_DELIVERIES, now->events - told->events);
    metric_add(metrics, METRIC_DELIVERED_BYTES, now->bytes - told->bytes);
    metric_add(metrics, METRIC_SENDS, now->sends - told->sends);
    metric_set(metrics, METRIC_EVENT_BYTES, deliver->event_bytes + deliver->reducer.bytes);
    metric_add(metrics, METRIC_REDUCTIONS, deliver->reducer.made - deliver->counted_reductions);
    deliver->counted_reductions = deliver->reducer.made;
    metric_set(metrics, METRIC_FILTER_BYTES, deliver_filter_bytes(deliver));
    for (int i = ENCODING_DEFLATE; i < ENCODING_COUNT; i++) {
        tell_encoding(metrics, METRIC_COMPRESSION_BEFORE, i, now->before_bytes, told->before_bytes);
        tell_encoding(metrics, METRIC_COMPRESSION_AFTER, i, now->after_bytes, told->after_bytes);
    }
    if (deliver->compressor)
        tell_compression(deliver, compressor_counts(deliver->compressor),
                         &deliver->counted_compression);
    metric_set(metrics, METRIC_HOME_BYTES, home_bytes(deliver->home));
    *told = *now;
}

static void flush_until(struct deliver *deliver, uint64_t until_ms, uint64_t now_ms)
{
    LIST_EACH(&deliver->due, node)
    {
        struct outbox *outbox = LIST_OWNER(node, struct outbox, node);

        if (outbox->due_ms > until_ms)
            break;
        pace_unqueue(deliver, outbox);
        outbox_flush(outbox, now_ms);
    }
    arm_timer(deliver, now_ms);
    pace_tell_metrics(deliver);
}

static void flush_due(uv_timer_t *timer)
{
    struct deliver *deliver = timer->data;
    uint64_t now_ms = uv_now(deliver->settings.loop);

    flush_until(deliver, now_ms, now_ms);
}

/* Apart from the ring and the reducer, only clients that are behind keep events longer than a
 * gather window. If all of them together keep too much, all of them catch up on their own, because
 * none is more responsible than others. */
static void enforce_event_bytes(struct deliver *deliver)
{
    size_t bytes = deliver->event_bytes;

    if (deliver->reducer.bytes > REDUCER_KEPT_BYTES)
        bytes += deliver->reducer.bytes - REDUCER_KEPT_BYTES;
    if (bytes <= deliver->settings.max_event_bytes + deliver->ring.bytes)
        return;
    metric_add(deliver->settings.metrics, METRIC_EVENT_BYTES_EXCEEDED, 1);
    LIST_EACH(&deliver->all_lanes, node)
    outbox_overrun_behind(&LIST_OWNER(node, struct lane, node)->outbox);
}

void pace_turn_end(struct deliver *deliver)
{
    uint64_t now_ms = uv_now(deliver->settings.loop);
    struct list_node *first_due = list_first(&deliver->due);

    LIST_EACH(&deliver->dirty, node)
    {
        struct outbox *outbox = LIST_OWNER(node, struct outbox, node);
        uint32_t gather_ms = outbox->settings.gather_ms;

        list_remove(&deliver->dirty, node);
        if (!outbox->last_flush_ms || now_ms - outbox->last_flush_ms >= gather_ms) {
            outbox_flush(outbox, now_ms);
        } else {
            outbox->due_ms = outbox->first_unflushed_ms + gather_ms;
            queue_due(deliver, outbox);
        }
    }
    if (list_first(&deliver->due) != first_due)
        arm_timer(deliver, now_ms);
    enforce_event_bytes(deliver);
    pace_tell_metrics(deliver);
}

void pace_flush_all(struct deliver *deliver)
{
    pace_turn_end(deliver);
    flush_until(deliver, UINT64_MAX, uv_now(deliver->settings.loop));
}
