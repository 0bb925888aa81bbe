/* gateway.c - a worker: its parts, and how they are connected.
 *
 * The parts are created in order and freed in reverse order; they know each other only by the
 * functions that are set here and in gateway_hearing.c. Everything runs on one loop and one thread,
 * except reading the archive. Stopping has steps: no more clients are accepted, existing ones are
 * disconnected, then the parts are freed, and the loop runs until their handles are closed. */
#include "gateway/gateway_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/access/audit_log.h"
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
#include "gateway/dialects/dialects.h"
#include "gateway/http/listener.h"
#include "gateway/intake/intake.h"
#include "gateway/process/worker_process.h"
#include "gateway/redis/cluster_watch.h"
#include "gateway/redis/redis_health.h"
#include "gateway/redis/task_watch.h"
#include "gateway/serve/access_watch.h"
#include "gateway/serve/server.h"
#include "gateway/serve/worker_keys.h"
#include "gateway/streams/user_check.h"

static const int heeded_signals[GATEWAY_SIGNAL_COUNT] = {
    SIGTERM, SIGINT, SIGHUP, GATEWAY_SIGNAL_OPEN, GATEWAY_SIGNAL_REPLACED};

/* --- stopping --- */

static void on_drained(void *context)
{
    struct gateway *gateway = context;

    cluster_watch_free(gateway->cluster);
    gateway->cluster = NULL;                    /* the commands may still doubt the map */
    redis_commands_free(gateway->api_commands); /* answers everyone who still waits */
    control_channel_free(gateway->control);     /* answers everyone who still waits */
    shard_watch_free(gateway->write_watch);
    use_exchange_free(gateway->use_exchange);
    archive_reader_free(gateway->archive); /* answers everyone who still waits */
    archive_watch_free(gateway->archive_watch);
    cache_reader_free(gateway->cache); /* answers everyone who still waits */
    api_free(gateway->api);
    access_watch_stop(gateway->access);
    worker_keys_free(gateway->keys);
    server_close(gateway->server);
    redis_commands_free(gateway->commands); /* answers outstanding commands, so it must precede
                                               their callers */
    redis_health_free(gateway->health);
    access_watch_free(gateway->access);
    dictionaries_stop(gateway->dictionaries);
    home_loader_free(gateway->home_loader);
    user_checks_free(gateway->user_checks);
    pass_store_free(gateway->passes);
    rule_store_free(gateway->rules);
    shard_watch_free(gateway->task_watch);
    intake_free(gateway->intake);
    deliver_end(gateway->deliver);
    deliver_set_log(gateway->deliver, NULL);
    log_cache_free(gateway->log_cache);
    log_reader_free(gateway->log_reader);
    shard_watch_free(gateway->log_watch);
    for (size_t i = 0; i < GATEWAY_SIGNAL_COUNT; i++)
        uv_close((uv_handle_t *)&gateway->signals[i], NULL);
    uv_close((uv_handle_t *)&gateway->pulse, NULL);
}

/* Closes the listeners, so that no connections wait in queues that nobody empties. */
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
        gateway_reload(gateway);
        return;
    }
    log_info("draining", "worker=%u signal=%d", parts->worker, number);
    gateway->is_stopping = true;
    for (size_t i = 0; i < GATEWAY_SIGNAL_COUNT; i++)
        uv_signal_stop(&gateway->signals[i]);
    /* Events from here on are delivered by the next server, and so are those that still wait for
     * their turn, which are above every cursor. The queues can become empty. */
    use_exchange_leave(gateway->use_exchange);
    intake_stop(gateway->intake);
    access_watch_drain(gateway->access);
    control_channel_set_draining(gateway->control);
    server_drain(gateway->server, parts->config->drain_timeout_ms,
                 number == GATEWAY_SIGNAL_REPLACED, on_drained, gateway);
    close_listeners(parts->listeners);
}

/* --- creating --- */

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
    gateway->rules = rule_store_new(gateway->commands);
    if (gateway->parts->worker == 0)
        gateway->task_watch = task_watch_new(&gateway->loop, gateway->commands, gateway->metrics);
    if ((gateway->front.front.has_zstd && !gateway->dictionaries) || !gateway->home_loader ||
        !gateway->user_checks || !gateway->passes || !gateway->rules ||
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
        .rules = gateway->rules,
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
    for (size_t i = 0; i < GATEWAY_SIGNAL_COUNT; i++) {
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
    int r;

    gateway->front = (struct front_config){.metrics = gateway->metrics, .allows_bad_sets = true};
    r = front_config_read(&gateway->front, settings.config, reterr);
    if (r < 0)
        return r;
    gateway->keys = worker_keys_new(&settings);
    return gateway->keys ? gateway_use_front(gateway, reterr)
                         : failure_set(reterr, -ENOMEM, "out of memory");
}

static int start(struct gateway *gateway, struct failure *reterr)
{
    int r;

    r = sl_redis_address_parse(sl_slice_str(gateway->parts->redis_url), &gateway->redis, reterr);
    if (r < 0)
        return r;
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
    r = gateway_start_hearing(gateway, reterr);
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
    signal(SIGXFSZ, SIG_IGN); /* writing to a full file must not kill the process */
    uv_loop_init(&gateway->loop);
    start_signals(gateway);
    start_pulse(gateway);
    r = start(gateway, &failure);
    if (r < 0) {
        log_error("cannot_start", "worker=%u why=\"%s\"", parts->worker, failure.text);
        return EXIT_FAILURE; /* the process ends and frees everything */
    }

    uv_run(&gateway->loop, UV_RUN_DEFAULT);
    deliver_free(gateway->deliver);
    server_free(gateway->server);
    uv_run(&gateway->loop, UV_RUN_DEFAULT); /* closes the last handles */
    dictionaries_free(gateway->dictionaries);
    event_decoder_free(gateway->decoder);
    front_config_done(&gateway->front);
    audit_log_free(gateway->audit);
    if (uv_loop_close(&gateway->loop) < 0)
        log_error("loop_not_empty", "worker=%u", parts->worker);
    mem_free(gateway);
    return EXIT_SUCCESS;
}
