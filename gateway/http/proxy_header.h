/* gateway/http/proxy_header.h - parses the header of the PROXY protocol, versions 1 and 2, which
 * names the client of a forwarded connection. A pure function.
 *
 * https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/ip_address.h"
#include "base/slice.h"

enum { PROXY_HEADER_MAX = 4096 }; /* longer headers are refused */

struct proxy_header {
    size_t size; /* of the header; what follows comes from the client */
    /* No address: the connection is the proxy's own (LOCAL), or the client is unknown (UNKNOWN,
     * UNSPEC, a Unix socket). */
    struct ip_address client;
    bool is_secure; /* version 2: the client uses TLS */
};

/* 1: *ret_header is filled. 0: the header is incomplete; all of `input` belongs to it. -EPROTO:
 * there is none, or it is malformed; *ret_why says why. */
int proxy_header_read(struct sl_slice input, struct proxy_header *ret_header, const char **ret_why);
