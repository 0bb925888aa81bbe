/* gateway/metrics/history.h - the verdict, what happened lately, and samples of the last 15
 * minutes, in memory that all processes share.
 *
 * The parent writes, once or twice a second, and workers read: so all of it outlives any of them.
 * It ends with the parent; one that takes over begins anew, and notes so. A reader never sees half
 * of it. Bounded: some 80 kB. */
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

/* name, and how it is printed, in this order; docs/operating.md says what they are */
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
    uint64_t number;             /* from 1 on */
    uint64_t began_ms, ended_ms; /* Unix time; 0: it goes on */
    uint64_t changed_ms;
    enum verdict_level level;     /* the highest that it had */
    const char *name;             /* of the part, or what happened; a constant of the program */
    char text[VERDICT_TEXT_SIZE]; /* when it was worst */
    char consequence[VERDICT_TEXT_SIZE];
};

struct verdict_line {
    enum verdict_level level;
    enum verdict_part part;
    bool is_over;      /* and lately */
    uint64_t since_ms; /* Unix time */
    char text[VERDICT_TEXT_SIZE];
};

/* What is shared. Rings: the newest of `n` is at n % size - 1. */
struct history_state {
    uint64_t looked_ms; /* Unix time; 0: not yet */
    enum verdict_level level;
    uint64_t since_ms;
    char text[VERDICT_TEXT_SIZE];
    unsigned
        line_count; /* the worst first, and what goes on before what is over; none: all is well */
    struct verdict_line lines[VERDICT_PARTS];
    uint64_t incident_count; /* ever */
    struct incident incidents[HISTORY_INCIDENTS];
    uint64_t sample_count; /* ever */
    struct sample samples[HISTORY_SAMPLES];
};

struct history;

/* In memory that fork() shares. NULL: out of memory. */
struct history *history_new(void);
void history_free(struct history *history);

/* The writer's: what it changes between the two is seen as one. */
struct history_state *history_begin(struct history *history);
void history_end(struct history *history);

/* A copy, to be freed by mem_free(). NULL: out of memory. */
struct history_state *history_read(const struct history *history);

/* What is printed is found this long after the parent looked last; longer ago it is not believed.
 */
enum { HISTORY_STALE_MS = 10000 };

/* "verdict":{...} */
void history_print_verdict(const struct history_state *state, uint64_t now_ms,
                           struct buffer *ret_json);
/* "incidents":[...],"samples":[...], the oldest first: what is newer than `since_ms`, or has
 * changed since then. */
void history_print_past(const struct history_state *state, uint64_t since_ms,
                        struct buffer *ret_json);
