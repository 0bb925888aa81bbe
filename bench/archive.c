/* archive.c - what do storing, reading and erasing cost in an archive of each kind?
 *
 *     archive [--posts N] [--users N] [--server PID] URL...
 *
 * For each URL of a new archive: stores N posts of 400 bytes in batches, as a worker does (100 of
 * one user, each batch of another user), reads pages of 20 posts, the newest and far back, finds 20
 * posts and 1 by id, and erases one by one. All of it is done sequentially on one connection, so
 * these are times of a call. Prints a row for each operation, and the ratio to the time with the
 * first URL. CPU is that of this process and of the one named by --server. */
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "bench/measure.h"
#include "src/archive/archive.h"

enum { BATCH = 100, PAGE = 20, TIMES = 500, JSON_BYTES = 400, OPERATIONS = 6 };

struct bench {
    struct sl_archive *archive;
    uint64_t posts, users, seed;
    clockid_t server; /* CPU time of the server */
    bool has_server;
    char json[JSON_BYTES];
    struct failure failure;
};

static void must(struct bench *bench, int r, const char *what)
{
    if (r < 0)
        measure_fail(what, bench->failure.text);
}

/* Post n is of user n / BATCH % users: a user's posts are not stored together, as when users post
 * occasionally. */
static uint64_t user_of(const struct bench *bench, uint64_t post)
{
    return 4096 * (1 + post / BATCH % bench->users);
}

static uint64_t any(struct bench *bench, uint64_t below)
{
    bench->seed = bench->seed * 6364136223846793005 + 1442695040888963407;
    return (bench->seed >> 33) % below;
}

/* ---- the operations ---- */

static void store(struct bench *bench, uint64_t i)
{
    struct sl_archive_post posts[BATCH];

    for (uint64_t k = 0; k < BATCH; k++) {
        uint64_t post = i * BATCH + k;

        posts[k] = (struct sl_archive_post){post + 1, user_of(bench, post),
                                            sl_slice(bench->json, JSON_BYTES)};
    }
    must(bench, sl_archive_store(bench->archive, posts, BATCH, &bench->failure), "store");
}

static void list(struct bench *bench, uint64_t user, uint64_t before)
{
    struct sl_archive_page page;

    must(bench, sl_archive_list(bench->archive, user, before, PAGE, &page, &bench->failure),
         "list");
    if (page.count != PAGE)
        measure_fail("list", "a page is not full");
    sl_archive_page_done(&page);
}

static void list_newest(struct bench *bench, uint64_t i)
{
    (void)i;
    list(bench, user_of(bench, any(bench, bench->posts)), 0);
}

/* From the second half of the list. */
static void list_deep(struct bench *bench, uint64_t i)
{
    (void)i;
    list(bench, user_of(bench, any(bench, bench->posts)), bench->posts / 2);
}

static void find(struct bench *bench, size_t count)
{
    struct sl_archive_page page;
    uint64_t ids[PAGE];

    for (size_t k = 0; k < count; k++)
        ids[k] = 1 + any(bench, bench->posts);
    must(bench, sl_archive_find(bench->archive, ids, count, &page, &bench->failure), "find");
    if (page.count != count)
        measure_fail("find", "a post is missing");
    sl_archive_page_done(&page);
}

static void find_page(struct bench *bench, uint64_t i)
{
    (void)i;
    find(bench, PAGE);
}

static void find_one(struct bench *bench, uint64_t i)
{
    (void)i;
    find(bench, 1);
}

static void erase(struct bench *bench, uint64_t i)
{
    const uint64_t post = 1 + i * (bench->posts / TIMES);

    must(bench, sl_archive_erase(bench->archive, &post, 1, &bench->failure), "erase");
}

static const struct operation {
    const char *name;
    void (*run)(struct bench *bench, uint64_t i);
} operations[OPERATIONS] = {
    {"store 100 posts", store},
    {"newest 20 of a user", list_newest},
    {"20 of a user, far back", list_deep},
    {"find 20 by id", find_page},
    {"find 1 by id", find_one},
    {"erase 1", erase},
};

/* ---- measuring ---- */

static double server_cpu_us(const struct bench *bench)
{
    struct timespec time = {0};

    if (bench->has_server)
        clock_gettime(bench->server, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void measure(struct bench *bench, const struct operation *operation, double *first_us)
{
    const uint64_t times = operation->run == store ? bench->posts / BATCH : TIMES;
    double *each_us = mem_alloc(mem_array_size(times, sizeof(*each_us)));
    double began_us = measure_now_us(), cpu_us = measure_cpu_us();
    double server_us = server_cpu_us(bench), all_us, median_us;

    if (!each_us)
        measure_fail(operation->name, "out of memory");
    for (uint64_t i = 0; i < times; i++) {
        double at_us = measure_now_us();

        operation->run(bench, i);
        each_us[i] = measure_now_us() - at_us;
    }
    all_us = measure_now_us() - began_us;
    cpu_us = measure_cpu_us() - cpu_us;
    server_us = server_cpu_us(bench) - server_us;
    median_us = measure_share(each_us, times, 0.5);
    if (*first_us == 0)
        *first_us = median_us;
    printf("| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", operation->name, median_us,
           measure_share(each_us, times, 0.99), (double)times / all_us * 1e6,
           cpu_us / (double)times, server_us / (double)times, median_us / *first_us);
    fflush(stdout);
    mem_free(each_us);
}

static void measure_archive(struct bench *bench, const char *url, double first_us[OPERATIONS])
{
    const size_t kind = strcspn(url, ":");

    must(bench, sl_archive_open(url, "bench", SL_ARCHIVE_MAKE, &bench->archive, &bench->failure),
         "open");
    printf("\n| %.*s | median us | 99 of 100 within us | a second | CPU us here | of the server | "
           "times the first |\n"
           "| --- | --- | --- | --- | --- | --- | --- |\n",
           (int)kind, url);
    for (size_t i = 0; i < OPERATIONS; i++)
        measure(bench, &operations[i], &first_us[i]);
    sl_archive_close(bench->archive);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"posts", required_argument, NULL, 'p'},
                                            {"users", required_argument, NULL, 'u'},
                                            {"server", required_argument, NULL, 's'},
                                            {0}};
    static struct bench bench = {.posts = 200000, .users = 200, .seed = 1};
    double first_us[OPERATIONS] = {0};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'p')
            bench.posts = strtoull(optarg, NULL, 10);
        else if (option == 'u')
            bench.users = strtoull(optarg, NULL, 10);
        else if (option == 's')
            bench.has_server = clock_getcpuclockid(atoi(optarg), &bench.server) == 0;
        else
            return 2;
    }
    if (optind == argc || bench.users == 0 || bench.posts < 4 * BATCH * bench.users)
        measure_fail("usage", "archive [--posts N] [--users N] URL..., 400 posts a user at least");
    memset(bench.json, 'x', JSON_BYTES);
    printf("%" PRIu64 " posts of %d bytes, %" PRIu64 " users\n", bench.posts, JSON_BYTES,
           bench.users);
    for (; optind < argc; optind++)
        measure_archive(&bench, argv[optind], first_us);
    return 0;
}
