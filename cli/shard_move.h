/* cli/shard_move.h - moves a shard from its master to another one.
 *
 * Its slot is moved as a whole, including keys of other applications. A move that was interrupted,
 * here or at a node, is continued by requesting it again. */
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
    void (*tell)(const struct shard_move *move); /* progress; may be NULL */

    /* results */
    struct shard_node *from; /* the owner before, as far as the cluster knows */
    bool is_there;           /* it was already there */
    bool is_by_server;       /* moved as a whole; only `keys` is set below, an estimate */
    uint64_t entries, keys;  /* entries of the log; other keys. Totals during the move: */
    uint64_t all_entries, all_keys;
    uint64_t paused_ms;               /* for how long writes were blocked */
    const struct shard_node *unheard; /* has not learned of the move in time; NULL: all nodes
                                         have */

    /* private */
    char slot[12], meta[SL_KEY_SIZE], log[SL_KEY_SIZE];
    char marked[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* target of a move that was begun; empty: none */
};

/* 0, also if it was already there; -EINVAL: it cannot be moved there, *reterr says why; otherwise a
 * failure in between, after which it may be run again. */
int shard_move_run(struct shard_move *move, struct failure *reterr);
