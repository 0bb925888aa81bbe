/* gateway/metrics/metrics.h - numbers about this server, in memory shared by all processes.
 *
 * Each worker counts in its own slot, and so do the supervisor, the intake process and the process
 * that fetches keys; readers add them up. Every number has one writer, so counting needs no lock
 * and no locked instruction. After a crash a worker's slot keeps its totals and loses its gauges.
 * metrics_table.def has a row for each number. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/metrics/health.h"
#include "src/model/id.h"

enum metric {
#define COUNTER(name, exposed, help)        METRIC_##name,
#define GAUGE(name, exposed, help)          METRIC_##name,
#define WORKER_COUNTER(name, exposed, help) METRIC_##name,
#define WORKER_GAUGE(name, exposed, help)   METRIC_##name,
#define SHARD_GAUGE(name, exposed, help)
#define HISTOGRAM(name, exposed, help)
#include "gateway/metrics/metrics_table.def"
    METRIC_COUNT
};

enum metric_histogram {
#define COUNTER(name, exposed, help)
#define GAUGE(name, exposed, help)
#define WORKER_COUNTER(name, exposed, help)
#define WORKER_GAUGE(name, exposed, help)
#define SHARD_GAUGE(name, exposed, help)
#define HISTOGRAM(name, exposed, help) METRIC_HISTOGRAM_##name,
#include "gateway/metrics/metrics_table.def"
    METRIC_HISTOGRAM_COUNT
};

enum metric_of_shard {
#define COUNTER(name, exposed, help)
#define GAUGE(name, exposed, help)
#define WORKER_COUNTER(name, exposed, help)
#define WORKER_GAUGE(name, exposed, help)
#define SHARD_GAUGE(name, exposed, help) METRIC_SHARD_##name,
#define HISTOGRAM(name, exposed, help)
#include "gateway/metrics/metrics_table.def"
    METRIC_SHARD_COUNT
};

/* 1, 2, 5, 10, ... microseconds up to 10 s, and one for everything longer. */
enum { METRIC_BUCKET_COUNT = 23 };

struct metric_distribution {
    _Atomic uint64_t buckets[METRIC_BUCKET_COUNT]; /* not cumulative */
    _Atomic uint64_t sum_us;
};

/* The numbers of one writer. Use only the functions below. */
struct metrics {
    _Alignas(64) _Atomic uint64_t values[METRIC_COUNT];
    struct metric_distribution histograms[METRIC_HISTOGRAM_COUNT];
    _Atomic uint64_t shards[METRIC_SHARD_COUNT][SL_SHARDS_MAX];
    struct health_slot health[HEALTH_PART_COUNT];
};

struct metrics_board; /* all slots */

/* A board with `workers` slots in memory that fork() shares. NULL: out of memory. */
struct metrics_board *metrics_board_new(unsigned workers);
void metrics_board_free(struct metrics_board *board);

unsigned metrics_workers(const struct metrics_board *board);
struct metrics *metrics_slot(struct metrics_board *board, unsigned worker);
/* A slot for reading. */
const struct metrics *metrics_read_slot(const struct metrics_board *board, unsigned worker);
struct metrics *metrics_supervisor(struct metrics_board *board);
struct metrics *metrics_intake(struct metrics_board *board);
const struct metrics *metrics_read_intake(const struct metrics_board *board);
/* The slot of the process that fetches keys. */
struct metrics *metrics_keys(struct metrics_board *board);
const struct metrics *metrics_read_keys(const struct metrics_board *board);

/* After the death of its worker: sets gauges to 0, keeps counters. */
void metrics_slot_reset_gauges(struct metrics *metrics);

/* The sum over the workers, for numbers with a line for each. */
uint64_t metrics_sum(const struct metrics_board *board, enum metric metric);

/* Fills how many observations were up to each bound, for all processes together. Returns the sum of
 * all durations, in microseconds. */
uint64_t metrics_times(const struct metrics_board *board, enum metric_histogram histogram,
                       uint64_t ret_times[static METRIC_BUCKET_COUNT]);
/* For the last bucket, which has no bound: that of the bucket before. */
uint64_t metric_bucket_bound_us(unsigned bucket);

/* Prints everything in Prometheus' text format 0.0.4, including zeros. */
void metrics_print(const struct metrics_board *board, struct buffer *ret_text);

/* Prints the same as members of a JSON object, for status.h: `metrics`, for each family a number,
 * an array (of workers, or of shards), or an object by the values of the labels ("filter/sse");
 * `histograms`, for each family the sum in seconds, and the counts up to each of `bounds` and
 * beyond the last. */
void metrics_print_json(const struct metrics_board *board, struct buffer *ret_json);

/* Prints the families as mdoc(7) list items, for sluiced(8). */
void metrics_print_manual(struct buffer *ret_text);

static inline uint64_t metric_get(const struct metrics *metrics, enum metric metric)
{
    return atomic_load_explicit(&metrics->values[metric], memory_order_relaxed);
}

static inline void metric_set(struct metrics *metrics, enum metric metric, uint64_t value)
{
    atomic_store_explicit(&metrics->values[metric], value, memory_order_relaxed);
}

static inline void metric_set_shard(struct metrics *metrics, enum metric_of_shard metric,
                                    uint32_t shard, uint64_t value)
{
    atomic_store_explicit(&metrics->shards[metric][shard], value, memory_order_relaxed);
}

static inline void metric_add(struct metrics *metrics, enum metric metric, uint64_t n)
{
    metric_set(metrics, metric, metric_get(metrics, metric) + n);
}

static inline void metric_sub(struct metrics *metrics, enum metric metric, uint64_t n)
{
    metric_set(metrics, metric, metric_get(metrics, metric) - n);
}

/* The row at `index` after `first`, for families with a row for each value of an enum. */
static inline enum metric metric_at(enum metric first, unsigned index)
{
    return (enum metric)((unsigned)first + index);
}

/* Records that something took `us` microseconds, `times` times. */
void metric_observe(struct metrics *metrics, enum metric_histogram histogram, uint64_t us,
                    uint64_t times);
