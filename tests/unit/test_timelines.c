/* Home timelines with a real redis-server, case by case: round trips, tasks, readers who become
 * inactive and return, and many concurrent operations. test_timelines_random.c compares them with a
 * model. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/home/home_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/tasks/worker.h"
#include "tests/support/core_group.h"

static uint64_t ada, bob, cyd;

static bool is_upgraded; /* the database, from the beginning */

static int begin(void **state)
{
    core_group_fresh(state);
    for (uint32_t shard = 0; is_upgraded && shard < core.meta.shards; shard++)
        core_upgrade(&core, shard);
    ada = core_must_create(&core, "ada");
    bob = core_must_create(&core, "bob");
    cyd = core_must_create(&core, "cyd");
    return 0;
}

/* ---- reading ---- */

struct page {
    size_t count, rounds;
    uint64_t ids[SL_HOME_PAGE_MAX];
};

static int try_read(const char *login, struct sl_home_page page, struct page *ret_page)
{
    const struct sl_user_ref reader = sl_user_by_login(sl_slice_str(login));
    struct sl_home_read *read = NULL;
    size_t count = 1;
    int r;

    *ret_page = (struct page){.count = 0};
    r = sl_home_read_new(&read, &core.meta, &reader, &page, &core.failure);
    while (r == 0 && count > 0) {
        struct sl_call *calls;
        redisReply *replies[64] = {NULL};

        r = sl_home_read_calls(read, &calls, &count, &core.failure);
        if (r < 0 || count == 0)
            break;
        assert_true(count <= 64);
        if (sl_redis_link_run_many(core.link, calls, count, replies, NULL) < 0) {
            assert_true(mem_failed());
            r = -ENOMEM;
            break;
        }
        for (size_t i = count; i > 0; i--) { /* in any order */
            if (r == 0)
                r = sl_home_read_take(read, i - 1, replies[i - 1], &core.failure);
            freeReplyObject(replies[i - 1]);
        }
        ret_page->rounds++;
    }
    for (size_t i = 0; r == 0 && i < sl_home_read_count(read); i++)
        ret_page->ids[ret_page->count++] = sl_home_read_at(read, i)->id;
    sl_home_read_free(read);
    return r;
}

static struct page read_home(const char *login)
{
    struct page page;

    if (try_read(login, (struct sl_home_page){.limit = 20}, &page) < 0)
        fail_msg("%s", core.failure.text);
    return page;
}

static void expect_home(const char *login, size_t count, ...)
{
    struct page page = read_home(login);
    va_list ids;

    assert_int_equal(page.count, count);
    va_start(ids, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(page.ids[i], va_arg(ids, uint64_t));
    va_end(ids);
}

static bool has_home(uint64_t reader)
{
    char key[SL_KEY_SIZE];

    return core_number(&core, "EXISTS %s", sl_key_of("home", reader, key)) == 1;
}

static bool is_kept(uint64_t reader, uint64_t post, uint64_t author)
{
    redisReply *entries = core_home(&core, reader);
    bool is_there = false;
    char entry[48];

    snprintf(entry, sizeof(entry), "%" PRIu64 ":%" PRIu64, post, author);
    for (size_t i = 0; i < entries->elements; i++)
        is_there = is_there || strcmp(entries->element[i]->str, entry) == 0;
    freeReplyObject(entries);
    return is_there;
}

/* Reads, and runs the resulting task, which fills the timeline. */
static void become_active(const char *login)
{
    read_home(login);
    core_work_fast(&core);
}

static void follow(const char *login, const char *target)
{
    assert_int_equal(core_follow(&core, login, target, NULL), 0);
}

static void test_pages_that_cannot_be_are_refused(void **state)
{
    struct page page;

    (void)state;
    assert_int_equal(try_read("ada", (struct sl_home_page){.limit = 0}, &page), -EINVAL);
    assert_int_equal(try_read("ada", (struct sl_home_page){.limit = 201}, &page), -EINVAL);
    assert_int_equal(
        try_read("ada", (struct sl_home_page){.before = UINT64_MAX, .limit = 1}, &page), -EINVAL);
    assert_int_equal(try_read("nobody", (struct sl_home_page){.limit = 1}, &page), -ENOENT);
    assert_int_equal(try_read("no login", (struct sl_home_page){.limit = 1}, &page), -EINVAL);
}

static void test_own_posts_are_there_at_once(void **state)
{
    uint64_t first, second;

    (void)state;
    first = core_must_post(&core, "ada", "one");
    expect_home("ada", 1, first);
    second = core_must_post(&core, "ada", "two");
    expect_home("ada", 2, second, first);
    core_work_fast(&core);
    expect_home("ada", 2, second, first);
    assert_true(is_kept(ada, first, ada) && is_kept(ada, second, ada));
}

/* One round trip if all users are in one shard, otherwise two. */
static void test_a_page_is_one_round_trip_or_two(void **state)
{
    static const char *const timelines[] = {"push", "pull", "hybrid"};
    char login[16];

    (void)state;
    core_set(&core, "merge-above", "2");
    for (int i = 0; i < 30; i++) {
        snprintf(login, sizeof(login), "author%d", i);
        core_must_create(&core, login);
        follow("ada", login);
        if (i % 5 == 0) { /* which is merged in */
            follow("bob", login);
            follow("cyd", login);
        }
    }
    core_work_fast(&core);
    for (int i = 0; i < 60; i++) {
        snprintf(login, sizeof(login), "author%d", i % 30);
        core_must_post(&core, login, "hello");
    }
    core_work_fast(&core);
    for (size_t i = 0; i < 3; i++) {
        core_set(&core, "timeline", timelines[i]);
        for (int again = 0; again < 2; again++) {
            struct page page = read_home("ada");

            assert_int_equal(page.count, 20);
            assert_int_equal(page.rounds, shards == 1 ? 1 : 2);
            core_work_fast(&core);
        }
    }
}

static void test_followed_authors_are_there_at_once_and_read_in_by_a_task(void **state)
{
    uint64_t post;

    (void)state;
    become_active("ada");
    post = core_must_post(&core, "bob", "hello");
    follow("ada", "bob");
    expect_home("ada", 1, post);
    assert_false(is_kept(ada, post, bob));
    core_work_fast(&core);
    expect_home("ada", 1, post); /* requests a task, because bob's shard knows now */
    core_work_fast(&core);
    assert_true(is_kept(ada, post, bob));
    assert_int_equal(core_unfollow(&core, "ada", "bob", NULL), 0);
    assert_false(is_kept(ada, post, bob));
    expect_home("ada", 0);
}

/* ---- whose timelines are pushed to ---- */

static void test_nothing_is_pushed_to_who_does_not_read(void **state)
{
    uint64_t post;

    (void)state;
    follow("ada", "bob");
    core_work_fast(&core);
    core_must_post(&core, "bob", "one");
    core_work_fast(&core);
    assert_false(has_home(ada));
    become_active("ada");
    post = core_must_post(&core, "bob", "two");
    core_work_fast(&core);
    assert_true(is_kept(ada, post, bob));
}

static void test_who_stays_away_is_forgotten_and_read_in_anew(void **state)
{
    static const char *const names[] = {"active", "home", "behind"};
    uint64_t first, second;
    char key[SL_KEY_SIZE];

    (void)state;
    core_set(&core, "home-away", "1h");
    follow("ada", "bob");
    core_work_fast(&core);
    first = core_must_post(&core, "bob", "one");
    become_active("ada");
    for (size_t i = 0; i < 2; i++) {
        long long ms = core_number(&core, "PTTL %s", sl_key_of(names[i], ada, key));

        assert_true(ms > 0 && ms <= 3600000);
    }
    for (size_t i = 0; i < 3; i++) { /* an hour passes */
        freeReplyObject(core_command(&core, "PEXPIRE %s 1", sl_key_of(names[i], ada, key)));
        while (core_number(&core, "EXISTS %s", key) == 1)
            ;
    }
    second = core_must_post(&core, "bob", "two");
    core_work_fast(&core);
    assert_false(has_home(ada));
    expect_home("ada", 2, second, first);
    core_work_fast(&core);
    assert_true(is_kept(ada, first, bob) && is_kept(ada, second, bob));
}

static void test_the_first_followers_are_pushed_to_at_once_the_others_by_a_task(void **state)
{
    uint64_t readers[6], post;
    size_t at_once = 0;
    char login[16];

    (void)state;
    core_set(&core, "push-at-once", "4");
    for (int i = 0; i < 6; i++) {
        snprintf(login, sizeof(login), "reader%d", i);
        readers[i] = core_must_create(&core, login);
        follow(login, "bob");
        core_work_fast(&core);
        become_active(login);
    }
    post = core_must_post(&core, "bob", "hello");
    for (int i = 0; i < 6; i++)
        at_once += is_kept(readers[i], post, bob);
    if (shards == 1)
        assert_int_equal(at_once, 4);
    assert_true(at_once <= 4);
    core_work_fast(&core);
    for (int i = 0; i < 6; i++)
        assert_true(is_kept(readers[i], post, bob));

    assert_int_equal(core_delete(&core, "bob", post, NULL), 0);
    for (int i = 0; i < 6; i++) {
        snprintf(login, sizeof(login), "reader%d", i);
        expect_home(login, 0);
    }
    core_work_fast(&core);
    for (int i = 0; i < 6; i++)
        assert_false(is_kept(readers[i], post, bob));
}

static void leave_fan_out(uint64_t post, uint64_t author)
{
    char key[SL_KEY_SIZE];

    freeReplyObject(core_command(&core,
                                 "XADD %s * task fan_out id %" PRIu64 " post %" PRIu64
                                 " author %" PRIu64 " from +inf",
                                 sl_key(sl_id_shard(author), "tasks", key), post, post, author));
}

/* The worker that had claimed the task was stopped for long. */
static void test_a_late_push_of_a_deleted_post_changes_nothing(void **state)
{
    uint64_t post;

    (void)state;
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    post = core_must_post(&core, "bob", "hello");
    core_work_fast(&core);
    assert_true(is_kept(ada, post, bob));
    assert_int_equal(core_delete(&core, "bob", post, NULL), 0);
    core_work_fast(&core);
    leave_fan_out(post, bob);
    core_work_fast(&core);
    assert_false(is_kept(ada, post, bob));
}

/* Returns the id of the follow by which ada follows bob. */
static uint64_t ada_follows_bob_since(void)
{
    char key[SL_KEY_SIZE], room[65536];

    return strtoull(
        core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("following", ada, key), bob), NULL,
        10);
}

/* Does what a worker does for a follower in another shard. */
static void push_to_ada(uint64_t post, uint64_t since)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;

    sl_call_begin_script(&call, &sl_script_home_apply, sl_id_shard(ada), shards, SL_SLICE_NONE);
    sl_call_add_str(&call, "push");
    sl_call_add_id(&call, post);
    sl_call_add_id(&call, bob);
    sl_call_add_id(&call, post);
    sl_call_add_id(&call, ada);
    sl_call_add_id(&call, since);
    assert_int_equal(sl_call_finish(&call, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    assert_int_equal(sl_reply_check(reply, NULL), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* Even if the worker had read the post before it was deleted. */
static void test_a_push_that_was_under_way_meets_a_tombstone(void **state)
{
    uint64_t deleted, post;
    char key[SL_KEY_SIZE];

    (void)state;
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    deleted = core_must_post(&core, "bob", "one");
    post = core_must_post(&core, "bob", "two");
    core_work_fast(&core);
    assert_int_equal(core_delete(&core, "bob", deleted, NULL), 0);
    core_work_fast(&core);
    freeReplyObject(core_command(
        &core, is_upgraded ? "LREM %s 0 %" PRIu64 ":%" PRIu64 : "ZREM %s %" PRIu64 ":%" PRIu64,
        sl_key_of("home", ada, key), post, bob));
    push_to_ada(deleted, ada_follows_bob_since());
    push_to_ada(post, ada_follows_bob_since());
    assert_false(is_kept(ada, deleted, bob));
    assert_true(is_kept(ada, post, bob));
}

/* Meanwhile bob's shard may have forgotten ada, and not have told hers about the deleted post. */
static void test_a_push_by_a_follow_that_has_ended_changes_nothing(void **state)
{
    uint64_t post, since;

    (void)state;
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    post = core_must_post(&core, "bob", "hello");
    core_work_fast(&core);
    since = ada_follows_bob_since();
    assert_int_equal(core_unfollow(&core, "ada", "bob", NULL), 0);
    follow("ada", "bob");
    push_to_ada(post, since);
    assert_false(is_kept(ada, post, bob));
    push_to_ada(post, ada_follows_bob_since());
    assert_true(is_kept(ada, post, bob));
}

static void test_pushing_again_changes_nothing(void **state)
{
    uint64_t post;

    (void)state;
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    post = core_must_post(&core, "bob", "hello");
    leave_fan_out(post, bob);
    leave_fan_out(post, bob);
    core_work_fast(&core);
    expect_home("ada", 1, post);
    assert_int_equal(core_unfollow(&core, "ada", "bob", NULL), 0);
    leave_fan_out(post, bob); /* bob's shard may not know yet */
    core_work_fast(&core);
    assert_false(is_kept(ada, post, bob));
    expect_home("ada", 0);
}

static void test_authors_with_many_followers_are_merged_in_for_ever(void **state)
{
    uint64_t before, post;
    char key[SL_KEY_SIZE];

    (void)state;
    core_set(&core, "merge-above", "1");
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    before = core_must_post(&core, "bob", "one");
    core_work_fast(&core);
    assert_true(is_kept(ada, before, bob));
    follow("cyd", "bob");
    core_work_fast(&core);
    post = core_must_post(&core, "bob", "two");
    core_work_fast(&core);
    assert_false(is_kept(ada, post, bob));
    for (uint32_t shard = 0; shard < shards; shard++)
        assert_int_equal(core_number(&core, "ZCARD %s", sl_key(shard, "merged", key)), 1);
    expect_home("ada", 2, post, before);
    assert_int_equal(core_unfollow(&core, "cyd", "bob", NULL), 0);
    core_work_fast(&core);
    post = core_must_post(&core, "bob", "three");
    core_work_fast(&core);
    assert_false(is_kept(ada, post, bob));
    assert_int_equal(read_home("ada").count, 3);
    assert_int_equal(core_delete(&core, "bob", before, NULL), 0); /* pushed then */
    core_work_fast(&core);
    assert_false(is_kept(ada, before, bob));
}

/* ---- size ---- */

static void test_a_timeline_ends_after_its_size_and_fills_up_from_below(void **state)
{
    uint64_t posts[40];
    struct page page;

    (void)state;
    core_set(&core, "home-size", "10");
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    for (int i = 0; i < 40; i++) {
        posts[i] = core_must_post(&core, i % 2 ? "ada" : "bob", "hello");
        core_work_fast(&core);
    }
    page = read_home("ada");
    assert_int_equal(page.count, 10);
    assert_int_equal(
        try_read("ada", (struct sl_home_page){.before = page.ids[9], .limit = 5}, &page), 0);
    assert_int_equal(page.count, 0);
    for (int i = 39; i > 25; i--)
        assert_int_equal(core_delete(&core, i % 2 ? "ada" : "bob", posts[i], NULL), 0);
    core_work_fast(&core);
    page = read_home("ada");
    assert_int_equal(page.count, 10);
    for (int i = 0; i < 10; i++)
        assert_true(page.ids[i] <= posts[25]);
    core_work_fast(&core); /* it had few posts, and is rebuilt */
    assert_true(is_kept(ada, page.ids[9], bob));
}

/* ---- corrupt data ---- */

static void test_a_damaged_home_is_its_reader_s_misfortune_only(void **state)
{
    struct page page;
    uint64_t post;
    char key[SL_KEY_SIZE];

    (void)state;
    follow("ada", "bob");
    follow("cyd", "bob");
    core_work_fast(&core);
    become_active("ada");
    become_active("cyd");
    freeReplyObject(core_command(&core, "DEL %s", sl_key_of("home", ada, key)));
    freeReplyObject(core_command(&core, "SET %s x", key));
    post = core_must_post(&core, "bob", "hello");
    core_work_fast(&core);
    assert_true(is_kept(cyd, post, bob));
    assert_int_equal(core_delete(&core, "bob", post, NULL), 0);
    core_work_fast(&core);
    assert_false(is_kept(cyd, post, bob));
    assert_int_equal(try_read("ada", (struct sl_home_page){.limit = 5}, &page), -EBADMSG);
    expect_home("cyd", 0);
}

/* More than fits on Lua's stack. */
static void test_the_timeline_of_somebody_who_follows_very_many_is_read_in(void **state)
{
    enum { VERY_MANY = 9000 };
    char key[SL_KEY_SIZE], text[65536];

    (void)state;
    freeReplyObject(core_command(
        &core, "EVAL %s 1 %s %u %d",
        "for i = 1, ARGV[2] do redis.call('ZADD', KEYS[1], i, i * 4096 + ARGV[1] * 64) end",
        sl_key_of("following", ada, key), (unsigned)sl_id_shard(ada), VERY_MANY));
    expect_home("ada", 0);
    core_work(&core);
    core_text(&core, text, "HGET %s floor", sl_key_of("active", ada, key));
    assert_string_equal(text, "0");
    /* Their shard does not know about it, so that they are still asked. */
    assert_int_equal(core_number(&core, "SCARD %s", sl_key_of("behind", ada, key)), VERY_MANY);
}

static void test_answers_that_do_not_fit_are_refused(void **state)
{
    const struct sl_user_ref reader = sl_user_by_id(ada);
    const struct sl_home_page page = {.limit = 5};
    redisReply number = {.type = REDIS_REPLY_INTEGER, .integer = 7};
    redisReply *elements[11];
    redisReply array = {.type = REDIS_REPLY_ARRAY, .elements = 11, .element = elements};

    (void)state;
    for (size_t i = 0; i < 11; i++)
        elements[i] = &number;
    for (int kind = 0; kind < 3; kind++) {
        const redisReply *const replies[] = {&number, &array, NULL};
        struct sl_home_read *read;
        struct sl_call *calls;
        size_t count;

        assert_int_equal(sl_home_read_new(&read, &core.meta, &reader, &page, NULL), 0);
        assert_int_equal(sl_home_read_calls(read, &calls, &count, NULL), 0);
        assert_int_equal(count, 1);
        assert_int_equal(sl_home_read_take(read, 0, replies[kind], NULL),
                         kind == 2 ? -EPIPE : -EBADMSG);
        sl_home_read_free(read);
    }
    sl_home_read_free(NULL);
}

static void test_without_memory_a_read_says_so(void **state)
{
    struct page page = {.count = 0};
    char login[16];
    int r = -ENOMEM;

    (void)state;
    for (int i = 0; i < 5; i++) {
        snprintf(login, sizeof(login), "author%d", i);
        core_must_create(&core, login);
        follow("ada", login);
        core_must_post(&core, login, "hello");
    }
    core_work_fast(&core);
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = try_read("ada", (struct sl_home_page){.limit = 5}, &page);
        mem_fail_never();
        if (r < 0)
            assert_int_equal(r, -ENOMEM);
    }
    assert_int_equal(page.count, 5);
}

/* ---- concurrent operations ---- */

enum { RACERS = 4, PEOPLE = 8, STEPS = 150, POSTS_MAX = RACERS * STEPS };

struct racer {
    struct core core; /* its own link to the same server */
    pthread_t thread;
    uint64_t random;
    uint64_t posts[STEPS];
    int authors[STEPS];
    size_t post_count;
};

static uint64_t people[PEOPLE];

static uint32_t draw(struct racer *racer, uint32_t below)
{
    racer->random = racer->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(racer->random >> 33) % below;
}

static void race_read(struct racer *racer, int who)
{
    const struct sl_user_ref reader = sl_user_by_id(people[who]);
    const struct sl_home_page page = {.limit = 10};
    struct sl_home_read *read = NULL;

    if (sl_home_read_new(&read, &racer->core.meta, &reader, &page, NULL) < 0 ||
        sl_home_run(racer->core.link, read, NULL) < 0)
        abort();
    sl_home_read_free(read);
}

static void *race(void *argument)
{
    static int (*const relations[])(struct core *, const char *, const char *, const char *) = {
        core_follow, core_follow, core_follow, core_unfollow,
        core_hide,   core_unhide, core_mute,   core_unmute};
    struct racer *racer = argument;

    for (int i = 0; i < STEPS; i++) {
        int who = (int)draw(racer, PEOPLE), whom = (int)draw(racer, PEOPLE);
        uint32_t what = draw(racer, 10);
        char login[16], target[16];
        const struct sl_post post = {.text = SL_SLICE("hello"),
                                     .audience = draw(racer, 3) ? SL_SLICE("public")
                                                                : SL_SLICE("followers")};
        int r = 0;

        snprintf(login, sizeof(login), "person%d", who);
        snprintf(target, sizeof(target), "person%d", whom);
        if (what < 4) {
            r = core_post(&racer->core, login, &post, NULL);
            racer->posts[racer->post_count] = racer->core.written.id;
            racer->authors[racer->post_count++] = who;
        } else if (what < 5 && racer->post_count > 0) {
            size_t which = draw(racer, (uint32_t)racer->post_count);

            snprintf(login, sizeof(login), "person%d", racer->authors[which]);
            r = core_delete(&racer->core, login, racer->posts[which], NULL);
            r = r == -ENOENT ? 0 : r; /* was deleted already */
        } else if (what < 8 && who != whom) {
            r = relations[draw(racer, 8)](&racer->core, login, target, NULL);
        } else {
            race_read(racer, who);
        }
        if (r != 0)
            abort();
    }
    return NULL;
}

static void *run_worker(void *worker)
{
    if (sl_worker_run(worker, NULL) < 0)
        abort();
    return NULL;
}

static bool is_in(const char *set, uint64_t owner, uint64_t member)
{
    char key[SL_KEY_SIZE];

    return core_number(&core, "SISMEMBER %s %" PRIu64, sl_key_of(set, owner, key), member);
}

static bool is_following(uint64_t user, uint64_t target)
{
    char key[SL_KEY_SIZE], room[65536];

    return core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("following", user, key),
                     target)[0];
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? 1 : *left > *right ? -1 : 0;
}

/* Returns what a reader's timeline should be according to sets and profiles. */
static size_t expected_home(uint64_t reader, uint64_t *ret_ids)
{
    size_t count = 0;

    for (int i = 0; i < PEOPLE; i++) {
        char key[SL_KEY_SIZE];
        redisReply *profile;

        if (people[i] != reader &&
            (!is_following(reader, people[i]) || is_in("hidden_from", people[i], reader) ||
             is_in("mutes", reader, people[i])))
            continue;
        profile = core_command(&core, "ZRANGE %s 0 -1", sl_key_of("profile", people[i], key));
        for (size_t k = 0; k < profile->elements; k++)
            ret_ids[count++] = strtoull(profile->element[k]->str, NULL, 10);
        freeReplyObject(profile);
    }
    qsort(ret_ids, count, sizeof(*ret_ids), compare_ids);
    return count < SL_HOME_PAGE_MAX ? count : SL_HOME_PAGE_MAX;
}

static void check_homes(void)
{
    for (int i = 0; i < PEOPLE; i++) {
        uint64_t expected[POSTS_MAX];
        size_t count = expected_home(people[i], expected);
        struct page page;
        char login[16];

        snprintf(login, sizeof(login), "person%d", i);
        assert_int_equal(try_read(login, (struct sl_home_page){.limit = SL_HOME_PAGE_MAX}, &page),
                         0);
        assert_int_equal(page.count, count);
        assert_memory_equal(page.ids, expected, count * sizeof(expected[0]));
    }
}

/* Everybody does everything concurrently, while workers run the tasks. */
static void test_what_many_do_at_once_ends_in_the_right_timelines(void **state)
{
    static const char *const timelines[] = {"hybrid", "push", "pull"};
    const struct sl_redis_link_options link_options = {.retry_ms = 5000};
    const struct sl_worker_options options = {.concurrency = 2};
    static struct racer racers[RACERS];
    struct sl_redis_address address;
    struct sl_worker *worker;
    pthread_t worker_thread;
    char login[16];

    (void)state;
    core_set(&core, "merge-above", "5");
    core_set(&core, "push-at-once", "3");
    for (int i = 0; i < PEOPLE; i++) {
        snprintf(login, sizeof(login), "person%d", i);
        people[i] = core_must_create(&core, login);
    }
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    assert_int_equal(sl_worker_new(&address, &core.meta, &options, &worker, NULL), 0);
    assert_int_equal(pthread_create(&worker_thread, NULL, run_worker, worker), 0);
    for (int i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.random = 1000 + (uint64_t)i, .core = {.meta = core.meta}};
        assert_int_equal(sl_redis_link_open(&address, &link_options, &racers[i].core.link, NULL),
                         0);
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < RACERS; i++) {
        pthread_join(racers[i].thread, NULL);
        sl_redis_link_close(racers[i].core.link);
    }
    sl_worker_stop(worker);
    pthread_join(worker_thread, NULL);
    sl_worker_free(worker);

    core_work_fast(&core);
    check_homes();
    core_work_fast(&core);
    for (size_t i = 0; i < 3; i++) {
        check_homes();
        core_set(&core, "timeline", timelines[i]);
    }
    check_homes();
}

static size_t count_kept(uint64_t reader)
{
    redisReply *entries = core_home(&core, reader);
    size_t count = entries->elements;

    freeReplyObject(entries);
    return count;
}

/* A home timeline may hold an eighth more than its size; then it is trimmed to its size. */
static void test_a_home_is_cut_to_its_size(void **state)
{
    static const size_t kept[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 9, 8};

    (void)state;
    core_set(&core, "home-size", "8");
    become_active("ada");
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        core_must_post(&core, "ada", "one more");
        assert_int_equal(count_kept(ada), kept[i]);
    }
}

/* Data from before its shard was upgraded; also if the first operation is a removal. */
static void test_a_home_of_an_older_version_becomes_a_list(void **state)
{
    char room[65536], key[SL_KEY_SIZE];
    uint64_t first, second, third;

    (void)state;
    follow("ada", "bob");
    core_work_fast(&core);
    become_active("ada");
    first = core_must_post(&core, "bob", "one");
    second = core_must_post(&core, "bob", "two");
    core_work_fast(&core);
    sl_key_of("home", ada, key);
    for (uint32_t shard = 0; shard < core.meta.shards; shard++)
        core_upgrade(&core, shard);
    assert_int_equal(core_delete(&core, "bob", first, NULL), 0);
    core_work_fast(&core);
    assert_false(is_kept(ada, first, bob));
    assert_true(is_kept(ada, second, bob));
    assert_string_equal(
        core_text(&core, room, "EVAL %s 1 %s", "return redis.call('TYPE', KEYS[1]).ok", key),
        "list");
    assert_true(core_number(&core, "PTTL %s", key) > 0);
    third = core_must_post(&core, "bob", "three");
    core_work_fast(&core);
    assert_int_equal(count_kept(ada), 2);
    assert_true(is_kept(ada, third, bob));
}

#define HOME_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOME_TEST(test_pages_that_cannot_be_are_refused),
        HOME_TEST(test_own_posts_are_there_at_once),
        HOME_TEST(test_a_page_is_one_round_trip_or_two),
        HOME_TEST(test_followed_authors_are_there_at_once_and_read_in_by_a_task),
        HOME_TEST(test_nothing_is_pushed_to_who_does_not_read),
        HOME_TEST(test_who_stays_away_is_forgotten_and_read_in_anew),
        HOME_TEST(test_the_first_followers_are_pushed_to_at_once_the_others_by_a_task),
        HOME_TEST(test_a_late_push_of_a_deleted_post_changes_nothing),
        HOME_TEST(test_a_push_that_was_under_way_meets_a_tombstone),
        HOME_TEST(test_a_push_by_a_follow_that_has_ended_changes_nothing),
        HOME_TEST(test_pushing_again_changes_nothing),
        HOME_TEST(test_authors_with_many_followers_are_merged_in_for_ever),
        HOME_TEST(test_a_timeline_ends_after_its_size_and_fills_up_from_below),
        HOME_TEST(test_a_home_is_cut_to_its_size),
        HOME_TEST(test_a_home_of_an_older_version_becomes_a_list),
        HOME_TEST(test_a_damaged_home_is_its_reader_s_misfortune_only),
        HOME_TEST(test_the_timeline_of_somebody_who_follows_very_many_is_read_in),
        HOME_TEST(test_answers_that_do_not_fit_are_refused),
        HOME_TEST(test_without_memory_a_read_says_so),
        HOME_TEST(test_what_many_do_at_once_ends_in_the_right_timelines),
    };

    const int failed = core_group_run(tests);

    is_upgraded = true;
    return failed + core_group_run(tests);
}
