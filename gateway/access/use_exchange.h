/* gateway/access/use_exchange.h - reports through Redis what was used at this gateway, and reads
 * what was used at the others.
 *
 * One worker does this for its gateway. At each interval of the option use-exchange it calls shard
 * 0 to say that the gateway exists and to learn which others do. Once a second it sends the
 * accounts that have something to report, each at most once per interval. If Redis is down, reports
 * are delayed, not lost; meanwhile the gateway allows its share of each rate limit. Belongs to the
 * thread of its loop. */
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
    struct admission *admission; /* for the numbers of streams */
    struct metrics *metrics;
};

/* NULL: out of memory. */
struct use_exchange *use_exchange_new(const struct use_exchange_settings *settings);
/* Must be called after freeing the commands, which ends outstanding calls. The loop must run once
 * more. NULL is allowed. */
void use_exchange_free(struct use_exchange *exchange);

/* The database has this many shards: starts or resumes. NULL is allowed. */
void use_exchange_begin(struct use_exchange *exchange, uint32_t shards);
/* The gateway stops: its streams no longer count at the other gateways. NULL is allowed. */
void use_exchange_leave(struct use_exchange *exchange);
