/* gateway/serve/access_watch.h - whom a worker lets in, and whose streams end, as Redis says.
 *
 * It has the list of revocations, tells the API and the health of Redis when that is known, is
 * asked about every token, and ends the streams of those that are taken back. Belongs to the thread
 * of its loop. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "gateway/front/token.h"
#include "gateway/intake/event.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct access_watch;
struct api;
struct redis_health;
struct streams;

struct access_watch_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    struct redis_commands *commands;
    struct streams *streams;
    struct api *api;             /* it is told of Redis when it is known who may come in */
    struct redis_health *health; /* the same */
};

/* NULL: out of memory. */
struct access_watch *access_watch_new(const struct access_watch_settings *settings);
/* Ends no streams any more: before they are closed. */
void access_watch_stop(struct access_watch *watch);
/* After the commands, which answer what is under way. The loop must run once more. */
void access_watch_free(struct access_watch *watch);

/* The keys are these from now on: their tokens are asked about. */
void access_watch_set_policy(struct access_watch *watch, struct token_policy *policy);

/* The live channels of a database of so many shards are heard from now on. */
void access_watch_hear(struct access_watch *watch, uint32_t shards);
/* Something was lost of a shard. */
void access_watch_miss(struct access_watch *watch, uint32_t shard);
/* An event about access was heard. */
void access_watch_take(struct access_watch *watch, const struct event *event);
/* Nothing is heard any more, and who is here still is served. */
void access_watch_drain(struct access_watch *watch);
