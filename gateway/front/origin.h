/* gateway/front/origin.h - which web pages may use the streams?
 *
 * A browser names the page's origin: in CORS requests, and when it opens a WebSocket, which CORS
 * does not cover. Programs send none and are not concerned. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

struct origin_policy {
    bool any;                   /* development mode */
    const char *const *allowed; /* as in "https://example.org"; the scheme and host of `host` too */
    unsigned allowed_count;
};

/* On the list. Such a page may send credentials along: what any page may use, it may not. */
bool origin_is_listed(const struct origin_policy *policy, struct sl_slice origin);

/* The headers that a page of another origin wants to send, as they may be allowed: the names are
 * given back if they are at most ORIGIN_HEADERS_MAX bytes of names and commas, else what the API
 * and the streams have a use for. */
struct sl_slice origin_allowed_headers(struct sl_slice wanted);

enum { ORIGIN_HEADERS_MAX = 1024 };

/* No origin at all, one on the list, or the page that this server itself served under `host`. */
bool origin_is_allowed(const struct origin_policy *policy, struct sl_slice origin,
                       struct sl_slice host);
