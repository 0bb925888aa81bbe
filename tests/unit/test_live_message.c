#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/intake/live_message.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"

static int read_message(const char *channel, const char *payload, struct live_message *ret_message)
{
    char *copy = mem_copy(payload, strlen(payload)); /* reading past the end is noticed */
    int r = live_message_read(sl_slice_str(channel), sl_slice(copy, strlen(payload)), ret_message);

    if (r == 0 && ret_message->body.size > 0)
        ret_message->body.data = payload + (ret_message->body.data - copy);
    mem_free(copy);
    return r;
}

static void expect(const char *channel, const char *payload, uint32_t shard, uint64_t id,
                   uint64_t previous, const char *json)
{
    struct live_message message = {.received_us = 99};

    assert_int_equal(read_message(channel, payload, &message), 0);
    assert_int_equal(message.shard, shard);
    assert_int_equal(message.id, id);
    assert_int_equal(message.previous, previous);
    assert_int_equal(message.received_us, 99);
    assert_true(sl_slice_is(message.body, json));
}

#define SHARD_0 "sluice:{0}:live"

static void test_header_and_json_are_read(void **state)
{
    char payload[64];

    (void)state;
    expect(SHARD_0, "4096 0 {}", 0, 4096, 0, "{}");
    expect(SHARD_0, "4097 4096 {\"a\": 1}", 0, 4097, 4096, "{\"a\": 1}");
    expect("sluice:{1}:live", "4160 1 { }", 1, 4160, 1, "{ }");
    snprintf(payload, sizeof(payload), "%d 0 {", 4096 + 63 * 64);
    expect("sluice:{63}:live", payload, 63, 4096 + 63 * 64, 0, "{");
    expect(SHARD_0, "9007199254736896 9007199254736895 {}", 0, 9007199254736896, 9007199254736895,
           "{}");
}

static void test_plain_producers_have_no_id(void **state)
{
    (void)state;
    expect(SHARD_0, "{\"a\":1}", 0, 0, 0, "{\"a\":1}");
    expect("sluice:{7}:live", "{", 7, 0, 0, "{");
}

static void expect_refused(const char *channel, const char *payload)
{
    struct live_message message = {.shard = 5, .id = 6, .received_us = 7};

    if (read_message(channel, payload, &message) != -EBADMSG)
        fail_msg("taken: '%s' on '%s'", payload, channel);
    assert_int_equal(message.shard, 5);
    assert_int_equal(message.id, 6);
    assert_int_equal(message.received_us, 7);
}

static void test_bad_headers_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "x",
        "[]",
        "4097",
        "4097 ",
        "4097 4096",
        "4097 4096 ",
        "4097 4096 x",
        "4097 4096  {}",
        " 4097 4096 {}",
        "4097\t4096 {}",
        "4097 {}",
        "04097 4096 {}",
        "4097 04096 {}",
        "-4097 4096 {}",
        "+4097 4096 {}",
        "4097 -1 {}",
        "0 0 {}",
        "4097 4097 {}",
        "4097 4098 {}",
        "4160 4096 {}",             /* shard 1 */
        "9007199254740993 4096 {}", /* above 2^53 */
        "99999999999999999999 4096 {}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_refused(SHARD_0, bad[i]);
}

static void test_other_channels_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "sluice:{}:live",
        "sluice:{64}:live",
        "sluice:{00}:live",
        "sluice:{01}:live",
        "sluice:{100}:live",
        "sluice:{-1}:live",
        "sluice:{ 1}:live",
        "sluice:{/}:live",
        "sluice:{:}:live",
        "sluice:{0}:log",
        "sluice:{0}:lives",
        "sluice:{0}:livf",
        "sluicf:{0}:live",
        "xsluice:{0}:live",
        "live",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect_refused(bad[i], "{}");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_and_json_are_read),
        cmocka_unit_test(test_plain_producers_have_no_id),
        cmocka_unit_test(test_bad_headers_are_refused),
        cmocka_unit_test(test_other_channels_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
