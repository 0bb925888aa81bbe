#include "gateway/front/key_presence.h"
#include "tests/support/cmocka_all.h"

#include <errno.h>

#include "base/alloc.h"

enum { AFTER_MS = 60000 };

static struct {
    uint64_t known_ms; /* 0: it is not fetched */
    unsigned wanted;
} issuer;

static uint64_t known_ms(void *context, const char *name, uint64_t now_ms)
{
    (void)context;
    assert_string_equal(name, "https://a");
    return issuer.known_ms ? issuer.known_ms : now_ms;
}

static void want(void *context, const char *name)
{
    (void)context;
    assert_string_equal(name, "https://a");
    issuer.wanted++;
}

static struct key_presence_key key(const char *issuer_name, const char *kid, uint64_t number)
{
    return (struct key_presence_key){issuer_name, kid, number};
}

static int see(struct key_presence *presence, const char *kid)
{
    return key_presence_see(presence, &(struct key_presence_key){"https://a", kid, 1});
}

static unsigned look(struct key_presence *presence, uint64_t ms, const char *const *kids)
{
    const struct key_presence_now now = {
        .ms = ms, .after_ms = AFTER_MS, .known_ms = known_ms, .want = want};

    key_presence_begin(presence);
    for (; *kids; kids++)
        assert_int_equal(see(presence, *kids), 0);
    return key_presence_end(presence, &now);
}

static bool is_gone(const struct key_presence *presence, struct key_presence_key asked,
                    uint64_t *ret_since_ms)
{
    return key_presence_is_gone(presence, &asked, ret_since_ms);
}

static const char *const both[] = {"one", "two", NULL}, *const second[] = {"two", NULL};

static int begin(void **state)
{
    issuer.known_ms = issuer.wanted = 0;
    *state = key_presence_new();
    look(*state, 1000, both);
    return 0;
}

static int end(void **state)
{
    key_presence_free(*state);
    return 0;
}

static void test_a_key_that_nobody_fetches_is_gone_after_the_time(void **state)
{
    uint64_t since_ms = 0;

    assert_int_equal(look(*state, 2000, second), 0);
    assert_int_equal(look(*state, 2000 + AFTER_MS - 1, second), 0);
    assert_false(is_gone(*state, key("https://a", "one", 1), &since_ms));
    assert_int_equal(look(*state, 2000 + AFTER_MS, second), 1);
    assert_true(is_gone(*state, key("https://a", "one", 1), &since_ms));
    assert_int_equal(since_ms, 2000 + AFTER_MS);
    assert_false(is_gone(*state, key("https://a", "two", 1), &since_ms));
    assert_false(is_gone(*state, key("https://b", "one", 1), &since_ms));
    assert_int_equal(issuer.wanted, 0);
    key_presence_forget(*state, since_ms - 1);
    assert_int_equal(look(*state, 90000, second), 1);
    key_presence_forget(*state, since_ms);
    assert_int_equal(look(*state, 90000, second), 0);
}

static void test_a_key_that_is_fetched_is_gone_with_the_second_answer_only(void **state)
{
    issuer.known_ms = 2000;
    assert_int_equal(look(*state, 2500, second), 0);
    assert_int_equal(look(*state, 2500 + 10 * AFTER_MS, second),
                     0); /* the provider is unavailable */
    assert_int_equal(issuer.wanted, 1);
    issuer.known_ms = 2000 + AFTER_MS - 1;
    assert_int_equal(look(*state, 2500 + 10 * AFTER_MS, second), 0);
    issuer.known_ms = 2000 + AFTER_MS;
    assert_int_equal(look(*state, 2500 + 10 * AFTER_MS, second), 1);
    assert_int_equal(issuer.wanted, 2);
}

static void test_a_key_that_comes_back_was_never_away(void **state)
{
    uint64_t since_ms;

    look(*state, 2000, second);
    look(*state, 3000, both);
    assert_int_equal(look(*state, 2000 + AFTER_MS, second), 0);
    assert_int_equal(look(*state, 2000 + 2 * AFTER_MS, second), 1);
    assert_int_equal(look(*state, 2000 + 2 * AFTER_MS, both), 0);
    assert_false(is_gone(*state, key("https://a", "one", 1), &since_ms));
}

/* The old one expires as if it had another name. A key without a number stays as long as any key
 * has its name. */
static void test_another_key_by_the_same_name_takes_no_place(void **state)
{
    const struct key_presence_now now = {
        .ms = 2000 + AFTER_MS, .after_ms = AFTER_MS, .known_ms = known_ms, .want = want};
    struct key_presence_key replaced = key("https://a", "one", 2);
    uint64_t since_ms;

    look(*state, 2000, second);
    key_presence_begin(*state);
    key_presence_see(*state, &replaced);
    see(*state, "two");
    assert_int_equal(key_presence_end(*state, &now), 1);
    assert_true(is_gone(*state, key("https://a", "one", 1), &since_ms));
    assert_false(is_gone(*state, replaced, &since_ms));
    assert_false(is_gone(*state, key("https://a", "one", 0), &since_ms));
    look(*state, 2000 + AFTER_MS, second);
    look(*state, 2000 + 2 * AFTER_MS, second);
    assert_true(is_gone(*state, key("https://a", "one", 0), &since_ms));
    assert_int_equal(since_ms, 2000 + 2 * AFTER_MS);
    assert_false(is_gone(*state, key("https://a", "two", 0), &since_ms));
}

static void test_no_memory_loses_no_key_that_is_known(void **state)
{
    static const char *const names[] = {"3", "4", "5", "6", "7", "8"};

    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(see(*state, names[i]), 0);
    mem_fail_after(0);
    assert_int_equal(see(*state, "9"), -ENOMEM);
    assert_int_equal(see(*state, "one"), 0);
    mem_fail_never();
    assert_int_equal(see(*state, "9"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_key_that_nobody_fetches_is_gone_after_the_time,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            test_a_key_that_is_fetched_is_gone_with_the_second_answer_only, begin, end),
        cmocka_unit_test_setup_teardown(test_a_key_that_comes_back_was_never_away, begin, end),
        cmocka_unit_test_setup_teardown(test_another_key_by_the_same_name_takes_no_place, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_no_memory_loses_no_key_that_is_known, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
