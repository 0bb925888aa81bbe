/* home_timeline.c - what does it cost to read a home timeline?
 *
 *     home_timeline --redis unix:///PATH [--shards N]
 *
 * Works in an empty Redis of its own, and leaves its data there. Readers who follow 20, 200 and
 * 2,000 authors, each with 20 posts, read a page of 20 pushed, pulled and hybrid (one author in
 * twenty is merged in): when nothing is kept of the timeline ("first"), and as everyday refresh.
 * Times of refreshes are medians; round trips and Redis commands (those inside of scripts too, from
 * INFO commandstats) are means of a read. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "src/follows.h"
#include "src/id.h"
#include "src/posts.h"
#include "src/redis_link.h"
#include "src/reply.h"
#include "src/settings.h"
#include "src/timelines.h"
#include "src/users.h"
#include "src/worker.h"

enum {
    AUTHORS = 2000,
    POSTS = 20,        /* of each author */
    MERGED_EVERY = 20, /* authors */
    FANS = 8,          /* who follow those, and nobody else */
    READS = 200,
    MANY = 100, /* calls sent together while all is made */
};

static struct sl_redis_address address;
static struct sl_redis_link *link_;
static struct sl_meta meta;
static struct failure failure;
static uint64_t authors[AUTHORS];

static void need(int r, const char *what)
{
    if (r == 0)
        return;
    fprintf(stderr, "home_timeline: %s: %s\n", what, failure.text);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* ---- calls in bulk ---- */

static struct sl_call bulk[MANY];
static size_t bulk_count;

static void flush(uint64_t *ret_ids)
{
    redisReply *replies[MANY] = {NULL};
    struct sl_written written;

    if (bulk_count == 0)
        return;
    need(sl_redis_link_run_many(link_, bulk, bulk_count, replies, &failure), "send");
    for (size_t i = 0; i < bulk_count; i++) {
        need(sl_write_reply(replies[i], &written, &failure), "write");
        if (ret_ids)
            ret_ids[i] = written.id;
        freeReplyObject(replies[i]);
    }
    bulk_count = 0;
}

static struct sl_call *next_call(void)
{
    if (bulk_count == MANY)
        flush(NULL);
    return &bulk[bulk_count++];
}

static void make_users(const char *name, uint64_t *ret_ids, size_t count)
{
    char login[32];

    for (size_t i = 0; i < count; i++) {
        snprintf(login, sizeof(login), "%s%zu", name, i);
        need(sl_user_create_call(&bulk[bulk_count++], &meta, SL_SLICE_NONE, sl_slice_str(login),
                                 SL_SLICE_NONE, &failure),
             "user");
        if (bulk_count == MANY || i + 1 == count) {
            size_t made = bulk_count;

            flush(ret_ids + i + 1 - made);
        }
    }
}

static void follow(uint64_t user, uint64_t target)
{
    const struct sl_user_ref who = sl_user_by_id(user);
    const struct sl_user whom = {.id = target};

    need(sl_follow_call(next_call(), &meta, SL_SLICE_NONE, &who, &whom, &failure), "follow");
}

static void post(uint64_t author)
{
    const struct sl_user_ref who = sl_user_by_id(author);
    const struct sl_post post = {.text = SL_SLICE("The quick brown fox jumps over the lazy dog")};

    need(sl_post_call(next_call(), &meta, SL_SLICE_NONE, &who, &post, &failure), "post");
}

static void work(void)
{
    const struct sl_worker_options options = {.concurrency = 2, .until_empty = true};
    struct sl_worker *worker;

    need(sl_worker_new(&address, &meta, &options, &worker, &failure), "worker");
    need(sl_worker_run(worker, &failure), "worker");
    sl_worker_free(worker);
}

static void set(const char *name, const char *value)
{
    const struct sl_setting *setting;
    uint64_t number;
    size_t i;

    need(sl_setting_find(sl_slice_str(name), &i, &failure), "setting");
    setting = sl_setting_at(i);
    need(sl_setting_parse(setting, sl_slice_str(value), &number, &failure), "setting");
    for (uint32_t k = 0; k < meta.shards * sl_setting_rounds(setting); k++) {
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply;

        need(sl_setting_change_call(&call, &meta, k % meta.shards, setting, &number, &failure),
             "setting");
        need(sl_redis_link_run(link_, &call, &reply, &failure), "setting");
        need(sl_reply_check(reply, &failure), "setting");
        freeReplyObject(reply);
        sl_call_done(&call);
    }
}

/* ---- reads ---- */

/* All commands that Redis has run so far. */
static uint64_t commands_run(redisContext *redis)
{
    redisReply *reply = redisCommand(redis, "INFO commandstats");
    uint64_t sum = 0;

    for (const char *at = reply->str; (at = strstr(at, ":calls=")); at += 7)
        sum += strtoull(at + 7, NULL, 10);
    freeReplyObject(reply);
    return sum;
}

/* A page of 20; returns the round trips. */
static unsigned read_home(uint64_t reader)
{
    const struct sl_user_ref who = sl_user_by_id(reader);
    const struct sl_home_page page = {.limit = 20};
    struct sl_home_read *read;
    struct sl_call *calls;
    unsigned rounds = 0;
    size_t count;

    need(sl_home_read_new(&read, &meta, &who, &page, &failure), "read");
    for (;;) {
        redisReply *replies[256];

        need(sl_home_read_calls(read, &calls, &count, &failure), "read");
        if (count == 0)
            break;
        need(sl_redis_link_run_many(link_, calls, count, replies, &failure), "read");
        for (size_t i = 0; i < count; i++) {
            need(sl_home_read_take(read, i, replies[i], &failure), "read");
            freeReplyObject(replies[i]);
        }
        rounds++;
    }
    if (sl_home_read_count(read) != 20) {
        fprintf(stderr, "home_timeline: a page has %zu posts\n", sl_home_read_count(read));
        exit(1);
    }
    sl_home_read_free(read);
    return rounds;
}

static void measure_reads(redisContext *redis, const char *timeline, uint64_t reader,
                          size_t followed)
{
    double times[READS], first_us;
    unsigned rounds = 0, first_rounds;
    uint64_t before, first_commands;

    before = commands_run(redis);
    first_us = now_us();
    first_rounds = read_home(reader);
    first_us = now_us() - first_us;
    first_commands = commands_run(redis) - before - 1;
    work(); /* the backfill that the first read has asked for */
    before = commands_run(redis);
    for (size_t i = 0; i < READS; i++) {
        double began = now_us();

        rounds += read_home(reader);
        times[i] = now_us() - began;
    }
    printf("| %s | %zu | %u | %" PRIu64 " | %.2f | %.1f | %.0f | %.2f |\n", timeline, followed,
           first_rounds, first_commands, first_us / 1e3, (double)rounds / READS,
           (double)(commands_run(redis) - before - 1) / READS, median(times, READS) / 1e3);
    fflush(stdout);
}

static void bench_reads(redisContext *redis)
{
    static const char *const timelines[] = {"push", "pull", "hybrid"};
    static const size_t follows[] = {20, 200, 2000};
    uint64_t readers[3], fans[FANS];

    make_users("author", authors, AUTHORS);
    make_users("fan", fans, FANS);
    make_users("reader", readers, 3);
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < follows[i]; k++)
            follow(readers[i], authors[k]);
    }
    for (size_t i = 0; i < AUTHORS; i += MERGED_EVERY) {
        for (size_t k = 0; k < FANS; k++)
            follow(fans[k], authors[i]);
    }
    flush(NULL);
    work();
    set("merge-above", "7");
    for (size_t i = 0; i < POSTS; i++) {
        for (size_t k = 0; k < AUTHORS; k++)
            post(authors[k]);
    }
    flush(NULL);
    work();
    printf("\n| timeline | followed | first: round trips | Redis commands | ms | refresh: round "
           "trips | Redis commands | ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t t = 0; t < 3; t++) {
        set("timeline", timelines[t]);
        for (size_t i = 0; i < 3; i++)
            measure_reads(redis, timelines[t], readers[i], follows[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct option wanted_options[] = {
        {"redis", required_argument, NULL, 'r'}, {"shards", required_argument, NULL, 's'}, {0}};
    const struct sl_redis_link_options options = {.answer_ms = 60000};
    struct sl_meta wanted = sl_meta_wanted(1);
    const char *url = NULL;
    redisContext *redis;
    int option;

    signal(SIGPIPE, SIG_IGN);
    while ((option = getopt_long(argc, argv, "", wanted_options, NULL)) >= 0) {
        if (option == 'r')
            url = optarg;
        else if (option == 's')
            wanted.shards = (uint32_t)atoi(optarg);
        else
            return 2;
    }
    if (!url || wanted.shards < 1 || wanted.shards > SL_SHARDS_MAX) {
        fprintf(stderr, "usage: home_timeline --redis unix:///PATH [--shards N]\n");
        return 2;
    }
    need(sl_redis_address_parse(sl_slice_str(url), &address, &failure), "address");
    need(sl_redis_link_open(&address, &options, &link_, &failure), "connect");
    need(sl_redis_link_meta(link_, &wanted, &meta, &failure), "database");
    redis = redisConnectUnix(address.path);
    if (!redis || redis->err || !meta.is_new || meta.shards != wanted.shards) {
        fprintf(stderr, "home_timeline: an empty Redis on a unix socket is needed\n");
        return 1;
    }
    printf("%u shards\n", meta.shards);
    bench_reads(redis);
    for (size_t i = 0; i < MANY; i++)
        sl_call_done(&bulk[i]);
    redisFree(redis);
    sl_redis_link_close(link_);
    return 0;
}
