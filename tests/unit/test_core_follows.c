/* Following many users at once, its limit, and sets of followers split into parts, with one shard
 * and with eight. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/common_users.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"

enum { USERS = 40 };

static uint64_t ids[USERS]; /* of user0, user1, ... */
static char logins[USERS][16];

static int begin(void **state)
{
    core_group_fresh(state);
    for (int i = 0; i < USERS; i++) {
        snprintf(logins[i], sizeof(logins[i]), "user%d", i);
        ids[i] = core_must_create(&core, logins[i]);
    }
    return 0;
}

static void set(const char *field, int value)
{
    for (uint32_t shard = 0; shard < shards; shard++)
        core_number(&core, "HSET sluice:{%u}:meta %s %d", (unsigned)shard, field, value);
}

/* ---- many at once ---- */

static struct {
    redisReply *reply;
    size_t count;
    bool is_repeated;
} answer;

/* `user` follows, or unfollows, `count` of `targets` (numbers; -1: a user that was not found). */
static void change_many(bool follows, int user, const int *targets, size_t count,
                        const char *request_id)
{
    const struct sl_user_ref ref = sl_user_by_id(ids[user]);
    struct sl_user whom[USERS * 2] = {0};
    struct sl_call call = SL_CALL_INIT;
    int r;

    for (size_t i = 0; i < count; i++) {
        if (targets[i] >= 0)
            whom[i] =
                (struct sl_user){.id = ids[targets[i]], .login = sl_slice_str(logins[targets[i]])};
    }
    r = (follows ? sl_follow_many_call : sl_unfollow_many_call)(
        &call, &core.meta, sl_slice_str(request_id), &ref, whom, count, &core.failure);
    assert_int_equal(r, 0);
    freeReplyObject(answer.reply);
    answer.reply = NULL;
    assert_int_equal(sl_redis_link_run(core.link, &call, &answer.reply, &core.failure), 0);
    assert_int_equal(sl_write_many_reply(answer.reply, count, &answer.is_repeated, &core.failure),
                     0);
    answer.count = count;
    sl_call_done(&call);
}

/* Result for the `i`th target; *ret_id is 0 unless there is an event. */
static int result_at(size_t i, uint64_t *ret_id)
{
    *ret_id = 0;
    assert_true(i < answer.count);
    return sl_write_many_at(answer.reply, i, ret_id, &core.failure);
}

static void assert_counters(int user, uint64_t followers, uint64_t following)
{
    const struct sl_user_ref ref = sl_user_by_id(ids[user]);
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_user_row row;
    redisReply *reply;

    assert_int_equal(sl_users_calls(&calls, &core.meta, &ref, 1, NULL), 0);
    assert_int_equal(sl_redis_link_run_many(core.link, calls.calls, 1, &reply, NULL), 0);
    assert_int_equal(sl_users_at(reply, 0, &row, NULL), 0);
    assert_int_equal(row.followers, followers);
    assert_int_equal(row.following, following);
    freeReplyObject(reply);
    sl_shard_calls_done(&calls);
}

static int users_of_shard(uint32_t shard)
{
    int count = 0;

    for (int i = 0; i < USERS; i++)
        count += sl_id_shard(ids[i]) == shard;
    return count;
}

static void test_each_of_many_is_reported(void **state)
{
    const int targets[] = {1, 2, 1, -1, 0, 3, 4};
    uint64_t first, second, id;

    (void)state;
    assert_int_equal(core_follow(&core, logins[0], logins[2], NULL), 0);
    change_many(true, 0, targets, 7, NULL);
    assert_int_equal(result_at(0, &first), 0);
    assert_true(first > ids[USERS - 1] || shards > 1);
    assert_int_equal(result_at(1, &id), 0); /* nothing to change */
    assert_int_equal(id, 0);
    assert_int_equal(result_at(2, &id), 0); /* requested twice */
    assert_int_equal(id, 0);
    assert_int_equal(result_at(3, &id), -ENOENT);
    assert_int_equal(result_at(4, &id), -EINVAL);
    assert_string_equal(core.failure.text, "nobody can follow themselves");
    assert_int_equal(result_at(5, &second), 0);
    assert_int_equal(result_at(6, &id), 0);
    assert_true(first < second && second < id);
    core_work(&core);
    assert_counters(0, 0, 4);
    assert_counters(4, 1, 0);
    assert_int_equal(core_number(&core, "XLEN sluice:{%u}:log", (unsigned)sl_id_shard(ids[0])),
                     users_of_shard(sl_id_shard(ids[0])) + 4);

    change_many(false, 0, targets, 7, NULL);
    for (size_t i = 0; i < 7; i++) {
        int r = result_at(i, &id);

        assert_int_equal(r, i == 3 ? -ENOENT : i == 4 ? -EINVAL : 0);
        assert_int_equal(id != 0, i != 2 && i != 3 && i != 4);
    }
    core_work(&core);
    assert_counters(0, 0, 0);
    assert_counters(4, 0, 0);
}

static void test_many_repeated_are_answered_alike(void **state)
{
    const int targets[] = {1, -1, 0, 2, 1};
    uint64_t before[5], id, digest;
    int results[5];

    (void)state;
    change_many(true, 0, targets, 5, "r");
    assert_false(answer.is_repeated);
    for (size_t i = 0; i < 5; i++)
        results[i] = result_at(i, &before[i]);
    core_work(&core);
    digest = core_digest(&core);
    change_many(true, 0, targets, 5, "r");
    assert_true(answer.is_repeated);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(result_at(i, &id), results[i]);
        assert_int_equal(id, before[i]);
    }
    assert_int_equal(core_digest(&core), digest);
}

static void test_nothing_but_refusals_changes_nothing(void **state)
{
    const int targets[] = {0, -1};
    uint64_t digest = core_digest(&core), id;

    (void)state;
    change_many(true, 0, targets, 2, "r");
    assert_int_equal(result_at(0, &id), -EINVAL);
    assert_int_equal(result_at(1, &id), -ENOENT);
    assert_int_equal(core_digest(&core), digest);
}

static void test_nobody_follows_more_than_the_limit(void **state)
{
    const int targets[] = {1, 2, 3, 4, 5};
    uint64_t id;

    (void)state;
    set("following_max", 3);
    change_many(true, 0, targets, 5, NULL);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(result_at(i, &id), i < 3 ? 0 : -EDQUOT);
    assert_string_equal(core.failure.text, "nobody can follow more than 3 users");
    assert_int_equal(core_follow(&core, logins[0], logins[9], NULL), -EDQUOT);
    assert_int_equal(core_follow(&core, logins[0], logins[1], NULL), 0); /* nothing to change */
    set("following_max", 1); /* users beyond it stay there */
    assert_int_equal(core_unfollow(&core, logins[0], logins[1], NULL), 0);
    assert_int_equal(core_follow(&core, logins[0], logins[1], NULL), -EDQUOT);
    core_work(&core);
    assert_counters(0, 0, 2);
}

static void test_hundreds_are_followed_in_one_call(void **state)
{
    const struct sl_user_ref ref = sl_user_by_id(ids[0]);
    struct sl_user targets[300];
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply;
    uint64_t last = 0, id;
    char login[16];
    bool repeated;

    (void)state;
    for (int i = 0; i < 300; i++) {
        snprintf(login, sizeof(login), "other%d", i);
        targets[i] = (struct sl_user){.id = core_must_create(&core, login)};
    }
    assert_int_equal(
        sl_follow_many_call(&call, &core.meta, SL_SLICE_NONE, &ref, targets, 300, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    assert_int_equal(sl_write_many_reply(reply, 300, &repeated, NULL), 0);
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(sl_write_many_at(reply, i, &id, NULL), 0);
        assert_true(id > last);
        assert_int_equal(sl_id_shard(id), sl_id_shard(ids[0]));
        last = id;
    }
    freeReplyObject(reply);
    sl_call_done(&call);
    core_work(&core);
    assert_counters(0, 0, 300);
}

/* ---- lists ---- */

typedef int (*list_fn)(struct sl_call *call, const struct sl_meta *meta,
                       const struct sl_user_ref *user, const struct sl_page *page,
                       struct failure *reterr);

/* Reads a whole list in pages of `limit`; positions must descend. Returns the number of users. */
static size_t read_list(list_fn build, int user, size_t limit, uint64_t *ret_ids)
{
    const struct sl_user_ref ref = sl_user_by_id(ids[user]);
    struct sl_page page = {.before = 0, .limit = limit};
    size_t total = 0, count;

    do {
        struct sl_call call = SL_CALL_INIT;
        struct sl_listed_user listed;
        redisReply *reply;

        assert_int_equal(build(&call, &core.meta, &ref, &page, NULL), 0);
        assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
        assert_int_equal(sl_user_list_reply(reply, &count, &core.failure), 0);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(sl_user_list_at(reply, i, &listed, &core.failure), 0);
            assert_true(page.before == 0 || listed.position < page.before);
            page.before = listed.position;
            ret_ids[total++] = listed.row.user.id;
        }
        assert_true(count == limit || total % limit == count);
        freeReplyObject(reply);
        sl_call_done(&call);
    } while (count == limit);
    return total;
}

static void test_following_is_listed_newest_first(void **state)
{
    uint64_t read[USERS];

    (void)state;
    for (int i = 1; i < USERS; i++)
        assert_int_equal(core_follow(&core, logins[0], logins[i], NULL), 0);
    assert_int_equal(read_list(sl_following_list_call, 0, 7, read), USERS - 1);
    for (int i = 1; i < USERS; i++)
        assert_int_equal(read[USERS - 1 - i], ids[i]);
}

/* ---- parts ---- */

static size_t part_count(int user)
{
    char key[SL_KEY_SIZE];

    return (size_t)core_number(&core, "ZCARD %s", sl_key_of("follower_parts", ids[user], key));
}

static void test_huge_set_of_followers_is_one_in_parts(void **state)
{
    uint64_t read[USERS];
    char key[SL_KEY_SIZE];

    (void)state;
    set("followers_part", 8);
    for (int i = 1; i < USERS; i++) {
        assert_int_equal(core_follow(&core, logins[i], logins[0], NULL), 0);
        if (i % 8 == 0)
            core_work(&core);
    }
    core_work(&core);
    assert_true(part_count(0) >= 4);
    assert_true(core_number(&core, "ZCARD %s", sl_key_of("followers", ids[0], key)) <= 8);
    assert_counters(0, USERS - 1, 0);
    assert_int_equal(read_list(sl_follower_list_call, 0, 5, read), USERS - 1);
    for (int i = 1; shards == 1 && i < USERS; i++) /* otherwise their clocks differ */
        assert_int_equal(read[USERS - 1 - i], ids[i]);

    for (int i = 1; i < USERS; i++)
        assert_int_equal(core_unfollow(&core, logins[i], logins[0], NULL), 0);
    core_work(&core);
    assert_counters(0, 0, 0);
    assert_int_equal(part_count(0), 0);
    assert_int_equal(read_list(sl_follower_list_call, 0, 5, read), 0);
    for (uint32_t shard = 0; shard < shards; shard++) {
        redisReply *keys = core_command(&core, "KEYS sluice:{%u}:follower*", (unsigned)shard);

        assert_int_equal(keys->elements, 0);
        freeReplyObject(keys);
    }
}

/* Random follows and unfollows, with parts so small that they come and go. */
static void test_random_followers_in_parts_agree_with_the_model(void **state)
{
    bool follows[USERS] = {false};
    uint64_t read[USERS], count = 0;

    (void)state;
    set("followers_part", 3);
    for (int round = 0; round < 600; round++) {
        int user = 1 + (int)draw(USERS - 1);
        bool on = draw(3) > 0;

        assert_int_equal((on ? core_follow : core_unfollow)(&core, logins[user], logins[0], NULL),
                         0);
        if (draw(20) == 0)
            core_work(&core);
        count += on - follows[user];
        follows[user] = on;
        if (round == 300)
            set("followers_part", 5);
    }
    core_work(&core);
    assert_counters(0, count, 0);
    if (read_list(sl_follower_list_call, 0, 4, read) != count)
        fail_msg("seed %" PRIu64 ": not as many followers as counted", draw_seed);
    for (uint64_t i = 0; i < count; i++) {
        int user = 0;

        while (ids[user] != read[i])
            user++;
        if (!follows[user])
            fail_msg("seed %" PRIu64 ": user%d does not follow", draw_seed, user);
        follows[user] = false; /* only once */
    }
}

static void test_followers_of_another_type_leave_nothing_half_done(void **state)
{
    uint64_t digest, other = 0;
    char key[SL_KEY_SIZE], login[16];

    (void)state;
    for (int i = 0; other == 0 || sl_id_shard(other) != sl_id_shard(ids[0]); i++) {
        snprintf(login, sizeof(login), "other%d", i);
        other = core_must_create(&core, login);
    }
    freeReplyObject(core_command(&core, "SET %s x", sl_key_of("follower_parts", other, key)));
    digest = core_digest(&core);
    assert_int_equal(core_follow(&core, logins[0], login, "r"), -EBADMSG);
    assert_int_equal(core_digest(&core), digest);
}

/* ---- common users ---- */

/* Reads all pages; returns the number of common users, whose ids must descend by `step`. */
static size_t count_common(enum sl_common_list list, uint64_t first, uint64_t second,
                           uint64_t newest, uint64_t step)
{
    struct sl_page page = {.before = 0, .limit = 3};
    size_t total = 0, round_trips = 0;

    do {
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply, *checked = NULL;
        struct sl_common_page common;

        assert_int_equal(sl_common_users_call(&call, &core.meta, list, first, second, &page, NULL),
                         0);
        assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
        assert_int_equal(sl_common_users_reply(reply, &common, &core.failure), 0);
        assert_int_equal(common.needs_check, sl_id_shard(first) != sl_id_shard(second));
        if (common.needs_check) {
            assert_int_equal(
                sl_common_users_check_call(&call, &core.meta, list, second, reply, NULL), 0);
            assert_int_equal(sl_redis_link_run(core.link, &call, &checked, NULL), 0);
            assert_int_equal(sl_common_users_check_reply(checked, common.count, &core.failure), 0);
        } else {
            assert_true(common.count <= page.limit);
        }
        for (size_t i = 0; i < common.count; i++) {
            struct sl_common_user user;
            bool is_common = true;

            if (checked)
                assert_int_equal(sl_common_users_check_at(checked, i, &is_common, NULL), 0);
            assert_int_equal(sl_common_users_at(reply, i, &user, NULL), 0);
            assert_true(page.before == 0 || user.position < page.before);
            if (is_common)
                assert_int_equal(user.id, newest - step * total++);
        }
        page.before = common.next;
        freeReplyObject(checked);
        freeReplyObject(reply);
        sl_call_done(&call);
        assert_true(round_trips++ < 20);
    } while (page.before > 0);
    return total;
}

/* Two users with thousands of followers, few of whom are common: in one shard or in two. */
static void test_common_users_are_found_in_bounded_stretches(void **state)
{
    static const char *const sets[] = {"followers", "following"};
    uint64_t far = ids[1];

    (void)state;
    for (int i = 1; i < USERS && sl_id_shard(far) == sl_id_shard(ids[0]); i++)
        far = ids[i];
    for (int list = 0; list < 2; list++) {
        char first[SL_KEY_SIZE], second[SL_KEY_SIZE];

        sl_key_of(sets[list], ids[0], first);
        sl_key_of(sets[list], far, second);
        for (uint64_t id = 1; id <= 5000; id++) {
            core_number(&core, "ZADD %s %" PRIu64 " %" PRIu64, first, id * 2, id);
            if (id % 500 == 0)
                core_number(&core, "ZADD %s %" PRIu64 " %" PRIu64, second, id * 3, id);
        }
        assert_int_equal(count_common((enum sl_common_list)list, ids[0], far, 5000, 500), 10);
        assert_int_equal(count_common((enum sl_common_list)list, far, ids[0], 5000, 500), 10);
    }
}

static void test_common_users_of_nobody_are_refused(void **state)
{
    const struct sl_page page = {.limit = 3}, bad = {.limit = 0};
    struct sl_call call = SL_CALL_INIT;
    struct sl_common_page common;
    struct failure failure;
    redisReply *reply;

    (void)state;
    if (shards < SL_SHARDS_MAX) /* otherwise every id has one */
        assert_int_equal(sl_common_users_call(&call, &core.meta, SL_COMMON_FOLLOWERS, ids[0],
                                              64 * 63, &page, &failure),
                         -EINVAL);
    assert_int_equal(sl_common_users_call(&call, &core.meta, SL_COMMON_FOLLOWERS, ids[0], ids[1],
                                          &bad, &failure),
                     -EINVAL);
    assert_int_equal(
        sl_common_users_call(&call, &core.meta, SL_COMMON_FOLLOWERS, 4096, ids[1], &page, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    assert_int_equal(sl_common_users_reply(reply, &common, &failure), -ENOENT);
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* ---- invalid requests ---- */

static void test_too_many_or_none_are_refused(void **state)
{
    static struct sl_user targets[SL_FOLLOW_MAX + 1];
    const struct sl_user_ref ref = sl_user_by_id(ids[0]);
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    assert_int_equal(
        sl_follow_many_call(&call, &core.meta, SL_SLICE_NONE, &ref, targets, 0, &failure), -EINVAL);
    assert_int_equal(sl_follow_many_call(&call, &core.meta, SL_SLICE_NONE, &ref, targets,
                                         SL_FOLLOW_MAX + 1, &failure),
                     -EINVAL);
    assert_int_equal(sl_unfollow_many_call(&call, &core.meta, SL_SLICE_NONE, &ref, targets,
                                           SL_FOLLOW_MAX, &failure),
                     0);
    sl_call_done(&call);
}

static void test_who_needs_a_lookup_is_known(void **state)
{
    const struct sl_user_ref ada = sl_user_by_id(4096);
    const struct sl_user_ref near = sl_user_by_id(8192), far = sl_user_by_id(8192 + 64);
    const struct sl_user_ref none = sl_user_by_login(SL_SLICE("a b"));
    const struct sl_meta meta = {.shards = 8};
    bool needs;

    (void)state;
    assert_int_equal(sl_follow_needs_lookup(&meta, &ada, &near, &needs, NULL), 0);
    assert_false(needs);
    assert_int_equal(sl_follow_needs_lookup(&meta, &ada, &far, &needs, NULL), 0);
    assert_true(needs);
    assert_int_equal(sl_follow_needs_lookup(&meta, &ada, &none, &needs, NULL), -EINVAL);
}

static void test_builder_of_many_survives_every_allocation_that_fails(void **state)
{
    const struct sl_user_ref ref = sl_user_by_id(4096);
    struct sl_user targets[40] = {{.id = 4096 + 64, .login = SL_SLICE("bob")}};
    const struct sl_meta meta = {.shards = 8};
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r == -ENOMEM; n++) {
        struct sl_call call = SL_CALL_INIT;
        struct failure failure;

        mem_fail_after(n);
        r = sl_follow_many_call(&call, &meta, SL_SLICE_NONE, &ref, targets, 40, &failure);
        mem_fail_never();
        assert_int_equal(r == 0, call.argc > 0);
        assert_true(n < 20);
        sl_call_done(&call);
    }
    assert_int_equal(r, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_each_of_many_is_reported),
        TEST(test_many_repeated_are_answered_alike),
        TEST(test_nothing_but_refusals_changes_nothing),
        TEST(test_nobody_follows_more_than_the_limit),
        TEST(test_hundreds_are_followed_in_one_call),
        TEST(test_following_is_listed_newest_first),
        TEST(test_huge_set_of_followers_is_one_in_parts),
        TEST(test_random_followers_in_parts_agree_with_the_model),
        TEST(test_followers_of_another_type_leave_nothing_half_done),
        TEST(test_common_users_are_found_in_bounded_stretches),
        TEST(test_common_users_of_nobody_are_refused),
        TEST(test_too_many_or_none_are_refused),
        TEST(test_who_needs_a_lookup_is_known),
        TEST(test_builder_of_many_survives_every_allocation_that_fails),
    };

    int failed;

    draw_begin();
    failed = core_group_run(tests);
    freeReplyObject(answer.reply);
    return failed;
}
