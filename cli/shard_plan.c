/* shard_plan.c - a greedy algorithm: always makes the move that helps most.
 *
 * First the masters that leave are emptied, the heaviest shard first, each to the master with the
 * least load. Then shards are moved from masters above their share to the lightest one: of all such
 * moves the one that reduces the sum of the squares of the masters' weights most, until none does
 * or no master is above its share. The sum decreases with every move, so this terminates. Finally
 * shards with almost no weight are moved from the master with the most shards to the one with the
 * fewest.
 *
 * The cost is masters x 64 shards x moves, and there are about as many moves as shards. */
#include "cli/shard_plan.h"

#include <assert.h>

/* In relation to the even share: how much more a master may have, and which weight of a shard is
 * negligible. */
static const double TOLERANCE = 0.05, NOTHING = 0.01;

double shard_plan_weight(const struct shard_plan *plan, size_t node)
{
    double sum = 0;

    for (uint32_t shard = 0; shard < plan->shards; shard++)
        sum += plan->node[shard] == node ? plan->weight[shard] : 0;
    return sum;
}

uint32_t shard_plan_count(const struct shard_plan *plan, size_t node)
{
    uint32_t count = 0;

    for (uint32_t shard = 0; shard < plan->shards; shard++)
        count += plan->node[shard] == node;
    return count;
}

static double sum_of(const struct shard_plan *plan)
{
    double sum = 0;

    for (uint32_t shard = 0; shard < plan->shards; shard++)
        sum += plan->weight[shard];
    return sum;
}

static size_t staying(const struct shard_plan *plan)
{
    size_t count = 0;

    for (size_t node = 0; node < plan->nodes; node++)
        count += !plan->is_leaving[node];
    assert(count > 0);
    return count;
}

/* Of the masters that stay, the one with the least weight, and of those the one with the fewest
 * shards. */
static size_t find_lightest(const struct shard_plan *plan)
{
    size_t found = plan->nodes;

    for (size_t node = 0; node < plan->nodes; node++) {
        double difference;

        if (plan->is_leaving[node])
            continue;
        difference = found == plan->nodes
                         ? -1
                         : shard_plan_weight(plan, node) - shard_plan_weight(plan, found);
        if (difference < 0 ||
            (difference == 0 && shard_plan_count(plan, node) < shard_plan_count(plan, found)))
            found = node;
    }
    return found;
}

static void empty_leaving(struct shard_plan *plan)
{
    for (;;) {
        uint32_t heaviest = plan->shards;

        for (uint32_t shard = 0; shard < plan->shards; shard++) {
            if (plan->is_leaving[plan->node[shard]] &&
                (heaviest == plan->shards || plan->weight[shard] > plan->weight[heaviest]))
                heaviest = shard;
        }
        if (heaviest == plan->shards)
            return;
        plan->node[heaviest] = find_lightest(plan);
    }
}

/* The shard whose move to `to` helps most; plan->shards: none does. */
static uint32_t find_best(const struct shard_plan *plan, size_t to)
{
    const double share = sum_of(plan) / (double)staying(plan);
    const double filled = shard_plan_weight(plan, to);
    uint32_t best = plan->shards;
    double most = share * share * 1e-9; /* smaller differences are rounding errors */

    for (uint32_t shard = 0; shard < plan->shards; shard++) {
        const double weight = plan->weight[shard];
        const double full = shard_plan_weight(plan, plan->node[shard]);
        const double gain = weight * (full - filled - weight);

        if (full > share * (1 + TOLERANCE) && gain > most) {
            most = gain;
            best = shard;
        }
    }
    return best;
}

static void even_weights(struct shard_plan *plan)
{
    for (;;) {
        const size_t to = find_lightest(plan);
        const uint32_t shard = find_best(plan, to);

        if (shard == plan->shards)
            return;
        plan->node[shard] = to;
    }
}

/* A shard of `node` with negligible weight; plan->shards: there is none. */
static uint32_t find_weightless(const struct shard_plan *plan, size_t node)
{
    const double nothing = NOTHING * sum_of(plan) / plan->shards;

    for (uint32_t shard = 0; shard < plan->shards; shard++) {
        if (plan->node[shard] == node && plan->weight[shard] <= nothing)
            return shard;
    }
    return plan->shards;
}

static void even_counts(struct shard_plan *plan)
{
    for (;;) {
        size_t most = plan->nodes, fewest = plan->nodes;
        uint32_t shard;

        for (size_t node = 0; node < plan->nodes; node++) {
            const uint32_t count = shard_plan_count(plan, node);

            if (plan->is_leaving[node])
                continue;
            if (fewest == plan->nodes || count < shard_plan_count(plan, fewest))
                fewest = node;
            if (find_weightless(plan, node) < plan->shards &&
                (most == plan->nodes || count > shard_plan_count(plan, most)))
                most = node;
        }
        if (most == plan->nodes ||
            shard_plan_count(plan, most) < shard_plan_count(plan, fewest) + 2)
            return;
        shard = find_weightless(plan, most);
        plan->node[shard] = fewest;
    }
}

void shard_plan_make(struct shard_plan *plan)
{
    empty_leaving(plan);
    even_weights(plan);
    even_counts(plan);
}
