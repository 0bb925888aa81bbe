/* gateway/metrics/status.h - the state of this server as JSON, for the page /status and `sluice
 * top`. Described in docs/operating.md. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/metrics/metrics.h"
#include "gateway/metrics/slow_board.h"

/* What is shown depends on the permissions of the reader and on the request. */
struct status_view {
    bool with_reasons;  /* show why a part fails */
    bool with_subjects; /* show who the slowest clients are; otherwise only how slow they are */
    uint64_t since_ms;  /* samples and incidents after this Unix time; 0: all */
};

struct history;

/* Out of memory: *ret_json has failed. */
void status_print(const struct metrics_board *metrics, const struct slow_board *slowest,
                  const struct history *history, struct status_view view, uint64_t now_ms,
                  struct buffer *ret_json);
