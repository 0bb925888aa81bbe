/* The events of users: created, or with another login, name or profile. With one shard and with
 * eight. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/model/login.h"
#include "tests/support/core_group.h"

static long long log_length(uint64_t user)
{
    return core_number(&core, "XLEN sluice:{%u}:log", (unsigned)sl_id_shard(user));
}

/* Expects that the newest log entry and the received message consist of these members, after
 * `at`. */
static void expect_event(redisContext *listener, uint64_t user, uint64_t previous, const char *body)
{
    redisReply *log = core_command(&core, "XREVRANGE sluice:{%u}:log + - COUNT 1",
                                   (unsigned)sl_id_shard(user)),
               *message = NULL;
    const redisReply *fields;
    char expected[2048], whole[4096], at[CLOCK_RFC3339_SIZE];
    uint64_t id;

    assert_int_equal(log->elements, 1);
    id = strtoull(log->element[0]->element[0]->str, NULL, 10);
    clock_format_rfc3339(sl_id_time_ms(id), at);
    snprintf(expected, sizeof(expected),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"user\",\"at\":\"%s\",%s}", id, at, body);
    fields = log->element[0]->element[1];
    assert_int_equal(strtoull(fields->element[1]->str, NULL, 10), previous);
    assert_string_equal(fields->element[3]->str, expected);
    assert_int_equal(redisGetReply(listener, (void **)&message), REDIS_OK);
    snprintf(whole, sizeof(whole), "%" PRIu64 " %" PRIu64 " %s", id, previous, expected);
    assert_string_equal(message->element[2]->str, whole);
    freeReplyObject(message);
    freeReplyObject(log);
}

/* The last id that the user's shard has minted. */
static uint64_t clock_of(uint64_t user)
{
    char room[65536];

    return strtoull(core_text(&core, room, "GET sluice:{%u}:clock", (unsigned)sl_id_shard(user)),
                    NULL, 10);
}

static int change_user(uint64_t user, const struct sl_user_change *change, const char *request_id)
{
    const struct sl_user_ref ref = sl_user_by_id(user);
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_user_change_call(&call, &core.meta, sl_slice_str(request_id), &ref, change,
                            &core.failure);
    if (r == 0)
        r = sl_redis_link_run(core.link, &call, &reply, &core.failure);
    if (r == 0)
        r = sl_write_reply(reply, &core.written, &core.failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

/* Returns a different login in the same shard for each `number`. */
static const char *login_in_shard(uint32_t shard, int number, char login[static 32])
{
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded;

    for (int i = 0;; i++) {
        snprintf(login, 32, "Login_%d_%d", number, i);
        assert_int_equal(sl_login_fold(sl_slice_str(login), room, &folded, NULL), 0);
        if (sl_login_shard(folded, shards) == shard)
            return login;
    }
}

static void test_new_user_is_an_event(void **state)
{
    char body[256], room[SL_LOGIN_SIZE];
    redisContext *listener;
    struct sl_slice folded;
    uint64_t id;

    (void)state;
    assert_int_equal(sl_login_fold(SL_SLICE("Ada"), room, &folded, NULL), 0);
    listener = core_listen(&core, sl_login_shard(folded, shards));
    assert_int_equal(core_create(&core, "Ada", "A/\"B\"", "r"), 0);
    id = core.written.id;
    snprintf(body, sizeof(body),
             "\"user\":{\"id\":\"%" PRIu64
             "\",\"login\":\"Ada\",\"name\":\"A/\\\"B\\\"\"},\"change\":\"created\"",
             id);
    expect_event(listener, id, 0, body);
    assert_int_equal(core_number(&core, "XLEN sluice:{%u}:log", (unsigned)sl_id_shard(id)), 1);

    /* Repeated or refused requests have no event. */
    assert_int_equal(core_create(&core, "Ada", "A/\"B\"", "r"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(core_create(&core, "ADA", NULL, NULL), -EEXIST);
    assert_int_equal(log_length(id), 1);
    redisFree(listener);
}

static void test_change_says_what_is_different(void **state)
{
    const struct sl_user_field field = {SL_SLICE("Home"), SL_SLICE("https://ada.example")};
    uint64_t ada = core_must_create(&core, "ada"), before = ada;
    redisContext *listener = core_listen(&core, sl_id_shard(ada));
    char login[32], body[512];
    const struct {
        struct sl_user_change change;
        const char *login, *name, *members;
    } steps[] = {
        {{.name = SL_SLICE("Ada L.")}, "ada", "Ada L.", "\"name\""},
        {{.login = sl_slice_str(login_in_shard(sl_id_shard(ada), 1, login))},
         login,
         "Ada L.",
         "\"login\""},
        {{.name = SL_SLICE("A"), .bio = SL_SLICE("b"), .avatar = SL_SLICE("https://a.example/b")},
         login,
         "A",
         "\"name\",\"bio\",\"avatar\""},
        {{.name = SL_SLICE("A"), .bio = SL_SLICE("")}, login, "A", "\"bio\""},
        {{.fields = &field, .field_count = 1, .changes_fields = true}, login, "A", "\"fields\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(change_user(ada, &steps[i].change, "request"), i == 0 ? 0 : -EALREADY);
        if (i > 0)
            assert_int_equal(change_user(ada, &steps[i].change, NULL), 0);
        assert_int_equal(core.written.id, ada);
        snprintf(body, sizeof(body),
                 "\"user\":{\"id\":\"%" PRIu64 "\",\"login\":\"%s\",\"name\":\"%s\"},"
                 "\"change\":\"updated\",\"members\":[%s]",
                 ada, steps[i].login, steps[i].name, steps[i].members);
        expect_event(listener, ada, before, body);
        before = clock_of(ada);
        assert_int_equal(log_length(ada), i + 2);
        /* Setting the same values again changes nothing. */
        assert_int_equal(change_user(ada, &steps[i].change, NULL), 0);
        assert_int_equal(log_length(ada), i + 2);
    }
    redisFree(listener);
}

static void test_refused_change_is_no_event(void **state)
{
    const struct sl_user_change nameless = {.name = SL_SLICE("a\nb")};
    struct sl_user_change taken = {.login = SL_SLICE("ada")};
    char login[32];
    uint64_t ada = core_must_create(&core, "ada"), other;

    (void)state;
    assert_int_equal(core_create(&core, login_in_shard(sl_id_shard(ada), 0, login), NULL, NULL), 0);
    other = core.written.id;
    assert_int_equal(change_user(other, &taken, NULL), -EEXIST);
    assert_int_equal(change_user(other, &nameless, NULL), -EINVAL);
    assert_int_equal(
        change_user(other + 64 * 4096, &(struct sl_user_change){.name = SL_SLICE("n")}, NULL),
        -ENOENT);
    assert_int_equal(log_length(ada), 2);
}

static void test_event_needs_its_log(void **state)
{
    uint64_t ada = core_must_create(&core, "ada"), digest;
    uint32_t shard = sl_id_shard(ada);
    char login[32];

    (void)state;
    core_number(&core, "DEL sluice:{%u}:log", (unsigned)shard);
    core_number(&core, "LPUSH sluice:{%u}:log x", (unsigned)shard);
    digest = core_digest(&core);
    assert_int_equal(core_create(&core, login_in_shard(shard, 0, login), NULL, NULL), -EBADMSG);
    assert_int_equal(change_user(ada, &(struct sl_user_change){.name = SL_SLICE("n")}, NULL),
                     -EBADMSG);
    assert_int_equal(core_digest(&core), digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_new_user_is_an_event),
        CORE_TEST(test_change_says_what_is_different),
        CORE_TEST(test_refused_change_is_no_event),
        CORE_TEST(test_event_needs_its_log),
    };

    return core_group_run(tests);
}
