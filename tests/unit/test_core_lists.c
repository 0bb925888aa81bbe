/* Likes, and lists read newest first and page by page, with one shard and with eight. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/likes.h"
#include "src/social/post_rows.h"
#include "tests/support/core_group.h"

/* Sends what a builder built with result `r`; the caller frees the reply. */
static redisReply *ask(struct sl_call *call, int r)
{
    redisReply *reply = NULL;

    assert_int_equal(r, 0);
    assert_int_equal(sl_redis_link_run(core.link, call, &reply, &core.failure), 0);
    sl_call_done(call);
    return reply;
}

/* ---- a user's posts ---- */

/* Reads a page of ada's posts; returns their number. */
static size_t read_posts(uint64_t before, size_t limit, uint64_t *ret_ids)
{
    const struct sl_user_ref ada = sl_user_by_login(SL_SLICE("ada"));
    const struct sl_page page = {.before = before, .limit = limit};
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
    const struct sl_page page = {.before = 0, .limit = 10};
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
    const struct sl_page bad[] = {
        {.limit = 0}, {.limit = SL_PAGE_MAX + 1}, {.before = SL_ID_MAX + 1, .limit = 1}};
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

static void set(const char *field, int value)
{
    for (uint32_t shard = 0; shard < shards; shard++)
        core_number(&core, "HSET sluice:{%u}:meta %s %d", (unsigned)shard, field, value);
}

static void test_full_profile_leaves_tasks_for_the_archive(void **state)
{
    uint64_t ada = core_must_create(&core, "ada"), ids[16];
    char tasks[SL_KEY_SIZE], id[SL_ID_TEXT_SIZE];
    redisReply *reply;

    (void)state;
    sl_key(sl_id_shard(ada), "tasks", tasks);
    set("profile_max", 3);
    for (int i = 0; i < 5; i++)
        core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "XLEN %s", tasks), 0); /* there is no archive */
    set("archive", 1);
    core_must_post(&core, "ada", "t");
    assert_int_equal(read_posts(0, 16, ids), 6); /* until they are archived */
    reply = core_command(&core, "XRANGE %s - +", tasks);
    assert_int_equal(reply->elements, 1);
    assert_string_equal(reply->element[0]->element[1]->element[1]->str, "archive");
    assert_string_equal(reply->element[0]->element[1]->element[3]->str, sl_id_print(ids[0], id));
    assert_string_equal(reply->element[0]->element[1]->element[5]->str, sl_id_print(ada, id));
    freeReplyObject(reply);
    set("profile_max", 7);
    core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "XLEN %s", tasks), 1);
}

static int64_t count_keys(const char *kind)
{
    redisReply *reply = core_command(&core, "KEYS sluice:{*}:%s:*", kind);
    int64_t count = (int64_t)reply->elements;

    freeReplyObject(reply);
    return count;
}

static void test_without_an_archive_a_profile_is_capped_if_it_is_to_be(void **state)
{
    uint64_t ada = core_must_create(&core, "ada"), posts[30], ids[40], question;
    char profile[SL_KEY_SIZE], user[SL_KEY_SIZE], comments[SL_KEY_SIZE], id[SL_ID_TEXT_SIZE];
    struct sl_post answer = {.text = SL_SLICE("t")};

    (void)state;
    sl_key_of("profile", ada, profile);
    sl_key_of("user", ada, user);
    core_must_create(&core, "bob");
    set("profile_max", 4);
    question = core_must_post(&core, "ada", "question");
    answer.reply_to.post = sl_slice_str(sl_id_print(question, id));
    assert_int_equal(core_post(&core, "ada", &answer, NULL), 0);
    sl_key_of("comments", question, comments);
    for (size_t i = 0; i < 27; i++)
        posts[i] = core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "ZCARD %s", profile), 29);
    set("profile_rest", 2);
    posts[27] = core_must_post(&core, "ada", "t"); /* 20 at a time */
    assert_int_equal(core_number(&core, "ZCARD %s", profile), 10);
    assert_int_equal(core_number(&core, "EXISTS %s", comments), 0);
    posts[28] = core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "ZCARD %s", profile), 4);
    posts[29] = core_must_post(&core, "ada", "t");
    assert_int_equal(read_posts(0, 40, ids), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ids[i], posts[29 - i]);
    assert_int_equal(core_number(&core, "HINCRBY %s posts 0", user), 4);
    assert_int_equal(count_keys("post"), 4);
    answer.reply_to.post = sl_slice_str(sl_id_print(core_must_post(&core, "bob", "question"), id));
    sl_id_parse(answer.reply_to.post, &question);
    sl_key_of("comments", question, comments);
    assert_int_equal(core_post(&core, "ada", &answer, NULL), 0);
    if (sl_id_shard(question) == sl_id_shard(ada)) {
        assert_int_equal(core_number(&core, "ZCARD %s", comments), 1);
        for (size_t i = 0; i < 4; i++)
            core_must_post(&core, "ada", "t");
        assert_int_equal(core_number(&core, "ZCARD %s", comments), 0);
    }
    set("archive", 1); /* then nothing is dropped */
    core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "ZCARD %s", profile), 5);
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

/* ada posts; the likers exist. Returns the post. */
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
    assert_int_equal(change(true, likers[1], post, "r"), 0); /* already liked */
    assert_int_equal(count_likes(post), 1);
}

static void test_who_likes_a_post_is_read_newest_first(void **state)
{
    uint64_t likers[LIKERS], post = prepare_likes(likers);
    struct sl_page page = {.before = 0, .limit = 4};
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
    assert_int_equal(change(true, post, post, "r"), -ENOENT); /* a post is not a user */
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

/* Redis does not block while it frees a large set. */
static void test_what_very_many_like_is_freed_in_the_background(void **state)
{
    const char *const fill = "for i = 1, 1000 do redis.call('ZADD', KEYS[1], i, i) end";
    uint64_t likers[LIKERS], post = prepare_likes(likers);
    char key[SL_KEY_SIZE], info[65536];

    (void)state;
    freeReplyObject(core_command(&core, "EVAL %s 1 %s", fill, sl_key_of("likes", post, key)));
    freeReplyObject(core_command(&core, "EVAL %s 1 %s", fill, sl_key_of("comments", post, key)));
    freeReplyObject(core_command(&core, "CONFIG RESETSTAT"));
    assert_int_equal(core_delete(&core, "ada", post, NULL), 0);
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("comments", post, key)), 0);
    do
        core_text(&core, info, "INFO memory");
    while (strstr(info, "lazyfree_pending_objects:1") ||
           strstr(info, "lazyfree_pending_objects:2"));
    assert_non_null(strstr(info, "lazyfreed_objects:2\r"));
}

/* A shard in which very much was deleted a day ago does not block while it cleans up. */
static void test_old_tombstones_go_a_few_at_a_time(void **state)
{
    char key[SL_KEY_SIZE];
    uint64_t ada = core_must_create(&core, "ada"), posts[2];
    long long left, before = 5000;

    (void)state;
    posts[0] = core_must_post(&core, "ada", "one");
    posts[1] = core_must_post(&core, "ada", "two");
    freeReplyObject(core_command(&core, "EVAL %s 1 %s",
                                 "for i = 1, 5000 do redis.call('ZADD', KEYS[1], i, i) end",
                                 sl_key(sl_id_shard(ada), "gone", key)));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(core_delete(&core, "ada", posts[i], NULL), 0);
        left = core_number(&core, "ZCARD %s", key);
        assert_true(left < before && left >= before - 1000);
        before = left;
    }
}

/* ---- comments ---- */

static int comment_on(const char *login, uint64_t parent, const char *request_id)
{
    char id[SL_ID_TEXT_SIZE];
    const struct sl_post post = {.text = SL_SLICE("re"),
                                 .reply_to.post = sl_slice_str(sl_id_print(parent, id))};

    return core_post(&core, login, &post, request_id);
}

/* The comments of a post, all on one page; returns their number. */
static size_t read_comments(uint64_t post, uint64_t *ret_ids)
{
    const struct sl_page page = {.before = 0, .limit = 100};
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply =
        ask(&call, sl_comment_list_call(&call, &core.meta, SL_READER_NOBODY, post, &page, NULL));
    struct sl_post_row row;
    size_t count;

    assert_int_equal(sl_post_list_reply(reply, &count, &core.failure), 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sl_post_list_at(reply, i, &row, &core.failure), 0);
        assert_int_equal(row.json.data != NULL, sl_id_shard(row.id) == sl_id_shard(post));
        ret_ids[i] = row.id;
    }
    freeReplyObject(reply);
    return count;
}

static void test_comments_come_to_their_post_and_go(void **state)
{
    uint64_t likers[LIKERS], parent = prepare_likes(likers), comments[LIKERS], read[LIKERS];
    char login[16];

    (void)state;
    for (int i = LIKERS - 1; i >= 0; i--) {
        snprintf(login, sizeof(login), "liker%d", i);
        assert_int_equal(comment_on(login, parent, NULL), 0);
        comments[i] = core.written.id;
    }
    core_work(&core);
    assert_int_equal(read_comments(parent, read), LIKERS);
    for (int i = 1; i < LIKERS; i++)
        assert_true(read[i] < read[i - 1]);
    for (int i = 0; shards == 1 && i < LIKERS; i++)
        assert_int_equal(read[i], comments[i]);

    for (int i = 0; i < LIKERS; i++) {
        snprintf(login, sizeof(login), "liker%d", i);
        assert_int_equal(core_delete(&core, login, comments[i], NULL), 0);
        core_work(&core);
        assert_int_equal(read_comments(parent, read), LIKERS - 1 - i);
    }
}

static void test_comment_deleted_before_it_arrived_does_not_come(void **state)
{
    uint64_t likers[LIKERS], parent = prepare_likes(likers), read[LIKERS];
    int far = 0;

    (void)state;
    while (far < LIKERS && sl_id_shard(likers[far]) == sl_id_shard(parent))
        far++;
    if (far == LIKERS)
        return; /* with one shard nothing is late */
    for (int late = 0; late < 2; late++) {
        char login[16], tasks[SL_KEY_SIZE];
        redisReply *task;

        snprintf(login, sizeof(login), "liker%d", far);
        sl_key(sl_id_shard(likers[far]), "tasks", tasks);
        assert_int_equal(comment_on(login, parent, NULL), 0);
        task = core_command(&core, "XRANGE %s - + COUNT 1", tasks);
        assert_int_equal(core_delete(&core, login, core.written.id, NULL), 0);
        if (late) { /* the first task comes after the second */
            const redisReply *fields = task->element[0]->element[1];

            core_number(&core, "XDEL %s %s", tasks, task->element[0]->element[0]->str);
            core_work(&core);
            freeReplyObject(core_command(&core, "XADD %s * task %s id %s parent %s comment %s",
                                         tasks, fields->element[1]->str, fields->element[3]->str,
                                         fields->element[5]->str, fields->element[7]->str));
        }
        core_work(&core);
        assert_int_equal(read_comments(parent, read), 0);
        freeReplyObject(task);
    }
}

static void test_comment_on_a_post_that_goes_leaves_nothing(void **state)
{
    uint64_t likers[LIKERS], parent = prepare_likes(likers);
    char login[16], key[SL_KEY_SIZE];

    (void)state;
    for (int i = 0; i < LIKERS; i++) {
        snprintf(login, sizeof(login), "liker%d", i);
        assert_int_equal(comment_on(login, parent, NULL), 0);
    }
    assert_int_equal(core_delete(&core, "ada", parent, NULL), 0);
    assert_int_equal(comment_on("liker0", parent, NULL), -ENOENT);
    core_work(&core);
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("comments", parent, key)), 0);
    assert_int_equal(core_number(&core, "EXISTS sluice:{%u}:dead", (unsigned)sl_id_shard(parent)),
                     0);
}

static void test_what_may_not_be_seen_is_neither_answered_nor_liked(void **state)
{
    const struct sl_post secret = {.text = SL_SLICE("t"), .audience = SL_SLICE("followers")};
    uint64_t likers[LIKERS], post;

    (void)state;
    prepare_likes(likers);
    assert_int_equal(core_post(&core, "ada", &secret, NULL), 0);
    post = core.written.id;
    assert_int_equal(comment_on("liker0", post, NULL), -ENOENT);
    assert_int_equal(change(true, likers[0], post, NULL), -ENOENT);
    assert_int_equal(core_follow(&core, "liker0", "ada", NULL), 0);
    core_work(&core);
    assert_int_equal(comment_on("liker0", post, NULL), 0);
    assert_int_equal(change(true, likers[0], post, NULL), 0);
    assert_int_equal(core_unfollow(&core, "liker0", "ada", NULL), 0);
    core_work(&core);
    assert_int_equal(change(false, likers[0], post, NULL), 0); /* this can be undone */
    assert_true(core.written.id > 0);
    assert_int_equal(change(false, likers[0], post, NULL), -ENOENT);
}

/* One call skips at most 500 posts, and the next page continues after them. */
static void test_very_many_posts_that_may_not_be_seen_end_a_page_early(void **state)
{
    enum { COUNT = 530, PASSED_OVER = 500, PAGE = 20 };
    const struct sl_post secret = {.text = SL_SLICE("t"), .audience = SL_SLICE("followers")};
    const struct sl_user_ref ada = sl_user_by_login(SL_SLICE("ada"));
    uint64_t secrets[COUNT], seen, last = 0;
    struct sl_call call = SL_CALL_INIT;
    struct sl_post_row row;
    redisReply *reply;
    size_t count;

    (void)state;
    core_must_create(&core, "ada");
    seen = core_must_post(&core, "ada", "t");
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(core_post(&core, "ada", &secret, NULL), 0);
        secrets[i] = core.written.id;
    }
    reply =
        ask(&call, sl_post_list_call(&call, &core.meta, SL_READER_NOBODY, &ada,
                                     &(struct sl_page){.before = 0, .limit = PAGE}, &core.failure));
    assert_int_equal(sl_post_list_reply(reply, &count, &core.failure), 0);
    assert_int_equal(count, PAGE);
    for (size_t i = 0; i < PAGE; i++) {
        assert_int_equal(sl_post_list_at(reply, i, &row, &core.failure), 0);
        assert_null(row.json.data);
        assert_int_equal(row.id, secrets[COUNT - PASSED_OVER - 1 - i]);
        last = row.id;
    }
    freeReplyObject(reply);
    reply = ask(&call,
                sl_post_list_call(&call, &core.meta, SL_READER_NOBODY, &ada,
                                  &(struct sl_page){.before = last, .limit = PAGE}, &core.failure));
    assert_int_equal(sl_post_list_reply(reply, &count, &core.failure), 0);
    assert_int_equal(count, 1);
    assert_int_equal(sl_post_list_at(reply, 0, &row, &core.failure), 0);
    assert_int_equal(row.id, seen);
    assert_non_null(row.json.data);
    freeReplyObject(reply);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_posts_of_a_user_come_newest_first_in_pages),
        CORE_TEST(test_page_of_nobody_says_so),
        CORE_TEST(test_pages_that_cannot_be_are_refused),
        CORE_TEST(test_full_profile_leaves_tasks_for_the_archive),
        CORE_TEST(test_without_an_archive_a_profile_is_capped_if_it_is_to_be),
        CORE_TEST(test_likes_are_counted_once_each),
        CORE_TEST(test_who_likes_a_post_is_read_newest_first),
        CORE_TEST(test_like_of_nothing_or_by_nobody_changes_nothing),
        CORE_TEST(test_deleted_post_leaves_no_likes),
        CORE_TEST(test_what_very_many_like_is_freed_in_the_background),
        CORE_TEST(test_old_tombstones_go_a_few_at_a_time),
        CORE_TEST(test_comments_come_to_their_post_and_go),
        CORE_TEST(test_comment_deleted_before_it_arrived_does_not_come),
        CORE_TEST(test_comment_on_a_post_that_goes_leaves_nothing),
        CORE_TEST(test_what_may_not_be_seen_is_neither_answered_nor_liked),
        CORE_TEST(test_very_many_posts_that_may_not_be_seen_end_a_page_early),
    };

    return core_group_run(tests);
}
