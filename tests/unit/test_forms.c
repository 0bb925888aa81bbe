/* Data formats that a database has or lacks, and filling lists of likes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/call/reply.h"
#include "src/database/forms.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/social/liked_fill.h"
#include "src/social/likes.h"
#include "tests/support/core_group.h"

static void test_names_are_read(void **state)
{
    struct failure failure;
    unsigned forms = 7;

    (void)state;
    assert_int_equal(sl_forms_read(SL_SLICE_NONE, &forms, NULL), 0);
    assert_int_equal(forms, 0);
    for (unsigned form = 0; form < SL_FORMS; form++) {
        assert_int_equal(sl_forms_read(sl_slice_str(sl_form_at(form)->name), &forms, NULL), 0);
        assert_int_equal(forms, 1U << form);
    }
    assert_int_equal(sl_forms_read(SL_SLICE("likes,likes"), &forms, NULL), 0);
    assert_int_equal(forms, 1U << SL_FORM_LIKES);
    assert_int_equal(sl_forms_read(SL_SLICE("likes,of-the-future"), &forms, &failure), -ESTALE);
    assert_string_equal(
        failure.text,
        "the database has the form 'of-the-future', which this program does not know");
}

/* ---- in a database ---- */

/* Sends a call whose builder returned `r`. */
static redisReply *run(struct sl_call *call, int r)
{
    redisReply *reply = NULL;

    if (r == 0)
        r = sl_redis_link_run(core.link, call, &reply, &core.failure);
    sl_call_done(call);
    assert_int_equal(r, 0);
    return reply;
}

static unsigned read_forms(redisReply *reply)
{
    unsigned forms = 0;

    assert_int_equal(sl_forms_reply(reply, &forms, &core.failure), 0);
    freeReplyObject(reply);
    return forms;
}

static unsigned ask(uint32_t shard)
{
    struct sl_call call = SL_CALL_INIT;

    return read_forms(run(&call, sl_forms_call(&call, &core.meta, shard, NULL)));
}

static unsigned give(uint32_t shard, unsigned forms)
{
    struct sl_call call = SL_CALL_INIT;

    return read_forms(run(&call, sl_upgrade_call(&call, &core.meta, shard, forms, NULL)));
}

static void test_a_shard_is_given_forms(void **state)
{
    const unsigned likes = 1U << SL_FORM_LIKES;
    char text[65536];

    (void)state;
    assert_int_equal(ask(0), 0);
    assert_string_equal(core_text(&core, text, "HGET sluice:{0}:meta schema"), "1");
    assert_int_equal(give(0, 0), 0);
    assert_string_equal(core_text(&core, text, "HGET sluice:{0}:meta schema"), "2");
    assert_int_equal(give(0, likes), likes);
    assert_int_equal(give(0, 0), likes);
    assert_int_equal(ask(0), likes);
    assert_string_equal(core_text(&core, text, "HGET sluice:{0}:meta forms"), "likes");
    assert_int_equal(core_number(&core, "HEXISTS sluice:{1}:meta forms"), 0);
    core_must_create(&core, "ada"); /* in any shard */
    core_must_create(&core, "bob");
}

static void test_forms_of_the_future_are_refused_by_name(void **state)
{
    static const char sentence[] = "has the form of-the-future, which this program does not know";
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply;
    uint64_t before;
    struct sl_meta meta;

    (void)state;
    core_must_create(&core, "ada");
    for (uint32_t shard = 0; shard < core.meta.shards; shard++)
        freeReplyObject(core_command(
            &core, "HSET sluice:{%u}:meta schema 2 forms likes,of-the-future", (unsigned)shard));
    before = core_digest(&core);
    assert_int_equal(core_create(&core, "bob", NULL, NULL), -ESTALE);
    assert_non_null(strstr(core.failure.text, sentence));
    assert_int_equal(core_digest(&core), before);

    reply = run(&call, sl_meta_call(&call, 0, &core.meta, NULL));
    assert_int_equal(sl_meta_reply(reply, &meta, &core.failure), -ESTALE);
    assert_non_null(strstr(core.failure.text, "has the form 'of-the-future'"));
    freeReplyObject(reply);
}

/* ---- likes ---- */

static void like(const char *login, uint64_t post)
{
    const struct sl_user_ref by_login = sl_user_by_login(sl_slice_str(login));
    struct sl_call call = SL_CALL_INIT;
    struct sl_user user;
    struct sl_user_ref ref;
    redisReply *reply = run(&call, sl_like_note_call(&call, &core.meta, &by_login, post, NULL));

    assert_int_equal(sl_user_find_reply(reply, &user, NULL), 0);
    ref = sl_user_by_id(user.id);
    freeReplyObject(reply);
    reply = run(&call, sl_like_call(&call, &core.meta, SL_SLICE_NONE, &ref, post, NULL));
    assert_int_equal(sl_write_reply(reply, &core.written, &core.failure), 0);
    freeReplyObject(reply);
}

/* Records what one batch of the likes of `user`'s posts contains; advances *place. */
static uint64_t note_batch(uint64_t user, struct sl_likes_place *place)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *likes = run(&call, sl_likes_of_call(&call, &core.meta, user, place, NULL));
    uint64_t sum = 0, noted;

    assert_int_equal(sl_likes_of_reply(likes, place, &core.failure), 0);
    for (uint32_t shard = 0; shard < core.meta.shards; shard++) {
        size_t count;
        redisReply *reply =
            run(&call, sl_note_likes_call(&call, &core.meta, shard, likes, &count, NULL));

        assert_int_equal(sl_note_likes_reply(reply, &noted, &core.failure), 0);
        assert_true(noted <= count);
        sum += noted;
        freeReplyObject(reply);
    }
    freeReplyObject(likes);
    return sum;
}

static uint64_t note_all(uint64_t user)
{
    struct sl_likes_place place = {0};
    uint64_t sum = 0;

    do
        sum += note_batch(user, &place);
    while (place.post != 0);
    return sum;
}

static void test_likes_of_an_older_version_are_recorded_once(void **state)
{
    static const char *const likers[] = {"bob", "cid", "dan", "eve"};
    enum { POSTS = 120, LIKERS = sizeof(likers) / sizeof(likers[0]) };
    const uint64_t ada = core_must_create(&core, "ada");
    uint64_t users[LIKERS];
    uint64_t before;

    (void)state;
    for (size_t i = 0; i < LIKERS; i++)
        users[i] = core_must_create(&core, likers[i]);
    for (int i = 0; i < POSTS; i++) {
        uint64_t post = core_must_post(&core, "ada", "liked");

        for (size_t j = 0; i % 2 == 0 && j < LIKERS; j++)
            like(likers[j], post);
    }
    before = core_digest(&core);
    assert_int_equal(note_all(ada), 0); /* nothing is missing */
    assert_int_equal(core_digest(&core), before);

    for (size_t i = 0; i < LIKERS; i++)
        freeReplyObject(core_command(&core, "DEL sluice:{%u}:liked:%llu", sl_id_shard(users[i]),
                                     (unsigned long long)users[i]));
    assert_int_equal(note_all(ada), POSTS / 2 * LIKERS);
    for (size_t i = 0; i < LIKERS; i++)
        assert_int_equal(core_number(&core, "ZCARD sluice:{%u}:liked:%llu", sl_id_shard(users[i]),
                                     (unsigned long long)users[i]),
                         POSTS / 2);
    assert_int_equal(note_all(ada), 0);
}

static void test_a_post_with_very_many_likes_is_gone_through_in_parts(void **state)
{
    const uint64_t ada = core_must_create(&core, "ada");
    const uint64_t post = core_must_post(&core, "ada", "liked");
    struct sl_likes_place place = {0};
    unsigned calls = 0;

    (void)state;
    for (unsigned i = 1; i <= 1200; i++) /* by users without other data */
        freeReplyObject(core_command(&core, "ZADD sluice:{%u}:likes:%llu %u %u", sl_id_shard(post),
                                     (unsigned long long)post, 5000 * i, 4096 * i));
    do {
        assert_int_equal(note_batch(ada, &place), 0);
        calls++;
    } while (place.post != 0);
    assert_int_equal(calls, 3);
}

static void test_users_of_a_shard_are_listed(void **state)
{
    uint64_t wanted = 0, found = 0;

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        char login[16];

        snprintf(login, sizeof(login), "u%u", i);
        wanted += core_must_create(&core, login);
    }
    for (uint32_t shard = 0; shard < core.meta.shards; shard++) {
        char cursor[24] = "0";

        do { /* while the set does not grow, each is there once */
            struct sl_call call = SL_CALL_INIT;
            redisReply *reply = run(
                &call, sl_shard_users_call(&call, &core.meta, shard, sl_slice_str(cursor), NULL));
            struct sl_slice next;
            size_t count;
            uint64_t user;

            assert_int_equal(sl_shard_users_reply(reply, &next, &count, &core.failure), 0);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(sl_shard_users_at(reply, i, &user, &core.failure), 0);
                assert_int_equal(sl_id_shard(user), shard);
                found += user;
            }
            snprintf(cursor, sizeof(cursor), "%.*s", SL_SLICE_ARG(next));
            freeReplyObject(reply);
        } while (strcmp(cursor, "0") != 0);
    }
    assert_int_equal(found, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_are_read),
        CORE_TEST(test_a_shard_is_given_forms),
        CORE_TEST(test_forms_of_the_future_are_refused_by_name),
        CORE_TEST(test_likes_of_an_older_version_are_recorded_once),
        CORE_TEST(test_a_post_with_very_many_likes_is_gone_through_in_parts),
        CORE_TEST(test_users_of_a_shard_are_listed),
    };

    return core_group_run(tests);
}
