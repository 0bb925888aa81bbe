/* The task queue with a real Redis: tasks are claimed once, retried, moved to the dead tasks, and
 * applied in any order. */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/tasks/tasks.h"
#include "src/tasks/worker.h"
#include "tests/support/core_group.h"

enum { SHARDS = 8 };

static uint64_t ada, bob; /* in different shards */
static char bob_login[16];
static bool is_clustered; /* then the worker asks one shard after the other */

static int begin(void **state)
{
    (void)state;
    core_reset(&core, SHARDS);
    core.meta.is_clustered |= is_clustered;
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

/* Claims every task of ada's shard for a consumer that disappears; returns the entries. */
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

/* A task that a worker had claimed, `gone` since. */
static void leave_abandoned(void)
{
    add_task("follow", 4096, ada, bob);
    freeReplyObject(take_and_die());
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

/* Expects this in the first dead task of ada's shard. */
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
    leave_abandoned();
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

/* ---- claiming, keeping, releasing ---- */

/* Sends what a builder built; the caller frees the reply. */
static redisReply *send_call(struct sl_call *call, int built)
{
    redisReply *reply = NULL;

    assert_int_equal(built, 0);
    assert_int_equal(sl_redis_link_run(core.link, call, &reply, NULL), 0);
    sl_call_done(call);
    return reply;
}

/* What `consumer` claims in ada's shard: one task or none. */
static size_t claim(const char *consumer, uint32_t lease_ms, redisReply **ret_reply,
                    struct sl_task *ret_task)
{
    struct sl_call call = SL_CALL_INIT;
    uint32_t shard = sl_id_shard(ada);
    struct sl_task *tasks;
    size_t count;

    *ret_reply = send_call(
        &call, sl_task_claim_call(&call, &core.meta, shard, consumer, lease_ms, 10, NULL));
    assert_int_equal(sl_tasks_reply(*ret_reply, shard, &tasks, &count, NULL), 0);
    if (count > 0)
        *ret_task = tasks[0];
    sl_tasks_free(tasks);
    return count;
}

static int save(const struct sl_task *task, const char *consumer, struct sl_slice progress)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply =
        send_call(&call, sl_task_save_call(&call, &core.meta, task, consumer, progress, NULL));
    int r = sl_task_save_reply(reply, NULL);

    freeReplyObject(reply);
    return r;
}

static int fail_task(const struct sl_task *task, const char *consumer, bool *ret_is_dead)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = send_call(
        &call, sl_task_fail_call(&call, &core.meta, task, consumer, 30000, "out of luck", NULL));
    int r = sl_task_fail_reply(reply, ret_is_dead, NULL);

    freeReplyObject(reply);
    return r;
}

static void test_saved_progress_is_found_by_the_next_and_makes_it_the_first_try(void **state)
{
    redisReply *reply;
    struct sl_task task;

    (void)state;
    leave_abandoned();
    assert_int_equal(claim("a", 0, &reply, &task), 1);
    assert_int_equal(task.tries, 2);
    assert_int_equal(task.progress.size, 0);
    assert_int_equal(save(&task, "a", SL_SLICE("page 7")), 0);
    freeReplyObject(reply);
    assert_int_equal(claim("b", 0, &reply, &task), 1);
    assert_int_equal(task.tries, 2); /* that of "a", and this one */
    assert_true(sl_slice_is(task.progress, "page 7"));
    assert_int_equal(save(&task, "b", SL_SLICE_NONE), 0); /* only the lease */
    freeReplyObject(reply);
    assert_int_equal(claim("c", 0, &reply, &task), 1);
    assert_int_equal(task.tries, 3);
    assert_true(sl_slice_is(task.progress, "page 7"));
    freeReplyObject(reply);
}

static void test_what_a_consumer_claims_from_itself_is_no_new_try(void **state)
{
    redisReply *reply;
    struct sl_task task;

    (void)state;
    leave_abandoned();
    assert_int_equal(claim("gone", 0, &reply, &task), 1);
    assert_int_equal(task.tries, 1);
    freeReplyObject(reply);
}

static void test_task_within_its_lease_is_left_alone(void **state)
{
    redisReply *reply;
    struct sl_task task;

    (void)state;
    leave_abandoned();
    assert_int_equal(claim("a", 600000, &reply, &task), 0);
    freeReplyObject(reply);
}

static void test_task_of_another_is_neither_saved_nor_failed(void **state)
{
    redisReply *reply;
    struct sl_task task;
    bool is_dead;

    (void)state;
    leave_abandoned();
    assert_int_equal(claim("a", 0, &reply, &task), 1);
    assert_int_equal(save(&task, "gone", SL_SLICE("page 7")), -ECANCELED);
    assert_int_equal(fail_task(&task, "gone", &is_dead), -ECANCELED);
    freeReplyObject(reply);
    assert_int_equal(claim("b", 0, &reply, &task), 1);
    assert_int_equal(task.progress.size, 0);
    freeReplyObject(reply);
}

/* By hand, with XDEL: a worker that has it or claims it is told, and nothing is left of it. */
static void test_task_that_somebody_deletes_is_forgotten(void **state)
{
    redisReply *reply, *pending;
    struct sl_task task;
    bool is_dead;

    (void)state;
    core_number(&core, "HSET sluice:{%u}:meta task_tries 1", (unsigned)sl_id_shard(ada));
    for (int is_claimed = 0; is_claimed < 2; is_claimed++) {
        leave_abandoned();
        assert_int_equal(claim("gone", 0, &reply, &task), 1);
        assert_int_equal(save(&task, "gone", SL_SLICE("page 7")), 0);
        assert_int_equal(core_number(&core, "XDEL sluice:{%u}:tasks %b", (unsigned)sl_id_shard(ada),
                                     task.entry.data, task.entry.size),
                         1);
        if (!is_claimed)
            assert_int_equal(fail_task(&task, "gone", &is_dead), -ECANCELED);
        freeReplyObject(reply);
        if (is_claimed) {
            assert_int_equal(claim("a", 0, &reply, &task), 0);
            freeReplyObject(reply);
        }
        pending =
            core_command(&core, "XPENDING sluice:{%u}:tasks workers", (unsigned)sl_id_shard(ada));
        assert_int_equal(pending->element[0]->integer, 0);
        freeReplyObject(pending);
        pending = core_command(&core, "KEYS sluice:{%u}:task:*", (unsigned)sl_id_shard(ada));
        assert_int_equal(pending->elements, 0);
        freeReplyObject(pending);
        assert_int_equal(in_shard("XLEN", ada, "dead"), 0);
    }
}

static void test_failed_task_waits_longer_from_try_to_try(void **state)
{
    static const long long waits_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    redisReply *reply;
    struct sl_task task;
    bool is_dead;

    (void)state;
    leave_abandoned();
    for (size_t i = 0; i < sizeof(waits_ms) / sizeof(waits_ms[0]); i++) {
        redisReply *pending;

        assert_int_equal(claim(i == 0 ? "gone" : "a", 0, &reply, &task), 1);
        assert_int_equal(task.tries, i + 1);
        assert_int_equal(fail_task(&task, i == 0 ? "gone" : "a", &is_dead), 0);
        assert_false(is_dead);
        freeReplyObject(reply);
        pending = core_command(&core, "XPENDING sluice:{%u}:tasks workers - + 10",
                               (unsigned)sl_id_shard(ada));
        assert_string_equal(pending->element[0]->element[1]->str, "waiting");
        assert_true(pending->element[0]->element[2]->integer >= 30000 - waits_ms[i]);
        freeReplyObject(pending);
    }
}

static void test_letter_is_tried_again_unless_it_is_too_old(void **state)
{
    struct sl_call call = SL_CALL_INIT;
    uint32_t shard = sl_id_shard(ada);
    redisReply *reply;

    (void)state;
    freeReplyObject(core_command(
        &core, "XADD sluice:{%u}:dead 1-0 entry 1-0 tries 1 error e task follow", (unsigned)shard));
    reply = send_call(&call, sl_dead_retry_call(&call, &core.meta, shard, SL_SLICE("1-0"), NULL));
    assert_int_equal(sl_dead_reply(reply, NULL), -ETIME);
    freeReplyObject(reply);
    assert_int_equal(in_shard("XLEN", ada, "dead"), 1);
    assert_int_equal(in_shard("XLEN", ada, "tasks"), 0);
    reply = send_call(&call, sl_dead_retry_call(&call, &core.meta, shard, SL_SLICE("2-0"), NULL));
    assert_int_equal(sl_dead_reply(reply, NULL), -ENOENT);
    freeReplyObject(reply);
    reply = send_call(&call, sl_dead_drop_call(&call, shard, SL_SLICE("1-0"), NULL));
    assert_int_equal(sl_dead_reply(reply, NULL), 0);
    freeReplyObject(reply);
}

static void test_counts_say_what_there_is(void **state)
{
    struct sl_call call = SL_CALL_INIT;
    struct sl_task_counts counts;
    redisReply *reply;

    (void)state;
    leave_abandoned();
    add_task("follow", 4096, ada, bob);
    freeReplyObject(
        core_command(&core, "XADD sluice:{%u}:dead * error e", (unsigned)sl_id_shard(ada)));
    reply = send_call(&call, sl_task_counts_call(&call, &core.meta, sl_id_shard(ada), NULL));
    assert_int_equal(sl_task_counts_reply(reply, &counts, NULL), 0);
    freeReplyObject(reply);
    assert_int_equal(counts.tasks, 2);
    assert_int_equal(counts.taken, 1);
    assert_int_equal(counts.dead, 1);
}

static void test_entry_that_no_script_of_ours_wrote_goes_to_the_dead(void **state)
{
    (void)state;
    set_tries(1);
    freeReplyObject(
        core_command(&core, "XADD sluice:{%u}:tasks * x y", (unsigned)sl_id_shard(ada)));
    add_task("follow", 0, ada, bob);
    core_work(&core);
    assert_int_equal(in_shard("XLEN", ada, "dead"), 2);
}

static void count_done(void *context, enum sl_worker_news news, const struct sl_task *task,
                       const char *text)
{
    (void)text;
    if (news == SL_WORKER_TASK_DONE &&
        !sl_slice_is(task->kind, "gain")) /* which follows leave behind */
        atomic_fetch_add((atomic_uint *)context, 1);
}

static void test_threads_share_the_tasks_out(void **state)
{
    enum { TASKS = 500 };
    atomic_uint done = 0;
    const struct sl_worker_options options = {
        .concurrency = 8, .until_empty = true, .tell = count_done, .context = &done};
    struct sl_redis_address address;
    struct sl_worker *worker;

    (void)state;
    for (uint64_t i = 0; i < TASKS; i++)
        add_task(i % 2 ? "unfollow" : "follow", 4096 + i, ada, bob);
    add_task("follow", 4096 + TASKS, ada, bob);
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    assert_int_equal(sl_worker_new(&address, &core.meta, &options, &worker, NULL), 0);
    assert_int_equal(sl_worker_run(worker, NULL), 0);
    sl_worker_free(worker);
    assert_int_equal(atomic_load(&done), TASKS + 1); /* each once: no lease has expired */
    assert_followers(bob, ada, true);
}

static void test_worker_of_another_database_ends(void **state)
{
    const struct sl_worker_options options = {.concurrency = 2};
    struct sl_redis_address address;
    struct sl_worker *worker;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    assert_int_equal(sl_worker_new(&address, &core.meta, &options, &worker, NULL), 0);
    core_reset(&core, SHARDS / 2);
    assert_int_equal(sl_worker_run(worker, &failure), -ESTALE);
    assert_string_equal(failure.text, "the database has 4 shards");
    sl_worker_free(worker);
}

static void test_worker_survives_every_allocation_that_fails(void **state)
{
    const struct sl_worker_options options = {.concurrency = 3};
    struct sl_redis_address address;
    struct sl_worker *worker = NULL;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    for (uint64_t n = 0; !worker; n++) {
        int r;

        mem_fail_after(n);
        r = sl_worker_new(&address, &core.meta, &options, &worker, &failure);
        mem_fail_never();
        assert_int_equal(r, worker ? 0 : -ENOMEM);
    }
    sl_worker_stop(worker);
    assert_int_equal(sl_worker_run(worker, NULL), 0); /* told to stop before it began */
    sl_worker_free(worker);
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
        TEST(test_saved_progress_is_found_by_the_next_and_makes_it_the_first_try),
        TEST(test_what_a_consumer_claims_from_itself_is_no_new_try),
        TEST(test_task_within_its_lease_is_left_alone),
        TEST(test_task_of_another_is_neither_saved_nor_failed),
        TEST(test_task_that_somebody_deletes_is_forgotten),
        TEST(test_failed_task_waits_longer_from_try_to_try),
        TEST(test_letter_is_tried_again_unless_it_is_too_old),
        TEST(test_counts_say_what_there_is),
        TEST(test_entry_that_no_script_of_ours_wrote_goes_to_the_dead),
        TEST(test_threads_share_the_tasks_out),
        TEST(test_worker_of_another_database_ends),
        TEST(test_worker_survives_every_allocation_that_fails),
    };

    int failed = 0;

    if (!core_is_clustered())
        failed = cmocka_run_group_tests(tests, core_group_start, core_group_stop);
    is_clustered = true;
    return failed + cmocka_run_group_tests(tests, core_group_start, core_group_stop);
}
