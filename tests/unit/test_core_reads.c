/* Reading users and posts, one or many in one round trip, with one shard and with eight. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/post_rows.h"
#include "src/social/row_json.h"
#include "tests/support/core_group.h"

/* ---- many at once ---- */

enum { MANY = 24 };

/* All replies of one round trip. */
struct answers {
    struct sl_shard_calls calls;
    redisReply *replies[SL_SHARDS_MAX];
};

/* Sends what a builder built with result `r`. */
static void ask(struct answers *answers, int r)
{
    assert_int_equal(r, 0);
    assert_int_equal(sl_redis_link_run_many(core.link, answers->calls.calls, answers->calls.count,
                                            answers->replies, &core.failure),
                     0);
}

static void answers_done(struct answers *answers)
{
    for (size_t i = 0; i < answers->calls.count; i++)
        freeReplyObject(answers->replies[i]);
    sl_shard_calls_done(&answers->calls);
}

/* Which reply, and which row of it, belongs to the `item`th requested one? */
static const redisReply *find_row(const struct answers *answers, size_t item, size_t *ret_row)
{
    for (size_t i = 0; i < answers->calls.count; i++) {
        size_t count;
        const uint32_t *items = sl_shard_calls_items(&answers->calls, i, &count);

        assert_int_equal(sl_users_reply(answers->replies[i], count, &core.failure), 0);
        for (size_t j = 0; j < count; j++) {
            if (items[j] == item) {
                *ret_row = j;
                return answers->replies[i];
            }
        }
    }
    fail_msg("nobody was asked about %zu", item);
    return NULL;
}

static int user_at(const struct answers *answers, size_t item, struct sl_user_row *ret_row)
{
    size_t i;
    const redisReply *reply = find_row(answers, item, &i);

    return sl_users_at(reply, i, ret_row, &core.failure);
}

static int post_at(const struct answers *answers, size_t item, struct sl_post_row *ret_row)
{
    size_t i;
    const redisReply *reply = find_row(answers, item, &i);

    return sl_posts_at(reply, i, ret_row, &core.failure);
}

static void test_many_users_are_read_in_one_round_trip(void **state)
{
    struct answers answers = {SL_SHARD_CALLS_INIT, {NULL}};
    struct sl_user_ref refs[MANY + 2];
    struct sl_user_row row;
    uint64_t ids[MANY];
    char logins[MANY][16];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(logins[i], sizeof(logins[i]), "User%d", i);
        ids[i] = core_must_create(&core, logins[i]);
        refs[i] = i % 2 ? sl_user_by_id(ids[i]) : sl_user_by_login(sl_slice_str(logins[i]));
    }
    refs[MANY] = sl_user_by_login(SL_SLICE("nobody"));
    refs[MANY + 1] = refs[3]; /* asked for twice */
    ask(&answers, sl_users_calls(&answers.calls, &core.meta, refs, MANY + 2, &core.failure));
    assert_true(answers.calls.count <= shards);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(user_at(&answers, (size_t)i, &row), 0);
        assert_int_equal(row.user.id, ids[i]);
        assert_true(sl_slice_is(row.user.login, logins[i]));
        assert_int_equal(row.signup.size, strlen("2026-01-01T00:00:00.000Z"));
        assert_int_equal(row.followers + row.following + row.posts, 0);
    }
    assert_int_equal(user_at(&answers, MANY, &row), -ENOENT);
    assert_string_equal(core.failure.text, "there is no user @nobody");
    assert_int_equal(user_at(&answers, MANY + 1, &row), 0);
    assert_int_equal(row.user.id, ids[3]);
    answers_done(&answers);
}

static void test_nothing_asked_is_nothing_sent(void **state)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;

    (void)state;
    assert_int_equal(sl_users_calls(&calls, &core.meta, NULL, 0, NULL), 0);
    assert_int_equal(calls.count, 0);
    assert_int_equal(sl_posts_calls(&calls, &core.meta, SL_READER_NOBODY, NULL, 0, NULL), 0);
    assert_int_equal(calls.count, 0);
    sl_shard_calls_done(&calls);
}

static void test_user_is_shown_with_counters_as_json(void **state)
{
    struct answers answers = {SL_SHARD_CALLS_INIT, {NULL}};
    struct buffer json = BUFFER_INIT;
    struct sl_user_row row;
    struct sl_user_ref ref;
    char expected[512];

    (void)state;
    assert_int_equal(core_create(&core, "Ada", "A \"B\" / \\", NULL), 0);
    ref = sl_user_by_id(core.written.id);
    core_must_post(&core, "ada", "one");
    core_must_post(&core, "ada", "two");
    ask(&answers, sl_users_calls(&answers.calls, &core.meta, &ref, 1, &core.failure));
    assert_int_equal(user_at(&answers, 0, &row), 0);
    assert_int_equal(row.posts, 2);
    sl_user_row_json(&json, &row);
    snprintf(expected, sizeof(expected),
             "{\"id\":\"%" PRIu64 "\",\"login\":\"Ada\",\"name\":\"A \\\"B\\\" / \\\\\","
             "\"signup\":\"%.*s\",\"followers\":0,\"following\":0,\"posts\":2}",
             ref.id, SL_SLICE_ARG(row.signup));
    assert_string_equal(buffer_str(&json), expected);
    buffer_done(&json);
    answers_done(&answers);
}

static void test_posts_are_read_as_in_their_events(void **state)
{
    struct answers answers = {SL_SHARD_CALLS_INIT, {NULL}};
    struct buffer json = BUFFER_INIT;
    uint64_t posts[MANY];
    struct sl_post_row row;
    char login[16], text[16];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(login, sizeof(login), "user%d", i);
        snprintf(text, sizeof(text), "text /%d", i);
        core_must_create(&core, login);
        posts[i] = core_must_post(&core, login, text);
    }
    assert_int_equal(core_delete(&core, "user5", posts[5], NULL), 0);
    ask(&answers, sl_posts_calls(&answers.calls, &core.meta, SL_READER_NOBODY, posts, MANY, NULL));
    for (int i = 0; i < MANY; i++) {
        redisReply *log;
        const char *event;

        if (i == 5) {
            assert_int_equal(post_at(&answers, (size_t)i, &row), -ENOENT);
            assert_non_null(strstr(core.failure.text, "there is no post "));
            continue;
        }
        assert_int_equal(post_at(&answers, (size_t)i, &row), 0);
        assert_int_equal(row.id, posts[i]);
        assert_int_equal(row.likes + row.comments, 0);
        log = core_command(&core, "XRANGE sluice:{%u}:log %" PRIu64 " %" PRIu64,
                           (unsigned)sl_id_shard(posts[i]), posts[i], posts[i]);
        event = strstr(log->element[0]->element[1]->element[3]->str, "\"post\":") + 7;
        assert_int_equal(strlen(event), row.json.size + 1); /* and the event's closing brace */
        assert_memory_equal(event, row.json.data, row.json.size);
        freeReplyObject(log);
        buffer_clear(&json);
        sl_post_row_json(&json, &row);
        assert_non_null(strstr(buffer_str(&json), ",\"audience\":\"public\",\"likes\":0,"
                                                  "\"comments\":0}"));
    }
    buffer_done(&json);
    answers_done(&answers);
}

/* ---- names ---- */

static int rename_user(const char *login, struct sl_slice name, const char *request_id)
{
    const struct sl_user_ref ref = sl_user_by_login(sl_slice_str(login));
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_user_rename_call(&call, &core.meta, sl_slice_str(request_id), &ref, name, &core.failure);
    if (r == 0)
        r = sl_redis_link_run(core.link, &call, &reply, &core.failure);
    if (r == 0)
        r = sl_write_reply(reply, &core.written, &core.failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static void test_new_name_shows_in_old_posts(void **state)
{
    struct answers answers = {SL_SHARD_CALLS_INIT, {NULL}};
    uint64_t ada = core_must_create(&core, "ada"), post = core_must_post(&core, "ada", "t");
    const struct sl_user_ref ref = sl_user_by_id(ada);
    struct sl_user_row user;
    struct sl_post_row row;
    json_t *json;

    (void)state;
    assert_int_equal(rename_user("ADA", SL_SLICE("Ada \"L\""), "r"), 0);
    assert_int_equal(core.written.id, ada);
    assert_false(core.written.is_repeated);
    assert_int_equal(rename_user("ADA", SL_SLICE("Ada \"L\""), "r"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(rename_user("ADA", SL_SLICE("Another"), "r"), -EALREADY);

    ask(&answers, sl_users_calls(&answers.calls, &core.meta, &ref, 1, NULL));
    assert_int_equal(user_at(&answers, 0, &user), 0);
    assert_true(sl_slice_is(user.user.name, "Ada \"L\""));
    answers_done(&answers);
    ask(&answers, sl_posts_calls(&answers.calls, &core.meta, SL_READER_NOBODY, &post, 1, NULL));
    assert_int_equal(post_at(&answers, 0, &row), 0);
    json = json_loadb(row.json.data, row.json.size, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(json_object_get(json, "user"), "name")),
                        "Ada \"L\"");
    json_decref(json);
    answers_done(&answers);
}

static void test_name_that_is_none_changes_nothing(void **state)
{
    char large[SL_NAME_MAX + 1];
    uint64_t digest;

    (void)state;
    memset(large, 'x', sizeof(large));
    core_must_create(&core, "ada");
    digest = core_digest(&core);
    assert_int_equal(rename_user("ada", SL_SLICE(""), NULL), -EINVAL);
    assert_int_equal(rename_user("ada", SL_SLICE("a\nb"), NULL), -EINVAL);
    assert_int_equal(rename_user("ada", sl_slice(large, sizeof(large)), NULL), -EINVAL);
    assert_int_equal(rename_user("nobody", SL_SLICE("N"), "r"), -ENOENT);
    assert_int_equal(core_digest(&core), digest);
}

/* ---- who may see a post ---- */

/* Reads ada's post alone and as a page of one; both must agree. Is it visible, and with which
 * audience? */
static bool is_seen(uint64_t reader, uint64_t post, const char *audience)
{
    const struct sl_user_ref ada = sl_user_by_login(SL_SLICE("ada"));
    struct answers answers = {SL_SHARD_CALLS_INIT, {NULL}};
    const struct sl_page page = {.before = post + 1, .limit = 1};
    struct sl_call call = SL_CALL_INIT;
    struct sl_post_row row, listed;
    redisReply *list;
    size_t count;
    json_t *json;
    bool seen;

    assert_int_equal(sl_post_list_call(&call, &core.meta, reader, &ada, &page, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &list, NULL), 0);
    assert_int_equal(sl_post_list_reply(list, &count, NULL), 0);
    ask(&answers, sl_posts_calls(&answers.calls, &core.meta, reader, &post, 1, NULL));
    seen = post_at(&answers, 0, &row) == 0;
    assert_int_equal(count, seen);
    if (seen) {
        assert_int_equal(sl_post_list_at(list, 0, &listed, NULL), 0);
        assert_true(sl_slice_equal(row.json, listed.json));
        json = json_loadb(row.json.data, row.json.size, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(json, "audience")), audience);
        json_decref(json);
    }
    freeReplyObject(list);
    sl_call_done(&call);
    answers_done(&answers);
    return seen;
}

static void test_posts_are_read_by_those_who_may_see_them(void **state)
{
    uint64_t ada = core_must_create(&core, "ada"), bob = core_must_create(&core, "bob");
    uint64_t carl = core_must_create(&core, "carl"), followers, only, open;
    char audience[64];

    (void)state;
    snprintf(audience, sizeof(audience), "only:%" PRIu64, carl);
    assert_int_equal(
        core_post(&core, "ada",
                  &(struct sl_post){.text = SL_SLICE("t"), .audience = SL_SLICE("followers")},
                  NULL),
        0);
    followers = core.written.id;
    assert_int_equal(
        core_post(&core, "ada",
                  &(struct sl_post){.text = SL_SLICE("t"), .audience = sl_slice_str(audience)},
                  NULL),
        0);
    only = core.written.id;
    open = core_must_post(&core, "ada", "t");
    assert_int_equal(core_follow(&core, "bob", "ada", NULL), 0);
    core_work(&core);

    assert_true(is_seen(bob, followers, "followers"));
    assert_true(is_seen(ada, followers, "followers"));
    assert_true(is_seen(SL_READER_SYSTEM, followers, "followers"));
    assert_true(is_seen(carl, only, "only"));
    assert_true(is_seen(ada, only, audience));
    assert_true(is_seen(SL_READER_SYSTEM, only, audience));
    assert_true(is_seen(SL_READER_NOBODY, open, "public"));
    assert_int_equal(core_mute(&core, "carl", "ada", NULL), 0);
    core_work(&core);
    assert_int_equal(core_delete(&core, "ada", open, NULL), 0);
    assert_false(is_seen(SL_READER_NOBODY, followers, NULL));
    assert_false(is_seen(carl, followers, NULL));
    assert_false(is_seen(carl, only, NULL)); /* mutes ada */
}

static void test_page_goes_on_behind_what_may_not_be_seen(void **state)
{
    const struct sl_post secret = {.text = SL_SLICE("t"), .audience = SL_SLICE("followers")};
    const struct sl_user_ref ada = sl_user_by_id(core_must_create(&core, "ada"));
    const struct sl_page page = {.before = 0, .limit = 3};
    struct sl_call call = SL_CALL_INIT;
    uint64_t seen[8];
    redisReply *reply;
    size_t count;

    (void)state;
    for (int i = 7; i >= 0; i--) {
        seen[i] = core_must_post(&core, "ada", "t");
        for (int j = 0; j < i; j++)
            assert_int_equal(core_post(&core, "ada", &secret, NULL), 0);
    }
    assert_int_equal(sl_post_list_call(&call, &core.meta, SL_READER_NOBODY, &ada, &page, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    assert_int_equal(sl_post_list_reply(reply, &count, NULL), 0);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++) {
        struct sl_post_row row;

        assert_int_equal(sl_post_list_at(reply, i, &row, NULL), 0);
        assert_int_equal(row.id, seen[i]);
    }
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* ---- invalid requests ---- */

static void test_ids_that_there_cannot_be_are_refused(void **state)
{
    const struct sl_user_ref strangers[] = {{.id = 64 * 63}, {.login = SL_SLICE("a b")}};
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    const uint64_t good = 4096, bad = 64 * 63;

    (void)state;
    core.meta.shards = shards < SL_SHARDS_MAX ? shards : 8; /* otherwise every id has one */
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sl_users_calls(&calls, &core.meta, &strangers[i], 1, NULL), -EINVAL);
        assert_int_equal(calls.count, 0);
    }
    assert_int_equal(sl_posts_calls(&calls, &core.meta, SL_READER_NOBODY, &bad, 1, NULL), -EINVAL);
    assert_int_equal(sl_posts_calls(&calls, &core.meta, bad, &good, 1, NULL), -EINVAL);
    core.meta.shards = shards;
    assert_int_equal(sl_posts_calls(&calls, &core.meta, SL_READER_SYSTEM, &good, 1, NULL), 0);
    sl_shard_calls_done(&calls);
}

static void test_builders_of_many_survive_every_allocation_that_fails(void **state)
{
    const struct sl_user_ref users[] = {{.id = 4096}, {.id = 4096 + 64}, {.id = 8192}};
    const uint64_t posts[] = {4096, 4096 + 64, 8192};
    const struct sl_meta meta = {.shards = 8};
    struct failure failure;

    (void)state;
    for (int what = 0; what < 2; what++) {
        int r = -ENOMEM;

        for (uint64_t n = 0; r == -ENOMEM; n++) {
            struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;

            mem_fail_after(n);
            r = what ? sl_users_calls(&calls, &meta, users, 3, &failure)
                     : sl_posts_calls(&calls, &meta, 0, posts, 3, &failure);
            mem_fail_never();
            assert_int_equal(calls.count, r == 0 ? 2 : 0);
            assert_true(n < 30);
            sl_shard_calls_done(&calls);
        }
        assert_int_equal(r, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_many_users_are_read_in_one_round_trip),
        CORE_TEST(test_nothing_asked_is_nothing_sent),
        CORE_TEST(test_user_is_shown_with_counters_as_json),
        CORE_TEST(test_posts_are_read_as_in_their_events),
        CORE_TEST(test_new_name_shows_in_old_posts),
        CORE_TEST(test_name_that_is_none_changes_nothing),
        CORE_TEST(test_posts_are_read_by_those_who_may_see_them),
        CORE_TEST(test_page_goes_on_behind_what_may_not_be_seen),
        CORE_TEST(test_ids_that_there_cannot_be_are_refused),
        CORE_TEST(test_builders_of_many_survive_every_allocation_that_fails),
    };

    return core_group_run(tests);
}
