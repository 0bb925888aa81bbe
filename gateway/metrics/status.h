/* gateway/metrics/status.h - how this server fares, as JSON: what the page at /status and `sluice
 * top` are made of. docs/operating.md says what stands in it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/metrics/metrics.h"
#include "gateway/metrics/slow_board.h"

/* What a stranger is not told. */
struct status_view {
    bool with_reasons;  /* why a part fails */
    bool with_subjects; /* who the slowest clients are; otherwise only how slow */
};

void status_print(const struct metrics_board *metrics, const struct slow_board *slowest,
                  struct status_view view, uint64_t now_ms, struct buffer *ret_json);
