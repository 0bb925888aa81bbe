/* subscriber.c - a session whose steps are driven by the answers of Redis.
 *
 *     down -> find -> connect -> role -> alone -> meta, log end (per shard) -> subscribe -> hearing
 *      ^                                                                                      |
 *      +-------------------------------------- any failure -----------------------------------+
 *
 * A step sends its command and waits for the reply; unnecessary steps are skipped. The session
 * (gateway/redis/redis_session.h) limits the time for the steps, and later checks whether Redis is
 * alive; the timer says when to try again. With sentinels, `find` asks them for the master, and
 * `role` checks that it is one; `alone` checks that it is not a node of a cluster. When a sentinel
 * announces later that the master was replaced, the old one, which may run for a while, is left for
 * the new one without further questions.
 *
 * Redis may be back at any time, and clients are not served before it is found: so the delay
 * between two attempts is at most a second, which costs Redis next to nothing. */
#include "gateway/intake/subscriber.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/intake/cluster_subscriber.h"
#include "gateway/intake/live_channel.h"
#include "gateway/metrics/health.h"
#include "gateway/intake/message_rate.h"
#include "gateway/redis/master_finder.h"
#include "gateway/redis/master_watch.h"
#include "gateway/redis/redis_session.h"
#include "src/call/call.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/database/event_log.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/redis/cluster_map.h"
#include "src/redis/sentinel.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 1000 };

/* Its commands are few; the longest contains the channels of all shards. */
enum { UNSENT_MAX_BYTES = 64 * 1024 };

enum step {
    STEP_DOWN, /* waiting for the next attempt */
    STEP_FIND,
    STEP_CONNECT,
    STEP_ROLE,
    STEP_ALONE,
    STEP_META,
    STEP_LOG_END,
    STEP_SUBSCRIBE,
    STEP_HEARING
};

struct subscriber {
    struct cluster_subscriber *cluster; /* for a cluster this is used, and nothing of what
                                           follows */
    uv_timer_t timer;                   /* when to try again */
    struct subscriber_callbacks callbacks;
    void *context;
    struct redis_state_callbacks news;
    struct metrics *metrics;
    uint32_t ping_ms, rest_ms;
    struct sl_redis_address address;
    char address_text[SL_REDIS_ADDRESS_TEXT_SIZE];

    struct master_finder *finder; /* NULL: no sentinels */
    struct master_watch *watch;   /* NULL: no sentinels */
    bool was_told;                /* a sentinel has announced that `address.endpoint` is the master
                                     now */
    struct redis_session *session;

    enum step step;
    struct sl_call call;  /* of the current step */
    uint32_t asked_shard; /* whose meta or end of log is being read */
    struct sl_meta meta;  /* of shard 0 */
    uint64_t clock_until_ms[SL_SHARDS_MAX];
    uint32_t confirmed; /* channels confirmed by Redis */
    uint32_t shards;    /* of the last subscription; 0: none yet */
    uint32_t messages;  /* in this turn */
    bool has_pong;      /* in this turn */
    uint64_t pinged;    /* number of the outstanding subscriber_ping(); 0: none */
    struct message_rate rate;
    bool is_busy; /* by the rate, at the end of the last turn */

    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE]; /* why it is down, as logged last; empty: it is not
                                              down */
    struct log_rate dropped_rate;
};

static void start(struct subscriber *subscriber);
static void next_step(struct subscriber *subscriber);

static void end_turn(struct subscriber *subscriber)
{
    if (subscriber->messages == 0 && !subscriber->has_pong)
        return;
    subscriber->is_busy = message_rate_is_busy(&subscriber->rate, subscriber->messages,
                                               uv_now(subscriber->timer.loop));
    subscriber->messages = 0;
    subscriber->has_pong = false;
    subscriber->callbacks.turn_end(subscriber->context);
}

/* ---- down ---- */

static void on_retry(uv_timer_t *timer)
{
    start(timer->data);
}

static void go_down(struct subscriber *subscriber, const char *reason)
{
    bool was_hearing = subscriber->step == STEP_HEARING;
    uint32_t delay_ms = subscriber->was_told ? 0
                                             : backoff_next_spread_ms(&subscriber->backoff,
                                                                      RETRY_MIN_MS, RETRY_MAX_MS);
    char room[LOG_QUOTE_SIZE];

    if (subscriber->finder)
        master_finder_stop(subscriber->finder);
    redis_session_close(subscriber->session);
    end_turn(subscriber);
    subscriber->step = STEP_DOWN;
    uv_timer_start(&subscriber->timer, on_retry, delay_ms, 0);
    if (strcmp(reason, subscriber->logged_reason) != 0) {
        log_warn(was_hearing ? "redis_lost" : "redis_unavailable", "redis=%s reason=%s retry_ms=%u",
                 subscriber->address_text, log_quote(sl_slice_str(reason), room), delay_ms);
        snprintf(subscriber->logged_reason, sizeof(subscriber->logged_reason), "%s", reason);
        if (subscriber->news.away)
            subscriber->news.away(subscriber->news.context, reason);
    }
    if (!was_hearing)
        return;
    metric_set(subscriber->metrics, METRIC_SUBSCRIBED, 0);
    metric_add(subscriber->metrics, METRIC_SUBSCRIPTIONS_LOST, 1);
    subscriber->callbacks.lost(subscriber->context, reason);
}

/* ---- steps ---- */

static void send_call(struct subscriber *subscriber)
{
    if (redis_session_send_call(subscriber->session, &subscriber->call) < 0)
        go_down(subscriber, "out of memory");
}

static void ask_role(struct subscriber *subscriber)
{
    struct failure failure;

    if (sl_sentinel_role_call(&subscriber->call, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        send_call(subscriber);
}

/* A node of a cluster has only the keys of some shards: a database must not be created there by
 * mistake. */
static void ask_alone(struct subscriber *subscriber)
{
    struct failure failure;

    if (sl_cluster_node_call(&subscriber->call, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        send_call(subscriber);
}

/* Reads the meta of `asked_shard`: of shard 0 first, then of the others with its result. */
static void ask_meta(struct subscriber *subscriber)
{
    struct sl_meta wanted = subscriber->asked_shard == 0 ? sl_meta_wanted(1) : subscriber->meta;
    struct failure failure;

    if (sl_meta_call(&subscriber->call, subscriber->asked_shard, &wanted, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        send_call(subscriber);
}

static void ask_log_end(struct subscriber *subscriber)
{
    struct failure failure;

    if (sl_event_log_end_call(&subscriber->call, subscriber->asked_shard, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        send_call(subscriber);
}

static void send_subscribe(struct subscriber *subscriber)
{
    subscriber->confirmed = 0;
    if (live_channel_subscribe_call(&subscriber->call, subscriber->meta.shards) < 0)
        go_down(subscriber, "out of memory");
    else
        send_call(subscriber);
}

static void begin_hearing(struct subscriber *subscriber)
{
    subscriber->shards = subscriber->meta.shards;
    backoff_reset(&subscriber->backoff);
    subscriber->logged_reason[0] = '\0';
    redis_session_settle(subscriber->session, subscriber->ping_ms);
    metric_set(subscriber->metrics, METRIC_SUBSCRIBED, 1);
    metric_add(subscriber->metrics, METRIC_SUBSCRIPTIONS, 1);
    log_info("redis_subscribed", "redis=%s shards=%u database=%s", subscriber->address_text,
             subscriber->shards, subscriber->meta.database_id);
    subscriber->callbacks.subscribed(subscriber->context, subscriber->shards);
}

/* Goes to the next step that is necessary. */
static void next_step(struct subscriber *subscriber)
{
    subscriber->step++;
    switch (subscriber->step) {
    case STEP_ROLE:
        if (!subscriber->finder)
            next_step(subscriber);
        else
            ask_role(subscriber);
        break;
    case STEP_ALONE:
        ask_alone(subscriber);
        break;
    case STEP_META:
        subscriber->asked_shard = 0;
        ask_meta(subscriber);
        break;
    case STEP_LOG_END:
        subscriber->asked_shard = 0;
        ask_log_end(subscriber);
        break;
    case STEP_SUBSCRIBE:
        send_subscribe(subscriber);
        break;
    case STEP_HEARING:
        begin_hearing(subscriber);
        break;
    case STEP_DOWN:
    case STEP_FIND:
    case STEP_CONNECT:
        break;
    }
}

/* ---- replies ---- */

static void tell_master(struct subscriber *subscriber)
{
    if (subscriber->news.master)
        subscriber->news.master(subscriber->news.context, &subscriber->address.endpoint);
}

static void take_role(struct subscriber *subscriber, const redisReply *reply)
{
    char endpoint[SL_REDIS_ENDPOINT_TEXT_SIZE];
    struct failure failure;

    if (sl_sentinel_role_reply(reply, &failure) < 0) {
        go_down(subscriber, failure.text);
        return;
    }
    sl_redis_endpoint_print(&subscriber->address.endpoint, endpoint, sizeof(endpoint));
    log_info("redis_master", "redis=%s master=%s", subscriber->address_text, endpoint);
    tell_master(subscriber);
    next_step(subscriber);
}

static void take_alone(struct subscriber *subscriber, const redisReply *reply)
{
    struct failure failure;

    if (sl_cluster_node_reply(reply, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        next_step(subscriber);
}

static void take_meta(struct subscriber *subscriber, const redisReply *reply)
{
    struct sl_meta meta;
    struct failure failure;
    int r;

    if (sl_reply_is_noscript(reply)) {
        sl_call_use_source(&subscriber->call, true);
        send_call(subscriber);
        return;
    }
    r = sl_meta_reply(reply, &meta, &failure);
    if (r == 0 && subscriber->asked_shard > 0)
        r = sl_meta_check_same(&subscriber->meta, &meta, &failure);
    if (r == 0 && meta.is_clustered)
        r = failure_set(&failure, -EREMOTE,
                        "the database is that of a Redis Cluster, which is named as "
                        "redis+cluster://host:port");
    if (r < 0) {
        go_down(subscriber, failure.text);
        return;
    }
    if (subscriber->asked_shard == 0)
        subscriber->meta = meta;
    subscriber->clock_until_ms[subscriber->asked_shard] = meta.clock_until_ms;
    if (subscriber->asked_shard == 0 && meta.is_new)
        log_info("database_created", "redis=%s database=%s shards=%u", subscriber->address_text,
                 meta.database_id, meta.shards);
    if (++subscriber->asked_shard < subscriber->meta.shards)
        ask_meta(subscriber);
    else
        next_step(subscriber);
}

static void take_log_end(struct subscriber *subscriber, const redisReply *reply)
{
    struct failure failure;
    uint64_t id;

    if (sl_event_log_end_reply(reply, subscriber->asked_shard, &id, &failure) < 0)
        go_down(subscriber, failure.text);
    else if (subscriber->callbacks.log_end(subscriber->context, subscriber->asked_shard, id) < 0)
        go_down(subscriber, "out of memory");
    else if (++subscriber->asked_shard < subscriber->meta.shards)
        ask_log_end(subscriber);
    else
        next_step(subscriber);
}

static struct sl_slice reply_slice(const redisReply *reply)
{
    return sl_slice(reply->str, reply->len);
}

static void take_message(struct subscriber *subscriber, const redisReply *reply)
{
    struct live_message message;

    if (live_channel_read(reply, subscriber->metrics, &subscriber->dropped_rate, &message) < 0)
        return;
    subscriber->messages++;
    subscriber->callbacks.message(subscriber->context, &message);
}

static void take_pong(struct subscriber *subscriber, uint64_t number)
{
    if (number == 0)
        return;
    subscriber->pinged = 0;
    subscriber->has_pong = true;
    subscriber->callbacks.pong(subscriber->context, number);
}

static uint64_t pong_number(const redisReply *text)
{
    uint64_t number;

    return sl_id_parse(reply_slice(text), &number) == 0 ? number : 0;
}

static bool is_string(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING;
}

/* Handles what a subscribed connection receives: messages, confirmations, answers to PING. */
static void take_push(struct subscriber *subscriber, const redisReply *reply)
{
    struct sl_slice kind;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 || !is_string(reply->element[0])) {
        struct failure failure;

        if (redis_session_is_refused_ping(reply))
            take_pong(subscriber, subscriber->pinged);
        else if (sl_reply_check(reply, &failure) < 0)
            go_down(subscriber, failure.text);
        else
            go_down(subscriber, "Redis sent an unexpected message");
        return;
    }
    kind = reply_slice(reply->element[0]);
    if (sl_slice_is(kind, "message") && reply->elements == 3 && is_string(reply->element[1]) &&
        is_string(reply->element[2]))
        take_message(subscriber, reply);
    else if (sl_slice_is(kind, "subscribe") && subscriber->step == STEP_SUBSCRIBE &&
             ++subscriber->confirmed == subscriber->meta.shards)
        next_step(subscriber);
    else if (sl_slice_is(kind, "pong") && is_string(reply->element[1]))
        take_pong(subscriber, pong_number(reply->element[1]));
}

static void on_reply(void *context, const redisReply *reply)
{
    struct subscriber *subscriber = context;

    switch (subscriber->step) {
    case STEP_ROLE:
        take_role(subscriber, reply);
        break;
    case STEP_ALONE:
        take_alone(subscriber, reply);
        break;
    case STEP_META:
        take_meta(subscriber, reply);
        break;
    case STEP_LOG_END:
        take_log_end(subscriber, reply);
        break;
    case STEP_SUBSCRIBE:
    case STEP_HEARING:
        take_push(subscriber, reply);
        break;
    case STEP_DOWN:
    case STEP_FIND:
    case STEP_CONNECT:
        break;
    }
}

/* ---- the connection ---- */

static void on_ready(void *context)
{
    next_step(context);
}

static void on_turn_end(void *context)
{
    struct subscriber *subscriber = context;

    end_turn(subscriber);
    if (subscriber->is_busy && subscriber->rest_ms > 0 && subscriber->step == STEP_HEARING)
        redis_session_rest(subscriber->session, subscriber->rest_ms);
}

static void on_lost(void *context, const char *reason)
{
    go_down(context, reason);
}

static void connect_session(struct subscriber *subscriber)
{
    subscriber->step = STEP_CONNECT;
    subscriber->pinged = 0;
    redis_session_open(subscriber->session);
}

/* ---- finding the master ---- */

static void connect_to(struct subscriber *subscriber, const struct sl_redis_endpoint *endpoint)
{
    subscriber->address.endpoint = *endpoint;
    redis_session_set_endpoint(subscriber->session, endpoint);
    connect_session(subscriber);
}

/* All other users of a connection to the old master leave it, too. */
static void move_to(struct subscriber *subscriber, const struct sl_redis_endpoint *endpoint)
{
    char text[SL_REDIS_ENDPOINT_TEXT_SIZE];
    struct failure reason;

    metric_add(subscriber->metrics, METRIC_MASTER_MOVES, 1);
    sl_redis_endpoint_print(endpoint, text, sizeof(text));
    failure_set(&reason, 0, "the sentinels have made %s the master", text);
    subscriber->address.endpoint = *endpoint;
    subscriber->was_told = true;
    tell_master(subscriber);
    go_down(subscriber, reason.text);
}

static void on_master_found(void *context, const struct sl_redis_endpoint *endpoint,
                            const char *why)
{
    struct subscriber *subscriber = context;

    if (subscriber->step == STEP_FIND && endpoint)
        connect_to(subscriber, endpoint);
    else if (subscriber->step == STEP_FIND)
        go_down(subscriber, why);
    else if (endpoint && !sl_redis_endpoint_equals(endpoint, &subscriber->address.endpoint))
        move_to(subscriber, endpoint);
}

/* A single sentinel may be behind the others: so they are all asked, and the current connection is
 * kept until there is an answer. Without a connection they are asked anyway. */
static void on_named(void *context, const struct sl_redis_endpoint *endpoint)
{
    struct subscriber *subscriber = context;

    if (subscriber->step > STEP_FIND &&
        !sl_redis_endpoint_equals(endpoint, &subscriber->address.endpoint))
        master_finder_start(subscriber->finder);
}

static void on_news(void *context, const struct sl_sentinel_news *news)
{
    struct subscriber *subscriber = context;

    if (sl_redis_endpoint_equals(&news->new_master, &subscriber->address.endpoint))
        return; /* another sentinel has already announced it */
    if (sl_redis_endpoint_equals(&news->old_master, &subscriber->address.endpoint))
        move_to(subscriber, &news->new_master);
    else
        on_named(subscriber, &news->new_master);
}

static void start(struct subscriber *subscriber)
{
    if (!subscriber->finder) {
        connect_session(subscriber);
        return;
    }
    if (subscriber->was_told) {
        struct sl_redis_endpoint endpoint = subscriber->address.endpoint;

        subscriber->was_told = false; /* if it is not there, the sentinels are asked */
        connect_to(subscriber, &endpoint);
        return;
    }
    subscriber->step = STEP_FIND;
    master_finder_start(subscriber->finder);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct subscriber *subscriber = handle->data;

    sl_call_done(&subscriber->call);
    mem_free(subscriber);
}

static struct redis_session *make_session(struct subscriber *subscriber,
                                          const struct subscriber_settings *settings)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    const struct redis_session_settings session_settings = {
        .loop = settings->loop,
        .address = settings->address,
        .name = "sluiced",
        .timeout_ms = settings->timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };

    return redis_session_new(&session_settings, &callbacks, subscriber);
}

static int watch_sentinels(struct subscriber *subscriber,
                           const struct subscriber_settings *settings)
{
    static const struct master_watch_callbacks callbacks = {
        .news = on_news,
        .named = on_named,
    };

    if (settings->address->sentinel_count == 0)
        return 0;
    subscriber->finder =
        master_finder_new(settings->loop, settings->address, on_master_found, subscriber);
    subscriber->watch = master_watch_new(settings->loop, settings->address, settings->metrics,
                                         &callbacks, subscriber);
    return subscriber->finder && subscriber->watch ? 0 : -ENOMEM;
}

static struct subscriber *subscribe_to_cluster(struct subscriber *subscriber,
                                               const struct subscriber_settings *settings,
                                               const struct subscriber_callbacks *callbacks,
                                               void *context)
{
    subscriber->cluster = cluster_subscriber_new(settings, callbacks, context);
    if (!subscriber->cluster) {
        mem_free(subscriber);
        return NULL;
    }
    return subscriber;
}

struct subscriber *subscriber_new(const struct subscriber_settings *settings,
                                  const struct subscriber_callbacks *callbacks, void *context)
{
    struct subscriber *subscriber = mem_zalloc(sizeof(*subscriber));

    if (!subscriber)
        return NULL;
    if (settings->address->seed_count > 0)
        return subscribe_to_cluster(subscriber, settings, callbacks, context);
    health_set(settings->metrics, HEALTH_SHARDS, HEALTH_OFF, NULL, clock_wall_ms());
    uv_timer_init(settings->loop, &subscriber->timer);
    subscriber->timer.data = subscriber;
    subscriber->callbacks = *callbacks;
    subscriber->context = context;
    subscriber->news = settings->news;
    subscriber->metrics = settings->metrics;
    subscriber->ping_ms = settings->ping_ms;
    subscriber->rest_ms = settings->rest_ms;
    subscriber->address = *settings->address;
    sl_redis_address_print(&subscriber->address, subscriber->address_text,
                           sizeof(subscriber->address_text));
    subscriber->session = make_session(subscriber, settings);
    if (!subscriber->session || watch_sentinels(subscriber, settings) < 0) {
        subscriber_free(subscriber);
        return NULL;
    }
    uv_timer_start(&subscriber->timer, on_retry, 0, 0);
    return subscriber;
}

/* The caller may be a callback of this subscriber: what is on the stack exists until the next turn
 * of the loop. */
void subscriber_free(struct subscriber *subscriber)
{
    if (!subscriber)
        return;
    if (subscriber->cluster) {
        cluster_subscriber_free(subscriber->cluster);
        mem_free(subscriber);
        return;
    }
    redis_session_free(subscriber->session);
    master_finder_free(subscriber->finder);
    master_watch_free(subscriber->watch);
    subscriber->finder = NULL;
    subscriber->watch = NULL;
    subscriber->step = STEP_DOWN;
    uv_close((uv_handle_t *)&subscriber->timer, on_timer_closed);
}

uint64_t subscriber_ping(struct subscriber *subscriber, uint64_t shards, uint64_t number)
{
    char text[SL_ID_TEXT_SIZE];

    if (subscriber->cluster)
        return cluster_subscriber_ping(subscriber->cluster, shards, number);
    if (subscriber->step != STEP_HEARING ||
        redis_session_send_words(subscriber->session,
                                 (const char *[]){"PING", sl_id_print(number, text), NULL}) < 0)
        return 0;
    subscriber->pinged = number;
    return shards;
}

bool subscriber_is_subscribed(const struct subscriber *subscriber)
{
    return subscriber->cluster ? cluster_subscriber_is_subscribed(subscriber->cluster)
                               : subscriber->step == STEP_HEARING;
}

uint32_t subscriber_shards(const struct subscriber *subscriber)
{
    return subscriber->cluster ? cluster_subscriber_shards(subscriber->cluster)
                               : subscriber->shards;
}

const struct sl_meta *subscriber_meta(const struct subscriber *subscriber)
{
    return subscriber->cluster ? cluster_subscriber_meta(subscriber->cluster) : &subscriber->meta;
}

uint64_t subscriber_heard(const struct subscriber *subscriber)
{
    if (subscriber->cluster)
        return cluster_subscriber_heard(subscriber->cluster);
    return subscriber->step == STEP_HEARING ? UINT64_MAX : 0;
}

void subscriber_set_map(struct subscriber *subscriber, const struct sl_cluster_map *map)
{
    assert(subscriber->cluster);
    cluster_subscriber_set_map(subscriber->cluster, map);
}

uint64_t subscriber_clock_until_ms(const struct subscriber *subscriber, uint32_t shard)
{
    return subscriber->cluster ? cluster_subscriber_clock_until_ms(subscriber->cluster, shard)
                               : subscriber->clock_until_ms[shard];
}
