/* src/call/shard_calls.h - one read of many items: one call for each shard that holds some of them.
 *
 * A builder for many items (sl_users_calls(), sl_posts_calls()) fills it. All calls are sent
 * together, so that they take one round trip:
 *
 *     struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
 *     r = sl_posts_calls(&calls, &meta, reader, ids, count, &failure);
 *     r = sl_redis_link_run_many(link, calls.calls, calls.count, replies, &failure);     (blocking)
 *     ... or each of calls.calls by itself, on an event loop
 *
 * The reply to calls.calls[k] has one row for each of sl_shard_calls_items(&calls, k, &item_count),
 * in this order; an item is an index into what was asked for. Each call is one script; do not ask
 * for more than a few hundred items of a shard at once. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "src/call/call.h"

struct sl_shard_calls {
    struct sl_call *calls; /* `count` calls, each for another shard; 0: nothing was asked for */
    size_t count;

    /* private */
    size_t calls_room;
    size_t item_count;
    uint32_t *items; /* the items of the first call, then those of the second, ... */
    uint32_t *ends;  /* the end of each call's part of `items` */
};

#define SL_SHARD_CALLS_INIT ((struct sl_shard_calls){.count = 0})

SL_EXPORT void sl_shard_calls_done(struct sl_shard_calls *calls);

/* Requires `call` < calls->count. */
SL_EXPORT const uint32_t *sl_shard_calls_items(const struct sl_shard_calls *calls, size_t call,
                                               size_t *ret_count);
