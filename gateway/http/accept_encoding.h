/* gateway/http/accept_encoding.h - what does an Accept-Encoding header permit? (RFC 9110, 12.5.3)
 *
 * Pure. Elements that are malformed count as not sent. */
#pragma once

#include <stdbool.h>

#include "gateway/http/http.h"

struct accept_encoding {
    int gzip, identity; /* weights, 0 to 1000; 0: not acceptable */
    bool names_identity;
};

/* Without a header everything is acceptable, but nobody has asked for gzip: it weighs 0 then. The
 * named coding goes before `*`; x-gzip is gzip. */
struct accept_encoding accept_encoding_read(const struct http_list *lines);

/* Shall the answer be gzip, where both forms are there? Where identity is not named, whoever takes
 * gzip prefers it. */
static inline bool accept_encoding_prefers_gzip(const struct accept_encoding *accept)
{
    return accept->gzip > 0 && (!accept->names_identity || accept->gzip >= accept->identity);
}
