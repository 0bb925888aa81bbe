/* gateway/metrics/reading.h - the state of the server at a moment, in numbers over all processes.
 *
 * Counters of the metrics become rates over the last seconds, and gauges the worst of their kind.
 * The limits of gateway/metrics/verdict.h are applied to these numbers, and samples consist of
 * them. For one process, the parent, which reads once or twice a second. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/metrics/metrics.h"
#include "gateway/metrics/slow_board.h"

enum {
    READING_SHORT_S = 5, /* for rates */
    READING_LONG_S = 16, /* for CPU time, which is measured every two seconds, and Redis */
    READING_TEXT_SIZE = 64
};

#define READING_UNKNOWN UINT64_MAX

/* Counters that incidents report: how much was added while they lasted. */
struct reading_totals {
    uint64_t subscriptions_lost, repaired, gaps_told, fallen_behind, too_slow, queues_dropped;
    uint64_t tokens_refused, streams_refused;
};

enum reading_memory { MEMORY_EVENTS, MEMORY_FILTERS, MEMORY_HOME, MEMORY_STREAMS, MEMORY_COUNT };

/* Limits of a worker, except streams, which is for all. In bytes, or streams. */
struct reading_bounds {
    uint64_t most[MEMORY_COUNT];
};

struct reading {
    uint64_t now_ms;   /* Unix time */
    bool was_ready;    /* all workers were ready at least once */
    uint64_t since_ms; /* Unix time of the first reading */
    unsigned workers, up, subscribed, ready;
    bool has_intake, intake_is_up;
    uint64_t redis_silent_ms; /* since a PING that has no answer yet was sent */
    uint64_t redis_slow_us;   /* the slowest PING but the worst ones, over READING_LONG_S */
    uint64_t redis_worst_us;  /* over READING_SHORT_S */
    struct health health[HEALTH_PART_COUNT];

    uint64_t events_in, events_out, bytes_out; /* per second */
    uint64_t matches_milli;                    /* thousandths of a match per event */
    uint64_t match_us;                         /* mean */
    uint64_t delivery_us;                      /* 99 of 100 deliveries took no longer */
    uint64_t streams, late;                    /* `late`: see METRIC_STREAMS_LATE */
    uint64_t lag_ms;                           /* of the client that is furthest behind */
    bool has_slowest;                          /* of those that are late: */
    struct slow_client slowest;
    uint64_t owed_events, owed_bytes;
    uint64_t owed_rising_ms;     /* for how long it has been growing */
    uint64_t memory_bytes;       /* of all processes, in RAM */
    uint64_t cpu_milli;          /* thousandths of a core, of all processes */
    uint64_t busiest_milli;      /* of the busiest process */
    unsigned busiest;            /* this worker; `workers`: the intake process */
    uint64_t used[MEMORY_COUNT]; /* by the worker that uses most */
    struct reading_bounds bounds;
    uint64_t tokens_refused_milli; /* thousandths per second */
    const char *token_fault;       /* the most frequent one */
    uint64_t streams_refused_milli;
    const char *gap_reason; /* of the last gap reported to clients */
    uint64_t gaps_recent;   /* number in the last 15 minutes */
    uint64_t gap_ms;        /* Unix time of the last one; 0: none */
    struct reading_totals totals;

    /* The last process that ended unexpectedly. */
    uint64_t death_ms; /* Unix time; 0: none */
    uint64_t back_ms;  /* Unix time when all were running again; 0: not yet */
    char death[READING_TEXT_SIZE];
};

struct readings;

/* NULL: out of memory. */
struct readings *readings_new(const struct metrics_board *board,
                              const struct slow_board *slow_board, bool has_intake);
void readings_free(struct readings *readings);

/* A process has ended, as `how` says ("by signal 9 (Killed)"); `name` is its name for people. */
void readings_note_death(struct readings *readings, const char *name, const char *how,
                         uint64_t wall_ms);

/* `now_ms`: monotonic, not before that of the last call. */
void readings_take(struct readings *readings, const struct reading_bounds *bounds, uint64_t now_ms,
                   uint64_t wall_ms, struct reading *ret_reading);
