/* cli/shard_check.h - can a shard be moved where it is to go? */
#pragma once

#include "base/failure.h"
#include "cli/shard_move.h"

/* Finds who has the shard now, and whether a move of it was begun. 0; -EINVAL: it cannot go to
 * move->to, *reterr says why; else as shard_node_ask(). Behind a move that was begun and never got
 * beyond its log, what it left elsewhere is removed. */
int shard_check(struct shard_move *move, struct failure *reterr);
