#include "gateway/intake/message_rate.h"
#include "tests/support/cmocka_all.h"

/* Runs this many turns of one millisecond. Returns whether it is busy afterwards. */
static bool go_on(struct message_rate *rate, unsigned turns, uint64_t count, uint64_t *now_ms)
{
    bool is_busy = false;

    for (unsigned i = 0; i < turns; i++)
        is_busy = message_rate_is_busy(rate, count, ++*now_ms);
    return is_busy;
}

static void test_it_is_busy_from_so_many_messages_a_second_on(void **state)
{
    struct message_rate rate = {0};
    uint64_t now_ms = 5000;

    (void)state;
    assert_false(go_on(&rate, 1000, MESSAGE_RATE_BUSY / 1000 - 1, &now_ms));
    assert_true(go_on(&rate, 200, MESSAGE_RATE_BUSY / 1000, &now_ms));
    assert_false(go_on(&rate, 200, MESSAGE_RATE_BUSY / 1000 - 1, &now_ms));
}

/* One turn with many messages after a long silence is not a rate. */
static void test_a_burst_alone_is_not_busy(void **state)
{
    struct message_rate rate = {0};
    uint64_t now_ms = 5000;

    (void)state;
    go_on(&rate, 1, 0, &now_ms);
    assert_false(message_rate_is_busy(&rate, 1000, now_ms + 1000));
    assert_false(message_rate_is_busy(&rate, 1000, now_ms + 1001));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_is_busy_from_so_many_messages_a_second_on),
        cmocka_unit_test(test_a_burst_alone_is_not_busy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
