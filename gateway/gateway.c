/* gateway.c - one worker: its parts, and who tells whom what.
 *
 * Built top to bottom, freed bottom to top; the parts know each other only by the functions that
 * are set here. An event comes from the intake, in order over all shards, and goes to deliver; what
 * has changed about Redis goes to all that use it. Everything runs on one loop and one thread, but
 * for what is read of the archive. Serving ends in steps: no more clients are accepted, those that
 * are there take leave, then the parts go, and the loop runs until their handles are closed. */
#include "gateway/gateway.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/access/audit_log.h"
#include "gateway/access/pass_store.h"
#include "gateway/access/control_channel.h"
#include "gateway/access/use_exchange.h"
#include "gateway/api/api.h"
#include "gateway/api/archive_watch.h"
#include "gateway/config/config_reload.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/dictionaries.h"
#include "gateway/delivery/home_loader.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/dialects/dialects.h"
#include "gateway/http/listener.h"
#include "gateway/intake/intake.h"
#include "gateway/intake/log_reader.h"
#include "gateway/metrics/health.h"
#include "gateway/process/worker_process.h"
#include "gateway/redis/log_watch.h"
#include "gateway/redis/redis_commands.h"
#include "gateway/redis/cluster_watch.h"
#include "gateway/redis/redis_health.h"
#include "gateway/redis/task_watch.h"
#include "gateway/redis/write_watch.h"
#include "gateway/serve/access_watch.h"
#include "gateway/serve/front_config.h"
#include "gateway/serve/server.h"
#include "gateway/serve/worker_keys.h"
#include "gateway/streams/user_check.h"

static const int heeded_signals[] = {SIGTERM, SIGINT, SIGHUP, GATEWAY_SIGNAL_OPEN,
                                     GATEWAY_SIGNAL_REPLACED};

enum { SIGNAL_COUNT = sizeof(heeded_signals) / sizeof(heeded_signals[0]) };

struct gateway {
    const struct gateway_parts *parts;
    struct metrics *metrics;
    uv_loop_t loop;
    uv_signal_t signals[SIGNAL_COUNT];
    uv_timer_t pulse; /* tells the parent that the loop comes round */
    struct front_config front;
    struct worker_keys *keys;
    struct sl_redis_address redis;
    struct event_decoder *decoder;
    struct deliver *deliver;
    struct redis_commands *commands;
    struct dictionaries *dictionaries; /* NULL: nothing is compressed */
    struct home_loader *home_loader;
    struct access_watch *access;
    struct user_checks *user_checks;
    struct pass_store *passes;
    struct audit_log *audit;
    /* Of its own: what the streams read of the log does not queue up behind thousands of requests,
     * nor behind the megabytes of their answers. */
    struct redis_commands *api_commands;
    struct archive_reader *archive; /* NULL: there is none */
    struct cache_reader *cache;     /* the same */
    struct api *api;
    struct control_channel *control;
    struct server *server;
    struct log_reader *log_reader;
    struct redis_health *health;
    struct shard_watch *log_watch; /* NULL: another worker looks after it */
    struct log_cache *log_cache;
    struct intake *intake;
    struct cluster_watch *cluster;       /* NULL: Redis is no cluster */
    struct shard_watch *task_watch;      /* of worker 0 only */
    struct shard_watch *write_watch;     /* the same */
    struct use_exchange *use_exchange;   /* the same */
    struct archive_watch *archive_watch; /* the same; NULL, too: there is no archive */
    int ready_fd;                        /* -1: told already */
};

/* --- events, in order over all shards --- */

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

/* --- hearing Redis --- */

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

/* Redis is there: whatever waits for its next try need not. */
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

    (void)reason;                            /* it was logged where it was found */
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

/* --- the end --- */

static void on_drained(void *context)
{
    struct gateway *gateway = context;

    cluster_watch_free(gateway->cluster);
    gateway->cluster = NULL;                    /* the commands may be in doubt still */
    redis_commands_free(gateway->api_commands); /* whoever still waits is answered */
    control_channel_free(gateway->control);     /* the same */
    shard_watch_free(gateway->write_watch);
    use_exchange_free(gateway->use_exchange);
    archive_reader_free(gateway->archive); /* the same */
    archive_watch_free(gateway->archive_watch);
    cache_reader_free(gateway->cache); /* the same */
    api_free(gateway->api);
    access_watch_stop(gateway->access);
    worker_keys_free(gateway->keys);
    server_close(gateway->server);
    redis_commands_free(gateway->commands); /* answers what is under way, so before who asked */
    redis_health_free(gateway->health);
    access_watch_free(gateway->access);
    dictionaries_stop(gateway->dictionaries);
    home_loader_free(gateway->home_loader);
    user_checks_free(gateway->user_checks);
    pass_store_free(gateway->passes);
    shard_watch_free(gateway->task_watch);
    intake_free(gateway->intake);
    deliver_end(gateway->deliver);
    deliver_set_log(gateway->deliver, NULL);
    log_cache_free(gateway->log_cache);
    log_reader_free(gateway->log_reader);
    shard_watch_free(gateway->log_watch);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        uv_close((uv_handle_t *)&gateway->signals[i], NULL);
    uv_close((uv_handle_t *)&gateway->pulse, NULL);
}

/* As the settings are now. */
static int read_front(struct gateway *gateway, struct failure *reterr)
{
    int r = front_config_read(&gateway->front, gateway->parts->config, reterr);

    if (r == 0 && gateway->access)
        access_watch_set_policy(gateway->access, gateway->front.policy);
    if (r == 0 && gateway->parts->worker == 0) /* one of us is enough */
        front_config_warn(&gateway->front);
    if (r == 0 && worker_keys_renew(gateway->keys) < 0)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    return r;
}

/* The file that is there by now, whether or not the settings are good. */
static void open_audit_log(struct gateway *gateway)
{
    struct failure failure;
    char room[LOG_QUOTE_SIZE];

    if (audit_log_open(gateway->audit, config_audit_log(gateway->parts->config), &failure) < 0)
        log_error("audit_log_not_opened", "worker=%u why=%s", gateway->parts->worker,
                  log_quote(sl_slice_str(failure.text), room));
}

static void audit_reload(struct gateway *gateway)
{
    struct buffer json;

    if (gateway->parts->worker == 0 && audit_begin(gateway->audit, "reloaded", &json))
        audit_end_take(gateway->audit, &json);
}

/* A stream stays what it is: its token was good when it came, its transport has its certificate. */
static void reload(struct gateway *gateway)
{
    struct config *config = gateway->parts->config;
    struct buffer left = BUFFER_INIT; /* the parent has told */
    struct failure failure = {"out of memory"};
    char room[LOG_QUOTE_SIZE];
    int r;

    r = config_reload(config, &left, &failure);
    if (r == 0)
        r = read_front(gateway, &failure);
    if (r == 0)
        r = server_reload_certificate(gateway->server, &failure);
    open_audit_log(gateway);
    if (r == 0) {
        audit_reload(gateway);
        deliver_set_limits(gateway->deliver, config->max_owed_bytes, config->max_shared_bytes,
                           config->max_home_bytes, config->max_lag_ms);
        log_info("worker_reloaded", "worker=%u", gateway->parts->worker);
    } else {
        log_error("worker_not_reloaded", "worker=%u why=%s", gateway->parts->worker,
                  log_quote(sl_slice_str(failure.text), room));
    }
    buffer_done(&left);
}

/* Nobody shall wait in a queue that nobody empties. */
static void close_listeners(const struct listener *listeners)
{
    for (unsigned i = 0; i < LISTENER_COUNT; i++) {
        for (unsigned k = 0; k < listeners[i].count; k++)
            close(listeners[i].sockets[k]);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct gateway *gateway = handle->data;
    const struct gateway_parts *parts = gateway->parts;

    if (number == GATEWAY_SIGNAL_OPEN) {
        server_open(gateway->server);
        return;
    }
    if (number == SIGHUP) {
        reload(gateway);
        return;
    }
    log_info("draining", "worker=%u signal=%d", parts->worker, number);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        uv_signal_stop(&gateway->signals[i]);
    /* What happens from here on is the next server's to tell, and so is what still waits for its
     * turn: it is above every cursor. The queues can empty. */
    use_exchange_leave(gateway->use_exchange);
    intake_stop(gateway->intake);
    access_watch_drain(gateway->access);
    control_channel_set_draining(gateway->control);
    server_drain(gateway->server, parts->config->drain_timeout_ms,
                 number == GATEWAY_SIGNAL_REPLACED, on_drained, gateway);
    close_listeners(parts->listeners);
}

/* --- building it --- */

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

/* What one worker finds out for all. */
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

static int start_intake(struct gateway *gateway, struct failure *reterr)
{
    gateway->decoder = event_decoder_new(gateway->parts->config->max_event_bytes);
    gateway->log_reader = log_reader_new(gateway->commands);
    if (!gateway->decoder || !gateway->log_reader || start_health(gateway) < 0 ||
        start_access(gateway) < 0 || start_watches(gateway) < 0 ||
        start_reading_back(gateway) < 0 || start_hearing(gateway) < 0 || start_cluster(gateway) < 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
}

static struct compressor_settings compression_of(const struct gateway *gateway)
{
    const struct config *config = gateway->parts->config;

    return (struct compressor_settings){
        .level = gateway->front.front.has_zstd ? (int)config->compression_level : 0,
        .zstd_level = (int)config->compression_zstd_level,
        .reset_flushes = (uint32_t)config->compression_reset_flushes,
        .max_bytes = config->max_compression_bytes,
    };
}

static int start_delivery(struct gateway *gateway, struct failure *reterr)
{
    const struct config *config = gateway->parts->config;
    const struct deliver_settings settings = {
        .loop = &gateway->loop,
        .metrics = gateway->metrics,
        .gather_ms = (uint32_t)config->gather_ms,
        .max_owed_bytes = config->max_owed_bytes,
        .max_event_bytes = config->max_shared_bytes,
        .max_home_bytes = config->max_home_bytes,
        .ring_bytes = config->ring_bytes,
        .max_lag_ms = config->max_lag_ms,
        .compression = compression_of(gateway),
        .dialects = &dialects,
    };

    gateway->deliver = deliver_new(&settings);
    gateway->commands = redis_commands_new(&gateway->loop, &gateway->redis, "sluiced-streams",
                                           (uint32_t)config->redis_timeout_ms);
    if (!gateway->deliver || !gateway->commands)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (gateway->front.front.has_zstd)
        gateway->dictionaries =
            dictionaries_new(&gateway->loop, gateway->commands, gateway->metrics,
                             (int)config->compression_zstd_level);
    gateway->home_loader = home_loader_new(deliver_home(gateway->deliver), gateway->commands);
    gateway->user_checks = user_checks_new(gateway->commands);
    gateway->passes = pass_store_new(gateway->commands);
    if (gateway->parts->worker == 0)
        gateway->task_watch = task_watch_new(&gateway->loop, gateway->commands, gateway->metrics);
    if ((gateway->front.front.has_zstd && !gateway->dictionaries) || !gateway->home_loader ||
        !gateway->user_checks || !gateway->passes ||
        (gateway->parts->worker == 0 && !gateway->task_watch))
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
}

static int start_api(struct gateway *gateway, struct failure *reterr)
{
    const struct config *config = gateway->parts->config;
    struct api_settings settings = {
        .loop = &gateway->loop,
        .front = &gateway->front.front,
        .metrics = gateway->metrics,
        .timeout_ms = (uint32_t)config->api_timeout_ms,
        .max_requests = (unsigned)config->max_api_requests,
    };

    gateway->api_commands = settings.commands =
        redis_commands_new(&gateway->loop, &gateway->redis, "sluiced-api", settings.timeout_ms);
    if (!settings.commands)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (config->archive) {
        gateway->archive = settings.archive =
            archive_reader_new(&gateway->loop, config->archive, config->api_timeout_ms);
        if (!settings.archive)
            return failure_set(reterr, -ENOMEM, "out of memory");
    }
    if (config->cache) {
        gateway->cache = settings.cache =
            cache_reader_new(&gateway->loop, config->cache, (uint32_t)config->cache_timeout_ms,
                             config->cache_ttl_ms, gateway->metrics);
        if (!settings.cache)
            return failure_set(reterr, -ENOMEM, "no memory, or no thread, for the cache");
    }
    gateway->api = api_new(&settings);
    return gateway->api ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

static int start_control(struct gateway *gateway, struct failure *reterr)
{
    const struct gateway_parts *parts = gateway->parts;
    const struct control_channel_settings settings = {
        .loop = &gateway->loop,
        .address = &gateway->redis,
        .commands = gateway->api_commands,
        .gateway = parts->gateway,
        .worker = parts->worker,
        .workers = (uint32_t)metrics_workers(parts->board),
        .ping_ms = (uint32_t)parts->config->redis_timeout_ms,
        .timeout_ms = (uint32_t)parts->config->redis_timeout_ms,
    };

    gateway->control = control_channel_new(&settings);
    return gateway->control ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

static int start_server(struct gateway *gateway, struct failure *reterr)
{
    const struct gateway_parts *parts = gateway->parts;
    const struct server_settings settings = {
        .loop = &gateway->loop,
        .config = parts->config,
        .listeners = parts->listeners,
        .deliver = gateway->deliver,
        .dictionaries = gateway->dictionaries,
        .api = gateway->api,
        .control = gateway->control,
        .front = &gateway->front.front,
        .origins = &gateway->front.origins,
        .trust = &gateway->front.trust,
        .admission = parts->admission,
        .uses = parts->uses,
        .user_checks = gateway->user_checks,
        .passes = gateway->passes,
        .audit = gateway->audit,
        .worker = parts->worker,
        .metrics = gateway->metrics,
        .board = parts->board,
        .slow_board = parts->slow_board,
        .history = parts->history,
        .site = parts->site,
    };
    int r;

    r = server_new(&settings, &gateway->server, reterr);
    if (r < 0)
        return r;
    return worker_keys_watch_streams(gateway->keys, server_streams(gateway->server)) < 0
               ? failure_set(reterr, -ENOMEM, "out of memory")
               : 0;
}

static void on_pulse(uv_timer_t *timer)
{
    metric_add(((struct gateway *)timer->data)->metrics, METRIC_WORKER_PULSES, 1);
}

static void start_pulse(struct gateway *gateway)
{
    uv_timer_init(&gateway->loop, &gateway->pulse);
    gateway->pulse.data = gateway;
    uv_timer_start(&gateway->pulse, on_pulse, 0, WORKER_PULSE_MS);
    uv_unref((uv_handle_t *)&gateway->pulse);
}

static void start_signals(struct gateway *gateway)
{
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        uv_signal_init(&gateway->loop, &gateway->signals[i]);
        gateway->signals[i].data = gateway;
        uv_signal_start(&gateway->signals[i], on_signal, heeded_signals[i]);
    }
}

static int start_keys(struct gateway *gateway, struct failure *reterr)
{
    const struct worker_keys_settings settings = {
        .loop = &gateway->loop,
        .config = gateway->parts->config,
        .front = &gateway->front,
        .board = gateway->parts->key_board,
        .metrics = gateway->metrics,
        .tells = gateway->parts->worker == 0,
    };

    gateway->keys = worker_keys_new(&settings);
    return gateway->keys ? read_front(gateway, reterr)
                         : failure_set(reterr, -ENOMEM, "out of memory");
}

static int start(struct gateway *gateway, struct failure *reterr)
{
    int r;

    r = sl_redis_address_parse(sl_slice_str(gateway->parts->redis_url), &gateway->redis, reterr);
    if (r < 0)
        return r;
    gateway->front.metrics = gateway->metrics;
    gateway->audit = audit_log_new(&gateway->loop, gateway->metrics);
    if (!gateway->audit)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = audit_log_open(gateway->audit, config_audit_log(gateway->parts->config), reterr);
    if (r < 0)
        return r;
    r = start_keys(gateway, reterr);
    if (r < 0)
        return r;
    r = start_delivery(gateway, reterr);
    if (r < 0)
        return r;
    r = start_api(gateway, reterr);
    if (r < 0)
        return r;
    r = start_control(gateway, reterr);
    if (r < 0)
        return r;
    r = start_server(gateway, reterr);
    if (r < 0)
        return r;
    r = start_intake(gateway, reterr);
    if (r == 0 && gateway->parts->accepts_at_once)
        server_open(gateway->server);
    return r;
}

int gateway_run(const struct gateway_parts *parts)
{
    struct gateway *gateway = mem_zalloc(sizeof(*gateway));
    struct failure failure = {"out of memory"};
    int r;

    if (!gateway)
        return EXIT_FAILURE;
    gateway->parts = parts;
    gateway->ready_fd = parts->ready_fd;
    gateway->metrics = metrics_slot(parts->board, parts->worker);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is full */
    uv_loop_init(&gateway->loop);
    start_signals(gateway);
    start_pulse(gateway);
    r = start(gateway, &failure);
    if (r < 0) {
        log_error("cannot_start", "worker=%u why=\"%s\"", parts->worker, failure.text);
        return EXIT_FAILURE; /* the process ends with it */
    }

    uv_run(&gateway->loop, UV_RUN_DEFAULT);
    deliver_free(gateway->deliver);
    server_free(gateway->server);
    uv_run(&gateway->loop, UV_RUN_DEFAULT); /* the last handles close */
    dictionaries_free(gateway->dictionaries);
    event_decoder_free(gateway->decoder);
    front_config_done(&gateway->front);
    audit_log_free(gateway->audit);
    if (uv_loop_close(&gateway->loop) < 0)
        log_error("loop_not_empty", "worker=%u", parts->worker);
    mem_free(gateway);
    return EXIT_SUCCESS;
}
