/* Reads with a cache return the same bytes as reads without, for every reader, whatever has changed
 * since something was cached. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "src/archive/archived.h"
#include "src/call/reply.h"
#include "src/home/home_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/likes.h"
#include "src/social/row_json.h"
#include "src/tasks/worker.h"
#include "tests/support/cached_reader.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/core_group.h"
#include "tests/support/memcached_server.h"

enum { LONG_TIMEOUT_MS = 30000 };

static struct memcached_server server;
static struct cached_reader reader;
static char folder[64], path[96], url[128];
static uint64_t ada, bob;

static int begin(void **state)
{
    const struct sl_cache_options options = {.timeout_ms = LONG_TIMEOUT_MS};
    char answer[256];

    core_group_fresh(state);
    memcached_server_say(&server, "flush_all", answer);
    reader = (struct cached_reader){.link = core.link, .meta = core.meta};
    assert_int_equal(
        sl_cache_open(server.url, core.meta.database_id, &options, &reader.cache, &reader.failure),
        0);
    ada = core_must_create(&core, "ada");
    bob = core_must_create(&core, "bob");
    return 0;
}

static int end(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[128];

    (void)state;
    sl_archive_close(reader.archive);
    sl_cache_close(reader.cache);
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
    return 0;
}

static uint64_t hits(void)
{
    return sl_cache_counts(reader.cache)->hits;
}

/* Returns the post as shown without a cache, to be freed; NULL: not shown. */
static char *read_plain(uint64_t as, uint64_t post)
{
    struct sl_call call = SL_CALL_INIT;
    struct buffer json = BUFFER_INIT;
    redisReply *reply = NULL;
    struct sl_post_row row;
    char *text = NULL;

    assert_int_equal(sl_post_row_call(&call, &core.meta, as, post, &core.failure), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    assert_int_equal(sl_posts_reply(reply, 1, &core.failure), 0);
    if (sl_posts_at(reply, 0, &row, &core.failure) == 0) {
        sl_post_row_json(&json, &row);
        text = strndup(json.data, json.size);
    }
    buffer_done(&json);
    freeReplyObject(reply);
    sl_call_done(&call);
    return text;
}

/* The same with a cache, and with the archive. */
static char *read_cached(uint64_t as, uint64_t post)
{
    struct cached_posts posts = {.count = 0};
    char *text = NULL;

    if (cached_reader_find(&reader, as, &post, 1, &posts) < 0)
        fail_msg("%s", reader.failure.text);
    if (posts.json[0].size > 0)
        text = strndup(posts.json[0].data, posts.json[0].size);
    cached_posts_done(&posts);
    return text;
}

static void expect_same(uint64_t as, uint64_t post)
{
    char *plain = read_plain(as, post), *cached = read_cached(as, post);

    if (!plain)
        assert_null(cached);
    else
        assert_string_equal(cached, plain);
    free(plain);
    free(cached);
}

/* Expects that it is visible and has the text. */
static void expect_text(uint64_t as, uint64_t post, const char *text)
{
    char *cached = read_cached(as, post);

    if (!cached || !strstr(cached, text))
        fail_msg("%s is not in %s", text, cached ? cached : "(nothing)");
    free(cached);
}

static void expect_nothing(uint64_t as, uint64_t post)
{
    char *cached = read_cached(as, post);

    if (cached)
        fail_msg("there is %s", cached);
}

static uint64_t post_for(const char *login, const char *text, const char *audience)
{
    const struct sl_post post = {.text = sl_slice_str(text), .audience = sl_slice_str(audience)};

    if (core_post(&core, login, &post, NULL) < 0)
        fail_msg("%s", core.failure.text);
    return core.written.id;
}

static void rename_ada(const char *name)
{
    const struct sl_user_ref user = sl_user_by_id(ada);
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_written written;

    assert_int_equal(sl_user_rename_call(&call, &core.meta, SL_SLICE_NONE, &user,
                                         sl_slice_str(name), &core.failure),
                     0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    assert_int_equal(sl_write_reply(reply, &written, &core.failure), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
}

static void like(uint64_t user, uint64_t post)
{
    const struct sl_user_ref who = sl_user_by_id(user);
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_written written;

    assert_int_equal(sl_like_call(&call, &core.meta, SL_SLICE_NONE, &who, post, &core.failure), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    assert_int_equal(sl_write_reply(reply, &written, &core.failure), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* ---- the same as without a cache ---- */

static void test_a_cached_post_has_the_same_bytes(void **state)
{
    static const char *const names[] = {
        "ada",
        "\"quoted\" \\ and / slashed",
        "{braces}}",
        "Ádá 😀 \xe2\x80\xa8 line",
        "}\",\"text\":\"forged\",\"audience\":\"public\"}",
    };
    const struct sl_post rich = {
        .text = SL_SLICE("\"text\" \\ with / all \n\t{}: ü 😀 ,\"audience\":\"public\"}"),
        .lang = SL_SLICE("en"),
        .has_point = true,
        .lon = 1.5,
        .lat = -2.25,
        .source = SL_SLICE("a \"source\"}"),
        .media = SL_SLICE("[{\"audience\":\"public\"}]"),
    };
    uint64_t posts[2];

    (void)state;
    posts[0] = core_must_post(&core, "ada", "plain");
    assert_int_equal(core_post(&core, "ada", &rich, NULL), 0);
    posts[1] = core.written.id;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rename_ada(names[i]);
        for (int again = 0; again < 2; again++) {
            expect_same(SL_READER_NOBODY, posts[0]);
            expect_same(bob, posts[1]);
            expect_same(ada, posts[1]);
            expect_same(SL_READER_SYSTEM, posts[0]);
        }
    }
    assert_int_equal(sl_cache_counts(reader.cache)->misses, 2); /* only the first time */
    assert_int_equal(sl_cache_counts(reader.cache)->stored, 2);
}

static void test_renames_likes_and_comments_show_at_once(void **state)
{
    uint64_t post = core_must_post(&core, "ada", "hello");
    char id[SL_ID_TEXT_SIZE];
    const struct sl_post comment = {.text = SL_SLICE("yes"),
                                    .reply_to.post = sl_slice_str(sl_id_print(post, id))};

    (void)state;
    expect_text(bob, post, "\"name\":\"ada\"");
    rename_ada("Ada Lovelace");
    expect_text(bob, post, "\"name\":\"Ada Lovelace\"");
    like(bob, post);
    expect_text(bob, post, "\"likes\":1,\"comments\":0}");
    assert_int_equal(core_post(&core, "ada", &comment, NULL), 0);
    expect_same(bob, post);
    assert_int_equal(hits(), 3);
}

static void test_a_deleted_post_is_gone_at_once(void **state)
{
    uint64_t post = core_must_post(&core, "ada", "hello");

    (void)state;
    expect_text(bob, post, "hello");
    assert_int_equal(core_delete(&core, "ada", post, NULL), 0);
    expect_nothing(bob, post);
    expect_nothing(SL_READER_SYSTEM, post);
    assert_int_equal(hits(), 2); /* the cache still has it, but nobody gets it */
}

static void test_hiding_and_muting_count_at_once(void **state)
{
    uint64_t post = core_must_post(&core, "ada", "hello");

    (void)state;
    expect_text(bob, post, "hello");
    assert_int_equal(core_hide(&core, "ada", "bob", NULL), 0);
    core_work(&core);
    expect_nothing(bob, post);
    expect_text(ada, post, "hello");
    assert_int_equal(core_unhide(&core, "ada", "bob", NULL), 0);
    core_work(&core);
    expect_text(bob, post, "hello");
    assert_int_equal(core_mute(&core, "bob", "ada", NULL), 0);
    core_work(&core);
    expect_nothing(bob, post);
    assert_int_equal(hits(), 4);
}

static void test_what_is_not_public_never_gets_there(void **state)
{
    char audience[64];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        uint64_t post;

        if (i == 0)
            snprintf(audience, sizeof(audience), "followers");
        else
            snprintf(audience, sizeof(audience), "%s:%" PRIu64, i == 1 ? "only" : "except", bob);
        post = post_for("ada", "for some", audience);
        for (int again = 0; again < 2; again++) {
            expect_same(ada, post);
            expect_same(bob, post);
            expect_same(SL_READER_NOBODY, post);
            expect_same(SL_READER_SYSTEM, post);
        }
    }
    assert_int_equal(hits(), 0);
    assert_int_equal(sl_cache_counts(reader.cache)->stored, 0);
}

/* An attacker with access to the cache stores a body, and another author, for a restricted post. */
static void test_a_body_for_what_is_not_public_is_not_used(void **state)
{
    uint64_t secret = post_for("ada", "secret", "followers"),
             other = core_must_post(&core, "ada", "x");
    struct sl_cache_item items[2] = {{SL_CACHE_POST, secret, SL_SLICE_NONE},
                                     {SL_CACHE_POST, other, SL_SLICE_NONE}};
    char value[128];

    (void)state;
    snprintf(value, sizeof(value), "a%" PRIu64 " ,\"text\":\"forged\",\"audience\":\"public\"}",
             ada);
    items[0].value = sl_slice_str(value);
    sl_cache_put(reader.cache, items, 1, UINT64_MAX);
    expect_nothing(bob, secret);
    expect_text(ada, secret, "\"secret\"");
    snprintf(value, sizeof(value), "a%" PRIu64 " ,\"text\":\"forged\",\"audience\":\"public\"}",
             bob);
    items[1].value = sl_slice_str(value);
    sl_cache_put(reader.cache, items + 1, 1, UINT64_MAX);
    expect_same(bob, other);
}

/* ---- lists ---- */

static void expect_lists(uint64_t as)
{
    struct cached_posts profile = {.count = 0}, home = {.count = 0};

    assert_int_equal(cached_reader_profile(&reader, as, ada, &profile), 0);
    for (size_t i = 0; i < profile.count; i++) {
        char *plain = read_plain(as, profile.ids[i]);

        assert_string_equal(buffer_str(&profile.json[i]), plain);
        free(plain);
    }
    assert_int_equal(cached_reader_home(&reader, as, &home), 0);
    for (size_t i = 0; i < home.count; i++) {
        char *plain = read_plain(as, home.ids[i]);

        assert_string_equal(buffer_str(&home.json[i]), plain);
        free(plain);
    }
    assert_int_equal(home.count, profile.count); /* bob has no posts */
    cached_posts_done(&profile);
    cached_posts_done(&home);
}

static void test_profile_and_home_are_the_same(void **state)
{
    uint64_t posts[12];

    (void)state;
    assert_int_equal(core_follow(&core, "bob", "ada", NULL), 0);
    core_work(&core);
    for (size_t i = 0; i < 12; i++)
        posts[i] = i % 3 == 2 ? post_for("ada", "restricted", "followers")
                              : core_must_post(&core, "ada", "public");
    core_work(&core);
    expect_lists(bob);
    expect_lists(bob);
    assert_true(hits() >= 8);
    rename_ada("somebody else");
    assert_int_equal(core_delete(&core, "ada", posts[3], NULL), 0);
    core_work(&core);
    expect_lists(bob);
    expect_lists(ada);
}

/* ---- users ---- */

static void read_users(struct sl_cache_item items[2], struct buffer *ret_json)
{
    const struct sl_user_ref refs[2] = {sl_user_by_id(ada), sl_user_by_login(SL_SLICE("bob"))};
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    redisReply *replies[2] = {NULL};
    struct sl_user_row rows[2];

    assert_int_equal(sl_cached_users_calls(&calls, &core.meta, refs, items, 2, &core.failure), 0);
    assert_int_equal(
        sl_redis_link_run_many(core.link, calls.calls, calls.count, replies, &core.failure), 0);
    for (size_t c = 0; c < calls.count; c++) {
        size_t count;
        const uint32_t *things = sl_shard_calls_items(&calls, c, &count);

        assert_int_equal(sl_users_reply(replies[c], count, &core.failure), 0);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(sl_users_at(replies[c], k, &rows[things[k]], &core.failure), 0);
            assert_true(sl_cached_user_fill(&rows[things[k]], items[things[k]].value));
        }
    }
    for (size_t i = 0; i < 2; i++)
        sl_user_row_json(ret_json, &rows[i]);
    buffer_append_char(ret_json, '\0');
    if (!items[0].value.data) {
        struct buffer value = BUFFER_INIT;

        assert_true(sl_cached_user_value(&value, &rows[0]));
        items[0].value = buffer_slice(&value);
        sl_cache_put(reader.cache, items, 1, UINT64_MAX);
        items[0].value = SL_SLICE_NONE;
        buffer_done(&value);
    }
    for (size_t c = 0; c < calls.count; c++)
        freeReplyObject(replies[c]);
    sl_shard_calls_done(&calls);
}

static void test_users_are_the_same_and_their_counters_live(void **state)
{
    struct sl_cache_item items[2] = {{SL_CACHE_USER, ada, SL_SLICE_NONE}};
    struct buffer first = BUFFER_INIT, second = BUFFER_INIT;

    (void)state;
    read_users(items, &first);
    sl_cache_get(reader.cache, items, 1);
    assert_non_null(items[0].value.data);
    read_users(items, &second);
    assert_string_equal(second.data, first.data);
    buffer_clear(&second);
    rename_ada("Ada \"L\"");
    core_must_post(&core, "ada", "one");
    read_users(items, &second);
    assert_non_null(strstr(second.data, "\"login\":\"ada\",\"name\":\"Ada \\\"L\\\"\""));
    assert_non_null(strstr(second.data, "\"posts\":1"));
    sl_cache_items_done(items, 1);
    buffer_done(&first);
    buffer_done(&second);
}

/* ---- the archive ---- */

static void open_archive(void)
{
    core_set(&core, "profile-max", "1");
    core_set(&core, "archive", "1");
    assert_int_equal(sl_archive_open(url, core.meta.database_id, SL_ARCHIVE_MAKE, &reader.archive,
                                     &reader.failure),
                     0);
}

static void work(void)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .until_empty = true, .archive = url};
    struct sl_redis_address address;
    struct sl_worker *worker;

    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, &core.failure), 0);
    assert_int_equal(sl_worker_new(&address, &core.meta, &options, &worker, &core.failure), 0);
    assert_int_equal(sl_worker_run(worker, &core.failure), 0);
    sl_worker_free(worker);
}

static int delete_archived(uint64_t post)
{
    const struct sl_user_ref user = sl_user_by_id(ada);
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    struct sl_call call = SL_CALL_INIT;
    struct sl_written written;
    redisReply *reply = NULL;
    int r;

    assert_int_equal(sl_archive_find(reader.archive, &post, 1, &page, &core.failure), 0);
    assert_int_equal(page.count, 1);
    assert_int_equal(sl_delete_archived_call(&call, &core.meta, SL_SLICE_NONE, &user, post,
                                             page.posts[0].json, &core.failure),
                     0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    r = sl_write_reply(reply, &written, &core.failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    sl_archive_page_done(&page);
    return r;
}

static void test_an_archived_post_is_cached_judged_and_gone_when_deleted(void **state)
{
    uint64_t old, secret;
    char *first, *second;

    (void)state;
    open_archive();
    old = core_must_post(&core, "ada", "old");
    secret = post_for("ada", "secret", "followers");
    core_must_post(&core, "ada", "new");
    work();
    assert_null(read_plain(bob, old)); /* not in Redis */
    first = read_cached(bob, old);
    assert_int_equal(hits(), 0);
    sl_archive_close(reader.archive);
    reader.archive = NULL; /* from now on only the cache */
    second = read_cached(bob, old);
    assert_int_equal(hits(), 1);
    assert_string_equal(second, first);
    free(first);
    free(second);
    rename_ada("Ada L");
    expect_text(bob, old, "Ada L");
    expect_nothing(ada, secret); /* it was never stored there */
    assert_int_equal(core_hide(&core, "ada", "bob", NULL), 0);
    work();
    expect_nothing(bob, old);
    expect_text(SL_READER_NOBODY, old, "\"old\"");
    open_archive();
    assert_int_equal(delete_archived(old), 0);
    expect_nothing(SL_READER_NOBODY, old);
    work(); /* erases it there, too */
    expect_nothing(SL_READER_NOBODY, old);
    expect_nothing(ada, old);
}

/* Deleted before it was archived, so there is no tombstone; then the archive's limit passes it. */
static void test_a_body_that_redis_gave_is_no_proof_of_the_archive(void **state)
{
    uint64_t deleted;

    (void)state;
    open_archive();
    deleted = core_must_post(&core, "ada", "deleted");
    expect_text(bob, deleted, "deleted");
    assert_int_equal(core_delete(&core, "ada", deleted, NULL), 0);
    for (int i = 0; i < 3; i++)
        core_must_post(&core, "ada", "more");
    work();
    expect_nothing(bob, deleted);
    assert_true(hits() > 0);
}

/* A reader got it in time, and stores it in the cache after everything else. */
static void test_who_fills_late_does_not_bring_a_post_back(void **state)
{
    struct sl_cache_item item = {SL_CACHE_POST, 0, SL_SLICE_NONE};
    const uint64_t read_ms = clock_wall_ms();
    char key[SL_KEY_SIZE];

    (void)state;
    open_archive();
    item.id = core_must_post(&core, "ada", "old");
    core_must_post(&core, "ada", "new");
    work();
    expect_text(bob, item.id, "\"old\"");
    sl_cache_get(reader.cache, &item, 1);
    assert_non_null(item.value.data);
    assert_int_equal(delete_archived(item.id), 0);
    work();
    sl_cache_put(reader.cache, &item, 1, read_ms);
    expect_nothing(bob, item.id);
    /* a day later Redis has forgotten the deletion, and a cache rejects values that old */
    core_number(&core, "DEL %s", sl_key(sl_id_shard(ada), "erased", key));
    sl_cache_put(reader.cache, &item, 1, read_ms - SL_CACHE_TTL_MAX_MS);
    sl_cache_items_done(&item, 1);
    sl_cache_get(reader.cache, &item, 1);
    assert_non_null(item.value.data); /* the earlier value */
    sl_cache_drop(reader.cache, &item, 1);
    sl_cache_put(reader.cache, &item, 1, read_ms - SL_CACHE_TTL_MAX_MS);
    expect_nothing(bob, item.id);
    sl_cache_items_done(&item, 1);
}

static void test_a_post_that_moves_to_the_archive_is_found_there(void **state)
{
    uint64_t old;

    (void)state;
    open_archive();
    old = core_must_post(&core, "ada", "old");
    expect_text(bob, old, "\"old\""); /* cached, as in Redis */
    core_must_post(&core, "ada", "new");
    work();
    expect_text(bob, old, "\"old\""); /* confirmed by the archive, as the cache now says */
    sl_archive_close(reader.archive);
    reader.archive = NULL;
    expect_text(bob, old, "\"old\"");
}

/* ---- values ---- */

static void test_rows_that_are_not_ours_make_no_value(void **state)
{
    static const char *const bad[] = {
        "{}",
        "{\"id\":\"1\"}",
        "{\"id\":\"1\",\"user\":{\"id\":\"2\"",
        "{\"id\":\"1\",\"user\":{\"id\":\"2\"}}",
        "{\"id\":\"1\",\"user\":{\"id\":\"\"},\"text\":\"x\",\"audience\":\"public\"}",
        "{\"id\":\"1\",\"user\":{\"id\":\"2\"},\"text\":\"x\"}",
        "{\"id\":\"1\",\"user\":{\"id\":\"2\"},\"text\":\"x\",\"audience\":\"followers\"}",
        "{\"id\":\"1\",\"user\":{\"id\":\"2\"},\"text\":\",\\\"audience\\\":\\\"public\\\"}",
        "{\"user\":{\"id\":\"2\"},\"id\":\"1\",\"audience\":\"public\"}",
    };
    struct buffer value = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct sl_post_row row = {.id = 1, .json = sl_slice_str(bad[i])};

        assert_false(sl_cached_post_value(&value, &row, SL_CACHED_FROM_REDIS));
    }
    buffer_done(&value);
}

static void test_values_that_are_not_ours_make_no_post(void **state)
{
    static const char *const bad[] = {
        "",      "r",           "r7",           "r7 ", "r7 }", "x7 ,}", "r8 ,\"a\":1}",
        "r 7,}", "r7 ,\"a\":1", "r07 ,\"a\":1}"};
    const struct sl_post_row row = {
        .id = 1, .author = 7, .login = SL_SLICE("l"), .name = SL_SLICE("n")};
    struct sl_user_row user = {.user = {.id = 1, .name = SL_SLICE("n")}};
    struct buffer json = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(sl_cached_post_json(&json, &row, sl_slice_str(bad[i])));
        assert_int_equal(json.size, 0);
    }
    assert_false(sl_cached_post_json(&json, &row, SL_SLICE_NONE));
    assert_true(sl_cached_post_json(&json, &row, SL_SLICE("r7 ,\"a\":1}")));
    assert_string_equal(buffer_str(&json), "{\"id\":\"1\",\"user\":{\"id\":\"7\",\"login\":\"l\","
                                           "\"name\":\"n\"},\"a\":1,\"likes\":0,\"comments\":0}");
    assert_false(sl_cached_user_fill(&user, SL_SLICE_NONE));
    assert_false(sl_cached_user_fill(&user, SL_SLICE("login")));
    buffer_done(&json);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_a_cached_post_has_the_same_bytes),
        TEST(test_renames_likes_and_comments_show_at_once),
        TEST(test_a_deleted_post_is_gone_at_once),
        TEST(test_hiding_and_muting_count_at_once),
        TEST(test_what_is_not_public_never_gets_there),
        TEST(test_a_body_for_what_is_not_public_is_not_used),
        TEST(test_profile_and_home_are_the_same),
        TEST(test_users_are_the_same_and_their_counters_live),
        TEST(test_an_archived_post_is_cached_judged_and_gone_when_deleted),
        TEST(test_a_body_that_redis_gave_is_no_proof_of_the_archive),
        TEST(test_who_fills_late_does_not_bring_a_post_back),
        TEST(test_a_post_that_moves_to_the_archive_is_found_there),
        cmocka_unit_test(test_rows_that_are_not_ours_make_no_value),
        cmocka_unit_test(test_values_that_are_not_ours_make_no_post),
    };
    int failed;

    if (!memcached_server_is_installed())
        return 0;
    snprintf(folder, sizeof(folder), "/tmp/test_cached.XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof(path), "%s/posts.db", folder);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    memcached_server_init(&server);
    failed = core_group_run(tests);
    memcached_server_done(&server);
    rmdir(folder);
    return failed;
}
