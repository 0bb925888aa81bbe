/* gateway/metrics/health.h - which parts of this server work, since when, and why one does not.
 *
 * Each worker, the intake process, and the process that fetches keys record their state in their
 * slot of the metrics, which all processes share; readers combine all slots. A part fails if it
 * fails for any of them. State that does not concern a single worker (writes are refused, tasks
 * wait, the archive is away) is recorded only by worker 0; the others leave it unknown. Each slot
 * has one writer; readers never see a partial record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/sequence_lock.h"

struct metrics;
struct metrics_board;

enum health_part {
    HEALTH_STREAMS, /* live events arrive, and the log can be read */
    HEALTH_READS,   /* by the API */
    HEALTH_WRITES,  /* by the API: Redis accepts them */
    HEALTH_TASKS,   /* tasks are run */
    HEALTH_ARCHIVE,
    HEALTH_SHARDS, /* of a cluster: the live channels of all shards are received, in both ways */
    HEALTH_KEYS,   /* those of identity providers are fetched */
    HEALTH_PART_COUNT
};

/* A part has the highest of the workers' states. */
enum health_state { HEALTH_UNKNOWN, HEALTH_OFF, HEALTH_OK, HEALTH_FAILING };

enum { HEALTH_WHY_SIZE = 200 };

struct health {
    enum health_state state;
    uint64_t since_ms;         /* Unix time; 0: HEALTH_UNKNOWN */
    char why[HEALTH_WHY_SIZE]; /* empty unless HEALTH_FAILING */
};

struct health_slot {
    struct sequence_lock lock;
    struct health health;
};

/* `why` is a sentence for HEALTH_FAILING, truncated if too long; otherwise ignored. `now_ms`: Unix
 * time. Also sets the gauge. true: the state has changed. */
bool health_set(struct metrics *metrics, enum health_part part, enum health_state state,
                const char *why, uint64_t now_ms);

/* The worker has died: its state no longer counts. */
void health_forget(struct metrics *metrics);

/* Combines the state of the part over all workers. */
void health_read(const struct metrics_board *board, enum health_part part,
                 struct health *ret_health);

/* A JSON object: for each part `state`, `since_ms` and `why`, the last two may be null.
 * `with_reasons`: show why a part fails, which may contain hosts, paths and messages of Redis or
 * the archive; otherwise `why` says where the reason is shown. */
void health_print(const struct metrics_board *board, bool with_reasons, struct buffer *ret_json);
