/* gateway.c - one worker: its parts, and who tells whom what.
 *
 * Built top to bottom, freed bottom to top; the parts know each other only by the functions that
 * are set here. An event comes from the subscriber by way of repair, decoder and the order over all
 * shards to deliver; what has changed about Redis goes to all that use it. Everything runs on one
 * loop and one thread, but for what is read of the archive. Serving ends in steps: no more clients
 * are accepted, those that are there take leave, then the parts go, and the loop runs until their
 * handles are closed. */
#include "gateway/gateway.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/api/api.h"
#include "gateway/api/archive_watch.h"
#include "gateway/config/config_reload.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/home_loader.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/front/origin.h"
#include "gateway/front/token.h"
#include "gateway/http/listener.h"
#include "gateway/intake/id_order.h"
#include "gateway/intake/live_decode.h"
#include "gateway/intake/log_reader.h"
#include "gateway/intake/relay.h"
#include "gateway/intake/repair.h"
#include "gateway/intake/round.h"
#include "gateway/intake/shard_clocks.h"
#include "gateway/intake/subscriber.h"
#include "gateway/metrics/health.h"
#include "gateway/process/worker_process.h"
#include "gateway/redis/log_watch.h"
#include "gateway/redis/redis_commands.h"
#include "gateway/redis/cluster_watch.h"
#include "gateway/redis/redis_health.h"
#include "gateway/redis/task_watch.h"
#include "gateway/redis/write_watch.h"
#include "gateway/serve/server.h"
#include "gateway/streams/user_check.h"

static const int heeded_signals[] = {SIGTERM, SIGINT, SIGHUP, GATEWAY_SIGNAL_OPEN,
                                     GATEWAY_SIGNAL_REPLACED};

/* With the relay: how soon the last round is looked at once more, while something waits. */
enum { ROUND_AGAIN_MS = 10 };

enum { SIGNAL_COUNT = sizeof(heeded_signals) / sizeof(heeded_signals[0]) };

struct gateway {
    const struct gateway_parts *parts;
    struct metrics *metrics;
    uv_loop_t loop;
    uv_signal_t signals[SIGNAL_COUNT];
    uv_timer_t pulse; /* tells the parent that the loop comes round */
    struct token_policy *policy;
    struct origin_policy origins;
    struct sl_redis_address redis;
    struct event_decoder *decoder;
    struct live_decoder live_decoder;
    struct deliver *deliver;
    struct redis_commands *commands;
    struct home_loader *home_loader;
    struct user_checks *user_checks;
    struct front_settings front;
    /* Of its own: what the streams read of the log does not queue up behind thousands of requests,
     * nor behind the megabytes of their answers. */
    struct redis_commands *api_commands;
    struct archive_reader *archive; /* NULL: there is none */
    struct cache_reader *cache;     /* the same */
    struct api *api;
    struct server *server;
    struct log_reader *log_reader;
    struct redis_health *health;
    struct shard_watch *log_watch; /* NULL: another worker looks after it */
    struct log_cache *log_cache;
    struct repair *repair;
    struct id_order *order;
    struct round *round;           /* NULL, as the subscriber: the intake process has them */
    uv_timer_t round_timer;        /* with the relay: to look at the last round again */
    uint64_t round_id;             /* of that; 0: there was none since hearing began */
    uint64_t round_heard;          /* the shards that were heard when it began, by bit */
    struct cluster_watch *cluster; /* NULL: Redis is no cluster */
    struct shard_clocks *clocks;
    uint64_t watermark;                  /* of the order over all shards */
    struct shard_watch *task_watch;      /* of worker 0 only */
    struct shard_watch *write_watch;     /* the same */
    struct archive_watch *archive_watch; /* the same; NULL, too: there is no archive */
    struct subscriber *subscriber;       /* one of these two, and from draining on none */
    struct relay *relay;
    uint64_t begun_shards; /* a bit for each whose log's end was told */
    uint64_t begun_id;     /* the greatest of these ends */
    bool was_complete;     /* a round has found all shards complete, or none is needed */
    struct log_rate gap_rate, behind_rate;
    int ready_fd; /* -1: told already */
};

/* --- the way of an event --- */

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    struct gateway *gateway = context;

    if (!(gateway->begun_shards >> shard & 1)) { /* later on, whatever lies between is repaired */
        deliver_begin_shard(gateway->deliver, shard, id);
        id_order_begin_shard(gateway->order, shard, id);
        gateway->begun_shards |= UINT64_C(1) << shard;
        gateway->begun_id = id > gateway->begun_id ? id : gateway->begun_id;
    }
    return repair_log_end(gateway->repair, shard, id);
}

static void on_message(void *context, const struct live_message *message)
{
    struct gateway *gateway = context;

    metric_add(gateway->metrics, METRIC_EVENTS_RECEIVED, 1);
    repair_take(gateway->repair, message);
}

static void on_round_timer(uv_timer_t *timer);

/* Whoever waits can go on when the millisecond of its id is over. The intake process asks its
 * rounds without knowing who waits: here the last one is looked at once more, for what is complete
 * by then. */
static void want_round(struct gateway *gateway)
{
    uint64_t id = id_order_first_held(gateway->order);

    if (!gateway->round) {
        if (id > 0 && !uv_is_active((uv_handle_t *)&gateway->round_timer))
            uv_timer_start(&gateway->round_timer, on_round_timer, ROUND_AGAIN_MS, 0);
    } else if (id > 0) {
        round_want(gateway->round, shard_clocks_when_ms(gateway->clocks, sl_id_time_ms(id) + 1));
    } else if (id_order_is_unsure(gateway->order)) {
        round_want_later(gateway->round, ROUND_UNSURE_MS);
    } else if (id_order_is_ordering(gateway->order)) {
        round_want_later(gateway->round, ROUND_QUIET_MS);
    }
}

static void take_item(struct gateway *gateway, const struct order_item *item, uint64_t now_us)
{
    id_order_take(gateway->order, item, now_us);
    want_round(gateway);
}

static void on_event(void *context, const struct live_message *message)
{
    struct gateway *gateway = context;
    struct order_item item = {
        .kind = ORDER_EVENT,
        .shard = message->shard,
        .id = message->id,
        .previous = message->previous,
    };
    int r;

    r = live_decode(&gateway->live_decoder, message, &item.event);
    if (r < 0)
        item.kind = r == -ENOMEM ? ORDER_MISS : ORDER_PASS;
    take_item(gateway, &item, message->received_us);
    event_unref(item.event);
}

static void on_gap(void *context, const struct gap *gap)
{
    const struct order_item item = {
        .kind = ORDER_GAP,
        .shard = gap->shard,
        .id = gap->to,
        .previous = gap->from,
        .reason = gap->reason,
    };
    struct gateway *gateway = context;
    uint64_t held_back;

    if (log_rate_allows(&gateway->gap_rate, uv_now(&gateway->loop), &held_back))
        log_warn("gap", "shard=%u from=%" PRIu64 " to=%" PRIu64 " reason=%s held_back=%" PRIu64,
                 gap->shard, gap->from, gap->to, gap_reason_name(gap->reason), held_back);
    take_item(gateway, &item, clock_monotonic_us());
}

/* --- in order over all shards --- */

static void on_ordered(void *context, const struct order_item *item)
{
    struct deliver *deliver = ((struct gateway *)context)->deliver;

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

static void on_watermark(void *context, uint64_t id)
{
    struct gateway *gateway = context;

    gateway->watermark = id;
    deliver_set_watermark(gateway->deliver, id);
}

static void on_shard_behind(void *context, uint32_t shard, uint64_t low, enum order_behind why)
{
    static const char *const reasons[] = {
        [ORDER_BEHIND_WAIT] = "silent",
        [ORDER_BEHIND_MEMORY] = "too_much_held",
        [ORDER_BEHIND_LATE] = "late_event",
    };
    struct gateway *gateway = context;
    uint64_t held_back;

    if (log_rate_allows(&gateway->behind_rate, uv_now(&gateway->loop), &held_back))
        log_warn("shard_left_behind", "shard=%u low=%" PRIu64 " reason=%s held_back=%" PRIu64,
                 shard, low, reasons[why], held_back);
    deliver_shard_behind(gateway->deliver, shard, low);
    shard_clocks_behind(gateway->clocks, shard, low);
    if (why == ORDER_BEHIND_LATE)
        shard_clocks_late(gateway->clocks, shard, gateway->watermark);
}

static void on_shard_low(void *context, uint32_t shard, uint64_t low)
{
    struct gateway *gateway = context;

    deliver_shard_behind(gateway->deliver, shard, low);
    shard_clocks_behind(gateway->clocks, shard, low);
}

static void on_shard_whole(void *context, uint32_t shard)
{
    struct gateway *gateway = context;

    deliver_shard_whole(gateway->deliver, shard);
    shard_clocks_whole(gateway->clocks, shard, gateway->watermark);
}

static uint64_t on_redis_time(void *context, uint64_t shards, uint64_t time_ms)
{
    struct gateway *gateway = context;

    return shard_clocks_take_time(gateway->clocks, shards, time_ms, gateway->watermark);
}

/* The shards that are heard now, and still are at the end, are those that a round is about. */
static uint32_t on_round_begin(void *context, uint64_t nodes[static SL_SHARDS_MAX])
{
    struct gateway *gateway = context;

    gateway->round_heard = subscriber_heard(gateway->subscriber);
    return redis_commands_nodes(gateway->commands, gateway->round_heard, nodes);
}

static int on_round_ping(void *context, uint64_t number)
{
    return subscriber_ping(((struct gateway *)context)->subscriber, number);
}

static void on_pong(void *context, uint64_t number)
{
    round_pong(((struct gateway *)context)->round, number);
}

static uint64_t complete_shards(const struct gateway *gateway)
{
    uint64_t complete = 0;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        complete |= (uint64_t)repair_is_complete(gateway->repair, shard) << shard;
    if (gateway->subscriber)
        complete &= gateway->round_heard & subscriber_heard(gateway->subscriber);
    return complete;
}

static void note_complete(struct gateway *gateway, uint64_t complete)
{
    if (gateway->was_complete || complete != gateway->begun_shards)
        return;
    gateway->was_complete = true;
    redis_health_set_hearing(gateway->health, true);
}

static void on_round_over(void *context, uint64_t id)
{
    struct gateway *gateway = context;
    uint64_t complete = complete_shards(gateway);

    gateway->round_id = id;
    id_order_end_round(gateway->order, id, complete, clock_monotonic_us());
    note_complete(gateway, complete);
    want_round(gateway);
}

/* What was below the round's id had been published before it ended, so it is in the log, and a
 * shard that is complete now has had it. */
static void on_round_timer(uv_timer_t *timer)
{
    struct gateway *gateway = timer->data;
    uint64_t complete = complete_shards(gateway);

    if (gateway->round_id == 0)
        return;
    id_order_look_again(gateway->order, gateway->round_id, complete, clock_monotonic_us());
    note_complete(gateway, complete);
    want_round(gateway);
    deliver_turn_end(gateway->deliver);
}

/* By the clocks that the intake process knows of: what this worker has found is told to it. */
static void on_relayed_round(void *context, uint64_t id, uint64_t redis_ms)
{
    struct gateway *gateway = context;

    shard_clocks_take_time(gateway->clocks, UINT64_MAX, redis_ms, gateway->watermark);
    for (uint32_t shard = 0; shard < relay_meta(gateway->relay)->shards; shard++)
        relay_set_clock(gateway->relay, shard, shard_clocks_until_ms(gateway->clocks, shard));
    on_round_over(gateway, id);
}

static void on_turn_end(void *context)
{
    deliver_turn_end(((struct gateway *)context)->deliver);
}

static void on_master(void *context, const struct sl_redis_endpoint *endpoint)
{
    redis_commands_set_endpoint(((struct gateway *)context)->commands, endpoint);
    redis_commands_set_endpoint(((struct gateway *)context)->api_commands, endpoint);
}

/* --- a cluster --- */

static void on_map(void *context, const struct sl_cluster_map *map)
{
    struct gateway *gateway = context;

    redis_commands_set_map(gateway->commands, map);
    redis_commands_set_map(gateway->api_commands, map);
    subscriber_set_map(gateway->subscriber, map);
}

static void on_doubt(void *context)
{
    cluster_watch_doubt(((struct gateway *)context)->cluster);
}

static void on_database(void *context, const struct sl_meta *meta)
{
    cluster_watch_expect(((struct gateway *)context)->cluster, meta);
}

static void on_heard_again(void *context, uint32_t shard)
{
    struct gateway *gateway = context;

    redis_commands_try_now(gateway->commands);
    redis_commands_try_now(gateway->api_commands);
    repair_heard_again(gateway->repair, shard);
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

/* Whether the rounds go on. */
static void set_hearing(struct gateway *gateway, bool is_hearing)
{
    repair_set_hearing(gateway->repair, is_hearing);
    if (gateway->round) {
        round_set_hearing(gateway->round, is_hearing);
    } else if (!is_hearing) {
        gateway->round_id = 0;
        uv_timer_stop(&gateway->round_timer);
    }
}

/* The ends of the logs were asked for one after the other: so at first some shards are known
 * further than others, and until a round has brought them together no cursor is true of all. */
static void on_subscribed(void *context, uint32_t shards)
{
    struct gateway *gateway = context;
    const struct sl_meta *meta =
        gateway->relay ? relay_meta(gateway->relay) : subscriber_meta(gateway->subscriber);

    redis_commands_try_now(gateway->commands);
    redis_commands_try_now(gateway->api_commands);
    home_loader_set_shards(gateway->home_loader, shards);
    user_checks_set_shards(gateway->user_checks, shards);
    shard_watch_begin(gateway->task_watch, shards);
    if (gateway->cache)
        cache_reader_set_database(gateway->cache, meta->database_id);
    api_redis_found(gateway->api, shards);
    shard_clocks_begin(gateway->clocks, meta);
    for (uint32_t shard = 0; shard < shards; shard++)
        shard_clocks_set_until(gateway->clocks, shard,
                               gateway->relay
                                   ? relay_clock_until_ms(gateway->relay, shard)
                                   : subscriber_clock_until_ms(gateway->subscriber, shard));
    set_hearing(gateway, true);
    want_round(gateway);
    if (gateway->log_watch)
        metric_set(gateway->metrics, METRIC_SHARDS, shards); /* one worker for all */
    shard_watch_begin(gateway->log_watch, shards);
    shard_watch_begin(gateway->write_watch, shards);
    if (!id_order_is_ordering(gateway->order) && !gateway->was_complete) {
        gateway->was_complete = true;
        deliver_set_watermark(gateway->deliver, gateway->begun_id);
    }
    if (gateway->was_complete)
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
    set_hearing(gateway, false);
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
    gateway->cluster = NULL;
    redis_commands_free(gateway->api_commands); /* whoever still waits is answered */
    shard_watch_free(gateway->write_watch);
    archive_reader_free(gateway->archive); /* the same */
    archive_watch_free(gateway->archive_watch);
    cache_reader_free(gateway->cache); /* the same */
    api_free(gateway->api);
    server_close(gateway->server);
    subscriber_free(gateway->subscriber);
    relay_free(gateway->relay);
    redis_commands_free(gateway->commands); /* answers what is under way, so before who asked */
    redis_health_free(gateway->health);
    home_loader_free(gateway->home_loader);
    user_checks_free(gateway->user_checks);
    shard_watch_free(gateway->task_watch);
    repair_free(gateway->repair);
    round_free(gateway->round);
    shard_clocks_free(gateway->clocks);
    id_order_free(gateway->order);
    deliver_set_log(gateway->deliver, NULL);
    log_cache_free(gateway->log_cache);
    log_reader_free(gateway->log_reader);
    shard_watch_free(gateway->log_watch);
    gateway->subscriber = NULL;
    gateway->relay = NULL;
    gateway->home_loader = NULL;
    gateway->user_checks = NULL;
    gateway->repair = NULL;
    gateway->round = NULL;
    gateway->clocks = NULL;
    gateway->order = NULL;
    gateway->task_watch = NULL;
    gateway->write_watch = NULL;
    gateway->archive_watch = NULL;
    gateway->log_cache = NULL;
    gateway->log_reader = NULL;
    gateway->log_watch = NULL;
    gateway->health = NULL;
    gateway->commands = gateway->api_commands = NULL;
    gateway->api = NULL;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        uv_close((uv_handle_t *)&gateway->signals[i], NULL);
    uv_close((uv_handle_t *)&gateway->pulse, NULL);
    uv_close((uv_handle_t *)&gateway->round_timer, NULL);
}

/* What happens from here on is the next server's to tell, and so is what still waits for its turn:
 * it is above every cursor. The queues can empty. */
static void stop_intake(struct gateway *gateway)
{
    subscriber_free(gateway->subscriber);
    relay_free(gateway->relay);
    gateway->subscriber = NULL;
    gateway->relay = NULL;
    set_hearing(gateway, false);
}

/* Keys and origins are taken from the settings as they are now. */
static int read_front(struct gateway *gateway, struct failure *reterr)
{
    const struct config *config = gateway->parts->config;
    const struct token_policy_settings settings = {
        .secret_file = config->jwt_secret_file,
        .public_key_files = (const char *const *)config->jwt_public_keys.items,
        .public_key_count = config->jwt_public_keys.count,
        .issuer = config->jwt_issuer,
        .audience = config->jwt_audience,
    };
    struct token_policy *policy;
    int r;

    gateway->origins = (struct origin_policy){
        .any = config->dev,
        .allowed = (const char *const *)config->allow_origins.items,
        .allowed_count = config->allow_origins.count,
    };
    r = token_policy_new(&settings, &policy, reterr);
    if (r < 0)
        return r;
    token_policy_free(gateway->policy);
    gateway->policy = policy;
    gateway->front = (struct front_settings){
        .policy = policy,
        .max_gather_ms = (uint32_t)config->max_gather_ms,
        .admission = {.streams = (uint32_t)config->max_connections,
                      .per_subject = (uint32_t)config->max_connections_per_subject,
                      .per_address = (uint32_t)config->max_connections_per_address,
                      .replace = config->replace_oldest},
        .max_filter_bytes = config->max_filter_bytes,
        .max_filter_bytes_per_subject = config->max_filter_bytes_per_subject,
        .keepalive_ms = (uint32_t)config->keepalive_ms,
    };
    for (unsigned i = 0; gateway->parts->worker == 0; i++) { /* one of us is enough */
        const char *warning = token_policy_warning(gateway->policy, i);

        if (!warning)
            break;
        log_warn("weak_keys", "why=\"%s\"", warning);
    }
    return 0;
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
    if (r == 0) {
        deliver_set_limits(gateway->deliver, config->max_owed_bytes, config->max_shared_bytes,
                           config->max_lag_ms);
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
    stop_intake(gateway);
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
    if (gateway->parts->worker != 0)
        return 0;
    gateway->log_watch = log_watch_new(&gateway->loop, gateway->commands, gateway->metrics);
    gateway->write_watch =
        write_watch_new(&gateway->loop, gateway->api_commands, on_writes, gateway);
    if (!gateway->log_watch || !gateway->write_watch)
        return -ENOMEM;
    if (!gateway->parts->config->archive) {
        health_set(gateway->metrics, HEALTH_ARCHIVE, HEALTH_OFF, NULL, clock_wall_ms());
        return 0;
    }
    gateway->archive_watch =
        archive_watch_new(&gateway->loop, gateway->parts->config->archive, gateway->metrics);
    return gateway->archive_watch ? 0 : -ENOMEM;
}

static int start_repair(struct gateway *gateway)
{
    const struct repair_callbacks callbacks = {
        .order = {.event = on_event, .gap = on_gap},
        .turn_end = on_turn_end,
    };
    struct repair_settings settings = {
        .loop = &gateway->loop,
        .metrics = gateway->metrics,
        .max_held_bytes = REPAIR_HELD_BYTES,
        .check_ms = REPAIR_CHECK_MS,
    };

    gateway->log_reader = settings.log = log_reader_new(gateway->commands);
    if (!gateway->log_reader)
        return -ENOMEM;
    gateway->repair = repair_new(&settings, &callbacks, gateway);
    return gateway->repair ? 0 : -ENOMEM;
}

static int start_order(struct gateway *gateway)
{
    static const struct id_order_callbacks callbacks = {
        .pass = on_ordered,
        .watermark = on_watermark,
        .behind = on_shard_behind,
        .low = on_shard_low,
        .whole = on_shard_whole,
    };
    static const struct round_callbacks round_callbacks = {
        .ids_ms = on_redis_time,
        .begin = on_round_begin,
        .ping = on_round_ping,
        .over = on_round_over,
    };
    const struct id_order_settings settings = {
        .wait_ms = gateway->parts->config->order_wait_ms,
        .max_held_bytes = ID_ORDER_HELD_BYTES,
        .metrics = gateway->metrics,
    };

    gateway->order = id_order_new(&settings, &callbacks, gateway);
    gateway->clocks = shard_clocks_new(&gateway->loop, gateway->commands, gateway->metrics);
    uv_timer_init(&gateway->loop, &gateway->round_timer);
    gateway->round_timer.data = gateway;
    if (!gateway->parts->broadcast)
        gateway->round = round_new(&gateway->loop, gateway->commands, gateway->metrics,
                                   &round_callbacks, gateway);
    return gateway->order && gateway->clocks && (gateway->round || gateway->parts->broadcast)
               ? 0
               : -ENOMEM;
}

static int start_reading_back(struct gateway *gateway)
{
    struct log_cache_settings settings = {
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

static const struct subscriber_callbacks hearing_callbacks = {
    .master = on_master,
    .log_end = on_log_end,
    .message = on_message,
    .pong = on_pong,
    .turn_end = on_turn_end,
    .subscribed = on_subscribed,
    .lost = on_lost,
    .away = on_away,
    .database = on_database,
    .heard_again = on_heard_again,
    .doubt = on_doubt,
};

/* From the intake process. */
static int start_relay(struct gateway *gateway)
{
    const struct relay_callbacks callbacks = {
        .heard = hearing_callbacks,
        .round_over = on_relayed_round,
    };
    const struct relay_settings settings = {
        .loop = &gateway->loop,
        .broadcast = gateway->parts->broadcast,
        .worker = gateway->parts->worker,
        .metrics = gateway->metrics,
    };

    gateway->relay = relay_new(&settings, &callbacks, gateway);
    return gateway->relay ? 0 : -ENOMEM;
}

/* By itself. */
static int start_subscriber(struct gateway *gateway)
{
    const struct gateway_parts *parts = gateway->parts;
    const struct subscriber_settings settings = {
        .loop = &gateway->loop,
        .address = &gateway->redis,
        .metrics = gateway->metrics,
        .ping_ms = (uint32_t)parts->config->redis_timeout_ms,
        .timeout_ms = (uint32_t)parts->config->redis_timeout_ms,
        .rest_ms = (uint32_t)parts->config->intake_rest_ms,
        .commands = gateway->commands,
    };

    gateway->subscriber = subscriber_new(&settings, &hearing_callbacks, gateway);
    return gateway->subscriber ? 0 : -ENOMEM;
}

static int start_intake(struct gateway *gateway, struct failure *reterr)
{
    gateway->decoder = event_decoder_new(gateway->parts->config->max_event_bytes);
    if (!gateway->decoder || start_health(gateway) < 0 || start_repair(gateway) < 0 ||
        start_order(gateway) < 0 || start_watches(gateway) < 0 || start_reading_back(gateway) < 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    gateway->live_decoder = (struct live_decoder){gateway->decoder, gateway->metrics, {0}};
    if ((gateway->parts->broadcast ? start_relay(gateway) : start_subscriber(gateway)) < 0 ||
        start_cluster(gateway) < 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
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
        .ring_bytes = config->ring_bytes,
        .max_lag_ms = config->max_lag_ms,
    };

    gateway->deliver = deliver_new(&settings);
    gateway->commands = redis_commands_new(&gateway->loop, &gateway->redis, "sluiced-streams",
                                           (uint32_t)config->redis_timeout_ms);
    if (!gateway->deliver || !gateway->commands)
        return failure_set(reterr, -ENOMEM, "out of memory");
    gateway->home_loader = home_loader_new(deliver_home(gateway->deliver), gateway->commands);
    gateway->user_checks = user_checks_new(gateway->commands);
    if (gateway->parts->worker == 0)
        gateway->task_watch = task_watch_new(&gateway->loop, gateway->commands, gateway->metrics);
    if (!gateway->home_loader || !gateway->user_checks ||
        (gateway->parts->worker == 0 && !gateway->task_watch))
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
}

static int start_api(struct gateway *gateway, struct failure *reterr)
{
    const struct config *config = gateway->parts->config;
    struct api_settings settings = {
        .loop = &gateway->loop,
        .front = &gateway->front,
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

static int start_server(struct gateway *gateway, struct failure *reterr)
{
    const struct gateway_parts *parts = gateway->parts;
    const struct server_settings settings = {
        .loop = &gateway->loop,
        .config = parts->config,
        .listeners = parts->listeners,
        .deliver = gateway->deliver,
        .api = gateway->api,
        .front = &gateway->front,
        .origins = &gateway->origins,
        .admission = parts->admission,
        .user_checks = gateway->user_checks,
        .worker = parts->worker,
        .metrics = gateway->metrics,
        .board = parts->board,
        .slow_board = parts->slow_board,
        .site = parts->site,
    };

    return server_new(&settings, &gateway->server, reterr);
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

static int start(struct gateway *gateway, struct failure *reterr)
{
    int r;

    r = sl_redis_address_parse(sl_slice_str(gateway->parts->redis_url), &gateway->redis, reterr);
    if (r < 0)
        return r;
    r = read_front(gateway, reterr);
    if (r < 0)
        return r;
    r = start_delivery(gateway, reterr);
    if (r < 0)
        return r;
    r = start_api(gateway, reterr);
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
    event_decoder_free(gateway->decoder);
    token_policy_free(gateway->policy);
    if (uv_loop_close(&gateway->loop) < 0)
        log_error("loop_not_empty", "worker=%u", parts->worker);
    mem_free(gateway);
    return EXIT_SUCCESS;
}
