/* gateway/serve/access_watch.h - applies revocations in a worker.
 *
 * It has the list of revocations, tells the API and the health of Redis when the list is known, is
 * asked about every token, and ends the streams whose tokens are revoked. Belongs to the thread of
 * its loop. */
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
    struct api *api;             /* told of Redis once the revocations are known */
    struct redis_health *health; /* likewise */
};

/* NULL: out of memory. */
struct access_watch *access_watch_new(const struct access_watch_settings *settings);
/* Ends no more streams; call it before they are closed. */
void access_watch_stop(struct access_watch *watch);
/* Call it after freeing the commands, which answer what is outstanding. The loop must run once
 * more. */
void access_watch_free(struct access_watch *watch);

/* Sets the current keys, whose tokens are checked. */
void access_watch_set_policy(struct access_watch *watch, struct token_policy *policy);

/* The live channels of a database with this many shards are received from now on. */
void access_watch_hear(struct access_watch *watch, uint32_t shards);
/* Events of a shard were lost. */
void access_watch_miss(struct access_watch *watch, uint32_t shard);
/* An event about revocations has arrived. */
void access_watch_take(struct access_watch *watch, const struct event *event);
/* The live channels are no longer received; existing clients are still served. */
void access_watch_drain(struct access_watch *watch);
