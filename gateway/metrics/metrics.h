/* gateway/metrics/metrics.h - numbers about this server, in memory that all processes share.
 *
 * Each worker counts in a slot of its own, and so do the supervisor, the intake process and the
 * one that fetches keys; whoever
 * is asked adds them up. Every number has one writer, so counting takes no lock and no locked
 * instruction. The slot of a crashed worker keeps its totals and loses its gauges.
 * metrics_table.def has a row per number. */
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

/* 1, 2, 5, 10, ... microseconds up to 10 s, and whatever takes longer. */
enum { METRIC_BUCKET_COUNT = 23 };

struct metric_distribution {
    _Atomic uint64_t buckets[METRIC_BUCKET_COUNT]; /* not cumulative */
    _Atomic uint64_t sum_us;
};

/* One writer's numbers. Only the functions below look inside. */
struct metrics {
    _Alignas(64) _Atomic uint64_t values[METRIC_COUNT];
    struct metric_distribution histograms[METRIC_HISTOGRAM_COUNT];
    _Atomic uint64_t shards[METRIC_SHARD_COUNT][SL_SHARDS_MAX];
    struct health_slot health[HEALTH_PART_COUNT];
};

struct metrics_board; /* all slots */

/* A board for `workers` slots in memory that fork() shares. NULL: out of memory. */
struct metrics_board *metrics_board_new(unsigned workers);
void metrics_board_free(struct metrics_board *board);

unsigned metrics_workers(const struct metrics_board *board);
struct metrics *metrics_slot(struct metrics_board *board, unsigned worker);
/* To look at. */
const struct metrics *metrics_read_slot(const struct metrics_board *board, unsigned worker);
struct metrics *metrics_supervisor(struct metrics_board *board);
struct metrics *metrics_intake(struct metrics_board *board);
const struct metrics *metrics_read_intake(const struct metrics_board *board);
/* Of the process that fetches keys. */
struct metrics *metrics_keys(struct metrics_board *board);
const struct metrics *metrics_read_keys(const struct metrics_board *board);

/* Once its worker is dead: gauges to 0, counters stay. */
void metrics_slot_reset_gauges(struct metrics *metrics);

/* Of the workers, where there is a line for each. */
uint64_t metrics_sum(const struct metrics_board *board, enum metric metric);

/* How often it took up to each bound, for all processes together; returns how long all of them took
 * together, in microseconds. */
uint64_t metrics_times(const struct metrics_board *board, enum metric_histogram histogram,
                       uint64_t ret_times[static METRIC_BUCKET_COUNT]);
/* Of the last bucket, which has none: that of the bucket before. */
uint64_t metric_bucket_bound_us(unsigned bucket);

/* Everything in Prometheus' text format 0.0.4, numbers that are 0 too. */
void metrics_print(const struct metrics_board *board, struct buffer *ret_text);

/* The same as members of a JSON object, for status.h: `metrics`, by family a number, an array (of
 * workers, or of shards), or an object by the values of the labels ("filter/sse"); `histograms`, by
 * family the sum in seconds and how many there are up to each of `bounds` and beyond the last. */
void metrics_print_json(const struct metrics_board *board, struct buffer *ret_json);

/* The families as mdoc(7) list items, for sluiced(8). */
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

/* The row `index` rows behind `first`: where a family has a row per value of some enum. */
static inline enum metric metric_at(enum metric first, unsigned index)
{
    return (enum metric)((unsigned)first + index);
}

/* Notes that something took `us` microseconds, `times` times. */
void metric_observe(struct metrics *metrics, enum metric_histogram histogram, uint64_t us,
                    uint64_t times);
