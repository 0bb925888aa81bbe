/* gateway/redis/redis_pulse.h - do commands get answers, and how fast? A PING once a second, on the
 * connection of the other commands, so that waiting behind them counts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct redis_pulse;

enum { REDIS_PULSE_MS = 1000 };

/* Its commands get answers from now on, or not any more. Comes when it changes, from the loop. */
typedef void (*redis_pulse_fn)(void *context, bool is_answered);

/* `unanswered`: a row of the family of METRIC_REDIS_UNANSWERED, kept for this connection. Begins at
 * once; until the first answer there is none. A Redis that has said nothing to any PING
 * for `late_ms` does not answer. An error is an answer, unless it only asks for another try. NULL:
 * out of memory. */
struct redis_pulse *redis_pulse_new(uv_loop_t *loop, struct redis_commands *commands,
                                    struct metrics *metrics, enum metric unanswered,
                                    uint32_t late_ms, redis_pulse_fn changed, void *context);
/* After the commands, which answer what is under way. The loop must run once more. */
void redis_pulse_free(struct redis_pulse *pulse);
