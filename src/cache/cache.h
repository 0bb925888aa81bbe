/* src/cache/cache.h - a memcached cache of data that never changes.
 *
 *     r = sl_cache_open("memcached://10.0.0.5,10.0.0.6", meta.database_id, &options, &cache,
 *                       &failure);
 *     sl_cache_get(cache, items, count);            sets the values of items in the cache
 *     sl_cache_put(cache, items, count, read_ms);   stores what was missing, read elsewhere
 *     sl_cache_items_done(items, count);
 *     sl_cache_close(cache);
 *
 * The cache holds only what is permanent and the same for all readers (see
 * src/cache/cached_rows.h). Redis decides with every read whether a post exists, who may see it,
 * the name of its author and the number of likes. So values are never out of date, and writers need
 * not invalidate them: a writer that dies, a cache that loses or keeps entries, and a reader that
 * fills late do not change what is shown.
 *
 * There is one exception, because even Redis forgets that an archived post was deleted, one day
 * after the archive has erased it. Therefore a value contains the time at which it was read, and is
 * valid for at most SL_CACHE_TTL_MAX_MS, half of that day: a copy is older than the erasure, or it
 * could not have been read. Clocks may differ by the other half.
 *
 * Get, put and drop cannot fail: an error is a miss, and is counted. A server that does not answer
 * within `timeout_ms`, or sends an invalid answer, is not used for `rest_ms`.
 *
 * A value is accepted only with a valid SipHash, keyed by the database's id, of the database, the
 * requested item and the bytes. So servers may be shared by several databases, may return wrong
 * entries, and may be writable for people who have no access to Redis.
 *
 * An open cache has one connection to each server and belongs to one thread. Calls may block for
 * about `timeout_ms` each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum {
    SL_CACHE_TTL_MS = 3600000, /* the default of ttl_ms */
    SL_CACHE_TTL_MAX_MS = 43200000,
    SL_CACHE_TIMEOUT_MS = 50,
    SL_CACHE_REST_MS = 1000,
    SL_CACHE_SERVERS_MAX = 16,
    SL_CACHE_VALUE_MAX = 1000000, /* bytes; longer values are not stored */
};

struct sl_cache;

enum sl_cache_kind { SL_CACHE_POST, SL_CACHE_USER };

struct sl_cache_item {
    enum sl_cache_kind kind;
    uint64_t id;
    struct sl_slice value; /* absent: not known */
};

struct sl_cache_options {
    uint64_t ttl_ms;     /* 0: SL_CACHE_TTL_MS; greater values are reduced to SL_CACHE_TTL_MAX_MS */
    uint32_t timeout_ms; /* 0: SL_CACHE_TIMEOUT_MS */
    uint32_t rest_ms;    /* 0: SL_CACHE_REST_MS */
    /* Called when a server has failed, with the reason `why`, or with NULL when it answers again.
     * May be NULL. */
    void (*tell)(void *context, const char *server, const char *why);
    void *context;
};

/* Counters since the cache was opened. */
struct sl_cache_counts {
    uint64_t hits, misses; /* of the requested items */
    uint64_t refused;      /* of the misses: the value was not ours or was too old */
    uint64_t skipped;      /* of the misses: the server was not used because it had failed */
    uint64_t stored;       /* values put */
    uint64_t dropped;      /* values removed */
    uint64_t errors;       /* failures of a server, and values that it did not store */
    uint64_t hit_bytes, stored_bytes;
};

/* Checks a URL: memcached://HOST[:PORT][,HOST[:PORT]...] or memcached:///PATH/OF/SOCKET. 0;
 * -EINVAL. */
int sl_cache_check(const char *url, struct failure *reterr);

/* Does not connect yet. `database_id`: as in sl_meta. 0; -EINVAL: as sl_cache_check(); -ENOMEM. */
int sl_cache_open(const char *url, const char *database_id, const struct sl_cache_options *options,
                  struct sl_cache **ret_cache, struct failure *reterr);
void sl_cache_close(struct sl_cache *cache); /* NULL is allowed */

/* Sets the values, absent before, of the items that the cache has. sl_cache_items_done() frees
 * them. */
void sl_cache_get(struct sl_cache *cache, struct sl_cache_item *items, size_t count);
void sl_cache_items_done(struct sl_cache_item *items, size_t count);
/* Stores the items that have a value. `read_ms`: the wall clock before they were read. */
void sl_cache_put(struct sl_cache *cache, const struct sl_cache_item *items, size_t count,
                  uint64_t read_ms);
/* Removes the items. This is not required for correctness: it removes deleted data before it
 * expires. */
void sl_cache_drop(struct sl_cache *cache, const struct sl_cache_item *items, size_t count);

/* Whether every server failed at its last request. Only further requests can change this. */
bool sl_cache_is_away(const struct sl_cache *cache);

const struct sl_cache_counts *sl_cache_counts(const struct sl_cache *cache);
