/* src/redis/redis_node.h - one Redis server of a link: its connection, and the calls sent on it.
 *
 * The owner connects the node and performs the handshake (src/redis/redis_dial.h). Calls are sent
 * to all nodes first and then read from each, so that the nodes work in parallel. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/backoff.h"
#include "base/failure.h"
#include "src/call/call.h"
#include "src/redis/redis_address.h"

struct redisReply;
struct sl_redis_connection;

enum { SL_NODE_SCRIPTS_MAX = 64 };

struct sl_redis_node {
    struct sl_redis_endpoint endpoint;      /* empty: that of the address */
    struct sl_redis_connection *connection; /* NULL: not connected */
    uint64_t shards;  /* shards whose calls are sent here, as bits; set by the owner */
    bool is_asked;    /* replies to calls of this round are outstanding */
    bool has_written; /* a write was sent; cleared by the owner */

    /* For the owner: when to connect again after a failure, and what failed. */
    uint64_t retry_ms; /* clock_monotonic_ms() */
    struct backoff backoff;
    int error;
    struct failure why;

    /* the fields below are private */
    size_t script_replies; /* replies to be read before those of the calls */
    const struct sl_script
        *loaded[SL_NODE_SCRIPTS_MAX]; /* scripts whose text was sent on this connection */
    size_t loaded_count;
};

/* Closes the connection, if it is open. */
void sl_redis_node_disconnect(struct sl_redis_node *node);

/* Sends the calls that have no reply yet and belong to node->shards, preceded by the text of the
 * scripts that they need. 0; -EIO, -ENOMEM: the connection cannot be used any longer. */
int sl_redis_node_send(struct sl_redis_node *node, const struct sl_call *calls, size_t count,
                       struct redisReply *const *replies, struct failure *reterr);
/* Reads the replies to what was sent; `calls` and the missing `replies` must be the same. Stops at
 * a failure. Errors as sl_redis_node_send(). */
int sl_redis_node_receive(struct sl_redis_node *node, const struct sl_call *calls, size_t count,
                          struct redisReply **replies, struct failure *reterr);

/* Sends ASKING and the call, and reads the reply of the call. For a plain command that another node
 * redirected. */
int sl_redis_node_ask(struct sl_redis_node *node, const struct sl_call *call,
                      struct redisReply **ret_reply, struct failure *reterr);
