/* gateway/redis/redis_pulse.h - checks that commands are answered, and measures how fast.
 *
 * It sends a PING once a second on the connection of the other commands, so that waiting behind
 * them is included. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct redis_pulse;

enum { REDIS_PULSE_MS = 1000 };

/* Called from the loop when this changes: whether commands get answers. */
typedef void (*redis_pulse_fn)(void *context, bool is_answered);

/* `unanswered`: a row of the family of METRIC_REDIS_UNANSWERED for this connection. Starts at once;
 * before the first answer it counts as unanswered. So does a Redis that has answered no PING for
 * `late_ms`. An error is an answer, unless it only asks for another try. NULL: out of memory. */
struct redis_pulse *redis_pulse_new(uv_loop_t *loop, struct redis_commands *commands,
                                    struct metrics *metrics, enum metric unanswered,
                                    uint32_t late_ms, redis_pulse_fn changed, void *context);
/* Free it after the commands, which answer what is outstanding. The loop must run once more. */
void redis_pulse_free(struct redis_pulse *pulse);
