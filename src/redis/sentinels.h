/* src/redis/sentinels.h - the sentinels of an address, for a connection that blocks: which Redis is
 * the master, and is it still?
 *
 * The one that has answered is listened to from then on, so that a master which was replaced and
 * lives on is left as soon as that is known. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/redis/redis_address.h"

struct sl_sentinels;

/* `address` has sentinels, outlives this and is not copied; each of them may take `timeout_ms` to
 * answer. NULL: out of memory. */
struct sl_sentinels *sl_sentinels_new(const struct sl_redis_address *address, uint32_t timeout_ms);
void sl_sentinels_free(struct sl_sentinels *sentinels);

/* Asks one after the other, from the one that knew last. 0; -ECONNREFUSED: nobody knows, and
 * *reterr says why. */
int sl_sentinels_find(struct sl_sentinels *sentinels, struct sl_redis_endpoint *ret_master,
                      struct failure *reterr);

/* Once a master was found: is it another one by now? Then that is *ret_master. Waits for nobody,
 * unless the sentinel has gone: then they are asked again, at once and every few seconds. `now_ms`:
 * clock_monotonic_ms(). */
bool sl_sentinels_have_moved(struct sl_sentinels *sentinels, uint64_t now_ms,
                             struct sl_redis_endpoint *ret_master);
