/* relay.c - reads entries until there are none, then sleeps until the writer wakes it.
 *
 * A turn processes at most TURN_ENTRIES, so that a worker with much to read serves its clients in
 * between; it then wakes itself. While it is not asleep the writer spends no system call on it.
 *
 * Joining returns a position among the entries, and the state at that position. If Redis is
 * subscribed there, the owner is told as if it had just been subscribed: the newest event of each
 * shard is the end of its log. If not, that follows with the entries. */
#include "gateway/intake/relay.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"

enum { TURN_ENTRIES = 1000, JOIN_AGAIN_MS = 10 };

struct relay {
    uv_poll_t poll;
    uv_timer_t timer; /* to join again after a failure; also used for the first time */
    unsigned open_handles;
    bool is_closed;
    struct relay_settings settings;
    struct relay_callbacks callbacks;
    void *context;
    struct broadcast_reader reader;
    bool has_joined;
    bool is_subscribed;
    struct sl_meta meta;
    uint64_t ends[SL_SHARDS_MAX], clock_until_ms[SL_SHARDS_MAX]; /* reported before `subscribed` */
    struct log_rate overrun_rate;
};

/* ---- entries ---- */

/* The ends of all logs are reported here, because a reader that joins in between has not received
 * all of them. */
static int begin_hearing(struct relay *relay, const struct sl_meta *meta)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < meta->shards; shard++)
        r = relay->callbacks.heard.log_end(relay->context, shard, relay->ends[shard]);
    if (r < 0)
        return r;
    relay->meta = *meta;
    if (meta->is_clustered && relay->settings.news.database)
        relay->settings.news.database(relay->settings.news.context, meta);
    relay->is_subscribed = true;
    metric_set(relay->settings.metrics, METRIC_SUBSCRIBED, 1);
    relay->callbacks.heard.subscribed(relay->context, meta->shards);
    return 0;
}

static void lose(struct relay *relay, const char *reason)
{
    if (!relay->is_subscribed)
        return;
    relay->is_subscribed = false;
    metric_set(relay->settings.metrics, METRIC_SUBSCRIBED, 0);
    relay->callbacks.heard.lost(relay->context, reason);
}

static void take_master(struct relay *relay, const struct sl_redis_endpoint *endpoint)
{
    if (relay->settings.news.master)
        relay->settings.news.master(relay->settings.news.context, endpoint);
}

static void tell_away(struct relay *relay, const char *reason)
{
    if (relay->settings.news.away)
        relay->settings.news.away(relay->settings.news.context, reason);
}

static void take_reason(struct relay *relay, enum broadcast_kind kind, struct sl_slice text)
{
    struct failure reason;

    failure_set(&reason, 0, "%.*s", SL_SLICE_ARG(text));
    if (kind == BROADCAST_LOST)
        lose(relay, reason.text);
    else
        tell_away(relay, reason.text);
}

static void take_message(struct relay *relay, const struct broadcast_entry *entry,
                         enum live_form form)
{
    const struct live_message message = {
        .shard = entry->shard,
        .id = entry->id,
        .previous = entry->previous,
        .received_us = entry->received_us,
        .form = form,
        .body = entry->data,
    };

    relay->callbacks.heard.message(relay->context, &message);
}

/* If a shard was not received for a while but others were, its end of log is reported at once. */
static int take_log_end(struct relay *relay, const struct broadcast_entry *entry)
{
    relay->ends[entry->shard] = entry->id;
    relay->clock_until_ms[entry->shard] = entry->clock_until_ms;
    return relay->is_subscribed
               ? relay->callbacks.heard.log_end(relay->context, entry->shard, entry->id)
               : 0;
}

static int take_entry(struct relay *relay, const struct broadcast_entry *entry)
{
    struct sl_redis_endpoint endpoint;
    struct sl_meta meta;

    switch (entry->kind) {
    case BROADCAST_MASTER:
        memcpy(&endpoint, entry->data.data, sizeof(endpoint));
        take_master(relay, &endpoint);
        break;
    case BROADCAST_LOG_END:
        return take_log_end(relay, entry);
    case BROADCAST_SUBSCRIBED:
        memcpy(&meta, entry->data.data, sizeof(meta));
        return begin_hearing(relay, &meta);
    case BROADCAST_LOST:
    case BROADCAST_AWAY:
        take_reason(relay, entry->kind, entry->data);
        break;
    case BROADCAST_JSON:
        take_message(relay, entry, LIVE_JSON);
        break;
    case BROADCAST_EVENT:
        take_message(relay, entry, LIVE_EVENT);
        break;
    case BROADCAST_REFUSED:
        take_message(relay, entry, LIVE_REFUSED);
        break;
    case BROADCAST_ROUND:
        metric_set(relay->settings.metrics, METRIC_REDIS_CLOCK_SKEW, entry->clock_skew_us);
        relay->callbacks.round_over(relay->context, entry->id, entry->shards);
        break;
    case BROADCAST_TIME:
        relay->callbacks.time(relay->context, entry->shards, entry->redis_ms);
        break;
    case BROADCAST_HEARD_AGAIN:
        if (relay->is_subscribed)
            relay->callbacks.heard.heard_again(relay->context, entry->shard);
        break;
    }
    return 0;
}

/* ---- joining and leaving ---- */

static void on_timer(uv_timer_t *timer);

static void leave(struct relay *relay, int error)
{
    uint64_t held_back;

    relay->has_joined = false;
    uv_timer_start(&relay->timer, on_timer, JOIN_AGAIN_MS, 0);
    if (error == -EOVERFLOW) {
        metric_add(relay->settings.metrics, METRIC_INTAKE_OVERRUNS, 1);
        if (log_rate_allows(&relay->overrun_rate, clock_monotonic_ms(), &held_back))
            log_warn("intake_overrun", "worker=%u held_back=%llu", relay->settings.worker,
                     (unsigned long long)held_back);
        lose(relay, "the worker was too slow for the intake process");
    } else if (error == -EPIPE) {
        tell_away(relay, "the intake process has ended");
        lose(relay, "the intake process has ended");
    } else {
        lose(relay, "out of memory");
    }
}

static int tell_state(struct relay *relay, const struct broadcast_state *state)
{
    memcpy(relay->ends, state->ends, sizeof(relay->ends));
    memcpy(relay->clock_until_ms, state->clock_until_ms, sizeof(relay->clock_until_ms));
    if (state->has_master)
        take_master(relay, &state->master);
    if (state->is_subscribed)
        return begin_hearing(relay, &state->meta);
    if (state->away.text[0])
        tell_away(relay, state->away.text);
    return 0;
}

static bool join(struct relay *relay)
{
    struct broadcast_state state;

    relay->has_joined = broadcast_join(&relay->reader, &state) == 0;
    if (relay->has_joined && tell_state(relay, &state) < 0)
        relay->has_joined = false;
    if (!relay->has_joined && !relay->is_closed)
        uv_timer_start(&relay->timer, on_timer, JOIN_AGAIN_MS, 0);
    return relay->has_joined;
}

/* ---- turns ---- */

/* false: there may be more to read now. */
static bool read_some(struct relay *relay, bool *ret_has_messages)
{
    struct broadcast_entry entry;

    *ret_has_messages = false;
    for (unsigned i = 0; i < TURN_ENTRIES && !relay->is_closed; i++) {
        int r = broadcast_read(&relay->reader, &entry);

        if (r == 0 && broadcast_sleep(&relay->reader))
            return true;
        if (r > 0) {
            r = take_entry(relay, &entry);
            *ret_has_messages = true;
        }
        if (r < 0) {
            leave(relay, r);
            return true;
        }
    }
    return false;
}

static void turn(struct relay *relay)
{
    bool has_messages, is_done;

    broadcast_clear_wake(&relay->reader);
    if (!relay->has_joined && !join(relay))
        return;
    is_done = read_some(relay, &has_messages);
    if (has_messages && !relay->is_closed)
        relay->callbacks.heard.turn_end(relay->context);
    if (!is_done && !relay->is_closed)
        broadcast_wake_self(&relay->reader);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    turn(poll->data);
}

static void on_timer(uv_timer_t *timer)
{
    turn(timer->data);
}

/* ---- creating and freeing ---- */

static void on_closed(uv_handle_t *handle)
{
    struct relay *relay = handle->data;

    if (--relay->open_handles > 0)
        return;
    broadcast_reader_done(&relay->reader);
    mem_free(relay);
}

struct relay *relay_new(const struct relay_settings *settings,
                        const struct relay_callbacks *callbacks, void *context)
{
    struct relay *relay = mem_zalloc(sizeof(*relay));

    if (!relay)
        return NULL;
    relay->settings = *settings;
    relay->callbacks = *callbacks;
    relay->context = context;
    broadcast_reader_init(&relay->reader, settings->broadcast, settings->worker);
    if (uv_poll_init(settings->loop, &relay->poll, broadcast_wake_fd(&relay->reader)) < 0) {
        mem_free(relay);
        return NULL;
    }
    uv_timer_init(settings->loop, &relay->timer);
    relay->poll.data = relay->timer.data = relay;
    relay->open_handles = 2;
    uv_poll_start(&relay->poll, UV_READABLE, on_readable);
    uv_timer_start(&relay->timer, on_timer, 0, 0);
    return relay;
}

void relay_free(struct relay *relay)
{
    if (!relay)
        return;
    relay->is_closed = true;
    uv_close((uv_handle_t *)&relay->poll, on_closed);
    uv_close((uv_handle_t *)&relay->timer, on_closed);
}

bool relay_is_subscribed(const struct relay *relay)
{
    return relay->is_subscribed;
}

const struct sl_meta *relay_meta(const struct relay *relay)
{
    return &relay->meta;
}

uint64_t relay_clock_until_ms(const struct relay *relay, uint32_t shard)
{
    return relay->clock_until_ms[shard];
}

void relay_set_clock(struct relay *relay, uint32_t shard, uint64_t until_ms)
{
    broadcast_set_clock(&relay->reader, shard, until_ms);
}
