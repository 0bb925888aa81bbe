/* tests/support/tls_redis.h - a real redis-server with TLS, whose authority and files belong to one
 * test program. */
#pragma once

#include "tests/support/certificate.h"
#include "tests/support/redis_server.h"

struct tls_redis {
    struct redis_server server;
    struct certificate_authority authority; /* its certificate is in ca.pem */
    char folder[64];                        /* for files of the test, removed at the end */
    char port[8], plain_port[8];            /* on 127.0.0.1 */
    char files[3][96];
    const char *options[16];
};

/* Its certificate, cert.pem with key.pem, is for `names` ("DNS:localhost,IP:127.0.0.1"). SIGPIPE is
 * ignored from then on. */
void tls_redis_init(struct tls_redis *redis, const char *names);
void tls_redis_done(struct tls_redis *redis);

/* Returns the path of a file in the folder; valid for the next eight calls. */
const char *tls_redis_file(const struct tls_redis *redis, const char *name);
