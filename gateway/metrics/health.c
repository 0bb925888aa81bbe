/* health.c - a record for each worker and part, protected by a sequence lock.
 *
 * The records are in the workers' slots of the metrics. Writes are rare, because an unchanged
 * record is not written again. A part takes about 200 bytes of each slot. */
#include "gateway/metrics/health.h"

#include <stdio.h>
#include <string.h>

#include "gateway/metrics/metrics.h"

#define WITHHELD "withheld: in the log, at ops-listen, or with a token with scope admin"

enum { READ_TRIES = 8 };

static const char *const part_names[] = {
    [HEALTH_STREAMS] = "streams", [HEALTH_READS] = "reads",     [HEALTH_WRITES] = "writes",
    [HEALTH_TASKS] = "tasks",     [HEALTH_ARCHIVE] = "archive", [HEALTH_SHARDS] = "shards",
    [HEALTH_KEYS] = "keys",
};

static const char *const state_names[] = {
    [HEALTH_UNKNOWN] = "unknown",
    [HEALTH_OFF] = "off",
    [HEALTH_OK] = "ok",
    [HEALTH_FAILING] = "failing",
};

static void write_slot(struct health_slot *slot, const struct health *health)
{
    sequence_lock_begin_write(&slot->lock);
    slot->health = *health;
    sequence_lock_end_write(&slot->lock);
}

/* If a slot is being written, or a crash left it half written, its state is unknown. */
static void read_slot(const struct health_slot *slot, struct health *ret_health)
{
    for (unsigned i = 0; i < READ_TRIES; i++) {
        uint32_t sequence = sequence_lock_read(&slot->lock);

        *ret_health = slot->health;
        if (sequence_lock_was_still(&slot->lock, sequence))
            return;
    }
    *ret_health = (struct health){0};
}

bool health_set(struct metrics *metrics, enum health_part part, enum health_state state,
                const char *why, uint64_t now_ms)
{
    struct health_slot *slot = &metrics->health[part];
    struct health health = {.state = state, .since_ms = now_ms};
    bool is_new = slot->health.state != state;

    if (!is_new)
        health.since_ms = slot->health.since_ms;
    if (state == HEALTH_FAILING)
        snprintf(health.why, sizeof(health.why), "%s", why);
    if (!is_new && strcmp(health.why, slot->health.why) == 0)
        return false;
    write_slot(slot, &health);
    metric_set(metrics, metric_at(METRIC_FAILING_STREAMS, part), state == HEALTH_FAILING);
    return is_new;
}

void health_forget(struct metrics *metrics)
{
    for (unsigned i = 0; i < HEALTH_PART_COUNT; i++)
        write_slot(&metrics->health[i], &(struct health){0});
}

/* A failure lasts since it first occurred; a working part works since it did for all. */
static bool outweighs(const struct health *health, const struct health *other)
{
    if (health->state != other->state)
        return health->state > other->state;
    return health->state == HEALTH_FAILING ? health->since_ms < other->since_ms
                                           : health->since_ms > other->since_ms;
}

static void weigh(const struct metrics *slot, enum health_part part, struct health *heaviest)
{
    struct health health;

    read_slot(&slot->health[part], &health);
    if (outweighs(&health, heaviest))
        *heaviest = health;
}

void health_read(const struct metrics_board *board, enum health_part part,
                 struct health *ret_health)
{
    *ret_health = (struct health){0};
    for (unsigned i = 0; i < metrics_workers(board); i++)
        weigh(metrics_read_slot(board, i), part, ret_health);
    weigh(metrics_read_intake(board), part, ret_health);
    weigh(metrics_read_keys(board), part, ret_health);
}

void health_print(const struct metrics_board *board, bool with_reasons, struct buffer *ret_json)
{
    struct health health;

    for (unsigned i = 0; i < HEALTH_PART_COUNT; i++) {
        health_read(board, (enum health_part)i, &health);
        buffer_append_format(ret_json,
                             "%c\"%s\":{\"state\":\"%s\",\"since_ms\":", i == 0 ? '{' : ',',
                             part_names[i], state_names[health.state]);
        if (health.since_ms)
            buffer_append_format(ret_json, "%llu", (unsigned long long)health.since_ms);
        else
            buffer_append_str(ret_json, "null");
        buffer_append_str(ret_json, ",\"why\":");
        if (health.why[0])
            buffer_append_json_string(ret_json, sl_slice_str(with_reasons ? health.why : WITHHELD));
        else
            buffer_append_str(ret_json, "null");
        buffer_append_char(ret_json, '}');
    }
    buffer_append_char(ret_json, '}');
}
