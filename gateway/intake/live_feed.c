/* live_feed.c - per shard the last id, and a ring of those before it.
 *
 * Ids grow with time even across a failover, so that an id at or below the highest one is rare;
 * only then the ring is searched, from its newest end. What is older than the ring counts as never
 * seen: delivering twice is the smaller harm. */
#include "gateway/intake/live_feed.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "src/id.h"
#include "src/keys.h"

enum { SEEN_IDS = 1024 };

struct shard_order {
    uint64_t last;    /* 0: nothing seen yet */
    uint64_t highest; /* ever seen; above `last` after a rewind */
    size_t count;     /* ids ever put into `seen` */
    uint64_t seen[SEEN_IDS];
};

struct live_feed {
    size_t max_event_bytes;
    struct metrics *metrics;
    struct live_feed_callbacks callbacks;
    void *context;
    struct shard_order *shards[SL_SHARDS_MAX]; /* made when first heard of */
    char channels[SL_SHARDS_MAX][SL_KEY_SIZE];
};

struct live_feed *live_feed_new(size_t max_event_bytes, struct metrics *metrics,
                                const struct live_feed_callbacks *callbacks, void *context)
{
    struct live_feed *feed = mem_zalloc(sizeof(*feed));

    if (!feed)
        return NULL;
    feed->max_event_bytes = max_event_bytes;
    feed->metrics = metrics;
    feed->callbacks = *callbacks;
    feed->context = context;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        sl_key(shard, "live", feed->channels[shard]);
    return feed;
}

void live_feed_free(struct live_feed *feed)
{
    if (!feed)
        return;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        mem_free(feed->shards[shard]);
    mem_free(feed);
}

/* ---- reading ---- */

/* Reads a decimal number without leading zeros and the space behind it. */
static bool read_id(struct sl_slice *text, uint64_t *ret_id)
{
    const char *space = memchr(text->data, ' ', text->size);
    struct sl_slice digits;

    if (!space)
        return false;
    digits = sl_slice(text->data, (size_t)(space - text->data));
    if (sl_slice_is(digits, "0"))
        *ret_id = 0;
    else if (sl_id_parse(digits, ret_id) < 0)
        return false;
    *text = sl_slice_from(*text, digits.size + 1);
    return true;
}

static bool read_channel(const struct live_feed *feed, struct sl_slice channel, uint32_t *ret_shard)
{
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (sl_slice_is(channel, feed->channels[shard])) {
            *ret_shard = shard;
            return true;
        }
    }
    return false;
}

static bool read_message(struct sl_slice payload, struct live_message *message)
{
    message->json = payload;
    if (payload.size > 0 && payload.data[0] == '{')
        return true;
    return read_id(&message->json, &message->id) && read_id(&message->json, &message->previous) &&
           message->id > message->previous && sl_id_shard(message->id) == message->shard &&
           message->json.size > 0 && message->json.data[0] == '{';
}

/* ---- order ---- */

static bool was_seen(const struct shard_order *order, uint64_t id)
{
    size_t remembered = order->count < SEEN_IDS ? order->count : SEEN_IDS;

    for (size_t back = 1; back <= remembered; back++) {
        if (order->seen[(order->count - back) % SEEN_IDS] == id)
            return true;
    }
    return false;
}

static void remember(struct shard_order *order, uint64_t id)
{
    order->last = id;
    if (id > order->highest)
        order->highest = id;
    order->seen[order->count++ % SEEN_IDS] = id;
}

static void tell_gap(struct live_feed *feed, uint32_t shard, uint64_t from, uint64_t to,
                     enum live_gap_reason reason)
{
    struct live_gap gap = {shard, from, to, reason};

    feed->callbacks.gap(feed->context, &gap);
}

/* Moves the shard on to this message. 0: it is to be delivered; -EALREADY: a duplicate. */
static int put_in_order(struct live_feed *feed, struct shard_order *order,
                        const struct live_message *message)
{
    uint64_t last = order->last;

    if (message->id <= order->highest && was_seen(order, message->id)) {
        metric_add(feed->metrics, METRIC_EVENTS_DUPLICATE, 1);
        return -EALREADY;
    }
    remember(order, message->id);
    if (last == 0 || message->previous == last)
        return 0;
    if (message->previous > last) {
        metric_add(feed->metrics, METRIC_EVENT_GAPS, 1);
        tell_gap(feed, message->shard, last, message->previous, LIVE_GAP_MISSED);
        return 0;
    }
    /* The log has lost what lies between; who reads on from `last` misses an id below it. */
    metric_add(feed->metrics, METRIC_EVENT_REWINDS, 1);
    if (message->id < last)
        tell_gap(feed, message->shard, message->previous, last, LIVE_GAP_REWOUND);
    return 0;
}

int live_feed_take(struct live_feed *feed, struct sl_slice channel, struct sl_slice payload,
                   uint64_t now_ms)
{
    struct live_message message = {.received_ms = now_ms};
    struct shard_order **order;
    int r;

    metric_add(feed->metrics, METRIC_EVENTS_RECEIVED, 1);
    if (!read_channel(feed, channel, &message.shard) || !read_message(payload, &message)) {
        metric_add(feed->metrics, METRIC_EVENTS_BAD_HEADER, 1);
        return -EBADMSG;
    }
    if (message.id != 0) {
        order = &feed->shards[message.shard];
        if (!*order)
            *order = mem_zalloc(sizeof(**order));
        if (!*order)
            return -ENOMEM;
        r = put_in_order(feed, *order, &message);
        if (r < 0)
            return r;
    }
    if (message.json.size > feed->max_event_bytes) {
        metric_add(feed->metrics, METRIC_EVENTS_TOO_BIG, 1);
        return -EMSGSIZE;
    }
    feed->callbacks.message(feed->context, &message);
    return 0;
}
