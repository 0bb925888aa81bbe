/* cli/shard_plan.h - assigns shards to masters so that their loads are even. Pure functions.
 *
 *     shard_plan_make(&plan);
 *     for each shard: plan.node[shard] is where it should be */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/model/id.h"

struct shard_plan {
    uint32_t shards;
    size_t nodes;
    const bool *is_leaving;       /* for each node: gets nothing, and keeps nothing; not true for
                                     all */
    double weight[SL_SHARDS_MAX]; /* load of a shard, 0 or more */
    size_t node[SL_SHARDS_MAX];   /* that has the shard, below `nodes` */
};

/* Moves as few shards as possible: a master up to a twentieth above the even share is left alone.
 * Shards with almost no load are distributed by their number. */
void shard_plan_make(struct shard_plan *plan);

/* The total weight of the shards on a node, and their number. */
double shard_plan_weight(const struct shard_plan *plan, size_t node);
uint32_t shard_plan_count(const struct shard_plan *plan, size_t node);
