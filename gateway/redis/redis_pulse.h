/* gateway/redis/redis_pulse.h - how long Redis takes to answer: a PING once a second, on the
 * connection of the other commands, so that waiting behind them counts. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct redis_pulse;

enum { REDIS_PULSE_MS = 1000 };

/* Begins at once. NULL: out of memory. */
struct redis_pulse *redis_pulse_new(uv_loop_t *loop, struct redis_commands *commands,
                                    struct metrics *metrics);
/* After the commands, which answer what is under way. The loop must run once more. */
void redis_pulse_free(struct redis_pulse *pulse);
