/* src/cache/cache_memcached.h - a connection to one memcached server, using the text protocol.
 *
 * This replaces libmemcached, which (1.1) terminates the program on an invalid answer, and limits
 * the time of each step of an answer but not the total.
 *
 * The connection is opened when it is first needed. Any error closes it, so that a late answer is
 * never taken for that of another request; the next request opens it again. Each call may take
 * `timeout_ms` in total, however many items it concerns, plus the time to look up a host name. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

struct sl_memcached;

/* `port` 0: `host` is the path of a Unix socket. Both texts are borrowed as long as the connection
 * exists. `max_bytes`: the size limit of a value. NULL: out of memory. */
struct sl_memcached *sl_memcached_new(const char *host, uint16_t port, uint32_t timeout_ms,
                                      size_t max_bytes);
void sl_memcached_free(struct sl_memcached *server); /* NULL is allowed */

/* Called with each key and value that the server returns, whatever they are. The slices are valid
 * during the call. */
typedef void (*sl_memcached_found_fn)(void *context, struct sl_slice key, struct sl_slice value);

/* Requests all keys. 0; -EIO: the server failed, keys not reported yet are unknown; -ENOMEM. */
int sl_memcached_get(struct sl_memcached *server, const struct sl_slice *keys, size_t count,
                     sl_memcached_found_fn found, void *context, struct failure *reterr);
/* *ret_stored is the number of values stored; fewer than `count` if the server has no room for one.
 * 0; -EIO; -ENOMEM. */
int sl_memcached_put(struct sl_memcached *server, const struct sl_slice *keys,
                     const struct sl_slice *values, size_t count, uint32_t ttl_s,
                     size_t *ret_stored, struct failure *reterr);
/* 0, also if there is no such key; -EIO; -ENOMEM. */
int sl_memcached_drop(struct sl_memcached *server, const struct sl_slice *keys, size_t count,
                      struct failure *reterr);
