/* Likes, and lists read newest first and page by page, with one shard and with eight. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "src/id.h"
#include "src/keys.h"
#include "src/likes.h"
#include "src/post_rows.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/core.h"

static struct core core;
static uint32_t shards;

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

static int fresh_database(void **state)
{
    (void)state;
    core_reset(&core, shards);
    return 0;
}

/* Sends what a builder built with result `r`; the reply is the caller's. */
static redisReply *ask(struct sl_call *call, int r)
{
    redisReply *reply = NULL;

    assert_int_equal(r, 0);
    assert_int_equal(sl_redis_link_run(core.link, call, &reply, &core.failure), 0);
    sl_call_done(call);
    return reply;
}

/* ---- a user's posts ---- */

/* Reads a page of ada's posts; their number. */
static size_t read_posts(uint64_t before, size_t limit, uint64_t *ret_ids)
{
    const struct sl_user_ref ada = sl_user_by_login(SL_SLICE("ada"));
    const struct sl_page page = {before, limit};
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = ask(
        &call, sl_post_list_call(&call, &core.meta, SL_READER_NOBODY, &ada, &page, &core.failure));
    struct sl_post_row row;
    size_t count;

    assert_int_equal(sl_post_list_reply(reply, &count, &core.failure), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sl_post_list_at(reply, i, &row, &core.failure), 0);
        assert_non_null(memmem(row.json.data, row.json.size, "\"login\":\"ada\"", 13));
        ret_ids[i] = row.id;
    }
    freeReplyObject(reply);
    return count;
}

static void test_posts_of_a_user_come_newest_first_in_pages(void **state)
{
    uint64_t posts[10], ids[16];
    size_t count, read = 0;

    (void)state;
    core_must_create(&core, "ada");
    assert_int_equal(read_posts(0, 3, ids), 0);
    for (int i = 9; i >= 0; i--)
        posts[i] = core_must_post(&core, "ada", "t");
    for (uint64_t before = 0; (count = read_posts(before, 3, ids)) > 0; before = ids[count - 1]) {
        assert_int_equal(count, read < 9 ? 3 : 1);
        assert_memory_equal(ids, posts + read, count * sizeof(ids[0]));
        read += count;
    }
    assert_int_equal(read, 10);
    assert_int_equal(read_posts(0, SL_PAGE_MAX, ids), 10);
    assert_int_equal(core_delete(&core, "ada", posts[4], NULL), 0);
    assert_int_equal(read_posts(posts[3], 2, ids), 2);
    assert_int_equal(ids[0], posts[5]);
}

static void test_page_of_nobody_says_so(void **state)
{
    const struct sl_user_ref nobody = sl_user_by_login(SL_SLICE("nobody"));
    const struct sl_page page = {0, 10};
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply;
    size_t count;

    (void)state;
    reply = ask(&call, sl_post_list_call(&call, &core.meta, 0, &nobody, &page, NULL));
    assert_int_equal(sl_post_list_reply(reply, &count, &core.failure), -ENOENT);
    assert_string_equal(core.failure.text, "there is no user @nobody");
    freeReplyObject(reply);
    reply = ask(&call, sl_like_list_call(&call, &core.meta, 0, 4096, &page, NULL));
    assert_int_equal(sl_user_list_reply(reply, &count, &core.failure), -ENOENT);
    assert_string_equal(core.failure.text, "there is no post 4096");
    freeReplyObject(reply);
}

static void test_pages_that_cannot_be_are_refused(void **state)
{
    const struct sl_page bad[] = {{0, 0}, {0, SL_PAGE_MAX + 1}, {SL_ID_MAX + 1, 1}};
    const struct sl_user_ref ada = sl_user_by_login(SL_SLICE("ada"));
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sl_post_list_call(&call, &core.meta, 0, &ada, &bad[i], &failure), -EINVAL);
        assert_int_equal(sl_comment_list_call(&call, &core.meta, 0, 4096, &bad[i], &failure),
                         -EINVAL);
        assert_int_equal(sl_like_list_call(&call, &core.meta, 0, 4096, &bad[i], &failure), -EINVAL);
    }
    assert_int_equal(call.argc, 0);
    sl_call_done(&call);
}

/* ---- likes ---- */

static int change(bool likes, uint64_t user, uint64_t post, const char *request_id)
{
    const struct sl_user_ref ref = sl_user_by_id(user);
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply;
    int r;

    reply = ask(&call, (likes ? sl_like_call : sl_unlike_call)(
                           &call, &core.meta, sl_slice_str(request_id), &ref, post, &core.failure));
    r = sl_write_reply(reply, &core.written, &core.failure);
    freeReplyObject(reply);
    return r;
}

static uint64_t count_likes(uint64_t post)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    redisReply *reply;
    struct sl_post_row row;

    assert_int_equal(sl_posts_calls(&calls, &core.meta, SL_READER_NOBODY, &post, 1, NULL), 0);
    assert_int_equal(sl_redis_link_run_many(core.link, calls.calls, 1, &reply, NULL), 0);
    assert_int_equal(sl_posts_reply(reply, 1, NULL), 0);
    assert_int_equal(sl_posts_at(reply, 0, &row, NULL), 0);
    freeReplyObject(reply);
    sl_shard_calls_done(&calls);
    return row.likes;
}

enum { LIKERS = 9 };

/* ada posts; others are there to like it. The post. */
static uint64_t prepare_likes(uint64_t *ret_likers)
{
    char login[16];

    core_must_create(&core, "ada");
    for (int i = 0; i < LIKERS; i++) {
        snprintf(login, sizeof(login), "liker%d", i);
        ret_likers[i] = core_must_create(&core, login);
    }
    return core_must_post(&core, "ada", "likable");
}

static void test_likes_are_counted_once_each(void **state)
{
    uint64_t likers[LIKERS], post = prepare_likes(likers), first;

    (void)state;
    assert_int_equal(change(true, likers[0], post, NULL), 0);
    first = core.written.id;
    assert_true(first > post);
    assert_int_equal(change(true, likers[0], post, NULL), 0);
    assert_int_equal(core.written.id, 0);
    assert_int_equal(change(true, likers[1], post, "r"), 0);
    assert_int_equal(change(true, likers[1], post, "r"), 0);
    assert_true(core.written.is_repeated && core.written.id > first);
    assert_int_equal(count_likes(post), 2);
    assert_int_equal(change(false, likers[0], post, NULL), 0);
    assert_true(core.written.id > first);
    assert_int_equal(change(false, likers[0], post, NULL), 0);
    assert_int_equal(core.written.id, 0);
    assert_int_equal(count_likes(post), 1);
    assert_int_equal(change(true, likers[1], post, "r"), 0); /* old news */
    assert_int_equal(count_likes(post), 1);
}

static void test_who_likes_a_post_is_read_newest_first(void **state)
{
    uint64_t likers[LIKERS], post = prepare_likes(likers);
    struct sl_page page = {0, 4};
    struct sl_call call = SL_CALL_INIT;
    struct sl_listed_user listed;
    char login[16];
    size_t count;
    int read = 0;

    (void)state;
    for (int i = LIKERS - 1; i >= 0; i--)
        assert_int_equal(change(true, likers[i], post, NULL), 0);
    do {
        redisReply *reply =
            ask(&call, sl_like_list_call(&call, &core.meta, 0, post, &page, &core.failure));

        assert_int_equal(sl_user_list_reply(reply, &count, &core.failure), 0);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(sl_user_list_at(reply, i, &listed, &core.failure), 0);
            assert_int_equal(listed.row.user.id, likers[read]);
            snprintf(login, sizeof(login), "liker%d", read++);
            if (sl_id_shard(listed.row.user.id) == sl_id_shard(post))
                assert_true(sl_slice_is(listed.row.user.login, login));
            else
                assert_null(listed.row.user.login.data);
            page.before = listed.position;
        }
        freeReplyObject(reply);
    } while (count > 0);
    assert_int_equal(read, LIKERS);
}

static void test_like_of_nothing_or_by_nobody_changes_nothing(void **state)
{
    const struct sl_user_ref by_login = sl_user_by_login(SL_SLICE("nobody"));
    uint64_t likers[LIKERS], post = prepare_likes(likers), gone, digest;
    struct sl_call call = SL_CALL_INIT;
    int r;

    (void)state;
    gone = core_must_post(&core, "ada", "t");
    assert_int_equal(core_delete(&core, "ada", gone, NULL), 0);
    digest = core_digest(&core);
    assert_int_equal(change(true, likers[0], gone, "r"), -ENOENT);
    assert_int_equal(change(false, likers[0], gone, "r"), -ENOENT);
    assert_int_equal(change(true, post, post, "r"), -ENOENT); /* a post is no user */
    r = sl_like_call(&call, &core.meta, SL_SLICE_NONE, &by_login, post, &core.failure);
    if (shards == 1)
        assert_int_equal(r, 0);
    else if (r < 0)
        assert_int_equal(r, -EXDEV);
    sl_call_done(&call);
    assert_int_equal(core_digest(&core), digest);
}

static void test_deleted_post_leaves_no_likes(void **state)
{
    uint64_t likers[LIKERS], post = prepare_likes(likers);
    char key[SL_KEY_SIZE];

    (void)state;
    assert_int_equal(change(true, likers[0], post, NULL), 0);
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("likes", post, key)), 1);
    assert_int_equal(core_delete(&core, "ada", post, NULL), 0);
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("likes", post, key)), 0);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh_database)

static int run_with(uint32_t count)
{
    const struct CMUnitTest tests[] = {
        TEST(test_posts_of_a_user_come_newest_first_in_pages),
        TEST(test_page_of_nobody_says_so),
        TEST(test_pages_that_cannot_be_are_refused),
        TEST(test_likes_are_counted_once_each),
        TEST(test_who_likes_a_post_is_read_newest_first),
        TEST(test_like_of_nothing_or_by_nobody_changes_nothing),
        TEST(test_deleted_post_leaves_no_likes),
    };

    shards = count;
    return cmocka_run_group_tests_name(count == 1 ? "one shard" : "eight shards", tests, start,
                                       stop);
}

int main(void)
{
    int failed = run_with(1);

    return failed + run_with(8);
}
