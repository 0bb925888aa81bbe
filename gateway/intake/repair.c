/* repair.c - decides when the log of a shard is read.
 *
 * A shard has at most one outstanding batch. After a failure the shard asks again after a delay of
 * its own, because its node may be down while others are not; one timer is set to the earliest of
 * these. The other timer checks once each period which shards have not advanced since, so that
 * messages cause no cost for it.
 *
 * The subscriber reads the ends of the logs, shard by shard, and subscribes afterwards. What is
 * published in between is not received. So after the subscription the end of every log is read once
 * more, after everything that is already wanted. */
#include "gateway/intake/repair.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "src/model/id.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 5000 };

struct shard {
    struct repair *repair;
    struct shard_order *order; /* NULL: unknown yet */
    bool is_asked;             /* a batch is outstanding */
    bool is_repairing;         /* as logged */
    bool is_due;               /* to be checked in its log when nothing is wanted */
    bool is_unsure;            /* it was due, and has not been checked since */
    uint64_t last_at_check;
    struct backoff backoff; /* until a batch arrives */
    uint64_t retry_ms;      /* when it asks again; 0: it need not wait */
};

struct repair {
    struct repair_settings settings;
    struct repair_callbacks callbacks;
    void *context;
    uv_timer_t check_timer, retry_timer;
    unsigned open_timers;
    bool is_hearing;
    struct log_rate began_rate, ended_rate, failed_rate, future_rate;
    struct shard shards[SL_SHARDS_MAX];
};

static uint32_t shard_number(const struct shard *shard)
{
    return (uint32_t)(shard - shard->repair->shards);
}

/* ---- log lines ---- */

static void log_progress(struct shard *shard, bool is_repairing, uint64_t after, uint64_t to)
{
    struct repair *repair = shard->repair;
    struct log_rate *rate = is_repairing ? &repair->began_rate : &repair->ended_rate;
    uint64_t held_back;

    if (shard->is_repairing == is_repairing)
        return;
    shard->is_repairing = is_repairing;
    if (!log_rate_allows(rate, clock_monotonic_ms(), &held_back))
        return;
    if (is_repairing)
        log_warn("events_missed", "shard=%u after=%" PRIu64 " to=%" PRIu64 " held_back=%" PRIu64,
                 shard_number(shard), after, to, held_back);
    else
        log_info("events_complete", "shard=%u last=%" PRIu64 " held_back=%" PRIu64,
                 shard_number(shard), shard_order_last(shard->order), held_back);
}

static void log_failure(struct shard *shard, const char *why)
{
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    if (log_rate_allows(&shard->repair->failed_rate, clock_monotonic_ms(), &held_back))
        log_warn("log_unreadable", "shard=%u reason=%s held_back=%" PRIu64, shard_number(shard),
                 log_quote(sl_slice_str(why), room), held_back);
}

/* ---- reading ---- */

static void on_batch(void *owner, const struct log_batch *batch, int error, const char *why);
static void on_retry(uv_timer_t *timer);

static void arm_timer(struct repair *repair)
{
    uint64_t now_ms = uv_now(repair->settings.loop), first_ms = UINT64_MAX;

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        uint64_t retry_ms = repair->shards[i].retry_ms;

        if (retry_ms > 0 && retry_ms < first_ms)
            first_ms = retry_ms;
    }
    if (first_ms != UINT64_MAX)
        uv_timer_start(&repair->retry_timer, on_retry, first_ms > now_ms ? first_ms - now_ms : 0,
                       0);
}

static void ask_later(struct shard *shard)
{
    struct repair *repair = shard->repair;

    shard->retry_ms = uv_now(repair->settings.loop) +
                      backoff_next_spread_ms(&shard->backoff, RETRY_MIN_MS, RETRY_MAX_MS);
    arm_timer(repair);
}

static int ask(struct shard *shard, uint64_t after, uint64_t to)
{
    int r = log_reader_read(shard->repair->settings.log, shard_number(shard), after, to, on_batch,
                            shard);

    shard->is_asked = r == 0;
    return r;
}

/* Checks whether the log has more than was received. */
static void look_up(struct shard *shard)
{
    shard->is_due = false;
    ask(shard, shard_order_last(shard->order), SL_ID_MAX); /* out of memory: tried again in the next
                                                              period */
}

/* Reads what the shard wants, unless a batch is outstanding or must wait. */
static void ask_if_wanted(struct shard *shard)
{
    struct repair *repair = shard->repair;
    uint64_t after, to;

    if (!shard_order_wants(shard->order, &after, &to)) {
        log_progress(shard, false, 0, 0);
        if (shard->is_due && !shard->is_asked)
            look_up(shard);
        return;
    }
    log_progress(shard, true, after, to);
    if (shard->is_asked || shard->retry_ms > 0)
        return;
    if (ask(shard, after, to) < 0) {
        metric_add(repair->settings.metrics, METRIC_LOG_READ_FAILURES, 1);
        log_failure(shard, "out of memory");
        ask_later(shard);
    }
}

static void make_due(struct shard *shard)
{
    shard->is_due = shard->is_unsure = true;
    ask_if_wanted(shard);
}

static void on_retry(uv_timer_t *timer)
{
    struct repair *repair = timer->data;
    uint64_t now_ms = uv_now(repair->settings.loop);

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        struct shard *shard = &repair->shards[i];

        if (shard->retry_ms > 0 && shard->retry_ms <= now_ms) {
            shard->retry_ms = 0;
            ask_if_wanted(shard);
        }
    }
    arm_timer(repair);
}

/* ---- replies ---- */

static void batch_failed(struct shard *shard, int error, const char *why)
{
    struct repair *repair = shard->repair;
    uint64_t after, to;

    metric_add(repair->settings.metrics, METRIC_LOG_READ_FAILURES, 1);
    log_failure(shard, why);
    if (!shard_order_wants(shard->order, &after, &to)) {
        shard->is_unsure = shard->is_unsure && error != -EBADMSG;
        return; /* it was the check of a quiet shard; the next one follows */
    }
    if (error != -EBADMSG) { /* failures of Redis are temporary; damaged content of the log is
                                not */
        ask_later(shard);
        return;
    }
    shard_order_give_up(shard->order);
    repair->callbacks.turn_end(repair->context);
}

static void on_batch(void *owner, const struct log_batch *batch, int error, const char *why)
{
    struct shard *shard = owner;
    struct repair *repair = shard->repair;

    assert(shard->is_asked && shard->order);
    shard->is_asked = false;
    if (batch) {
        backoff_reset(&shard->backoff);
        shard->is_unsure = shard->is_due; /* otherwise this is what it was checked for */
        shard_order_batch(shard->order, batch, clock_monotonic_us());
        repair->callbacks.turn_end(repair->context);
    } else {
        batch_failed(shard, error, why);
    }
    ask_if_wanted(shard);
}

/* ---- quiet shards ---- */

static void check(struct shard *shard)
{
    uint64_t last = shard_order_last(shard->order), after, to;

    if ((last == shard->last_at_check || shard->is_unsure) && !shard->is_asked &&
        !shard_order_wants(shard->order, &after, &to))
        look_up(shard);
    shard->last_at_check = last;
}

static void on_check(uv_timer_t *timer)
{
    struct repair *repair = timer->data;

    if (!repair->is_hearing)
        return;
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        if (repair->shards[i].order)
            check(&repair->shards[i]);
    }
}

/* ---- callbacks of the subscriber ---- */

int repair_log_end(struct repair *repair, uint32_t number, uint64_t id)
{
    struct shard *shard = &repair->shards[number];
    struct shard_order_settings settings = {
        .shard = number,
        .log_end = id,
        .max_held_bytes = repair->settings.max_held_bytes,
        .metrics = repair->settings.metrics,
    };

    if (shard->order) {
        shard_order_resume(shard->order, id);
        ask_if_wanted(shard);
        return 0;
    }
    shard->order = shard_order_new(&settings, &repair->callbacks.order, repair->context);
    return shard->order ? 0 : -ENOMEM;
}

void repair_set_hearing(struct repair *repair, bool is_hearing)
{
    repair->is_hearing = is_hearing;
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        struct shard *shard = &repair->shards[i];

        if (is_hearing && shard->order)
            make_due(shard);
        else
            shard->is_due = false;
    }
}

void repair_heard_again(struct repair *repair, uint32_t number)
{
    if (repair->is_hearing && repair->shards[number].order)
        make_due(&repair->shards[number]);
}

bool repair_is_in_the_future(uint64_t id, uint64_t last)
{
    uint64_t now_ms = clock_wall_ms(), last_ms = sl_id_time_ms(last);

    return id > 0 && sl_id_time_ms(id) > (now_ms > last_ms ? now_ms : last_ms) + REPAIR_FUTURE_MS;
}

static bool is_in_the_future(const struct shard *shard, const struct live_message *message)
{
    return repair_is_in_the_future(message->id, shard_order_last(shard->order));
}

/* If the clock of Redis is ahead, the log has the event. */
static void look_for_it_in_the_log(struct shard *shard, const struct live_message *message)
{
    struct repair *repair = shard->repair;
    uint64_t held_back;

    metric_add(repair->settings.metrics, METRIC_EVENTS_FUTURE, 1);
    if (log_rate_allows(&repair->future_rate, clock_monotonic_ms(), &held_back))
        log_warn("event_in_the_future", "shard=%u id=%" PRIu64 " held_back=%" PRIu64,
                 message->shard, message->id, held_back);
    make_due(shard);
}

void repair_take(struct repair *repair, const struct live_message *message)
{
    struct shard *shard = &repair->shards[message->shard];

    if (shard->order && is_in_the_future(shard, message))
        look_for_it_in_the_log(shard, message);
    else if (shard->order && shard_order_take(shard->order, message))
        ask_if_wanted(shard);
}

bool repair_is_complete(const struct repair *repair, uint32_t number)
{
    const struct shard *shard = &repair->shards[number];
    uint64_t after, to;

    return repair->is_hearing && shard->order && !shard->is_unsure &&
           !shard_order_wants(shard->order, &after, &to);
}

/* ---- creating and freeing ---- */

struct repair *repair_new(const struct repair_settings *settings,
                          const struct repair_callbacks *callbacks, void *context)
{
    struct repair *repair = mem_zalloc(sizeof(*repair));

    if (!repair)
        return NULL;
    repair->settings = *settings;
    repair->callbacks = *callbacks;
    repair->context = context;
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        repair->shards[i].repair = repair;
    repair->open_timers = 2;
    uv_timer_init(settings->loop, &repair->check_timer);
    uv_timer_init(settings->loop, &repair->retry_timer);
    repair->check_timer.data = repair->retry_timer.data = repair;
    uv_timer_start(&repair->check_timer, on_check, settings->check_ms, settings->check_ms);
    return repair;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct repair *repair = handle->data;

    if (--repair->open_timers == 0)
        mem_free(repair);
}

void repair_free(struct repair *repair)
{
    if (!repair)
        return;
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        shard_order_free(repair->shards[i].order);
    uv_close((uv_handle_t *)&repair->check_timer, on_timer_closed);
    uv_close((uv_handle_t *)&repair->retry_timer, on_timer_closed);
}
