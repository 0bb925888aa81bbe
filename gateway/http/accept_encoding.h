/* gateway/http/accept_encoding.h - which codings an Accept-Encoding header permits (RFC 9110,
 * 12.5.3).
 *
 * A pure function. Malformed elements are ignored. */
#pragma once

#include <stdbool.h>

#include "gateway/http/http.h"

struct accept_encoding {
    int gzip, zstd, identity; /* weights, 0 to 1000; 0: not acceptable */
    bool names_identity;
};

/* Without a header everything is acceptable, but no coding was asked for: then gzip and zstd weigh
 * 0. A coding by its name has precedence over `*`; x-gzip is gzip. */
struct accept_encoding accept_encoding_read(const struct http_list *lines);

/* Whether a response that is also available without a coding should use the one with this weight.
 * If identity is not named, a client that accepts the coding prefers it. */
static inline bool accept_encoding_prefers(const struct accept_encoding *accept, int weight)
{
    return weight > 0 && (!accept->names_identity || weight >= accept->identity);
}
