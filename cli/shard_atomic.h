/* cli/shard_atomic.h - moves a slot as a whole, with servers that support this.
 *
 * Valkey 9.0 (CLUSTER MIGRATESLOTS, at the source) and Redis 8.4 (CLUSTER MIGRATION, at the target)
 * copy a slot while it is written to, and block writes only at the end. */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "cli/shard_move.h"

/* Moves it and waits for the end; a move in progress is waited for. 0: *ret_is_done, or false if
 * the servers do not support it; -EIO: it has failed there, *reterr says why; else as
 * shard_node_ask(). */
int shard_move_atomically(struct shard_move *move, bool *ret_is_done, struct failure *reterr);
