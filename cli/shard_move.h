/* cli/shard_move.h - a shard goes from the master that has it to another.
 *
 * Its slot goes as a whole, with whatever keys others have in it. A move that was broken off, here
 * or at a node, is gone on with by asking for the same once more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "cli/shard_nodes.h"
#include "src/model/keys.h"

struct shard_move {
    struct shard_nodes *nodes;
    uint32_t shard;
    struct shard_node *to;
    void (*tell)(const struct shard_move *move); /* something has been moved; may be NULL */

    /* what is done */
    struct shard_node *from; /* who had it, as far as the cluster knows */
    bool is_there;           /* it was there already */
    bool is_by_server;       /* in one piece; of the numbers below only `keys` is known, about */
    uint64_t entries, keys;  /* of the log; others. While it is under way of so many: */
    uint64_t all_entries, all_keys;
    uint64_t paused_ms;               /* writers of the shard had to wait */
    const struct shard_node *unheard; /* has not heard of it in time; NULL: all nodes have */

    /* private */
    char slot[12], meta[SL_KEY_SIZE], log[SL_KEY_SIZE];
    char marked[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* where a move goes to that was begun; empty: none */
};

/* 0, also when it was there already; -EINVAL: it cannot be moved there, *reterr says why; else a
 * failure in the middle of it, after which it may be run again. */
int shard_move_run(struct shard_move *move, struct failure *reterr);
