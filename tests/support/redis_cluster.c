/* redis_cluster.c - the nodes are started with a prepared nodes.conf, as if the cluster had existed
 * before: they need not meet, and the slots of each are known. */
#include "tests/support/redis_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/redis/cluster_map.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/folder.h"

enum { PAUSE_US = 10000 };

static size_t first_slot(size_t master)
{
    return SL_CLUSTER_SLOTS * master / REDIS_CLUSTER_MASTERS;
}

size_t redis_cluster_owner(uint32_t shard)
{
    size_t master = REDIS_CLUSTER_MASTERS - 1;

    while (sl_cluster_slot(shard) < first_slot(master))
        master--;
    return master;
}

/* A node's name is 40 digits. */
static void write_config(const struct redis_cluster *cluster, size_t self)
{
    FILE *file = fopen(cluster->nodes[self].config, "w");

    assert_non_null(file);
    for (size_t i = 0; i < REDIS_CLUSTER_NODES; i++) {
        const struct redis_cluster_node *node = &cluster->nodes[i];
        const char *myself = i == self ? "myself," : "";

        fprintf(file, "%040zu 127.0.0.1:%s@%s %s", i + 1, node->port, node->bus_port, myself);
        if (i < REDIS_CLUSTER_MASTERS)
            fprintf(file, "master - 0 0 %zu connected %zu-%zu\n", i + 1, first_slot(i),
                    first_slot(i + 1) - 1);
        else
            fprintf(file, "slave %040zu 0 0 %zu connected\n", i + 1 - REDIS_CLUSTER_MASTERS,
                    i + 1 - REDIS_CLUSTER_MASTERS);
    }
    fprintf(file, "vars currentEpoch %d lastVoteEpoch 0\n", REDIS_CLUSTER_MASTERS);
    assert_int_equal(fclose(file), 0);
}

static void prepare(struct redis_cluster *cluster, size_t number)
{
    struct redis_cluster_node *node = &cluster->nodes[number];
    const char *const options[REDIS_CLUSTER_OPTIONS] = {
        "--port",
        node->port,
        "--bind",
        "127.0.0.1",
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        node->bus_port,
        "--cluster-config-file",
        node->config,
        "--cluster-node-timeout",
        "8000",
        "--cluster-require-full-coverage",
        "no",
        "--repl-diskless-sync-delay",
        "0",
    };

    snprintf(node->port, sizeof(node->port), "%u", redis_server_free_port());
    snprintf(node->bus_port, sizeof(node->bus_port), "%u", redis_server_free_port());
    snprintf(node->config, sizeof(node->config), "%s/%zu.conf", cluster->folder, number);
    memcpy(node->options, options, sizeof(options));
}

static void wait_for(const struct redis_cluster_node *node, const char *command, const char *word)
{
    redisContext *redis = redis_server_connect(&node->server);
    bool is_there;

    do {
        redisReply *reply = redisCommand(redis, command);

        assert_non_null(reply);
        is_there = strstr(reply->str, word) != NULL;
        freeReplyObject(reply);
        usleep(is_there ? 0 : PAUSE_US);
    } while (!is_there);
    redisFree(redis);
}

void redis_cluster_init(struct redis_cluster *cluster)
{
    *cluster = (struct redis_cluster){.folder = "/tmp/sluice-test-XXXXXX"};
    assert_non_null(mkdtemp(cluster->folder));
    for (size_t i = 0; i < REDIS_CLUSTER_NODES; i++)
        prepare(cluster, i);
    for (size_t i = 0; i < REDIS_CLUSTER_NODES; i++) {
        write_config(cluster, i);
        redis_server_init_with(&cluster->nodes[i].server, cluster->nodes[i].options);
    }
    for (size_t i = 0; i < REDIS_CLUSTER_NODES; i++) {
        wait_for(&cluster->nodes[i], "CLUSTER INFO", "cluster_state:ok");
        if (i >= REDIS_CLUSTER_MASTERS)
            wait_for(&cluster->nodes[i], "INFO replication", "master_link_status:up");
    }
    snprintf(cluster->url, sizeof(cluster->url), "redis+cluster://127.0.0.1:%s,127.0.0.1:%s",
             cluster->nodes[0].port, cluster->nodes[1].port);
}

void redis_cluster_done(struct redis_cluster *cluster)
{
    for (size_t i = 0; i < REDIS_CLUSTER_NODES; i++)
        redis_server_done(&cluster->nodes[i].server);
    folder_remove(cluster->folder);
}
