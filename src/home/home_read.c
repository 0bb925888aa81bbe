/* home_read.c - a read of a home timeline, step by step.
 *
 *     FIRST   ask the reader's shard for the stored posts, and whom else to ask (home_read.lua)
 *     MERGE   ask those (home_feed.lua), until the page is full or nobody has more
 *     WHOLE   read the posts of the page, if only ids were asked for (read_posts.lua)
 *
 * A timeline ends after `size` posts. For the number of posts before the page only an upper bound
 * is known. So a page that may cross the end is cut out of the whole timeline: FIRST and MERGE once
 * more, for ids from the newest on, then WHOLE. */
#include "src/home/home_read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/reply_read.h"
#include "src/call/shard_calls.h"
#include "src/call/write_build.h"
#include "src/home/home_merge.h"
#include "src/model/id.h"

enum step { STEP_FIRST, STEP_MERGE, STEP_WHOLE, STEP_DONE };

struct sl_home_read {
    struct sl_meta meta;
    struct sl_home_page page;
    struct sl_write_user who;
    enum step step;
    bool is_all; /* ids of the whole timeline, from which the page is cut */
    uint64_t size;
    struct sl_home_merge merge;
    struct sl_call *calls; /* of this round */
    size_t *sources;       /* the source that each call asks */
    size_t call_count, call_room;
    size_t answers; /* still missing in this round */
    struct sl_shard_calls posts;
};

static void begin_merge(struct sl_home_read *read)
{
    sl_home_merge_done(&read->merge);
    read->merge = (struct sl_home_merge){
        .meta = read->meta,
        .before = read->is_all ? 0 : read->page.before,
        .after = read->is_all ? 0 : read->page.after,
        .limit = read->is_all ? read->size : read->page.limit,
        .is_whole = !read->is_all,
        .is_bare = read->page.is_bare,
    };
    read->step = STEP_FIRST;
}

static int check_page(const struct sl_home_page *page, struct failure *reterr)
{
    if (page->limit < 1 || page->limit > SL_HOME_PAGE_MAX)
        return failure_set(reterr, -EINVAL, "a page has 1 to %d posts", SL_HOME_PAGE_MAX);
    if (page->before > SL_ID_MAX || page->after > SL_ID_MAX)
        return failure_set(reterr, -EINVAL, "there is no such post to read before or after");
    return 0;
}

int sl_home_read_new(struct sl_home_read **ret_read, const struct sl_meta *meta,
                     const struct sl_user_ref *reader, const struct sl_home_page *page,
                     struct failure *reterr)
{
    struct sl_home_read *read = mem_zalloc(sizeof(*read));
    int r;

    if (!read)
        return failure_set(reterr, -ENOMEM, "out of memory");
    read->meta = *meta;
    read->page = *page;
    r = check_page(page, reterr);
    if (r == 0)
        r = sl_write_user_init(&read->who, reader, meta, reterr);
    if (r < 0) {
        mem_free(read);
        return r;
    }
    begin_merge(read);
    *ret_read = read;
    return 0;
}

void sl_home_read_free(struct sl_home_read *read)
{
    if (!read)
        return;
    for (size_t i = 0; i < read->call_room; i++)
        sl_call_done(&read->calls[i]);
    mem_free(read->calls);
    mem_free(read->sources);
    sl_shard_calls_done(&read->posts);
    sl_home_merge_done(&read->merge);
    mem_free(read);
}

/* ---- calls ---- */

static struct sl_call *add_call(struct sl_home_read *read, size_t source)
{
    if (read->call_count == read->call_room) {
        size_t room = read->call_room ? read->call_room * 2 : 8;
        struct sl_call *calls = mem_realloc(read->calls, mem_array_size(room, sizeof(*calls)));
        size_t *sources;

        if (!calls)
            return NULL;
        read->calls = calls;
        sources = mem_realloc(read->sources, mem_array_size(room, sizeof(*sources)));
        if (!sources)
            return NULL;
        read->sources = sources;
        while (read->call_room < room)
            read->calls[read->call_room++] = SL_CALL_INIT;
    }
    read->sources[read->call_count] = source;
    return &read->calls[read->call_count++];
}

/* Asks the reader's shard. `until`: the stored part is known above it; UINT64_MAX: nothing is. */
static int ask_reader(struct sl_home_read *read, size_t source, uint64_t until,
                      struct failure *reterr)
{
    struct sl_call *call = add_call(read, source);

    if (!call)
        return failure_set(reterr, -ENOMEM, "out of memory");
    /* Repeatable, because it only records that the reader is active. */
    sl_call_begin_repeatable(call, &sl_script_home_read, read->who.shard, read->meta.shards);
    sl_call_add(call, read->who.slice);
    sl_home_merge_add_before(&read->merge, until, call);
    sl_home_merge_add_after(&read->merge, call);
    sl_call_add_id(call, sl_home_merge_portion(&read->merge));
    sl_home_merge_add_form(&read->merge, call);
    sl_call_add_str(call, until == UINT64_MAX ? "0" : "1");
    return sl_call_finish(call, reterr);
}

static int ask_sources(struct sl_home_read *read, struct failure *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < read->merge.source_count; i++) {
        const struct sl_home_source *source = &read->merge.sources[i];
        struct sl_call *call;

        if (!source->is_due)
            continue;
        if (source->is_kept) {
            r = ask_reader(read, i, source->until, reterr);
            continue;
        }
        call = add_call(read, i);
        if (!call)
            return failure_set(reterr, -ENOMEM, "out of memory");
        r = sl_home_merge_call(&read->merge, i, call, reterr);
    }
    return r;
}

/* Cuts the page out of all ids, and asks for its posts. */
static int ask_posts(struct sl_home_read *read, struct failure *reterr)
{
    struct sl_home_merge *merge = &read->merge;
    uint64_t *ids = mem_alloc(mem_array_size(read->page.limit, sizeof(*ids)));
    size_t count = 0;
    int r;

    if (!ids)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < merge->row_count && count < read->page.limit; i++) {
        uint64_t id = merge->rows[i].post.id;

        if (id < read->page.before && id > read->page.after)
            ids[count++] = id;
    }
    r = sl_posts_calls(&read->posts, &read->meta, merge->reader, ids, count, reterr);
    mem_free(ids);
    if (r < 0)
        return r;
    merge->row_count = 0; /* ids only, nothing to free */
    merge->is_whole = true;
    return 0;
}

/* The merge is complete: decides what is next. */
static void conclude_merge(struct sl_home_read *read)
{
    if (read->is_all) {
        read->step = STEP_WHOLE;
    } else if (read->page.before > 0 && read->merge.newer + read->page.limit > read->size) {
        read->is_all = true;
        begin_merge(read);
    } else {
        read->step = STEP_DONE;
    }
}

int sl_home_read_calls(struct sl_home_read *read, struct sl_call **ret_calls, size_t *ret_count,
                       struct failure *reterr)
{
    int r = 0;

    read->call_count = 0;
    if (read->step == STEP_MERGE && !sl_home_merge_plan(&read->merge))
        conclude_merge(read);
    *ret_calls = read->calls;
    switch (read->step) {
    case STEP_FIRST:
        r = ask_reader(read, SIZE_MAX, UINT64_MAX, reterr);
        *ret_calls = read->calls;
        break;
    case STEP_MERGE:
        r = ask_sources(read, reterr);
        *ret_calls = read->calls;
        break;
    case STEP_WHOLE:
        r = ask_posts(read, reterr);
        *ret_calls = read->posts.calls;
        read->call_count = read->posts.count;
        if (read->call_count == 0)
            read->step = STEP_DONE;
        break;
    case STEP_DONE:
        break;
    }
    read->answers = read->call_count;
    *ret_count = read->call_count;
    return r;
}

/* ---- replies ---- */

/* What home_read.lua returns. */
enum {
    HOME_READER,
    HOME_SIZE,
    HOME_KEPT_UNTIL,
    HOME_NEWER,
    HOME_FED_UNTIL,
    HOME_FED,
    HOME_ASKED,
    HOME_PUSHED,
    HOME_BELOW,
    HOME_POSTS,
    HOME_ROWS,
    HOME_ELEMENTS
};

/* Adds element `i` of the reply, authors or posts, to the merge. `until` as in sl_home_merge_add();
 * 0: posts. */
static int add_list(struct sl_home_read *read, const redisReply *reply, size_t i, uint64_t until,
                    struct failure *reterr)
{
    struct buffer ids = BUFFER_INIT;
    int r = sl_home_merge_read_ids(reply, i, &ids, reterr);
    const uint64_t *list = (const uint64_t *)(const void *)ids.data;
    size_t count = ids.size / sizeof(*list);

    if (r == 0)
        r = until > 0 ? sl_home_merge_add(&read->merge, list, count, until, reterr)
                      : sl_home_merge_add_posts(&read->merge, list, count, reterr);
    buffer_done(&ids);
    return r;
}

/* Takes the numbers and rows that every answer of the reader's shard contains. */
static int take_kept(struct sl_home_read *read, const redisReply *reply, uint64_t *ret_numbers,
                     struct failure *reterr)
{
    const redisReply *rows;
    int r;

    r = sl_reply_check_array(reply, HOME_ELEMENTS, reterr);
    if (r == 0)
        r = sl_reply_read_id(reply, HOME_READER, &read->merge.reader, reterr);
    for (size_t i = HOME_SIZE; r == 0 && i <= HOME_FED_UNTIL; i++)
        r = sl_reply_read_number(reply, i, &ret_numbers[i], reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, HOME_BELOW, &ret_numbers[HOME_BELOW], reterr);
    if (r == 0)
        r = sl_reply_read_row(reply, HOME_ROWS, 0, &rows, reterr);
    return r < 0 ? r : sl_home_merge_take_rows(&read->merge, rows, reterr);
}

static int take_first(struct sl_home_read *read, const redisReply *reply, struct failure *reterr)
{
    uint64_t numbers[HOME_ELEMENTS];
    int r = take_kept(read, reply, numbers, reterr);

    if (r < 0)
        return r;
    read->size = numbers[HOME_SIZE];
    if (read->is_all || read->merge.limit > read->size)
        read->merge.limit = read->size;
    read->merge.newer = numbers[HOME_NEWER];
    r = sl_home_merge_add_kept(&read->merge, numbers[HOME_KEPT_UNTIL], reterr);
    if (r == 0 && numbers[HOME_FED_UNTIL] > 0)
        r = add_list(read, reply, HOME_FED, numbers[HOME_FED_UNTIL], reterr);
    if (r == 0)
        r = add_list(read, reply, HOME_ASKED, UINT64_MAX, reterr);
    if (r == 0 && numbers[HOME_BELOW] > 0)
        r = add_list(read, reply, HOME_PUSHED, numbers[HOME_BELOW], reterr);
    if (r == 0)
        r = add_list(read, reply, HOME_POSTS, 0, reterr);
    read->step = STEP_MERGE;
    return r;
}

/* Takes more of the stored part, and the authors of pushed posts, to be asked below it. */
static int take_more_kept(struct sl_home_read *read, size_t source, const redisReply *reply,
                          struct failure *reterr)
{
    uint64_t numbers[HOME_ELEMENTS];
    int r = take_kept(read, reply, numbers, reterr);

    if (r == 0 && numbers[HOME_KEPT_UNTIL] >= read->merge.sources[source].until)
        r = sl_reply_unexpected(reterr);
    if (r < 0)
        return r;
    read->merge.sources[source].until = numbers[HOME_KEPT_UNTIL];
    if (numbers[HOME_BELOW] > 0)
        r = add_list(read, reply, HOME_PUSHED, numbers[HOME_BELOW], reterr);
    return r < 0 ? r : add_list(read, reply, HOME_POSTS, 0, reterr);
}

/* A post that no longer exists is left out. */
static int take_posts(struct sl_home_read *read, size_t i, const redisReply *reply,
                      struct failure *reterr)
{
    size_t count;
    int r;

    sl_shard_calls_items(&read->posts, i, &count);
    r = sl_reply_check_array(reply, count, reterr);
    for (size_t k = 0; r == 0 && k < count; k++) {
        const redisReply one = {
            .type = REDIS_REPLY_ARRAY, .elements = 1, .element = &reply->element[k]};

        if (reply->element[k]->type == REDIS_REPLY_ERROR)
            continue;
        r = sl_home_merge_take_rows(&read->merge, &one, reterr);
    }
    return r;
}

int sl_home_read_take(struct sl_home_read *read, size_t i, const redisReply *reply,
                      struct failure *reterr)
{
    int r;

    if (read->step == STEP_FIRST)
        r = take_first(read, reply, reterr);
    else if (read->step == STEP_WHOLE)
        r = take_posts(read, i, reply, reterr);
    else if (read->merge.sources[read->sources[i]].is_kept)
        r = take_more_kept(read, read->sources[i], reply, reterr);
    else
        r = sl_home_merge_take(&read->merge, read->sources[i], reply, reterr);
    if (r == 0 && --read->answers == 0 && read->step == STEP_WHOLE) {
        sl_home_merge_plan(&read->merge); /* sorts */
        read->step = STEP_DONE;
    }
    return r;
}

size_t sl_home_read_count(const struct sl_home_read *read)
{
    return read->merge.row_count;
}

const struct sl_post_row *sl_home_read_at(const struct sl_home_read *read, size_t i)
{
    return &read->merge.rows[i].post;
}

/* ---- on a link ---- */

static int run_round(struct sl_redis_link *link, struct sl_home_read *read, struct sl_call *calls,
                     size_t count, struct failure *reterr)
{
    redisReply **replies = mem_zalloc(mem_array_size(count, sizeof(*replies)));
    int r;

    if (!replies)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = sl_redis_link_run_many(link, calls, count, replies, reterr);
    for (size_t i = 0; i < count; i++) {
        if (r == 0)
            r = sl_home_read_take(read, i, replies[i], reterr);
        freeReplyObject(replies[i]);
    }
    mem_free(replies);
    return r;
}

int sl_home_run(struct sl_redis_link *link, struct sl_home_read *read, struct failure *reterr)
{
    struct sl_call *calls;
    size_t count;
    int r;

    do {
        r = sl_home_read_calls(read, &calls, &count, reterr);
        if (r == 0 && count > 0)
            r = run_round(link, read, calls, count, reterr);
    } while (r == 0 && count > 0);
    return r;
}
