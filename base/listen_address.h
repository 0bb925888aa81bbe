/* base/listen_address.h - an address to listen on, as people write it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

struct listen_address {
    char host[256]; /* name or number, IPv6 without brackets; empty: every address of the machine */
    uint16_t port;  /* 0: a free one */
    bool with_proxy; /* who connects says first, by the PROXY protocol, for whom */
};

/* Reads `HOST:PORT`, `[IPV6]:PORT` or `*:PORT`, each with `,proxy` behind it or not. 0; -EINVAL:
 * *reterr says what is wrong. */
int listen_address_parse(struct sl_slice text, struct listen_address *ret_address,
                         struct failure *reterr);
