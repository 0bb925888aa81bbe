/* shard_order.c - the last id, a ring of those before it, and a list of held messages.
 *
 * Ids grow with time even across a failover, so an id at or below the highest one is rare; only
 * then the ring is searched, from its newest end. Ids older than the ring count as never passed,
 * because delivering twice is the smaller harm. But the log may be read further ahead of the live
 * channel than the ring is long, so a range read from it counts as passed completely until the
 * channel has caught up.
 *
 * A message that does not follow the last one, but an event before it or an unknown one, shows that
 * there may be two logs: one has lost its tail, or a former master continues with its own. (Even a
 * master that was stopped is received: it passes on what it publishes to its former replica, which
 * is the master now.) Only the log can show which of them continues, so it is read from where they
 * part, or from the oldest id in the ring if that is unknown; entries that were passed are skipped.
 * A message that is not in the log has never happened, and is dropped; unless the log is empty
 * there, because then it may have been trimmed.
 *
 * A batch proves that something is not in the log only if it was requested after that was known to
 * be missing: so a batch counts as the last one only if its `to` is the one wanted now. */
#include "gateway/intake/shard_order.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "src/model/id.h"

enum { PASSED_IDS = 1024 };

struct held_message {
    struct list_node node;
    struct live_message message; /* followed by the body */
};

struct shard_order {
    struct shard_order_settings settings;
    struct shard_order_callbacks callbacks;
    void *context;
    uint64_t last;    /* event, or end of a gap, passed on; an older one while reading again */
    uint64_t highest; /* ever passed; above `last` after a rewind */
    bool is_guess;    /* `last` is not an event: the newest event is that or an older one */
    bool is_wanting;  /* (last, wanted_to] of the log; nothing is held otherwise */
    uint64_t wanted_to;
    bool is_proving;           /* the wanted range is to show which log continues */
    bool has_proof;            /* some of it has arrived */
    uint64_t rewound_from;     /* `last` before the rewind; 0: already reported by a gap, or nothing
                                  to report */
    uint64_t log_from, log_to; /* completely passed on from the log since the last live message */
    struct list held;
    size_t held_bytes;
    size_t passed_count; /* total number of ids put into `passed` */
    uint64_t passed[PASSED_IDS];
};

static void remember(struct shard_order *order, uint64_t id)
{
    assert(id > 0);
    order->last = id;
    if (id > order->highest)
        order->highest = id;
    order->passed[order->passed_count++ % PASSED_IDS] = id;
}

static bool is_of_shard(const struct shard_order_settings *settings, uint64_t log_end)
{
    return log_end == 0 || sl_id_shard(log_end) == settings->shard;
}

struct shard_order *shard_order_new(const struct shard_order_settings *settings,
                                    const struct shard_order_callbacks *callbacks, void *context)
{
    struct shard_order *order = mem_zalloc(sizeof(*order));

    if (!order)
        return NULL;
    order->settings = *settings;
    order->callbacks = *callbacks;
    order->context = context;
    list_init(&order->held);
    order->is_guess = !is_of_shard(settings, settings->log_end);
    if (order->is_guess)
        order->last = settings->log_end;
    else if (settings->log_end > 0)
        remember(order, settings->log_end);
    return order;
}

/* ---- held messages ---- */

static size_t held_size(const struct held_message *held)
{
    return sizeof(*held) + held->message.body.size;
}

static void release_held(struct shard_order *order, struct held_message *held)
{
    assert(order->held_bytes >= held_size(held));
    list_remove(&order->held, &held->node);
    order->held_bytes -= held_size(held);
    metric_sub(order->settings.metrics, METRIC_HELD_BYTES, held_size(held));
    mem_free(held);
}

/* Drops all held messages, which are in the log. Returns the highest id; 0: none were held. */
static uint64_t drop_held(struct shard_order *order)
{
    uint64_t highest = 0;

    LIST_EACH(&order->held, node)
    {
        struct held_message *held = LIST_OWNER(node, struct held_message, node);

        if (held->message.id > highest)
            highest = held->message.id;
        release_held(order, held);
    }
    return highest;
}

static void want_until(struct shard_order *order, uint64_t to)
{
    if (to > order->wanted_to)
        order->wanted_to = to;
}

static void hold(struct shard_order *order, const struct live_message *message)
{
    size_t size = sizeof(struct held_message) + message->body.size;
    struct held_message *held = NULL;

    assert(order->is_wanting && order->held_bytes <= order->settings.max_held_bytes);
    if (size <= order->settings.max_held_bytes - order->held_bytes)
        held = mem_alloc(size);
    if (!held) {
        want_until(order, drop_held(order));
        want_until(order, message->id);
        return;
    }
    held->message = *message;
    held->message.body =
        sl_slice(memcpy(held + 1, message->body.data, message->body.size), message->body.size);
    held->node = (struct list_node){NULL, NULL};
    list_append(&order->held, &held->node);
    order->held_bytes += size;
    metric_add(order->settings.metrics, METRIC_HELD_BYTES, size);
}

void shard_order_free(struct shard_order *order)
{
    if (!order)
        return;
    drop_held(order);
    mem_free(order);
}

/* ---- order ---- */

static bool was_passed(const struct shard_order *order, uint64_t id)
{
    size_t remembered = order->passed_count < PASSED_IDS ? order->passed_count : PASSED_IDS;

    if (id > order->highest)
        return false;
    if (id > order->log_from && id <= order->log_to)
        return true;
    for (size_t back = 1; back <= remembered; back++) {
        if (order->passed[(order->passed_count - back) % PASSED_IDS] == id)
            return true;
    }
    return false;
}

static uint64_t oldest_passed(const struct shard_order *order)
{
    if (order->passed_count == 0)
        return 0;
    return order->passed_count < PASSED_IDS ? order->passed[0]
                                            : order->passed[order->passed_count % PASSED_IDS];
}

static void tell_gap(struct shard_order *order, uint64_t from, uint64_t to, enum gap_reason reason)
{
    struct gap gap = {order->settings.shard, from, to, reason};

    assert(from < to);
    order->callbacks.gap(order->context, &gap);
}

static void want(struct shard_order *order, uint64_t to)
{
    order->is_wanting = true;
    order->wanted_to = to;
}

static void want_missed(struct shard_order *order, uint64_t to)
{
    metric_add(order->settings.metrics, METRIC_EVENT_GAPS, 1);
    want(order, to);
}

/* Wants to know whether the log continues what was passed, or has `id` after `from`. */
static void want_proof(struct shard_order *order, uint64_t from, uint64_t id)
{
    order->is_proving = true;
    order->has_proof = false;
    order->rewound_from = order->last;
    order->last = from;
    want(order, id > order->rewound_from ? id : order->rewound_from);
}

static void tell_rewound(struct shard_order *order, uint64_t from, uint64_t to)
{
    metric_add(order->settings.metrics, METRIC_EVENT_REWINDS, 1);
    tell_gap(order, from, to, GAP_REWOUND);
}

/* Whether this event may have been missed, though it is not above the last one. What is older than
 * everything remembered was not. */
static bool is_news(const struct shard_order *order, uint64_t id)
{
    return id > oldest_passed(order) && !was_passed(order, id);
}

static void pass_live(struct shard_order *order, const struct live_message *message)
{
    order->log_to = 0;
    remember(order, message->id);
    order->callbacks.event(order->context, message);
}

/* Where to begin reading the log for a message that names `previous`, which belongs to another
 * branch than the last event passed. */
static uint64_t where_to_prove(const struct shard_order *order, uint64_t previous)
{
    uint64_t oldest = oldest_passed(order);

    if (previous > order->last)
        return order->last;
    return previous > oldest && was_passed(order, previous) ? previous : oldest;
}

/* Passes on the message, or drops it: as a duplicate, or because the log is known up to `proven_to`
 * and does not have it. false: what comes before it is missing, and wanted now. */
static bool pass_or_drop(struct shard_order *order, const struct live_message *message,
                         uint64_t proven_to)
{
    if (was_passed(order, message->id)) {
        metric_add(order->settings.metrics, METRIC_EVENTS_DUPLICATE, 1);
        return true;
    }
    if (message->previous == order->last) {
        pass_live(order, message);
        return true;
    }
    if (message->id <= proven_to) {
        metric_add(order->settings.metrics, METRIC_EVENTS_STALE, 1);
        return true;
    }
    if (message->previous > order->last && !was_passed(order, message->previous))
        want_missed(order, message->previous);
    else
        want_proof(order, where_to_prove(order, message->previous), message->id);
    return false;
}

bool shard_order_take(struct shard_order *order, const struct live_message *message)
{
    assert(order->is_wanting || list_is_empty(&order->held));
    if (message->id == 0)
        order->callbacks.event(order->context, message);
    else if (order->is_wanting || !pass_or_drop(order, message, 0))
        hold(order, message);
    return order->is_wanting;
}

/* The newest event before is known now, from the event after it or from the end of the log. */
static void end_guess(struct shard_order *order, uint64_t newest)
{
    order->is_guess = false;
    order->rewound_from = 0;
    if (newest >= order->last)
        return;
    order->last = 0;
    if (newest > 0)
        remember(order, newest);
}

void shard_order_resume(struct shard_order *order, uint64_t log_end)
{
    if (!is_of_shard(&order->settings, log_end))
        return; /* if events were passed on before, a guess adds nothing */
    if (!order->is_wanting && order->is_guess && log_end < order->last)
        end_guess(order, log_end);
    if (order->is_wanting || !is_news(order, log_end))
        return;
    if (log_end > order->last)
        want_missed(order, log_end);
    else
        want_proof(order, oldest_passed(order), log_end);
}

/* ---- batches of the log ---- */

bool shard_order_wants(const struct shard_order *order, uint64_t *ret_after, uint64_t *ret_to)
{
    if (!order->is_wanting)
        return false;
    *ret_after = order->last;
    if (order->is_proving && order->last == order->rewound_from && order->last > 0)
        *ret_after = order->last - 1; /* finding it proves that nothing after it was trimmed */
    *ret_to = order->wanted_to;
    return true;
}

/* Everything wanted has been passed on or reported as a gap: held messages follow, until it turns
 * out that something else is missing. */
static void let_go(struct shard_order *order, uint64_t proven_to)
{
    struct list_node *first;

    if (order->rewound_from > order->last)
        tell_rewound(order, order->last, order->rewound_from);
    order->rewound_from = 0;
    order->is_wanting = order->is_proving = false;
    while ((first = list_first(&order->held)) != NULL) {
        struct held_message *held = LIST_OWNER(first, struct held_message, node);

        if (!pass_or_drop(order, &held->message, proven_to))
            return;
        release_held(order, held);
    }
}

/* The log proves nothing: trusts the first held message. */
static void believe_held(struct shard_order *order)
{
    struct list_node *first = list_first(&order->held);

    if (first)
        order->wanted_to = LIST_OWNER(first, struct held_message, node)->message.previous;
}

/* The log does not have what the first held message names: asks whether it has the message itself.
 * true: the log is asked. */
static bool asks_for_held(struct shard_order *order)
{
    struct list_node *first = list_first(&order->held);

    if (order->is_proving || !first || order->last >= order->wanted_to ||
        order->wanted_to == SL_ID_MAX)
        return false;
    want_proof(order, order->last, LIST_OWNER(first, struct held_message, node)->message.id);
    return true;
}

/* The end of the wanted range was reached, and the rest of it cannot be had. */
static void end_stretch(struct shard_order *order, enum gap_reason reason)
{
    if (order->is_proving && order->has_proof) {
        let_go(order, order->wanted_to);
        return;
    }
    if (reason == GAP_RETENTION && asks_for_held(order))
        return;
    if (order->is_proving)
        believe_held(order);
    order->is_guess = order->is_guess && order->wanted_to == SL_ID_MAX;
    if (order->last < order->wanted_to && order->wanted_to != SL_ID_MAX) {
        tell_gap(order, order->last, order->wanted_to, reason);
        remember(order, order->wanted_to);
    }
    let_go(order, 0);
}

static void pass_entry(struct shard_order *order, const struct sl_event_log_entry *entry,
                       uint64_t now_us)
{
    const struct live_message message = {
        .shard = order->settings.shard,
        .id = entry->id,
        .previous = entry->previous,
        .received_us = now_us,
        .body = entry->event,
    };

    if (order->log_to != order->last)
        order->log_from = order->last;
    order->log_to = entry->id;
    remember(order, entry->id);
    metric_add(order->settings.metrics, METRIC_EVENTS_REPAIRED, 1);
    order->callbacks.event(order->context, &message);
}

static void take_entry(struct shard_order *order, const struct sl_event_log_entry *entry,
                       uint64_t now_us)
{
    if (entry->id <= order->last)
        return;
    if (order->is_guess)
        end_guess(order, entry->previous);
    if (was_passed(order, entry->id)) {
        order->last = entry->id;
        return;
    }
    if (entry->previous > order->last && !was_passed(order, entry->previous))
        tell_gap(order, order->last, entry->previous, GAP_RETENTION);
    if (entry->previous < order->last && order->rewound_from == 0)
        tell_rewound(order, entry->previous, order->last);
    if (order->rewound_from > entry->previous)
        tell_rewound(order, entry->previous, order->rewound_from);
    order->rewound_from = 0;
    pass_entry(order, entry, now_us);
}

void shard_order_batch(struct shard_order *order, const struct log_batch *batch, uint64_t now_us)
{
    uint64_t last = order->last;

    if (batch->after > last)
        return; /* requested before a rewind: it begins too late */
    order->has_proof = order->has_proof || batch->count > 0;
    for (size_t i = 0; i < batch->count; i++)
        take_entry(order, &batch->entries[i], now_us);
    if (!order->is_wanting) {
        if (order->last > last)
            metric_add(order->settings.metrics, METRIC_EVENT_GAPS, 1);
        if (order->last > last && batch->is_full)
            want(order, SL_ID_MAX);
        return;
    }
    if (order->last >= order->wanted_to || (!batch->is_full && batch->to == order->wanted_to))
        end_stretch(order, GAP_RETENTION);
}

void shard_order_give_up(struct shard_order *order)
{
    if (order->is_wanting)
        end_stretch(order, GAP_REDIS);
}

uint64_t shard_order_last(const struct shard_order *order)
{
    return order->last;
}
