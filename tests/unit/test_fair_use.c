#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/front/fair_use.h"
#include "gateway/front/fair_use_exchange.h"
#include "gateway/front/leaky_bucket.h"
#include "gateway/front/use_check.h"
#include "tests/support/cmocka_all.h"

#define DAY UINT64_C(20000)

static const struct use_limits unbounded = {{
    USE_UNBOUNDED,
    USE_UNBOUNDED,
    USE_UNBOUNDED,
    USE_UNBOUNDED,
    USE_UNBOUNDED,
    USE_UNBOUNDED,
    USE_UNBOUNDED,
}};

static struct use_whose subject(const char *name)
{
    return (struct use_whose){USE_OF_SUBJECT, sl_slice_str(name)};
}

static struct use_times at(uint64_t ms)
{
    return (struct use_times){1000000 + ms, DAY * USE_DAY_MS + ms};
}

static struct use_limits limited(enum use use, uint64_t limit)
{
    struct use_limits limits = unbounded;

    limits.of[use] = limit;
    return limits;
}

/* --- leaky buckets --- */

static void test_a_bucket_takes_its_limit_at_once_and_then_what_leaks(void **state)
{
    const struct leaky_rate rate = {60, 60000};
    struct leaky_bucket bucket = {0};

    (void)state;
    for (int i = 0; i < 60; i++) {
        assert_true(leaky_bucket_has_room(&bucket, &rate, 5000));
        leaky_bucket_add(&bucket, &rate, 5000);
    }
    assert_false(leaky_bucket_has_room(&bucket, &rate, 5000));
    assert_int_equal(leaky_bucket_wait_ms(&bucket, &rate, 59, 5000), 1001);
    assert_false(leaky_bucket_has_room(&bucket, &rate, 5999));
    assert_true(leaky_bucket_has_room(&bucket, &rate, 6001));
    assert_int_equal((int)leaky_bucket_level(&bucket, &rate, 35000), 30);
    assert_int_equal((int)leaky_bucket_level(&bucket, &rate, 70000), 0);
}

static void test_a_clock_that_steps_back_empties_nothing(void **state)
{
    const struct leaky_rate rate = {10, 1000};
    struct leaky_bucket bucket = {0};

    (void)state;
    leaky_bucket_set(&bucket, 10, 5000);
    assert_false(leaky_bucket_has_room(&bucket, &rate, 4000));
    leaky_bucket_set(&bucket, 10, 4000);
    assert_int_equal((int)leaky_bucket_level(&bucket, &rate, 5000), 10);
}

static void test_a_limit_of_nothing_is_never_there(void **state)
{
    const struct leaky_rate none = {0, 1000};
    struct leaky_bucket bucket = {0};

    (void)state;
    assert_false(leaky_bucket_has_room(&bucket, &none, 1000));
    assert_int_equal(leaky_bucket_wait_ms(&bucket, &none, -1, 1000), UINT64_MAX);
}

/* --- accounts --- */

static void test_accounts_are_apart(void **state)
{
    const struct use_limits limits = limited(USE_CONNECTS, 2);
    const struct use_whose address = {USE_OF_ADDRESS, SL_SLICE("ada")};
    const struct use_whose ada = subject("ada"), bob = subject("bob");
    struct fair_use *uses = fair_use_new(10000);
    const struct use_times now = at(0), later = at(30001);
    struct use_state got;

    (void)state;
    assert_true(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    assert_true(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    assert_false(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    assert_int_equal(got.waits_ms[USE_CONNECTS], 30001);
    assert_int_equal(got.empty_ms[USE_CONNECTS], 60001);
    assert_true(fair_use_take(uses, &bob, USE_CONNECTS, &limits, &now, &got));
    assert_true(fair_use_take(uses, &address, USE_CONNECTS, &limits, &now, &got));
    assert_true(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &later, &got));
    assert_false(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &later, &got));
    fair_use_free(uses);
}

static void test_a_day_ends_at_midnight_and_a_step_back_is_no_new_one(void **state)
{
    const struct use_whose ada = subject("ada");
    struct fair_use *uses = fair_use_new(10000);
    const uint64_t sums[USE_SUMS] = {5, 500, 1};
    const struct use_times last = at(USE_DAY_MS - 1), next = at(USE_DAY_MS);
    struct use_state got;

    (void)state;
    fair_use_add(uses, &ada, sums, &unbounded, &last, &got);
    fair_use_add(uses, &ada, sums, &unbounded, &last, &got);
    assert_int_equal(got.here[0], 10);
    assert_int_equal(got.everywhere[1], 1000);
    assert_int_equal(use_day_left_ms(last.wall_ms), 1);
    fair_use_look(uses, &ada, &unbounded, &next, &got);
    assert_int_equal(got.here[0], 0);
    assert_int_equal(got.everywhere[0], 0);
    fair_use_add(uses, &ada, sums, &unbounded, &next, &got);
    fair_use_add(uses, &ada, sums, &unbounded, &last, &got); /* the clock was set back */
    assert_int_equal(got.here[0], 10);
    fair_use_look(uses, &ada, &unbounded, &next, &got);
    assert_int_equal(got.here[0], 10);
    fair_use_free(uses);
}

static void test_a_flood_of_names_has_bounds_and_forgets_no_subject(void **state)
{
    const struct use_limits limits = limited(USE_BAD_TOKENS, 1);
    const struct use_whose ada = subject("ada");
    struct fair_use *uses = fair_use_new(10000);
    const uint64_t sums[USE_SUMS] = {5, 500, 1};
    struct use_times now = at(0);
    struct use_state got;

    (void)state;
    fair_use_add(uses, &ada, sums, &unbounded, &now, &got);
    for (uint64_t i = 0; i < 200000; i++) {
        const struct use_whose whose = {USE_OF_ADDRESS, sl_slice((const char *)&i, sizeof(i))};

        now = at(i);
        assert_true(fair_use_take(uses, &whose, USE_BAD_TOKENS, &limits, &now, &got));
        assert_false(fair_use_take(uses, &whose, USE_BAD_TOKENS, &limits, &now, &got));
    }
    fair_use_look(uses, &ada, &unbounded, &now, &got);
    assert_int_equal(got.here[0], 5);
    fair_use_free(uses);
}

static void test_who_has_news_makes_room_last(void **state)
{
    const struct use_limits limits = limited(USE_BAD_TOKENS, 10);
    const uint64_t sums[USE_SUMS] = {5, 500, 1};
    struct fair_use *uses = fair_use_new(10000);
    struct use_times now = at(0);
    struct use_state got;
    const struct use_whose ada = {USE_OF_ADDRESS, SL_SLICE("ada")};

    (void)state;
    fair_use_add(uses, &ada, sums, &unbounded, &now, &got);
    for (uint64_t i = 0; i < 200000; i++) {
        const struct use_whose whose = {USE_OF_ADDRESS, sl_slice((const char *)&i, sizeof(i))};

        now = at(i);
        fair_use_take(uses, &whose, USE_BAD_TOKENS, &limits, &now, &got);
    }
    fair_use_look(uses, &ada, &unbounded, &now, &got);
    assert_int_equal(got.here[0], 5);
    fair_use_free(uses);
}

static void test_prefixes_of_addresses(void **state)
{
    static const char v6[16] = "0123456789abcdef";
    static const char mapped[16] = {0, 0, 0,          0,          0,  0, 0, 0,
                                    0, 0, (char)0xff, (char)0xff, 10, 0, 0, 1};

    (void)state;
    assert_int_equal(use_prefix(sl_slice("\x0a\0\0\1", 4)).size, 4);
    assert_int_equal(use_prefix(sl_slice(v6, 16)).size, 8);
    assert_true(sl_slice_equal(use_prefix(sl_slice(v6, 16)), SL_SLICE("01234567")));
    assert_true(sl_slice_equal(use_prefix(sl_slice(mapped, 16)), sl_slice("\x0a\0\0\1", 4)));
    assert_int_equal(use_prefix(SL_SLICE_NONE).size, 0);
}

/* --- the exchange --- */

static void test_news_are_told_once_in_ten_seconds(void **state)
{
    const struct use_limits limits = limited(USE_CONNECTS, 120);
    const uint64_t sums[USE_SUMS] = {5, 500, 1};
    const struct use_whose ada = subject("ada");
    struct fair_use *uses = fair_use_new(10000);
    const struct use_times now = at(0), soon = at(9999), later = at(10000);
    struct use_heard heard = {.day = DAY, .levels = {7}, .sums = {105, 10500, 1}};
    struct use_news news;
    struct use_state got;
    size_t position = 0;

    (void)state;
    assert_false(fair_use_next_news(uses, &position, now.now_ms, &news));
    fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got);
    fair_use_add(uses, &ada, sums, &limits, &now, &got);
    position = 0;
    assert_true(fair_use_next_news(uses, &position, now.now_ms, &news));
    assert_false(fair_use_next_news(uses, &position, now.now_ms, &news));
    assert_int_equal(news.of, USE_OF_SUBJECT);
    assert_memory_equal(news.name, "ada", 3);
    assert_int_equal(news.rates[USE_CONNECTS], 1);
    assert_int_equal(news.limits[USE_CONNECTS], 120);
    assert_int_equal(news.sums[1], 500);
    fair_use_add(uses, &ada, sums, &limits, &now, &got); /* while it is in flight */
    fair_use_was_told(uses, &news, &heard, &now);
    fair_use_look(uses, &ada, &limits, &now, &got);
    assert_int_equal(got.here[0], 10);
    assert_int_equal(got.everywhere[0], 110);
    assert_int_equal((int)got.levels[USE_CONNECTS], 7);
    position = 0;
    assert_false(fair_use_next_news(uses, &position, soon.now_ms, &news));
    position = 0;
    assert_true(fair_use_next_news(uses, &position, later.now_ms, &news));
    assert_int_equal(news.sums[0], 5);
    assert_int_equal(news.rates[USE_CONNECTS], 0);
    fair_use_was_not_told(uses, &news, &later);
    fair_use_look(uses, &ada, &limits, &later, &got);
    assert_int_equal(got.everywhere[0], 110);
    fair_use_free(uses);
}

static void test_who_hears_nobody_goes_by_a_share(void **state)
{
    const struct use_limits limits = limited(USE_CONNECTS, 10);
    const struct use_whose ada = subject("ada");
    struct fair_use *uses = fair_use_new(10000);
    const struct use_times now = at(0);
    struct use_state got;

    (void)state;
    fair_use_set_gateways(uses, 4);
    fair_use_set_alone(uses);
    assert_true(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    assert_true(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    assert_false(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    fair_use_set_gateways(uses, 4);
    assert_true(fair_use_take(uses, &ada, USE_CONNECTS, &limits, &now, &got));
    fair_use_free(uses);
}

/* --- the check --- */

static const char *checked(struct use_check *check, const struct token *token, int expect)
{
    static char text[1024];
    struct buffer headers = BUFFER_INIT;
    struct http_refusal refusal;

    check->headers = &headers;
    check->refused = USE_COUNT;
    assert_int_equal(use_check_subject(check, token, &refusal), expect);
    snprintf(text, sizeof(text), "%.*s", SL_SLICE_ARG(buffer_slice(&headers)));
    buffer_done(&headers);
    return text;
}

static void test_headers_say_what_is_left(void **state)
{
    struct use_limits limits = limited(USE_CONNECTS, 2);
    struct token token = {.holder = "ada"};
    struct use_check check = {.uses = fair_use_new(10000),
                              .of_subject = &limits,
                              .of_address = &unbounded,
                              .asks = USE_ASKS_STREAM,
                              .times = at(0)};

    (void)state;
    limits.of[USE_BYTES] = 1000;
    assert_string_equal(checked(&check, &token, 0),
                        "RateLimit-Policy: \"connects\";q=2;w=60, "
                        "\"bytes\";q=1000;qu=\"content-bytes\";w=86400\r\n"
                        "RateLimit: \"connects\";r=1;t=31, \"bytes\";r=1000;t=86400\r\n");
    checked(&check, &token, 0);
    assert_string_equal(strstr(checked(&check, &token, -EPROTO), "RateLimit: "),
                        "RateLimit: \"connects\";r=0;t=61, \"bytes\";r=1000;t=86400\r\n");
    assert_int_equal(check.refused, USE_CONNECTS);
    token.uses[USE_CONNECTS] = 1 + 5; /* wider */
    checked(&check, &token, 0);
    token.uses[USE_BYTES] = 1 + 0; /* 0: not permitted at all */
    checked(&check, &token, -EPROTO);
    assert_int_equal(check.refused, USE_BYTES);
    fair_use_free(check.uses);
}

static void test_clients_of_x_read_headers_of_their_own(void **state)
{
    struct use_limits limits = limited(USE_REQUESTS, 2);
    struct token token = {.holder = "ada"};
    struct use_check check = {.uses = fair_use_new(10000),
                              .of_subject = &limits,
                              .of_address = &unbounded,
                              .asks = USE_ASKS_REQUEST,
                              .tells_x = true,
                              .times = at(0)};
    struct buffer headers = BUFFER_INIT;
    const char *told;

    (void)state;
    told = strstr(checked(&check, &token, 0), "x-rate-limit-limit: 2\r\n");
    assert_non_null(told);
    assert_non_null(strstr(told, "x-rate-limit-remaining: 1\r\n"));
    assert_non_null(strstr(told, "x-rate-limit-reset: "));
    assert_true(check.has_told_x);
    check.headers = &headers;
    use_check_tell_reset(&check, 5); /* once is enough */
    assert_int_equal(headers.size, 0);
    check.has_told_x = false;
    use_check_tell_reset(&check, 5);
    assert_true(headers.size > 0);
    buffer_done(&headers);
    fair_use_free(check.uses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_bucket_takes_its_limit_at_once_and_then_what_leaks),
        cmocka_unit_test(test_a_clock_that_steps_back_empties_nothing),
        cmocka_unit_test(test_a_limit_of_nothing_is_never_there),
        cmocka_unit_test(test_accounts_are_apart),
        cmocka_unit_test(test_a_day_ends_at_midnight_and_a_step_back_is_no_new_one),
        cmocka_unit_test(test_a_flood_of_names_has_bounds_and_forgets_no_subject),
        cmocka_unit_test(test_who_has_news_makes_room_last),
        cmocka_unit_test(test_prefixes_of_addresses),
        cmocka_unit_test(test_news_are_told_once_in_ten_seconds),
        cmocka_unit_test(test_who_hears_nobody_goes_by_a_share),
        cmocka_unit_test(test_headers_say_what_is_left),
        cmocka_unit_test(test_clients_of_x_read_headers_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
