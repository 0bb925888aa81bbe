/* The time from which ids are minted, when the machine's clock was set back. The tests do not set a
 * clock: ten minutes back is the same as events that are ten minutes ahead. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "src/call/reply.h"
#include "src/database/database_clock.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "tests/support/core_group.h"

enum { MINUTE_MS = 60000, STEP_MS = 10 * MINUTE_MS, LOGINS = 24 };

static uint64_t redis_ms(void)
{
    redisReply *reply = core_command(&core, "TIME");
    uint64_t ms = strtoull(reply->element[0]->str, NULL, 10) * 1000 +
                  strtoull(reply->element[1]->str, NULL, 10) / 1000;

    freeReplyObject(reply);
    return ms;
}

static const char *login_at(int i)
{
    static char login[16];

    snprintf(login, sizeof(login), "u%d", i);
    return login;
}

static int raise_shard(uint32_t shard, const struct sl_clock_raise *raise,
                       struct sl_clock_raised *ret_raised)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r = sl_clock_raise_call(&call, &core.meta, shard, raise, NULL);

    assert_int_equal(r, 0);
    r = sl_redis_link_run(core.link, &call, &reply, &core.failure);
    if (r == 0)
        r = sl_clock_raise_reply(reply, ret_raised, &core.failure);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static struct sl_clock_raised must_raise(uint32_t shard, uint64_t low, uint64_t high,
                                         uint64_t until_ms)
{
    const struct sl_clock_raise raise = {low, high, until_ms};
    struct sl_clock_raised raised;

    assert_int_equal(raise_shard(shard, &raise, &raised), 0);
    return raised;
}

/* Raises all shards, the first of them first; returns what they all have then. */
static uint64_t raise_all(uint64_t low, uint64_t high)
{
    uint64_t until_ms = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        struct sl_clock_raised raised = must_raise(shard, low, high, until_ms);

        assert_true(shard == 0 || raised.until_ms == until_ms);
        until_ms = raised.until_ms;
    }
    return until_ms;
}

struct logged {
    uint64_t id, previous;
    char json[1024];
};

static void read_newest(uint32_t shard, struct logged *ret_logged)
{
    redisReply *reply =
        core_command(&core, "XREVRANGE sluice:{%u}:log + - COUNT 1", (unsigned)shard);
    const redisReply *fields;

    assert_int_equal(reply->elements, 1);
    fields = reply->element[0]->element[1];
    ret_logged->id = strtoull(reply->element[0]->element[0]->str, NULL, 10);
    ret_logged->previous = strtoull(fields->element[1]->str, NULL, 10);
    snprintf(ret_logged->json, sizeof(ret_logged->json), "%s", fields->element[3]->str);
    freeReplyObject(reply);
}

/* ---- the time of ids ---- */

static void test_the_time_goes_slower_until_the_clocks_meet(void **state)
{
    (void)state;
    assert_int_equal(sl_database_clock_ms(1000, 0), 1000);
    assert_int_equal(sl_database_clock_ms(1000, 999), 1000);
    assert_int_equal(sl_database_clock_ms(1000, 1000), 1000);
    assert_int_equal(sl_database_clock_ms(1000, 1001), 1001);
    assert_int_equal(sl_database_clock_ms(1000, 1007), 1007);
    assert_int_equal(sl_database_clock_ms(1000, 1008), 1007);
    assert_int_equal(sl_database_clock_ms(1000, 9000), 8000);
    assert_int_equal(sl_database_clock_ms(1800, 9000), 8100);
    assert_int_equal(sl_database_clock_ms(0, SL_ID_MAX), SL_ID_MAX - SL_ID_MAX / 8);
}

static void test_when_the_time_comes_is_told(void **state)
{
    (void)state;
    for (uint64_t until = 0; until < 100; until++) {
        for (uint64_t clock = 0; clock < 120; clock++) {
            uint64_t when = sl_database_clock_when_ms(clock, until);

            assert_true(sl_database_clock_ms(when, until) >= clock);
            assert_true(when == 0 || sl_database_clock_ms(when - 1, until) < clock);
        }
    }
}

/* Every id is between the library's results for the times before and after it. */
static void assert_mints_by(uint64_t until_ms)
{
    for (int i = 0; i < LOGINS; i++) {
        uint64_t before_ms = sl_database_clock_ms(redis_ms(), until_ms), ms;

        ms = sl_id_time_ms(core_must_post(&core, login_at(i), "t"));
        assert_true(ms >= before_ms);
        assert_true(ms <= sl_database_clock_ms(redis_ms(), until_ms));
    }
}

static void make_users(void)
{
    for (int i = 0; i < LOGINS; i++)
        core_must_create(&core, login_at(i));
}

static void test_all_shards_go_on_above_what_was_given_out(void **state)
{
    uint64_t high, until_ms;

    (void)state;
    make_users();
    high = sl_id_first_at(redis_ms() + STEP_MS) + 77;
    until_ms = raise_all(0, high);
    for (int i = 0; i < LOGINS; i++)
        assert_true(core_must_post(&core, login_at(i), "t") > high);
    assert_mints_by(until_ms);
    assert_true(until_ms > redis_ms() + STEP_MS);
    assert_true(until_ms < redis_ms() + STEP_MS + 2 * MINUTE_MS);
}

static void test_the_machines_clock_counts_again_when_it_has_caught_up(void **state)
{
    uint64_t until_ms;

    (void)state;
    make_users();
    until_ms = redis_ms();
    for (uint32_t shard = 0; shard < shards; shard++)
        freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta clock_until %" PRIu64,
                                     (unsigned)shard, until_ms));
    assert_mints_by(0);
}

static void test_raising_again_writes_nothing(void **state)
{
    uint64_t high = sl_id_first_at(redis_ms() + STEP_MS), digest;
    struct sl_clock_raised raised;

    (void)state;
    make_users();
    raise_all(0, high);
    digest = core_digest(&core);
    for (uint32_t shard = 0; shard < shards; shard++) {
        raised = must_raise(shard, 0, high, 0);
        assert_false(raised.is_raised || raised.is_marked);
        raised = must_raise(shard, 0, high + 100 * SL_ID_PER_MS, 0); /* by another gateway */
        assert_false(raised.is_raised || raised.is_marked);
    }
    assert_int_equal(core_digest(&core), digest);
}

static void test_a_second_step_raises_once_more(void **state)
{
    uint64_t high = sl_id_first_at(redis_ms() + STEP_MS), first, second;

    (void)state;
    make_users();
    first = raise_all(0, high);
    second = raise_all(0, high + (uint64_t)STEP_MS * SL_ID_PER_MS);
    assert_true(second >= first + STEP_MS);
    assert_mints_by(second);
}

static void test_what_lies_behind_the_clock_raises_nothing(void **state)
{
    uint64_t now = sl_id_first_at(redis_ms() - 1), digest;
    struct sl_clock_raised raised;

    (void)state;
    digest = core_digest(&core);
    raised = must_raise(0, 0, now, 0);
    assert_false(raised.is_raised || raised.is_marked);
    assert_int_equal(raised.until_ms, 0);
    assert_int_equal(core_digest(&core), digest);
}

static void test_nobody_pushes_the_clock_more_than_an_hour_ahead(void **state)
{
    uint64_t digest = core_digest(&core), now_ms = redis_ms();
    const struct sl_clock_raise far[] = {
        {0, sl_id_first_at(now_ms + 61 * MINUTE_MS), 0},
        {0, SL_ID_MAX, 0},
        {0, 0, now_ms + 2 * 61 * MINUTE_MS},
        {0, 0, SL_ID_MAX},
    };
    struct sl_clock_raised raised;

    (void)state;
    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
        assert_int_equal(raise_shard(0, &far[i], &raised), -ERANGE);
        assert_non_null(strstr(core.failure.text, "an hour ahead"));
        assert_int_equal(core_digest(&core), digest);
    }
    assert_true(must_raise(0, 0, sl_id_first_at(now_ms + 59 * MINUTE_MS), 0).is_raised);
}

static void test_older_programs_mint_above_it_too(void **state)
{
    uint64_t high = sl_id_first_at(redis_ms() + STEP_MS), ahead;
    char room[65536], text[SL_ID_TEXT_SIZE];

    (void)state;
    raise_all(0, high);
    for (uint32_t shard = 0; shard < shards; shard++)
        assert_string_equal(core_text(&core, room, "GET sluice:{%u}:clock", (unsigned)shard),
                            sl_id_print(high, text));
    ahead = high + (uint64_t)STEP_MS * SL_ID_PER_MS; /* a shard that is already further */
    freeReplyObject(core_command(&core, "SET sluice:{0}:clock %" PRIu64, ahead));
    must_raise(0, 0, high + 2000 * SL_ID_PER_MS, 0);
    assert_string_equal(core_text(&core, room, "GET sluice:{0}:clock"), sl_id_print(ahead, text));
}

static void test_whoever_subscribes_is_told(void **state)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    uint64_t until_ms;
    struct sl_meta meta;

    (void)state;
    until_ms = raise_all(0, sl_id_first_at(redis_ms() + STEP_MS));
    for (uint32_t shard = 0; shard < shards; shard++) {
        assert_int_equal(sl_meta_call(&call, shard, &core.meta, NULL), 0);
        assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
        assert_int_equal(sl_meta_reply(reply, &meta, NULL), 0);
        assert_int_equal(meta.clock_until_ms, until_ms);
        freeReplyObject(reply);
    }
    sl_call_done(&call);
}

static void test_a_clock_that_is_no_time_refuses(void **state)
{
    static const char *const times[] = {"", "soon", "-1", "1.5", "1e300", "99999999999999999"};
    const struct sl_post post = {.text = SL_SLICE("t")};
    const struct sl_clock_raise raise = {0, sl_id_first_at(redis_ms() + STEP_MS), 0};
    struct sl_clock_raised raised;
    uint64_t digest, ada = core_must_create(&core, "ada");

    (void)state;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta clock_until %s",
                                     (unsigned)sl_id_shard(ada), times[i]));
        digest = core_digest(&core);
        assert_int_equal(core_post(&core, "ada", &post, NULL), -EBADMSG);
        assert_int_equal(raise_shard(sl_id_shard(ada), &raise, &raised), -EBADMSG);
        assert_int_equal(core_digest(&core), digest);
    }
}

/* ---- late events ---- */

/* Expects this message on the channel. */
static void assert_heard(redisContext *listener, const struct logged *logged)
{
    redisReply *reply = NULL;
    char expected[2048];

    assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
    snprintf(expected, sizeof(expected), "%" PRIu64 " %" PRIu64 " %s", logged->id, logged->previous,
             logged->json);
    assert_string_equal(reply->element[2]->str, expected);
    freeReplyObject(reply);
}

static void test_late_events_are_marked_in_log_and_channel(void **state)
{
    uint32_t shard = sl_id_shard(core_must_create(&core, "ada"));
    uint64_t low = core_must_post(&core, "ada", "in order");
    uint64_t late = core_must_post(&core, "ada", "late");
    uint64_t high = sl_id_first_at(redis_ms() + STEP_MS);
    char expected[1024], at[CLOCK_RFC3339_SIZE];
    struct sl_clock_raised raised;
    redisContext *listener = core_listen(&core, shard);
    struct logged logged;

    (void)state;
    raised = must_raise(shard, low, high, 0);
    assert_true(raised.is_raised && raised.is_marked);
    read_newest(shard, &logged);
    assert_true(logged.id > high);
    assert_int_equal(logged.previous, late);
    clock_format_rfc3339(sl_id_time_ms(logged.id), at);
    snprintf(expected, sizeof(expected),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"late\",\"at\":\"%s\",\"shard\":%u,"
             "\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64 "\"}",
             logged.id, at, (unsigned)shard, late - 1, logged.id - 1);
    assert_string_equal(logged.json, expected);
    assert_heard(listener, &logged);
    redisFree(listener);
    assert_true(core_must_post(&core, "ada", "and on") > logged.id);
}

static void test_late_events_are_marked_once(void **state)
{
    uint32_t shard = sl_id_shard(core_must_create(&core, "ada"));
    uint64_t low = core_must_post(&core, "ada", "in order");
    uint64_t late = core_must_post(&core, "ada", "late");
    uint64_t high = sl_id_first_at(redis_ms() + STEP_MS), digest, another;

    (void)state;
    assert_true(must_raise(shard, low, high, 0).is_marked);
    digest = core_digest(&core);
    assert_false(must_raise(shard, low, high, 0).is_marked);
    /* other gateways, which have sent more of the other shards, or know more of this one */
    assert_false(must_raise(shard, low, high + 100 * SL_ID_PER_MS, 0).is_marked);
    assert_false(must_raise(shard, late - 1, high, 0).is_marked);
    assert_false(must_raise(shard, late, high, 0).is_marked);
    assert_int_equal(core_digest(&core), digest);

    assert_true(
        must_raise(shard, low - 1, high, 0).is_marked); /* one that did not have that either */
    digest = core_digest(&core);
    assert_false(must_raise(shard, low, high, 0).is_marked);
    assert_int_equal(core_digest(&core), digest);

    another = core_must_post(&core, "ada", "late in the next step");
    high = another + (uint64_t)STEP_MS * SL_ID_PER_MS;
    assert_true(must_raise(shard, another - 1, high, 0).is_marked);
}

static void test_without_late_events_there_is_no_marker(void **state)
{
    uint32_t shard = sl_id_shard(core_must_create(&core, "ada"));
    uint64_t low = core_must_post(&core, "ada", "in order");
    struct sl_clock_raised raised;
    struct logged logged;

    (void)state;
    raised = must_raise(shard, low, sl_id_first_at(redis_ms() + STEP_MS), 0);
    assert_true(raised.is_raised && !raised.is_marked);
    read_newest(shard, &logged);
    assert_int_equal(logged.id, low);
}

static void test_a_marker_that_is_none_of_ours_refuses(void **state)
{
    uint32_t shard = sl_id_shard(core_must_create(&core, "ada"));
    uint64_t low = core_must_post(&core, "ada", "1"), digest;
    const struct sl_clock_raise raise = {low - 1, sl_id_first_at(redis_ms() + STEP_MS), 0};
    struct sl_clock_raised raised;

    (void)state;
    freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta late x", (unsigned)shard));
    digest = core_digest(&core);
    assert_int_equal(raise_shard(shard, &raise, &raised), -EBADMSG);
    assert_int_equal(core_digest(&core), digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_the_time_goes_slower_until_the_clocks_meet),
        CORE_TEST(test_when_the_time_comes_is_told),
        CORE_TEST(test_all_shards_go_on_above_what_was_given_out),
        CORE_TEST(test_the_machines_clock_counts_again_when_it_has_caught_up),
        CORE_TEST(test_raising_again_writes_nothing),
        CORE_TEST(test_a_second_step_raises_once_more),
        CORE_TEST(test_what_lies_behind_the_clock_raises_nothing),
        CORE_TEST(test_nobody_pushes_the_clock_more_than_an_hour_ahead),
        CORE_TEST(test_older_programs_mint_above_it_too),
        CORE_TEST(test_whoever_subscribes_is_told),
        CORE_TEST(test_a_clock_that_is_no_time_refuses),
        CORE_TEST(test_late_events_are_marked_in_log_and_channel),
        CORE_TEST(test_late_events_are_marked_once),
        CORE_TEST(test_without_late_events_there_is_no_marker),
        CORE_TEST(test_a_marker_that_is_none_of_ours_refuses),
    };

    return core_group_run(tests);
}
