/* gateway/metrics/verdict.h - what is wrong with the server, in words, determined by limits.
 *
 *     part                 warning                      critical
 *     redis_silent         0.4 s without an answer      2 s, or a worker does not hear it
 *     redis_slow           50 ms                        500 ms
 *     workers, intake      one died in the last 20 s    one is down
 *     writes, reads, ...   tasks, archive, keys         streams, reads, writes, shards fail
 *     behind               a stream is 5 s behind       30 s
 *     owed                 it has grown for 30 s
 *     cpu                  a process uses 80 % of a core            95 %
 *     memory               80 % of a limit              95 %
 *     gaps                 one was reported in the last 15 minutes
 *     tokens, refusals     one per second is refused
 *
 * Each part has one sentence: what is affected, how much, and what it needs. It contains no host,
 * path or name, so that everybody may read it. */
#pragma once

#include "gateway/metrics/reading.h"

enum verdict_level {
    VERDICT_OK,
    VERDICT_NOTE, /* an incident that is not a problem */
    VERDICT_WARNING,
    VERDICT_CRITICAL
};

enum verdict_part {
    VERDICT_WORKERS,
    VERDICT_INTAKE,
    VERDICT_REDIS_SILENT,
    VERDICT_STREAMS,
    VERDICT_READS,
    VERDICT_WRITES,
    VERDICT_SHARDS,
    VERDICT_BEHIND,
    VERDICT_MEMORY,
    VERDICT_CPU,
    VERDICT_GAPS,
    VERDICT_REDIS_SLOW,
    VERDICT_OWED,
    VERDICT_TOKENS,
    VERDICT_REFUSALS,
    VERDICT_TASKS,
    VERDICT_ARCHIVE,
    VERDICT_KEYS,
    VERDICT_CATCHING_UP, /* the following are notes */
    VERDICT_REPAIRED,
    VERDICT_PARTS
};

enum { VERDICT_TEXT_SIZE = 240, VERDICT_VERY_LATE_MS = 30000 };

struct finding {
    enum verdict_level level;
    uint64_t weight;   /* greater is worse; compares findings of the same part and level */
    uint64_t began_ms; /* Unix time, if known; 0: when it was found */
    uint64_t over_ms;  /* Unix time when its cause was over; 0: not yet */
    char text[VERDICT_TEXT_SIZE]; /* empty for VERDICT_OK */
};

/* `before`: the totals when the part was last well. */
void verdict_judge(enum verdict_part part, const struct reading *reading,
                   const struct reading_totals *before, struct finding *ret_finding);

/* Writes the sentence for when nothing is wrong. */
void verdict_say_well(const struct reading *reading, char ret_text[static VERDICT_TEXT_SIZE]);

const char *verdict_part_name(enum verdict_part part);
const char *verdict_level_name(enum verdict_level level);
