/* cli/try_nodes.h - a Redis Cluster on this machine for trials: six nodes on loopback.
 *
 * Nodes 0 to 2 begin as masters, nodes 3 to 5 as their replicas; later the cluster decides. An
 * existing directory is continued, also with other ports. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "cli/children.h"

enum {
    TRY_MASTERS = 3,
    TRY_NODES = 2 * TRY_MASTERS,
    TRY_BUS_DISTANCE = 10000, /* between a node's port and its cluster bus port */
    TRY_PORT_MAX = UINT16_MAX - TRY_BUS_DISTANCE - TRY_NODES,
};

struct try_nodes {
    const char *program; /* redis-server, or valkey-server */
    const char *folder;  /* absolute path */
    uint16_t port;       /* of the first node, the others follow */
    struct child children[TRY_NODES];
    bool is_master[TRY_NODES]; /* as seen by try_nodes_watch() */
};

/* Starts the nodes, and creates a cluster if there is none. 0 if all is well; -EINTR: this program
 * should end; -EADDRINUSE: a port is in use; -ENOTSUP: this Redis cannot be used with Sluice;
 * another errno. Nodes that were started keep running in any case. */
int try_nodes_start(struct try_nodes *nodes, struct failure *reterr);
void try_nodes_stop(struct try_nodes *nodes);

/* Prints which nodes have ended, have returned or have become masters since the last call, and
 * restarts those that ended some seconds ago. */
void try_nodes_watch(struct try_nodes *nodes);
