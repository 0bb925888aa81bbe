/* gateway_hearing.c - connects the intake of a worker with its other parts.
 *
 * Events come from the intake, in order over all shards, and go to delivery; changes of the state
 * of Redis go to all parts that use it. Nothing is stored here. */
#include "gateway/gateway_private.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "gateway/access/pass_store.h"
#include "gateway/access/rule_store.h"
#include "gateway/access/control_channel.h"
#include "gateway/access/use_exchange.h"
#include "gateway/api/api.h"
#include "gateway/api/archive_watch.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/dictionaries.h"
#include "gateway/delivery/home_loader.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/intake/intake.h"
#include "gateway/redis/log_watch.h"
#include "gateway/redis/cluster_watch.h"
#include "gateway/redis/redis_health.h"
#include "gateway/redis/write_watch.h"
#include "gateway/serve/access_watch.h"
#include "gateway/serve/server.h"
#include "gateway/streams/user_check.h"

/* --- events in order over all shards --- */

static void on_begin_shard(void *context, uint32_t shard, uint64_t id)
{
    deliver_begin_shard(((struct gateway *)context)->deliver, shard, id);
}

static void on_pass(void *context, const struct order_item *item)
{
    struct gateway *gateway = context;
    struct deliver *deliver = gateway->deliver;

    if (item->kind == ORDER_MISS || item->kind == ORDER_GAP)
        access_watch_miss(gateway->access, item->shard);
    switch (item->kind) {
    case ORDER_EVENT:
        deliver_event(deliver, item->event);
        break;
    case ORDER_PASS:
        deliver_pass(deliver, item->shard, item->id);
        break;
    case ORDER_MISS:
        deliver_miss(deliver, item->shard, item->id);
        break;
    case ORDER_GAP:
        deliver_gap(deliver, &(struct gap){item->shard, item->previous, item->id, item->reason});
        break;
    }
}

static void on_access(void *context, const struct event *event)
{
    access_watch_take(((struct gateway *)context)->access, event);
}

static void on_watermark(void *context, uint64_t id)
{
    deliver_set_watermark(((struct gateway *)context)->deliver, id);
}

static void on_behind(void *context, uint32_t shard, uint64_t low)
{
    deliver_shard_behind(((struct gateway *)context)->deliver, shard, low);
}

static void on_whole(void *context, uint32_t shard)
{
    deliver_shard_whole(((struct gateway *)context)->deliver, shard);
}

static void on_turn_end(void *context)
{
    deliver_turn_end(((struct gateway *)context)->deliver);
}

/* --- the state of Redis --- */

static void on_master(void *context, const struct sl_redis_endpoint *endpoint)
{
    struct gateway *gateway = context;

    redis_commands_set_endpoint(gateway->commands, endpoint);
    redis_commands_set_endpoint(gateway->api_commands, endpoint);
    control_channel_set_endpoint(gateway->control, endpoint);
}

static void on_map(void *context, const struct sl_cluster_map *map)
{
    struct gateway *gateway = context;

    redis_commands_set_map(gateway->commands, map);
    redis_commands_set_map(gateway->api_commands, map);
    control_channel_set_map(gateway->control, map);
    intake_set_map(gateway->intake, map);
}

static void on_doubt(void *context)
{
    cluster_watch_doubt(((struct gateway *)context)->cluster);
}

static void on_database(void *context, const struct sl_meta *meta)
{
    cluster_watch_expect(((struct gateway *)context)->cluster, meta);
}

/* Redis is back: retries everything that waits. */
static void try_now(struct gateway *gateway)
{
    redis_commands_try_now(gateway->commands);
    redis_commands_try_now(gateway->api_commands);
}

static void on_heard_again(void *context, uint32_t shard)
{
    struct gateway *gateway = context;

    try_now(gateway);
    access_watch_miss(gateway->access, shard);
}

static void on_subscribed(void *context, const struct sl_meta *meta)
{
    struct gateway *gateway = context;

    try_now(gateway);
    home_loader_set_shards(gateway->home_loader, meta->shards);
    dictionaries_begin(gateway->dictionaries);
    user_checks_set_shards(gateway->user_checks, meta->shards);
    pass_store_set_shards(gateway->passes, meta->shards);
    rule_store_set_shards(gateway->rules, meta->shards);
    if (gateway->cache)
        cache_reader_set_database(gateway->cache, meta->database_id);
    access_watch_hear(gateway->access, meta->shards);
    if (gateway->log_watch)
        metric_set(gateway->metrics, METRIC_SHARDS, meta->shards); /* one worker for all */
    shard_watch_begin(gateway->task_watch, meta->shards);
    shard_watch_begin(gateway->log_watch, meta->shards);
    shard_watch_begin(gateway->write_watch, meta->shards);
    use_exchange_begin(gateway->use_exchange, meta->shards);
}

static void on_complete(void *context)
{
    struct gateway *gateway = context;

    deliver_begin(gateway->deliver);
    redis_health_set_hearing(gateway->health, true);
}

static void on_lost(void *context, const char *reason)
{
    struct gateway *gateway = context;

    (void)reason;                            /* already logged */
    if (gateway->redis.sentinel_count > 0) { /* it may be a replica by now */
        redis_commands_set_endpoint(gateway->commands, NULL);
        redis_commands_set_endpoint(gateway->api_commands, NULL);
    }
    api_redis_lost(gateway->api);
    redis_health_set_hearing(gateway->health, false);
}

static void on_away(void *context, const char *reason)
{
    redis_health_set_unheard(((struct gateway *)context)->health, reason);
}

static void on_readiness(void *context, bool is_ready)
{
    struct gateway *gateway = context;
    char byte = '\n';

    server_set_ready(gateway->server, is_ready);
    if (is_ready && gateway->ready_fd >= 0 && write(gateway->ready_fd, &byte, 1) == 1) {
        close(gateway->ready_fd);
        gateway->ready_fd = -1;
    }
}

/* --- creating --- */

static int start_health(struct gateway *gateway)
{
    const struct redis_health_settings settings = {
        .loop = &gateway->loop,
        .metrics = gateway->metrics,
        .streams = gateway->commands,
        .api = gateway->api_commands,
        .late_ms = (uint32_t)gateway->parts->config->redis_timeout_ms,
        .changed = on_readiness,
        .context = gateway,
    };

    gateway->health = redis_health_new(&settings);
    return gateway->health ? 0 : -ENOMEM;
}

static void on_writes(void *context, int r, const char *why)
{
    redis_health_set_writes(((struct gateway *)context)->health, r, why);
}

/* What one worker watches for all. */
static int start_watches(struct gateway *gateway)
{
    const struct use_exchange_settings exchange = {
        .loop = &gateway->loop,
        .commands = gateway->api_commands,
        .uses = gateway->parts->uses,
        .admission = gateway->parts->admission,
        .metrics = gateway->metrics,
    };

    if (gateway->parts->worker != 0)
        return 0;
    gateway->log_watch = log_watch_new(&gateway->loop, gateway->commands, gateway->metrics);
    gateway->write_watch =
        write_watch_new(&gateway->loop, gateway->api_commands, on_writes, gateway);
    gateway->use_exchange = use_exchange_new(&exchange);
    if (!gateway->log_watch || !gateway->write_watch || !gateway->use_exchange)
        return -ENOMEM;
    if (!gateway->parts->config->archive) {
        health_set(gateway->metrics, HEALTH_ARCHIVE, HEALTH_OFF, NULL, clock_wall_ms());
        return 0;
    }
    gateway->archive_watch =
        archive_watch_new(&gateway->loop, gateway->parts->config->archive, gateway->metrics);
    return gateway->archive_watch ? 0 : -ENOMEM;
}

static int start_reading_back(struct gateway *gateway)
{
    const struct log_cache_settings settings = {
        .loop = &gateway->loop,
        .metrics = gateway->metrics,
        .read = log_reader_read,
        .read_back = log_reader_read_back,
        .reader = gateway->log_reader,
        .decoder = gateway->decoder,
        .max_bytes = gateway->parts->config->ring_bytes,
        .retry_ms = LOG_CACHE_RETRY_MS,
    };

    gateway->log_cache = log_cache_new(&settings);
    if (!gateway->log_cache)
        return -ENOMEM;
    deliver_set_log(gateway->deliver, gateway->log_cache);
    return 0;
}

static int start_hearing(struct gateway *gateway)
{
    static const struct intake_callbacks callbacks = {
        .subscribed = on_subscribed,
        .lost = on_lost,
        .heard_again = on_heard_again,
        .begin_shard = on_begin_shard,
        .pass = on_pass,
        .access = on_access,
        .watermark = on_watermark,
        .behind = on_behind,
        .whole = on_whole,
        .turn_end = on_turn_end,
        .complete = on_complete,
    };
    const struct gateway_parts *parts = gateway->parts;
    const struct intake_settings settings = {
        .hearing = {.loop = &gateway->loop,
                    .address = &gateway->redis,
                    .metrics = gateway->metrics,
                    .ping_ms = (uint32_t)parts->config->redis_timeout_ms,
                    .timeout_ms = (uint32_t)parts->config->redis_timeout_ms,
                    .rest_ms = (uint32_t)parts->config->intake_rest_ms,
                    .commands = gateway->commands,
                    .news = {.context = gateway,
                             .master = on_master,
                             .away = on_away,
                             .database = on_database,
                             .doubt = on_doubt}},
        .broadcast = parts->broadcast,
        .worker = parts->worker,
        .log = gateway->log_reader,
        .decoder = gateway->decoder,
        .order_wait_ms = parts->config->order_wait_ms,
    };

    gateway->intake = intake_new(&settings, &callbacks, gateway);
    return gateway->intake ? 0 : -ENOMEM;
}

static int start_cluster(struct gateway *gateway)
{
    if (gateway->redis.seed_count == 0)
        return 0;
    redis_commands_set_doubt(gateway->commands, on_doubt, gateway);
    redis_commands_set_doubt(gateway->api_commands, on_doubt, gateway);
    gateway->cluster = cluster_watch_new(&gateway->loop, &gateway->redis, on_map, gateway);
    return gateway->cluster ? 0 : -ENOMEM;
}

static int start_access(struct gateway *gateway)
{
    const struct access_watch_settings settings = {
        .loop = &gateway->loop,
        .metrics = gateway->metrics,
        .commands = gateway->commands,
        .streams = server_streams(gateway->server),
        .api = gateway->api,
        .health = gateway->health,
    };

    gateway->access = access_watch_new(&settings);
    if (!gateway->access)
        return -ENOMEM;
    access_watch_set_policy(gateway->access, gateway->front.policy);
    return 0;
}

int gateway_start_hearing(struct gateway *gateway, struct failure *reterr)
{
    gateway->decoder = event_decoder_new(gateway->parts->config->max_event_bytes);
    gateway->log_reader = log_reader_new(gateway->commands);
    if (!gateway->decoder || !gateway->log_reader || start_health(gateway) < 0 ||
        start_access(gateway) < 0 || start_watches(gateway) < 0 ||
        start_reading_back(gateway) < 0 || start_hearing(gateway) < 0 || start_cluster(gateway) < 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
}
