/* src/redis_address.h - where Redis is: an URL, taken apart.
 *
 *     redis://[user:password@]host[:port][/db]     unix:///path/to/socket[?db=N]
 *
 * rediss:// is refused with a clear message. User, password and path are percent-decoded, an IPv6
 * host stands in brackets. No message ever holds a password. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

struct sl_redis_address {
    char host[256];     /* empty when `path` is set; IPv6 without brackets */
    char path[108];     /* unix socket; empty otherwise */
    char user[128];     /* empty: none */
    char password[512]; /* empty: none */
    uint16_t port;      /* 0 when `path` is set */
    uint32_t db;
};

/* Enough for every address: host or percent-encoded path, port, number. */
enum { SL_REDIS_ADDRESS_TEXT_SIZE = 384 };

/* 0; -EINVAL: *reterr says what is wrong, without the password. */
SL_EXPORT int sl_redis_address_parse(struct sl_slice url, struct sl_redis_address *ret_address,
                                     struct failure *reterr);

/* The URL without user and password, NUL-terminated, for messages and the ready line; it parses
 * to the same place. Cut off when `room_size` is too small. */
SL_EXPORT void sl_redis_address_print(const struct sl_redis_address *address, char *room,
                                      size_t room_size);
