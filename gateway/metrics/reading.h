/* gateway/metrics/reading.h - how the server fares at a moment, in numbers of all processes
 * together.
 *
 * Counters of the metrics become rates over the last seconds, and gauges the worst of their kind.
 * What the limits of gateway/metrics/verdict.h are held against, and what samples are made of. For
 * one process, the parent, which looks once or twice a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/metrics/metrics.h"
#include "gateway/metrics/slow_board.h"

enum {
    READING_SHORT_S = 5, /* rates */
    READING_LONG_S = 16, /* CPU, which is measured every two seconds, and Redis */
    READING_TEXT_SIZE = 64
};

#define READING_UNKNOWN UINT64_MAX

/* What only grows and what incidents tell of: how much of it came while they lasted. */
struct reading_totals {
    uint64_t subscriptions_lost, repaired, gaps_told, fallen_behind, too_slow, queues_dropped;
    uint64_t tokens_refused, streams_refused;
};

enum reading_memory { MEMORY_EVENTS, MEMORY_FILTERS, MEMORY_HOME, MEMORY_STREAMS, MEMORY_COUNT };

/* Of a worker, but for streams: of all. In bytes, or streams. */
struct reading_bounds {
    uint64_t most[MEMORY_COUNT];
};

struct reading {
    uint64_t now_ms;   /* Unix time */
    bool was_ready;    /* all workers were, once */
    uint64_t since_ms; /* Unix time of the first look */
    unsigned workers, up, subscribed, ready;
    bool has_intake, intake_is_up;
    uint64_t redis_silent_ms; /* since a PING was sent that has no answer */
    uint64_t redis_slow_us;   /* what all PINGs but the slowest took, over READING_LONG_S */
    uint64_t redis_worst_us;  /* over READING_SHORT_S */
    struct health health[HEALTH_PART_COUNT];

    uint64_t events_in, events_out, bytes_out; /* a second */
    uint64_t matches_milli;                    /* thousandths of a match for each event */
    uint64_t match_us;                         /* mean */
    uint64_t delivery_us;                      /* 99 of 100 deliveries took no longer */
    uint64_t streams, late;                    /* `late`: see METRIC_STREAMS_LATE */
    uint64_t lag_ms;                           /* of the client that is furthest behind */
    bool has_slowest;                          /* of those that are late: */
    struct slow_client slowest;
    uint64_t owed_events, owed_bytes;
    uint64_t owed_rising_ms;     /* for how long it has grown */
    uint64_t memory_bytes;       /* of all processes, in RAM */
    uint64_t cpu_milli;          /* thousandths of a core, of all processes */
    uint64_t busiest_milli;      /* of the busiest process */
    unsigned busiest;            /* that worker; `workers`: the intake process */
    uint64_t used[MEMORY_COUNT]; /* by the worker that uses most */
    struct reading_bounds bounds;
    uint64_t tokens_refused_milli; /* thousandths a second */
    const char *token_fault;       /* the most frequent */
    uint64_t streams_refused_milli;
    const char *gap_reason; /* of the last gap that clients were told of */
    uint64_t gaps_recent;   /* how many in the last 15 minutes */
    uint64_t gap_ms;        /* Unix time of the last; 0: none */
    struct reading_totals totals;

    /* The last process that ended without being told to. */
    uint64_t death_ms; /* Unix time; 0: none has */
    uint64_t back_ms;  /* Unix time when all had been up again; 0: not yet */
    char death[READING_TEXT_SIZE];
};

struct readings;

/* NULL: out of memory. */
struct readings *readings_new(const struct metrics_board *board,
                              const struct slow_board *slow_board, bool has_intake);
void readings_free(struct readings *readings);

/* A process has ended, as `how` says ("by signal 9 (Killed)"); `name`: which, for people. */
void readings_note_death(struct readings *readings, const char *name, const char *how,
                         uint64_t wall_ms);

/* `now_ms`: monotonic, not before that of the call before. */
void readings_take(struct readings *readings, const struct reading_bounds *bounds, uint64_t now_ms,
                   uint64_t wall_ms, struct reading *ret_reading);
