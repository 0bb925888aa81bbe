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

/* No origin at all, one on the list, or the page that this server itself served under `host`. */
bool origin_is_allowed(const struct origin_policy *policy, struct sl_slice origin,
                       struct sl_slice host);
