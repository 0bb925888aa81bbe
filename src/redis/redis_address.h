/* src/redis/redis_address.h - parses the URL of a Redis.
 *
 *     redis://[user:password@]host[:port][/db]     unix:///path/to/socket[?db=N]
 *     redis+sentinel://[user:password@]host[:port][,host[:port]...]/master-name
 *         [?db=N][&sentinel-user=...][&sentinel-password=...]
 *     redis+cluster://[user:password@]host[:port][,host[:port]...]
 *
 * With sentinels, user and password are those of the Redis itself, whose address the sentinels know
 * (src/redis/sentinel.h). For a cluster, the named nodes are asked for all others. User, password
 * and path are percent-decoded; an IPv6 host is written in brackets. No error message contains a
 * password.
 *
 * rediss://, rediss+sentinel:// and rediss+cluster:// are the same over TLS, also to the sentinels.
 * These options may follow a question mark, joined by &:
 *
 *     ssl-ca=/file       the authorities that may have signed the certificate of Redis; by default
 *                        those that this machine trusts
 *     ssl-cert=/file     a client certificate and its chain, if Redis requires one
 *     ssl-key=/file      the key of the client certificate
 *     ssl-name=name      the name that the certificate of Redis must have, if it is not the host */
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

/* Absolute paths, and a name or an IP address. Each may be empty; `cert` and `key` need each
 * other. */
struct sl_redis_tls_files {
    char ca[SL_REDIS_PATH_SIZE];
    char cert[SL_REDIS_PATH_SIZE], key[SL_REDIS_PATH_SIZE];
    char name[SL_REDIS_PATH_SIZE];
};

struct sl_redis_address {
    struct sl_redis_endpoint endpoint; /* empty if `path` is set, for a cluster, and for sentinels
                                          as long as it is not known */
    char path[108];                    /* Unix socket; empty otherwise */
    struct sl_redis_login login;
    uint32_t db;

    uint32_t sentinel_count; /* 0: no sentinels */
    struct sl_redis_endpoint sentinels[SL_REDIS_SENTINELS_MAX];
    struct sl_redis_login sentinel_login;
    char master_name[64];

    uint32_t seed_count; /* 0: not a cluster */
    struct sl_redis_endpoint seeds[SL_REDIS_SEEDS_MAX];

    bool is_tls;
    struct sl_redis_tls_files tls;
};

/* Enough for every address: hosts or percent-encoded paths, ports, names, a number. */
enum { SL_REDIS_ADDRESS_TEXT_SIZE = 2304 + 4 * (3 * SL_REDIS_PATH_SIZE + 16) };

/* 0; -EINVAL: *reterr says what is wrong, without the password. */
SL_EXPORT int sl_redis_address_parse(struct sl_slice url, struct sl_redis_address *ret_address,
                                     struct failure *reterr);

SL_EXPORT bool sl_redis_endpoint_equals(const struct sl_redis_endpoint *a,
                                        const struct sl_redis_endpoint *b);

enum { SL_REDIS_ENDPOINT_TEXT_SIZE = 272 };

/* Writes host:port or [v6]:port, and a NUL. */
SL_EXPORT void sl_redis_endpoint_print(const struct sl_redis_endpoint *endpoint, char *room,
                                       size_t room_size);

/* Writes the URL without user and password, and a NUL, for messages and the ready line. It parses
 * to the same address. Truncated if `room_size` is too small. */
SL_EXPORT void sl_redis_address_print(const struct sl_redis_address *address, char *room,
                                      size_t room_size);
