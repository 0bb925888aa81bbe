/* gateway/redis/redis_health.h - has a worker all of Redis that serving needs, and what of it
 * works?
 *
 * It has when it hears the live channels and when both of its connections for commands get answers:
 * the one that the streams need (the log) and the one of the API. A worker that lacks one of them
 * would take clients and fail them; so it is not ready, /readyz says so, and the log says why.
 *
 * Writes may be refused by a Redis that answers. Streams and reads stand meanwhile, so the worker
 * stays ready; that is noted as a part of the server that fails (gateway/metrics/health.h), as are
 * the others. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct redis_health;

struct redis_health_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    struct redis_commands *streams, *api;
    uint32_t late_ms; /* without an answer for so long, a connection gets none */
    /* Comes when it changes, from the loop or from redis_health_set_hearing(). */
    void (*changed)(void *context, bool is_ready);
    void *context;
};

/* Not ready at first. NULL: out of memory. */
struct redis_health *redis_health_new(const struct redis_health_settings *settings);
/* After both connections; what they answer at their end is heeded still. The loop must run once
 * more to let go of the handles. */
void redis_health_free(struct redis_health *health);

/* What a look at what writes need has found: 0, or a negative errno and why. Where there is no
 * database any more (-ENODATA, -ESTALE), reads fail, too. */
void redis_health_set_writes(struct redis_health *health, int r, const char *why);

/* Of the live channels. */
void redis_health_set_hearing(struct redis_health *health, bool is_hearing);
/* Is it known whose tokens were taken back? Until then nobody should be let in. */
void redis_health_set_access(struct redis_health *health, bool is_known);
/* Why they are not heard, for people; it counts while they are not. */
void redis_health_set_unheard(struct redis_health *health, const char *why);
