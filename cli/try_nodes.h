/* cli/try_nodes.h - a Redis Cluster on this machine, to look at: six nodes on loopback.
 *
 * Nodes 0 to 2 begin as masters, nodes 3 to 5 as their replicas; which is what later, the cluster
 * decides. What a directory holds goes on where it was, at whatever ports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "cli/children.h"

enum {
    TRY_MASTERS = 3,
    TRY_NODES = 2 * TRY_MASTERS,
    TRY_BUS_DISTANCE = 10000, /* from a node's port to its other one, which nodes talk through */
    TRY_PORT_MAX = UINT16_MAX - TRY_BUS_DISTANCE - TRY_NODES,
};

struct try_nodes {
    const char *program; /* redis-server, or valkey-server */
    const char *folder;  /* absolute */
    uint16_t port;       /* of the first, the others follow */
    struct child children[TRY_NODES];
    bool is_master[TRY_NODES]; /* as try_nodes_watch() has seen it */
};

/* Starts them; a cluster that is not there yet is made. 0 when all is well; -EINTR: this program is
 * to end; -EADDRINUSE: a port is taken; -ENOTSUP: such a Redis has no use for Sluice; another
 * errno. What has been started runs on in any case. */
int try_nodes_start(struct try_nodes *nodes, struct failure *reterr);
void try_nodes_stop(struct try_nodes *nodes);

/* Says on standard output which node has ended, has come back or has become a master since the last
 * time, and starts again what has ended some seconds ago. */
void try_nodes_watch(struct try_nodes *nodes);
