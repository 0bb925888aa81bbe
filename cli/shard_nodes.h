/* cli/shard_nodes.h - the masters of a Redis Cluster, with a connection to each.
 *
 * For commands about nodes instead of shards: which slots a node moves, how many keys of a slot it
 * has, moving them. Each error names its node. */
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
    struct shard_node *at; /* the masters, followed by replicas and nodes that are down */
    size_t count;          /* number of masters */
    size_t all;
    uint32_t answer_ms; /* a node is given up after this time of silence */
};

/* Asks the seeds for the nodes. 0; -ECONNREFUSED: nobody answers; other errnos. */
int shard_nodes_open(struct shard_nodes *nodes, const struct sl_redis_address *address,
                     struct failure *reterr);
void shard_nodes_close(struct shard_nodes *nodes);

/* Sets how long to wait for an answer; 0: as long as moving keys may take. */
void shard_nodes_set_answer_ms(struct shard_nodes *nodes, uint32_t ms);

/* Asks each master which slots it has and which are being moved: a node knows its own state best,
 * and one that imports a slot is not told of a failover of the source. 0; otherwise one is down:
 * *reterr says which. */
int shard_nodes_look(struct shard_nodes *nodes, struct failure *reterr);

/* The master that has the shard; NULL: none. */
struct shard_node *shard_nodes_owner(struct shard_nodes *nodes, uint32_t shard);
/* The master with this id; NULL: none. */
struct shard_node *shard_nodes_by_id(struct shard_nodes *nodes, const char *id);
/* The master named `name`, HOST:PORT. 0; -EINVAL: *reterr says what it is instead. */
int shard_nodes_find(struct shard_nodes *nodes, const char *name, struct shard_node **ret_node,
                     struct failure *reterr);

/* Connects unless connected. 0; as sl_redis_dial(), sl_redis_log_in(). A caller that sends commands
 * itself must disconnect if it does not know which replies are outstanding. */
int shard_node_connect(struct shard_nodes *nodes, struct shard_node *node, struct failure *reterr);
void shard_node_disconnect(struct shard_node *node);

/* Sends a command and waits for its reply, which is not an error. `is_asking`: after ASKING, to a
 * node that imports a slot. 0: the caller frees the reply; -EIO: the connection broke, and it is
 * unknown what was executed; as shard_node_connect(), sl_reply_check(). */
int shard_node_ask_as(struct shard_nodes *nodes, struct shard_node *node, bool is_asking, int argc,
                      const char *const *argv, const size_t *argvlen, struct redisReply **ret_reply,
                      struct failure *reterr);
int shard_node_ask(struct shard_nodes *nodes, struct shard_node *node, int argc,
                   const char *const *argv, const size_t *argvlen, struct redisReply **ret_reply,
                   struct failure *reterr);

/* Whether the node has the key. A node that is migrating the slot, and has already moved the key,
 * does not. */
int shard_node_has(struct shard_nodes *nodes, struct shard_node *node, bool is_asking,
                   const char *key, bool *ret_has, struct failure *reterr);

enum { SHARD_NODE_INFO_SIZE = 32 };

/* A value of INFO, or CLUSTER INFO; empty: missing. */
int shard_node_info(struct shard_nodes *nodes, struct shard_node *node, const char *command,
                    const char *section, const char *name, char room[static SHARD_NODE_INFO_SIZE],
                    struct failure *reterr);

/* Waits until a replica has what this connection has written, if the node has replicas. 0;
 * -ETIMEDOUT. */
int shard_node_wait(struct shard_nodes *nodes, struct shard_node *node, struct failure *reterr);

/* The same with strings, if only success matters. */
#define SHARD_NODE_DO(nodes, node, reterr, ...)                                                    \
    shard_node_do(nodes, node,                                                                     \
                  (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),             \
                  (const char *[]){__VA_ARGS__}, reterr)
int shard_node_do(struct shard_nodes *nodes, struct shard_node *node, int argc,
                  const char *const *argv, struct failure *reterr);

/* The same if a number or a text is expected. -EBADMSG: it is something else. */
#define SHARD_NODE_COUNT(nodes, node, ret_count, reterr, ...)                                      \
    shard_node_count(nodes, node,                                                                  \
                     (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(const char *)),          \
                     (const char *[]){__VA_ARGS__}, ret_count, reterr)
int shard_node_count(struct shard_nodes *nodes, struct shard_node *node, int argc,
                     const char *const *argv, uint64_t *ret_count, struct failure *reterr);

/* Whether the node says that the shard is at `owner`, or at itself. Others may not yet know what a
 * node knows about itself. */
int shard_node_names(struct shard_nodes *nodes, struct shard_node *node, uint32_t shard,
                     const struct shard_node *owner, bool *ret_names, struct failure *reterr);

enum { SHARD_NODES_PAUSE_MS = 20 };

/* Waits between two checks for something that will happen soon. */
void shard_nodes_pause(void);
