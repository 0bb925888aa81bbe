#include "tests/support/unlogged.h"

void unlogged_come(struct unlogged_taken *taken)
{
    taken->came_at = now;
    taken->gap_at = taken->skipped = 0;
}

void unlogged_take_gap(struct unlogged_taken *taken)
{
    taken->gap_at = now;
}

static bool may_have(const struct unlogged_taken *taken, const struct wish *wish,
                     const struct fact *fact)
{
    return fact->passed_at && (fact->passed_at > taken->came_at || wish->kind == WISH_HOME) &&
           wish_ever(wish, fact, fact->passed_at, now);
}

static bool must_have(const struct unlogged_taken *taken, const struct wish *wish,
                      const struct fact *fact)
{
    uint64_t judged_at = taken->judged_at[fact - unlogged];

    return fact->passed_at > taken->came_at && fact->passed_at > taken->gap_at &&
           wish_always(wish, fact, fact->passed_at, judged_at ? judged_at : now);
}

const char *unlogged_take(struct unlogged_taken *taken, const struct wish *wish,
                          const struct fact *fact)
{
    bool *has_had = &taken->has_had[fact - unlogged];

    if (*has_had)
        return "unlogged, and sent twice";
    *has_had = true;
    return may_have(taken, wish, fact) ? NULL : "unlogged, and foreign or from before it came";
}

void unlogged_pass_by(struct unlogged_taken *taken, const struct fact *fact)
{
    for (size_t i = 0; i < unlogged_count; i++) {
        uint64_t passed_at = unlogged[i].passed_at;

        if (passed_at && passed_at < fact->passed_at && !taken->judged_at[i])
            taken->judged_at[i] = now;
    }
}

const struct fact *unlogged_missing(const struct unlogged_taken *taken, const struct wish *wish)
{
    for (size_t i = 0; i < unlogged_count; i++) {
        if (!taken->has_had[i] && must_have(taken, wish, &unlogged[i]))
            return &unlogged[i];
    }
    return NULL;
}

bool unlogged_were_skipped(const struct unlogged_taken *taken, const struct wish *wish)
{
    uint64_t least = 0, most = 0;

    for (size_t i = 0; i < unlogged_count; i++) {
        least += must_have(taken, wish, &unlogged[i]);
        most += may_have(taken, wish, &unlogged[i]);
    }
    return taken->skipped >= least && taken->skipped <= most;
}
