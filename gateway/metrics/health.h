/* gateway/metrics/health.h - which parts of this server work, since when, and why one does not.
 *
 * Each worker, the intake process, and the one that fetches keys, notes what it finds in its slot of the metrics, which all
 * processes share; whoever is asked reads the slots of all. A part fails when it does for any of
 * them. Of what fails beyond one worker (writes are refused, tasks wait, the archive is away)
 * worker 0 alone knows; the others leave it open. One writer a slot; a reader never sees half of a
 * note. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/sequence_lock.h"

struct metrics;
struct metrics_board;

enum health_part {
    HEALTH_STREAMS, /* live events come, and the log can be read */
    HEALTH_READS,   /* of the API */
    HEALTH_WRITES,  /* of the API: Redis takes them */
    HEALTH_TASKS,   /* somebody runs them */
    HEALTH_ARCHIVE,
    HEALTH_SHARDS, /* of a cluster: the live channels of all are heard, in both ways */
    HEALTH_KEYS,   /* those of identity providers are fetched */
    HEALTH_PART_COUNT
};

/* A part is as the highest of what the workers say. */
enum health_state { HEALTH_UNKNOWN, HEALTH_OFF, HEALTH_OK, HEALTH_FAILING };

enum { HEALTH_WHY_SIZE = 200 };

struct health {
    enum health_state state;
    uint64_t since_ms;         /* Unix time; 0: HEALTH_UNKNOWN */
    char why[HEALTH_WHY_SIZE]; /* empty, but for HEALTH_FAILING */
};

struct health_slot {
    struct sequence_lock lock;
    struct health health;
};

/* `why` is a sentence for HEALTH_FAILING, cut where it is too long; else not looked at. `now_ms`:
 * Unix time. Also sets the gauge. true: the state has changed. */
bool health_set(struct metrics *metrics, enum health_part part, enum health_state state,
                const char *why, uint64_t now_ms);

/* The worker is dead: what it found counts no more. */
void health_forget(struct metrics *metrics);

/* As all workers find the part. */
void health_read(const struct metrics_board *board, enum health_part part,
                 struct health *ret_health);

/* A JSON object: by part `state`, `since_ms` and `why`, the last two or one of them null.
 * `with_reasons`: why a part fails may be told, which names hosts, paths and the words of Redis or
 * the archive; otherwise `why` says where it is told. */
void health_print(const struct metrics_board *board, bool with_reasons, struct buffer *ret_json);
