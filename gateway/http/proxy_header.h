/* gateway/http/proxy_header.h - the header of the PROXY protocol, versions 1 and 2: who is at the
 * other end of a connection that a proxy passes on. Pure: bytes in, a plain value out.
 *
 * https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/ip_address.h"
#include "base/slice.h"

enum { PROXY_HEADER_MAX = 4096 }; /* a longer one is refused */

struct proxy_header {
    size_t size; /* of the header; what follows is the client's */
    /* None: the connection is the proxy's own (LOCAL), or it does not tell (UNKNOWN, UNSPEC, a unix
     * socket). */
    struct ip_address client;
    bool is_secure; /* version 2 says that the client came by TLS */
};

/* 1: *ret_header is filled. 0: the header is not whole; all of `input` belongs to it. -EPROTO:
 * there is none, or it is malformed; *ret_why says what. */
int proxy_header_read(struct sl_slice input, struct proxy_header *ret_header, const char **ret_why);
