/* The task queue on a real Redis: taken once, tried again, buried, applied in whatever order. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "src/id.h"
#include "src/keys.h"
#include "src/tasks.h"
#include "src/worker.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/core.h"

enum { SHARDS = 8 };

static struct core core;
static uint64_t ada, bob; /* in different shards */
static char bob_login[16];

static int begin(void **state)
{
    (void)state;
    core_reset(&core, SHARDS);
    ada = core_must_create(&core, "ada");
    for (int i = 0;; i++) {
        snprintf(bob_login, sizeof(bob_login), "bob%d", i);
        bob = core_must_create(&core, bob_login);
        if (sl_id_shard(bob) != sl_id_shard(ada))
            return 0;
    }
}

static long long in_shard(const char *command, uint64_t owner, const char *key)
{
    return core_number(&core, "%s sluice:{%u}:%s", command, (unsigned)sl_id_shard(owner), key);
}

static void assert_followers(uint64_t user, uint64_t follower, bool is_one)
{
    char key[SL_KEY_SIZE], text[65536];

    core_text(&core, text, "ZSCORE %s %" PRIu64, sl_key_of("followers", user, key), follower);
    assert_int_equal(text[0] != '\0', is_one);
    core_text(&core, text, "HGET %s followers", sl_key_of("user", user, key));
    assert_string_equal(text, is_one ? "1" : "0");
}

/* Takes every task of ada's shard for a consumer that will not be heard of again; the entries. */
static redisReply *take_and_die(void)
{
    return core_command(&core, "XREADGROUP GROUP workers gone STREAMS sluice:{%u}:tasks >",
                        (unsigned)sl_id_shard(ada));
}

static void add_task(const char *kind, uint64_t id, uint64_t user, uint64_t target)
{
    freeReplyObject(core_command(
        &core, "XADD sluice:{%u}:tasks * task %s id %" PRIu64 " user %" PRIu64 " target %" PRIu64,
        (unsigned)sl_id_shard(ada), kind, id, user, target));
}

static void test_follow_reaches_the_other_shard(void **state)
{
    (void)state;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    assert_followers(bob, ada, false);
    core_work(&core);
    assert_followers(bob, ada, true);
    assert_int_equal(core_unfollow(&core, "ada", bob_login, NULL), 0);
    core_work(&core);
    assert_followers(bob, ada, false);
    assert_int_equal(in_shard("XLEN", ada, "tasks"), 0);
    assert_int_equal(in_shard("XLEN", ada, "dead"), 0);
}

static void test_follow_that_comes_after_the_unfollow_changes_nothing(void **state)
{
    uint64_t follow;

    (void)state;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    follow = core.written.id;
    assert_int_equal(core_unfollow(&core, "ada", bob_login, NULL), 0);
    core_work(&core);
    assert_followers(bob, ada, false);
    add_task("follow", follow, ada, bob);
    core_work(&core);
    assert_followers(bob, ada, false);
}

static void test_unfollow_that_comes_after_the_next_follow_changes_nothing(void **state)
{
    uint64_t unfollow;

    (void)state;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    assert_int_equal(core_unfollow(&core, "ada", bob_login, NULL), 0);
    unfollow = core.written.id;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    core_work(&core);
    assert_followers(bob, ada, true);
    add_task("unfollow", unfollow, ada, bob);
    core_work(&core);
    assert_followers(bob, ada, true);
}

static void test_task_run_twice_counts_once(void **state)
{
    (void)state;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    add_task("follow", core.written.id, ada, bob);
    core_work(&core);
    assert_followers(bob, ada, true);
}

static void test_tasks_of_a_worker_that_is_gone_are_claimed(void **state)
{
    redisReply *taken;

    (void)state;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    taken = take_and_die();
    assert_int_equal(taken->elements, 1);
    core_work(&core);
    assert_followers(bob, ada, true);
    assert_int_equal(in_shard("XLEN", ada, "tasks"), 0);
    freeReplyObject(taken);
}

/* What the letter at the head of the dead of ada's shard says. */
static void assert_dead(const char *kind, const char *tries, const char *error)
{
    redisReply *dead =
        core_command(&core, "XRANGE sluice:{%u}:dead - +", (unsigned)sl_id_shard(ada));
    redisReply *kept;
    const redisReply *fields;

    assert_int_equal(dead->elements, 1);
    fields = dead->element[0]->element[1];
    assert_string_equal(fields->element[2]->str, "tries");
    assert_string_equal(fields->element[3]->str, tries);
    assert_string_equal(fields->element[4]->str, "error");
    assert_string_equal(fields->element[5]->str, error);
    assert_string_equal(fields->element[7]->str, kind);
    freeReplyObject(dead);
    assert_int_equal(in_shard("XLEN", ada, "tasks"), 0);
    kept = core_command(&core, "KEYS *:task:*");
    assert_int_equal(kept->elements, 0);
    freeReplyObject(kept);
}

static void set_tries(int tries)
{
    freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta task_tries %d",
                                 (unsigned)sl_id_shard(ada), tries));
}

static void test_task_that_fails_every_time_goes_to_the_dead(void **state)
{
    (void)state;
    set_tries(3);
    add_task("nonsense", 4096, ada, bob);
    core_work(&core);
    assert_dead("nonsense", "3", "no kind of task is called 'nonsense'");
}

static void test_task_that_kills_its_workers_goes_to_the_dead(void **state)
{
    (void)state;
    set_tries(1);
    add_task("follow", 4096, ada, bob);
    freeReplyObject(take_and_die());
    core_work(&core);
    assert_dead("follow", "1", "its worker ended in the middle of it, again and again");
    assert_followers(bob, ada, false);
}

static void test_task_with_a_user_of_no_shard_is_not_run(void **state)
{
    (void)state;
    set_tries(1);
    add_task("follow", 4096, ada, (uint64_t)SHARDS * 64);
    core_work(&core);
    assert_dead("follow", "1", "512 is no id of this database");
}

static void test_group_is_made_where_it_is_missing(void **state)
{
    (void)state;
    assert_int_equal(core_follow(&core, "ada", bob_login, NULL), 0);
    freeReplyObject(core_command(&core, "XGROUP DESTROY sluice:{%u}:tasks workers",
                                 (unsigned)sl_id_shard(ada)));
    core_work(&core);
    assert_followers(bob, ada, true);
}

static int start(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    core_init(&core);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    core_done(&core);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_follow_reaches_the_other_shard),
        TEST(test_follow_that_comes_after_the_unfollow_changes_nothing),
        TEST(test_unfollow_that_comes_after_the_next_follow_changes_nothing),
        TEST(test_task_run_twice_counts_once),
        TEST(test_tasks_of_a_worker_that_is_gone_are_claimed),
        TEST(test_task_that_fails_every_time_goes_to_the_dead),
        TEST(test_task_that_kills_its_workers_goes_to_the_dead),
        TEST(test_task_with_a_user_of_no_shard_is_not_run),
        TEST(test_group_is_made_where_it_is_missing),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
