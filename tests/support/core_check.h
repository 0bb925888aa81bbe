/* tests/support/core_check.h - checks the invariants of a database when no work is left.
 *
 * Looks at every key and compares redundant data: counters and sets, a relation and its mirror in
 * another shard, a list and the posts in it, the log and its chain. */
#pragma once

#include "tests/support/core.h"

/* Fails the test at the first violation. `what` is printed before the message. Call it when nobody
 * writes and no task is left (core_work()). */
void core_check(struct core *core, const char *what);
