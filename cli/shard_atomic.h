/* cli/shard_atomic.h - moving a slot in one piece, by servers that can.
 *
 * Valkey 9.0 (CLUSTER MIGRATESLOTS, at the source) and Redis 8.4 (CLUSTER MIGRATION, at the target)
 * copy a slot while it is written to, and hold writes up for the last moment only. */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "cli/shard_move.h"

/* Moves it and waits until that is done; one that is under way is waited for. 0: *ret_is_done, or
 * the servers cannot; -EIO: it has failed there, *reterr says why; else as shard_node_ask(). */
int shard_move_atomically(struct shard_move *move, bool *ret_is_done, struct failure *reterr);
