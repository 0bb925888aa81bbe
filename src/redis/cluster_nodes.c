/* cluster_nodes.c - parses CLUSTER SHARDS, a tree of names and values, and CLUSTER NODES, a text of
 * lines.
 *
 * A shard in the terms of Redis is a master with its replicas: {slots, {first, last, ...}, nodes,
 * {{id, ..., port, ..., role, ...}, ...}}. Unknown names are ignored. A node has the port of plain
 * connections, that of TLS, or both. In CLUSTER NODES the line with the flag "myself" ends with the
 * open slots: [SLOT->-ID] is migrating to ID, [SLOT-<-ID] is imported from it. */
#include "src/redis/cluster_nodes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/reply_read.h"
#include "src/redis/cluster_map.h"

enum { WORDS_BEFORE_SLOTS = 8 }; /* id, address, flags, master, two times, epoch, state */

void sl_cluster_nodes_done(struct sl_cluster_nodes *nodes)
{
    mem_free(nodes->at);
    *nodes = (struct sl_cluster_nodes){.count = 0};
}

/* ---- CLUSTER SHARDS ---- */

/* The value that follows `name` in {name, value, ...}; NULL: there is none. */
static const redisReply *find_value(const redisReply *pairs, const char *name)
{
    for (size_t i = 0; pairs->type == REDIS_REPLY_ARRAY && i + 1 < pairs->elements; i += 2) {
        if (sl_slice_is(sl_reply_at(pairs, i), name))
            return pairs->element[i + 1];
    }
    return NULL;
}

static struct sl_slice find_text(const redisReply *pairs, const char *name)
{
    const redisReply *value = find_value(pairs, name);

    return value && value->type == REDIS_REPLY_STRING ? sl_slice(value->str, value->len)
                                                      : SL_SLICE_NONE;
}

static const redisReply *find_array(const redisReply *pairs, const char *name)
{
    const redisReply *value = find_value(pairs, name);

    return value && value->type == REDIS_REPLY_ARRAY ? value : NULL;
}

static int read_id(struct sl_slice text, char *ret_id)
{
    if (text.size != SL_CLUSTER_ID_SIZE - 1)
        return -EBADMSG;
    memcpy(ret_id, text.data, text.size);
    ret_id[text.size] = '\0';
    return 0;
}

static int read_node(const redisReply *pairs, const struct sl_redis_endpoint *asked, bool is_tls,
                     struct sl_cluster_node *node)
{
    const redisReply *port = find_value(pairs, is_tls ? "tls-port" : "port");
    const struct sl_slice host = find_text(pairs, "endpoint");
    int r;

    if (read_id(find_text(pairs, "id"), node->id) < 0)
        return -EBADMSG;
    node->is_master = sl_slice_is(find_text(pairs, "role"), "master");
    node->is_online = sl_slice_is(find_text(pairs, "health"), "online");
    node->is_failed = sl_slice_is(find_text(pairs, "health"), "fail");
    if (!port)
        return 0; /* it does not accept connections of our kind */
    if (port->type != REDIS_REPLY_INTEGER || port->integer < 0)
        return -EBADMSG;
    r = sl_cluster_read_endpoint(host, (uint64_t)port->integer, asked, &node->endpoint);
    return r == -ENOENT ? 0 : r;
}

/* {first, last, first, last, ...} */
static int read_slots(const redisReply *slots, uint64_t *ret_shards)
{
    uint64_t shards = 0;

    for (size_t i = 0; i < slots->elements; i++) {
        if (slots->element[i]->type != REDIS_REPLY_INTEGER)
            return -EBADMSG;
    }
    for (size_t i = 0; i + 1 < slots->elements; i += 2) {
        for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
            long long slot = sl_cluster_slot(shard);

            if (slot >= slots->element[i]->integer && slot <= slots->element[i + 1]->integer)
                shards |= UINT64_C(1) << shard;
        }
    }
    *ret_shards = shards;
    return 0;
}

static size_t count_nodes(const redisReply *reply)
{
    size_t count = 0;

    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *nodes = find_array(reply->element[i], "nodes");

        count += nodes ? nodes->elements : 0;
    }
    return count;
}

static int read_shard(const redisReply *pairs, const struct sl_redis_endpoint *asked, bool is_tls,
                      struct sl_cluster_nodes *nodes)
{
    const redisReply *slots = find_array(pairs, "slots"), *members = find_array(pairs, "nodes");
    uint64_t shards = 0;
    int r = 0;

    if (!slots || !members || read_slots(slots, &shards) < 0)
        return -EBADMSG;
    for (size_t i = 0; r == 0 && i < members->elements; i++) {
        struct sl_cluster_node *node = &nodes->at[nodes->count++];

        r = read_node(members->element[i], asked, is_tls, node);
        node->shards = node->is_master ? shards : 0;
    }
    return r;
}

int sl_cluster_nodes_reply(const struct redisReply *reply, const struct sl_redis_endpoint *asked,
                           bool is_tls, struct sl_cluster_nodes *ret_nodes, struct failure *reterr)
{
    struct sl_cluster_nodes nodes = {.count = 0};
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r < 0)
        return r;
    nodes.at = mem_zalloc(mem_array_size(count_nodes(reply) + 1, sizeof(*nodes.at)));
    if (!nodes.at)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < reply->elements; i++)
        r = read_shard(reply->element[i], asked, is_tls, &nodes);
    if (r < 0) {
        sl_cluster_nodes_done(&nodes);
        return sl_reply_unexpected(reterr);
    }
    *ret_nodes = nodes;
    return 0;
}

/* ---- CLUSTER NODES ---- */

/* The text up to the next `end`; `text` advances past it. */
static struct sl_slice take_until(struct sl_slice *text, char end)
{
    const char *at = memchr(text->data, end, text->size);
    size_t size = at ? (size_t)(at - text->data) : text->size;
    struct sl_slice taken = sl_slice(text->data, size);

    *text = sl_slice_from(*text, at ? size + 1 : size);
    return taken;
}

/* "5461-10922" or "77" */
static void read_own_slots(const char *text, struct sl_open_slots *slots)
{
    unsigned first, last;
    int length = 0;

    if (sscanf(text, "%5u%n", &first, &length) != 1)
        return;
    last = first;
    if (text[length] && (sscanf(text + length, "-%5u%n", &last, &length) != 1))
        return;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (sl_cluster_slot(shard) >= first && sl_cluster_slot(shard) <= last)
            slots->owned |= UINT64_C(1) << shard;
    }
}

/* Parses "[93-<-ID]", "[77->-ID]", or slots that the node has. Words of another form are
 * ignored. */
static void read_slot_word(struct sl_slice word, struct sl_open_slots *slots)
{
    char text[80], direction, id[SL_CLUSTER_ID_SIZE];
    unsigned slot;

    if (word.size >= sizeof(text))
        return;
    snprintf(text, sizeof(text), "%.*s", SL_SLICE_ARG(word));
    if (sscanf(text, "[%5u-%c-%40[0-9a-f]]", &slot, &direction, id) != 3) {
        read_own_slots(text, slots);
        return;
    }
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (sl_cluster_slot(shard) == slot)
            strcpy(direction == '>' ? slots->migrating[shard] : slots->importing[shard], id);
    }
}

int sl_cluster_open_slots_reply(const struct redisReply *reply, struct sl_open_slots *ret_slots,
                                struct failure *reterr)
{
    struct sl_open_slots slots = {0};
    struct sl_slice text;
    int r = sl_reply_check(reply, reterr);

    if (r == 0 && reply->type != REDIS_REPLY_STRING)
        r = sl_reply_unexpected(reterr);
    if (r < 0)
        return r;
    text = sl_slice(reply->str, reply->len);
    while (text.size > 0) {
        struct sl_slice line = take_until(&text, '\n');

        if (!memmem(line.data, line.size, "myself", strlen("myself")))
            continue;
        for (int i = 0; i < WORDS_BEFORE_SLOTS; i++)
            take_until(&line, ' ');
        while (line.size > 0)
            read_slot_word(take_until(&line, ' '), &slots);
    }
    *ret_slots = slots;
    return 0;
}
