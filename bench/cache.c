/* cache.c - how much work does a cache save Redis?
 *
 *     cache --redis URL --cache URL --archive URL [--bytes N]
 *
 * Creates a database in an empty Redis: authors who post N bytes (280), a reader who follows them,
 * and an author whose posts are in the archive. Each read is done some hundred times in three ways,
 * alternately: without a cache, with one that has everything, with one that has nothing. Prints a
 * table row for each: CPU time of Redis and commands (its own counts, INFO), and the median time
 * that the reader waits; times are in microseconds. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "bench/database.h"
#include "bench/measure.h"
#include "src/archive/archived.h"
#include "src/cache/cached_rows.h"
#include "src/call/call_build.h"
#include "src/home/home_read.h"
#include "src/social/follows.h"
#include "src/social/posts.h"
#include "src/social/row_json.h"
#include "src/social/user_list.h"
#include "src/social/users.h"
#include "src/tasks/worker.h"

enum { AUTHORS = 20, POSTS = 400, OLD = 40, TIMES = 400, PAGE = 20, BYTES = 280 };

enum way { WITHOUT, FULL, EMPTY, WAYS };

struct bench {
    struct database database;
    struct sl_cache *cache, *empty; /* the second is for another database */
    struct sl_archive *archive;
    const char *archive_url;
    uint64_t authors[AUTHORS], reader, collector;
    uint64_t posts[POSTS], old[OLD]; /* those of the collector are archived */
    char *text;
    size_t bytes;
    struct buffer json; /* of the last read */
};

/* ---- reading ---- */

static void fill(struct bench *bench, enum way way, struct sl_cache_item *items, size_t count)
{
    sl_cache_get(way == FULL ? bench->cache : bench->empty, items, count);
}

static void keep_post(struct bench *bench, enum way way, const struct sl_post_row *row,
                      enum sl_cached_source source)
{
    struct sl_cache_item item = {SL_CACHE_POST, row->id, SL_SLICE_NONE};
    struct buffer value = BUFFER_INIT;

    if (way == FULL && sl_cached_post_value(&value, row, source)) {
        item.value = buffer_slice(&value);
        sl_cache_put(bench->cache, &item, 1, clock_wall_ms());
    }
    buffer_done(&value);
}

static void run_calls(struct bench *bench, struct sl_shard_calls *calls, int built,
                      redisReply **ret_reply)
{
    database_must(&bench->database, built, "build");
    database_run_many(&bench->database, calls->calls, 1, ret_reply);
}

/* Reads posts that are not in Redis like a reader with an archive. */
static void find_old(struct bench *bench, enum way way, const uint64_t *ids, size_t count)
{
    struct database *database = &bench->database;
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_archive_page page;
    struct sl_post_row row;
    redisReply *reply;

    database_must(database, sl_archive_find(bench->archive, ids, count, &page, &database->failure),
                  "find");
    run_calls(bench, &calls,
              sl_archived_posts_calls(&calls, &database->meta, bench->reader, page.posts,
                                      page.count, &database->failure),
              &reply);
    for (size_t i = 0; i < page.count; i++) {
        database_must(database, sl_posts_at(reply, i, &row, &database->failure), "row");
        sl_post_row_json(&bench->json, &row);
        keep_post(bench, way, &row, SL_CACHED_FROM_ARCHIVE);
    }
    freeReplyObject(reply);
    sl_shard_calls_done(&calls);
    sl_archive_page_done(&page);
}

static void find_posts(struct bench *bench, enum way way, const uint64_t *ids, size_t count)
{
    struct database *database = &bench->database;
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_cache_item items[PAGE] = {{0}};
    uint64_t missing[PAGE];
    size_t missing_count = 0;
    struct sl_post_row row;
    redisReply *reply;

    for (size_t i = 0; i < count; i++)
        items[i] = (struct sl_cache_item){SL_CACHE_POST, ids[i], SL_SLICE_NONE};
    if (way != WITHOUT)
        fill(bench, way, items, count);
    run_calls(bench, &calls,
              sl_cached_posts_calls(&calls, &database->meta, bench->reader, items, count,
                                    &database->failure),
              &reply);
    for (size_t i = 0; i < count; i++) {
        if (sl_posts_at(reply, i, &row, &database->failure) == -ENOENT) {
            missing[missing_count++] = ids[i];
            continue;
        }
        if (!sl_cached_post_json(&bench->json, &row, items[i].value))
            measure_fail("read", "a bare row of what is not cached");
        keep_post(bench, way, &row, SL_CACHED_FROM_REDIS);
    }
    freeReplyObject(reply);
    sl_shard_calls_done(&calls);
    sl_cache_items_done(items, count);
    if (missing_count > 0)
        find_old(bench, way, missing, missing_count);
}

/* Completes those rows of a page that have only ids. */
static void complete(struct bench *bench, enum way way, const struct sl_post_row *rows,
                     size_t count)
{
    struct sl_cache_item items[PAGE] = {{0}};
    uint64_t missing[PAGE];
    size_t missing_count = 0;

    for (size_t i = 0; i < count; i++)
        items[i] = (struct sl_cache_item){SL_CACHE_POST, rows[i].id, SL_SLICE_NONE};
    if (way != WITHOUT)
        fill(bench, way, items, count);
    for (size_t i = 0; i < count; i++) {
        if (!sl_cached_post_json(&bench->json, &rows[i], items[i].value))
            missing[missing_count++] = rows[i].id;
    }
    sl_cache_items_done(items, count);
    if (missing_count > 0)
        find_posts(bench, way, missing, missing_count);
}

static void read_posts(struct bench *bench, enum way way)
{
    find_posts(bench, way, bench->posts, PAGE);
}

static void read_post(struct bench *bench, enum way way)
{
    find_posts(bench, way, bench->posts, 1);
}

static void read_old(struct bench *bench, enum way way)
{
    find_posts(bench, way, bench->old, PAGE);
}

static void read_old_post(struct bench *bench, enum way way)
{
    find_posts(bench, way, bench->old, 1);
}

static void read_profile(struct bench *bench, enum way way)
{
    const struct sl_page page = {.limit = PAGE, .is_bare = way != WITHOUT};
    const struct sl_user_ref author = sl_user_by_id(bench->authors[0]);
    struct database *database = &bench->database;
    struct sl_call call = SL_CALL_INIT;
    struct sl_post_row rows[PAGE];
    size_t count;
    redisReply *reply;

    reply = database_run(database, &call,
                         sl_post_list_call(&call, &database->meta, bench->reader, &author, &page,
                                           &database->failure));
    database_must(database, sl_post_list_reply(reply, &count, &database->failure), "list");
    for (size_t i = 0; i < count; i++)
        database_must(database, sl_post_list_at(reply, i, &rows[i], &database->failure), "list");
    complete(bench, way, rows, count);
    freeReplyObject(reply);
}

static void read_home(struct bench *bench, enum way way)
{
    const struct sl_home_page page = {.limit = PAGE, .is_bare = way != WITHOUT};
    const struct sl_user_ref reader = sl_user_by_id(bench->reader);
    struct database *database = &bench->database;
    struct sl_post_row rows[PAGE];
    struct sl_home_read *read;
    size_t count;

    database_must(database,
                  sl_home_read_new(&read, &database->meta, &reader, &page, &database->failure),
                  "home");
    database_must(database, sl_home_run(database->link, read, &database->failure), "home");
    count = sl_home_read_count(read);
    for (size_t i = 0; i < count; i++)
        rows[i] = *sl_home_read_at(read, i);
    complete(bench, way, rows, count);
    sl_home_read_free(read);
}

/* ---- users ---- */

static void show_users(struct bench *bench, enum way way, struct sl_user_row *rows,
                       const struct sl_cache_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sl_cache_item item = items[i];
        struct buffer value = BUFFER_INIT;

        if (way == FULL && sl_cached_user_value(&value, &rows[i])) {
            item.value = buffer_slice(&value);
            sl_cache_put(bench->cache, &item, 1, clock_wall_ms());
        }
        buffer_done(&value);
        if (!sl_cached_user_fill(&rows[i], items[i].value))
            measure_fail("read", "a bare row of what is not cached");
        sl_user_row_json(&bench->json, &rows[i]);
    }
}

static void find_users(struct bench *bench, enum way way, const uint64_t *ids, size_t count)
{
    struct database *database = &bench->database;
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_cache_item items[PAGE] = {{0}};
    struct sl_user_ref refs[PAGE] = {{0}};
    struct sl_user_row rows[PAGE];
    redisReply *reply;

    for (size_t i = 0; i < count; i++) {
        items[i] = (struct sl_cache_item){SL_CACHE_USER, ids[i], SL_SLICE_NONE};
        refs[i] = sl_user_by_id(ids[i]);
    }
    if (way != WITHOUT)
        fill(bench, way, items, count);
    run_calls(
        bench, &calls,
        sl_cached_users_calls(&calls, &database->meta, refs, items, count, &database->failure),
        &reply);
    for (size_t i = 0; i < count; i++)
        database_must(database, sl_users_at(reply, i, &rows[i], &database->failure), "user");
    show_users(bench, way, rows, items, count);
    freeReplyObject(reply);
    sl_shard_calls_done(&calls);
    sl_cache_items_done(items, count);
}

static void read_user(struct bench *bench, enum way way)
{
    find_users(bench, way, bench->authors, 1);
}

static void read_following(struct bench *bench, enum way way)
{
    const struct sl_page page = {.limit = PAGE, .is_bare = way != WITHOUT};
    const struct sl_user_ref reader = sl_user_by_id(bench->reader);
    struct database *database = &bench->database;
    struct sl_call call = SL_CALL_INIT;
    struct sl_cache_item items[PAGE] = {{0}};
    struct sl_user_row rows[PAGE];
    uint64_t ids[PAGE];
    bool is_known = true;
    size_t count;
    redisReply *reply;

    reply = database_run(
        database, &call,
        sl_following_list_call(&call, &database->meta, &reader, &page, &database->failure));
    database_must(database, sl_user_list_reply(reply, &count, &database->failure), "list");
    for (size_t i = 0; i < count; i++) {
        struct sl_listed_user listed;

        database_must(database, sl_user_list_at(reply, i, &listed, &database->failure), "list");
        rows[i] = listed.row;
        ids[i] = listed.row.user.id;
        items[i] = (struct sl_cache_item){SL_CACHE_USER, ids[i], SL_SLICE_NONE};
    }
    if (way != WITHOUT)
        fill(bench, way, items, count);
    for (size_t i = 0; i < count; i++)
        is_known = is_known && (way == WITHOUT || items[i].value.data);
    if (is_known)
        show_users(bench, way, rows, items, count);
    else
        find_users(bench, way, ids, count);
    freeReplyObject(reply);
    sl_cache_items_done(items, count);
}

/* ---- what it costs ---- */

static const struct reading {
    const char *name;
    void (*read)(struct bench *bench, enum way way);
} readings[] = {
    {"a page of 20 of a home timeline", read_home},
    {"a page of 20 of somebody's posts", read_profile},
    {"20 posts by id", read_posts},
    {"one post by id", read_post},
    {"20 archived posts by id", read_old},
    {"one archived post by id", read_old_post},
    {"a page of 20 whom somebody follows", read_following},
    {"one user by id", read_user},
};

static double redis_cpu_us(struct bench *bench)
{
    static const char *const names[] = {"used_cpu_user:", "used_cpu_sys:"};
    struct database *database = &bench->database;
    struct sl_call call = SL_CALL_INIT;
    double seconds = 0;
    redisReply *info;

    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, "INFO");
    sl_call_add_str(&call, "cpu");
    database_must(database, sl_call_finish(&call, &database->failure), "INFO");
    database_must(database, sl_redis_link_run(database->watch, &call, &info, &database->failure),
                  "INFO");
    database->watched++;
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(info->str, names[i]);

        seconds += at ? strtod(at + strlen(names[i]), NULL) : 0;
    }
    freeReplyObject(info);
    sl_call_done(&call);
    return seconds * 1e6;
}

struct cost {
    double cpu_us, commands, median_us;
};

/* The ways alternate after this many reads, so that all three see the same state of the machine. */
enum { TURN = 50 };

static void measure(struct bench *bench, const struct reading *reading)
{
    static double times[WAYS][TIMES];
    struct cost costs[WAYS] = {{0}};

    for (enum way way = 0; way < WAYS; way++) {
        reading->read(bench, way); /* now scripts are loaded and the cache is full */
        reading->read(bench, way);
    }
    for (size_t turn = 0; turn < WAYS * (TIMES / TURN); turn++) {
        const enum way way = turn % WAYS;
        const size_t begin = turn / WAYS * TURN;
        const struct database_counts before = database_counts(&bench->database);
        const double cpu_us = redis_cpu_us(bench);

        for (size_t i = begin; i < begin + TURN; i++) {
            double start_us = measure_now_us();

            buffer_clear(&bench->json);
            reading->read(bench, way);
            times[way][i] = measure_now_us() - start_us;
        }
        costs[way].cpu_us += redis_cpu_us(bench) - cpu_us;
        costs[way].commands +=
            (double)(database_counts(&bench->database).commands - before.commands);
    }
    printf("| %s |", reading->name);
    for (enum way way = 0; way < WAYS; way++)
        printf(" %.0f |", costs[way].cpu_us / TIMES);
    printf(" %.0f %% |", 100 * costs[FULL].cpu_us / costs[WITHOUT].cpu_us);
    for (enum way way = 0; way < WAYS; way++)
        printf("%s%.0f", way == 0 ? " " : ", ", costs[way].commands / TIMES);
    for (enum way way = 0; way < WAYS; way++)
        printf("%s%.0f", way == 0 ? " | " : ", ", measure_share(times[way], TIMES, 0.5));
    printf(" |\n");
}

/* ---- the database ---- */

static int build_post_by(struct bench *bench, struct sl_call *call, uint64_t author)
{
    const struct sl_user_ref user = sl_user_by_id(author);
    const struct sl_post post = {.text = sl_slice(bench->text, bench->bytes),
                                 .lang = SL_SLICE("en"),
                                 .source = SL_SLICE("web")};

    return sl_post_call(call, &bench->database.meta, SL_SLICE_NONE, &user, &post,
                        &bench->database.failure);
}

static int build_post(void *context, struct sl_call *call, size_t i)
{
    struct bench *bench = context;

    return build_post_by(bench, call, bench->authors[i % AUTHORS]);
}

static int build_old(void *context, struct sl_call *call, size_t i)
{
    struct bench *bench = context;

    (void)i;
    return build_post_by(bench, call, bench->collector);
}

static int build_follow(void *context, struct sl_call *call, size_t i)
{
    struct bench *bench = context;
    const struct sl_user_ref reader = sl_user_by_id(bench->reader);
    char name[32];
    struct sl_user author = {.id = bench->authors[i]};

    snprintf(name, sizeof(name), "author%zu", i);
    author.login = author.name = sl_slice_str(name);
    return sl_follow_call(call, &bench->database.meta, SL_SLICE_NONE, &reader, &author,
                          &bench->database.failure);
}

/* The collector has many posts; with one more, the worker moves all but the newest. */
static void make_old(struct bench *bench)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .until_empty = true, .archive = bench->archive_url};
    struct database *database = &bench->database;
    struct sl_worker *worker;

    database_set(database, "profile-max", "30");
    database_set(database, "archive", "1");
    database_write_all(database, build_old, bench, OLD, bench->old);
    database_write_all(database, build_old, bench, 30, NULL);
    database_must(
        database,
        sl_worker_new(&database->address, &database->meta, &options, &worker, &database->failure),
        "worker");
    database_must(database, sl_worker_run(worker, &database->failure), "worker");
    sl_worker_free(worker);
    database_must(database,
                  sl_archive_open(bench->archive_url, database->meta.database_id, SL_ARCHIVE_READ,
                                  &bench->archive, &database->failure),
                  "archive");
}

static void make(struct bench *bench)
{
    struct database *database = &bench->database;

    bench->text = mem_alloc(bench->bytes);
    if (!bench->text)
        measure_fail("text", "out of memory");
    for (size_t i = 0; i < bench->bytes; i++)
        bench->text[i] = "some \"words\" that people read / "[i % 32];
    bench->text[bench->bytes - 1] = '.';
    database_create_users(database, "author", AUTHORS, bench->authors);
    database_create_users(database, "reader", 1, &bench->reader);
    database_create_users(database, "collector", 1, &bench->collector);
    database_write_all(database, build_follow, bench, AUTHORS, NULL);
    database_read_home(database, bench->reader, PAGE, NULL);
    database_write_all(database, build_post, bench, POSTS, bench->posts);
    make_old(bench);
}

static void open_caches(struct bench *bench, const char *url)
{
    const struct sl_cache_options options = {.timeout_ms = 1000};
    struct database *database = &bench->database;

    database_must(database,
                  sl_cache_open(url ? url : "", database->meta.database_id, &options, &bench->cache,
                                &database->failure),
                  "--cache");
    database_must(database,
                  sl_cache_open(url, "nobody's", &options, &bench->empty, &database->failure),
                  "--cache");
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"redis", required_argument, NULL, 'r'},
                                            {"cache", required_argument, NULL, 'c'},
                                            {"archive", required_argument, NULL, 'a'},
                                            {"bytes", required_argument, NULL, 'b'},
                                            {0}};
    static struct bench bench = {.bytes = BYTES};
    const char *redis = NULL, *cache = NULL;
    int option;

    signal(SIGPIPE, SIG_IGN);
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'r')
            redis = optarg;
        else if (option == 'c')
            cache = optarg;
        else if (option == 'a')
            bench.archive_url = optarg;
        else if (option == 'b')
            bench.bytes = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (!bench.archive_url || bench.bytes < 1 || bench.bytes > SL_POST_TEXT_MAX)
        return 2;
    database_open(&bench.database, redis, 1);
    open_caches(&bench, cache);
    make(&bench);
    printf(
        "posts of %zu bytes\n\n"
        "| read | without: us of Redis | cached: us of Redis | cache empty: us of Redis | cached "
        "/ without | commands | median us |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n",
        bench.bytes);
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++)
        measure(&bench, &readings[i]);
    buffer_done(&bench.json);
    mem_free(bench.text);
    sl_archive_close(bench.archive);
    sl_cache_close(bench.cache);
    sl_cache_close(bench.empty);
    database_close(&bench.database);
    return 0;
}
