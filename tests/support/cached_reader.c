#include "tests/support/cached_reader.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/archive/archived.h"
#include "src/home/home_read.h"
#include "src/model/id.h"

enum { PAGE = 20 };

void cached_posts_done(struct cached_posts *posts)
{
    for (size_t i = 0; i < posts->count; i++)
        buffer_done(&posts->json[i]);
    *posts = (struct cached_posts){.count = 0};
}

static void put(struct cached_reader *reader, const struct sl_post_row *row,
                enum sl_cached_source source, uint64_t read_ms)
{
    struct sl_cache_item item = {SL_CACHE_POST, row->id, SL_SLICE_NONE};
    struct buffer value = BUFFER_INIT;

    if (sl_cached_post_value(&value, row, source)) {
        item.value = buffer_slice(&value);
        sl_cache_put(reader->cache, &item, 1, read_ms);
    }
    buffer_done(&value);
}

/* Stores the posts in the replies to `calls` in posts->json[at[i]] for the i-th one. */
static int take_replies(struct cached_reader *reader, const struct sl_shard_calls *calls,
                        redisReply **replies, const struct sl_cache_item *items, const size_t *at,
                        enum sl_cached_source source, uint64_t read_ms, struct cached_posts *posts)
{
    struct sl_post_row row;
    int r = 0;

    for (size_t c = 0; r == 0 && c < calls->count; c++) {
        size_t count;
        const uint32_t *things = sl_shard_calls_items(calls, c, &count);

        r = sl_posts_reply(replies[c], count, &reader->failure);
        for (size_t k = 0; r == 0 && k < count; k++) {
            const struct sl_slice value = items ? items[things[k]].value : SL_SLICE_NONE;

            r = sl_posts_at(replies[c], k, &row, &reader->failure);
            if (r == -ENOENT) {
                r = 0;
                continue;
            }
            if (r == 0 && !sl_cached_post_json(&posts->json[at[things[k]]], &row, value))
                r = failure_set(&reader->failure, -EBADMSG, "a bare row of what was not cached");
            if (r == 0)
                put(reader, &row, source, read_ms);
        }
    }
    return r;
}

static int run(struct cached_reader *reader, struct sl_shard_calls *calls, int built,
               redisReply *ret_replies[SL_SHARDS_MAX])
{
    if (built < 0 || calls->count == 0)
        return built;
    return sl_redis_link_run_many(reader->link, calls->calls, calls->count, ret_replies,
                                  &reader->failure);
}

static void free_replies(redisReply *replies[SL_SHARDS_MAX])
{
    for (size_t i = 0; i < SL_SHARDS_MAX; i++)
        freeReplyObject(replies[i]);
}

static int find_archived(struct cached_reader *reader, uint64_t as, uint64_t read_ms,
                         struct cached_posts *posts)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    redisReply *replies[SL_SHARDS_MAX] = {NULL};
    uint64_t missing[64];
    size_t count = 0, at[64];
    int r;

    for (size_t i = 0; i < posts->count; i++) {
        if (posts->json[i].size == 0)
            missing[count++] = posts->ids[i];
    }
    if (count == 0 || !reader->archive)
        return 0;
    r = sl_archive_find(reader->archive, missing, count, &page, &reader->failure);
    for (size_t i = 0, k = 0; r == 0 && i < page.count; i++, k++) {
        while (posts->ids[k] != page.posts[i].id)
            k++;
        at[i] = k;
    }
    if (r == 0 && page.count > 0)
        r = run(reader, &calls,
                sl_archived_posts_calls(&calls, &reader->meta, as, page.posts, page.count,
                                        &reader->failure),
                replies);
    if (r == 0 && page.count > 0)
        r = take_replies(reader, &calls, replies, NULL, at, SL_CACHED_FROM_ARCHIVE, read_ms, posts);
    free_replies(replies);
    sl_shard_calls_done(&calls);
    sl_archive_page_done(&page);
    return r;
}

/* Finds the posts of posts->ids that have no JSON yet. */
static int find_missing(struct cached_reader *reader, uint64_t as, struct cached_posts *posts)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    redisReply *replies[SL_SHARDS_MAX] = {NULL};
    const uint64_t read_ms = clock_wall_ms();
    struct sl_cache_item items[64];
    size_t at[64], count = 0;
    int r;

    for (size_t i = 0; i < posts->count; i++) {
        if (posts->json[i].size > 0)
            continue;
        items[count] = (struct sl_cache_item){SL_CACHE_POST, posts->ids[i], SL_SLICE_NONE};
        at[count++] = i;
    }
    sl_cache_get(reader->cache, items, count);
    r = run(reader, &calls,
            sl_cached_posts_calls(&calls, &reader->meta, as, items, count, &reader->failure),
            replies);
    if (r == 0)
        r = take_replies(reader, &calls, replies, items, at, SL_CACHED_FROM_REDIS, read_ms, posts);
    free_replies(replies);
    sl_shard_calls_done(&calls);
    sl_cache_items_done(items, count);
    return r < 0 ? r : find_archived(reader, as, read_ms, posts);
}

int cached_reader_find(struct cached_reader *reader, uint64_t as, const uint64_t *ids, size_t count,
                       struct cached_posts *ret_posts)
{
    ret_posts->count = count;
    for (size_t i = 0; i < count; i++) {
        ret_posts->ids[i] = ids[i];
        ret_posts->json[i] = BUFFER_INIT;
    }
    return find_missing(reader, as, ret_posts);
}

/* A row of a list: what it lacks may be in the cache. */
static void take_listed(struct cached_reader *reader, const struct sl_post_row *row,
                        struct cached_posts *posts)
{
    struct sl_cache_item item = {SL_CACHE_POST, row->id, SL_SLICE_NONE};
    size_t i = posts->count++;

    posts->ids[i] = row->id;
    posts->json[i] = BUFFER_INIT;
    if (!row->json.data && row->author != 0)
        sl_cache_get(reader->cache, &item, 1);
    if (row->json.data || row->author != 0)
        sl_cached_post_json(&posts->json[i], row, item.value);
    sl_cache_items_done(&item, 1);
}

int cached_reader_profile(struct cached_reader *reader, uint64_t as, uint64_t user,
                          struct cached_posts *ret_posts)
{
    const struct sl_page page = {.limit = PAGE, .is_bare = true};
    const struct sl_user_ref ref = sl_user_by_id(user);
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_post_row row;
    size_t count = 0;
    int r;

    r = sl_post_list_call(&call, &reader->meta, as, &ref, &page, &reader->failure);
    if (r == 0)
        r = sl_redis_link_run(reader->link, &call, &reply, &reader->failure);
    if (r == 0)
        r = sl_post_list_reply(reply, &count, &reader->failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_post_list_at(reply, i, &row, &reader->failure);
        if (r == 0)
            take_listed(reader, &row, ret_posts);
    }
    freeReplyObject(reply);
    sl_call_done(&call);
    return r < 0 ? r : find_missing(reader, as, ret_posts);
}

int cached_reader_home(struct cached_reader *reader, uint64_t as, struct cached_posts *ret_posts)
{
    const struct sl_home_page page = {.limit = PAGE, .is_bare = true};
    const struct sl_user_ref ref = sl_user_by_id(as);
    struct sl_home_read *read;
    int r;

    r = sl_home_read_new(&read, &reader->meta, &ref, &page, &reader->failure);
    if (r < 0)
        return r;
    r = sl_home_run(reader->link, read, &reader->failure);
    for (size_t i = 0; r == 0 && i < sl_home_read_count(read); i++)
        take_listed(reader, sl_home_read_at(read, i), ret_posts);
    sl_home_read_free(read);
    return r < 0 ? r : find_missing(reader, as, ret_posts);
}
