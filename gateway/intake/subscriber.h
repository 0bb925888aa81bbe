/* gateway/intake/subscriber.h - subscribes to the live channels of all shards, and never gives up.
 * For a cluster it uses gateway/intake/cluster_subscriber.h.
 *
 * It connects, logs in, finds out how many shards there are and where their logs end, and
 * subscribes. When the connection is lost or silent it reconnects, after 0.1 s at first, 1 s at
 * most, to whichever Redis the sentinels name, if there are any; the end of the log then shows what
 * was missed. When the sentinels announce a new master, it switches at once.
 *
 * Messages are passed on as they arrive; repair.h puts them in order. Waking up costs more than
 * processing a message: above MESSAGE_RATE_BUSY messages a second it rests after each turn that
 * brought some. It logs when it is subscribed and when it is not, and why, once for each reason.
 * Belongs to the thread of its loop. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "gateway/intake/live_message.h"
#include "gateway/metrics/metrics.h"
#include "src/model/database.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"

struct redis_commands;

/* What is found out about Redis, for other users of it. Each may be NULL. */
struct redis_state_callbacks {
    void *context;
    /* With sentinels only: the address of the master, by the sentinels or by itself. Connections to
     * another one should be closed. */
    void (*master)(void *context, const struct sl_redis_endpoint *endpoint);
    /* Why the live channels are not received: called before `lost`, and whenever the reason
     * changes. */
    void (*away)(void *context, const char *reason);
    /* For a cluster only. The database was found: called before `log_end`. */
    void (*database)(void *context, const struct sl_meta *meta);
    /* For a cluster only. The map of the shards is doubtful: subscriber_set_map() is expected. */
    void (*doubt)(void *context);
};

struct subscriber_settings {
    uv_loop_t *loop;
    const struct sl_redis_address *address;
    struct metrics *metrics;
    uint32_t ping_ms;    /* after this time of silence a PING is sent; after three times as long it
                            is given up */
    uint32_t timeout_ms; /* for connecting (a quarter of it) and everything up to the
                            subscription */
    uint32_t rest_ms;    /* when busy, it reads no more often than this; 0: at once */
    struct redis_commands *commands; /* for a cluster: used for everything but the live channels */
    uint32_t begin_wait_ms; /* for a cluster: how long to wait for the rest when some shards are
                               ready; 0: 2 s */
    struct redis_state_callbacks news;
};

struct subscriber_callbacks {
    /* What is published in the shard after the event `id` (0: none) will be received, if nothing is
     * lost on the way. Called before `subscribed`, for each shard. 0; -ENOMEM: to be tried again.
     * In a cluster this is unknown if the shard's master is down: then `id` belongs to another
     * shard, and is from about the time at which the subscription begins; `log_end` is called again
     * later. */
    int (*log_end)(void *context, uint32_t shard, uint64_t id);
    void (*message)(void *context, const struct live_message *message);
    /* All messages that Redis had sent when subscriber_ping() reached it have arrived; or, in a
     * cluster, that node is no longer subscribed. */
    void (*pong)(void *context, uint64_t number);
    /* All messages and pongs of this turn of the loop have been passed on. */
    void (*turn_end)(void *context);
    /* All channels are received from now on (`subscribed`), or no longer (`lost`). */
    void (*subscribed)(void *context, uint32_t shards);
    void (*lost)(void *context, const char *reason);
    /* For a cluster only. A shard was not received for a while, and is now; `log_end` was called
     * for it before. */
    void (*heard_again)(void *context, uint32_t shard);
};

struct subscriber;

/* Starts at once; all callbacks are called from the loop. NULL: out of memory. */
struct subscriber *subscriber_new(const struct subscriber_settings *settings,
                                  const struct subscriber_callbacks *callbacks, void *context);
/* No callback is called any more; may be called from any callback but `log_end`. The loop must run
 * once more to close the handles. */
void subscriber_free(struct subscriber *subscriber);

/* Asks the node that one of `shards` is received from to return `number`, from 1 on, after
 * everything that it has sent: `pong` follows, or `lost`. Returns those of `shards` that are
 * received from it; 0: not asked, because none is received, a ping is outstanding, or out of
 * memory. */
uint64_t subscriber_ping(struct subscriber *subscriber, uint64_t shards, uint64_t number);

bool subscriber_is_subscribed(const struct subscriber *subscriber);
/* The number of shards of the last subscription; 0: never subscribed. */
uint32_t subscriber_shards(const struct subscriber *subscriber);
/* The database that was found last; empty before the first one. */
const struct sl_meta *subscriber_meta(const struct subscriber *subscriber);
/* As in the meta of the shard when the subscription began (sl_meta_reply()). */
uint64_t subscriber_clock_until_ms(const struct subscriber *subscriber, uint32_t shard);

/* The shards that are received at the moment, as bits: in a cluster some may not be, while others
 * are. */
uint64_t subscriber_heard(const struct subscriber *subscriber);
/* For a cluster: sets which node has which shard. Must not be called from a callback. */
void subscriber_set_map(struct subscriber *subscriber, const struct sl_cluster_map *map);
