/* redis_cluster.c - a map of the shards, and a node for each master in it.
 *
 * Nodes are created and closed when the map changes; connections are opened when a call needs one.
 * So there are as many as there are masters with shards, 64 at most, and one for a node that a slot
 * is moving to (sl_redis_cluster_ask()).
 *
 * The map is requested at most every 100 to 200 ms, because many clients that have lost the same
 * node at once must not flood the others. After a failed attempt to connect to a node, the next one
 * follows after 20 ms at first and a second at most; until then calls for its shards fail with the
 * same error. The same applies to the map if no node answers. */
#include "src/redis/redis_cluster.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/hash.h"
#include "src/call/reply.h"
#include "src/model/keys.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_dial.h"

enum { NODES_MAX = SL_SHARDS_MAX + 1, REFRESH_MS = 100 };
enum { RETRY_FIRST_MS = 20, RETRY_LAST_MS = 1000 };

struct sl_redis_cluster {
    const struct sl_redis_address *address;
    uint32_t connect_ms, answer_ms;
    struct sl_cluster_map map;
    struct sl_redis_endpoint told_by; /* the node that sent the map */
    bool has_map, is_in_doubt;
    bool is_filled;         /* all nodes have been asked for what the map lacks */
    uint64_t refresh_ms;    /* do not ask before this time */
    struct backoff backoff; /* of refresh_ms, while no node answers */
    struct sl_redis_node *nodes[NODES_MAX];
    size_t count;
    struct sl_meta expected; /* shards == 0: any database */
};

struct sl_redis_cluster *sl_redis_cluster_new(const struct sl_redis_address *address,
                                              uint32_t connect_ms, uint32_t answer_ms)
{
    struct sl_redis_cluster *cluster = mem_zalloc(sizeof(*cluster));

    if (!cluster)
        return NULL;
    cluster->address = address;
    cluster->connect_ms = connect_ms;
    cluster->answer_ms = answer_ms;
    cluster->is_in_doubt = true;
    return cluster;
}

static void free_node(struct sl_redis_node *node)
{
    sl_redis_node_disconnect(node);
    mem_free(node);
}

void sl_redis_cluster_free(struct sl_redis_cluster *cluster)
{
    if (!cluster)
        return;
    for (size_t i = 0; i < cluster->count; i++)
        free_node(cluster->nodes[i]);
    mem_free(cluster);
}

void sl_redis_cluster_expect(struct sl_redis_cluster *cluster, const struct sl_meta *meta)
{
    cluster->expected = *meta;
}

void sl_redis_cluster_doubt(struct sl_redis_cluster *cluster)
{
    cluster->is_in_doubt = true;
}

/* ---- nodes ---- */

size_t sl_redis_cluster_count(const struct sl_redis_cluster *cluster)
{
    return cluster->count;
}

struct sl_redis_node *sl_redis_cluster_at(struct sl_redis_cluster *cluster, size_t i)
{
    assert(i < cluster->count);
    return cluster->nodes[i];
}

struct sl_redis_node *sl_redis_cluster_find(struct sl_redis_cluster *cluster, uint32_t shard)
{
    for (size_t i = 0; i < cluster->count; i++) {
        if (cluster->nodes[i]->shards >> shard & 1)
            return cluster->nodes[i];
    }
    return NULL;
}

/* NULL: out of memory, or of nodes. */
static struct sl_redis_node *find_or_make(struct sl_redis_cluster *cluster,
                                          const struct sl_redis_endpoint *endpoint)
{
    struct sl_redis_node *node;

    for (size_t i = 0; i < cluster->count; i++) {
        if (sl_redis_endpoint_equals(&cluster->nodes[i]->endpoint, endpoint))
            return cluster->nodes[i];
    }
    node = cluster->count < NODES_MAX ? mem_zalloc(sizeof(*node)) : NULL;
    if (!node)
        return NULL;
    node->endpoint = *endpoint;
    cluster->nodes[cluster->count++] = node;
    return node;
}

/* Makes the nodes those of the map. A node that cannot be created for lack of memory is created the
 * next time; until then its shards have no node. */
static void follow_map(struct sl_redis_cluster *cluster)
{
    size_t kept = 0;

    for (size_t i = 0; i < cluster->count; i++) {
        struct sl_redis_node *node = cluster->nodes[i];

        node->shards = sl_cluster_map_shards_of(&cluster->map, &node->endpoint);
        if (node->shards)
            cluster->nodes[kept++] = node;
        else
            free_node(node);
    }
    cluster->count = kept;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        const struct sl_redis_endpoint *master = &cluster->map.masters[shard];
        struct sl_redis_node *node = master->host[0] ? find_or_make(cluster, master) : NULL;

        if (node)
            node->shards |= UINT64_C(1) << shard;
        else if (master->host[0])
            cluster->is_in_doubt = true;
    }
}

void sl_redis_cluster_move(struct sl_redis_cluster *cluster, uint32_t shard,
                           const struct sl_redis_endpoint *endpoint)
{
    if (sl_redis_endpoint_equals(&cluster->map.masters[shard], endpoint))
        return;
    cluster->map.masters[shard] = *endpoint;
    cluster->is_in_doubt = true;
    follow_map(cluster);
}

/* ---- connections ---- */

static int dial(struct sl_redis_cluster *cluster, const struct sl_redis_endpoint *endpoint,
                struct sl_redis_connection **ret_connection, struct failure *reterr)
{
    struct sl_redis_connection *connection = NULL;
    int r;

    r = sl_redis_dial(cluster->address, endpoint, cluster->connect_ms, cluster->answer_ms,
                      &connection, reterr);
    if (r == 0)
        r = sl_redis_log_in(connection, &cluster->address->login, reterr);
    if (r < 0)
        sl_redis_connection_close(connection);
    else
        *ret_connection = connection;
    return r;
}

/* Checks that the node holds the expected database in this shard. 0: it does, or the shard is
 * empty; -EBADMSG: another database; -EAGAIN, -EREMOTE: the shard is at another node. */
static int check_shard(struct sl_redis_cluster *cluster, struct sl_redis_connection *connection,
                       uint32_t shard, struct failure *reterr)
{
    char key[SL_KEY_SIZE];
    redisReply *reply = NULL;
    int r;

    r = sl_redis_ask(connection, 3,
                     (const char *[]){"HGET", sl_key(shard, "meta", key), "database"}, NULL, &reply,
                     reterr);
    if (r == 0 && reply->type == REDIS_REPLY_STRING &&
        strcmp(reply->str, cluster->expected.database_id) != 0)
        r = failure_set(reterr, -EBADMSG, "it holds another database by now");
    freeReplyObject(reply);
    return r;
}

static int check_database(struct sl_redis_cluster *cluster, struct sl_redis_connection *connection,
                          uint64_t shards, struct failure *reterr)
{
    int r = 0;

    for (uint32_t shard = 0; shard < cluster->expected.shards; shard++) {
        if (!(shards >> shard & 1))
            continue;
        r = check_shard(cluster, connection, shard, reterr);
        if (r != -EAGAIN && r != -EREMOTE)
            break;
    }
    return r;
}

static bool may_pass(int error)
{
    return error == -EAGAIN || error == -EREMOTE || error == -EROFS || error == -EBADMSG ||
           error == -EIO;
}

static void note_failure(struct sl_redis_node *node, int error, const char *why)
{
    char where[SL_REDIS_ENDPOINT_TEXT_SIZE];

    sl_redis_endpoint_print(&node->endpoint, where, sizeof(where));
    node->error = failure_set(&node->why, may_pass(error) ? -ECONNREFUSED : error,
                              "cannot connect to the node %s of the cluster: %s", where, why);
    node->retry_ms = clock_monotonic_ms() +
                     backoff_next_spread_ms(&node->backoff, RETRY_FIRST_MS, RETRY_LAST_MS);
}

int sl_redis_cluster_connect(struct sl_redis_cluster *cluster, struct sl_redis_node *node,
                             struct failure *reterr)
{
    struct sl_redis_connection *connection = NULL;
    struct failure failure = {""};
    int r;

    if (node->connection)
        return 0;
    if (clock_monotonic_ms() < node->retry_ms)
        return failure_set(reterr, node->error, "%s", node->why.text);
    r = dial(cluster, &node->endpoint, &connection, &failure);
    if (r == 0)
        r = check_database(cluster, connection, node->shards, &failure);
    if (r == 0) {
        node->connection = connection;
        backoff_reset(&node->backoff);
        return 0;
    }
    sl_redis_connection_close(connection);
    cluster->is_in_doubt = true;
    note_failure(node, r, r == -EREMOTE ? "its shards are elsewhere by now" : failure.text);
    return failure_set(reterr, node->error, "%s", node->why.text);
}

int sl_redis_cluster_ask(struct sl_redis_cluster *cluster, const struct sl_redis_endpoint *endpoint,
                         const struct sl_call *call, struct redisReply **ret_reply,
                         struct failure *reterr)
{
    struct sl_redis_node *node = find_or_make(cluster, endpoint);
    int r;

    if (!node)
        return failure_set(reterr, -ECONNREFUSED, "out of memory");
    r = sl_redis_cluster_connect(cluster, node, reterr);
    if (r < 0)
        return r == -ECONNREFUSED ? r : -EIO;
    r = sl_redis_node_ask(node, call, ret_reply, reterr);
    if (r < 0)
        sl_redis_node_disconnect(node);
    return r < 0 ? -EIO : 0;
}

/* ---- the map ---- */

static int ask_map(struct sl_redis_connection *connection, const struct sl_redis_endpoint *asked,
                   struct sl_cluster_map *ret_map, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_cluster_slots_call(&call, reterr);
    if (r == 0)
        r = sl_redis_connection_append(connection, call.argc, call.argv, call.argvlen, reterr);
    if (r == 0)
        r = sl_redis_connection_read(connection, &reply, reterr);
    if (r == 0)
        r = sl_cluster_slots_reply(reply, asked, ret_map, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static int ask_node(struct sl_redis_cluster *cluster, struct sl_redis_node *node,
                    struct sl_cluster_map *ret_map, struct failure *reterr)
{
    int r = sl_redis_cluster_connect(cluster, node, reterr);

    if (r < 0)
        return r;
    r = ask_map(node->connection, &node->endpoint, ret_map, reterr);
    if (r < 0)
        sl_redis_node_disconnect(node);
    return r;
}

static int ask_nodes(struct sl_redis_cluster *cluster, struct sl_cluster_map *ret_map,
                     struct failure *reterr)
{
    uint64_t first = cluster->count > 1 ? hash_key_random().k0 : 0;
    int r = -ECONNREFUSED;

    for (size_t i = 0; r < 0 && i < cluster->count; i++) {
        struct sl_redis_node *node = cluster->nodes[(first + i) % cluster->count];

        r = ask_node(cluster, node, ret_map, reterr);
        if (r == 0)
            cluster->told_by = node->endpoint;
    }
    return r;
}

static int ask_seed(struct sl_redis_cluster *cluster, const struct sl_redis_endpoint *seed,
                    struct sl_cluster_map *ret_map, struct failure *reterr)
{
    struct sl_redis_connection *connection = NULL;
    int r = dial(cluster, seed, &connection, reterr);

    if (r == 0)
        r = ask_map(connection, seed, ret_map, reterr);
    sl_redis_connection_close(connection);
    return r;
}

static int ask_seeds(struct sl_redis_cluster *cluster, struct sl_cluster_map *ret_map,
                     struct failure *reterr)
{
    const struct sl_redis_address *address = cluster->address;
    int r = -ECONNREFUSED;

    for (uint32_t i = 0; r < 0 && r != -ENOTSUP && i < address->seed_count; i++) {
        r = ask_seed(cluster, &address->seeds[i], ret_map, reterr);
        if (r == 0)
            cluster->told_by = address->seeds[i];
    }
    return r;
}

int sl_redis_cluster_refresh(struct sl_redis_cluster *cluster, struct failure *reterr)
{
    uint64_t now_ms = clock_monotonic_ms();
    char where[SL_REDIS_ADDRESS_TEXT_SIZE];
    struct failure failure = {""};
    struct sl_cluster_map map;
    int r;

    if (cluster->has_map && (!cluster->is_in_doubt || now_ms < cluster->refresh_ms))
        return 0;
    cluster->refresh_ms = now_ms + REFRESH_MS + backoff_spread_ms(REFRESH_MS);
    r = ask_nodes(cluster, &map, &failure);
    if (r < 0)
        r = ask_seeds(cluster, &map, &failure);
    if (r < 0) {
        cluster->refresh_ms =
            clock_monotonic_ms() +
            backoff_next_spread_ms(&cluster->backoff, 2 * REFRESH_MS, RETRY_LAST_MS);
    } else {
        backoff_reset(&cluster->backoff);
        cluster->map = map;
        cluster->has_map = true;
        cluster->is_in_doubt = cluster->is_filled = false;
        follow_map(cluster);
        return 0;
    }
    if (cluster->has_map && r != -ENOTSUP)
        return 0; /* the known map may still be right; calls will tell */
    sl_redis_address_print(cluster->address, where, sizeof(where));
    return failure_set(reterr, may_pass(r) ? -ECONNREFUSED : r, "cannot connect to %s: %s", where,
                       failure.text);
}

/* ---- completing the map ---- */

static bool has_node(const struct sl_redis_cluster *cluster,
                     const struct sl_redis_endpoint *endpoint)
{
    for (size_t i = 0; i < cluster->count; i++) {
        if (sl_redis_endpoint_equals(&cluster->nodes[i]->endpoint, endpoint))
            return true;
    }
    return false;
}

static bool lacks_something(const struct sl_redis_cluster *cluster)
{
    return !sl_cluster_map_is_full(&cluster->map, cluster->expected.shards);
}

static void ask_others(struct sl_redis_cluster *cluster)
{
    const struct sl_redis_address *address = cluster->address;
    const struct sl_redis_endpoint *told_by = &cluster->told_by;
    struct sl_cluster_map map;
    struct failure why;

    for (size_t i = 0; lacks_something(cluster) && i < cluster->count; i++) {
        struct sl_redis_node *node = cluster->nodes[i];

        if (!sl_redis_endpoint_equals(&node->endpoint, told_by) &&
            ask_node(cluster, node, &map, &why) == 0)
            sl_cluster_map_fill(&cluster->map, &map);
    }
    for (uint32_t i = 0; lacks_something(cluster) && i < address->seed_count; i++) {
        const struct sl_redis_endpoint *seed = &address->seeds[i];

        if (!sl_redis_endpoint_equals(seed, told_by) && !has_node(cluster, seed) &&
            ask_seed(cluster, seed, &map, &why) == 0)
            sl_cluster_map_fill(&cluster->map, &map);
    }
}

bool sl_redis_cluster_seek(struct sl_redis_cluster *cluster, uint32_t shard)
{
    if (!cluster->is_filled) {
        cluster->is_filled = true;
        ask_others(cluster);
        follow_map(cluster);
    }
    return sl_redis_cluster_find(cluster, shard) != NULL;
}
