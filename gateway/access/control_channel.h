/* gateway/access/control_channel.h - a worker asks all workers of all gateways, or one of them.
 *
 * Questions go by PUBLISH (in a cluster SPUBLISH) to `sluice:{0}:control`, which every worker hears
 * on a connection of its own; what is for one worker alone goes to `sluice:{0}:control:NAME`, and
 * so do its answers. Redis says how many have heard a question, so who asks knows when all have
 * answered; after CONTROL_ANSWER_MS it goes on without the rest, and says so. Nothing is kept in
 * Redis, and nothing of this is logged but that the channel is not heard.
 *
 * Who asks answers itself at once, without Redis. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/access/control_message.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"

struct control_channel;
struct redis_commands;

enum { CONTROL_ANSWER_MS = 500, CONTROL_QUESTIONS_MAX = 64 /* of a worker, at a time */ };

struct control_channel_settings {
    uv_loop_t *loop;
    const struct sl_redis_address *address;
    struct redis_commands *commands; /* what is published goes by these */
    uint32_t gateway;                /* the same for all workers of this gateway */
    uint32_t worker, workers;
    uint32_t ping_ms, timeout_ms;
};

/* Another worker asks, or we ourselves: fills what is empty of the answer but for its number. */
typedef void (*control_asked_fn)(void *context, const struct control_question *question,
                                 struct control_answer *ret_answer);

/* Begins at once; does not fail with Redis. NULL: out of memory. */
struct control_channel *control_channel_new(const struct control_channel_settings *settings);
/* Who still waits is answered. The loop must run on to let go of the handles. */
void control_channel_free(struct control_channel *channel);

/* Who answers; NULL, as at the beginning: nobody does. */
void control_channel_set_asked(struct control_channel *channel, control_asked_fn asked,
                               void *context);
/* The workers of this gateway end, each in its time. */
void control_channel_set_draining(struct control_channel *channel);

/* With sentinels: the master; NULL: nobody knows. In a cluster: who has which shard. */
void control_channel_set_endpoint(struct control_channel *channel,
                                  const struct sl_redis_endpoint *endpoint);
void control_channel_set_map(struct control_channel *channel, const struct sl_cluster_map *map);

const char *control_channel_worker_name(const struct control_channel *channel);

/* The answers of all together: rows and counts are added up, `result` is that of who had the
 * connection. `is_complete`: nobody is known to be missing. Called once, and may be called before
 * control_channel_ask() returns. The answer belongs to the channel. */
typedef void (*control_answered_fn)(void *owner, const struct control_answer *answer,
                                    bool is_complete);
struct control_wait;

/* `number` and `from` are filled in; with an id only the worker is asked that it names. 0:
 * *ret_wait is set until `answered` is called (then it is NULL); -EBUSY: too many wait; -ENOMEM.
 */
int control_channel_ask(struct control_channel *channel, struct control_question *question,
                        control_answered_fn answered, void *owner, struct control_wait **ret_wait);
/* The answer is not wanted any more. NULL is no wait. */
void control_wait_forget(struct control_wait *wait);
