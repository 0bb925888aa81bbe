/* src/redis/sentinels.h - the sentinels of an address, for a blocking connection: finds the master
 * and notices when it is replaced.
 *
 * It stays subscribed to the sentinel that answered, so that a replaced master that is still
 * running is left as soon as the sentinel knows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "src/redis/redis_address.h"

struct sl_sentinels;

/* `address` must have sentinels and is borrowed as long as the object exists. Each sentinel may
 * take `timeout_ms` to answer. NULL: out of memory. */
struct sl_sentinels *sl_sentinels_new(const struct sl_redis_address *address, uint32_t timeout_ms);
void sl_sentinels_free(struct sl_sentinels *sentinels);

/* Asks one sentinel after the other, beginning with the last one that knew the master. 0;
 * -ECONNREFUSED: none knows it, and *reterr says why. */
int sl_sentinels_find(struct sl_sentinels *sentinels, struct sl_redis_endpoint *ret_master,
                      struct failure *reterr);

/* After a master was found: whether another one has replaced it, which is then stored in
 * *ret_master. Does not wait, except when the connection to the sentinel is lost: then the
 * sentinels are asked again, at once and every few seconds. `now_ms`: clock_monotonic_ms(). */
bool sl_sentinels_have_moved(struct sl_sentinels *sentinels, uint64_t now_ms,
                             struct sl_redis_endpoint *ret_master);
