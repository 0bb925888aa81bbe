/* use_exchange.c - one call to shard 0 per round, and calls with up to CALL_ACCOUNTS accounts of a
 * shard.
 *
 * In Redis the name of an account is a keyed hash of the subject or address. The key is a secret
 * that all gateways of a database read from Redis; it expires when there has been no gateway for
 * two days. So names do not reveal subjects and addresses; with a dump of the database one can only
 * check whether a guessed name is in it.
 *
 * At most CALLS_MAX calls are outstanding; the rest waits for the next second. */
#include "gateway/access/use_exchange.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "gateway/front/admission.h"
#include "gateway/front/fair_use_exchange.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"
#include "src/database/use.h"

enum {
    TICK_MS = 1000,
    CALL_ACCOUNTS = 50,
    CALLS_MAX = 64,
    UNHEARD_MS = 30000 /* without a round: the others count as unreachable */
};

struct exchange_call {
    struct use_exchange *exchange;
    size_t count;
    uint32_t shard;
    struct use_news news[CALL_ACCOUNTS];
    struct sl_use_news told[CALL_ACCOUNTS];
};

struct use_exchange {
    struct use_exchange_settings settings;
    uv_timer_t timer;
    struct sl_meta meta;
    struct sl_use_round round;
    struct hash_key keys[2]; /* for names of accounts; valid after the first round */
    uint64_t round_ms;       /* monotonic time at which the last round began; 0: none yet */
    uint64_t heard_ms;       /* monotonic time of the last round that was answered; 0: none */
    uint64_t day;            /* at the last tick, in days since 1970 */
    unsigned calls;          /* outstanding calls, including the round */
    bool is_in_round, leaves;
    struct log_rate failed_rate;
    struct exchange_call *filling[SL_SHARDS_MAX]; /* used during a tick */
};

static struct use_times times_now(void)
{
    return (struct use_times){clock_monotonic_ms(), clock_wall_ms()};
}

static void note_failure(struct use_exchange *exchange, const char *why)
{
    uint64_t held_back;

    metric_add(exchange->settings.metrics, METRIC_USE_EXCHANGES_FAILED, 1);
    if (log_rate_allows(&exchange->failed_rate, uv_now(exchange->settings.loop), &held_back))
        log_warn("use_not_exchanged", "why=\"%s\" held_back=%" PRIu64, why, held_back);
}

/* --- rounds --- */

static struct hash_key key_of(const char *hexadecimal)
{
    char half[17] = {0};
    struct hash_key key;

    memcpy(half, hexadecimal, 16);
    key.k0 = strtoull(half, NULL, 16);
    memcpy(half, hexadecimal + 16, 16);
    key.k1 = strtoull(half, NULL, 16);
    return key;
}

static void on_round(void *owner, const redisReply *reply, const char *why)
{
    struct use_exchange *exchange = owner;
    struct failure failure;
    int r;

    exchange->calls--;
    exchange->is_in_round = false;
    if (!reply) {
        note_failure(exchange, why);
        return;
    }
    r = sl_use_round_reply(reply, &exchange->round, &failure);
    if (r < 0) {
        note_failure(exchange, failure.text);
        return;
    }
    exchange->keys[0] = key_of(exchange->round.secret);
    exchange->keys[1] = (struct hash_key){~exchange->keys[0].k0, ~exchange->keys[0].k1};
    exchange->heard_ms = clock_monotonic_ms();
    fair_use_set_gateways(exchange->settings.uses, exchange->round.count);
    metric_set(exchange->settings.metrics, METRIC_USE_GATEWAYS, exchange->round.count);
}

static void gateway_id(const struct use_exchange *exchange, char ret_id[SL_USE_GATEWAY_SIZE])
{
    snprintf(ret_id, SL_USE_GATEWAY_SIZE, "%016" PRIx64, fair_use_id(exchange->settings.uses));
}

static void begin_round(struct use_exchange *exchange, uint64_t now_ms)
{
    const struct hash_key random = hash_key_random();
    char id[SL_USE_GATEWAY_SIZE], secret[SL_USE_SECRET_SIZE];
    struct sl_call call = SL_CALL_INIT;

    exchange->round_ms = now_ms;
    gateway_id(exchange, id);
    snprintf(secret, sizeof(secret), "%016" PRIx64 "%016" PRIx64, random.k0, random.k1);
    if (sl_use_round_call(&call, &exchange->meta, id, secret, exchange->leaves, NULL) < 0) {
        sl_call_done(&call);
    } else if (redis_commands_run_take(exchange->settings.commands, &call, on_round, exchange) ==
               0) {
        exchange->calls++;
        exchange->is_in_round = true;
    }
}

/* --- accounts --- */

/* Prints a name of 128 bits; returns the shard of its account. */
static uint32_t name_account(const struct use_exchange *exchange, const struct use_news *news,
                             char ret_name[SL_USE_NAME_SIZE])
{
    char text[1 + USE_NAME_MAX];
    uint64_t halves[2];

    text[0] = (char)('a' + (int)news->of);
    memcpy(text + 1, news->name, news->name_size);
    for (int i = 0; i < 2; i++)
        halves[i] = hash_bytes(exchange->keys[i], text, (size_t)news->name_size + 1);
    snprintf(ret_name, SL_USE_NAME_SIZE, "%016" PRIx64 "%016" PRIx64, halves[0], halves[1]);
    return (uint32_t)(halves[0] % exchange->meta.shards);
}

static uint64_t streams_of(const struct use_exchange *exchange, const struct use_news *news)
{
    struct sl_slice name = sl_slice(news->name, news->name_size);

    if (exchange->leaves)
        return 0;
    return admission_streams(exchange->settings.admission,
                             news->of == USE_OF_SUBJECT ? name : SL_SLICE_NONE,
                             news->of == USE_OF_ADDRESS ? name : SL_SLICE_NONE);
}

static void fill(const struct use_exchange *exchange, const struct use_news *news,
                 struct sl_use_news *told)
{
    static_assert(SL_USE_RATES == (int)USE_TOLD_RATES && SL_USE_SUMS == (int)USE_SUMS, "the same");
    for (int i = 0; i < SL_USE_RATES; i++) {
        told->rates[i].taken = news->rates[i];
        told->rates[i].limit = news->limits[i] > 0 ? news->limits[i] : SL_USE_UNBOUNDED;
        told->rates[i].window_ms = use_window_ms((enum use)i);
    }
    memcpy(told->sums, news->sums, sizeof(told->sums));
    told->streams = streams_of(exchange, news);
}

static void take_heard(struct use_exchange *exchange, const struct use_news *news,
                       const struct sl_use_heard *from_redis, const struct use_times *times)
{
    struct use_heard heard = {.day = from_redis->day,
                              .streams_elsewhere = from_redis->streams_elsewhere};

    memcpy(heard.levels, from_redis->levels, sizeof(heard.levels));
    memcpy(heard.sums, from_redis->sums, sizeof(heard.sums));
    fair_use_was_told(exchange->settings.uses, news, &heard, times);
}

/* Returns the accounts from `first` on to be reported later. */
static void put_back(const struct exchange_call *call, size_t first)
{
    const struct use_times times = times_now();

    for (size_t i = first; i < call->count; i++)
        fair_use_was_not_told(call->exchange->settings.uses, &call->news[i], &times);
}

static void on_exchanged(void *owner, const redisReply *reply, const char *why)
{
    struct exchange_call *call = owner;
    struct use_exchange *exchange = call->exchange;
    const struct use_times times = times_now();
    struct sl_use_heard heard;
    struct failure failure;
    size_t taken = 0;

    exchange->calls--;
    while (reply && taken < call->count &&
           sl_use_exchange_reply(reply, call->count, taken, &heard, &failure) == 0)
        take_heard(exchange, &call->news[taken++], &heard, &times);
    if (taken < call->count) {
        note_failure(exchange, reply ? failure.text : why);
        put_back(call, taken);
    }
    metric_add(exchange->settings.metrics, METRIC_USE_EXCHANGES, taken);
    mem_free(call);
}

static void send_call(struct use_exchange *exchange, struct exchange_call *call)
{
    char id[SL_USE_GATEWAY_SIZE];
    struct sl_call sent = SL_CALL_INIT;
    int r;

    exchange->filling[call->shard] = NULL;
    gateway_id(exchange, id);
    r = sl_use_exchange_call(&sent, &exchange->meta, call->shard, id, &exchange->round, call->told,
                             call->count, NULL);
    if (r < 0)
        sl_call_done(&sent);
    else
        r = redis_commands_run_take(exchange->settings.commands, &sent, on_exchanged, call);
    if (r == 0) {
        exchange->calls++;
        return;
    }
    put_back(call, 0);
    mem_free(call);
}

/* NULL: out of memory. */
static struct exchange_call *call_for(struct use_exchange *exchange, uint32_t shard)
{
    struct exchange_call *call = exchange->filling[shard];

    if (call)
        return call;
    call = exchange->filling[shard] = mem_zalloc(sizeof(*call));
    if (call) {
        call->exchange = exchange;
        call->shard = shard;
    }
    return call;
}

static void tell(struct use_exchange *exchange, uint64_t now_ms)
{
    const struct use_times times = times_now();
    struct use_news news;
    size_t position = 0;

    while (exchange->calls < CALLS_MAX &&
           fair_use_next_news(exchange->settings.uses, &position, now_ms, &news)) {
        char name[SL_USE_NAME_SIZE];
        uint32_t shard = name_account(exchange, &news, name);
        struct exchange_call *call = call_for(exchange, shard);

        if (!call) {
            fair_use_was_not_told(exchange->settings.uses, &news, &times);
            break;
        }
        call->news[call->count] = news;
        memcpy(call->told[call->count].name, name, sizeof(name));
        fill(exchange, &news, &call->told[call->count]);
        if (++call->count == CALL_ACCOUNTS)
            send_call(exchange, call);
    }
    for (uint32_t shard = 0; shard < exchange->meta.shards; shard++) {
        if (exchange->filling[shard])
            send_call(exchange, exchange->filling[shard]);
    }
}

/* --- time --- */

/* Without this, accounts with streams would expire in Redis if nothing else happened to them. */
static void turn_day(struct use_exchange *exchange)
{
    uint64_t day = clock_wall_ms() / USE_DAY_MS;

    if (exchange->day != 0 && day != exchange->day)
        fair_use_mark_all(exchange->settings.uses);
    exchange->day = day;
}

static void on_tick(uv_timer_t *timer)
{
    struct use_exchange *exchange = timer->data;
    uint64_t now_ms = clock_monotonic_ms();
    bool is_heard = exchange->heard_ms > 0 && now_ms - exchange->heard_ms < UNHEARD_MS;

    turn_day(exchange);
    if (!exchange->is_in_round && !exchange->leaves &&
        (exchange->round_ms == 0 ||
         now_ms - exchange->round_ms >= fair_use_exchange_ms(exchange->settings.uses)))
        begin_round(exchange, now_ms);
    if (exchange->heard_ms > 0 && !is_heard)
        fair_use_set_alone(exchange->settings.uses);
    if (is_heard)
        tell(exchange, now_ms);
}

void use_exchange_begin(struct use_exchange *exchange, uint32_t shards)
{
    if (!exchange || exchange->leaves)
        return;
    exchange->meta.shards = shards;
    exchange->round_ms = 0; /* it may be a different database */
    uv_timer_start(&exchange->timer, on_tick, 0, TICK_MS);
}

void use_exchange_leave(struct use_exchange *exchange)
{
    if (!exchange || exchange->leaves || exchange->heard_ms == 0)
        return;
    exchange->leaves = true;
    begin_round(exchange, clock_monotonic_ms());
}

struct use_exchange *use_exchange_new(const struct use_exchange_settings *settings)
{
    struct use_exchange *exchange = mem_zalloc(sizeof(*exchange));

    if (!exchange)
        return NULL;
    exchange->settings = *settings;
    uv_timer_init(settings->loop, &exchange->timer);
    exchange->timer.data = exchange;
    return exchange;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void use_exchange_free(struct use_exchange *exchange)
{
    if (!exchange)
        return;
    assert(exchange->calls == 0);
    uv_close((uv_handle_t *)&exchange->timer, on_closed);
}
