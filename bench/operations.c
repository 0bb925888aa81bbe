/* operations.c - how many round trips and Redis commands is each operation of the social core?
 *
 *     operations --redis URL [--shards N]
 *
 * Makes a database in an empty Redis and does each operation some hundred times, one after the
 * other; what it leaves to tasks is run behind that, and counted by itself. Prints a row of a table
 * each. Commands are Redis's own count (INFO commandstats): those within a script, and the EVALSHA.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "src/call_build.h"
#include "src/follows.h"
#include "src/id.h"
#include "src/likes.h"
#include "src/post_rows.h"
#include "src/posts.h"
#include "src/privacy.h"
#include "src/redis_link.h"
#include "src/reply.h"
#include "src/timelines.h"
#include "src/users.h"
#include "src/worker.h"
#include "src/write.h"

enum { TIMES = 200, PAGE = 20, USERS_MAX = 20000 };

struct user {
    uint64_t id;
    char login[16];
};

struct bench {
    struct sl_redis_address address;
    struct sl_redis_link *link;
    struct sl_meta meta;
    uint32_t shards;
    struct user near[TIMES], far[TIMES]; /* of the author's shard, and of others */
    size_t near_count, far_count;
    uint64_t author;
    uint64_t posts[2 * TIMES]; /* the author's */
    size_t post_count;
    struct user *partners; /* of the operation: near or far */
    unsigned rounds;
    struct failure failure;
};

static void must(struct bench *bench, int r, const char *what)
{
    if (r == 0)
        return;
    fprintf(stderr, "operations: %s: %s\n", what, bench->failure.text);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- one call, and what it costs ---- */

static redisReply *run(struct bench *bench, struct sl_call *call, int built)
{
    redisReply *reply = NULL;

    must(bench, built, "build");
    must(bench, sl_redis_link_run(bench->link, call, &reply, &bench->failure), "run");
    must(bench, sl_reply_check(reply, &bench->failure), "run");
    bench->rounds++;
    return reply;
}

static uint64_t count_commands(struct bench *bench)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *info;
    uint64_t count = 0;

    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, "INFO");
    sl_call_add_str(&call, "commandstats");
    info = run(bench, &call, sl_call_finish(&call, &bench->failure));
    for (const char *at = info->str; (at = strstr(at, "calls=")); at++)
        count += strtoull(at + strlen("calls="), NULL, 10);
    freeReplyObject(info);
    sl_call_done(&call);
    return count;
}

static void run_tasks(struct bench *bench)
{
    const struct sl_worker_options options = {.concurrency = 1, .until_empty = true};
    struct sl_worker *worker;

    must(bench, sl_worker_new(&bench->address, &bench->meta, &options, &worker, &bench->failure),
         "worker");
    must(bench, sl_worker_run(worker, &bench->failure), "worker");
    sl_worker_free(worker);
}

/* ---- the operations ---- */

typedef int (*build_fn)(struct bench *bench, struct sl_call *call, size_t i);

static int build_create(struct bench *bench, struct sl_call *call, size_t i)
{
    char login[32];

    snprintf(login, sizeof(login), "new%zu", i);
    return sl_user_create_call(call, &bench->meta, SL_SLICE_NONE, sl_slice_str(login),
                               SL_SLICE_NONE, &bench->failure);
}

static int build_post(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    const struct sl_post post = {.text = SL_SLICE("some words")};

    (void)i;
    return sl_post_call(call, &bench->meta, SL_SLICE_NONE, &author, &post, &bench->failure);
}

static int build_comment(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->partners[i].id);
    char post_id[SL_ID_TEXT_SIZE], user_id[SL_ID_TEXT_SIZE];
    const struct sl_post post = {
        .text = SL_SLICE("some words"),
        .is_comment = true,
        .reply_to = {.post = sl_slice_str(sl_id_print(bench->posts[i], post_id)),
                     .user = sl_slice_str(sl_id_print(bench->author, user_id))}};

    return sl_post_call(call, &bench->meta, SL_SLICE_NONE, &author, &post, &bench->failure);
}

static int build_delete(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);

    return sl_delete_call(call, &bench->meta, SL_SLICE_NONE, &author, bench->posts[TIMES + i],
                          &bench->failure);
}

static int build_like(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref user = sl_user_by_id(bench->partners[i].id);

    return sl_like_call(call, &bench->meta, SL_SLICE_NONE, &user, bench->posts[i], &bench->failure);
}

static int build_unlike(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref user = sl_user_by_id(bench->partners[i].id);

    return sl_unlike_call(call, &bench->meta, SL_SLICE_NONE, &user, bench->posts[i],
                          &bench->failure);
}

/* The author does it to a partner. */
#define RELATION(verb)                                                                             \
    static int build_##verb(struct bench *bench, struct sl_call *call, size_t i)                   \
    {                                                                                              \
        const struct sl_user_ref author = sl_user_by_id(bench->author);                            \
        const struct sl_user target = {.id = bench->partners[i].id,                                \
                                       .login = sl_slice_str(bench->partners[i].login),            \
                                       .name = sl_slice_str(bench->partners[i].login)};            \
                                                                                                   \
        return sl_##verb##_call(call, &bench->meta, SL_SLICE_NONE, &author, &target,               \
                                &bench->failure);                                                  \
    }

RELATION(follow)
RELATION(unfollow)
RELATION(hide)
RELATION(unhide)
RELATION(mute)
RELATION(unmute)

static int build_following(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    const struct sl_page page = {.limit = PAGE};

    (void)i;
    return sl_following_list_call(call, &bench->meta, &author, &page, &bench->failure);
}

static int build_profile(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    const struct sl_page page = {.limit = PAGE};

    (void)i;
    return sl_post_list_call(call, &bench->meta, bench->author, &author, &page, &bench->failure);
}

static void run_many(struct bench *bench, struct sl_call *calls, size_t count, redisReply **replies)
{
    must(bench, sl_redis_link_run_many(bench->link, calls, count, replies, &bench->failure), "run");
    bench->rounds++;
}

static void read_posts(struct bench *bench, size_t i)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    redisReply *replies[SL_SHARDS_MAX];

    (void)i;
    must(bench,
         sl_posts_calls(&calls, &bench->meta, bench->author, bench->posts, PAGE, &bench->failure),
         "posts");
    run_many(bench, calls.calls, calls.count, replies);
    for (size_t k = 0; k < calls.count; k++)
        freeReplyObject(replies[k]);
    sl_shard_calls_done(&calls);
}

static void read_home(struct bench *bench, size_t i)
{
    const struct sl_user_ref reader = sl_user_by_id(bench->author);
    const struct sl_home_page page = {.limit = PAGE};
    redisReply *replies[SL_SHARDS_MAX];
    struct sl_home_read *read;
    struct sl_call *calls;
    size_t count;

    (void)i;
    must(bench, sl_home_read_new(&read, &bench->meta, &reader, &page, &bench->failure), "home");
    for (;;) {
        must(bench, sl_home_read_calls(read, &calls, &count, &bench->failure), "home");
        if (count == 0)
            break;
        run_many(bench, calls, count, replies);
        for (size_t k = 0; k < count; k++) {
            must(bench, sl_home_read_take(read, k, replies[k], &bench->failure), "home");
            freeReplyObject(replies[k]);
        }
    }
    sl_home_read_free(read);
}

/* A row: either `build`, one call, or `act`, as many as it takes. */
static const struct operation {
    const char *name;
    build_fn build;
    void (*act)(struct bench *bench, size_t i);
    bool has_partner; /* who may live in another shard */
} operations[] = {
    {"create a user", build_create, NULL, false},
    {"post, two follow", build_post, NULL, false},
    {"delete", build_delete, NULL, false},
    {"comment", build_comment, NULL, true},
    {"like", build_like, NULL, true},
    {"unlike", build_unlike, NULL, true},
    {"follow", build_follow, NULL, true},
    {"20 whom somebody follows", build_following, NULL, false},
    {"20 posts of somebody", build_profile, NULL, false},
    {"20 posts by id", NULL, read_posts, false},
    {"20 of a home timeline", NULL, read_home, false},
    {"hide", build_hide, NULL, true},
    {"unhide", build_unhide, NULL, true},
    {"mute", build_mute, NULL, true},
    {"unmute", build_unmute, NULL, true},
    {"unfollow", build_unfollow, NULL, true},
};

static void do_once(struct bench *bench, const struct operation *operation, size_t i)
{
    struct sl_call call = SL_CALL_INIT;

    if (operation->act) {
        operation->act(bench, i);
        return;
    }
    freeReplyObject(run(bench, &call, operation->build(bench, &call, i)));
    sl_call_done(&call);
}

/* The first time teaches Redis the script, and is not counted. */
static void measure(struct bench *bench, const struct operation *operation, const char *where)
{
    double times[TIMES - 1], start_us;
    uint64_t before, between, behind;
    unsigned rounds;

    do_once(bench, operation, 0);
    run_tasks(bench);
    before = count_commands(bench);
    rounds = bench->rounds;
    for (size_t i = 1; i < TIMES; i++) {
        start_us = now_us();
        do_once(bench, operation, i);
        times[i - 1] = now_us() - start_us;
    }
    rounds = bench->rounds - rounds;
    between = count_commands(bench) - 1; /* INFO */
    run_tasks(bench);
    behind = count_commands(bench) - 2;
    qsort(times, TIMES - 1, sizeof(*times), by_value);
    printf("| %s%s | %.1f | %.1f | %.1f | %.0f |\n", operation->name, where,
           (double)rounds / (TIMES - 1), (double)(between - before) / (TIMES - 1),
           (double)(behind - between) / (TIMES - 1), times[(TIMES - 1) / 2]);
}

/* ---- the database ---- */

static uint64_t create(struct bench *bench, const char *login)
{
    struct sl_call call = SL_CALL_INIT;
    struct sl_written written;
    redisReply *reply;

    reply = run(bench, &call,
                sl_user_create_call(&call, &bench->meta, SL_SLICE_NONE, sl_slice_str(login),
                                    SL_SLICE_NONE, &bench->failure));
    must(bench, sl_write_reply(reply, &written, &bench->failure), "create");
    freeReplyObject(reply);
    sl_call_done(&call);
    return written.id;
}

static void keep(struct bench *bench, uint64_t id, const char *login)
{
    bool is_near = sl_id_shard(id) == sl_id_shard(bench->author);
    struct user *users = is_near ? bench->near : bench->far;
    size_t *count = is_near ? &bench->near_count : &bench->far_count;

    if (*count == TIMES)
        return;
    users[*count].id = id;
    snprintf(users[*count].login, sizeof(users[*count].login), "%s", login);
    ++*count;
}

/* Enough partners of both kinds; the first two of them follow the author and read. */
static void make_people(struct bench *bench)
{
    struct sl_call call = SL_CALL_INIT;
    struct sl_user author = {.login = SL_SLICE("author"), .name = SL_SLICE("author")};

    bench->author = author.id = create(bench, "author");
    for (int i = 0; i < USERS_MAX; i++) {
        char login[16];

        if (bench->near_count == TIMES && (bench->shards == 1 || bench->far_count == TIMES))
            break;
        snprintf(login, sizeof(login), "user%d", i);
        keep(bench, create(bench, login), login);
    }
    for (int i = 0; i < 2; i++) {
        const struct user *users = i == 1 && bench->shards > 1 ? bench->far : bench->near;
        const struct sl_user_ref follower = sl_user_by_id(users[i].id);

        freeReplyObject(run(bench, &call,
                            sl_follow_call(&call, &bench->meta, SL_SLICE_NONE, &follower, &author,
                                           &bench->failure)));
    }
    sl_call_done(&call);
}

static void make_posts(struct bench *bench)
{
    struct sl_call call = SL_CALL_INIT;

    for (size_t i = 0; i < 2 * TIMES; i++) {
        redisReply *reply = run(bench, &call, build_post(bench, &call, i));
        struct sl_written written;

        must(bench, sl_write_reply(reply, &written, &bench->failure), "post");
        bench->posts[i] = written.id;
        freeReplyObject(reply);
    }
    sl_call_done(&call);
}

static void open_database(struct bench *bench)
{
    const struct sl_redis_link_options options = {.answer_ms = 60000};
    const struct sl_meta wanted = sl_meta_wanted(bench->shards);

    must(bench, sl_redis_link_open(&bench->address, &options, &bench->link, &bench->failure),
         "open");
    must(bench, sl_redis_link_meta(bench->link, &wanted, &bench->meta, &bench->failure), "open");
    if (!bench->meta.is_new) {
        failure_set(&bench->failure, 0, "there is a database already: an empty Redis is needed");
        must(bench, -EEXIST, "open");
    }
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"redis", required_argument, NULL, 'r'}, {"shards", required_argument, NULL, 's'}, {0}};
    static struct bench bench = {.shards = 1};
    const char *url = "";
    int option;

    signal(SIGPIPE, SIG_IGN);
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'r')
            url = optarg;
        else if (option == 's')
            bench.shards = (uint32_t)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    must(&bench, sl_redis_address_parse(sl_slice_str(url), &bench.address, &bench.failure),
         "--redis");
    open_database(&bench);
    make_people(&bench);
    make_posts(&bench);
    run_tasks(&bench);
    printf("%" PRIu32 " shard%s\n\n"
           "| operation | round trips | commands | commands of its tasks | median us |\n"
           "| --- | --- | --- | --- | --- |\n",
           bench.shards, bench.shards == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        bench.partners = bench.near;
        measure(&bench, &operations[i], operations[i].has_partner ? ", same shard" : "");
        bench.partners = bench.far;
        if (operations[i].has_partner && bench.shards > 1)
            measure(&bench, &operations[i], ", other shard");
    }
    sl_redis_link_close(bench.link);
    return 0;
}
