/* intake_process.c - a subscriber whose callbacks write entries to the broadcast, and rounds.
 *
 * Messages are decoded here, once for all workers: the entry of a message contains the event
 * itself, as bytes.
 *
 * Rounds are made without knowing whether workers wait: as soon as useful while an event received
 * is newer than the last round, because a worker may then hold it; and regularly, for what workers
 * have read from the log. They depend on the shards' clocks, of which this process knows what was
 * reported at the subscription and what workers, who raise them, have found since. With one shard,
 * or no order, there is one round a second, for those who count by time.
 *
 * Workers are woken at the end of each turn of the subscriber, which under load is no more often
 * than its rest (intake-rest-ms). The only memory is that of the entries, which is fixed. */
#include "gateway/process/intake_process.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/intake/broadcast.h"
#include "gateway/intake/live_decode.h"
#include "gateway/intake/repair.h"
#include "gateway/intake/round.h"
#include "gateway/intake/subscriber.h"
#include "gateway/process/worker_process.h"
#include "gateway/redis/cluster_watch.h"
#include "gateway/redis/redis_commands.h"
#include "src/database/database_clock.h"
#include "src/model/id.h"

/* The replacement of a process that has died must not keep the workers waiting for longer than
 * nodes that are available need. If the ends of all logs were known before, no better guess is
 * needed. */
enum { SUCCESSOR_WAIT_MS = 200 };

enum { LEAST_BYTES = 1 << 18, USUAL_BYTES = 16 << 20, ENTRY_HEAD_BYTES = 4096 };

struct intake {
    const struct gateway_parts *parts;
    struct metrics *metrics;
    struct broadcast *broadcast;
    struct live_decoder decoder;
    uv_loop_t loop;
    uv_signal_t term;
    uv_timer_t pulse;
    struct sl_redis_address redis;
    struct redis_commands *commands;
    struct cluster_watch *cluster; /* NULL: not a cluster */
    struct round *round;
    struct subscriber *subscriber;
    uint64_t ends[SL_SHARDS_MAX]; /* newest event of each shard */
    uint64_t newest, first;       /* of what was received and may wait for a round; 0: nothing */
    bool is_ordering;
    int ready_fd; /* -1: already reported */
};

size_t intake_process_bytes(uint64_t max_event_bytes)
{
    uint64_t entry = max_event_bytes + ENTRY_HEAD_BYTES, bytes = 16 * entry;

    if (bytes < LEAST_BYTES)
        return LEAST_BYTES;
    if (bytes <= USUAL_BYTES)
        return bytes;
    return 4 * entry > USUAL_BYTES ? 4 * entry : USUAL_BYTES;
}

static void write_entry(struct intake *intake, const struct broadcast_entry *entry)
{
    int r = broadcast_write(intake->broadcast, entry);

    assert(r == 0); /* intake_process_bytes() has made room */
}

/* --- rounds --- */

/* The lowest clock_until of these shards, as far as this process and the workers know. */
static uint64_t lowest_until_ms(const struct intake *intake, uint64_t shards)
{
    uint64_t lowest_ms = UINT64_MAX;

    for (uint32_t shard = 0; shard < subscriber_shards(intake->subscriber); shard++) {
        uint64_t said_ms = subscriber_clock_until_ms(intake->subscriber, shard);
        uint64_t found_ms = broadcast_clock_ms(intake->broadcast, shard);
        uint64_t until_ms = found_ms > said_ms ? found_ms : said_ms;

        if (shards >> shard & 1 && until_ms < lowest_ms)
            lowest_ms = until_ms;
    }
    return lowest_ms == UINT64_MAX ? 0 : lowest_ms;
}

/* A waiting event can pass when the millisecond of its id is over. */
static void want_round(struct intake *intake)
{
    if (intake->is_ordering && intake->first > 0)
        round_want(intake->round, sl_database_clock_when_ms(sl_id_time_ms(intake->first) + 1,
                                                            lowest_until_ms(intake, UINT64_MAX)));
    else if (intake->is_ordering)
        round_want_later(intake->round, ROUND_UNSURE_MS);
    else
        round_want_second(intake->round);
}

static uint64_t on_redis_time(void *context, uint64_t shards, uint64_t time_ms)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {
        .kind = BROADCAST_TIME, .shards = shards, .redis_ms = time_ms};

    write_entry(intake, &entry);
    return sl_database_clock_ms(time_ms, lowest_until_ms(intake, shards));
}

static void on_pong(void *context, uint64_t number)
{
    round_pong(((struct intake *)context)->round, number);
}

static void on_round_over(void *context, uint64_t id, uint64_t shards)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {
        .kind = BROADCAST_ROUND,
        .id = id,
        .shards = shards,
        .clock_skew_us = metric_get(intake->metrics, METRIC_REDIS_CLOCK_SKEW),
    };

    intake->first = intake->newest > id ? id + 1 : 0;
    write_entry(intake, &entry);
    want_round(intake);
}

/* --- callbacks of the subscriber --- */

static void on_master(void *context, const struct sl_redis_endpoint *endpoint)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {
        .kind = BROADCAST_MASTER,
        .data = sl_slice((const char *)endpoint, sizeof(*endpoint)),
    };

    redis_commands_set_endpoint(intake->commands, endpoint);
    write_entry(intake, &entry);
    broadcast_wake(intake->broadcast);
}

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {
        .kind = BROADCAST_LOG_END,
        .shard = shard,
        .id = id,
        .clock_until_ms = subscriber_clock_until_ms(intake->subscriber, shard),
    };

    intake->ends[shard] = id;
    write_entry(intake, &entry);
    return 0;
}

static void note_waiting(struct intake *intake, uint64_t id)
{
    if (intake->first == 0 || id < intake->first)
        intake->first = id;
    if (id > intake->newest)
        intake->newest = id;
}

/* Writes a message with the data that the workers need: the event or, if it is too large for an
 * entry, the JSON, which always fits. */
static void write_message(struct intake *intake, const struct live_message *message, bool is_end)
{
    struct broadcast_entry entry = {
        .kind = BROADCAST_REFUSED,
        .shard = message->shard,
        .id = message->id,
        .previous = message->previous,
        .received_us = message->received_us,
        .is_end = is_end,
    };
    struct event *event = NULL;
    int r;

    r = live_decode(&intake->decoder, message, &event);
    if (r == 0) {
        entry.kind = BROADCAST_EVENT;
        entry.data = event_bytes(event);
        r = broadcast_write(intake->broadcast, &entry);
    } else if (r == -EBADMSG) {
        r = broadcast_write(intake->broadcast, &entry);
    }
    if (r < 0) {
        entry.kind = BROADCAST_JSON;
        entry.data = message->body;
        write_entry(intake, &entry);
    }
    event_unref(event);
}

/* Anybody may publish: an id that the workers would not believe is not the end of a log. */
static void on_message(void *context, const struct live_message *message)
{
    struct intake *intake = context;
    bool is_end =
        message->id > 0 && !repair_is_in_the_future(message->id, intake->ends[message->shard]);

    if (is_end) {
        intake->ends[message->shard] = message->id;
        note_waiting(intake, message->id);
    }
    write_message(intake, message, is_end);
    want_round(intake);
}

static void on_turn_end(void *context)
{
    broadcast_wake(((struct intake *)context)->broadcast);
}

static void say_ready(struct intake *intake)
{
    char byte = '\n';

    if (intake->ready_fd >= 0 && write(intake->ready_fd, &byte, 1) == 1) {
        close(intake->ready_fd);
        intake->ready_fd = -1;
    }
}

static void on_subscribed(void *context, uint32_t shards)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {
        .kind = BROADCAST_SUBSCRIBED,
        .data = sl_slice((const char *)subscriber_meta(intake->subscriber), sizeof(struct sl_meta)),
    };

    redis_commands_try_now(intake->commands);
    intake->first = intake->newest = 0;
    intake->is_ordering = shards > 1 && intake->parts->config->order_wait_ms > 0;
    write_entry(intake, &entry);
    broadcast_wake(intake->broadcast);
    round_set_hearing(intake->round, true);
    want_round(intake);
    say_ready(intake);
}

static void on_lost(void *context, const char *reason)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {.kind = BROADCAST_LOST, .data = sl_slice_str(reason)};

    if (intake->redis.sentinel_count > 0) /* it may be a replica by now */
        redis_commands_set_endpoint(intake->commands, NULL);
    round_set_hearing(intake->round, false);
    write_entry(intake, &entry);
    broadcast_wake(intake->broadcast);
}

static void on_away(void *context, const char *reason)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {.kind = BROADCAST_AWAY, .data = sl_slice_str(reason)};

    write_entry(intake, &entry);
    broadcast_wake(intake->broadcast);
}

/* --- a cluster --- */

static void on_map(void *context, const struct sl_cluster_map *map)
{
    struct intake *intake = context;

    redis_commands_set_map(intake->commands, map);
    subscriber_set_map(intake->subscriber, map);
}

static void on_doubt(void *context)
{
    cluster_watch_doubt(((struct intake *)context)->cluster);
}

static void on_database(void *context, const struct sl_meta *meta)
{
    cluster_watch_expect(((struct intake *)context)->cluster, meta);
}

static void on_heard_again(void *context, uint32_t shard)
{
    struct intake *intake = context;
    const struct broadcast_entry entry = {.kind = BROADCAST_HEARD_AGAIN, .shard = shard};

    redis_commands_try_now(intake->commands);
    write_entry(intake, &entry);
    broadcast_wake(intake->broadcast);
}

static int start_cluster(struct intake *intake)
{
    if (intake->redis.seed_count == 0)
        return 0;
    redis_commands_set_doubt(intake->commands, on_doubt, intake);
    intake->cluster = cluster_watch_new(&intake->loop, &intake->redis, on_map, intake);
    return intake->cluster ? 0 : -ENOMEM;
}

/* --- starting and stopping --- */

static void on_term(uv_signal_t *term, int number)
{
    struct intake *intake = term->data;

    (void)number;
    round_set_hearing(intake->round, false);
    cluster_watch_free(intake->cluster);
    intake->cluster = NULL; /* the commands may still doubt the map */
    subscriber_free(intake->subscriber);
    redis_commands_free(intake->commands);
    round_free(intake->round);
    uv_close((uv_handle_t *)&intake->term, NULL);
    uv_close((uv_handle_t *)&intake->pulse, NULL);
}

static void on_pulse(uv_timer_t *timer)
{
    metric_add(((struct intake *)timer->data)->metrics, METRIC_WORKER_PULSES, 1);
}

static void start_handles(struct intake *intake)
{
    uv_signal_init(&intake->loop, &intake->term);
    uv_timer_init(&intake->loop, &intake->pulse);
    intake->term.data = intake->pulse.data = intake;
    uv_signal_start(&intake->term, on_term, SIGTERM);
    uv_timer_start(&intake->pulse, on_pulse, 0, WORKER_PULSE_MS);
}

static int start(struct intake *intake, struct failure *reterr)
{
    static const struct subscriber_callbacks callbacks = {
        .log_end = on_log_end,
        .message = on_message,
        .pong = on_pong,
        .turn_end = on_turn_end,
        .subscribed = on_subscribed,
        .lost = on_lost,
        .heard_again = on_heard_again,
    };
    static const struct round_callbacks round_callbacks = {.ids_ms = on_redis_time,
                                                           .over = on_round_over};
    const struct config *config = intake->parts->config;
    struct subscriber_settings settings = {
        .loop = &intake->loop,
        .address = &intake->redis,
        .metrics = intake->metrics,
        .ping_ms = (uint32_t)config->redis_timeout_ms,
        .timeout_ms = (uint32_t)config->redis_timeout_ms,
        .rest_ms = (uint32_t)config->intake_rest_ms,
        .begin_wait_ms = broadcast_was_heard(intake->parts->broadcast) ? SUCCESSOR_WAIT_MS : 0,
        .news = {.context = intake,
                 .master = on_master,
                 .away = on_away,
                 .database = on_database,
                 .doubt = on_doubt},
    };
    int r;

    r = sl_redis_address_parse(sl_slice_str(intake->parts->redis_url), &intake->redis, reterr);
    if (r < 0)
        return r;
    intake->decoder =
        (struct live_decoder){event_decoder_new(config->max_event_bytes), intake->metrics, {0}};
    if (!intake->decoder.decoder)
        return -ENOMEM;
    intake->commands = settings.commands = redis_commands_new(
        &intake->loop, &intake->redis, "sluiced-rounds", (uint32_t)config->redis_timeout_ms);
    if (!intake->commands)
        return -ENOMEM;
    intake->subscriber = subscriber_new(&settings, &callbacks, intake);
    if (!intake->subscriber)
        return -ENOMEM;
    intake->round = round_new(&settings, intake->subscriber, &round_callbacks, intake);
    return intake->round ? start_cluster(intake) : -ENOMEM;
}

int intake_process_main(const struct gateway_parts *parts)
{
    struct intake *intake = mem_zalloc(sizeof(*intake));
    struct failure failure = {"out of memory"};

    if (!intake)
        return EXIT_FAILURE;
    intake->parts = parts;
    intake->metrics = metrics_intake(parts->board);
    intake->broadcast = parts->broadcast;
    intake->ready_fd = parts->ready_fd;
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&intake->loop);
    start_handles(intake);
    if (start(intake, &failure) < 0) {
        log_error("cannot_start", "process=intake why=\"%s\"", failure.text);
        return EXIT_FAILURE; /* the process ends and frees it */
    }
    uv_run(&intake->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&intake->loop) < 0)
        log_error("loop_not_empty", "process=intake");
    event_decoder_free(intake->decoder.decoder);
    mem_free(intake);
    return EXIT_SUCCESS;
}
