/* home_timeline.c - what does it cost to read a home timeline?
 *
 *     home_timeline --redis unix:///PATH [--shards N]
 *
 * Needs an empty Redis, and leaves its data there. Readers who follow 20, 200 and 2,000 authors,
 * each with 20 posts, read a page of 20 pushed, pulled and hybrid (one author in twenty is merged
 * in): when nothing of the timeline is stored yet ("first"), and as an everyday refresh. Times of
 * refreshes are medians; round trips and Redis commands (including those inside scripts, from INFO
 * commandstats) are means per read. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "bench/database.h"
#include "bench/measure.h"
#include "src/social/follows.h"
#include "src/social/posts.h"
#include "src/social/users.h"

enum {
    AUTHORS = 2000,
    POSTS = 20,        /* of each author */
    MERGED_EVERY = 20, /* authors */
    FANS = 8,          /* each follows those, and nobody else */
    READS = 200,
};

static struct database database;
static uint64_t authors[AUTHORS];

/* ---- data ---- */

/* Follows one author in this many. */
struct follows {
    uint64_t user;
    size_t every;
};

static int build_follow(void *context, struct sl_call *call, size_t i)
{
    const struct follows *follows = context;
    const struct sl_user_ref user = sl_user_by_id(follows->user);
    const struct sl_user target = {.id = authors[i * follows->every]};

    return sl_follow_call(call, &database.meta, SL_SLICE_NONE, &user, &target, &database.failure);
}

static void follow(uint64_t user, size_t every, size_t count)
{
    struct follows follows = {user, every};

    database_write_all(&database, build_follow, &follows, count, NULL);
}

static int build_post(void *context, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(authors[i % AUTHORS]);
    const struct sl_post post = {.text = SL_SLICE("The quick brown fox jumps over the lazy dog")};

    (void)context;
    return sl_post_call(call, &database.meta, SL_SLICE_NONE, &author, &post, &database.failure);
}

/* ---- reads ---- */

/* Reads a page of 20; returns the number of round trips. */
static unsigned read_home(uint64_t reader)
{
    unsigned before = database.rounds;

    if (database_read_home(&database, reader, 20, NULL) != 20)
        measure_fail("home", "a page is not full");
    return database.rounds - before;
}

static uint64_t commands_run(void)
{
    return database_counts(&database).commands;
}

static void measure_reads(const char *timeline, uint64_t reader, size_t followed)
{
    double times[READS], first_us;
    unsigned rounds = 0, first_rounds;
    uint64_t before, first_commands;

    before = commands_run();
    first_us = measure_now_us();
    first_rounds = read_home(reader);
    first_us = measure_now_us() - first_us;
    first_commands = commands_run() - before;
    database_work(&database); /* the backfill that the first read has requested */
    before = commands_run();
    for (size_t i = 0; i < READS; i++) {
        double began = measure_now_us();

        rounds += read_home(reader);
        times[i] = measure_now_us() - began;
    }
    printf("| %s | %zu | %u | %" PRIu64 " | %.2f | %.1f | %.0f | %.2f |\n", timeline, followed,
           first_rounds, first_commands, first_us / 1e3, (double)rounds / READS,
           (double)(commands_run() - before) / READS, measure_share(times, READS, 0.5) / 1e3);
    fflush(stdout);
}

static void bench_reads(void)
{
    static const char *const timelines[] = {"push", "pull", "hybrid"};
    static const size_t follows[] = {20, 200, 2000};
    uint64_t readers[3], fans[FANS];

    database_create_users(&database, "author", AUTHORS, authors);
    database_create_users(&database, "fan", FANS, fans);
    database_create_users(&database, "reader", 3, readers);
    for (size_t i = 0; i < 3; i++)
        follow(readers[i], 1, follows[i]);
    for (size_t i = 0; i < FANS; i++)
        follow(fans[i], MERGED_EVERY, AUTHORS / MERGED_EVERY);
    database_work(&database);
    database_set(&database, "merge-above", "7");
    database_write_all(&database, build_post, NULL, POSTS * AUTHORS, NULL);
    database_work(&database);
    printf("\n| timeline | followed | first: round trips | Redis commands | ms | refresh: round "
           "trips | Redis commands | ms |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for (size_t t = 0; t < 3; t++) {
        database_set(&database, "timeline", timelines[t]);
        for (size_t i = 0; i < 3; i++)
            measure_reads(timelines[t], readers[i], follows[i]);
    }
}

int main(int argc, char **argv)
{
    uint32_t shards;

    signal(SIGPIPE, SIG_IGN);
    database_open_by(&database, argc, argv);
    shards = database.meta.shards;
    printf("%" PRIu32 " shard%s\n", shards, shards == 1 ? "" : "s");
    bench_reads();
    database_close(&database);
    return 0;
}
