/* How gateways exchange usage through Redis: sums of a day, leaking levels, streams. */
#include <stdlib.h>
#include <string.h>

#include "src/database/use.h"
#include "src/model/keys.h"
#include "tests/support/core_group.h"

#define A    "00000000000000aa"
#define B    "00000000000000bb"
#define NAME "0123456789abcdef0123456789abcdef"

static struct sl_use_round round_of(const char *gateway, bool leaves)
{
    struct sl_call call = SL_CALL_INIT;
    struct sl_use_round round;
    redisReply *reply = NULL;

    assert_int_equal(sl_use_round_call(&call, &core.meta, gateway, NAME, leaves, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    assert_int_equal(sl_use_round_reply(reply, &round, &core.failure), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
    return round;
}

static struct sl_use_news news_of(uint64_t taken, uint64_t limit, uint64_t sum, uint64_t streams)
{
    struct sl_use_news news = {.name = NAME, .streams = streams};

    news.rates[0].taken = taken;
    news.rates[0].limit = limit;
    news.rates[0].window_ms = 60000;
    news.rates[1].limit = SL_USE_UNBOUNDED;
    news.rates[1].window_ms = 1000;
    for (int i = 0; i < SL_USE_SUMS; i++)
        news.sums[i] = sum * (uint64_t)(i + 1);
    return news;
}

static struct sl_use_heard tell(const char *gateway, const struct sl_use_round *round,
                                const struct sl_use_news *news)
{
    const struct sl_use_news both[2] = {{.name = "ffffffffffffffffffffffffffffffff"}, *news};
    struct sl_call call = SL_CALL_INIT;
    struct sl_use_heard heard;
    redisReply *reply = NULL;
    uint32_t shard = core.meta.shards - 1;

    assert_int_equal(sl_use_exchange_call(&call, &core.meta, shard, gateway, round, both, 2, NULL),
                     0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    assert_int_equal(sl_use_exchange_reply(reply, 2, 1, &heard, &core.failure), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
    return heard;
}

static void change(const char *field, long long by)
{
    char key[SL_KEY_SIZE], text[32];

    snprintf(text, sizeof(text), "%lld", by);
    freeReplyObject(core_command(&core, "HINCRBY %s %s %s",
                                 sl_key(core.meta.shards - 1, "use:" NAME, key), field, text));
}

static void test_gateways_hear_of_each_other(void **state)
{
    struct sl_use_round round;

    (void)state;
    round = round_of(A, false);
    assert_int_equal(round.count, 1);
    assert_string_equal(round.gateways, A);
    assert_string_equal(round.secret, NAME);
    round = round_of(B, false);
    assert_int_equal(round.count, 2);
    assert_string_equal(round.gateways, A "," B);
    assert_int_equal(round_of(A, true).count, 1);
    assert_string_equal(round_of(B, false).gateways, B);
}

static void test_who_was_not_heard_of_for_long_is_forgotten(void **state)
{
    char key[SL_KEY_SIZE];

    (void)state;
    round_of(A, false);
    round_of(B, false);
    freeReplyObject(core_command(&core, "HINCRBY %s " A " -30000", sl_key(0, "use_gateways", key)));
    assert_string_equal(round_of(B, false).gateways, B);
}

static void test_sums_are_of_all_and_of_the_day(void **state)
{
    const struct sl_use_news five = news_of(0, SL_USE_UNBOUNDED, 5, 0),
                             seven = news_of(0, SL_USE_UNBOUNDED, 7, 0);
    struct sl_use_round round;
    struct sl_use_heard heard;

    (void)state;
    round_of(A, false);
    round = round_of(B, false);
    tell(A, &round, &five);
    heard = tell(B, &round, &seven);
    assert_int_equal(heard.sums[0], 12);
    assert_int_equal(heard.sums[2], 36);
    assert_true(heard.day > 20000);
    change("day", -1); /* as if it was yesterday */
    assert_int_equal(tell(B, &round, &seven).sums[0], 7);
}

static void test_levels_leak_and_have_room_for_ten_seconds(void **state)
{
    const struct sl_use_news sixty = news_of(60, 60, 0, 0), none = news_of(0, 60, 0, 0);
    struct sl_use_round round;
    double level;

    (void)state;
    round = round_of(A, false);
    level = tell(A, &round, &sixty).levels[0];
    assert_true(level > 49 && level <= 50); /* meanwhile, what leaks in ten seconds */
    level = tell(B, &round, &sixty).levels[0];
    assert_true(level > 69 && level <= 70); /* no more than the limit and that */
    change("time", -30000);
    level = tell(B, &round, &none).levels[0];
    assert_true(level > 35 && level <= 40);
    change("time", -600000);
    level = tell(A, &round, &none).levels[0];
    assert_true(level == 0);
    level = tell(A, &round, &sixty).levels[0];
    assert_true(level > 49 && level <= 50);
}

static void test_streams_of_gateways_that_are_gone_do_not_count(void **state)
{
    const struct sl_use_news two = news_of(0, SL_USE_UNBOUNDED, 0, 2),
                             three = news_of(0, SL_USE_UNBOUNDED, 0, 3),
                             none = news_of(0, SL_USE_UNBOUNDED, 0, 0);
    struct sl_use_round round;

    (void)state;
    round_of(A, false);
    round = round_of(B, false);
    assert_int_equal(tell(A, &round, &two).streams_elsewhere, 0);
    assert_int_equal(tell(B, &round, &three).streams_elsewhere, 2);
    assert_int_equal(tell(A, &round, &none).streams_elsewhere, 3);
    assert_int_equal(tell(B, &round, &three).streams_elsewhere, 0);
    tell(A, &round, &two);
    round_of(A, true);
    round = round_of(B, false);
    assert_int_equal(tell(B, &round, &three).streams_elsewhere, 0);
}

static void test_all_of_it_expires(void **state)
{
    const struct sl_use_news one = news_of(1, 60, 1, 1);
    const struct sl_use_round round = round_of(A, false);
    char room[SL_KEY_SIZE];
    const char *keys[] = {"use_gateways", "use_secret"};

    (void)state;
    tell(A, &round, &one);
    for (int i = 0; i < 3; i++) {
        const char *key =
            i < 2 ? sl_key(0, keys[i], room) : sl_key(core.meta.shards - 1, "use:" NAME, room);
        redisReply *reply = core_command(&core, "PTTL %s", key);

        assert_true(reply->integer > 172700000 && reply->integer <= 172800000);
        freeReplyObject(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_gateways_hear_of_each_other),
        CORE_TEST(test_who_was_not_heard_of_for_long_is_forgotten),
        CORE_TEST(test_sums_are_of_all_and_of_the_day),
        CORE_TEST(test_levels_leak_and_have_room_for_ten_seconds),
        CORE_TEST(test_streams_of_gateways_that_are_gone_do_not_count),
        CORE_TEST(test_all_of_it_expires),
    };

    return core_group_run(tests);
}
