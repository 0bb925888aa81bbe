/* Audiences, hiding, muting: what is refused, what is stored and published, and the resulting rule,
 * on a real redis-server with one shard and with eight. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buffer.h"
#include "src/call/scripts.h"
#include "src/model/audience.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"

/* ---- audiences ---- */

static int check_audience(const char *audience)
{
    const struct sl_meta meta = {.shards = 1};

    return sl_audience_check(sl_slice_str(audience), &meta, NULL);
}

static void test_audience_is_a_word_or_a_list_of_ids(void **state)
{
    static const char *const good[] = {"public", "followers", "only:1",
                                       "except:4097,9007199254736896", "followers-except:1,4097"};
    static const char *const bad[] = {"",
                                      "Public",
                                      "only",
                                      "only:",
                                      "only:1,",
                                      "only:,1",
                                      "only:01",
                                      "only:1 ,2",
                                      "only:64",
                                      "except:ada",
                                      "followers:1",
                                      "followers-except",
                                      "followers-except:",
                                      "only:@ada",
                                      "public:",
                                      "friends",
                                      "only:9007199254740992",
                                      "except:1,,2"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(check_audience(good[i]), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(check_audience(bad[i]), -EINVAL);
}

static void test_audience_lists_a_limited_number_of_users(void **state)
{
    struct buffer audience = BUFFER_INIT;

    (void)state;
    buffer_append_str(&audience, "only:1");
    for (int i = 1; i < SL_AUDIENCE_USERS_MAX; i++)
        buffer_append_format(&audience, ",%d", i * SL_ID_PER_MS);
    assert_int_equal(check_audience(buffer_str(&audience)), 0);
    buffer_append_str(&audience, ",2");
    assert_int_equal(check_audience(buffer_str(&audience)), -EINVAL);
    buffer_done(&audience);
}

/* Returns a member of the newest event of a shard's log, parsed from its text. */
static json_t *newest_event(uint32_t shard)
{
    redisReply *reply =
        core_command(&core, "XREVRANGE sluice:{%u}:log + - COUNT 1", (unsigned)shard);
    json_t *event;

    assert_int_equal(reply->elements, 1);
    event = json_loads(reply->element[0]->element[1]->element[3]->str, 0, NULL);
    assert_non_null(event);
    freeReplyObject(reply);
    return event;
}

static const char *member(const json_t *event, const char *object, const char *name)
{
    return json_string_value(json_object_get(json_object_get(event, object), name));
}

static void test_post_keeps_and_publishes_its_audience_and_so_does_its_deletion(void **state)
{
    struct sl_post post = {.text = SL_SLICE("hello")};
    char audience[64], room[65536], key[SL_KEY_SIZE];
    uint64_t ada, id;
    json_t *event;

    (void)state;
    ada = core_must_create(&core, "ada");
    snprintf(audience, sizeof(audience), "only:%" PRIu64 ",4096", ada);
    post.audience = sl_slice_str(audience);
    assert_int_equal(core_post(&core, "ada", &post, NULL), 0);
    id = core.written.id;
    assert_string_equal(core_text(&core, room, "HGET %s audience", sl_key_of("post", id, key)),
                        audience);
    event = newest_event(sl_id_shard(id));
    assert_string_equal(member(event, "post", "audience"), audience);
    json_decref(event);

    assert_int_equal(core_delete(&core, "ada", id, NULL), 0);
    event = newest_event(sl_id_shard(id));
    assert_string_equal(json_string_value(json_object_get(event, "type")), "delete");
    assert_string_equal(member(event, "post", "audience"), audience);
    json_decref(event);

    post.audience = SL_SLICE("nobody");
    assert_int_equal(core_post(&core, "ada", &post, NULL), -EINVAL);
    post.audience = SL_SLICE_NONE;
    assert_int_equal(core_post(&core, "ada", &post, NULL), 0);
    assert_string_equal(
        core_text(&core, room, "HGET %s audience", sl_key_of("post", core.written.id, key)),
        "public");
}

/* ---- posts that refer to others ---- */

/* Returns what the newest event of the writer's shard says about the post to which it refers. */
static char *told_reference(uint64_t writer, const char *name)
{
    json_t *event = newest_event(sl_id_shard(writer));
    const json_t *post = json_object_get(event, "post");
    char *text = json_dumps(json_object_get(post, name), JSON_COMPACT | JSON_SORT_KEYS);

    assert_non_null(text);
    json_decref(event);
    return text;
}

static void expect_reference(uint64_t writer, const char *name, const char *wanted)
{
    char *told = told_reference(writer, name);

    assert_string_equal(told, wanted);
    free(told);
}

static void test_of_a_restricted_post_others_carry_the_id_alone(void **state)
{
    static const char *const writers[] = {"ada", "bob", "carl", "dora"}; /* in several shards */
    char only[SL_ID_TEXT_SIZE + sizeof("only:")], id[SL_ID_TEXT_SIZE], wanted[200];
    char key[SL_KEY_SIZE];
    uint64_t ids[4], post;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        ids[i] = core_must_create(&core, writers[i]);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(core_follow(&core, writers[i], "ada", NULL), 0);
    core_work_fast(&core);
    for (size_t i = 0; i < 4; i++) {
        struct sl_post reference = {.text = SL_SLICE("re")};
        const char *const audiences[] = {"public", "followers", only};

        snprintf(only, sizeof(only), "only:%" PRIu64, ids[i]);
        for (size_t k = 0; k < 3; k++) {
            const struct sl_post original = {.text = SL_SLICE("original"),
                                             .audience = sl_slice_str(audiences[k])};

            assert_int_equal(core_post(&core, "ada", &original, NULL), 0);
            post = core.written.id;
            reference.reply_to.post = reference.quote_of.post = sl_slice_str(sl_id_print(post, id));
            assert_int_equal(core_post(&core, writers[i], &reference, NULL), 0);
            if (k == 0)
                snprintf(wanted, sizeof(wanted),
                         "{\"login\":\"ada\",\"post\":\"%s\",\"user\":\"%" PRIu64 "\"}", id,
                         ids[0]);
            else
                snprintf(wanted, sizeof(wanted), "{\"post\":\"%s\"}", id);
            expect_reference(ids[i], "reply_to", wanted);
            expect_reference(ids[i], "quote_of", wanted);
            core_work_fast(&core);
            assert_int_equal(core_number(&core, "ZCOUNT %s %" PRIu64 " %" PRIu64,
                                         sl_key_of("comments", post, key), core.written.id,
                                         core.written.id),
                             1);
        }
    }
}

static void test_what_is_not_public_is_not_reposted(void **state)
{
    static const char *const writers[] = {"ada", "bob", "carl", "dora"}; /* in several shards */
    const struct sl_post original = {.text = SL_SLICE("original"),
                                     .audience = SL_SLICE("followers")};
    char id[SL_ID_TEXT_SIZE];
    struct sl_post repost = {.text = SL_SLICE("look"), .audience = SL_SLICE("followers")};
    uint64_t digest;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        core_must_create(&core, writers[i]);
    for (size_t i = 1; i < 3; i++) /* dora does not, and is told nothing */
        assert_int_equal(core_follow(&core, writers[i], "ada", NULL), 0);
    core_work_fast(&core);
    assert_int_equal(core_post(&core, "ada", &original, NULL), 0);
    repost.repost_of.post = sl_slice_str(sl_id_print(core.written.id, id));
    digest = core_digest(&core);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(core_post(&core, writers[i], &repost, NULL),
                         i < 3 ? -EOPNOTSUPP : -ENOENT);
        assert_non_null(strstr(core.failure.text, i < 3 ? "is not public" : "there is no post"));
    }
    assert_true(core_digest(&core) == digest);
}

/* ---- hide and mute ---- */

static long long is_in(const char *set, uint64_t owner, uint64_t member_id)
{
    char key[SL_KEY_SIZE];

    return core_number(&core, "SISMEMBER %s %" PRIu64, sl_key_of(set, owner, key), member_id);
}

struct privacy_case {
    const char *on_name, *off_name;
    int (*on)(struct core *, const char *, const char *, const char *);
    int (*off)(struct core *, const char *, const char *, const char *);
    const char *own, *mirror;
};

static const struct privacy_case privacy_cases[] = {
    {"hide", "unhide", core_hide, core_unhide, "hidden_from", "hidden_by"},
    {"mute", "unmute", core_mute, core_unmute, "mutes", "muted_by"},
};

static void assert_told(const char *kind, uint32_t shard, uint64_t user, uint64_t target)
{
    char text[SL_ID_TEXT_SIZE];
    json_t *event = newest_event(shard);

    assert_string_equal(json_string_value(json_object_get(event, "type")), kind);
    assert_string_equal(member(event, "user", "id"), sl_id_print(user, text));
    assert_string_equal(member(event, "target", "id"), sl_id_print(target, text));
    json_decref(event);
}

static void try_case(const struct privacy_case *at, const char *login, const char *target_login,
                     uint64_t user, uint64_t target)
{
    uint64_t digest;

    assert_int_equal(at->on(&core, login, target_login, "r1"), 0);
    assert_true(core.written.id != 0);
    assert_told(at->on_name, sl_id_shard(user), user, target);
    assert_int_equal(is_in(at->own, user, target), 1);
    assert_int_equal(is_in(at->own, target, user), 0);
    core_work(&core);
    assert_int_equal(is_in(at->mirror, target, user), 1);
    digest = core_digest(&core);
    assert_int_equal(at->on(&core, login, target_login, "r1"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(at->on(&core, login, target_login, NULL), 0);
    assert_int_equal(core.written.id, 0);
    assert_int_equal(core_digest(&core), digest);

    assert_int_equal(at->off(&core, login, target_login, NULL), 0);
    assert_told(at->off_name, sl_id_shard(user), user, target);
    assert_int_equal(is_in(at->own, user, target), 0);
    core_work(&core);
    assert_int_equal(is_in(at->mirror, target, user), 0);
    digest = core_digest(&core);
    assert_int_equal(at->off(&core, login, target_login, NULL), 0);
    assert_int_equal(core.written.id, 0);
    assert_int_equal(core_digest(&core), digest);
}

static void test_hiding_and_muting_are_kept_told_and_ended(void **state)
{
    uint64_t users[5];
    char login[16];

    (void)state;
    for (int i = 0; i < 5; i++) {
        snprintf(login, sizeof(login), "user%d", i);
        users[i] = core_must_create(&core, login);
    }
    for (size_t i = 0; i < 2; i++) {
        for (int target = 1; target < 5; target++) {
            snprintf(login, sizeof(login), "USER%d", target);
            try_case(&privacy_cases[i], "user0", login, users[0], users[target]);
            freeReplyObject(
                core_command(&core, "DEL sluice:{%u}:done:r1", (unsigned)sl_id_shard(users[0])));
        }
    }
}

/* A worker that was stopped for long: what it does now is older than the current state. */
static void test_late_tasks_change_nothing(void **state)
{
    uint64_t ada, target = 0;
    char login[16], key[SL_KEY_SIZE];

    (void)state;
    if (shards == 1)
        return; /* no tasks */
    ada = core_must_create(&core, "ada");
    for (int i = 0; target == 0 || sl_id_shard(target) == sl_id_shard(ada); i++) {
        snprintf(login, sizeof(login), "user%d", i);
        target = core_must_create(&core, login);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct privacy_case *at = &privacy_cases[i];
        char on_id[SL_ID_TEXT_SIZE], text[SL_ID_TEXT_SIZE], target_text[SL_ID_TEXT_SIZE];

        assert_int_equal(at->on(&core, "ada", login, NULL), 0);
        sl_id_print(core.written.id, on_id);
        assert_int_equal(at->off(&core, "ada", login, NULL), 0);
        core_work(&core);
        assert_int_equal(is_in(at->mirror, target, ada), 0);
        freeReplyObject(core_command(&core, "XADD %s * task %s id %s user %s target %s",
                                     sl_key(sl_id_shard(ada), "tasks", key), at->on_name, on_id,
                                     sl_id_print(ada, text), sl_id_print(target, target_text)));
        core_work(&core);
        assert_int_equal(is_in(at->mirror, target, ada), 0);
        assert_int_equal(core_number(&core, "XLEN %s", key), 0);
    }
}

/* A gateway that watches only the target's shard learns about it after the list that it has
 * read. */
static void test_hiding_across_shards_is_told_by_both(void **state)
{
    uint64_t ada, target = 0;
    char login[16];

    (void)state;
    if (shards == 1)
        return;
    ada = core_must_create(&core, "ada");
    for (int i = 0; target == 0 || sl_id_shard(target) == sl_id_shard(ada); i++) {
        snprintf(login, sizeof(login), "user%d", i);
        target = core_must_create(&core, login);
    }
    assert_int_equal(core_hide(&core, "ada", login, NULL), 0);
    assert_told("hide", sl_id_shard(ada), ada, target);
    core_work(&core);
    assert_told("hide", sl_id_shard(target), ada, target);
    assert_int_equal(core_unhide(&core, "ada", login, NULL), 0);
    core_work(&core);
    assert_told("unhide", sl_id_shard(target), ada, target);
}

static void test_hiding_and_muting_need_two_users(void **state)
{
    uint64_t digest;

    (void)state;
    core_must_create(&core, "ada");
    digest = core_digest(&core);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(privacy_cases[i].on(&core, "ada", "nobody", NULL), -ENOENT);
        assert_int_equal(privacy_cases[i].on(&core, "nobody", "ada", NULL), -ENOENT);
        assert_int_equal(privacy_cases[i].on(&core, "ada", "ADA", NULL), -EINVAL);
        assert_int_equal(privacy_cases[i].off(&core, "ada", "ada", NULL), -EINVAL);
    }
    assert_int_equal(core_digest(&core), digest);
}

/* A key of another type: nothing changes. */
static void test_damaged_sets_are_refused_before_anything_changes(void **state)
{
    static const char *const sets[][2] = {{"hidden_from", "hidden_by"}, {"mutes", "muted_by"}};
    uint64_t ada, bob, digest;
    char key[SL_KEY_SIZE];

    (void)state;
    ada = core_must_create(&core, "ada");
    bob = core_must_create(&core, "bob");
    for (size_t i = 0; i < 2; i++) {
        bool is_near = sl_id_shard(ada) == sl_id_shard(bob);
        const char *damaged =
            is_near ? sl_key_of(sets[i][1], bob, key) : sl_key(sl_id_shard(ada), "tasks", key);

        freeReplyObject(core_command(&core, "DEL %s", damaged));
        freeReplyObject(core_command(&core, "SET %s x", damaged));
        digest = core_digest(&core);
        assert_int_equal(privacy_cases[i].on(&core, "ada", "bob", NULL), -EBADMSG);
        assert_int_equal(core_digest(&core), digest);
        freeReplyObject(core_command(&core, "DEL %s", damaged));
        freeReplyObject(core_command(&core, "SET %s x", sl_key_of(sets[i][0], ada, key)));
        digest = core_digest(&core);
        assert_int_equal(privacy_cases[i].on(&core, "ada", "bob", NULL), -EBADMSG);
        assert_int_equal(core_digest(&core), digest);
    }
}

/* ---- the rule ---- */

/* The rule of the scripts: the prelude, followed by a question. */
static bool may_see_by_script(uint64_t author, const char *audience, const char *reader)
{
    static const char question[] =
        "\nreturn may_see(ARGV[3], {user = ARGV[4], audience = ARGV[5]}) and 1 or 0";
    const char *end = strstr(sl_script_init.source, "-- init.lua");
    struct buffer script = BUFFER_INIT;
    char key[SL_KEY_SIZE];
    bool may_see;

    assert_non_null(end);
    buffer_append(&script, sl_script_init.source, (size_t)(end - sl_script_init.source));
    buffer_append_str(&script, question);
    may_see =
        core_number(&core, "EVAL %s 1 %s %u - %s %" PRIu64 " %s", buffer_str(&script),
                    sl_key(sl_id_shard(author), "meta", key), shards, reader, author, audience);
    buffer_done(&script);
    return may_see;
}

enum { USERS = 6, ROUNDS = 400 };

static void draw_audience(const uint64_t *users, struct buffer *audience)
{
    static const char *const words[] = {
        "public", "followers", "only:", "except:", "restricted", "friends:"};
    uint32_t word = draw(6), count = 1 + draw(3);

    buffer_clear(audience);
    buffer_append_str(audience, words[word]);
    if (word != 2 && word != 3 && word != 5)
        return;
    for (uint32_t i = 0; i < count; i++)
        buffer_append_format(audience, "%s%" PRIu64, i > 0 ? "," : "", users[draw(USERS)]);
}

/* The gateway's side of the rule, with the lists that it reads for the reader. */
static bool may_see_by_lists(uint64_t author, const char *audience, uint64_t reader, bool follows,
                             bool is_out_of_sight)
{
    char text[SL_ID_TEXT_SIZE];

    return reader == author ||
           (!is_out_of_sight &&
            sl_audience_allows(sl_slice_str(audience), sl_slice_str(sl_id_print(reader, text)),
                               follows));
}

/* All users are in the author's shard, so that both sides of each relation are visible at once. */
static void test_rule_of_the_scripts_is_the_rule_of_the_gateways(void **state)
{
    bool follows[USERS][USERS] = {{false}}, hides[USERS][USERS] = {{false}},
         mutes[USERS][USERS] = {{false}};
    struct buffer audience = BUFFER_INIT;
    uint64_t users[USERS];
    char logins[USERS][16];
    size_t seen = 0;

    (void)state;
    for (int i = 0, n = 0; i < USERS; n++) {
        snprintf(logins[i], sizeof(logins[i]), "user%d", n);
        users[i] = core_must_create(&core, logins[i]);
        i += sl_id_shard(users[i]) == sl_id_shard(users[0]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t a = draw(USERS), b = draw(USERS), operation = draw(8);
        int (*const operations[])(struct core *, const char *, const char *, const char *) = {
            core_follow, core_unfollow, core_hide, core_unhide, core_mute, core_unmute};
        bool(*const relations[])[USERS] = {follows, hides, mutes};
        char reader[SL_ID_TEXT_SIZE];
        bool expected;

        if (operation < 6 && a != b) {
            assert_int_equal(operations[operation](&core, logins[a], logins[b], NULL), 0);
            relations[operation / 2][a][b] = operation % 2 == 0;
        }
        a = draw(USERS);
        b = draw(USERS);
        draw_audience(users, &audience);
        expected = may_see_by_lists(users[a], buffer_str(&audience), users[b], follows[b][a],
                                    hides[a][b] || mutes[b][a]);
        seen += expected;
        if (may_see_by_script(users[a], buffer_str(&audience), sl_id_print(users[b], reader)) !=
            expected)
            fail_msg("seed %" PRIu64 ": user%u, user%u, '%s': not %d", draw_seed, a, b,
                     buffer_str(&audience), expected);
        assert_int_equal(may_see_by_script(users[a], buffer_str(&audience), ""),
                         sl_audience_allows(buffer_slice(&audience), SL_SLICE_NONE, false));
    }
    assert_true(seen > ROUNDS / 10 && seen < ROUNDS);
    buffer_done(&audience);
}

static void test_audience_decides_for_readers_who_are_not_the_author(void **state)
{
    static const struct {
        const char *audience, *reader;
        bool follows, allows;
    } cases[] = {
        {NULL, "1", false, true},
        {"public", NULL, false, true},
        {"followers", "1", true, true},
        {"followers", "1", false, false},
        {"followers", NULL, true, false},
        {"only:1,22,3", "22", false, true},
        {"only:1,22,3", "2", true, false},
        {"only:1,22,3", "1,22", true, false},
        {"only:1", NULL, false, false},
        {"only:", "", true, false},
        {"except:1,22", "2", false, true},
        {"except:1,22", "22", true, false},
        {"except:1", NULL, false, false},
        {"restricted", "1", true, false},
        {"", "1", true, false},
        {"only", "1", true, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(sl_audience_allows(sl_slice_str(cases[i].audience),
                                            sl_slice_str(cases[i].reader), cases[i].follows),
                         cases[i].allows);
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_audience_is_a_word_or_a_list_of_ids),
        cmocka_unit_test(test_audience_lists_a_limited_number_of_users),
        cmocka_unit_test(test_audience_decides_for_readers_who_are_not_the_author),
    };
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_post_keeps_and_publishes_its_audience_and_so_does_its_deletion),
        CORE_TEST(test_of_a_restricted_post_others_carry_the_id_alone),
        CORE_TEST(test_what_is_not_public_is_not_reposted),
        CORE_TEST(test_hiding_and_muting_are_kept_told_and_ended),
        CORE_TEST(test_late_tasks_change_nothing),
        CORE_TEST(test_hiding_across_shards_is_told_by_both),
        CORE_TEST(test_hiding_and_muting_need_two_users),
        CORE_TEST(test_damaged_sets_are_refused_before_anything_changes),
        CORE_TEST(test_rule_of_the_scripts_is_the_rule_of_the_gateways),
    };
    int failed = cmocka_run_group_tests(alone, NULL, NULL);

    draw_begin();
    return failed + core_group_run(tests);
}
