/* subscriber.c - one connection, taken through its steps by what Redis answers.
 *
 *     down -> find -> connect -> login -> select -> role -> name -> meta, log end (per shard)
 *      ^                                                                       |
 *      |                                                                  subscribe -> hearing
 *      +---------------------------- any failure -------------------------------------+
 *
 * A step sends its command and waits for the reply; steps with nothing to say are passed over. One
 * timer serves all: when to try again, how long the steps may take, when to ask whether Redis is
 * still there. With sentinels, `find` asks them for the master, and `role` whether it is one. When
 * a sentinel says later that the master was replaced, the old one, which may live on for a while,
 * is left for the new one without asking anybody. */
#include "gateway/intake/subscriber.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "gateway/redis/master_finder.h"
#include "gateway/redis/master_watch.h"
#include "gateway/redis/redis_socket.h"
#include "src/call/call.h"
#include "src/call/reply.h"
#include "src/database/log.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/redis/sentinel.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 5000 };

/* Redis cuts off a subscriber to whom it owes 32 MB; a reply of more than this is no event. */
enum { REPLY_MAX_BYTES = 64 * 1024 * 1024 };

/* Periods without a byte. The third one counts only if the loop has run in between, so that a
 * process that was stopped reads what has come before it gives up. */
enum { SILENT_TICKS_ASK = 1, SILENT_TICKS_MAX = 3 };

enum step {
    STEP_DOWN, /* waiting to try again */
    STEP_FIND,
    STEP_CONNECT,
    STEP_LOGIN,
    STEP_SELECT,
    STEP_ROLE,
    STEP_NAME,
    STEP_META,
    STEP_LOG_END,
    STEP_SUBSCRIBE,
    STEP_HEARING
};

struct subscriber {
    uv_timer_t timer;
    struct subscriber_callbacks callbacks;
    void *context;
    struct metrics *metrics;
    uint32_t ping_ms, timeout_ms;
    struct sl_redis_address address;
    char address_text[SL_REDIS_ADDRESS_TEXT_SIZE];

    struct master_finder *finder; /* NULL: no sentinels */
    struct master_watch *watch;   /* the same */
    bool was_told;                /* by a sentinel, that `address.place` is the master now */
    struct redis_socket *socket;
    redisReader *reader; /* of this connection or the last one */

    enum step step;
    struct sl_call call;   /* of STEP_META and STEP_LOG_END */
    uint32_t asked_shard;  /* whose meta, or end of log, is being asked for */
    struct sl_meta meta;   /* of shard 0 */
    uint32_t confirmed;    /* channels that Redis has confirmed */
    uint32_t shards;       /* of the last subscription; 0: none yet */
    unsigned silent_ticks; /* ping periods since the last byte */
    bool has_messages;     /* in this turn */

    uint32_t retry_ms;
    char logged_reason[FAILURE_TEXT_SIZE]; /* why it is down, as logged last; empty: it was not */
    struct log_rate dropped_rate;
};

static void start(struct subscriber *subscriber);
static void next_step(struct subscriber *subscriber);

static void end_turn(struct subscriber *subscriber)
{
    if (!subscriber->has_messages)
        return;
    subscriber->has_messages = false;
    subscriber->callbacks.turn_end(subscriber->context);
}

/* ---- down ---- */

static void on_retry(uv_timer_t *timer)
{
    start(timer->data);
}

static uint32_t next_retry_ms(struct subscriber *subscriber)
{
    uint32_t half = subscriber->retry_ms / 2;
    uint32_t delay_ms = half + (uint32_t)(hash_key_random().k0 % (half + 1));

    subscriber->retry_ms *= 2;
    if (subscriber->retry_ms > RETRY_MAX_MS)
        subscriber->retry_ms = RETRY_MAX_MS;
    return delay_ms;
}

static void go_down(struct subscriber *subscriber, const char *reason)
{
    bool was_hearing = subscriber->step == STEP_HEARING;
    uint32_t delay_ms = subscriber->was_told ? 0 : next_retry_ms(subscriber);
    char room[LOG_QUOTE_SIZE];

    if (subscriber->finder)
        master_finder_stop(subscriber->finder);
    redis_socket_close(subscriber->socket);
    end_turn(subscriber);
    subscriber->step = STEP_DOWN;
    uv_timer_start(&subscriber->timer, on_retry, delay_ms, 0);
    if (strcmp(reason, subscriber->logged_reason) != 0) {
        log_warn(was_hearing ? "redis_lost" : "redis_unavailable", "redis=%s reason=%s retry_ms=%u",
                 subscriber->address_text, log_quote(sl_slice_str(reason), room), delay_ms);
        snprintf(subscriber->logged_reason, sizeof(subscriber->logged_reason), "%s", reason);
    }
    if (!was_hearing)
        return;
    metric_set(subscriber->metrics, METRIC_SUBSCRIBED, 0);
    metric_add(subscriber->metrics, METRIC_SUBSCRIPTIONS_LOST, 1);
    subscriber->callbacks.lost(subscriber->context, reason);
}

/* ---- steps ---- */

static void send_command(struct subscriber *subscriber, int argc, const char **argv,
                         const size_t *sizes)
{
    char *bytes;
    int size = redisFormatCommandArgv(&bytes, argc, argv, sizes);

    if (size < 0) {
        go_down(subscriber, "out of memory");
        return;
    }
    redis_socket_send(subscriber->socket, sl_slice(bytes, (size_t)size));
    redisFreeCommand(bytes);
}

static void send_login(struct subscriber *subscriber)
{
    const struct sl_redis_login *login = &subscriber->address.login;
    const char *argv[3] = {"AUTH", login->user, login->password};

    if (login->user[0] == '\0') {
        argv[1] = login->password;
        send_command(subscriber, 2, argv, NULL);
    } else {
        send_command(subscriber, 3, argv, NULL);
    }
}

static void send_select(struct subscriber *subscriber)
{
    char db[sizeof("4294967295")];
    const char *argv[] = {"SELECT", db};

    snprintf(db, sizeof(db), "%u", subscriber->address.db);
    send_command(subscriber, 2, argv, NULL);
}

static void send_call(struct subscriber *subscriber)
{
    struct sl_call *call = &subscriber->call;

    send_command(subscriber, call->argc, call->argv, call->argvlen);
}

static void ask_role(struct subscriber *subscriber)
{
    struct failure failure;

    if (sl_sentinel_role_call(&subscriber->call, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        send_call(subscriber);
}

static void send_name(struct subscriber *subscriber)
{
    const char *argv[] = {"CLIENT", "SETNAME", "sluiced"};

    send_command(subscriber, 3, argv, NULL);
}

/* Asks for the meta of `asked_shard`: of shard 0 first, then with what it said of the others. */
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

    if (sl_log_end_call(&subscriber->call, subscriber->asked_shard, &failure) < 0)
        go_down(subscriber, failure.text);
    else
        send_call(subscriber);
}

static void send_subscribe(struct subscriber *subscriber)
{
    char rooms[SL_SHARDS_MAX][SL_KEY_SIZE];
    const char *argv[1 + SL_SHARDS_MAX] = {"SUBSCRIBE"};
    uint32_t shards = subscriber->meta.shards;

    for (uint32_t shard = 0; shard < shards; shard++)
        argv[1 + shard] = sl_key(shard, "live", rooms[shard]);
    subscriber->confirmed = 0;
    send_command(subscriber, (int)shards + 1, argv, NULL);
}

static void send_ping(struct subscriber *subscriber)
{
    const char *argv[] = {"PING"};

    send_command(subscriber, 1, argv, NULL);
}

static void on_ping_tick(uv_timer_t *timer)
{
    struct subscriber *subscriber = timer->data;

    subscriber->silent_ticks++;
    if (subscriber->silent_ticks >= SILENT_TICKS_MAX)
        go_down(subscriber, "Redis is silent");
    else if (subscriber->silent_ticks == SILENT_TICKS_ASK)
        send_ping(subscriber);
}

static void begin_hearing(struct subscriber *subscriber)
{
    subscriber->shards = subscriber->meta.shards;
    subscriber->retry_ms = RETRY_MIN_MS;
    subscriber->silent_ticks = 0;
    subscriber->logged_reason[0] = '\0';
    uv_timer_start(&subscriber->timer, on_ping_tick, subscriber->ping_ms, subscriber->ping_ms);
    metric_set(subscriber->metrics, METRIC_SUBSCRIBED, 1);
    metric_add(subscriber->metrics, METRIC_SUBSCRIPTIONS, 1);
    log_info("redis_subscribed", "redis=%s shards=%u database=%s", subscriber->address_text,
             subscriber->shards, subscriber->meta.database_id);
    subscriber->callbacks.subscribed(subscriber->context, subscriber->shards);
}

/* Goes one step on, and over those that have nothing to say. */
static void next_step(struct subscriber *subscriber)
{
    subscriber->step++;
    switch (subscriber->step) {
    case STEP_LOGIN:
        if (subscriber->address.login.password[0] == '\0')
            next_step(subscriber);
        else
            send_login(subscriber);
        break;
    case STEP_SELECT:
        if (subscriber->address.db == 0)
            next_step(subscriber);
        else
            send_select(subscriber);
        break;
    case STEP_ROLE:
        if (!subscriber->finder)
            next_step(subscriber);
        else
            ask_role(subscriber);
        break;
    case STEP_NAME:
        send_name(subscriber);
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

static void take_role(struct subscriber *subscriber, const redisReply *reply)
{
    char place[SL_REDIS_PLACE_TEXT_SIZE];
    struct failure failure;

    if (sl_sentinel_role_reply(reply, &failure) < 0) {
        go_down(subscriber, failure.text);
        return;
    }
    sl_redis_place_print(&subscriber->address.place, place, sizeof(place));
    log_info("redis_master", "redis=%s master=%s", subscriber->address_text, place);
    subscriber->callbacks.master(subscriber->context, &subscriber->address.place);
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
    if (r < 0) {
        go_down(subscriber, failure.text);
        return;
    }
    if (subscriber->asked_shard == 0)
        subscriber->meta = meta;
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

    if (sl_log_end_reply(reply, subscriber->asked_shard, &id, &failure) < 0)
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

static void take_message(struct subscriber *subscriber, struct sl_slice channel,
                         struct sl_slice payload)
{
    struct live_message message = {.received_us = clock_monotonic_us()};
    uint64_t held_back;

    metric_add(subscriber->metrics, METRIC_EVENTS_RECEIVED, 1);
    if (live_message_read(channel, payload, &message) == 0) {
        subscriber->has_messages = true;
        subscriber->callbacks.message(subscriber->context, &message);
        return;
    }
    metric_add(subscriber->metrics, METRIC_EVENTS_BAD_HEADER, 1);
    if (log_rate_allows(&subscriber->dropped_rate, message.received_us / 1000, &held_back))
        log_warn("event_dropped", "reason=bad_header channel=%.*s bytes=%zu held_back=%" PRIu64,
                 SL_SLICE_ARG(channel), payload.size, held_back);
}

static bool is_string(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING;
}

/* What a subscribed connection is sent: messages, confirmations, answers to PING. */
static void take_push(struct subscriber *subscriber, const redisReply *reply)
{
    struct sl_slice kind;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 || !is_string(reply->element[0])) {
        struct failure failure;

        if (sl_reply_check(reply, &failure) < 0)
            go_down(subscriber, failure.text);
        else
            go_down(subscriber, "Redis sent what no subscriber expects");
        return;
    }
    kind = reply_slice(reply->element[0]);
    if (sl_slice_is(kind, "message") && reply->elements == 3 && is_string(reply->element[1]) &&
        is_string(reply->element[2]))
        take_message(subscriber, reply_slice(reply->element[1]), reply_slice(reply->element[2]));
    else if (sl_slice_is(kind, "subscribe") && subscriber->step == STEP_SUBSCRIBE &&
             ++subscriber->confirmed == subscriber->meta.shards)
        next_step(subscriber);
}

static void take_reply(struct subscriber *subscriber, const redisReply *reply)
{
    struct failure failure;

    switch (subscriber->step) {
    case STEP_LOGIN:
    case STEP_SELECT:
        if (sl_reply_check(reply, &failure) < 0)
            go_down(subscriber, failure.text);
        else
            next_step(subscriber);
        break;
    case STEP_ROLE:
        take_role(subscriber, reply);
        break;
    case STEP_NAME: /* it is for whoever looks at CLIENT LIST; who may not set it can do without */
        next_step(subscriber);
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

static void on_bytes(void *context, struct sl_slice bytes)
{
    struct subscriber *subscriber = context;
    void *reply;

    subscriber->silent_ticks = 0;
    redisReaderFeed(subscriber->reader, bytes.data, bytes.size);
    while (subscriber->step != STEP_DOWN) {
        if (redisReaderGetReply(subscriber->reader, &reply) != REDIS_OK) {
            go_down(subscriber, subscriber->reader->errstr);
            return;
        }
        if (!reply)
            break;
        take_reply(subscriber, reply);
        freeReplyObject(reply);
    }
    if (subscriber->step != STEP_DOWN && subscriber->reader->len > REPLY_MAX_BYTES)
        go_down(subscriber, "Redis sent too long a message");
}

/* ---- the connection ---- */

static void on_open(void *context)
{
    next_step(context);
}

static void on_turn_end(void *context)
{
    end_turn(context);
}

static void on_lost(void *context, const char *reason)
{
    go_down(context, reason);
}

static void on_timeout(uv_timer_t *timer)
{
    struct subscriber *subscriber = timer->data;

    go_down(subscriber,
            subscriber->step == STEP_CONNECT ? "cannot connect in time" : "Redis does not answer");
}

static void free_reader(struct subscriber *subscriber)
{
    if (subscriber->reader)
        redisReaderFree(subscriber->reader);
    subscriber->reader = NULL;
}

static void connect_socket(struct subscriber *subscriber)
{
    int r;

    free_reader(subscriber);
    subscriber->reader = redisReaderCreate();
    if (!subscriber->reader) {
        go_down(subscriber, "out of memory");
        return;
    }
    r = redis_socket_open(subscriber->socket);
    if (r < 0) {
        go_down(subscriber, uv_strerror(r));
        return;
    }
    subscriber->step = STEP_CONNECT;
    uv_timer_start(&subscriber->timer, on_timeout, subscriber->timeout_ms, 0);
}

/* ---- where the master is ---- */

static void connect_to(struct subscriber *subscriber, const struct sl_redis_place *place)
{
    subscriber->address.place = *place;
    redis_socket_set_place(subscriber->socket, place);
    connect_socket(subscriber);
}

/* Whoever else has a connection to the old master leaves it, too. */
static void move_to(struct subscriber *subscriber, const struct sl_redis_place *place)
{
    char text[SL_REDIS_PLACE_TEXT_SIZE];
    struct failure reason;

    metric_add(subscriber->metrics, METRIC_MASTER_MOVES, 1);
    sl_redis_place_print(place, text, sizeof(text));
    failure_set(&reason, 0, "the sentinels have made %s the master", text);
    subscriber->address.place = *place;
    subscriber->was_told = true;
    subscriber->callbacks.master(subscriber->context, place);
    go_down(subscriber, reason.text);
}

static void on_master_found(void *context, const struct sl_redis_place *place, const char *why)
{
    struct subscriber *subscriber = context;

    if (subscriber->step == STEP_FIND && place)
        connect_to(subscriber, place);
    else if (subscriber->step == STEP_FIND)
        go_down(subscriber, why);
    else if (place && !sl_redis_place_equals(place, &subscriber->address.place))
        move_to(subscriber, place);
}

/* A single sentinel may be behind the others: so they are asked, and what we have is not left
 * before there is an answer. While there is nothing to leave, they are asked anyway. */
static void on_named(void *context, const struct sl_redis_place *place)
{
    struct subscriber *subscriber = context;

    if (subscriber->step > STEP_FIND && !sl_redis_place_equals(place, &subscriber->address.place))
        master_finder_start(subscriber->finder);
}

static void on_news(void *context, const struct sl_sentinel_news *news)
{
    struct subscriber *subscriber = context;

    if (sl_redis_place_equals(&news->new_master, &subscriber->address.place))
        return; /* another sentinel has told us before */
    if (sl_redis_place_equals(&news->old_master, &subscriber->address.place))
        move_to(subscriber, &news->new_master);
    else
        on_named(subscriber, &news->new_master);
}

static void start(struct subscriber *subscriber)
{
    if (!subscriber->finder) {
        connect_socket(subscriber);
        return;
    }
    if (subscriber->was_told) {
        struct sl_redis_place place = subscriber->address.place;

        subscriber->was_told = false; /* should it not be there, they are asked */
        connect_to(subscriber, &place);
        return;
    }
    subscriber->step = STEP_FIND;
    master_finder_start(subscriber->finder);
}

static void on_first_start(uv_timer_t *timer)
{
    start(timer->data);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct subscriber *subscriber = handle->data;

    redis_socket_free(subscriber->socket);
    free_reader(subscriber);
    sl_call_done(&subscriber->call);
    mem_free(subscriber);
}

struct subscriber *subscriber_new(const struct subscriber_settings *settings,
                                  const struct subscriber_callbacks *callbacks, void *context)
{
    static const struct redis_socket_callbacks socket_callbacks = {
        .on_open = on_open,
        .on_bytes = on_bytes,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    static const struct master_watch_callbacks watch_callbacks = {
        .news = on_news,
        .named = on_named,
    };
    struct subscriber *subscriber = mem_zalloc(sizeof(*subscriber));

    if (!subscriber)
        return NULL;
    uv_timer_init(settings->loop, &subscriber->timer);
    subscriber->timer.data = subscriber;
    subscriber->callbacks = *callbacks;
    subscriber->context = context;
    subscriber->metrics = settings->metrics;
    subscriber->ping_ms = settings->ping_ms;
    subscriber->timeout_ms = settings->timeout_ms;
    subscriber->address = *settings->address;
    subscriber->retry_ms = RETRY_MIN_MS;
    sl_redis_address_print(&subscriber->address, subscriber->address_text,
                           sizeof(subscriber->address_text));
    subscriber->socket =
        redis_socket_new(settings->loop, settings->address, &socket_callbacks, subscriber);
    if (settings->address->sentinel_count > 0)
        subscriber->finder =
            master_finder_new(settings->loop, settings->address, on_master_found, subscriber);
    if (settings->address->sentinel_count > 0)
        subscriber->watch = master_watch_new(settings->loop, settings->address, settings->metrics,
                                             &watch_callbacks, subscriber);
    if (!subscriber->socket ||
        (settings->address->sentinel_count > 0 && !(subscriber->finder && subscriber->watch))) {
        subscriber_free(subscriber);
        return NULL;
    }
    uv_timer_start(&subscriber->timer, on_first_start, 0, 0);
    return subscriber;
}

/* Whoever calls may be one of our callbacks: what is on the stack below it stays until the loop
 * comes round. */
void subscriber_free(struct subscriber *subscriber)
{
    if (!subscriber)
        return;
    if (subscriber->socket)
        redis_socket_close(subscriber->socket);
    master_finder_free(subscriber->finder);
    master_watch_free(subscriber->watch);
    subscriber->finder = NULL;
    subscriber->watch = NULL;
    subscriber->step = STEP_DOWN;
    uv_close((uv_handle_t *)&subscriber->timer, on_timer_closed);
}

bool subscriber_is_subscribed(const struct subscriber *subscriber)
{
    return subscriber->step == STEP_HEARING;
}

uint32_t subscriber_shards(const struct subscriber *subscriber)
{
    return subscriber->shards;
}

const struct sl_meta *subscriber_meta(const struct subscriber *subscriber)
{
    return &subscriber->meta;
}
