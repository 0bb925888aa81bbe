/* gateway/provider/cache_age.h - how long may an answer be used? By RFC 9111, as far as it matters
 * for a document that is fetched again and again. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Starts as {0}. */
struct cache_age {
    bool has_max_age;
    bool is_stale; /* no-store, no-cache */
    uint64_t max_age_s, age_s;
};

/* A header field of the answer; others are not looked at, and what is malformed counts as not sent. */
void cache_age_read(struct cache_age *age, struct sl_slice name, struct sl_slice value);

/* How long from now, within the bounds; `usual_ms` where the answer does not say. */
uint64_t cache_age_left_ms(const struct cache_age *age, uint64_t usual_ms, uint64_t least_ms,
                           uint64_t most_ms);
