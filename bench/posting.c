/* posting.c - what does a post cost that has very many followers?
 *
 *     posting --redis URL [--shards N] [--followers N] [--timeline push|pull|hybrid] [--posts N]
 *             [--workers N]
 *
 * Creates a database in an empty Redis: one author and FOLLOWERS followers, each of whom has just
 * read the home timeline, so that posts are pushed to it. Then three measurements:
 *
 * alone     the author posts, no worker runs: how long until a post returns, how many a second
 *           one after the other, how many commands each takes in Redis
 * behind    a worker starts and does what those posts left: how long for each
 * one       the author posts once and waits until the last timeline has it, repeatedly
 *
 * A post has reached the last timeline when no task is left; some of the followers are asked
 * whether their timeline has it. Counts of commands are Redis's own (INFO commandstats). */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/database.h"
#include "bench/measure.h"
#include "src/model/id.h"
#include "src/social/follows.h"
#include "src/social/posts.h"
#include "src/social/users.h"
#include "src/tasks/worker.h"

enum { ASKED = 20, SINGLE_POSTS = 20 };

struct bench {
    struct database database;
    uint64_t author;
    uint64_t *followers;
    size_t follower_count, post_count;
    uint32_t shards, workers;
    const char *url, *timeline;
};

/* Prints "median 0.21 ms, 99 of 100 within 0.34 ms"; with less than a hundred, the maximum. */
static void print_times(const char *label, double *times_us, size_t count)
{
    printf("  %-34s median %.2f ms, %s %.2f ms\n", label, measure_share(times_us, count, 0.5) / 1e3,
           count < 100 ? "at most" : "99 of 100 within",
           measure_share(times_us, count, 0.99) / 1e3);
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
    struct database *database = &bench->database;
    struct sl_worker *worker;

    database_must(
        database,
        sl_worker_new(&database->address, &database->meta, &options, &worker, &database->failure),
        "worker");
    if (pthread_create(ret_thread, NULL, run_worker, worker) != 0)
        measure_fail("worker", "no thread");
    return worker;
}

static void stop_worker(struct sl_worker *worker, pthread_t thread)
{
    sl_worker_stop(worker);
    pthread_join(thread, NULL);
    sl_worker_free(worker);
}

/* ---- the database ---- */

static int build_follow(void *context, struct sl_call *call, size_t i)
{
    struct bench *bench = context;
    const struct sl_user_ref follower = sl_user_by_id(bench->followers[i]);
    const struct sl_user author = {.id = bench->author};

    return sl_follow_call(call, &bench->database.meta, SL_SLICE_NONE, &follower, &author,
                          &bench->database.failure);
}

static void make_people(struct bench *bench)
{
    struct database *database = &bench->database;
    struct sl_call call = SL_CALL_INIT;

    bench->author =
        database_write(database, &call,
                       sl_user_create_call(&call, &database->meta, SL_SLICE_NONE,
                                           SL_SLICE("author"), SL_SLICE_NONE, &database->failure));
    bench->followers = malloc(bench->follower_count * sizeof(*bench->followers));
    if (!bench->followers)
        measure_fail("followers", NULL);
    database_create_users(database, "follower", bench->follower_count, bench->followers);
    database_write_all(database, build_follow, bench, bench->follower_count, NULL);
}

static void wait_for_tasks(struct bench *bench)
{
    const struct timespec pause = {0, 100000};

    while (database_has_tasks(&bench->database))
        nanosleep(&pause, NULL);
}

static void make_database(struct bench *bench)
{
    double start_us = measure_now_us();
    struct sl_worker *worker;
    pthread_t thread;

    database_open(&bench->database, bench->url, bench->shards);
    database_set(&bench->database, "timeline", bench->timeline);
    worker = start_worker(bench, &thread);
    make_people(bench);
    wait_for_tasks(bench);
    for (size_t i = 0; i < bench->follower_count; i++) /* makes them active */
        database_read_home(&bench->database, bench->followers[i], 1, NULL);
    wait_for_tasks(bench);
    stop_worker(worker, thread);
    printf("%zu followers, %" PRIu32 " shard%s, timeline %s (made in %.1f s)\n",
           bench->follower_count, bench->shards, bench->shards == 1 ? "" : "s", bench->timeline,
           (measure_now_us() - start_us) / 1e6);
}

/* ---- the measurements ---- */

static uint64_t post(struct bench *bench)
{
    static const struct sl_post text = {
        .text = SL_SLICE("A post as people write them: some words, a tag #bench, nothing else.")};
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    struct sl_call call = SL_CALL_INIT;

    return database_write(&bench->database, &call,
                          sl_post_call(&call, &bench->database.meta, SL_SLICE_NONE, &author, &text,
                                       &bench->database.failure));
}

static void check_homes(struct bench *bench, uint64_t id)
{
    for (size_t i = 0; i < ASKED; i++) {
        size_t who = i * (bench->follower_count - 1) / (ASKED - 1);
        uint64_t newest;

        database_read_home(&bench->database, bench->followers[who], 1, &newest);
        if (newest != id)
            measure_fail("home", "a timeline lacks the post");
    }
}

static void print_commands(const char *label, struct database_counts before,
                           struct database_counts after, size_t posts)
{
    printf("  %-34s %.1f scripts, %.1f commands in all\n", label,
           (double)(after.scripts - before.scripts) / (double)posts,
           (double)(after.commands - before.commands) / (double)posts);
}

static void ask_alone(struct bench *bench)
{
    double *times = malloc(bench->post_count * sizeof(*times)), begin_us, took_us;
    struct database_counts before;

    if (!times)
        measure_fail("posts", NULL);
    post(bench); /* loads the script */
    before = database_counts(&bench->database);
    begin_us = measure_now_us();
    for (size_t i = 0; i < bench->post_count; i++) {
        double start_us = measure_now_us();

        post(bench);
        times[i] = measure_now_us() - start_us;
    }
    took_us = measure_now_us() - begin_us;
    print_times("a post returns after", times, bench->post_count);
    printf("  %-34s %.0f\n", "posts per second, one by one",
           (double)bench->post_count / took_us * 1e6);
    print_commands("a post is, for Redis,", before, database_counts(&bench->database),
                   bench->post_count);
    free(times);
}

static void ask_behind(struct bench *bench)
{
    struct database_counts before = database_counts(&bench->database);
    double start_us = measure_now_us();
    struct sl_worker *worker;
    pthread_t thread;

    worker = start_worker(bench, &thread);
    wait_for_tasks(bench);
    printf("  %-34s %.2f ms a post\n", "what they left is done in",
           (measure_now_us() - start_us) / 1e3 / (double)(bench->post_count + 1));
    print_commands("which is, for Redis,", before, database_counts(&bench->database),
                   bench->post_count + 1);
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
        double start_us = measure_now_us();

        id = post(bench);
        wait_for_tasks(bench);
        times[i] = measure_now_us() - start_us;
    }
    print_times("the last timeline has it after", times, SINGLE_POSTS);
    check_homes(bench, id);
    stop_worker(worker, thread);
}

/* ---- the program ---- */

static size_t read_number(const char *name, const char *text, size_t least, size_t most)
{
    char *end;
    unsigned long long number = strtoull(text, &end, 10);

    if (end == text || *end || number < least || number > most)
        measure_fail(name, "not a number in its bounds");
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
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'r')
            bench->url = optarg;
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
    database_close(&bench.database);
    return 0;
}
