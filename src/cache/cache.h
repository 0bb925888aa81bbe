/* src/cache/cache.h - what never changes, at hand in memcached.
 *
 *     r = sl_cache_open("memcached://10.0.0.5,10.0.0.6", meta.database_id, &options, &cache,
 *                       &failure);
 *     sl_cache_get(cache, items, count);            those it has get their value
 *     sl_cache_put(cache, items, count, read_ms);   what was missing, read elsewhere
 *     sl_cache_items_done(items, count);
 *     sl_cache_close(cache);
 *
 * The cache decides nothing. It holds of posts and users only what is the same for ever and for
 * everybody (src/cache/cached_rows.h says what); whether there is such a post, who may see it, what
 * its author is called and how many like it, Redis says with every read. So no value is ever out of
 * date, and there is nothing that a writer would have to invalidate in time: a writer that dies, a
 * cache that loses or keeps what it was told, a reader that fills late change nothing that is
 * shown.
 *
 * One thing is forgotten in the end, even by Redis: that a post of the archive was deleted, a day
 * after the archive has erased it. Therefore a value says when it was read, and is good for
 * SL_CACHE_TTL_MAX_MS at most, which is half of that day: a copy is older than the erasure, or it
 * could not have been read. Clocks may differ by the other half.
 *
 * To get, put and drop cannot fail: what goes wrong is a miss, and counted. A server that does not
 * answer within `timeout_ms` is left alone for `rest_ms`; so is one that answers nonsense.
 * What comes from a server is taken only when it carries the mark of the database, of what was
 * asked for and of its bytes (SipHash keyed by the database's id), so that servers may be shared by
 * databases, mix things up, or be written to by somebody who has no access to Redis.
 *
 * An open cache is a connection to each server and belongs to one thread; calls may block for
 * about `timeout_ms` each. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum {
    SL_CACHE_TTL_MS = 3600000, /* how long a value is good unless told otherwise */
    SL_CACHE_TTL_MAX_MS = 43200000,
    SL_CACHE_TIMEOUT_MS = 50,
    SL_CACHE_REST_MS = 1000,
    SL_CACHE_SERVERS_MAX = 16,
    SL_CACHE_VALUE_MAX = 1000000, /* bytes; what is longer is not kept */
};

struct sl_cache;

enum sl_cache_kind { SL_CACHE_POST, SL_CACHE_USER };

struct sl_cache_item {
    enum sl_cache_kind kind;
    uint64_t id;
    struct sl_slice value; /* absent: not known */
};

struct sl_cache_options {
    uint64_t ttl_ms;     /* 0: SL_CACHE_TTL_MS; more than the most counts as that */
    uint32_t timeout_ms; /* 0: SL_CACHE_TIMEOUT_MS */
    uint32_t rest_ms;    /* 0: SL_CACHE_REST_MS */
    /* A server has failed, for the reason `why`, or (NULL) answers again. NULL: nobody wants to
     * know. */
    void (*tell)(void *context, const char *server, const char *why);
    void *context;
};

/* What has been done with the cache since it was opened. */
struct sl_cache_counts {
    uint64_t hits, misses; /* of what was asked for */
    uint64_t refused;      /* of the misses: there was a value, but none of ours, or too old */
    uint64_t skipped;      /* of the misses: the server was being left alone */
    uint64_t stored;       /* values put */
    uint64_t dropped;      /* values taken out */
    uint64_t errors;       /* times that a server failed, or did not take a value */
    uint64_t hit_bytes, stored_bytes;
};

/* Could this be the URL of a cache: memcached://HOST[:PORT][,HOST[:PORT]...] or
 * memcached:///PATH/OF/SOCKET? 0; -EINVAL. */
int sl_cache_check(const char *url, struct failure *reterr);

/* Connects to nobody yet. `database_id`: as in sl_meta. 0; -EINVAL: as above; -ENOMEM. */
int sl_cache_open(const char *url, const char *database_id, const struct sl_cache_options *options,
                  struct sl_cache **ret_cache, struct failure *reterr);
void sl_cache_close(struct sl_cache *cache); /* NULL is fine */

/* Fills in the values, which are absent, as far as they are known; sl_cache_items_done() frees
 * them. */
void sl_cache_get(struct sl_cache *cache, struct sl_cache_item *items, size_t count);
void sl_cache_items_done(struct sl_cache_item *items, size_t count);
/* Keeps those that have a value. `read_ms`: wall clock, before they were read. */
void sl_cache_put(struct sl_cache *cache, const struct sl_cache_item *items, size_t count,
                  uint64_t read_ms);
/* Takes them out. That is for tidiness: what is deleted shall not lie about until its time is up.
 */
void sl_cache_drop(struct sl_cache *cache, const struct sl_cache_item *items, size_t count);

/* Has every server failed when it was last asked? To find out otherwise, ask or put. */
bool sl_cache_is_away(const struct sl_cache *cache);

const struct sl_cache_counts *sl_cache_counts(const struct sl_cache *cache);
