/* shard_nodes.c - one seed returns all nodes; a master is connected when it is first asked.
 *
 * A broken connection is reopened for the next command, but the command during which it broke has
 * failed, because a program that moves shards must know what was executed. */
#include "cli/shard_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/reply_read.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_dial.h"

enum { CONNECT_MS = 5000, ANSWER_MS = 60000 };
#define REPLICA_MS "5000"

static int dial(const struct sl_redis_address *address, const struct sl_redis_endpoint *endpoint,
                uint32_t answer_ms, struct sl_redis_connection **ret_connection,
                struct failure *reterr)
{
    struct sl_redis_connection *connection = NULL;
    int r;

    r = sl_redis_dial(address, endpoint, CONNECT_MS, answer_ms, &connection, reterr);
    if (r == 0)
        r = sl_redis_log_in(connection, &address->login, reterr);
    if (r < 0)
        sl_redis_connection_close(connection);
    else
        *ret_connection = connection;
    return r;
}

static int ask_seed(const struct sl_redis_address *address, const struct sl_redis_endpoint *seed,
                    struct sl_cluster_nodes *ret_known, struct failure *reterr)
{
    struct sl_redis_connection *connection = NULL;
    redisReply *reply = NULL;
    int r;

    r = dial(address, seed, ANSWER_MS, &connection, reterr);
    if (r == 0)
        r = sl_redis_ask(connection, 2, (const char *[]){"CLUSTER", "SHARDS"}, NULL, &reply,
                         reterr);
    if (r == 0)
        r = sl_cluster_nodes_reply(reply, seed, address->is_tls, ret_known, reterr);
    freeReplyObject(reply);
    sl_redis_connection_close(connection);
    return r;
}

static bool is_master(const struct sl_cluster_node *node)
{
    return node->is_master && node->is_online && node->endpoint.host[0];
}

/* Masters first. */
static int take_known(struct shard_nodes *nodes, const struct sl_cluster_nodes *known,
                      struct failure *reterr)
{
    nodes->at = mem_zalloc(mem_array_size(known->count + 1, sizeof(*nodes->at)));
    if (!nodes->at)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (int wants_masters = 1; wants_masters >= 0; wants_masters--) {
        for (size_t i = 0; i < known->count; i++) {
            struct shard_node *node = &nodes->at[nodes->all];

            if (is_master(&known->at[i]) != wants_masters)
                continue;
            node->known = known->at[i];
            sl_redis_endpoint_print(&node->known.endpoint, node->name, sizeof(node->name));
            nodes->all++;
            nodes->count += (size_t)wants_masters;
        }
    }
    return 0;
}

int shard_nodes_open(struct shard_nodes *nodes, const struct sl_redis_address *address,
                     struct failure *reterr)
{
    struct sl_cluster_nodes known = {.count = 0};
    int r = -ECONNREFUSED;

    *nodes = (struct shard_nodes){.address = *address, .answer_ms = ANSWER_MS};
    for (uint32_t i = 0; r < 0 && i < address->seed_count; i++)
        r = ask_seed(address, &address->seeds[i], &known, reterr);
    if (r == 0)
        r = take_known(nodes, &known, reterr);
    sl_cluster_nodes_done(&known);
    return r;
}

void shard_nodes_close(struct shard_nodes *nodes)
{
    for (size_t i = 0; i < nodes->all; i++)
        sl_redis_connection_close(nodes->at[i].connection);
    mem_free(nodes->at);
    explicit_bzero(&nodes->address.login, sizeof(nodes->address.login));
    *nodes = (struct shard_nodes){.count = 0};
}

void shard_nodes_set_answer_ms(struct shard_nodes *nodes, uint32_t ms)
{
    nodes->answer_ms = ms > 0 ? ms : ANSWER_MS;
    for (size_t i = 0; i < nodes->all; i++) {
        if (nodes->at[i].connection)
            sl_redis_connection_set_answer_ms(nodes->at[i].connection, nodes->answer_ms);
    }
}

/* ---- commands ---- */

void shard_node_disconnect(struct shard_node *node)
{
    sl_redis_connection_close(node->connection);
    node->connection = NULL;
}

int shard_node_connect(struct shard_nodes *nodes, struct shard_node *node, struct failure *reterr)
{
    struct failure why;
    int r = 0;

    if (!node->connection)
        r = dial(&nodes->address, &node->known.endpoint, nodes->answer_ms, &node->connection, &why);
    return r < 0 ? failure_set(reterr, r, "%s: %s", node->name, why.text) : 0;
}

static int check_reply(const struct shard_node *node, const redisReply *reply,
                       struct failure *reterr)
{
    struct failure why;
    int r = sl_reply_check(reply, &why);

    if (r == -EREMOTE)
        return failure_set(reterr, r, "%s has given the slot to another", node->name);
    return r < 0 ? failure_set(reterr, r, "%s: %s", node->name, why.text) : 0;
}

/* Returns any answer. */
static int exchange(struct shard_nodes *nodes, struct shard_node *node, bool is_asking, int argc,
                    const char *const *argv, const size_t *argvlen, redisReply **ret_reply,
                    struct failure *reterr)
{
    redisReply *asking = NULL;
    struct failure why;
    int r = shard_node_connect(nodes, node, reterr);

    if (r < 0)
        return r;
    if (is_asking)
        r = sl_redis_connection_append(node->connection, 1, (const char *[]){"ASKING"}, NULL, &why);
    if (r == 0)
        r = sl_redis_connection_append(node->connection, argc, argv, argvlen, &why);
    if (r == 0 && is_asking)
        r = sl_redis_connection_read(node->connection, &asking, &why);
    if (r == 0)
        r = sl_redis_connection_read(node->connection, ret_reply, &why);
    freeReplyObject(asking);
    if (r < 0) {
        shard_node_disconnect(node);
        return failure_set(reterr, r, "%s: %s", node->name, why.text);
    }
    return 0;
}

int shard_node_ask_as(struct shard_nodes *nodes, struct shard_node *node, bool is_asking, int argc,
                      const char *const *argv, const size_t *argvlen, struct redisReply **ret_reply,
                      struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = exchange(nodes, node, is_asking, argc, argv, argvlen, &reply, reterr);
    if (r == 0)
        r = check_reply(node, reply, reterr);
    if (r < 0)
        freeReplyObject(reply);
    else
        *ret_reply = reply;
    return r;
}

int shard_node_ask(struct shard_nodes *nodes, struct shard_node *node, int argc,
                   const char *const *argv, const size_t *argvlen, struct redisReply **ret_reply,
                   struct failure *reterr)
{
    return shard_node_ask_as(nodes, node, false, argc, argv, argvlen, ret_reply, reterr);
}

/* A node that migrates a slot answers ASK for a key that it no longer has. */
static bool is_ask(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "ASK ", 4) == 0;
}

int shard_node_has(struct shard_nodes *nodes, struct shard_node *node, bool is_asking,
                   const char *key, bool *ret_has, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = exchange(nodes, node, is_asking, 2, (const char *[]){"EXISTS", key}, NULL, &reply, reterr);
    if (r == 0 && !is_ask(reply))
        r = check_reply(node, reply, reterr);
    if (r == 0)
        *ret_has = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    return r;
}

/* The value of "name:value" in the output of INFO; empty: missing. */
static struct sl_slice find_info(const redisReply *reply, const char *name)
{
    const size_t size = strlen(name);
    const char *at = reply->type == REDIS_REPLY_STRING ? reply->str : "";

    for (; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
        if (strncmp(at, name, size) == 0 && at[size] == ':')
            return sl_slice(at + size + 1, strcspn(at + size + 1, "\r\n"));
    }
    return SL_SLICE("");
}

int shard_node_do(struct shard_nodes *nodes, struct shard_node *node, int argc,
                  const char *const *argv, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r = shard_node_ask(nodes, node, argc, argv, NULL, &reply, reterr);

    freeReplyObject(reply);
    return r;
}

int shard_node_count(struct shard_nodes *nodes, struct shard_node *node, int argc,
                     const char *const *argv, uint64_t *ret_count, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r = shard_node_ask(nodes, node, argc, argv, NULL, &reply, reterr);

    if (r == 0 && reply->type == REDIS_REPLY_NIL)
        *ret_count = 0;
    else if (r == 0 && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0)
        *ret_count = (uint64_t)reply->integer;
    else if (r == 0)
        r = sl_reply_unexpected(reterr);
    freeReplyObject(reply);
    return r;
}

int shard_node_info(struct shard_nodes *nodes, struct shard_node *node, const char *command,
                    const char *section, const char *name, char room[static SHARD_NODE_INFO_SIZE],
                    struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = shard_node_ask(nodes, node, 2, (const char *[]){command, section}, NULL, &reply, reterr);
    if (r == 0)
        snprintf(room, SHARD_NODE_INFO_SIZE, "%.*s", SL_SLICE_ARG(find_info(reply, name)));
    freeReplyObject(reply);
    return r;
}

int shard_node_wait(struct shard_nodes *nodes, struct shard_node *node, struct failure *reterr)
{
    char replicas[SHARD_NODE_INFO_SIZE];
    uint64_t count = 0;
    int r;

    r = shard_node_info(nodes, node, "INFO", "replication", "connected_slaves", replicas, reterr);
    if (r < 0 || strcmp(replicas, "0") == 0)
        return r;
    r = SHARD_NODE_COUNT(nodes, node, &count, reterr, "WAIT", "1", REPLICA_MS);
    if (r == 0 && count == 0)
        r = failure_set(reterr, -ETIMEDOUT,
                        "%s: none of its replicas had what it was given after " REPLICA_MS " ms",
                        node->name);
    return r;
}

/* ---- finding nodes ---- */

int shard_nodes_look(struct shard_nodes *nodes, struct failure *reterr)
{
    int away = 0, r;

    for (size_t i = 0; i < nodes->count; i++) {
        struct shard_node *node = &nodes->at[i];
        redisReply *reply = NULL;

        r = shard_node_ask(nodes, node, 2, (const char *[]){"CLUSTER", "NODES"}, NULL, &reply,
                           reterr);
        if (r == 0)
            r = sl_cluster_open_slots_reply(reply, &node->open, reterr);
        if (r == 0)
            node->known.shards = node->open.owned;
        freeReplyObject(reply);
        if (r < 0)
            away = r;
    }
    return away;
}

struct shard_node *shard_nodes_owner(struct shard_nodes *nodes, uint32_t shard)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->at[i].known.shards >> shard & 1)
            return &nodes->at[i];
    }
    return NULL;
}

struct shard_node *shard_nodes_by_id(struct shard_nodes *nodes, const char *id)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->at[i].known.id, id) == 0)
            return &nodes->at[i];
    }
    return NULL;
}

/* "host:port, host:port" of the masters, truncated if there is no room. */
static const char *name_masters(const struct shard_nodes *nodes, char *room, size_t size)
{
    size_t used = 0;

    room[0] = '\0';
    for (size_t i = 0; i < nodes->count && used < size; i++)
        used +=
            (size_t)snprintf(room + used, size - used, "%s%s", i ? ", " : "", nodes->at[i].name);
    return room;
}

int shard_nodes_find(struct shard_nodes *nodes, const char *name, struct shard_node **ret_node,
                     struct failure *reterr)
{
    char masters[FAILURE_TEXT_SIZE / 2];

    for (size_t i = 0; i < nodes->all; i++) {
        struct shard_node *node = &nodes->at[i];

        if (strcmp(node->name, name) != 0)
            continue;
        if (i < nodes->count) {
            *ret_node = node;
            return 0;
        }
        return failure_set(reterr, -EINVAL, "%s is %s; the masters are %s", name,
                           node->known.is_master ? "away" : "a replica",
                           name_masters(nodes, masters, sizeof(masters)));
    }
    return failure_set(reterr, -EINVAL, "%s is not a node of the cluster; its masters are %s", name,
                       name_masters(nodes, masters, sizeof(masters)));
}

int shard_node_names(struct shard_nodes *nodes, struct shard_node *node, uint32_t shard,
                     const struct shard_node *owner, bool *ret_names, struct failure *reterr)
{
    struct sl_cluster_map map;
    redisReply *reply = NULL;
    int r;

    r = shard_node_ask(nodes, node, 2, (const char *[]){"CLUSTER", "SLOTS"}, NULL, &reply, reterr);
    if (r == 0)
        r = sl_cluster_slots_reply(reply, &node->known.endpoint, &map, reterr);
    if (r == 0)
        *ret_names = sl_redis_endpoint_equals(&map.masters[shard], &owner->known.endpoint);
    freeReplyObject(reply);
    return r;
}

void shard_nodes_pause(void)
{
    nanosleep(&(struct timespec){0, SHARD_NODES_PAUSE_MS * 1000000L}, NULL);
}
