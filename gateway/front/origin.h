/* gateway/front/origin.h - which web pages may use the streams.
 *
 * Browsers send the origin of the page: in CORS requests, and when they open a WebSocket, which
 * CORS does not cover. Other programs send none and are not affected. */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

struct origin_policy {
    bool any;                   /* development mode */
    const char *const *allowed; /* as in "https://example.org"; in addition to the scheme and host
                                   of `host` */
    unsigned allowed_count;
};

/* Whether it is on the list. Such a page may send credentials; with `any` others may not. */
bool origin_is_listed(const struct origin_policy *policy, struct sl_slice origin);

/* The headers that a page of another origin may send: the requested names, if they are at most
 * ORIGIN_HEADERS_MAX bytes of names and commas, else those that the API and the streams use. */
struct sl_slice origin_allowed_headers(struct sl_slice wanted);

enum { ORIGIN_HEADERS_MAX = 1024 };

/* Whether there is no origin, or it is on the list, or it is the page that this server itself
 * served under `host`. */
bool origin_is_allowed(const struct origin_policy *policy, struct sl_slice origin,
                       struct sl_slice host);
