/* gateway/access/use_exchange.h - tells the other gateways what has been used at this one, by
 * Redis, and takes what they tell.
 *
 * One worker does it for all of its gateway: every use-exchange a round in shard 0, by which the
 * gateways know of each other, and once a second the accounts that have something to tell, each at
 * most once in that time. Without Redis nothing is lost but time: what could not be told is
 * told later, and until then the gateway goes by its own share of each rate. */
#pragma once

#include <stdint.h>
#include <uv.h>

struct admission;
struct fair_use;
struct metrics;
struct redis_commands;
struct use_exchange;

struct use_exchange_settings {
    uv_loop_t *loop;
    struct redis_commands *commands;
    struct fair_use *uses;
    struct admission *admission; /* how many streams there are */
    struct metrics *metrics;
};

/* NULL: out of memory. */
struct use_exchange *use_exchange_new(const struct use_exchange_settings *settings);
/* After the commands, which answer what is under way. The loop must run once more. NULL is fine. */
void use_exchange_free(struct use_exchange *exchange);

/* The database has so many shards: begins, or goes on. NULL is fine. */
void use_exchange_begin(struct use_exchange *exchange, uint32_t shards);
/* The gateway stops: its streams count no more for the others. NULL is fine. */
void use_exchange_leave(struct use_exchange *exchange);
