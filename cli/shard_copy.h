/* cli/shard_copy.h - the log of a shard, copied in pages from the master that has it to the one
 * that is to have it.
 *
 * MIGRATE takes a key as a whole: a log of a million events keeps both masters from everything else
 * for seconds, and one of more than 512 MB cannot be moved at all. A page is 1,000 entries, with
 * their ids. The slot must be importing at the target. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "cli/shard_nodes.h"

struct shard_copy {
    struct shard_nodes *nodes;
    struct shard_node *from, *to;
    const char *key;
    uint64_t *entries, *all; /* that are at the target, of so many; about */
    void (*tell)(void *context);
    void *context;
};

/* 0; -EINVAL: the log has consumer groups, which a copy would lose; else as shard_node_ask(). */
int shard_copy_check(struct shard_copy *copy, struct failure *reterr);

/* Copies what the target does not have yet, while the log may still grow: until a page is not full,
 * or as many entries have been copied as there were. As before. */
int shard_copy_ahead(struct shard_copy *copy, struct failure *reterr);

/* Copies the rest, when nobody writes to the log any more, checks that both are the same, and
 * removes the one at the source. Where there is none any more, that has been done. 0; -EIO: they
 * differ; else as above. */
int shard_copy_finish(struct shard_copy *copy, struct failure *reterr);
