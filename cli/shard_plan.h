/* cli/shard_plan.h - which shards go to which masters, so that all have even shares? Pure.
 *
 *     shard_plan_make(&plan);
 *     for each shard: plan.node[shard] is where it belongs now */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/model/id.h"

struct shard_plan {
    uint32_t shards;
    size_t nodes;
    const bool *is_leaving;       /* by node: gets nothing, and keeps nothing; not all of them */
    double weight[SL_SHARDS_MAX]; /* what a shard counts, from 0 on */
    size_t node[SL_SHARDS_MAX];   /* that has the shard, below `nodes` */
};

/* Moves few shards rather than many: a master whose weights are up to a twentieth above the even
 * share is left alone. Shards that weigh next to nothing are evened out by their number. */
void shard_plan_make(struct shard_plan *plan);

/* Of the shards on a node: their weights, and how many they are. */
double shard_plan_weight(const struct shard_plan *plan, size_t node);
uint32_t shard_plan_count(const struct shard_plan *plan, size_t node);
