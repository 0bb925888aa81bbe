/* src/redis/redis_node.h - one Redis of those that a link talks to: its connection, and the calls
 * that are under way on it.
 *
 * Who connects it greets it, too (src/redis/redis_dial.h). Calls are sent to all nodes first and
 * then read from each, so that the nodes work side by side. */
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
    uint64_t shards;  /* whose calls are sent here, by bit; the caller's to set */
    bool is_asked;    /* replies to calls of this round are still to come */
    bool has_written; /* was sent a write; the caller's to clear */

    /* The caller's, who connects it: not before, after it has failed, and why it did. */
    uint64_t retry_ms; /* clock_monotonic_ms() */
    struct backoff backoff;
    int error;
    struct failure why;

    /* private */
    size_t script_replies; /* to be read before those of the calls */
    const struct sl_script
        *loaded[SL_NODE_SCRIPTS_MAX]; /* what the connection has sent the text of */
    size_t loaded_count;
};

/* Closes the connection, if there is one. */
void sl_redis_node_disconnect(struct sl_redis_node *node);

/* Sends those of the calls that have no reply yet and are of a shard in node->shards, with the text
 * of the scripts that they need. 0; -EIO, -ENOMEM: the connection is good for nothing any more. */
int sl_redis_node_send(struct sl_redis_node *node, const struct sl_call *calls, size_t count,
                       struct redisReply *const *replies, struct failure *reterr);
/* Reads the replies to what was sent, with the same `calls`, and with the same of `replies`
 * missing, as far as they come. As before. */
int sl_redis_node_receive(struct sl_redis_node *node, const struct sl_call *calls, size_t count,
                          struct redisReply **replies, struct failure *reterr);

/* Sends `asking` and the call, and reads the reply of the call: for a plain command that another
 * node sent here. */
int sl_redis_node_ask(struct sl_redis_node *node, const struct sl_call *call,
                      struct redisReply **ret_reply, struct failure *reterr);
