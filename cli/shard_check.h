/* cli/shard_check.h - checks whether a shard can be moved. */
#pragma once

#include "base/failure.h"
#include "cli/shard_move.h"

/* Finds the current owner of the shard, and whether a move was begun. 0; -EINVAL: it cannot be
 * moved to move->to, *reterr says why; else as shard_node_ask(). If an earlier move copied only
 * parts of the log, the copy is removed. */
int shard_check(struct shard_move *move, struct failure *reterr);
