/* cli/shard_copy.h - copies the log of a shard in pages to another master.
 *
 * MIGRATE moves a key as a whole: a log of a million events blocks both masters for seconds, and
 * one of more than 512 MB cannot be moved at all. A page has 1,000 entries, which keep their ids.
 * The target must be importing the slot. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "cli/shard_nodes.h"

struct shard_copy {
    struct shard_nodes *nodes;
    struct shard_node *from, *to;
    const char *key;
    uint64_t *entries, *all; /* copied so far, and total; estimates */
    void (*tell)(void *context);
    void *context;
};

/* 0; -EINVAL: the log has consumer groups, which a copy would lose; else as shard_node_ask(). */
int shard_copy_check(struct shard_copy *copy, struct failure *reterr);

/* Copies what the target lacks, while the log may still grow: until a page is not full, or as many
 * entries have been copied as there were. Errors as above. */
int shard_copy_ahead(struct shard_copy *copy, struct failure *reterr);

/* Copies the rest, when nobody writes to the log any more, checks that both are equal, and removes
 * the original. If there is no original, this has already been done. 0; -EIO: they differ; else as
 * above. */
int shard_copy_finish(struct shard_copy *copy, struct failure *reterr);
