/* posting.c - what does a post cost that very many follow?
 *
 *     posting --redis URL [--shards N] [--followers N] [--timeline push|pull|hybrid] [--posts N]
 *             [--workers N]
 *
 * Makes a database in an empty Redis: one author and so many followers, each of whom has read the
 * home timeline just now, so that posts are pushed to it. Then three questions:
 *
 *   alone     the author posts, no worker runs: how long until a post returns, how many a second
 *             one after the other, how many commands each is for Redis
 *   behind    a worker starts and does what those posts left: how long for each
 *   one       the author posts once and waits until the last timeline has it, again and again
 *
 * A post has reached the last timeline when no task is left; that a timeline has it, some of the
 * followers are asked for. Counts of commands are Redis's own (INFO commandstats). */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "src/call_build.h"
#include "src/follows.h"
#include "src/id.h"
#include "src/keys.h"
#include "src/posts.h"
#include "src/redis_link.h"
#include "src/reply.h"
#include "src/settings.h"
#include "src/timelines.h"
#include "src/users.h"
#include "src/worker.h"
#include "src/write.h"

enum { BATCH = 200, ASKED = 20, SINGLE_POSTS = 20 };

struct bench {
    struct sl_redis_address address;
    struct sl_redis_link *link;  /* the poster's */
    struct sl_redis_link *watch; /* for looking on */
    struct sl_meta meta;
    uint64_t author;
    uint64_t *followers;
    size_t follower_count, post_count;
    uint32_t shards, workers;
    const char *timeline;
    struct failure failure;
};

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "posting: %s: %s\n", what, why);
    exit(1);
}

static void must(struct bench *bench, int r, const char *what)
{
    if (r < 0)
        die(what, bench->failure.text[0] ? bench->failure.text : strerror(-r));
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* "median 0.21 ms, 99 of 100 within 0.34 ms"; of fewer than that the longest. */
static void print_times(const char *label, double *times, size_t count)
{
    qsort(times, count, sizeof(*times), by_value);
    printf("  %-34s median %.2f ms, %s %.2f ms\n", label, times[count / 2],
           count < 100 ? "at most" : "99 of 100 within", times[count * 99 / 100]);
}

static redisReply *run(struct bench *bench, struct sl_call *call, int built)
{
    redisReply *reply = NULL;

    must(bench, built, "build");
    must(bench, sl_redis_link_run(bench->link, call, &reply, &bench->failure), "run");
    return reply;
}

static uint64_t write_one(struct bench *bench, struct sl_call *call, int built)
{
    redisReply *reply = run(bench, call, built);
    struct sl_written written;

    must(bench, sl_write_reply(reply, &written, &bench->failure), "write");
    freeReplyObject(reply);
    return written.id;
}

/* ---- what Redis counts ---- */

/* A plain command of one or two words, on a connection beside that of the poster. */
static redisReply *ask_redis(struct bench *bench, const char *command, const char *argument)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;

    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, command);
    sl_call_add_str(&call, argument);
    must(bench, sl_call_finish(&call, &bench->failure), command);
    must(bench, sl_redis_link_run(bench->watch, &call, &reply, &bench->failure), command);
    must(bench, sl_reply_check(reply, &bench->failure), command);
    sl_call_done(&call);
    return reply;
}

struct counts {
    uint64_t all, scripts; /* commands, those within scripts included; of these EVALSHA */
};

static uint64_t calls_of(const char *stats, const char *command)
{
    char label[64];
    const char *found;

    snprintf(label, sizeof(label), "cmdstat_%s:calls=", command);
    found = strstr(stats, label);
    return found ? strtoull(found + strlen(label), NULL, 10) : 0;
}

static struct counts count_commands(struct bench *bench)
{
    redisReply *info = ask_redis(bench, "INFO", "commandstats");
    struct counts counts = {0};

    for (const char *at = info->str; (at = strstr(at, "calls=")); at++)
        counts.all += strtoull(at + strlen("calls="), NULL, 10);
    counts.scripts = calls_of(info->str, "evalsha");
    counts.all -= calls_of(info->str, "info") + calls_of(info->str, "xlen");
    freeReplyObject(info);
    return counts;
}

static bool tasks_are_left(struct bench *bench)
{
    char key[SL_KEY_SIZE];
    bool is_left = false;

    for (uint32_t shard = 0; !is_left && shard < bench->shards; shard++) {
        redisReply *reply = ask_redis(bench, "XLEN", sl_key(shard, "tasks", key));

        is_left = reply->integer > 0;
        freeReplyObject(reply);
    }
    return is_left;
}

/* ---- the worker ---- */

static void *run_worker(void *worker)
{
    sl_worker_run(worker, NULL);
    return NULL;
}

static struct sl_worker *start_worker(struct bench *bench, pthread_t *ret_thread)
{
    const struct sl_worker_options options = {.concurrency = bench->workers};
    struct sl_worker *worker;

    must(bench, sl_worker_new(&bench->address, &bench->meta, &options, &worker, &bench->failure),
         "worker");
    if (pthread_create(ret_thread, NULL, run_worker, worker) != 0)
        die("worker", "no thread");
    return worker;
}

static void stop_worker(struct sl_worker *worker, pthread_t thread)
{
    sl_worker_stop(worker);
    pthread_join(thread, NULL);
    sl_worker_free(worker);
}

/* ---- the database ---- */

static void set_timeline(struct bench *bench)
{
    const struct sl_setting *setting;
    struct sl_call call = SL_CALL_INIT;
    uint64_t value;
    size_t i;

    must(bench, sl_setting_find(SL_SLICE("timeline"), &i, &bench->failure), "setting");
    setting = sl_setting_at(i);
    must(bench, sl_setting_parse(setting, sl_slice_str(bench->timeline), &value, &bench->failure),
         "--timeline");
    for (uint32_t shard = 0; shard < bench->shards; shard++)
        freeReplyObject(run(
            bench, &call,
            sl_setting_change_call(&call, &bench->meta, shard, setting, &value, &bench->failure)));
    sl_call_done(&call);
}

static void open_database(struct bench *bench)
{
    const struct sl_redis_link_options options = {.answer_ms = 60000};
    const struct sl_meta wanted = sl_meta_wanted(bench->shards);

    must(bench, sl_redis_link_open(&bench->address, &options, &bench->link, &bench->failure),
         "open");
    must(bench, sl_redis_link_open(&bench->address, &options, &bench->watch, &bench->failure),
         "open");
    must(bench, sl_redis_link_meta(bench->link, &wanted, &bench->meta, &bench->failure), "open");
    if (!bench->meta.is_new)
        die("open", "there is a database already: an empty Redis is needed");
}

/* Sends so many calls in one go, built by `build` for each index from `first` on; ids of the
 * answers to `ret_ids` unless that is NULL. */
static void write_batch(struct bench *bench, size_t first, size_t count,
                        int (*build)(struct bench *bench, struct sl_call *call, size_t i),
                        uint64_t *ret_ids)
{
    static struct sl_call calls[BATCH];
    redisReply *replies[BATCH];

    for (size_t i = 0; i < count; i++)
        must(bench, build(bench, &calls[i], first + i), "build");
    must(bench, sl_redis_link_run_many(bench->link, calls, count, replies, &bench->failure), "run");
    for (size_t i = 0; i < count; i++) {
        struct sl_written written;

        must(bench, sl_write_reply(replies[i], &written, &bench->failure), "write");
        if (ret_ids)
            ret_ids[i] = written.id;
        freeReplyObject(replies[i]);
    }
}

static int build_follower(struct bench *bench, struct sl_call *call, size_t i)
{
    char login[32];

    snprintf(login, sizeof(login), "follower%zu", i);
    return sl_user_create_call(call, &bench->meta, SL_SLICE_NONE, sl_slice_str(login),
                               SL_SLICE_NONE, &bench->failure);
}

static int build_follow(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref follower = sl_user_by_id(bench->followers[i]);
    const struct sl_user author = {.id = bench->author};

    return sl_follow_call(call, &bench->meta, SL_SLICE_NONE, &follower, &author, &bench->failure);
}

/* The newest post on a home timeline; 0: none. Reading makes its owner active. */
static uint64_t read_home(struct bench *bench, uint64_t reader_id)
{
    const struct sl_user_ref reader = sl_user_by_id(reader_id);
    const struct sl_home_page page = {.limit = 1};
    struct sl_home_read *read;
    uint64_t newest = 0;

    must(bench, sl_home_read_new(&read, &bench->meta, &reader, &page, &bench->failure), "home");
    must(bench, sl_home_run(bench->link, read, &bench->failure), "home");
    if (sl_home_read_count(read) > 0)
        newest = sl_home_read_at(read, 0)->id;
    sl_home_read_free(read);
    return newest;
}

static void make_people(struct bench *bench)
{
    struct sl_call call = SL_CALL_INIT;

    bench->author =
        write_one(bench, &call,
                  sl_user_create_call(&call, &bench->meta, SL_SLICE_NONE, SL_SLICE("author"),
                                      SL_SLICE_NONE, &bench->failure));
    sl_call_done(&call);
    bench->followers = malloc(bench->follower_count * sizeof(*bench->followers));
    if (!bench->followers)
        die("followers", "out of memory");
    for (size_t i = 0; i < bench->follower_count; i += BATCH) {
        size_t left = bench->follower_count - i, count = left < BATCH ? left : BATCH;

        write_batch(bench, i, count, build_follower, bench->followers + i);
        write_batch(bench, i, count, build_follow, NULL);
    }
}

static void wait_for_tasks(struct bench *bench)
{
    const struct timespec pause = {0, 100000};

    while (tasks_are_left(bench))
        nanosleep(&pause, NULL);
}

static void make_database(struct bench *bench)
{
    double start_ms = now_ms();
    struct sl_worker *worker;
    pthread_t thread;

    open_database(bench);
    set_timeline(bench);
    worker = start_worker(bench, &thread);
    make_people(bench);
    wait_for_tasks(bench);
    for (size_t i = 0; i < bench->follower_count; i++)
        read_home(bench, bench->followers[i]);
    wait_for_tasks(bench);
    stop_worker(worker, thread);
    printf("%zu followers, %" PRIu32 " shard%s, timeline %s (made in %.1f s)\n",
           bench->follower_count, bench->shards, bench->shards == 1 ? "" : "s", bench->timeline,
           (now_ms() - start_ms) / 1000);
}

/* ---- the questions ---- */

static uint64_t post(struct bench *bench)
{
    static const struct sl_post text = {
        .text = SL_SLICE("A post as people write them: some words, a tag #bench, nothing else.")};
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    struct sl_call call = SL_CALL_INIT;
    uint64_t id = write_one(
        bench, &call,
        sl_post_call(&call, &bench->meta, SL_SLICE_NONE, &author, &text, &bench->failure));

    sl_call_done(&call);
    return id;
}

static void check_homes(struct bench *bench, uint64_t id)
{
    for (size_t i = 0; i < ASKED; i++) {
        size_t who = i * (bench->follower_count - 1) / (ASKED - 1);

        if (read_home(bench, bench->followers[who]) != id)
            die("home", "a timeline lacks the post");
    }
}

static void print_commands(const char *label, struct counts before, struct counts after,
                           size_t posts)
{
    printf("  %-34s %.1f scripts, %.1f commands in all\n", label,
           (double)(after.scripts - before.scripts) / (double)posts,
           (double)(after.all - before.all) / (double)posts);
}

static void ask_alone(struct bench *bench)
{
    double *times = malloc(bench->post_count * sizeof(*times)), begin_ms, took_ms;
    struct counts before;

    if (!times)
        die("posts", "out of memory");
    post(bench); /* the script is there now */
    before = count_commands(bench);
    begin_ms = now_ms();
    for (size_t i = 0; i < bench->post_count; i++) {
        double start_ms = now_ms();

        post(bench);
        times[i] = now_ms() - start_ms;
    }
    took_ms = now_ms() - begin_ms;
    print_times("a post returns after", times, bench->post_count);
    printf("  %-34s %.0f\n", "posts per second, one by one",
           (double)bench->post_count / took_ms * 1000);
    print_commands("a post is, for Redis,", before, count_commands(bench), bench->post_count);
    free(times);
}

static void ask_behind(struct bench *bench)
{
    struct counts before = count_commands(bench);
    double start_ms = now_ms();
    struct sl_worker *worker;
    pthread_t thread;

    worker = start_worker(bench, &thread);
    wait_for_tasks(bench);
    printf("  %-34s %.2f ms a post\n", "what they left is done in",
           (now_ms() - start_ms) / (double)(bench->post_count + 1));
    print_commands("which is, for Redis,", before, count_commands(bench), bench->post_count + 1);
    stop_worker(worker, thread);
}

static void ask_one(struct bench *bench)
{
    double times[SINGLE_POSTS];
    struct sl_worker *worker;
    pthread_t thread;
    uint64_t id = 0;

    worker = start_worker(bench, &thread);
    for (size_t i = 0; i < SINGLE_POSTS; i++) {
        double start_ms = now_ms();

        id = post(bench);
        wait_for_tasks(bench);
        times[i] = now_ms() - start_ms;
    }
    print_times("the last timeline has it after", times, SINGLE_POSTS);
    check_homes(bench, id);
    stop_worker(worker, thread);
}

/* ---- the whole ---- */

static size_t read_number(const char *name, const char *text, size_t least, size_t most)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (end == text || *end || number < least || number > most)
        die(name, "not a number in its bounds");
    return (size_t)number;
}

static void read_options(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"redis", required_argument, NULL, 'r'},
        {"shards", required_argument, NULL, 's'},
        {"followers", required_argument, NULL, 'f'},
        {"timeline", required_argument, NULL, 't'},
        {"posts", required_argument, NULL, 'p'},
        {"workers", required_argument, NULL, 'w'},
        {0},
    };
    const char *url = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'r')
            url = optarg;
        else if (option == 's')
            bench->shards = (uint32_t)read_number("--shards", optarg, 1, SL_SHARDS_MAX);
        else if (option == 'f')
            bench->follower_count = read_number("--followers", optarg, 1, 10000000);
        else if (option == 't')
            bench->timeline = optarg;
        else if (option == 'p')
            bench->post_count = read_number("--posts", optarg, 1, 1000000);
        else if (option == 'w')
            bench->workers = (uint32_t)read_number("--workers", optarg, 1, 64);
        else
            exit(2);
    }
    if (!url)
        die("--redis", "needed: the URL of an empty Redis");
    must(bench, sl_redis_address_parse(sl_slice_str(url), &bench->address, &bench->failure),
         "--redis");
}

int main(int argc, char **argv)
{
    struct bench bench = {
        .follower_count = 1000,
        .post_count = 1000,
        .shards = 1,
        .workers = 2,
        .timeline = "push",
    };

    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_options(&bench, argc, argv);
    make_database(&bench);
    ask_alone(&bench);
    ask_behind(&bench);
    ask_one(&bench);
    free(bench.followers);
    sl_redis_link_close(bench.link);
    sl_redis_link_close(bench.watch);
    return 0;
}
