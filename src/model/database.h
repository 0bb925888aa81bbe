/* src/model/database.h - which database this is, and into how many shards it is divided.
 *
 * A plain value. src/database/meta.h reads it from Redis, and most call builders take it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SL_DATABASE_ID_SIZE = 33 };

struct sl_meta {
    char database_id[SL_DATABASE_ID_SIZE]; /* 32 hex digits, random */
    uint32_t shards;                       /* 1 .. 64 */
    bool is_new;                           /* created by this call */
    bool is_clustered;                     /* in a Redis Cluster: live events are published with
                                              SPUBLISH */
    uint64_t clock_until_ms;               /* of the shard that was asked; see database_clock.h */
};
