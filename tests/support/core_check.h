/* tests/support/core_check.h - what must be true of a database whenever nothing is left to do.
 *
 * Looks at every key and compares what is told twice: counters and sets, a relation and its mirror
 * in another shard, a list and the posts in it, the log and its chain. */
#pragma once

#include "tests/support/core.h"

/* Fails the test at the first thing that is not as it must be. `what` goes before the sentence.
 * Call it when nobody writes and no task is left (core_work()). */
void core_check(struct core *core, const char *what);
