/* gateway/metrics/history.h - the verdict, recent incidents, and samples of the last 15 minutes, in
 * memory shared by all processes.
 *
 * The parent writes once or twice a second, and workers read. So the history outlives the workers
 * but ends with the parent; one that takes over begins a new history, and records that. Readers
 * never see a partial write. Its size is fixed, about 80 kB. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/metrics/verdict.h"

enum {
    HISTORY_SAMPLE_MS = 5000,
    HISTORY_SAMPLES = 15 * 60000 / HISTORY_SAMPLE_MS,
    HISTORY_INCIDENTS = 100
};

/* name and printed name, in this order; described in docs/operating.md */
#define HISTORY_FIELDS(FIELD)                                                                      \
    FIELD(EVENTS_IN, "events_in")                                                                  \
    FIELD(EVENTS_OUT, "events_out")                                                                \
    FIELD(BYTES_OUT, "bytes_out")                                                                  \
    FIELD(STREAMS, "streams")                                                                      \
    FIELD(LATE, "streams_late")                                                                    \
    FIELD(LAG, "lag_ms")                                                                           \
    FIELD(OWED, "owed_events")                                                                     \
    FIELD(MATCH, "match_us")                                                                       \
    FIELD(DELIVERY, "delivery_p99_us")                                                             \
    FIELD(REDIS, "redis_us")                                                                       \
    FIELD(MEMORY, "memory_bytes")                                                                  \
    FIELD(CPU, "cpu_milli")                                                                        \
    FIELD(BUSIEST, "busiest_cpu_milli")

enum sample_field {
#define FIELD(name, printed) SAMPLE_##name,
    HISTORY_FIELDS(FIELD)
#undef FIELD
        SAMPLE_FIELDS
};

struct sample {
    uint64_t at_ms;                 /* Unix time */
    uint64_t values[SAMPLE_FIELDS]; /* READING_UNKNOWN: not known */
};

struct incident {
    uint64_t number;             /* numbered from 1 */
    uint64_t began_ms, ended_ms; /* Unix time; 0: not over yet */
    uint64_t changed_ms;
    enum verdict_level level;     /* the highest level that it reached */
    const char *name;             /* of the part, or what happened; a string constant */
    char text[VERDICT_TEXT_SIZE]; /* at its worst */
    char consequence[VERDICT_TEXT_SIZE];
};

struct verdict_line {
    enum verdict_level level;
    enum verdict_part part;
    bool is_over;      /* ended recently */
    uint64_t since_ms; /* Unix time */
    char text[VERDICT_TEXT_SIZE];
};

/* The shared data. In rings, the newest of `n` is at n % size - 1. */
struct history_state {
    uint64_t looked_ms; /* Unix time of the last check; 0: none yet */
    enum verdict_level level;
    uint64_t since_ms;
    char text[VERDICT_TEXT_SIZE];
    unsigned line_count; /* the worst first, and current ones before those that are over; none: all
                            is well */
    struct verdict_line lines[VERDICT_PARTS];
    uint64_t incident_count; /* total number */
    struct incident incidents[HISTORY_INCIDENTS];
    uint64_t sample_count; /* total number */
    struct sample samples[HISTORY_SAMPLES];
};

struct history;

/* In memory that fork() shares. NULL: out of memory. */
struct history *history_new(void);
void history_free(struct history *history);

/* For the writer: readers see all changes between the two calls at once. */
struct history_state *history_begin(struct history *history);
void history_end(struct history *history);

/* Returns a copy, to be freed by mem_free(). NULL: out of memory. */
struct history_state *history_read(const struct history *history);

/* A verdict older than this since the parent's last check is not trusted. */
enum { HISTORY_STALE_MS = 10000 };

/* Prints "verdict":{...} */
void history_print_verdict(const struct history_state *state, uint64_t now_ms,
                           struct buffer *ret_json);
/* Prints "incidents":[...],"samples":[...], the oldest first: those newer than `since_ms`, or
 * changed since then. */
void history_print_past(const struct history_state *state, uint64_t since_ms,
                        struct buffer *ret_json);
