/* base/listen_address.h - an address to listen on, as people write it. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

struct listen_address {
    char host[256]; /* name or number, IPv6 without brackets; empty: every address of the machine */
    uint16_t port;  /* 0: a free one */
};

/* Reads `HOST:PORT`, `[IPV6]:PORT` or `*:PORT`. 0; -EINVAL: *reterr says what is wrong. */
int listen_address_parse(struct sl_slice text, struct listen_address *ret_address,
                         struct failure *reterr);
