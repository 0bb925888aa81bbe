/* reading.c - a ring of snapshots of the counters, one each second, and their differences.
 *
 * The ring reaches back as far as the longest rate. A counter that has decreased belongs to a
 * process that was restarted, and counts from 0. The memory is fixed at creation. */
#include "gateway/metrics/reading.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum {
    LOOKS = READING_LONG_S + 2,
    LOOK_EVERY_MS = 1000,
    TOKEN_FAULTS = METRIC_TOKENS_REVOKED - METRIC_TOKENS_REFUSED + 1,
    GAP_REASONS = METRIC_GAPS_TOLD_LATE - METRIC_GAPS_TOLD + 1,
    REFUSALS = METRIC_HOME_REFUSED - METRIC_ADMISSION_FULL + 1,
    RISING_EVERY_MS = 5000,
    RISING_FROM = 1000, /* events; smaller backlogs are no problem */
    GAP_MINUTES = 15
};

static const char *const token_faults[TOKEN_FAULTS] = {
    "malformed",    "critical_header", "wrong_algorithm", "unknown_key",
    "no_keys_yet",  "bad_signature",   "expired",         "not_yet_valid",
    "wrong_issuer", "wrong_audience",  "bad_claims",      "revoked",
};

static const char *const gap_reasons[GAP_REASONS] = {"retention", "rewound", "redis", "unlogged",
                                                     "late"};

struct look {
    uint64_t at_ms; /* monotonic; 0: none yet */
    uint64_t received, deliveries, delivered_bytes, matches, match_us;
    uint64_t token_faults[TOKEN_FAULTS];
    uint64_t streams_refused;
    uint64_t round_trips[METRIC_BUCKET_COUNT], deliveries_us[METRIC_BUCKET_COUNT],
        matched[METRIC_BUCKET_COUNT];
    uint64_t *cpu_us; /* for each process */
};

struct readings {
    const struct metrics_board *board;
    const struct slow_board *slow_board;
    unsigned workers;
    bool has_intake;
    bool was_ready;
    uint64_t since_ms;
    struct look looks[LOOKS];
    unsigned newest;
    uint64_t *cpu_us;                   /* of all snapshots */
    uint64_t slow_from_ms;              /* round trips before this are reported as silence */
    uint64_t rising_ms, risen_ms, owed; /* monotonic: since when it grows, when it was checked last;
                                           its last value */
    uint64_t gaps[GAP_REASONS];         /* last values */
    uint32_t gaps_by_minute[GAP_MINUTES];
    uint64_t minute;
    uint64_t gap_ms;
    const char *gap_reason;
    uint64_t death_ms, back_ms;
    char death[READING_TEXT_SIZE];
};

struct readings *readings_new(const struct metrics_board *board,
                              const struct slow_board *slow_board, bool has_intake)
{
    struct readings *readings = mem_zalloc(sizeof(*readings));
    unsigned processes = metrics_workers(board) + 1;

    if (!readings)
        return NULL;
    readings->cpu_us = mem_zalloc(mem_array_size((size_t)LOOKS * processes, sizeof(uint64_t)));
    if (!readings->cpu_us) {
        mem_free(readings);
        return NULL;
    }
    readings->board = board;
    readings->slow_board = slow_board;
    readings->workers = metrics_workers(board);
    readings->has_intake = has_intake;
    for (unsigned i = 0; i < LOOKS; i++)
        readings->looks[i].cpu_us = &readings->cpu_us[(size_t)i * processes];
    for (unsigned i = 0; i < GAP_REASONS; i++)
        readings->gaps[i] = metrics_sum(board, metric_at(METRIC_GAPS_TOLD, i));
    return readings;
}

void readings_free(struct readings *readings)
{
    if (readings)
        mem_free(readings->cpu_us);
    mem_free(readings);
}

void readings_note_death(struct readings *readings, const char *name, const char *how,
                         uint64_t wall_ms)
{
    readings->death_ms = wall_ms;
    readings->back_ms = 0;
    snprintf(readings->death, sizeof(readings->death), "%s ended %s", name, how);
    readings->death[0] = (char)toupper((unsigned char)readings->death[0]);
}

/* --- snapshots --- */

static const struct metrics *slot_of(const struct readings *readings, unsigned process)
{
    return process < readings->workers ? metrics_read_slot(readings->board, process)
                                       : metrics_read_intake(readings->board);
}

static void look(const struct readings *readings, uint64_t now_ms, struct look *look)
{
    const struct metrics_board *board = readings->board;

    look->at_ms = now_ms;
    look->received = metrics_sum(board, METRIC_EVENTS_RECEIVED);
    look->deliveries = metrics_sum(board, METRIC_DELIVERIES);
    look->delivered_bytes = metrics_sum(board, METRIC_DELIVERED_BYTES);
    look->matches = metrics_sum(board, METRIC_MATCHES);
    look->match_us = metrics_times(board, METRIC_HISTOGRAM_MATCH_TIME, look->matched);
    metrics_times(board, METRIC_HISTOGRAM_REDIS_ROUND_TRIP, look->round_trips);
    metrics_times(board, METRIC_HISTOGRAM_DELIVERY_TIME, look->deliveries_us);
    look->streams_refused = 0;
    for (unsigned i = 0; i < REFUSALS; i++)
        look->streams_refused += metrics_sum(board, metric_at(METRIC_ADMISSION_FULL, i));
    for (unsigned i = 0; i < TOKEN_FAULTS; i++)
        look->token_faults[i] = metrics_sum(board, metric_at(METRIC_TOKENS_REFUSED, i));
    for (unsigned i = 0; i < readings->workers + readings->has_intake; i++)
        look->cpu_us[i] = metric_get(slot_of(readings, i), METRIC_WORKER_CPU);
}

static const struct look *newest(const struct readings *readings)
{
    return &readings->looks[readings->newest];
}

/* The newest that is at least this old, or the oldest. */
static const struct look *look_before(const struct readings *readings, uint64_t ms)
{
    const struct look *found = newest(readings);

    for (unsigned i = 1; i < LOOKS && newest(readings)->at_ms - found->at_ms < ms; i++) {
        const struct look *older = &readings->looks[(readings->newest + LOOKS - i) % LOOKS];

        if (older->at_ms == 0)
            break;
        found = older;
    }
    return found;
}

static uint64_t since(uint64_t now, uint64_t then)
{
    return now >= then ? now - then : now;
}

/* `scale` times the increase per second; READING_UNKNOWN: there is only one snapshot. */
static uint64_t rate(uint64_t now, uint64_t then, uint64_t passed_ms, uint64_t scale)
{
    return passed_ms ? (since(now, then) * 1000 * scale + passed_ms / 2) / passed_ms
                     : READING_UNKNOWN;
}

/* The upper bound of the bucket that contains the slowest of all but `spare` observations. */
static uint64_t slowest_but(const uint64_t *now, const uint64_t *then, uint64_t spare)
{
    for (unsigned i = METRIC_BUCKET_COUNT; i-- > 0;) {
        uint64_t times = since(now[i], then[i]);

        if (times > spare)
            return metric_bucket_bound_us(i);
        spare -= times;
    }
    return READING_UNKNOWN;
}

static uint64_t times_since(const uint64_t *now, const uint64_t *then)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < METRIC_BUCKET_COUNT; i++)
        sum += since(now[i], then[i]);
    return sum;
}

/* --- the parts of a reading --- */

static void read_processes(struct readings *readings, struct reading *reading)
{
    const struct metrics_board *board = readings->board;

    reading->workers = readings->workers;
    reading->up = (unsigned)metrics_sum(board, METRIC_WORKER_UP);
    reading->subscribed = (unsigned)metrics_sum(board, METRIC_SUBSCRIBED);
    reading->ready = (unsigned)metrics_sum(board, METRIC_READY);
    reading->has_intake = readings->has_intake;
    reading->intake_is_up = metrics_sum(board, METRIC_INTAKE_UP) > 0;
    if (reading->ready == reading->workers) {
        readings->was_ready = true;
        if (readings->death_ms && !readings->back_ms &&
            (reading->intake_is_up || !readings->has_intake))
            readings->back_ms = reading->now_ms;
    }
    reading->was_ready = readings->was_ready;
    reading->death_ms = readings->death_ms;
    reading->back_ms = readings->back_ms;
    memcpy(reading->death, readings->death, sizeof(reading->death));
    for (unsigned i = 0; i < HEALTH_PART_COUNT; i++)
        health_read(board, (enum health_part)i, &reading->health[i]);
}

/* Requests made while Redis was silent are reported as that, and not again as slow answers. */
static void read_redis(struct readings *readings, uint64_t now_ms, struct reading *reading)
{
    const struct look *now = newest(readings), *then;
    uint64_t back_ms = READING_LONG_S * 1000;

    for (unsigned i = 0; i < readings->workers; i++) {
        for (unsigned k = 0; k < 2; k++) {
            uint64_t asked_us = metric_get(metrics_read_slot(readings->board, i),
                                           metric_at(METRIC_REDIS_UNANSWERED, k));
            uint64_t asked_ms = asked_us / 1000;

            if (asked_us && reading->now_ms > asked_ms + reading->redis_silent_ms)
                reading->redis_silent_ms = reading->now_ms - asked_ms;
        }
    }
    if (reading->redis_silent_ms >= LOOK_EVERY_MS)
        readings->slow_from_ms = now_ms + 2 * LOOK_EVERY_MS;
    if (now->at_ms < readings->slow_from_ms + back_ms)
        back_ms = now->at_ms > readings->slow_from_ms ? now->at_ms - readings->slow_from_ms : 0;
    then = look_before(readings, back_ms);
    reading->redis_slow_us = slowest_but(now->round_trips, then->round_trips, 1);
    then = look_before(readings, READING_SHORT_S * 1000);
    reading->redis_worst_us = slowest_but(now->round_trips, then->round_trips, 0);
}

static void read_flow(const struct readings *readings, struct reading *reading)
{
    const struct look *now = newest(readings),
                      *then = look_before(readings, READING_SHORT_S * 1000);
    uint64_t passed_ms = now->at_ms - then->at_ms;
    uint64_t hearing = reading->subscribed > 0 ? reading->subscribed : 1;
    uint64_t received = since(now->received, then->received);
    uint64_t matched = times_since(now->matched, then->matched);
    uint64_t sent = times_since(now->deliveries_us, then->deliveries_us);

    reading->events_in = rate(now->received, then->received, passed_ms * hearing, 1);
    reading->events_out = rate(now->deliveries, then->deliveries, passed_ms, 1);
    reading->bytes_out = rate(now->delivered_bytes, then->delivered_bytes, passed_ms, 1);
    reading->matches_milli =
        received ? since(now->matches, then->matches) * 1000 * hearing / received : READING_UNKNOWN;
    reading->match_us = matched ? since(now->match_us, then->match_us) / matched : READING_UNKNOWN;
    reading->delivery_us =
        sent ? slowest_but(now->deliveries_us, then->deliveries_us, sent / 100) : READING_UNKNOWN;
}

static void read_refusals(const struct readings *readings, struct reading *reading)
{
    const struct look *now = newest(readings), *then = look_before(readings, READING_LONG_S * 1000);
    uint64_t passed_ms = now->at_ms - then->at_ms;
    uint64_t sum = 0, before = 0, most = 0;

    reading->token_fault = token_faults[0];
    for (unsigned i = 0; i < TOKEN_FAULTS; i++) {
        uint64_t times = since(now->token_faults[i], then->token_faults[i]);

        sum += now->token_faults[i];
        before += then->token_faults[i];
        if (times > most) {
            most = times;
            reading->token_fault = token_faults[i];
        }
    }
    reading->totals.tokens_refused = sum;
    reading->totals.streams_refused = now->streams_refused;
    if (passed_ms) {
        reading->tokens_refused_milli = rate(sum, before, passed_ms, 1000);
        reading->streams_refused_milli =
            rate(now->streams_refused, then->streams_refused, passed_ms, 1000);
    }
}

static void read_cpu(const struct readings *readings, struct reading *reading)
{
    const struct look *now = newest(readings), *then = look_before(readings, READING_LONG_S * 1000);
    uint64_t passed_ms = now->at_ms - then->at_ms;

    if (passed_ms < READING_SHORT_S * 1000) {
        reading->cpu_milli = reading->busiest_milli = READING_UNKNOWN;
        return;
    }
    for (unsigned i = 0; i < readings->workers + readings->has_intake; i++) {
        uint64_t milli = since(now->cpu_us[i], then->cpu_us[i]) / passed_ms;

        reading->cpu_milli += milli;
        if (milli > reading->busiest_milli) {
            reading->busiest_milli = milli;
            reading->busiest = i;
        }
    }
}

static void read_clients(struct readings *readings, uint64_t now_ms, struct reading *reading)
{
    const struct metrics_board *board = readings->board;
    struct slow_list list;

    reading->streams = metrics_sum(board, METRIC_STREAMS);
    reading->late = metrics_sum(board, METRIC_STREAMS_LATE);
    reading->owed_events = metrics_sum(board, METRIC_OWED_EVENTS);
    reading->owed_bytes = metrics_sum(board, METRIC_OWED_BYTES);
    for (unsigned i = 0; i < readings->workers; i++) {
        uint64_t lag_ms = metric_get(metrics_read_slot(board, i), METRIC_SLOWEST_CLIENT) / 1000;

        if (lag_ms > reading->lag_ms)
            reading->lag_ms = lag_ms;
    }
    slow_board_read(readings->slow_board, &list);
    reading->has_slowest = list.count > 0 && list.clients[0].is_late;
    if (reading->has_slowest)
        reading->slowest = list.clients[0];
    if (!readings->risen_ms || now_ms - readings->risen_ms >= RISING_EVERY_MS) {
        if (reading->owed_events < RISING_FROM || reading->owed_events <= readings->owed)
            readings->rising_ms = now_ms;
        readings->risen_ms = now_ms;
        readings->owed = reading->owed_events;
    }
    reading->owed_rising_ms = now_ms - readings->rising_ms;
}

static void read_memory(const struct readings *readings, struct reading *reading)
{
    static const enum metric of[MEMORY_COUNT] = {
        [MEMORY_EVENTS] = METRIC_EVENT_BYTES,
        [MEMORY_FILTERS] = METRIC_FILTER_BYTES,
        [MEMORY_HOME] = METRIC_HOME_BYTES,
    };

    for (unsigned i = 0; i < readings->workers + readings->has_intake; i++) {
        const struct metrics *slot = slot_of(readings, i);

        reading->memory_bytes += metric_get(slot, METRIC_WORKER_RESIDENT);
        for (unsigned k = 0; k < MEMORY_STREAMS; k++) {
            uint64_t used = metric_get(slot, of[k]);

            if (used > reading->used[k])
                reading->used[k] = used;
        }
    }
    reading->used[MEMORY_STREAMS] = reading->streams;
}

static void read_gaps(struct readings *readings, struct reading *reading)
{
    uint64_t minute = reading->now_ms / 60000;

    for (; readings->minute < minute && readings->minute + GAP_MINUTES >= minute;)
        readings->gaps_by_minute[++readings->minute % GAP_MINUTES] = 0;
    if (readings->minute != minute)
        memset(readings->gaps_by_minute, 0, sizeof(readings->gaps_by_minute));
    readings->minute = minute;
    for (unsigned i = 0; i < GAP_REASONS; i++) {
        uint64_t told = metrics_sum(readings->board, metric_at(METRIC_GAPS_TOLD, i));

        reading->totals.gaps_told += told;
        if (told > readings->gaps[i]) {
            readings->gaps_by_minute[minute % GAP_MINUTES] += (uint32_t)(told - readings->gaps[i]);
            readings->gap_ms = reading->now_ms;
            readings->gap_reason = gap_reasons[i];
        }
        readings->gaps[i] = told;
    }
    for (unsigned i = 0; i < GAP_MINUTES; i++)
        reading->gaps_recent += readings->gaps_by_minute[i];
    reading->gap_ms = readings->gap_ms;
    reading->gap_reason = readings->gap_reason;
}

static void read_totals(const struct readings *readings, struct reading_totals *totals)
{
    const struct metrics_board *board = readings->board;

    totals->subscriptions_lost = metrics_sum(board, METRIC_SUBSCRIPTIONS_LOST);
    totals->fallen_behind = metrics_sum(board, METRIC_FALLEN_BEHIND);
    totals->too_slow = metrics_sum(board, METRIC_DISCONNECTS_TOO_SLOW);
    totals->queues_dropped = metrics_sum(board, METRIC_EVENT_BYTES_EXCEEDED);
    totals->repaired = 0; /* every worker repairs all of them */
    for (unsigned i = 0; i <= readings->workers; i++) {
        uint64_t repaired = metric_get(slot_of(readings, i), METRIC_EVENTS_REPAIRED);

        if (repaired > totals->repaired)
            totals->repaired = repaired;
    }
}

void readings_take(struct readings *readings, const struct reading_bounds *bounds, uint64_t now_ms,
                   uint64_t wall_ms, struct reading *ret_reading)
{
    *ret_reading = (struct reading){.now_ms = wall_ms, .bounds = *bounds};
    if (newest(readings)->at_ms == 0) {
        readings->since_ms = wall_ms;
        look(readings, now_ms, &readings->looks[readings->newest]);
    } else if (now_ms - newest(readings)->at_ms >= LOOK_EVERY_MS) {
        readings->newest = (readings->newest + 1) % LOOKS;
        look(readings, now_ms, &readings->looks[readings->newest]);
    }
    ret_reading->since_ms = readings->since_ms;
    read_processes(readings, ret_reading);
    read_redis(readings, now_ms, ret_reading);
    read_flow(readings, ret_reading);
    read_refusals(readings, ret_reading);
    read_cpu(readings, ret_reading);
    read_clients(readings, now_ms, ret_reading);
    read_memory(readings, ret_reading);
    read_totals(readings, &ret_reading->totals);
    read_gaps(readings, ret_reading);
}
