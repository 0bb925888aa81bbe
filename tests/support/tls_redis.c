#include "tests/support/tls_redis.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka_all.h"

enum { HOUR_S = 3600 };

const char *tls_redis_file(const struct tls_redis *redis, const char *name)
{
    static char rooms[8][96];
    static unsigned next;
    char *room = rooms[next++ % 8];

    snprintf(room, sizeof(rooms[0]), "%s/%s", redis->folder, name);
    return room;
}

static void choose_ports(struct tls_redis *redis)
{
    snprintf(redis->port, sizeof(redis->port), "%u", redis_server_free_port());
    do
        snprintf(redis->plain_port, sizeof(redis->plain_port), "%u", redis_server_free_port());
    while (strcmp(redis->plain_port, redis->port) == 0);
}

void tls_redis_init(struct tls_redis *redis, const char *names)
{
    static const char *const files[] = {"ca.pem", "cert.pem", "key.pem"};
    const char *const options[] = {"--port",          redis->plain_port,    "--tls-port",
                                   redis->port,       "--tls-ca-cert-file", redis->files[0],
                                   "--tls-cert-file", redis->files[1],      "--tls-key-file",
                                   redis->files[2],   "--tls-auth-clients", "no",
                                   "--bind",          "127.0.0.1",          NULL};

    signal(SIGPIPE, SIG_IGN);
    snprintf(redis->folder, sizeof(redis->folder), "/tmp/sluice-tls-XXXXXX");
    assert_non_null(mkdtemp(redis->folder));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        snprintf(redis->files[i], sizeof(redis->files[i]), "%s", tls_redis_file(redis, files[i]));
    certificate_authority_init(&redis->authority, redis->files[0], "Authority");
    certificate_sign_pair(&redis->authority, names, HOUR_S, redis->files[1], redis->files[2]);
    choose_ports(redis);
    memcpy(redis->options, options, sizeof(options));
    redis_server_init_with(&redis->server, redis->options);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
    (void)stat;
    (void)type;
    (void)ftw;
    return remove(path);
}

void tls_redis_done(struct tls_redis *redis)
{
    redis_server_done(&redis->server);
    certificate_authority_done(&redis->authority);
    nftw(redis->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
