/* id_order.c - a queue and a watermark for each shard, and the lowest watermark of all.
 *
 * Each item is appended to the queue of its shard and sets the shard's watermark. Then the smallest
 * of the first items of the queues is passed on, as long as it is at or below the lowest watermark.
 * There are only a few dozen shards, so checking each one is as fast as a heap.
 *
 * Normally a shard's watermark only rises. It falls when something arrives that should not have: an
 * event after a clock was set back, or the gap that reports a rewind. What was passed on stays so:
 * the shard is then behind. Its events are late, but do not overtake what is in its own queue; only
 * in this case a queue contains late events.
 *
 * Shards that are behind do not influence what may be passed on. At least one is not behind, unless
 * the memory for held items is exhausted. */
#include "gateway/intake/id_order.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/list.h"
#include "src/model/id.h"

enum { ROUND_GAP_US = 500000 }; /* rounds farther apart: Redis was silent, or nobody waited */

struct held_item {
    struct list_node node;
    struct order_item item; /* owns the reference to its event */
    uint64_t since_us;      /* by `waited_us` */
};

struct shard {
    struct list held;
    uint64_t watermark;
    uint64_t low;        /* for a shard that is behind: what has passed of it, as reported */
    uint64_t stalled_us; /* since when rounds have found it incomplete while others wait for it; 0:
                            not since it last rose */
    bool is_behind;
};

struct id_order {
    struct id_order_settings settings;
    struct id_order_callbacks callbacks;
    void *context;
    uint64_t watermark;
    uint32_t shard_count, behind_count;
    uint64_t round_us;  /* when the last round ended */
    uint64_t waited_us; /* a clock that runs only while rounds arrive, because the silence of Redis
                           is not the fault of a shard */
    size_t held_count, held_bytes;
    struct shard shards[SL_SHARDS_MAX];
};

bool id_order_is_ordering(const struct id_order *order)
{
    return order->shard_count > 1 && order->settings.wait_ms > 0;
}

/* No further item of the shard at or below it follows the item: a rewound shard continues where the
 * gap begins. */
static uint64_t watermark_behind(const struct order_item *item)
{
    return item->kind == ORDER_GAP && item->reason == GAP_REWOUND ? item->previous : item->id;
}

/* Its place among the ids of other shards. A gap is placed at the event before it: a client whose
 * id lies within the gap has been told of it. */
static uint64_t place_of(const struct order_item *item)
{
    return item->kind == ORDER_GAP ? item->previous : item->id;
}

/* ---- becoming behind, and complete again ---- */

static void go_behind(struct id_order *order, uint32_t number, uint64_t low, enum order_behind why)
{
    struct metrics *metrics = order->settings.metrics;

    assert(!order->shards[number].is_behind);
    order->shards[number].is_behind = true;
    order->shards[number].low = low;
    order->shards[number].stalled_us = 0;
    order->behind_count++;
    metric_add(metrics, metric_at(METRIC_ORDER_LEFT_BEHIND, why), 1);
    metric_set(metrics, METRIC_ORDER_BEHIND, order->behind_count);
    order->callbacks.behind(order->context, number, low, why);
}

static void tell_low(struct id_order *order, uint32_t number, uint64_t low)
{
    order->shards[number].low = low;
    order->callbacks.low(order->context, number, low);
}

/* What its queue contains has not passed yet. */
static void leave_behind(struct id_order *order, uint32_t number, enum order_behind why)
{
    const struct shard *shard = &order->shards[number];

    go_behind(order, number, list_is_empty(&shard->held) ? shard->watermark : order->watermark,
              why);
}

/* What its queue contains may be late. */
static void become_whole_if_so(struct id_order *order, uint32_t number)
{
    struct shard *shard = &order->shards[number];

    if (!shard->is_behind || shard->watermark < order->watermark || !list_is_empty(&shard->held))
        return;
    shard->is_behind = false;
    order->behind_count--;
    metric_set(order->settings.metrics, METRIC_ORDER_BEHIND, order->behind_count);
    order->callbacks.whole(order->context, number);
}

/* ---- passing on ---- */

static void hand_on(struct id_order *order, const struct order_item *item, uint64_t now_us)
{
    struct metrics *metrics = order->settings.metrics;

    if (item->event) {
        item->event->is_late = item->id <= order->watermark;
        metric_add(metrics, METRIC_EVENTS_LATE, item->event->is_late);
        metric_observe(metrics, METRIC_HISTOGRAM_ORDER_DELAY, now_us - item->event->received_us, 1);
    }
    order->callbacks.pass(order->context, item);
    if (order->shards[item->shard].is_behind)
        tell_low(order, item->shard, watermark_behind(item));
}

static size_t held_size(const struct order_item *item)
{
    return sizeof(struct held_item) + (item->event ? item->event->bytes : 0);
}

static void count_held(struct id_order *order, size_t count, size_t bytes)
{
    order->held_count = count;
    order->held_bytes = bytes;
    metric_set(order->settings.metrics, METRIC_ORDER_HELD_EVENTS, count);
    metric_set(order->settings.metrics, METRIC_ORDER_HELD_BYTES, bytes);
}

/* Removes it from its queue: the caller owns its event now. */
static struct order_item take_out(struct id_order *order, struct held_item *held)
{
    struct order_item item = held->item;

    list_remove(&order->shards[item.shard].held, &held->node);
    count_held(order, order->held_count - 1, order->held_bytes - held_size(&item));
    mem_free(held);
    return item;
}

static struct held_item *first_held(const struct shard *shard)
{
    struct list_node *node = list_first(&shard->held);

    return node ? LIST_OWNER(node, struct held_item, node) : NULL;
}

/* Of all queues; NULL: nothing is held. */
static struct held_item *smallest_held(const struct id_order *order)
{
    struct held_item *smallest = NULL;

    for (uint32_t i = 0; order->held_count > 0 && i < order->shard_count; i++) {
        struct held_item *first = first_held(&order->shards[i]);

        if (first && (!smallest || place_of(&first->item) < place_of(&smallest->item)))
            smallest = first;
    }
    return smallest;
}

/* The shard that the others wait for; `shard_count`: all are behind. */
static uint32_t lowest_shard(const struct id_order *order)
{
    uint32_t lowest = order->shard_count;

    for (uint32_t i = 0; i < order->shard_count; i++) {
        if (!order->shards[i].is_behind &&
            (lowest == order->shard_count ||
             order->shards[i].watermark < order->shards[lowest].watermark))
            lowest = i;
    }
    return lowest;
}

static void hand_on_ready(struct id_order *order, uint64_t now_us)
{
    uint32_t lowest = lowest_shard(order);
    bool is_any_whole = lowest < order->shard_count;
    uint64_t ready = is_any_whole ? order->shards[lowest].watermark : SL_ID_MAX;
    uint64_t reached = is_any_whole ? ready : 0;
    struct held_item *held;

    while ((held = smallest_held(order)) != NULL && place_of(&held->item) <= ready) {
        struct order_item item = take_out(order, held);

        hand_on(order, &item, now_us);
        event_unref(item.event);
        if (place_of(&item) > reached)
            reached = place_of(&item);
    }
    if (reached <= order->watermark)
        return;
    order->watermark = reached;
    order->callbacks.watermark(order->context, reached);
}

/* ---- arriving items ---- */

static void set_watermark(struct shard *shard, uint64_t id)
{
    if (id > shard->watermark)
        shard->stalled_us = 0;
    shard->watermark = id;
}

/* 0; -1: out of memory. */
static int hold(struct id_order *order, const struct order_item *item)
{
    struct held_item *held = mem_zalloc(sizeof(*held));

    if (!held)
        return -1;
    held->item = *item;
    held->since_us = order->waited_us;
    if (item->event)
        event_ref(item->event);
    list_append(&order->shards[item->shard].held, &held->node);
    count_held(order, order->held_count + 1, order->held_bytes + held_size(item));
    return 0;
}

/* Treats it as an event for which there was no memory: clients that may want it must read it
 * later. */
static void miss(struct id_order *order, const struct order_item *item, uint64_t now_us)
{
    struct order_item missed = {
        .kind = ORDER_MISS, .shard = item->shard, .id = item->id, .previous = item->previous};

    hand_on(order, &missed, now_us);
}

static void keep_within_bound(struct id_order *order, uint64_t now_us)
{
    while (order->held_bytes > order->settings.max_held_bytes) {
        leave_behind(order, lowest_shard(order), ORDER_BEHIND_MEMORY);
        hand_on_ready(order, now_us);
    }
}

/* What was reported about the shard is wrong: the item should have passed before. Between an event
 * and the one before it, which may be days old, nothing has happened. */
static void take_back_claim(struct id_order *order, const struct order_item *item)
{
    const struct shard *shard = &order->shards[item->shard];
    uint64_t claimed = shard->is_behind ? shard->low : order->watermark;
    uint64_t low = item->kind == ORDER_GAP ? item->previous : item->id - 1;

    if (shard->watermark > claimed)
        return;
    if (shard->is_behind)
        tell_low(order, item->shard, low);
    else
        go_behind(order, item->shard, low, ORDER_BEHIND_LATE);
}

void id_order_take(struct id_order *order, const struct order_item *item, uint64_t now_us)
{
    struct shard *shard = &order->shards[item->shard];

    if (!id_order_is_ordering(order) || item->id == 0) {
        order->callbacks.pass(order->context, item);
        return;
    }
    set_watermark(shard, watermark_behind(item));
    take_back_claim(order, item);
    if (place_of(item) > order->watermark)
        become_whole_if_so(order, item->shard);
    if (place_of(item) <= order->watermark && list_is_empty(&shard->held)) {
        hand_on(order, item, now_us);
        become_whole_if_so(order, item->shard); /* a gap may end above the watermark */
    } else if (hold(order, item) < 0) {
        miss(order, item, now_us);
    }
    hand_on_ready(order, now_us);
    keep_within_bound(order, now_us);
}

/* ---- rounds ---- */

static void raise_shard(struct id_order *order, uint32_t number, uint64_t id)
{
    struct shard *shard = &order->shards[number];

    if (id <= shard->watermark)
        return;
    set_watermark(shard, id);
    if (!shard->is_behind)
        return;
    become_whole_if_so(order, number);
    if (shard->is_behind && list_is_empty(&shard->held))
        tell_low(order, number, id);
}

/* The greatest id that is held. In a queue with a rewind the last one is not the greatest; then the
 * next one passed on counts. */
static uint64_t greatest_held(const struct id_order *order)
{
    const struct held_item *smallest = smallest_held(order);
    uint64_t greatest = smallest ? place_of(&smallest->item) : 0;

    for (uint32_t i = 0; i < order->shard_count; i++) {
        const struct list *held = &order->shards[i].held;

        if (!list_is_empty(held)) {
            uint64_t id = place_of(&LIST_OWNER(held->head.previous, struct held_item, node)->item);

            greatest = id > greatest ? id : greatest;
        }
    }
    return greatest;
}

/* Whether others have waited too long for this shard. A complete shard keeps up with the clock of
 * Redis: if that is not enough, the waiting id is ahead of that clock. */
static bool has_stalled(const struct id_order *order, struct shard *shard, bool is_complete)
{
    const struct held_item *smallest = smallest_held(order);
    uint64_t since_us = order->waited_us;

    if (!is_complete) {
        shard->stalled_us = shard->stalled_us ? shard->stalled_us : order->waited_us;
        since_us = shard->stalled_us;
    } else if (shard->watermark < place_of(&smallest->item)) {
        since_us = smallest->since_us;
    }
    return (order->waited_us - since_us) / 1000 >= order->settings.wait_ms;
}

/* What is held between the watermarks of two stalled shards is passed on when both are behind. */
static void leave_stalled_behind(struct id_order *order, uint64_t complete, uint64_t now_us)
{
    uint64_t greatest = greatest_held(order);

    for (uint32_t i = 0; i < order->shard_count; i++) {
        struct shard *shard = &order->shards[i];

        if (!shard->is_behind && shard->watermark < greatest &&
            has_stalled(order, shard, complete >> i & 1))
            leave_behind(order, i, ORDER_BEHIND_WAIT);
    }
    hand_on_ready(order, now_us);
}

void id_order_leave_behind(struct id_order *order, uint32_t shard, uint64_t now_us)
{
    if (!id_order_is_ordering(order) || order->shards[shard].is_behind)
        return;
    leave_behind(order, shard, ORDER_BEHIND_WAIT);
    hand_on_ready(order, now_us);
}

void id_order_look_again(struct id_order *order, uint64_t id, uint64_t complete, uint64_t now_us)
{
    if (!id_order_is_ordering(order))
        return;
    for (uint32_t i = 0; i < order->shard_count; i++) {
        if (complete >> i & 1)
            raise_shard(order, i, id);
    }
    hand_on_ready(order, now_us);
}

void id_order_end_round(struct id_order *order, uint64_t id, uint64_t complete, uint64_t now_us)
{
    if (!id_order_is_ordering(order))
        return;
    if (now_us - order->round_us <= ROUND_GAP_US)
        order->waited_us += now_us - order->round_us;
    order->round_us = now_us;
    id_order_look_again(order, id, complete, now_us);
    leave_stalled_behind(order, complete, now_us);
}

uint64_t id_order_first_held(const struct id_order *order)
{
    const struct held_item *smallest = smallest_held(order);

    return smallest ? place_of(&smallest->item) : 0;
}

bool id_order_is_unsure(const struct id_order *order)
{
    return id_order_is_ordering(order) && (order->watermark == 0 || order->behind_count > 0);
}

/* ---- creating and freeing ---- */

struct id_order *id_order_new(const struct id_order_settings *settings,
                              const struct id_order_callbacks *callbacks, void *context)
{
    struct id_order *order = mem_zalloc(sizeof(*order));

    if (!order)
        return NULL;
    order->settings = *settings;
    order->callbacks = *callbacks;
    order->context = context;
    order->waited_us = 1; /* 0 means none */
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        list_init(&order->shards[i].held);
    return order;
}

void id_order_free(struct id_order *order)
{
    struct held_item *held;

    if (!order)
        return;
    while ((held = smallest_held(order)) != NULL)
        event_unref(take_out(order, held).event);
    metric_set(order->settings.metrics, METRIC_ORDER_BEHIND, 0);
    mem_free(order);
}

void id_order_begin_shard(struct id_order *order, uint32_t shard, uint64_t id)
{
    assert(shard <= order->shard_count && shard < SL_SHARDS_MAX);
    if (shard == order->shard_count)
        order->shard_count++;
    order->shards[shard].watermark = id;
}
