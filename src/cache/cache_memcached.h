/* src/cache/cache_memcached.h - a connection to one memcached, in its text protocol.
 *
 * Our own, because libmemcached (1.1) ends the program when a server answers what it should not,
 * and has a time limit for each step of an answer but none for the whole.
 *
 * The connection is made when it is first needed, and again after it failed: whatever goes wrong
 * ends it, so that an answer that comes late is never taken for another's. Each call has
 * `timeout_ms` for everything (but for looking up a name), however many things it is about. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

struct sl_memcached;

/* `port` 0: `host` is the path of a unix socket. Both texts are borrowed for as long as it lives.
 * `max_bytes`: no value is longer. NULL: out of memory. */
struct sl_memcached *sl_memcached_new(const char *host, uint16_t port, uint32_t timeout_ms,
                                      size_t max_bytes);
void sl_memcached_free(struct sl_memcached *server); /* NULL is fine */

/* Sees what the server says that it has under a key, whatever that is; the slices are its own. */
typedef void (*sl_memcached_found_fn)(void *context, struct sl_slice key, struct sl_slice value);

/* Asks for all keys. 0; -EIO: the server failed, and what has not been found is not known; -ENOMEM.
 */
int sl_memcached_get(struct sl_memcached *server, const struct sl_slice *keys, size_t count,
                     sl_memcached_found_fn found, void *context, struct failure *reterr);
/* *ret_stored values have been taken: all, or fewer when the server has no room for one. 0; -EIO;
 * -ENOMEM. */
int sl_memcached_put(struct sl_memcached *server, const struct sl_slice *keys,
                     const struct sl_slice *values, size_t count, uint32_t ttl_s,
                     size_t *ret_stored, struct failure *reterr);
/* 0, also when there is nothing; -EIO; -ENOMEM. */
int sl_memcached_drop(struct sl_memcached *server, const struct sl_slice *keys, size_t count,
                      struct failure *reterr);
