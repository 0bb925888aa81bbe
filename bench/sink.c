/* bench/sink.c - a transport without a socket. */
#include "bench/sink.h"

#include "bench/measure.h"

static ssize_t take(struct client *client, const struct iovec *pieces, int count)
{
    ssize_t size = 0;

    (void)client;
    for (int i = 0; i < count; i++)
        size += (ssize_t)pieces[i].iov_len;
    return size;
}

static int hold(struct client *client, const struct iovec *pieces, int count)
{
    (void)client;
    (void)pieces;
    (void)count;
    return 0;
}

static bool is_blocked(const struct client *client)
{
    (void)client;
    return false;
}

static void evict(struct client *client, enum disconnect_reason reason)
{
    (void)client;
    (void)reason;
    measure_fail("a client was evicted", NULL);
}

static void broken(struct client *client)
{
    (void)client;
    measure_fail("a client broke", NULL);
}

const struct transport sink = {take, hold, is_blocked, evict, broken};
