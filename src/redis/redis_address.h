/* src/redis/redis_address.h - where Redis is: an URL, taken apart.
 *
 *     redis://[user:password@]host[:port][/db]     unix:///path/to/socket[?db=N]
 *     redis+sentinel://[user:password@]host[:port][,host[:port]...]/master-name
 *         [?db=N][&sentinel-user=...][&sentinel-password=...]
 *     redis+cluster://[user:password@]host[:port][,host[:port]...]
 *
 * With sentinels, user and password are those of the Redis; which one it is, they are asked
 * (src/redis/sentinel.h). The nodes of a cluster that are named are those to be asked for all
 * others. User, password and path are percent-decoded, an IPv6 host stands in
 * brackets. No message ever holds a password.
 *
 * rediss:// and rediss+sentinel:// are the same over TLS, to the sentinels, too. Behind the
 * question mark may stand, with & between them:
 *
 *     ssl-ca=/file         who may have signed the certificate of Redis; else whom this machine
 * trusts ssl-cert=/file       our own certificate, where Redis wants one, with those that lead to
 * its ssl-key=/file        authority; and its key ssl-name=name        what the certificate of
 * Redis must be for, when that is not the host */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"

enum { SL_REDIS_SENTINELS_MAX = 8, SL_REDIS_SEEDS_MAX = 8, SL_REDIS_PATH_SIZE = 256 };

struct sl_redis_endpoint {
    char host[256]; /* IPv6 without brackets */
    uint16_t port;
};

struct sl_redis_login {
    char user[128];     /* empty: none */
    char password[512]; /* empty: none */
};

/* Absolute paths, and a name or an IP address; each may be empty. `cert` and `key` need each other.
 */
struct sl_redis_tls_files {
    char ca[SL_REDIS_PATH_SIZE];
    char cert[SL_REDIS_PATH_SIZE], key[SL_REDIS_PATH_SIZE];
    char name[SL_REDIS_PATH_SIZE];
};

struct sl_redis_address {
    struct sl_redis_endpoint endpoint; /* empty when `path` is set; with sentinels: not known yet;
                                          of a cluster: empty */
    char path[108];                    /* unix socket; empty otherwise */
    struct sl_redis_login login;
    uint32_t db;

    uint32_t sentinel_count; /* 0: the endpoint is fixed */
    struct sl_redis_endpoint sentinels[SL_REDIS_SENTINELS_MAX];
    struct sl_redis_login sentinel_login;
    char master_name[64];

    uint32_t seed_count; /* 0: no cluster */
    struct sl_redis_endpoint seeds[SL_REDIS_SEEDS_MAX];

    bool is_tls;
    struct sl_redis_tls_files tls;
};

/* Enough for every address: hosts or percent-encoded paths, ports, names, number. */
enum { SL_REDIS_ADDRESS_TEXT_SIZE = 2304 + 4 * (3 * SL_REDIS_PATH_SIZE + 16) };

/* 0; -EINVAL: *reterr says what is wrong, without the password. */
SL_EXPORT int sl_redis_address_parse(struct sl_slice url, struct sl_redis_address *ret_address,
                                     struct failure *reterr);

SL_EXPORT bool sl_redis_endpoint_equals(const struct sl_redis_endpoint *a,
                                        const struct sl_redis_endpoint *b);

enum { SL_REDIS_ENDPOINT_TEXT_SIZE = 272 };

/* host:port or [v6]:port, NUL-terminated. */
SL_EXPORT void sl_redis_endpoint_print(const struct sl_redis_endpoint *endpoint, char *room,
                                       size_t room_size);

/* The URL without user and password, NUL-terminated, for messages and the ready line; it parses
 * to the same address. Cut off when `room_size` is too small. */
SL_EXPORT void sl_redis_address_print(const struct sl_redis_address *address, char *room,
                                      size_t room_size);
