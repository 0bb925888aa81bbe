/* gateway/metrics/status.h - how this server fares, as JSON: what the page at /status and `sluice
 * top` are made of. docs/operating.md says what stands in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/metrics/metrics.h"
#include "gateway/metrics/slow_board.h"

/* What a stranger is not told, and what nobody asked for. */
struct status_view {
    bool with_reasons;  /* why a part fails */
    bool with_subjects; /* who the slowest clients are; otherwise only how slow */
    uint64_t since_ms;  /* samples and incidents behind this Unix time; 0: all */
};

struct history;

/* Without memory *ret_json is failed. */
void status_print(const struct metrics_board *metrics, const struct slow_board *slowest,
                  const struct history *history, struct status_view view, uint64_t now_ms,
                  struct buffer *ret_json);
