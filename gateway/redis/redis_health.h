/* gateway/redis/redis_health.h - whether a worker has everything of Redis that it needs to serve.
 *
 * It does if it receives the live channels, and if both its connections for commands get answers:
 * that of the streams (the log) and that of the API. A worker without one of them would accept
 * clients and fail them; so it is not ready, /readyz reports that, and the log gives the reason.
 *
 * A Redis that answers may still refuse writes. Streams and reads continue, so the worker stays
 * ready; it is recorded as a failing part of the server (gateway/metrics/health.h), like the
 * others. */
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
    uint32_t late_ms; /* a connection without an answer for this time counts as unanswered */
    /* Called when the readiness changes, from the loop or from redis_health_set_hearing(). */
    void (*changed)(void *context, bool is_ready);
    void *context;
};

/* Initially not ready. NULL: out of memory. */
struct redis_health *redis_health_new(const struct redis_health_settings *settings);
/* Free it after both connections, because it still handles their last answers. The loop must run
 * once more to close the handles. */
void redis_health_free(struct redis_health *health);

/* The result of a check of what writes need: 0, or a negative errno and why. If there is no
 * database any more (-ENODATA, -ESTALE), reads fail, too. */
void redis_health_set_writes(struct redis_health *health, int r, const char *why);

/* Whether the live channels are received. */
void redis_health_set_hearing(struct redis_health *health, bool is_hearing);
/* Whether the revocations are known. Until then no client should be admitted. */
void redis_health_set_access(struct redis_health *health, bool is_known);
/* Why the live channels are not received, for humans; used while they are not. */
void redis_health_set_unheard(struct redis_health *health, const char *why);
