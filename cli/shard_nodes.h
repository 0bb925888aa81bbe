/* cli/shard_nodes.h - the masters of a Redis Cluster, each by a connection of its own.
 *
 * For commands that are about a node, not about a shard: which slots it moves, how many keys it has
 * of one, moving them. Each failure names its node. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/redis/cluster_nodes.h"
#include "src/redis/redis_address.h"

struct redisReply;
struct sl_redis_connection;

struct shard_node {
    struct sl_cluster_node known;
    char name[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* host:port */
    struct sl_redis_connection *connection; /* NULL: not connected */
    struct sl_open_slots open;              /* as of shard_nodes_look() */
};

struct shard_nodes {
    struct sl_redis_address address;
    struct shard_node *at; /* the masters, and behind them replicas and those that are away */
    size_t count;          /* of masters */
    size_t all;
    uint32_t answer_ms; /* who is silent for so long is given up */
};

/* Asks the seeds for the nodes. 0; -ECONNREFUSED: nobody answers, and other errnos. */
int shard_nodes_open(struct shard_nodes *nodes, const struct sl_redis_address *address,
                     struct failure *reterr);
void shard_nodes_close(struct shard_nodes *nodes);

/* How long an answer is waited for from now on; 0: as long as moving keys may take. */
void shard_nodes_set_answer_ms(struct shard_nodes *nodes, uint32_t ms);

/* Asks each master which slots it has and which of them are being moved: a node knows best of
 * itself, and one that takes a slot does not hear of a failover of the one that gives it. 0; else
 * one is away and has said nothing: *reterr says which. */
int shard_nodes_look(struct shard_nodes *nodes, struct failure *reterr);

/* The master that has the shard; NULL: nobody has. */
struct shard_node *shard_nodes_owner(struct shard_nodes *nodes, uint32_t shard);
/* The master with this id; NULL: there is none. */
struct shard_node *shard_nodes_by_id(struct shard_nodes *nodes, const char *id);
/* The master that is called `name`, HOST:PORT. 0; -EINVAL: *reterr says what it is instead. */
int shard_nodes_find(struct shard_nodes *nodes, const char *name, struct shard_node **ret_node,
                     struct failure *reterr);

/* Opens the connection unless it is open. 0; as sl_redis_dial(), sl_redis_log_in(). Whoever sends
 * by himself disconnects when he does not know what is still to be answered. */
int shard_node_connect(struct shard_nodes *nodes, struct shard_node *node, struct failure *reterr);
void shard_node_disconnect(struct shard_node *node);

/* Sends a command and waits for its answer, which is no error. `is_asking`: behind ASKING, to a
 * node that takes a slot. 0: the reply is the caller's; -EIO: the connection broke, and nobody
 * knows what is done; as shard_node_connect(), sl_reply_check(). */
int shard_node_ask_as(struct shard_nodes *nodes, struct shard_node *node, bool is_asking, int argc,
                      const char *const *argv, const size_t *argvlen, struct redisReply **ret_reply,
                      struct failure *reterr);
int shard_node_ask(struct shard_nodes *nodes, struct shard_node *node, int argc,
                   const char *const *argv, const size_t *argvlen, struct redisReply **ret_reply,
                   struct failure *reterr);

/* Does the node have the key? One that gives its slot, and has given the key, does not. */
int shard_node_has(struct shard_nodes *nodes, struct shard_node *node, bool is_asking,
                   const char *key, bool *ret_has, struct failure *reterr);

enum { SHARD_NODE_INFO_SIZE = 32 };

/* A value of what INFO, or CLUSTER INFO, says; empty: it is not there. */
int shard_node_info(struct shard_nodes *nodes, struct shard_node *node, const char *command,
                    const char *section, const char *name, char room[static SHARD_NODE_INFO_SIZE],
                    struct failure *reterr);

/* Until a replica has what this connection has written, if the node has replicas. 0; -ETIMEDOUT. */
int shard_node_wait(struct shard_nodes *nodes, struct shard_node *node, struct failure *reterr);

/* The same with strings, where only success counts. */
#define SHARD_NODE_DO(nodes, node, reterr, ...)                                                    \
    shard_node_do(nodes, node,                                                                     \
                  (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),             \
                  (const char *[]){__VA_ARGS__}, reterr)
int shard_node_do(struct shard_nodes *nodes, struct shard_node *node, int argc,
                  const char *const *argv, struct failure *reterr);

/* The same where a number or a text is wanted. -EBADMSG: it is none. */
#define SHARD_NODE_COUNT(nodes, node, ret_count, reterr, ...)                                      \
    shard_node_count(nodes, node,                                                                  \
                     (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),          \
                     (const char *[]){__VA_ARGS__}, ret_count, reterr)
int shard_node_count(struct shard_nodes *nodes, struct shard_node *node, int argc,
                     const char *const *argv, uint64_t *ret_count, struct failure *reterr);

/* Does the node say that the shard is at `owner`, or at itself? What a node knows of itself others
 * may not have heard yet. */
int shard_node_names(struct shard_nodes *nodes, struct shard_node *node, uint32_t shard,
                     const struct shard_node *owner, bool *ret_names, struct failure *reterr);

enum { SHARD_NODES_PAUSE_MS = 20 };

/* Between two questions for what will be so soon. */
void shard_nodes_pause(void);
