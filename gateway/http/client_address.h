/* gateway/http/client_address.h - finds the address of a client behind proxies.
 *
 * A proxy appends the address of its client to a header, after what the client itself may have
 * written. So the header is read from its right end: each element names the peer of the one that
 * wrote it, and the first that is not a trusted proxy is the client. A pure function. */
#pragma once

#include <stdbool.h>

#include "base/ip_address.h"
#include "gateway/http/http.h"

struct client_trust {
    struct ip_networks proxies;
    bool reads_forwarded; /* read Forwarded (RFC 7239) instead of X-Forwarded-For */
};

struct client_found {
    struct ip_address address;
    bool is_secure;   /* the request reached the outermost trusted proxy over TLS */
    bool is_unusable; /* an element is not a valid address; the hop before it counts */
};

/* `peer` must be a trusted proxy. */
struct client_found client_address_find(const struct client_trust *trust,
                                        const struct ip_address *peer,
                                        const struct http_request *request);
