/* cluster_hearing.c - which shards are received, and what the owner is told.
 *
 * Reception begins with all shards and the classic line; or, when the rest has not been ready for
 * begin_wait_ms, with those shards whose nodes are connected. It ends when no shard is received. In
 * between each shard comes and goes by itself. The reason of a loss is logged and reported if it
 * differs from the last one. */
#include "gateway/intake/cluster_subscriber_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/metrics/health.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 1000 };

void cluster_try_later(struct cluster_subscriber *subscriber)
{
    if (!subscriber->is_stopping && !uv_is_active((uv_handle_t *)&subscriber->timer))
        uv_timer_start(&subscriber->timer, subscriber->try_again,
                       backoff_next_spread_ms(&subscriber->backoff, RETRY_MIN_MS, RETRY_MAX_MS), 0);
}

static void tell_away(struct cluster_subscriber *subscriber, const char *reason)
{
    const struct redis_state_callbacks *news = &subscriber->settings.news;

    if (news->away)
        news->away(news->context, reason);
}

void cluster_doubt(struct cluster_subscriber *subscriber, const char *reason)
{
    const struct redis_state_callbacks *news = &subscriber->settings.news;
    char room[LOG_QUOTE_SIZE];

    failure_set(&subscriber->why_away, 0, "%s", reason);
    if (!subscriber->is_hearing && strcmp(reason, subscriber->logged_reason) != 0) {
        log_warn("redis_unavailable", "redis=%s reason=%s", subscriber->address_text,
                 log_quote(sl_slice_str(reason), room));
        snprintf(subscriber->logged_reason, sizeof(subscriber->logged_reason), "%s", reason);
        tell_away(subscriber, reason);
    }
    if (news->doubt)
        news->doubt(news->context);
    cluster_try_later(subscriber);
}

/* ---- received shards ---- */

void cluster_print_shards(uint64_t shards, struct buffer *text)
{
    const char *comma = "";

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        uint32_t first = i;

        if (!(shards >> i & 1))
            continue;
        while (i + 1 < SL_SHARDS_MAX && shards >> (i + 1) & 1)
            i++;
        buffer_append_format(text, "%s%u", comma, first);
        comma = ",";
        if (i > first)
            buffer_append_format(text, "-%u", i);
    }
}

/* Updates the metrics: how many are received, which are not, and why one was lost. */
void cluster_show_heard(struct cluster_subscriber *subscriber)
{
    struct metrics *metrics = subscriber->settings.metrics;
    const char *why = subscriber->why_no_classic.text;
    uint64_t missing = cluster_all_shards(subscriber) & ~subscriber->heard;
    struct buffer text = BUFFER_INIT;

    metric_set(metrics, METRIC_SHARDS_HEARD, (uint64_t)__builtin_popcountll(subscriber->heard));
    metric_set(metrics, METRIC_PUBLISH_HEARD, subscriber->is_classic_heard);
    if (!subscriber->is_hearing)
        return;
    if (missing) {
        buffer_append_format(&text, "%d of %u are not heard (", __builtin_popcountll(missing),
                             subscriber->meta.shards);
        cluster_print_shards(missing, &text);
        buffer_append_format(&text, "): %s", subscriber->why_away.text);
    }
    if (!subscriber->is_classic_heard)
        buffer_append_format(&text, "%sPUBLISH is not heard: %s", missing ? "; " : "",
                             why[0] ? why : "no node has confirmed it yet");
    health_set(metrics, HEALTH_SHARDS, text.size > 0 ? HEALTH_FAILING : HEALTH_OK,
               text.data ? buffer_str(&text) : "", clock_wall_ms());
    buffer_done(&text);
}

static void begin_hearing(struct cluster_subscriber *subscriber)
{
    struct metrics *metrics = subscriber->settings.metrics;

    subscriber->is_hearing = true;
    subscriber->waits_since_ms = 0;
    cluster_show_heard(subscriber);
    subscriber->told_shards = subscriber->meta.shards;
    subscriber->logged_reason[0] = '\0';
    metric_set(metrics, METRIC_SUBSCRIBED, 1);
    metric_add(metrics, METRIC_SUBSCRIPTIONS, 1);
    log_info("redis_subscribed", "redis=%s shards=%u heard=%d nodes=%zu database=%s",
             subscriber->address_text, subscriber->meta.shards,
             __builtin_popcountll(subscriber->heard), subscriber->line_count,
             subscriber->meta.database_id);
    subscriber->callbacks.subscribed(subscriber->context, subscriber->meta.shards);
}

bool cluster_has_waited(struct cluster_subscriber *subscriber)
{
    uint64_t now_ms = uv_now(subscriber->settings.loop);

    if (subscriber->waits_since_ms == 0)
        subscriber->waits_since_ms = now_ms;
    return now_ms - subscriber->waits_since_ms >= subscriber->settings.begin_wait_ms;
}

/* The shards whose node is connected. */
static uint64_t reached_shards(const struct cluster_subscriber *subscriber)
{
    uint64_t shards = 0;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        shards |= cluster_line_is_ready(subscriber->shards[i].line) ? cluster_bit(i) : 0;
    return shards;
}

void cluster_begin_hearing_if_so(struct cluster_subscriber *subscriber)
{
    if (!subscriber->is_hearing && subscriber->heard &&
        ((subscriber->heard == cluster_all_shards(subscriber) && subscriber->is_classic_heard) ||
         (subscriber->heard == reached_shards(subscriber) && cluster_has_waited(subscriber))))
        begin_hearing(subscriber);
}

void cluster_note_heard(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->state = SHARD_HEARD;
    subscriber->heard |= cluster_bit(shard->number);
    cluster_show_heard(subscriber);
    if (subscriber->heard == cluster_all_shards(subscriber))
        backoff_reset(&subscriber->backoff);
    if (subscriber->is_hearing)
        subscriber->callbacks.heard_again(subscriber->context, shard->number);
    else
        cluster_begin_hearing_if_so(subscriber);
}

void cluster_note_away(struct shard *shard, const char *reason)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->state = SHARD_AWAY;
    subscriber->heard &= ~cluster_bit(shard->number);
    subscriber->known &= ~cluster_bit(shard->number);
    failure_set(&subscriber->why_away, 0, "%s", reason);
    cluster_show_heard(subscriber);
    if (!subscriber->is_hearing || subscriber->heard)
        return;
    subscriber->is_hearing = false;
    metric_set(subscriber->settings.metrics, METRIC_SUBSCRIBED, 0);
    metric_add(subscriber->settings.metrics, METRIC_SUBSCRIPTIONS_LOST, 1);
    tell_away(subscriber, reason);
    subscriber->callbacks.lost(subscriber->context, reason);
}
