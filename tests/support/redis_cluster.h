/* tests/support/redis_cluster.h - a Redis Cluster that belongs to one test program: masters and a
 * replica of each, with all slots assigned from the beginning. No replica is promoted unless the
 * test does that. Any error fails the running test. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tests/support/redis_server.h"

enum {
    REDIS_CLUSTER_MASTERS = 3,
    REDIS_CLUSTER_NODES = 2 * REDIS_CLUSTER_MASTERS,
    REDIS_CLUSTER_OPTIONS = 18
};

struct redis_cluster_node {
    struct redis_server server;
    char port[8], bus_port[8], config[96];
    const char *options[REDIS_CLUSTER_OPTIONS];
};

struct redis_cluster {
    struct redis_cluster_node nodes[REDIS_CLUSTER_NODES]; /* the masters, then their replicas */
    char folder[64];
    char url[64]; /* redis+cluster://... */
};

/* Returns when all nodes have found each other. */
void redis_cluster_init(struct redis_cluster *cluster);
void redis_cluster_done(struct redis_cluster *cluster);

/* Returns which of the masters has the shard. */
size_t redis_cluster_owner(uint32_t shard);
