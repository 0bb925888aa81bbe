/* intake.c - connects the parts of the intake.
 *
 *     subscriber or relay -> repair -> decoder -> id_order -> delivery
 *              ^                                     ^
 *              +-------------- round ----------------+
 *
 * The ends of the logs are read one after the other, so at first some shards are known further than
 * others, and until rounds have brought them together a cursor would not hold for all.
 *
 * The intake process makes its rounds without knowing what waits. So while something waits, the
 * last round of each shard is evaluated again here: what was below the round's id had been
 * published before it ended, so it is in the log, and a shard that is complete now has it. */
#include "gateway/intake/intake.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/intake/live_decode.h"
#include "gateway/intake/relay.h"
#include "gateway/intake/repair.h"
#include "gateway/intake/round.h"
#include "gateway/intake/shard_clocks.h"

enum {
    ROUND_AGAIN_MS = 10,   /* how soon a relayed round is evaluated again */
    BEHIND_LOG_MS = 10000, /* a shard may be left behind again and again */
};

struct intake {
    uv_timer_t round_timer; /* of the above */
    struct intake_settings settings;
    struct intake_callbacks callbacks;
    void *context;
    struct metrics *metrics;
    struct subscriber *subscriber; /* one of these two; neither when stopped */
    struct relay *relay;
    struct repair *repair;
    struct live_decoder decoder;
    struct id_order *order;
    struct round *round; /* NULL: the intake process makes them */
    struct shard_clocks *clocks;
    uint64_t watermark;                   /* as reported */
    uint64_t round_ids[SL_SHARDS_MAX];    /* of the last relayed rounds; 0: none since the
                                             subscription */
    uint64_t complete_ids[SL_SHARDS_MAX]; /* of the last rounds that found the shard complete */
    uint64_t begun_shards;                /* shards whose end of log was reported, as bits */
    uint64_t begun_id;                    /* the greatest of these ends */
    uint64_t missing;                     /* of these, the shards that were away when they began */
    uint64_t completed;                   /* shards that a round has found complete */
    bool was_complete;                    /* as reported */
    uint64_t behind;                      /* shards without which the others continue, as bits */
    bool behind_is_logged;
    struct log_rate gap_rate, behind_rate;
};

/* ---- rounds ---- */

static void on_round_timer(uv_timer_t *timer);

/* A waiting event can pass when the millisecond of its id is over. */
static void want_round(struct intake *intake)
{
    uint64_t id = id_order_first_held(intake->order);

    if (!intake->round) {
        if (id > 0 && !uv_is_active((uv_handle_t *)&intake->round_timer))
            uv_timer_start(&intake->round_timer, on_round_timer, ROUND_AGAIN_MS, 0);
    } else if (id > 0) {
        round_want(intake->round, shard_clocks_when_ms(intake->clocks, sl_id_time_ms(id) + 1));
    } else if (id_order_is_unsure(intake->order)) {
        round_want_later(intake->round, ROUND_UNSURE_MS);
    } else {
        round_want_second(intake->round);
    }
}

static uint64_t on_redis_time(void *context, uint64_t shards, uint64_t time_ms)
{
    struct intake *intake = context;

    return shard_clocks_take_time(intake->clocks, shards, time_ms, intake->watermark);
}

static uint64_t complete_shards(const struct intake *intake)
{
    uint64_t complete = 0;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        complete |= (uint64_t)repair_is_complete(intake->repair, shard) << shard;
    return complete;
}

static void note_complete(struct intake *intake, uint64_t complete)
{
    intake->completed |= complete;
    if (intake->was_complete || (intake->completed | intake->missing) != intake->begun_shards)
        return;
    intake->was_complete = true;
    intake->callbacks.complete(intake->context);
}

/* If nothing is put in order, the progress of time is reported here, as far as the rounds of all
 * shards say. */
static void note_time(struct intake *intake, uint64_t id, uint64_t complete)
{
    uint64_t passed = UINT64_MAX;

    if (id_order_is_ordering(intake->order))
        return;
    for (uint32_t shard = 0; intake->begun_shards >> shard; shard++) {
        if (complete >> shard & 1)
            intake->complete_ids[shard] = id;
        if (intake->complete_ids[shard] < passed)
            passed = intake->complete_ids[shard];
        if (shard == SL_SHARDS_MAX - 1)
            break;
    }
    if (passed > 0 && passed < UINT64_MAX)
        intake->callbacks.watermark(intake->context, passed);
}

static void on_round_over(void *context, uint64_t id, uint64_t shards)
{
    struct intake *intake = context;
    uint64_t complete = shards & complete_shards(intake);

    id_order_end_round(intake->order, id, complete, clock_monotonic_us());
    note_time(intake, id, complete);
    note_complete(intake, complete);
    want_round(intake);
}

static void on_pong(void *context, uint64_t number)
{
    round_pong(((struct intake *)context)->round, number);
}

/* The intake process uses the clocks that it knows: what this worker has found is reported to
 * it. */
static void on_relayed_time(void *context, uint64_t shards, uint64_t redis_ms)
{
    struct intake *intake = context;

    on_redis_time(intake, shards, redis_ms);
    for (uint32_t shard = 0; shard < relay_meta(intake->relay)->shards; shard++) {
        if (shards >> shard & 1)
            relay_set_clock(intake->relay, shard, shard_clocks_until_ms(intake->clocks, shard));
    }
}

static void on_relayed_round(void *context, uint64_t id, uint64_t shards)
{
    struct intake *intake = context;

    for (uint64_t rest = shards; rest; rest &= rest - 1)
        intake->round_ids[__builtin_ctzll(rest)] = id;
    on_round_over(intake, id, shards);
}

/* The shards of the node that made this last round. */
static uint64_t shards_of_round(const struct intake *intake, uint64_t id)
{
    uint64_t shards = 0;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        shards |= (uint64_t)(intake->round_ids[shard] == id) << shard;
    return shards;
}

static void on_round_timer(uv_timer_t *timer)
{
    struct intake *intake = timer->data;
    uint64_t complete = complete_shards(intake) & ~shards_of_round(intake, 0), rest = complete;

    while (rest) {
        uint64_t id = intake->round_ids[__builtin_ctzll(rest)];
        uint64_t shards = rest & shards_of_round(intake, id);

        id_order_look_again(intake->order, id, shards, clock_monotonic_us());
        rest &= ~shards;
    }
    note_complete(intake, complete);
    want_round(intake);
    intake->callbacks.turn_end(intake->context);
}

/* ---- the path of an event ---- */

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    struct intake *intake = context;

    if (!(intake->begun_shards >> shard & 1)) { /* later, everything in between is repaired */
        intake->callbacks.begin_shard(intake->context, shard, id);
        id_order_begin_shard(intake->order, shard, id);
        intake->begun_shards |= UINT64_C(1) << shard;
        intake->begun_id = id > intake->begun_id ? id : intake->begun_id;
        if (id > 0 && sl_id_shard(id) != shard)
            intake->missing |= UINT64_C(1) << shard;
    }
    return repair_log_end(intake->repair, shard, id);
}

static void on_message(void *context, const struct live_message *message)
{
    struct intake *intake = context;

    metric_add(intake->metrics, METRIC_EVENTS_RECEIVED, 1);
    repair_take(intake->repair, message);
}

static void take_item(struct intake *intake, const struct order_item *item, uint64_t now_us)
{
    id_order_take(intake->order, item, now_us);
    if (id_order_is_ordering(intake->order))
        want_round(intake);
}

static void on_event(void *context, const struct live_message *message)
{
    struct intake *intake = context;
    struct order_item item = {
        .kind = ORDER_EVENT,
        .shard = message->shard,
        .id = message->id,
        .previous = message->previous,
    };
    int r;

    r = live_decode(&intake->decoder, message, &item.event);
    if (r < 0)
        item.kind = r == -ENOMEM ? ORDER_MISS : ORDER_PASS;
    else if (event_is_about_access(item.event) && item.id > 0)
        intake->callbacks.access(intake->context, item.event);
    take_item(intake, &item, message->received_us);
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
    struct intake *intake = context;
    uint64_t held_back;

    if (log_rate_allows(&intake->gap_rate, clock_monotonic_ms(), &held_back))
        log_warn("gap", "shard=%u from=%" PRIu64 " to=%" PRIu64 " reason=%s held_back=%" PRIu64,
                 gap->shard, gap->from, gap->to, gap_reason_name(gap->reason), held_back);
    take_item(intake, &item, clock_monotonic_us());
}

static void on_turn_end(void *context)
{
    struct intake *intake = context;

    intake->callbacks.turn_end(intake->context);
}

/* ---- the order over all shards ---- */

static void on_pass(void *context, const struct order_item *item)
{
    struct intake *intake = context;

    intake->callbacks.pass(intake->context, item);
}

static void on_watermark(void *context, uint64_t id)
{
    struct intake *intake = context;

    intake->watermark = id;
    intake->callbacks.watermark(intake->context, id);
}

static void on_low(void *context, uint32_t shard, uint64_t low)
{
    struct intake *intake = context;

    intake->callbacks.behind(intake->context, shard, low);
    shard_clocks_behind(intake->clocks, shard, low);
}

static void on_behind(void *context, uint32_t shard, uint64_t low, enum order_behind why)
{
    static const char *const reasons[] = {
        [ORDER_BEHIND_WAIT] = "silent",
        [ORDER_BEHIND_MEMORY] = "too_much_held",
        [ORDER_BEHIND_LATE] = "late_event",
    };
    struct intake *intake = context;
    uint64_t held_back;

    intake->behind |= UINT64_C(1) << shard;
    if (log_rate_allows_in(&intake->behind_rate, BEHIND_LOG_MS, clock_monotonic_ms(), &held_back)) {
        log_warn("shard_left_behind", "shard=%u low=%" PRIu64 " reason=%s held_back=%" PRIu64,
                 shard, low, reasons[why], held_back);
        intake->behind_is_logged = true;
    }
    on_low(intake, shard, low);
    if (why == ORDER_BEHIND_LATE)
        shard_clocks_late(intake->clocks, shard, intake->watermark);
}

static void on_whole(void *context, uint32_t shard)
{
    struct intake *intake = context;

    intake->behind &= ~(UINT64_C(1) << shard);
    if (intake->behind == 0 && intake->behind_is_logged) {
        log_info("shards_in_order", "held_back=%" PRIu64, intake->behind_rate.held_back);
        intake->behind_is_logged = false;
    }
    intake->callbacks.whole(intake->context, shard);
    shard_clocks_whole(intake->clocks, shard, intake->watermark);
}

/* ---- the state of the subscription ---- */

/* Starts or stops the rounds. */
static void set_hearing(struct intake *intake, bool is_hearing)
{
    repair_set_hearing(intake->repair, is_hearing);
    if (intake->round) {
        round_set_hearing(intake->round, is_hearing);
    } else if (!is_hearing) {
        memset(intake->round_ids, 0, sizeof(intake->round_ids));
        uv_timer_stop(&intake->round_timer);
    }
}

static void read_clock(struct intake *intake, uint32_t shard)
{
    shard_clocks_set_until(intake->clocks, shard,
                           intake->relay ? relay_clock_until_ms(intake->relay, shard)
                                         : subscriber_clock_until_ms(intake->subscriber, shard));
}

/* Shards that are missing at the beginning are not waited for, unless the setting is to wait for
 * ever. */
static void leave_missing_behind(struct intake *intake)
{
    if (intake->settings.order_wait_ms == ID_ORDER_FOREVER)
        intake->missing = 0;
    for (uint64_t rest = intake->missing; rest; rest &= rest - 1)
        id_order_leave_behind(intake->order, (uint32_t)__builtin_ctzll(rest), clock_monotonic_us());
}

static void on_subscribed(void *context, uint32_t shards)
{
    struct intake *intake = context;
    const struct sl_meta *meta =
        intake->relay ? relay_meta(intake->relay) : subscriber_meta(intake->subscriber);

    (void)shards; /* as in the meta */
    intake->callbacks.subscribed(intake->context, meta);
    shard_clocks_begin(intake->clocks, meta);
    for (uint32_t shard = 0; shard < meta->shards; shard++)
        read_clock(intake, shard);
    set_hearing(intake, true);
    if (!intake->was_complete)
        leave_missing_behind(intake);
    want_round(intake);
    if (intake->was_complete) {
        intake->callbacks.complete(intake->context);
    } else if (!id_order_is_ordering(intake->order)) {
        intake->callbacks.watermark(intake->context, intake->begun_id);
        note_complete(intake, intake->begun_shards);
    }
}

static void on_lost(void *context, const char *reason)
{
    struct intake *intake = context;

    intake->callbacks.lost(intake->context, reason);
    set_hearing(intake, false);
}

static void on_heard_again(void *context, uint32_t shard)
{
    struct intake *intake = context;

    read_clock(intake, shard);
    intake->callbacks.heard_again(intake->context, shard);
    repair_heard_again(intake->repair, shard);
}

void intake_set_map(struct intake *intake, const struct sl_cluster_map *map)
{
    if (intake->subscriber)
        subscriber_set_map(intake->subscriber, map);
}

/* ---- creating and freeing ---- */

static int start_repair(struct intake *intake)
{
    const struct repair_callbacks callbacks = {
        .order = {.event = on_event, .gap = on_gap},
        .turn_end = on_turn_end,
    };
    const struct repair_settings settings = {
        .loop = intake->settings.hearing.loop,
        .log = intake->settings.log,
        .metrics = intake->metrics,
        .max_held_bytes = REPAIR_HELD_BYTES,
        .check_ms = REPAIR_CHECK_MS,
    };

    intake->repair = repair_new(&settings, &callbacks, intake);
    return intake->repair ? 0 : -ENOMEM;
}

static int start_order(struct intake *intake)
{
    static const struct id_order_callbacks callbacks = {
        .pass = on_pass,
        .watermark = on_watermark,
        .behind = on_behind,
        .low = on_low,
        .whole = on_whole,
    };
    const struct id_order_settings settings = {
        .wait_ms = intake->settings.order_wait_ms,
        .max_held_bytes = ID_ORDER_HELD_BYTES,
        .metrics = intake->metrics,
    };

    intake->order = id_order_new(&settings, &callbacks, intake);
    intake->clocks = shard_clocks_new(intake->settings.hearing.loop,
                                      intake->settings.hearing.commands, intake->metrics);
    return intake->order && intake->clocks ? 0 : -ENOMEM;
}

static const struct subscriber_callbacks hearing_callbacks = {
    .log_end = on_log_end,
    .message = on_message,
    .pong = on_pong,
    .turn_end = on_turn_end,
    .subscribed = on_subscribed,
    .lost = on_lost,
    .heard_again = on_heard_again,
};

/* Receives from the intake process. */
static int start_relay(struct intake *intake)
{
    const struct relay_callbacks callbacks = {
        .heard = hearing_callbacks,
        .time = on_relayed_time,
        .round_over = on_relayed_round,
    };
    const struct relay_settings settings = {
        .loop = intake->settings.hearing.loop,
        .broadcast = intake->settings.broadcast,
        .worker = intake->settings.worker,
        .metrics = intake->metrics,
        .news = intake->settings.hearing.news,
    };

    intake->relay = relay_new(&settings, &callbacks, intake);
    return intake->relay ? 0 : -ENOMEM;
}

/* Subscribes by itself. */
static int start_subscriber(struct intake *intake)
{
    static const struct round_callbacks callbacks = {.ids_ms = on_redis_time,
                                                     .over = on_round_over};

    intake->subscriber = subscriber_new(&intake->settings.hearing, &hearing_callbacks, intake);
    if (!intake->subscriber)
        return -ENOMEM;
    intake->round = round_new(&intake->settings.hearing, intake->subscriber, &callbacks, intake);
    return intake->round ? 0 : -ENOMEM;
}

struct intake *intake_new(const struct intake_settings *settings,
                          const struct intake_callbacks *callbacks, void *context)
{
    struct intake *intake = mem_zalloc(sizeof(*intake));

    if (!intake)
        return NULL;
    intake->settings = *settings;
    intake->callbacks = *callbacks;
    intake->context = context;
    intake->metrics = settings->hearing.metrics;
    intake->decoder = (struct live_decoder){settings->decoder, intake->metrics, {0}};
    uv_timer_init(settings->hearing.loop, &intake->round_timer);
    intake->round_timer.data = intake;
    if (start_repair(intake) < 0 || start_order(intake) < 0 ||
        (settings->broadcast ? start_relay(intake) : start_subscriber(intake)) < 0) {
        intake_stop(intake);
        intake_free(intake);
        return NULL;
    }
    return intake;
}

void intake_stop(struct intake *intake)
{
    if (intake->repair)
        set_hearing(intake, false);
    subscriber_free(intake->subscriber);
    relay_free(intake->relay);
    intake->subscriber = NULL;
    intake->relay = NULL;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void intake_free(struct intake *intake)
{
    if (!intake)
        return;
    repair_free(intake->repair);
    round_free(intake->round);
    shard_clocks_free(intake->clocks);
    id_order_free(intake->order);
    uv_close((uv_handle_t *)&intake->round_timer, on_timer_closed);
}
