/* Many processes do random operations with the same few users and posts, while workers run; in the
 * end all invariants of the database hold, and everybody's home timeline is what sets and rules
 * define, whether it is pushed, pulled or both. With one shard and with eight.
 *
 * SLUICE_TEST_SEED=N repeats the random choices of each process; each run prints its seed. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/likes.h"
#include "src/model/audience.h"
#include "src/social/post_rows.h"
#include "src/home/home_read.h"
#include "src/tasks/worker.h"
#include "tests/support/core_check.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"
#include "tests/support/fault.h"

enum {
    ACTORS = 4,
    USERS = 10,
    ACTS = 250,
    POSTS = 64,
    FOLLOWING_MAX = 6,
    POSTS_MAX = ACTORS * ACTS
};

/* ---- in a child process: cmocka cannot be used there ---- */

static struct core child;
static uint64_t ids[USERS];   /* of user0, user1, ... */
static uint64_t posts[POSTS]; /* existing or deleted posts of anybody, the latest known */

static const char *login_of(int user)
{
    static char logins[2][16];
    static int which;

    which = !which;
    snprintf(logins[which], sizeof(logins[which]), "user%d", user);
    return logins[which];
}

/* `r` is 0 or one of the errors that concurrent operations may cause. */
static bool must(int r, int error, int other, const char *what)
{
    if (r == 0)
        return true;
    if (r != error && r != other) {
        fprintf(stderr, "seed %" PRIu64 ": %s: %d, %s\n", draw_seed, what, r, child.failure.text);
        _exit(EXIT_FAILURE);
    }
    return false;
}

static void insist(bool is_so, const char *what)
{
    if (is_so)
        return;
    fprintf(stderr, "seed %" PRIu64 ": %s\n", draw_seed, what);
    _exit(EXIT_FAILURE);
}

/* Sends what a builder built with result `r`; the caller frees the reply. */
static redisReply *ask(struct sl_call *call, int r, const char *what)
{
    redisReply *reply = NULL;

    must(r, 0, 0, what);
    must(sl_redis_link_run(child.link, call, &reply, &child.failure), 0, 0, what);
    sl_call_done(call);
    return reply;
}

static int write_call(struct sl_call *call, int r, const char *what)
{
    redisReply *reply = ask(call, r, what);
    int written = sl_write_reply(reply, &child.written, &child.failure);

    freeReplyObject(reply);
    return written;
}

/* Each process tries to create every user; one succeeds. */
static void make_users(void)
{
    for (int user = 0; user < USERS; user++) {
        const struct sl_user_ref ref = sl_user_by_login(sl_slice_str(login_of(user)));
        struct sl_call call = SL_CALL_INIT;
        struct sl_user found;
        redisReply *reply;

        must(core_create(&child, login_of(user), NULL, NULL), -EEXIST, 0, "create");
        reply = ask(&call, sl_user_find_call(&call, &child.meta, &ref, &child.failure), "find");
        must(sl_user_find_reply(reply, &found, &child.failure), 0, 0, "find");
        ids[user] = found.id;
        freeReplyObject(reply);
    }
}

static void act_follow_many(void)
{
    const struct sl_user_ref user = sl_user_by_id(ids[draw(USERS)]);
    struct sl_user targets[USERS] = {0};
    size_t count = 1 + draw(USERS);
    struct sl_call call = SL_CALL_INIT;
    bool is_repeated;
    redisReply *reply;

    for (size_t i = 0; i < count; i++)
        targets[i].id = ids[draw(USERS)];
    reply = ask(&call,
                (draw(3) ? sl_follow_many_call : sl_unfollow_many_call)(
                    &call, &child.meta, SL_SLICE_NONE, &user, targets, count, &child.failure),
                "follow many");
    must(sl_write_many_reply(reply, count, &is_repeated, &child.failure), 0, 0, "follow many");
    for (size_t i = 0; i < count; i++) {
        uint64_t id;
        int r = sl_write_many_at(reply, i, &id, &child.failure);

        must(r, targets[i].id == user.id ? -EINVAL : -EDQUOT, 0, "one of many");
    }
    freeReplyObject(reply);
}

/* Half of them are not public. */
static struct sl_slice draw_audience(char room[static 64])
{
    static const char *const kinds[] = {"followers", "only", "except"};
    uint32_t kind = draw(6);

    if (kind > 2)
        return SL_SLICE_NONE;
    if (kind == 0)
        return sl_slice_str(kinds[0]);
    snprintf(room, 64, "%s:%" PRIu64 ",%" PRIu64, kinds[kind], ids[draw(USERS)], ids[draw(USERS)]);
    return sl_slice_str(room);
}

/* The post gets a place in `posts`; any process that picks it may delete it or reply to it. */
static void act_post(int user)
{
    char parent[SL_ID_TEXT_SIZE], audience[64];
    struct sl_post post = {.text = SL_SLICE("text")};
    uint64_t answered = draw(2) ? posts[draw(POSTS)] : 0;
    int r;

    post.audience = draw_audience(audience);
    if (answered)
        post.reply_to.post = sl_slice_str(sl_id_print(answered, parent));
    r = core_post(&child, login_of(user), &post, NULL);
    if (must(r, answered ? -ENOENT : 0, 0, "post"))
        posts[draw(POSTS)] = child.written.id;
}

static void act_like(void)
{
    const struct sl_user_ref user = sl_user_by_id(ids[draw(USERS)]);
    uint64_t post = posts[draw(POSTS)];
    struct sl_call call = SL_CALL_INIT;

    if (!post)
        return;
    must(write_call(&call,
                    (draw(3) ? sl_like_call : sl_unlike_call)(&call, &child.meta, SL_SLICE_NONE,
                                                              &user, post, &child.failure),
                    "like"),
         -ENOENT, 0, "like");
}

/* Reads a page of somebody's posts: newest first, none twice. Adds posts of others to `posts`. */
static void act_read(void)
{
    const struct sl_user_ref user = sl_user_by_id(ids[draw(USERS)]);
    const struct sl_page page = {.before = 0, .limit = 1 + draw(10)};
    struct sl_call call = SL_CALL_INIT;
    uint64_t reader = draw(2) ? ids[draw(USERS)] : SL_READER_NOBODY, before = UINT64_MAX;
    redisReply *reply;
    size_t count = 0;

    reply = ask(&call, sl_post_list_call(&call, &child.meta, reader, &user, &page, &child.failure),
                "read");
    must(sl_post_list_reply(reply, &count, &child.failure), 0, 0, "read");
    insist(count <= page.limit, "a page is too long");
    for (size_t i = 0; i < count; i++) {
        struct sl_post_row row;

        must(sl_post_list_at(reply, i, &row, &child.failure), 0, 0, "row");
        insist(row.id < before, "a page is out of order");
        insist(reader || memmem(row.json.data, row.json.size, "\"audience\":\"public\"", 19),
               "nobody in particular reads what is not public");
        before = row.id;
        posts[draw(POSTS)] = row.id;
    }
    freeReplyObject(reply);
}

/* Reads a page of a home timeline: newest first, none twice. From then on posts are pushed to this
 * user. */
static void act_read_home(void)
{
    const struct sl_user_ref reader = sl_user_by_id(ids[draw(USERS)]);
    const struct sl_home_page page = {.limit = 1 + draw(30)};
    struct sl_home_read *read;
    uint64_t before = UINT64_MAX;

    must(sl_home_read_new(&read, &child.meta, &reader, &page, &child.failure), 0, 0, "home");
    must(sl_home_run(child.link, read, &child.failure), 0, 0, "home");
    insist(sl_home_read_count(read) <= page.limit, "a page of a home timeline is too long");
    for (size_t i = 0; i < sl_home_read_count(read); i++) {
        insist(sl_home_read_at(read, i)->id < before, "a home timeline is out of order");
        before = sl_home_read_at(read, i)->id;
    }
    sl_home_read_free(read);
}

static void act_rename(void)
{
    const struct sl_user_ref user = sl_user_by_id(ids[draw(USERS)]);
    struct sl_call call = SL_CALL_INIT;

    must(write_call(&call,
                    sl_user_rename_call(&call, &child.meta, SL_SLICE_NONE, &user, SL_SLICE("N"),
                                        &child.failure),
                    "rename"),
         0, 0, "rename");
}

static void act_relation(void)
{
    int (*const relations[])(struct core *, const char *, const char *, const char *) = {
        core_follow, core_unfollow, core_hide, core_unhide, core_mute, core_unmute};
    int user = (int)draw(USERS), target = (int)draw(USERS);
    int r = relations[draw(6)](&child, login_of(user), login_of(target), NULL);

    must(r, user == target ? -EINVAL : -EDQUOT, 0, "relation");
}

static void act_delete(void)
{
    uint64_t post = posts[draw(POSTS)];

    if (post)
        must(core_delete(&child, login_of((int)draw(USERS)), post, NULL), -ENOENT, -EPERM,
             "delete");
}

static void act(void)
{
    make_users();
    for (int i = 0; i < ACTS; i++) {
        switch (draw(11)) {
        case 0:
        case 1:
            act_follow_many();
            break;
        case 2:
        case 3:
        case 4:
            act_post((int)draw(USERS));
            break;
        case 5:
            act_like();
            break;
        case 6:
            act_read();
            break;
        case 7:
            act_rename();
            break;
        case 8:
            act_relation();
            break;
        case 9:
            act_read_home();
            break;
        default:
            for (int j = 0; j < 4; j++) /* most are somebody else's */
                act_delete();
            break;
        }
    }
}

/* Runs tasks until it is killed. */
static void work(void)
{
    const struct sl_worker_options options = {.concurrency = 2};
    struct sl_redis_address address;
    struct sl_worker *worker;

    must(sl_redis_address_parse(sl_slice_str(child.server.url), &address, NULL), 0, 0, "url");
    must(sl_worker_new(&address, &child.meta, &options, &worker, &child.failure), 0, 0, "worker");
    must(sl_worker_run(worker, &child.failure), 0, 0, "work");
}

/* Starts a process with its own connection. */
static pid_t start_child(int number, void (*run)(void))
{
    const struct sl_redis_link_options options = {.retry_ms = 5000};
    struct sl_redis_address address;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid != 0)
        return pid;
    child = core;
    child.redis_count = 0; /* belong to the parent */
    draw_begin_as(number);
    if (sl_redis_address_parse(sl_slice_str(core.url), &address, NULL) < 0 ||
        sl_redis_link_open(&address, &options, &child.link, NULL) < 0)
        _exit(EXIT_FAILURE);
    run();
    _exit(EXIT_SUCCESS);
}

/* ---- in the parent ---- */

static void set(const char *field, int value)
{
    for (uint32_t shard = 0; shard < shards; shard++)
        core_number(&core, "HSET sluice:{%u}:meta %s %d", (unsigned)shard, field, value);
}

static long long count_keys(const char *name)
{
    redisReply *keys = core_command(&core, "KEYS sluice:{*}:%s:*", name);
    long long count = (long long)keys->elements;

    freeReplyObject(keys);
    return count;
}

/* ---- the expected home timelines ---- */

struct known_post {
    uint64_t id, author;
    char audience[64];
};

static size_t read_posts(struct known_post *ret_posts, size_t max)
{
    redisReply *keys = core_command(&core, "KEYS sluice:{*}:post:*");
    size_t count = keys->elements;

    assert_in_range(count, 1, max);
    for (size_t i = 0; i < count; i++) {
        redisReply *post = core_command(&core, "HMGET %s id user audience", keys->element[i]->str);

        ret_posts[i].id = strtoull(post->element[0]->str, NULL, 10);
        ret_posts[i].author = strtoull(post->element[1]->str, NULL, 10);
        snprintf(ret_posts[i].audience, sizeof(ret_posts[i].audience), "%s", post->element[2]->str);
        freeReplyObject(post);
    }
    freeReplyObject(keys);
    return count;
}

static bool follows(uint64_t user, uint64_t target)
{
    char key[SL_KEY_SIZE], room[65536];

    return core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("following", user, key),
                     target)[0];
}

static bool is_in(const char *set, uint64_t owner, uint64_t member)
{
    char key[SL_KEY_SIZE];

    return core_number(&core, "SISMEMBER %s %" PRIu64, sl_key_of(set, owner, key), member);
}

static bool belongs_on_home(uint64_t reader, const struct known_post *post)
{
    char id[SL_ID_TEXT_SIZE];

    if (post->author == reader)
        return true;
    return follows(reader, post->author) &&
           sl_audience_allows(sl_slice_str(post->audience), sl_slice_str(sl_id_print(reader, id)),
                              true) &&
           !is_in("hidden_from", post->author, reader) && !is_in("mutes", reader, post->author);
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? 1 : *left > *right ? -1 : 0;
}

static void check_home(uint64_t reader, const struct known_post *known, size_t known_count,
                       const char *what)
{
    const struct sl_user_ref ref = sl_user_by_id(reader);
    const struct sl_home_page page = {.limit = SL_HOME_PAGE_MAX};
    uint64_t wanted[POSTS_MAX];
    struct sl_home_read *read;
    size_t count = 0;

    for (size_t i = 0; i < known_count; i++) {
        if (belongs_on_home(reader, &known[i]))
            wanted[count++] = known[i].id;
    }
    qsort(wanted, count, sizeof(wanted[0]), compare_ids);
    if (count > SL_HOME_PAGE_MAX)
        count = SL_HOME_PAGE_MAX;
    assert_int_equal(sl_home_read_new(&read, &core.meta, &ref, &page, &core.failure), 0);
    assert_int_equal(sl_home_run(core.link, read, &core.failure), 0);
    if (sl_home_read_count(read) != count)
        fail_msg("%s: %zu posts are on a home timeline, not %zu", what, sl_home_read_count(read),
                 count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sl_home_read_at(read, i)->id, wanted[i]);
    sl_home_read_free(read);
}

/* Checks them as they were maintained meanwhile, then rebuilt in each way. */
static void check_homes(const char *what)
{
    static const char *const timelines[] = {"push", "pull", "hybrid"};
    struct known_post known[POSTS_MAX];
    size_t count = read_posts(known, POSTS_MAX);

    for (int way = 0; way <= 3; way++) {
        redisReply *users = core_command(&core, "KEYS sluice:{*}:user:*");

        for (size_t i = 0; i < users->elements; i++)
            check_home(strtoull(strrchr(users->element[i]->str, ':') + 1, NULL, 10), known, count,
                       what);
        freeReplyObject(users);
        core_work_fast(&core); /* what reading has requested */
        if (way < 3)
            core_set(&core, "timeline", timelines[way]);
    }
}

static void leave_a_crowd_to_it(const char *timeline)
{
    pid_t actors[ACTORS], worker;
    redisReply *following;
    char what[64];
    int status;

    core_set(&core, "timeline", timeline);
    set("followers_part", 3);
    set("following_max", FOLLOWING_MAX);
    set("push_at_once", 2);
    set("merge_above", 4);
    worker = start_child(ACTORS, work);
    for (int i = 0; i < ACTORS; i++)
        actors[i] = start_child(i, act);
    for (int i = 0; i < ACTORS; i++) {
        assert_int_equal(waitpid(actors[i], &status, 0), actors[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    }
    kill(worker, SIGKILL); /* the next worker claims its tasks */
    assert_int_equal(waitpid(worker, &status, 0), worker);
    fault_settle(&core);
    core_work(&core);

    snprintf(what, sizeof(what), "SLUICE_TEST_SEED=%" PRIu64, draw_seed);
    core_check(&core, what);
    check_homes(what);
    core_check(&core, what);
    assert_int_equal(count_keys("user"), USERS);
    assert_true(count_keys("post") > 20 && count_keys("comments") > 0 && count_keys("likes") > 0);
    following = core_command(&core, "KEYS sluice:{*}:following:*");
    assert_true(following->elements > 0);
    for (size_t i = 0; i < following->elements; i++)
        assert_true(core_number(&core, "ZCARD %s", following->element[i]->str) <= FOLLOWING_MAX);
    freeReplyObject(following);
}

static void test_crowd_that_is_pushed_to_leaves_all_as_it_must_be(void **state)
{
    (void)state;
    leave_a_crowd_to_it("push");
}

static void test_crowd_that_pulls_leaves_all_as_it_must_be(void **state)
{
    (void)state;
    leave_a_crowd_to_it("pull");
}

static void test_crowd_that_does_both_leaves_all_as_it_must_be(void **state)
{
    (void)state;
    leave_a_crowd_to_it("hybrid");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_crowd_that_is_pushed_to_leaves_all_as_it_must_be),
        CORE_TEST(test_crowd_that_pulls_leaves_all_as_it_must_be),
        CORE_TEST(test_crowd_that_does_both_leaves_all_as_it_must_be),
    };

    draw_begin();
    return core_group_run(tests);
}
