/* gateway/intake/subscriber.h - hears the live channels of all shards, and never gives up. In a
 * cluster gateway/intake/cluster_subscriber.h does, which this stands for.
 *
 * Connects, logs in, finds out how many shards there are and where their logs end, subscribes. When
 * the connection is lost or silent it comes back, after 0.1 s at first, 1 s at most, to whichever
 * Redis the sentinels name, if there are any; then the end of the log tells what was missed. When
 * they say that another one is the master now, it goes there at once.
 * Messages come as they are heard: repair.h puts them in order. Waking up costs more than a message
 * does: above MESSAGE_RATE_BUSY messages a second it rests after each turn that brought some. It
 * logs when it hears and when it does not, and why, once for each reason. Belongs to the thread of
 * its loop. */
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

/* What is found out about Redis, for all who go there. Each may be NULL. */
struct redis_news {
    void *context;
    /* With sentinels only: this is the master, as they say, or as it says itself. Whoever has a
     * connection to another leaves that. */
    void (*master)(void *context, const struct sl_redis_endpoint *endpoint);
    /* Why the live channels are not heard: before `lost`, and whenever it is another reason. */
    void (*away)(void *context, const char *reason);
    /* Of a cluster only. The database was found: before `log_end` comes. */
    void (*database)(void *context, const struct sl_meta *meta);
    /* Of a cluster only. Who has which shard is in doubt: subscriber_set_map() is expected. */
    void (*doubt)(void *context);
};

struct subscriber_settings {
    uv_loop_t *loop;
    const struct sl_redis_address *address;
    struct metrics *metrics;
    uint32_t ping_ms;    /* silent for so long: asked; for three times as long: given up */
    uint32_t timeout_ms; /* from being connected, which has a quarter of it, to being subscribed */
    uint32_t rest_ms;    /* when busy, it reads no more often than this; 0: at once */
    struct redis_commands *commands; /* of a cluster: what is asked beside the live channels */
    uint32_t begin_wait_ms; /* of a cluster: for the rest, when some shards are there; 0: 2 s */
    struct redis_news news;
};

struct subscriber_callbacks {
    /* What is published in the shard after the event `id` (0: none) will be heard, if nothing is
     * lost on the way. Comes before `subscribed`, for each shard. 0; -ENOMEM: to be tried again.
     * In a cluster whose master of the shard is away that is not known: then `id` is one of another
     * shard, from about the time at which hearing begins, and `log_end` comes again later. */
    int (*log_end)(void *context, uint32_t shard, uint64_t id);
    void (*message)(void *context, const struct live_message *message);
    /* All messages that Redis had sent when subscriber_ping() reached it have come; or, in a
     * cluster, that node is not heard any more. */
    void (*pong)(void *context, uint64_t number);
    /* The messages and pongs of this turn of the loop are all there. */
    void (*turn_end)(void *context);
    /* All channels are heard from now on; or not any more. Comes when it changes. */
    void (*subscribed)(void *context, uint32_t shards);
    void (*lost)(void *context, const char *reason);
    /* Of a cluster only. One shard was not heard for a while, and is now; `log_end` came for it
     * before. */
    void (*heard_again)(void *context, uint32_t shard);
};

struct subscriber;

/* Begins at once; all callbacks come from the loop. NULL: out of memory. */
struct subscriber *subscriber_new(const struct subscriber_settings *settings,
                                  const struct subscriber_callbacks *callbacks, void *context);
/* No callback comes any more; may be called from within one, other than `log_end`. The loop must
 * run once more to let go of the handles. */
void subscriber_free(struct subscriber *subscriber);

/* Asks the node that one of `shards` is heard from to say `number`, from 1 on, behind what it has
 * sent: `pong` comes, or `lost`. Returns those of `shards` that are heard from it; 0: it was not
 * asked, for none is heard, it has not answered yet, or there is no memory. */
uint64_t subscriber_ping(struct subscriber *subscriber, uint64_t shards, uint64_t number);

bool subscriber_is_subscribed(const struct subscriber *subscriber);
/* Whether it has been, ever: the number of shards; 0: not yet. */
uint32_t subscriber_shards(const struct subscriber *subscriber);
/* The database that it has found last; nothing is in it before the first. */
const struct sl_meta *subscriber_meta(const struct subscriber *subscriber);
/* As the meta of the shard said when hearing began (sl_meta_reply()). */
uint64_t subscriber_clock_until_ms(const struct subscriber *subscriber, uint32_t shard);

/* The shards that are heard at this moment, by bit: in a cluster some may not be, while others are.
 */
uint64_t subscriber_heard(const struct subscriber *subscriber);
/* Of a cluster: who has which shard. Not from within a callback of this. */
void subscriber_set_map(struct subscriber *subscriber, const struct sl_cluster_map *map);
