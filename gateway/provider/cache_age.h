/* gateway/provider/cache_age.h - how long a response may be used, by RFC 9111, as far as that
 * matters for a document that is fetched regularly. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* Initialize with {0}. */
struct cache_age {
    bool has_max_age;
    bool is_stale; /* no-store or no-cache */
    uint64_t max_age_s, age_s;
};

/* Reads a header field of the response. Other fields are ignored, and malformed ones count as
 * absent. */
void cache_age_read(struct cache_age *age, struct sl_slice name, struct sl_slice value);

/* How long it may be used from now on, limited to `least_ms` to `most_ms`; `usual_ms` if the
 * response does not say. */
uint64_t cache_age_left_ms(const struct cache_age *age, uint64_t usual_ms, uint64_t least_ms,
                           uint64_t most_ms);
