/* gateway/http/accept_encoding.h - what does an Accept-Encoding header permit? (RFC 9110, 12.5.3)
 *
 * Pure. Elements that are malformed count as not sent. */
#pragma once

#include <stdbool.h>

#include "gateway/http/http.h"

struct accept_encoding {
    int gzip, zstd, identity; /* weights, 0 to 1000; 0: not acceptable */
    bool names_identity;
};

/* Without a header everything is acceptable, but nobody has asked for another coding: they
 * weigh 0 then. The named coding goes before `*`; x-gzip is gzip. */
struct accept_encoding accept_encoding_read(const struct http_list *lines);

/* Shall the answer have the coding of this weight, where it is there without any, too? Where
 * identity is not named, whoever takes the coding prefers it. */
static inline bool accept_encoding_prefers(const struct accept_encoding *accept, int weight)
{
    return weight > 0 && (!accept->names_identity || weight >= accept->identity);
}
