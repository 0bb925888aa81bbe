/* gateway/http/client_address.h - who asks, when a proxy stands in between?
 *
 * A proxy says for whom it asks in a header, behind what the client itself may have written there.
 * So the header is read from its right end: each element names who spoke to the one who wrote it,
 * and the first that is no trusted proxy is the client. Pure. */
#pragma once

#include <stdbool.h>

#include "base/ip_address.h"
#include "gateway/http/http.h"

struct client_trust {
    struct ip_networks proxies;
    bool reads_forwarded; /* Forwarded (RFC 7239) instead of X-Forwarded-For */
};

struct client_found {
    struct ip_address address;
    bool is_secure;   /* it came to the outermost trusted proxy by TLS */
    bool is_unusable; /* an element that was to be read is no address; the hop before it counts */
};

/* `peer` is a trusted proxy. */
struct client_found client_address_find(const struct client_trust *trust,
                                        const struct ip_address *peer,
                                        const struct http_request *request);
