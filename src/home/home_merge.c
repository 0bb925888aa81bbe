/* home_merge.c - sources by shard and group of authors, and one array of rows, sorted by id.
 *
 * Each round plans which sources are due: those whose answers are complete only down to an id above
 * the lowest one wanted. That id rises as rows come in, so few sources are asked twice. A group has
 * 250 authors and an answer 200 posts, so that no call keeps Redis busy for long. Rows are copies,
 * kept until the merge ends; duplicates are removed in each round. */
#include "src/home/home_merge.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/reply_read.h"
#include "src/call/write_build.h"
#include "src/model/id.h"
#include "src/social/row_read.h"

enum {
    GROUP_AUTHORS = 250, /* asked with one call, to limit the time of Redis */
    PORTION_MAX = 200,   /* posts in an answer */
};

static uint64_t id_at(const struct buffer *ids, size_t i)
{
    uint64_t id;

    memcpy(&id, ids->data + i * sizeof(id), sizeof(id));
    return id;
}

static size_t id_count(const struct buffer *ids)
{
    return ids->size / sizeof(uint64_t);
}

static int no_memory(struct failure *reterr)
{
    return failure_set(reterr, -ENOMEM, "out of memory");
}

/* A row owns one block of memory: its JSON, or for a bare row login and name. */
static void row_done(struct sl_home_row *row)
{
    mem_free((char *)row->post.json.data);
    mem_free((char *)row->post.login.data);
}

static int keep_texts(struct sl_post_row *post)
{
    const struct sl_slice login = post->login, name = post->name;
    char *texts;

    if (post->author == 0) {
        post->json.data = mem_strndup(post->json.data, post->json.size);
        return post->json.data ? 0 : -ENOMEM;
    }
    texts = mem_alloc(login.size + name.size + 1);
    if (!texts)
        return -ENOMEM;
    post->login.data = texts;
    post->name.data = texts + login.size;
    memcpy(texts, login.data, login.size);
    memcpy(texts + login.size, name.data, name.size);
    return 0;
}

void sl_home_merge_done(struct sl_home_merge *merge)
{
    for (size_t i = 0; i < merge->row_count; i++)
        row_done(&merge->rows[i]);
    mem_free(merge->rows);
    mem_free(merge->sources);
    buffer_done(&merge->authors);
    buffer_done(&merge->posts);
    buffer_done(&merge->settled);
    *merge = (struct sl_home_merge){.limit = 0};
}

static struct sl_home_source *add_source(struct sl_home_merge *merge, uint32_t shard,
                                         uint64_t until)
{
    if (merge->source_count == merge->source_room) {
        size_t room = merge->source_room ? merge->source_room * 2 : 16;
        struct sl_home_source *sources =
            mem_realloc(merge->sources, mem_array_size(room, sizeof(*sources)));

        if (!sources)
            return NULL;
        merge->sources = sources;
        merge->source_room = room;
    }
    merge->sources[merge->source_count] = (struct sl_home_source){.shard = shard, .until = until};
    return &merge->sources[merge->source_count++];
}

/* Adds all authors of one shard, in groups. */
static int add_of_shard(struct sl_home_merge *merge, uint32_t shard, const uint64_t *authors,
                        size_t count, uint64_t until)
{
    struct sl_home_source *source = NULL;

    for (size_t i = 0; i < count; i++) {
        if (sl_id_shard(authors[i]) != shard)
            continue;
        if (!source || source->author_count == GROUP_AUTHORS) {
            source = add_source(merge, shard, until);
            if (!source)
                return -ENOMEM;
            source->author_at = id_count(&merge->authors);
        }
        buffer_append(&merge->authors, &authors[i], sizeof(authors[i]));
        source->author_count++;
    }
    return merge->authors.failed ? -ENOMEM : 0;
}

static int check_ids(const struct sl_home_merge *merge, const uint64_t *ids, size_t count,
                     struct failure *reterr)
{
    for (size_t i = 0; i < count; i++) {
        if (sl_id_shard(ids[i]) >= merge->meta.shards)
            return sl_reply_unexpected(reterr);
    }
    return 0;
}

int sl_home_merge_add(struct sl_home_merge *merge, const uint64_t *authors, size_t count,
                      uint64_t until, struct failure *reterr)
{
    int r = check_ids(merge, authors, count, reterr);

    for (uint32_t shard = 0; r == 0 && shard < merge->meta.shards; shard++) {
        if (add_of_shard(merge, shard, authors, count, until) < 0)
            r = no_memory(reterr);
    }
    return r;
}

/* A source of the shard that has not been asked yet, else a new source for posts only. */
static struct sl_home_source *source_for_posts(struct sl_home_merge *merge, uint32_t shard)
{
    for (size_t i = 0; i < merge->source_count; i++) {
        struct sl_home_source *source = &merge->sources[i];

        if (source->shard == shard && source->until == UINT64_MAX && source->post_count == 0)
            return source;
    }
    return add_source(merge, shard, UINT64_MAX);
}

int sl_home_merge_add_posts(struct sl_home_merge *merge, const uint64_t *posts, size_t count,
                            struct failure *reterr)
{
    int r = check_ids(merge, posts, count, reterr);

    for (uint32_t shard = 0; r == 0 && shard < merge->meta.shards; shard++) {
        struct sl_home_source *source = NULL;

        for (size_t i = 0; i < count; i++) {
            if (sl_id_shard(posts[i]) != shard)
                continue;
            if (!source) {
                source = source_for_posts(merge, shard);
                if (!source)
                    return no_memory(reterr);
                source->post_at = id_count(&merge->posts);
            }
            buffer_append(&merge->posts, &posts[i], sizeof(posts[i]));
            source->post_count++;
        }
    }
    return merge->posts.failed ? no_memory(reterr) : r;
}

int sl_home_merge_add_kept(struct sl_home_merge *merge, uint64_t until, struct failure *reterr)
{
    struct sl_home_source *source = add_source(merge, sl_id_shard(merge->reader), until);

    if (!source)
        return no_memory(reterr);
    source->is_kept = true;
    return 0;
}

/* ---- planning ---- */

static int compare_rows(const void *a, const void *b)
{
    const struct sl_home_row *left = a, *right = b;

    return left->post.id < right->post.id ? 1 : left->post.id > right->post.id ? -1 : 0;
}

/* A post may be both stored and asked for; it must appear once. */
static void drop_repeated(struct sl_home_merge *merge)
{
    size_t kept = 0;

    for (size_t i = 0; i < merge->row_count; i++) {
        if (kept > 0 && merge->rows[kept - 1].post.id == merge->rows[i].post.id)
            row_done(&merge->rows[i]);
        else
            merge->rows[kept++] = merge->rows[i];
    }
    merge->row_count = kept;
}

/* The number of posts from `id` on, including those that have not been asked for yet. */
static size_t count_from(const struct sl_home_merge *merge, uint64_t id)
{
    size_t count = 0;

    while (count < merge->row_count && merge->rows[count].post.id >= id)
        count++;
    for (size_t i = 0; i < merge->source_count; i++) {
        const struct sl_home_source *source = &merge->sources[i];

        for (size_t k = 0; k < source->post_count; k++)
            count += id_at(&merge->posts, source->post_at + k) >= id;
    }
    return count;
}

/* The id above which everything must be known. Posts that have not been asked for yet are assumed
 * to exist: mostly they do, and then nothing else is needed. */
static uint64_t wanted_above(const struct sl_home_merge *merge)
{
    uint64_t wanted = 0;

    if (merge->row_count >= merge->limit)
        wanted = merge->rows[merge->limit - 1].post.id;
    for (size_t i = 0; i < merge->source_count; i++) {
        const struct sl_home_source *source = &merge->sources[i];

        for (size_t k = 0; k < source->post_count; k++) {
            uint64_t id = id_at(&merge->posts, source->post_at + k);

            if (id > wanted && count_from(merge, id) >= merge->limit)
                wanted = id;
        }
    }
    for (size_t i = 0; i < merge->row_count && merge->rows[i].post.id > wanted; i++) {
        if (count_from(merge, merge->rows[i].post.id) >= merge->limit)
            wanted = merge->rows[i].post.id;
    }
    return wanted;
}

bool sl_home_merge_plan(struct sl_home_merge *merge)
{
    uint64_t wanted;
    bool any_due = false;

    assert(merge->limit > 0);
    if (merge->row_count > 0)
        qsort(merge->rows, merge->row_count, sizeof(*merge->rows), compare_rows);
    drop_repeated(merge);
    wanted = wanted_above(merge);
    for (size_t i = 0; i < merge->source_count; i++) {
        struct sl_home_source *source = &merge->sources[i];

        source->is_due = source->until > wanted;
        any_due = any_due || source->is_due;
    }
    while (!any_due && merge->row_count > merge->limit)
        row_done(&merge->rows[--merge->row_count]);
    return any_due;
}

/* ---- calls and replies ---- */

size_t sl_home_merge_portion(const struct sl_home_merge *merge)
{
    return merge->limit < PORTION_MAX ? merge->limit : PORTION_MAX;
}

static void add_bound(struct sl_call *call, uint64_t id)
{
    char text[SL_ID_TEXT_SIZE + 1] = "(";

    sl_id_print(id, text + 1);
    sl_call_add_str(call, text);
}

void sl_home_merge_add_before(const struct sl_home_merge *merge, uint64_t until,
                              struct sl_call *call)
{
    if (until != UINT64_MAX)
        add_bound(call, until + 1);
    else if (merge->before > 0)
        add_bound(call, merge->before);
    else
        sl_call_add_str(call, "+inf");
}

void sl_home_merge_add_after(const struct sl_home_merge *merge, struct sl_call *call)
{
    if (merge->after > 0)
        add_bound(call, merge->after);
    else
        sl_call_add_str(call, "-inf");
}

void sl_home_merge_add_form(const struct sl_home_merge *merge, struct sl_call *call)
{
    sl_call_add_str(call, !merge->is_whole ? "0" : merge->is_bare ? "2" : "1");
}

int sl_home_merge_call(const struct sl_home_merge *merge, size_t source, struct sl_call *call,
                       struct failure *reterr)
{
    const struct sl_home_source *asked = &merge->sources[source];

    sl_call_begin_repeatable(call, &sl_script_home_feed, asked->shard, merge->meta.shards);
    sl_call_add_id(call, merge->reader);
    sl_home_merge_add_before(merge, asked->until, call);
    sl_home_merge_add_after(merge, call);
    sl_call_add_id(call, sl_home_merge_portion(merge));
    sl_home_merge_add_form(merge, call);
    sl_call_add_str(call, merge->is_settling && asked->until == UINT64_MAX ? "1" : "0");
    sl_call_add_id(call, asked->post_count);
    for (size_t i = 0; i < asked->post_count; i++)
        sl_call_add_id(call, id_at(&merge->posts, asked->post_at + i));
    for (size_t i = 0; i < asked->author_count; i++)
        sl_call_add_id(call, id_at(&merge->authors, asked->author_at + i));
    return sl_call_finish(call, reterr);
}

static struct sl_home_row *add_row(struct sl_home_merge *merge)
{
    if (merge->row_count == merge->row_room) {
        size_t room = merge->row_room ? merge->row_room * 2 : 64;
        struct sl_home_row *rows = mem_realloc(merge->rows, mem_array_size(room, sizeof(*rows)));

        if (!rows)
            return NULL;
        merge->rows = rows;
        merge->row_room = room;
    }
    merge->rows[merge->row_count] = (struct sl_home_row){.author = 0};
    return &merge->rows[merge->row_count++];
}

static int take_row(struct sl_home_merge *merge, const redisReply *row, struct failure *reterr)
{
    struct sl_home_row *taken = add_row(merge);
    struct sl_post_row read;
    int r;

    if (!taken)
        return no_memory(reterr);
    if (!merge->is_whole) {
        r = sl_reply_read_id(row, 0, &taken->post.id, reterr);
        return r < 0 ? r : sl_reply_read_id(row, 1, &taken->author, reterr);
    }
    r = sl_post_row_read(row, &read, reterr);
    if (r < 0)
        return r;
    r = keep_texts(&read);
    if (r < 0)
        return no_memory(reterr);
    taken->post = read;
    return 0;
}

int sl_home_merge_take_rows(struct sl_home_merge *merge, const redisReply *rows,
                            struct failure *reterr)
{
    const size_t size = merge->is_whole ? SL_POST_ROW_SIZE : 2;
    const redisReply *row;
    int r = 0;

    for (size_t i = 0; r == 0 && i < rows->elements; i++) {
        r = sl_reply_read_row(rows, i, size, &row, reterr);
        if (r == 0)
            r = take_row(merge, row, reterr);
    }
    return r;
}

int sl_home_merge_read_ids(const redisReply *reply, size_t i, struct buffer *ids,
                           struct failure *reterr)
{
    const redisReply *list;
    uint64_t id;
    int r;

    r = sl_reply_read_row(reply, i, 0, &list, reterr);
    for (size_t k = 0; r == 0 && k < list->elements; k++) {
        r = sl_reply_read_id(list, k, &id, reterr);
        if (r == 0)
            buffer_append(ids, &id, sizeof(id));
    }
    return r == 0 && ids->failed ? no_memory(reterr) : r;
}

static int take_settled(struct sl_home_merge *merge, const redisReply *reply, size_t i,
                        struct failure *reterr)
{
    const redisReply *list;
    int r;

    r = sl_reply_read_row(reply, i, 0, &list, reterr);
    for (size_t k = 0; r == 0 && k < list->elements; k += 2) {
        struct sl_home_settled settled;

        r = sl_reply_read_id(list, k, &settled.author, reterr);
        if (r == 0)
            r = sl_reply_read_number(list, k + 1, &settled.since, reterr);
        if (r == 0)
            buffer_append(&merge->settled, &settled, sizeof(settled));
    }
    return r == 0 && merge->settled.failed ? no_memory(reterr) : r;
}

int sl_home_merge_take(struct sl_home_merge *merge, size_t source, const redisReply *reply,
                       struct failure *reterr)
{
    struct sl_home_source *asked = &merge->sources[source];
    const redisReply *rows = NULL;
    uint64_t until = 0, newer = 0;
    int r;

    r = sl_reply_check_array(reply, 4, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 0, &until, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 1, &newer, reterr);
    if (r == 0)
        r = take_settled(merge, reply, 2, reterr);
    if (r == 0)
        r = sl_reply_read_row(reply, 3, 0, &rows, reterr);
    if (r == 0)
        r = sl_home_merge_take_rows(merge, rows, reterr);
    if (r == 0 && until >= asked->until)
        r = sl_reply_unexpected(reterr); /* it would be asked for again and again */
    if (r < 0)
        return r;
    if (asked->until == UINT64_MAX)
        merge->newer += newer;
    asked->until = until;
    asked->post_count = 0;
    return 0;
}
