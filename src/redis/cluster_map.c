/* cluster_map.c - maps the slots of 64 shards, which are looked up in ranges of slots.
 *
 * The slot of a key is CRC16 of its hash tag (XMODEM polynomial) modulo 16,384. CLUSTER SLOTS lists
 * ranges with their nodes, the master first; the shards whose slots are in a range get this master.
 * The cost is ranges times shards: at most 16,384 x 64, in practice some hundreds.
 *
 * A server names a node by its host or address; by nothing if it does not know its own, which means
 * the node that was asked; or by "?" if it is configured to use host names
 * (cluster-preferred-endpoint-type) and has none for that node. */
#include "src/redis/cluster_map.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"

enum { CRC_POLYNOMIAL = 0x1021, PORT_MAX = 65535 };

uint32_t sl_cluster_slot(uint32_t shard)
{
    char tag[12];
    uint32_t crc = 0;

    assert(shard < SL_SHARDS_MAX);
    snprintf(tag, sizeof(tag), "%" PRIu32, shard);
    for (const char *c = tag; *c; c++) {
        crc ^= (uint32_t)(unsigned char)*c << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ (crc & 0x8000 ? CRC_POLYNOMIAL : 0);
        crc &= 0xffff;
    }
    return crc % SL_CLUSTER_SLOTS;
}

int sl_cluster_slots_call(struct sl_call *call, struct failure *reterr)
{
    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "CLUSTER");
    sl_call_add_str(call, "SLOTS");
    return sl_call_finish(call, reterr);
}

/* ---- node addresses ---- */

static bool is_host(struct sl_slice host)
{
    if (host.size >= sizeof(((struct sl_redis_endpoint *)NULL)->host))
        return false;
    for (size_t i = 0; i < host.size; i++) {
        if (host.data[i] <= ' ' || host.data[i] == 0x7f)
            return false;
    }
    return true;
}

int sl_cluster_read_endpoint(struct sl_slice host, uint64_t port,
                             const struct sl_redis_endpoint *asked,
                             struct sl_redis_endpoint *ret_endpoint)
{
    struct sl_redis_endpoint endpoint = {.port = (uint16_t)port};

    if (port > PORT_MAX || !is_host(host))
        return -EBADMSG;
    if (port == 0 || sl_slice_is(host, "?"))
        return -ENOENT;
    if (host.size > 0)
        memcpy(endpoint.host, host.data, host.size);
    else
        memcpy(endpoint.host, asked->host, sizeof(endpoint.host));
    *ret_endpoint = endpoint;
    return 0;
}

/* ---- CLUSTER SLOTS ---- */

static bool is_number(const redisReply *reply, long long highest)
{
    return reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= highest;
}

/* {host or nil, port, ...}: as sl_cluster_read_endpoint(). */
static int read_node(const redisReply *reply, const struct sl_redis_endpoint *asked,
                     struct sl_redis_endpoint *ret_endpoint)
{
    struct sl_slice host = SL_SLICE("");

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        !is_number(reply->element[1], PORT_MAX))
        return -EBADMSG;
    if (reply->element[0]->type == REDIS_REPLY_STRING)
        host = sl_slice(reply->element[0]->str, reply->element[0]->len);
    else if (reply->element[0]->type != REDIS_REPLY_NIL)
        return -EBADMSG;
    return sl_cluster_read_endpoint(host, (uint64_t)reply->element[1]->integer, asked,
                                    ret_endpoint);
}

/* {first slot, last slot, master, replica, ...} */
static int read_range(const redisReply *reply, const struct sl_redis_endpoint *asked,
                      uint64_t *seen, struct sl_cluster_map *map)
{
    struct sl_redis_endpoint master = {.port = 0};
    int r;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3 ||
        !is_number(reply->element[0], SL_CLUSTER_SLOTS - 1) ||
        !is_number(reply->element[1], SL_CLUSTER_SLOTS - 1) ||
        reply->element[0]->integer > reply->element[1]->integer)
        return -EBADMSG;
    r = read_node(reply->element[2], asked, &master);
    if (r < 0 && r != -ENOENT)
        return r;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        long long slot = sl_cluster_slot(shard);

        if (slot < reply->element[0]->integer || slot > reply->element[1]->integer)
            continue;
        if (*seen & (UINT64_C(1) << shard))
            return -EBADMSG; /* two masters for one slot */
        *seen |= UINT64_C(1) << shard;
        map->masters[shard] = master;
    }
    return 0;
}

static bool is_no_cluster(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ERROR &&
           memmem(reply->str, reply->len, "cluster support disabled",
                  strlen("cluster support disabled"));
}

int sl_cluster_slots_reply(const struct redisReply *reply, const struct sl_redis_endpoint *asked,
                           struct sl_cluster_map *ret_map, struct failure *reterr)
{
    struct sl_cluster_map map = {0};
    char where[SL_REDIS_ENDPOINT_TEXT_SIZE];
    uint64_t seen = 0;
    int r;

    if (is_no_cluster(reply)) {
        sl_redis_endpoint_print(asked, where, sizeof(where));
        return failure_set(reterr, -ENOTSUP,
                           "the Redis at %s is no node of a cluster; its URL begins with redis:// "
                           "or rediss://",
                           where);
    }
    r = sl_reply_check_array(reply, 0, reterr);
    for (size_t i = 0; r == 0 && i < reply->elements; i++) {
        r = read_range(reply->element[i], asked, &seen, &map);
        if (r < 0)
            sl_reply_unexpected(reterr);
    }
    if (r == 0)
        *ret_map = map;
    return r;
}

static bool text_is(const struct redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && sl_slice_is(sl_slice(reply->str, reply->len), text);
}

int sl_cluster_node_call(struct sl_call *call, struct failure *reterr)
{
    sl_call_begin(call, 0, true);
    sl_call_add_str(call, "HELLO");
    return sl_call_finish(call, reterr);
}

int sl_cluster_node_reply(const struct redisReply *reply, struct failure *reterr)
{
    if (!reply || reply->type != REDIS_REPLY_ARRAY)
        return 0;
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        if (text_is(reply->element[i], "mode") && text_is(reply->element[i + 1], "cluster"))
            return sl_reply_of_cluster_node(reterr);
    }
    return 0;
}

uint64_t sl_cluster_map_difference(const struct sl_cluster_map *a, const struct sl_cluster_map *b)
{
    uint64_t shards = 0;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (!sl_redis_endpoint_equals(&a->masters[shard], &b->masters[shard]))
            shards |= UINT64_C(1) << shard;
    }
    return shards;
}

uint64_t sl_cluster_map_shards_of(const struct sl_cluster_map *map,
                                  const struct sl_redis_endpoint *master)
{
    uint64_t shards = 0;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (sl_redis_endpoint_equals(&map->masters[shard], master))
            shards |= UINT64_C(1) << shard;
    }
    return shards;
}

bool sl_cluster_map_is_full(const struct sl_cluster_map *map, uint32_t shards)
{
    for (uint32_t shard = 0; shard < (shards > 0 ? shards : SL_SHARDS_MAX); shard++) {
        if (!map->masters[shard].host[0])
            return false;
    }
    return true;
}

void sl_cluster_map_fill(struct sl_cluster_map *map, const struct sl_cluster_map *other)
{
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (!map->masters[shard].host[0])
            map->masters[shard] = other->masters[shard];
    }
}

/* ---- MOVED, ASK ---- */

static int take_number(struct sl_slice text, uint64_t highest, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > 5)
        return -EBADMSG;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EBADMSG;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret_number = number;
    return number <= highest ? 0 : -EBADMSG;
}

static struct sl_slice head_of(struct sl_slice text, const char *end)
{
    return sl_slice(text.data, (size_t)(end - text.data));
}

/* Parses "13907 127.0.0.1:7103"; an IPv6 address has no brackets. */
static int read_redirect(struct sl_slice text, const struct sl_redis_endpoint *asked,
                         struct sl_cluster_redirect *redirect)
{
    const char *space = memchr(text.data, ' ', text.size);
    const char *colon = memrchr(text.data, ':', text.size);
    uint64_t slot, port;
    struct sl_slice host;

    if (!space || !colon || colon < space ||
        take_number(head_of(text, space), SL_CLUSTER_SLOTS - 1, &slot) < 0 ||
        take_number(sl_slice_from(text, (size_t)(colon - text.data) + 1), PORT_MAX, &port) < 0)
        return -EBADMSG;
    redirect->slot = (uint32_t)slot;
    host = sl_slice(space + 1, (size_t)(colon - space) - 1);
    return sl_cluster_read_endpoint(host, port, asked, &redirect->endpoint) < 0 ? -EBADMSG : 0;
}

int sl_cluster_redirect_reply(const struct redisReply *reply, const struct sl_redis_endpoint *asked,
                              struct sl_cluster_redirect *ret_redirect)
{
    static const struct sl_slice moved = SL_SLICE("MOVED "), ask = SL_SLICE("ASK ");
    struct sl_cluster_redirect redirect = {.is_ask = false};
    struct sl_slice text;
    int r;

    if (!reply || reply->type != REDIS_REPLY_ERROR)
        return -ENOENT;
    text = sl_slice(reply->str, reply->len);
    redirect.is_ask = sl_slice_starts_with(text, ask);
    if (!redirect.is_ask && !sl_slice_starts_with(text, moved))
        return -ENOENT;
    r = read_redirect(sl_slice_from(text, redirect.is_ask ? ask.size : moved.size), asked,
                      &redirect);
    if (r == 0)
        *ret_redirect = redirect;
    return r;
}
