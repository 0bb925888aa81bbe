/* gateway/access/control_channel.h - sends a question to all workers of all gateways, or to one of
 * them, and collects the answers.
 *
 * Questions are published (PUBLISH, in a cluster SPUBLISH) in `sluice:{0}:control`, to which every
 * worker is subscribed on a connection of its own. Questions and answers for a single worker are
 * published in `sluice:{0}:control:NAME`. Redis returns the number of subscribers that received a
 * question, so the asking worker knows when all have answered. After CONTROL_ANSWER_MS it continues
 * without the rest and reports the answer as incomplete. Nothing is stored in Redis. Only the loss
 * of the subscription, and its return, are logged.
 *
 * The asking worker answers its own question at once, without Redis. Belongs to the thread of its
 * loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/access/control_message.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_address.h"

struct control_channel;
struct redis_commands;

enum {
    CONTROL_ANSWER_MS = 500,
    CONTROL_QUESTIONS_MAX = 64 /* outstanding questions of a worker */
};

struct control_channel_settings {
    uv_loop_t *loop;
    const struct sl_redis_address *address;
    struct redis_commands *commands; /* used for publishing */
    uint32_t gateway;                /* the same for all workers of this gateway */
    uint32_t worker, workers;
    uint32_t ping_ms, timeout_ms;
};

/* Answers a question of another worker or of this one: fills in `result`, `matched` and the
 * rows. */
typedef void (*control_asked_fn)(void *context, const struct control_question *question,
                                 struct control_answer *ret_answer);

/* Starts at once, even if Redis is down. NULL: out of memory. */
struct control_channel *control_channel_new(const struct control_channel_settings *settings);
/* Ends all outstanding questions with the answers that have arrived. The loop must run until the
 * handles are closed. */
void control_channel_free(struct control_channel *channel);

/* Sets who answers questions; NULL, as at the beginning: nobody, and the answers are empty. */
void control_channel_set_asked(struct control_channel *channel, control_asked_fn asked,
                               void *context);
/* From now on the workers of this gateway end one by one, so that not all of them will answer. */
void control_channel_set_draining(struct control_channel *channel);

/* With sentinels: sets the master; NULL: unknown. In a cluster: sets the map of the shards. */
void control_channel_set_endpoint(struct control_channel *channel,
                                  const struct sl_redis_endpoint *endpoint);
void control_channel_set_map(struct control_channel *channel, const struct sl_cluster_map *map);

const char *control_channel_worker_name(const struct control_channel *channel);

/* `answer` is the sum of all answers: their rows and counts; `result` is from the worker that has
 * the connection. `is_complete`: no worker is known to be missing. Called once, possibly before
 * control_channel_ask() returns. `answer` is valid during the call. */
typedef void (*control_answered_fn)(void *owner, const struct control_answer *answer,
                                    bool is_complete);
struct control_wait;

/* Fills in `number` and `from`. If the question names an id, only the worker of that connection is
 * asked. 0: *ret_wait is set until `answered` is called, NULL if it has been; -EBUSY: too many
 * outstanding questions; -ENOMEM. */
int control_channel_ask(struct control_channel *channel, struct control_question *question,
                        control_answered_fn answered, void *owner, struct control_wait **ret_wait);
/* Forgets the question: `answered` will not be called. NULL is allowed. */
void control_wait_forget(struct control_wait *wait);
