/* src/call/shard_calls.h - one question about many things: a call for each shard that has some of
 * them.
 *
 * A builder of many (sl_users_calls(), sl_posts_calls()) fills it. All its calls go out together,
 * so that one round trip answers them:
 *
 *     struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
 *
 *     r = sl_posts_calls(&calls, &meta, reader, ids, count, &failure);
 *     r = sl_redis_link_run_many(link, calls.calls, calls.count, replies, &failure);     (blocking)
 *     ... or each of calls.calls by itself, on an event loop
 *
 * The reply to calls.calls[k] has a row for each of sl_shard_calls_items(&calls, k, &item_count),
 * in this order; an item is the index of a thing in what was asked. Each call is one script: some
 * hundreds of things in a shard are plenty for it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "src/call/call.h"

struct sl_shard_calls {
    struct sl_call *calls; /* `count` of them, each for another shard; 0: nothing was asked */
    size_t count;

    /* private */
    size_t calls_room;
    size_t item_count;
    uint32_t *items; /* those of the first call, then those of the second, ... */
    uint32_t *ends;  /* where in `items` those of each call end */
};

#define SL_SHARD_CALLS_INIT ((struct sl_shard_calls){.count = 0})

SL_EXPORT void sl_shard_calls_done(struct sl_shard_calls *calls);

/* `call` < calls->count. */
SL_EXPORT const uint32_t *sl_shard_calls_items(const struct sl_shard_calls *calls, size_t call,
                                               size_t *ret_count);
