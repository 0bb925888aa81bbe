/* redis_meta.c - finds or creates the database.
 *
 * A single Redis is asked with the script that creates a database if there is none: shard 0 first,
 * then all others at once. In a cluster some nodes may be down. There the shards are first asked
 * with a plain command, from shard 0 on; a database is created only if that finds none and all
 * shards are available. The available shards of an existing database are completed. */
#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/database/meta.h"
#include "src/redis/cluster_map.h"
#include "src/redis/redis_cluster.h"
#include "src/redis/redis_link.h"
#include "src/redis/redis_link_parts.h"

static int ask_meta(struct sl_redis_link *link, uint32_t shard, const struct sl_meta *wanted,
                    struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_meta_call(&call, shard, wanted, reterr);
    if (r == 0)
        r = sl_redis_link_run(link, &call, &reply, reterr);
    if (r == 0)
        r = sl_meta_reply(reply, ret_meta, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

typedef int (*run_fn)(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                      redisReply **ret_replies, struct failure *reterr);

/* Asks all shards from `first` on at once. */
static int ask_metas(struct sl_redis_link *link, uint32_t first, const struct sl_meta *meta,
                     run_fn run, struct failure *reterr)
{
    struct sl_call calls[SL_SHARDS_MAX] = {0};
    redisReply *replies[SL_SHARDS_MAX] = {0};
    const size_t count = meta->shards - first;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < count; i++)
        r = sl_meta_call(&calls[i], first + i, meta, reterr);
    if (r == 0 && count > 0)
        r = run(link, calls, count, replies, reterr);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct sl_meta other;

        r = sl_meta_reply(replies[i], &other, reterr);
        if (r == 0)
            r = sl_meta_check_same(meta, &other, reterr);
    }
    for (size_t i = 0; i < count; i++) {
        freeReplyObject(replies[i]);
        sl_call_done(&calls[i]);
    }
    return r;
}

static int check_no_cluster(struct sl_redis_link *link, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r = sl_cluster_node_call(&call, reterr);

    if (r == 0)
        r = sl_redis_link_run(link, &call, &reply, reterr);
    if (r == 0)
        r = sl_cluster_node_reply(reply, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static int look_in(struct sl_redis_link *link, uint32_t shard, struct sl_meta *ret_meta,
                   struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r = sl_meta_look_call(&call, shard, reterr);

    if (r == 0)
        r = sl_redis_link_try(link, &call, &reply, reterr);
    if (r == 0)
        r = sl_meta_look_reply(reply, ret_meta, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

/* Looks in all shards of a cluster except shard 0 for one that knows the database. -ENODATA: all
 * have answered, and there is none; -EIO: not all have answered. */
static int look_in_others(struct sl_redis_link *link, uint64_t away, struct sl_meta *ret_meta,
                          struct failure *reterr)
{
    int result = away ? -EIO : -ENODATA;

    for (uint32_t shard = 1; shard < SL_SHARDS_MAX; shard++) {
        const struct sl_redis_node *node =
            sl_redis_cluster_find(sl_redis_link_cluster(link), shard);
        struct failure why;
        int r;

        if (!node || (node->shards & away) != 0)
            continue;
        r = look_in(link, shard, ret_meta, &why);
        if (r == -EIO) {
            away |= (uint64_t)1 << shard;
            result = failure_set(reterr, -EIO, "%s", why.text);
        } else if (r != -ENODATA) {
            return r < 0 ? failure_set(reterr, r, "%s", why.text) : 0;
        }
    }
    return result;
}

/* Looks in shard 0; if that is down, or empty because its node has lost its data, in the others. */
static int find_meta(struct sl_redis_link *link, struct sl_meta *ret_meta, struct failure *reterr)
{
    int r = look_in(link, 0, ret_meta, reterr);

    if ((r != -EIO && r != -ENODATA) || !sl_redis_link_cluster(link))
        return r;
    return look_in_others(link, r == -EIO ? 1 : 0, ret_meta, reterr);
}

/* Completes an existing database. Shards that are down or being moved are skipped; later calls to
 * them report that. */
static int complete(struct sl_redis_link *link, const struct sl_meta *meta, struct failure *reterr)
{
    int r = ask_metas(link, 0, meta, sl_redis_link_try_many, reterr);

    return r == -EIO || r == -EAGAIN ? 0 : r;
}

static int find_or_make_in_cluster(struct sl_redis_link *link, const struct sl_meta *wanted,
                                   struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_meta meta = *wanted;
    int r = find_meta(link, ret_meta, reterr);

    if (r == 0) {
        ret_meta->is_clustered = true;
        return complete(link, ret_meta, reterr);
    }
    meta.is_clustered = true;
    if (meta.shards == 0)
        meta.shards = SL_SHARDS_MAX;
    r = ask_meta(link, 0, &meta, ret_meta, reterr);
    return r == 0 ? ask_metas(link, 1, ret_meta, sl_redis_link_run_many, reterr) : r;
}

static int find_or_make(struct sl_redis_link *link, const struct sl_meta *wanted,
                        struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_meta meta = *wanted;
    int r = check_no_cluster(link, reterr);

    if (meta.shards == 0)
        meta.shards = 1;
    if (r == 0)
        r = ask_meta(link, 0, &meta, ret_meta, reterr);
    if (r == 0 && ret_meta->is_clustered)
        return failure_set(reterr, -EREMOTE,
                           "the database is that of a cluster, and this Redis is none");
    return r == 0 ? ask_metas(link, 1, ret_meta, sl_redis_link_run_many, reterr) : r;
}

int sl_redis_link_meta(struct sl_redis_link *link, const struct sl_meta *wanted,
                       struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_meta meta;
    int r = (sl_redis_link_cluster(link) ? find_or_make_in_cluster : find_or_make)(link, wanted,
                                                                                   &meta, reterr);

    if (r < 0)
        return r;
    sl_redis_link_expect(link, &meta);
    *ret_meta = meta;
    return 0;
}

int sl_redis_link_look(struct sl_redis_link *link, struct sl_meta *ret_meta, struct failure *reterr)
{
    int r = sl_redis_link_cluster(link) ? 0 : check_no_cluster(link, reterr);

    if (r == 0)
        r = find_meta(link, ret_meta, reterr);
    if (r == 0)
        sl_redis_link_expect(link, ret_meta);
    return r;
}
