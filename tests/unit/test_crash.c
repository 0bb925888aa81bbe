/* Producers and workers are killed after any command that they send: nothing is lost, nothing is
 * done twice, and once another process has continued, all invariants of the database hold again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/home/home_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/tasks/worker.h"
#include "tests/support/core_check.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"
#include "tests/support/fault.h"

enum { USERS = 6, MOST_COMMANDS = 400 };

static uint64_t users[USERS]; /* user0, user1, ... in several shards */

/* In a child process: cmocka cannot be used there. */
static void must(bool is_good, const struct core *child, const char *what)
{
    if (is_good)
        return;
    fprintf(stderr, "%s: %s\n", what, child->failure.text);
    _exit(EXIT_FAILURE);
}

/* Returns the number of posts on the home timeline. A reader becomes active, so posts are pushed to
 * it. */
static size_t read_home(int user)
{
    const struct sl_user_ref reader = sl_user_by_id(users[user]);
    const struct sl_home_page page = {.limit = SL_HOME_PAGE_MAX};
    struct sl_home_read *read;
    size_t count;

    assert_int_equal(sl_home_read_new(&read, &core.meta, &reader, &page, &core.failure), 0);
    assert_int_equal(sl_home_run(core.link, read, &core.failure), 0);
    count = sl_home_read_count(read);
    sl_home_read_free(read);
    return count;
}

/* Two followers are pushed to at once, the others by tasks. */
static int begin(void **state)
{
    char login[16];

    (void)state;
    core_reset(&core, shards);
    for (uint32_t shard = 0; shard < shards; shard++)
        freeReplyObject(
            core_command(&core, "HSET sluice:{%u}:meta push_at_once 2", (unsigned)shard));
    for (int i = 0; i < USERS; i++) {
        snprintf(login, sizeof(login), "user%d", i);
        users[i] = core_must_create(&core, login);
        read_home(i);
    }
    return 0;
}

static void work(struct core *child, uint32_t lease_ms)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .lease_ms = lease_ms, .until_empty = true};
    struct sl_redis_address address;
    struct sl_worker *worker;

    must(sl_redis_address_parse(sl_slice_str(child->url), &address, NULL) == 0, child, "url");
    must(sl_worker_new(&address, &child->meta, &options, &worker, &child->failure) == 0, child,
         "worker");
    must(sl_worker_run(worker, &child->failure) == 0, child, "work");
    sl_worker_free(worker);
}

static void work_with_long_lease(struct core *child)
{
    work(child, 30000);
}

/* Takes over all claimed tasks, even those of living workers. */
static void work_without_test_loop(struct core *child)
{
    work(child, 1);
}

/* ---- one sequence of operations ---- */

/* All operations that leave work to another shard. They have request ids, so a process that does
 * not know how far it has come starts again. */
static void tell_story(struct core *child)
{
    const struct sl_post first = {.text = SL_SLICE("first")}, second = {.text = SL_SLICE("second")};
    char request[32];
    uint64_t post;

    for (int i = 1; i < USERS; i++) {
        char login[16];

        snprintf(login, sizeof(login), "user%d", i);
        snprintf(request, sizeof(request), "follow-%d", i);
        must(core_follow(child, login, "user0", request) == 0, child, "follow");
    }
    must(core_post(child, "user0", &first, "first") == 0, child, "post");
    post = child->written.id;
    must(core_post(child, "user0", &second, "second") == 0, child, "post");
    must(core_hide(child, "user0", "user1", "hide") == 0, child, "hide");
    must(core_mute(child, "user2", "user0", "mute") == 0, child, "mute");
    must(core_delete(child, "user0", post, "delete") == 0, child, "delete");
    must(core_unfollow(child, "user3", "user0", "unfollow") == 0, child, "unfollow");
    must(core_unfollow(child, "user4", "user0", "unfollow-4") == 0, child, "unfollow");
    must(core_follow(child, "user4", "user0", "follow-4-again") == 0, child, "follow");
}

static long long number_of(const char *command, const char *set, uint64_t owner)
{
    char key[SL_KEY_SIZE];

    return core_number(&core, "%s %s", command, sl_key_of(set, owner, key));
}

static bool follows(int user, int target)
{
    char room[65536], key[SL_KEY_SIZE];

    return core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("followers", users[target], key),
                     users[user])[0];
}

static void check_story(const char *what)
{
    long long events = 0;

    core_check(&core, what);
    for (int i = 1; i < USERS; i++)
        assert_int_equal(follows(i, 0), i != 3);
    assert_int_equal(number_of("ZCARD", "profile", users[0]), 1);
    for (int i = 0; i < USERS; i++) /* the author is hidden from 1, muted by 2, unfollowed by 3 */
        assert_int_equal(read_home(i), i == 0 || i > 3);
    assert_int_equal(number_of("SCARD", "hidden_by", users[1]), 1);
    assert_int_equal(number_of("SCARD", "muted_by", users[0]), 1);
    for (uint32_t shard = 0; shard < shards; shard++)
        events += core_number(&core, "XLEN sluice:{%u}:log", (unsigned)shard);
    /* the target's shard also logs hiding */
    assert_int_equal(events,
                     USERS + USERS - 1 + 8 + (sl_id_shard(users[0]) != sl_id_shard(users[1])));
}

static enum fault_end run_and_settle(uint64_t commands, void (*act)(struct core *core))
{
    enum fault_end end = fault_run(&core, commands, act);

    assert_int_not_equal(end, FAULT_FAILED);
    fault_settle(&core);
    return end;
}

static void test_poster_is_killed_behind_each_command(void **state)
{
    char what[64];
    uint64_t n;

    for (n = 1; n < MOST_COMMANDS; n++) {
        begin(state);
        snprintf(what, sizeof(what), "poster killed behind command %" PRIu64, n);
        if (run_and_settle(n, tell_story) == FAULT_ENDED)
            break;
        core_work(&core);
        core_check(&core, what);
        run_and_settle(0, tell_story); /* with the same request ids */
        core_work(&core);
        check_story(what);
    }
    assert_in_range(n, 2 * USERS, MOST_COMMANDS - 1);
}

static void test_worker_is_killed_behind_each_command(void **state)
{
    char what[64];
    uint64_t n;

    for (n = 1; n < MOST_COMMANDS; n++) {
        begin(state);
        run_and_settle(0, tell_story);
        snprintf(what, sizeof(what), "worker killed behind command %" PRIu64, n);
        if (run_and_settle(n, work_with_long_lease) == FAULT_ENDED)
            break;
        core_work(&core);
        check_story(what);
    }
    assert_in_range(n, 2, MOST_COMMANDS - 1);
}

/* ---- many followers, more than one page of a fan-out ---- */

enum { CROWD = 520 };

static void make_crowd(void)
{
    const struct sl_home_page page = {.limit = 1};

    for (int i = 0; i < CROWD; i++) {
        struct sl_home_read *read;
        struct sl_user_ref fan;
        char login[16];

        snprintf(login, sizeof(login), "fan%d", i);
        fan = sl_user_by_id(core_must_create(&core, login));
        assert_int_equal(core_follow(&core, login, "user0", NULL), 0);
        assert_int_equal(sl_home_read_new(&read, &core.meta, &fan, &page, &core.failure), 0);
        assert_int_equal(sl_home_run(core.link, read, &core.failure), 0);
        sl_home_read_free(read);
    }
    core_work_fast(&core);
}

/* Counts the home timelines that have the post. */
static long long count_homes(uint64_t post)
{
    long long count = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        char homes[SL_KEY_SIZE];

        count += core_number(&core, "EVAL %s 0 %s %" PRIu64 ":%" PRIu64,
                             "local n = 0 "
                             "for _, home in ipairs(redis.call('KEYS', ARGV[1])) do "
                             "if redis.call('ZSCORE', home, ARGV[2]) then n = n + 1 end end "
                             "return n",
                             sl_key(shard, "home:*", homes), post, users[0]);
    }
    return count;
}

/* Kills a worker after command `n` of the work to do; another one continues, and then the post is
 * on `wanted` timelines. Returns how the first one ended. */
static enum fault_end kill_and_go_on(uint64_t n, uint64_t post, long long wanted, bool *between)
{
    enum fault_end end = run_and_settle(n, work_with_long_lease);
    char key[SL_KEY_SIZE];

    if (core_number(&core, "EVAL %s 0 %s", "return #redis.call('KEYS', ARGV[1])",
                    sl_key(sl_id_shard(users[0]), "task:*", key)) > 0)
        *between = true;
    core_work(&core);
    assert_int_equal(count_homes(post), wanted);
    return end;
}

static void test_worker_is_killed_behind_each_command_of_a_long_fan_out(void **state)
{
    enum fault_end pushed = FAULT_KILLED, taken_back = FAULT_KILLED;
    bool between = false, between_back = false; /* pages, at least once */
    uint64_t n;

    (void)state;
    make_crowd();
    for (n = 1; n < MOST_COMMANDS && (pushed == FAULT_KILLED || taken_back == FAULT_KILLED); n++) {
        uint64_t post = core_must_post(&core, "user0", "to all");

        pushed = kill_and_go_on(n, post, CROWD + 1, &between);
        assert_int_equal(core_delete(&core, "user0", post, NULL), 0);
        taken_back = kill_and_go_on(n, post, 0, &between_back);
    }
    assert_in_range(n, 6, MOST_COMMANDS - 1);
    assert_true(between && between_back);
    core_check(&core, "after long fan-outs");
}

/* ---- many processes, killed at random ---- */

enum { POSTERS = 3, WORKERS = 2, LIVES = 6, ACTS = 60 };

static void act_at_random(struct core *child)
{
    int (*const relations[])(struct core *, const char *, const char *, const char *) = {
        core_follow, core_follow, core_follow, core_unfollow, core_unfollow,
        core_hide,   core_unhide, core_mute,   core_unmute,
    };
    enum { RELATIONS = sizeof(relations) / sizeof(relations[0]) };
    const struct sl_post post = {.text = SL_SLICE("text")};
    uint64_t own[ACTS];
    size_t own_count = 0;
    int poster = (int)draw(USERS);

    for (int i = 0; i < ACTS; i++) {
        char user[16], target[16];
        int r;

        snprintf(user, sizeof(user), "user%d", (int)draw(USERS));
        snprintf(target, sizeof(target), "user%d", (int)draw(USERS));
        if (draw(3) > 0) {
            r = relations[draw(RELATIONS)](child, user, target, NULL);
            must(r == 0 || strcmp(user, target) == 0, child, "relation");
            continue;
        }
        snprintf(user, sizeof(user), "user%d", poster);
        if (own_count > 0 && draw(3) == 0) {
            must(core_delete(child, user, own[--own_count], NULL) == 0, child, "delete");
        } else {
            must(core_post(child, user, &post, NULL) == 0, child, "post");
            own[own_count++] = child->written.id;
        }
    }
}

/* Runs one process after the other, each killed somewhere, except for the last one. */
static void live_and_die(void (*act)(struct core *core), uint32_t most_commands)
{
    for (int life = 0; life < LIVES; life++) {
        draw(2); /* the next process makes other choices */
        if (fault_run(&core, life == LIVES - 1 ? 0 : 1 + draw(most_commands), act) == FAULT_FAILED)
            _exit(EXIT_FAILURE);
    }
}

/* Starts a process that runs and kills others. */
static pid_t start(int number, void (*act)(struct core *core), uint32_t most_commands)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        draw_begin_as(number);
        live_and_die(act, most_commands);
        _exit(EXIT_SUCCESS);
    }
    return pid;
}

static void test_many_posters_and_workers_are_killed_at_random(void **state)
{
    pid_t pids[POSTERS + WORKERS];
    char what[64];

    (void)state;
    for (uint32_t shard = 0; shard < shards; shard++) /* each kill counts as a try */
        freeReplyObject(
            core_command(&core, "HSET sluice:{%u}:meta task_tries 1000", (unsigned)shard));
    for (int i = 0; i < POSTERS + WORKERS; i++)
        pids[i] =
            i < POSTERS ? start(i, act_at_random, 3 * ACTS) : start(i, work_without_test_loop, 100);
    for (int i = 0; i < POSTERS + WORKERS; i++) {
        int status;

        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    }
    fault_settle(&core);
    core_work(&core);
    snprintf(what, sizeof(what), "SLUICE_TEST_SEED=%" PRIu64, draw_seed);
    core_check(&core, what);
}

/* test_crash [SHARDS] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_poster_is_killed_behind_each_command, begin),
        cmocka_unit_test_setup(test_worker_is_killed_behind_each_command, begin),
        cmocka_unit_test_setup(test_worker_is_killed_behind_each_command_of_a_long_fan_out, begin),
        cmocka_unit_test_setup(test_many_posters_and_workers_are_killed_at_random, begin),
    };

    draw_begin();
    shards = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    return cmocka_run_group_tests_name("crash", tests, core_group_start, core_group_stop);
}
