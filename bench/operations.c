/* operations.c - how many round trips and Redis commands does each operation of the social core
 * take?
 *
 *     operations --redis URL [--shards N]
 *
 * Creates a database in an empty Redis and does each operation some hundred times, one after the
 * other; the tasks that it leaves are run afterwards and counted separately. Prints a table row for
 * each. Commands are Redis's own count (INFO commandstats): those within a script, and the
 * EVALSHA. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "bench/database.h"
#include "bench/measure.h"
#include "src/model/id.h"
#include "src/social/follows.h"
#include "src/social/likes.h"
#include "src/social/post_rows.h"
#include "src/social/posts.h"
#include "src/social/privacy.h"
#include "src/social/users.h"

enum { TIMES = 200, PAGE = 20, USERS_MAX = 20000 };

struct user {
    uint64_t id;
    char login[16];
};

struct bench {
    struct database database;
    struct user near[TIMES], far[TIMES]; /* in the author's shard, and in others */
    size_t near_count, far_count;
    uint64_t author;
    uint64_t posts[2 * TIMES]; /* of the author */
    struct user *partners;     /* of the operation: near or far */
};

/* ---- the operations ---- */

typedef int (*build_fn)(struct bench *bench, struct sl_call *call, size_t i);

static int build_create(struct bench *bench, struct sl_call *call, size_t i)
{
    char login[32];

    snprintf(login, sizeof(login), "new%zu", i);
    return sl_user_create_call(call, &bench->database.meta, SL_SLICE_NONE, sl_slice_str(login),
                               SL_SLICE_NONE, &bench->database.failure);
}

static int build_post(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    const struct sl_post post = {.text = SL_SLICE("some words")};

    (void)i;
    return sl_post_call(call, &bench->database.meta, SL_SLICE_NONE, &author, &post,
                        &bench->database.failure);
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

    return sl_post_call(call, &bench->database.meta, SL_SLICE_NONE, &author, &post,
                        &bench->database.failure);
}

static int build_delete(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);

    return sl_delete_call(call, &bench->database.meta, SL_SLICE_NONE, &author,
                          bench->posts[TIMES + i], &bench->database.failure);
}

static int build_like(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref user = sl_user_by_id(bench->partners[i].id);

    return sl_like_call(call, &bench->database.meta, SL_SLICE_NONE, &user, bench->posts[i],
                        &bench->database.failure);
}

static int build_unlike(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref user = sl_user_by_id(bench->partners[i].id);

    return sl_unlike_call(call, &bench->database.meta, SL_SLICE_NONE, &user, bench->posts[i],
                          &bench->database.failure);
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
        return sl_##verb##_call(call, &bench->database.meta, SL_SLICE_NONE, &author, &target,      \
                                &bench->database.failure);                                         \
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
    return sl_following_list_call(call, &bench->database.meta, &author, &page,
                                  &bench->database.failure);
}

static int build_profile(struct bench *bench, struct sl_call *call, size_t i)
{
    const struct sl_user_ref author = sl_user_by_id(bench->author);
    const struct sl_page page = {.limit = PAGE};

    (void)i;
    return sl_post_list_call(call, &bench->database.meta, bench->author, &author, &page,
                             &bench->database.failure);
}

static void read_posts(struct bench *bench, size_t i)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct database *database = &bench->database;
    redisReply *replies[SL_SHARDS_MAX];

    (void)i;
    database_must(database,
                  sl_posts_calls(&calls, &database->meta, bench->author, bench->posts, PAGE,
                                 &database->failure),
                  "posts");
    database_run_many(database, calls.calls, calls.count, replies);
    for (size_t k = 0; k < calls.count; k++)
        freeReplyObject(replies[k]);
    sl_shard_calls_done(&calls);
}

static void read_home(struct bench *bench, size_t i)
{
    (void)i;
    database_read_home(&bench->database, bench->author, PAGE, NULL);
}

/* A row: either `build`, one call, or `act`, several calls. */
static const struct operation {
    const char *name;
    build_fn build;
    void (*act)(struct bench *bench, size_t i);
    bool has_partner; /* which may be in another shard */
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

    if (operation->act)
        operation->act(bench, i);
    else
        freeReplyObject(database_run(&bench->database, &call, operation->build(bench, &call, i)));
}

/* The first call loads the script, and is not counted. */
static void measure(struct bench *bench, const struct operation *operation, const char *where)
{
    struct database *database = &bench->database;
    struct database_counts before, between, behind;
    double times[TIMES - 1], start_us;
    unsigned rounds;

    do_once(bench, operation, 0);
    database_work(database);
    before = database_counts(database);
    rounds = database->rounds;
    for (size_t i = 1; i < TIMES; i++) {
        start_us = measure_now_us();
        do_once(bench, operation, i);
        times[i - 1] = measure_now_us() - start_us;
    }
    rounds = database->rounds - rounds;
    between = database_counts(database);
    database_work(database);
    behind = database_counts(database);
    printf("| %s%s | %.1f | %.1f | %.1f | %.0f |\n", operation->name, where,
           (double)rounds / (TIMES - 1), (double)(between.commands - before.commands) / (TIMES - 1),
           (double)(behind.commands - between.commands) / (TIMES - 1),
           measure_share(times, TIMES - 1, 0.5));
}

/* ---- the database ---- */

static uint64_t create(struct bench *bench, const char *login)
{
    struct sl_call call = SL_CALL_INIT;

    return database_write(&bench->database, &call,
                          sl_user_create_call(&call, &bench->database.meta, SL_SLICE_NONE,
                                              sl_slice_str(login), SL_SLICE_NONE,
                                              &bench->database.failure));
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

/* Creates enough partners of both kinds; the first two of them follow the author. */
static void make_people(struct bench *bench)
{
    struct sl_user author = {.login = SL_SLICE("author"), .name = SL_SLICE("author")};
    struct database *database = &bench->database;
    const bool has_far = database->meta.shards > 1;
    struct sl_call call = SL_CALL_INIT;

    bench->author = author.id = create(bench, "author");
    for (int i = 0; i < USERS_MAX; i++) {
        char login[16];

        if (bench->near_count == TIMES && (!has_far || bench->far_count == TIMES))
            break;
        snprintf(login, sizeof(login), "user%d", i);
        keep(bench, create(bench, login), login);
    }
    for (int i = 0; i < 2; i++) {
        const struct user *users = i == 1 && has_far ? bench->far : bench->near;
        const struct sl_user_ref follower = sl_user_by_id(users[i].id);

        database_write(database, &call,
                       sl_follow_call(&call, &database->meta, SL_SLICE_NONE, &follower, &author,
                                      &database->failure));
    }
}

static int build_any_post(void *bench, struct sl_call *call, size_t i)
{
    return build_post(bench, call, i);
}

int main(int argc, char **argv)
{
    static struct bench bench;
    uint32_t shards;

    signal(SIGPIPE, SIG_IGN);
    database_open_by(&bench.database, argc, argv);
    shards = bench.database.meta.shards;
    make_people(&bench);
    database_write_all(&bench.database, build_any_post, &bench, 2 * TIMES, bench.posts);
    database_work(&bench.database);
    printf("%" PRIu32 " shard%s\n\n"
           "| operation | round trips | commands | commands of its tasks | median us |\n"
           "| --- | --- | --- | --- | --- |\n",
           shards, shards == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        bench.partners = bench.near;
        measure(&bench, &operations[i], operations[i].has_partner ? ", same shard" : "");
        bench.partners = bench.far;
        if (operations[i].has_partner && shards > 1)
            measure(&bench, &operations[i], ", other shard");
    }
    database_close(&bench.database);
    return 0;
}
