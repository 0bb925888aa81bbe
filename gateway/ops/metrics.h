/* gateway/ops/metrics.h - numbers about this server, in memory that all workers share.
 *
 * Each worker counts in a slot of its own, without locks; whoever is asked adds them up. The slot
 * of a crashed worker keeps its totals and loses its gauges. metrics_table.def has a row per
 * metric: enum name, kind, exposed name, help. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum metric {
#define COUNTER(name, exposed, help) METRIC_##name,
#define GAUGE(name, exposed, help) METRIC_##name,
#include "gateway/ops/metrics_table.def"
#undef COUNTER
#undef GAUGE
    METRIC_COUNT
};

struct metrics; /* one worker's slot */
struct metrics_board; /* all slots */

/* A board for `workers` slots in memory that survives fork(). NULL: out of memory. */
struct metrics_board *metrics_board_new(unsigned workers);
void metrics_board_free(struct metrics_board *board);
struct metrics *metrics_slot(struct metrics_board *board, unsigned worker);
/* For a new worker in the place of a crashed one: gauges to 0, counters stay. */
void metrics_slot_reset_gauges(struct metrics *metrics);

void metric_add(struct metrics *metrics, enum metric metric, uint64_t n);
void metric_set(struct metrics *metrics, enum metric metric, uint64_t value); /* gauges */
void metric_sub(struct metrics *metrics, enum metric metric, uint64_t n);     /* gauges */
uint64_t metric_get(const struct metrics *metrics, enum metric metric);
uint64_t metrics_sum(const struct metrics_board *board, enum metric metric);

/* Everything in Prometheus' text format 0.0.4. */
void metrics_print(const struct metrics_board *board, struct buffer *ret_text);
