/* base/listen_address.h - parses an address to listen on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

struct listen_address {
    char host[256]; /* name or number, IPv6 without brackets; empty: all addresses of the machine */
    uint16_t port;  /* 0: a free port */
    bool with_proxy; /* connections begin with a PROXY protocol header */
};

/* Parses `HOST:PORT`, `[IPV6]:PORT` or `*:PORT`, each optionally followed by `,proxy`. 0; -EINVAL:
 * *reterr says what is wrong. */
int listen_address_parse(struct sl_slice text, struct listen_address *ret_address,
                         struct failure *reterr);
