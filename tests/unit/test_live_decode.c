#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/intake/live_decode.h"
#include "tests/support/cmocka_all.h"

#define FOLLOW "{\"id\":1,\"type\":\"follow\",\"user\":{\"id\":1},\"target\":{\"id\":2}}"

enum { MAX_BYTES = 200 };

static struct metrics_board *board;
static struct live_decoder decoder;

static int set_up(void **state)
{
    (void)state;
    board = metrics_board_new(1);
    decoder = (struct live_decoder){event_decoder_new(MAX_BYTES), metrics_slot(board, 0), {0}};
    return board && decoder.decoder ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    event_decoder_free(decoder.decoder);
    metrics_board_free(board);
    return 0;
}

static struct live_message message(enum live_form form, struct sl_slice body)
{
    return (struct live_message){
        .shard = 3, .id = 77, .previous = 70, .received_us = 5, .form = form, .body = body};
}

static void expect_refusals(uint64_t invalid, uint64_t too_big)
{
    assert_int_equal(metric_get(decoder.metrics, METRIC_EVENTS_INVALID), invalid);
    assert_int_equal(metric_get(decoder.metrics, METRIC_EVENTS_TOO_BIG), too_big);
}

static void test_json_and_bytes_give_the_same_event(void **state)
{
    struct live_message heard = message(LIVE_JSON, SL_SLICE(FOLLOW)), carried;
    struct event *first, *second;

    (void)state;
    assert_int_equal(live_decode(&decoder, &heard, &first), 0);
    carried = message(LIVE_EVENT, event_bytes(first));
    assert_int_equal(live_decode(&decoder, &carried, &second), 0);
    assert_int_equal(second->kind, EVENT_FOLLOW);
    assert_true(second->id == 77 && second->previous == 70 && second->shard == 3 &&
                second->received_us == 5);
    assert_true(sl_slice_is(second->json, FOLLOW));
    assert_ptr_not_equal(first->json.data, second->json.data);
    event_unref(first);
    event_unref(second);
    expect_refusals(0, 0);
}

static void test_what_is_refused_is_counted_by_who_refuses_it(void **state)
{
    char long_text[MAX_BYTES + 1];
    struct live_message bad = message(LIVE_JSON, SL_SLICE("{}"));
    struct live_message damaged = message(LIVE_EVENT, SL_SLICE("{}"));
    struct live_message refused = message(LIVE_REFUSED, SL_SLICE_NONE);
    struct live_message large = message(LIVE_JSON, sl_slice(long_text, sizeof(long_text)));
    struct event *event = NULL;

    (void)state;
    memset(long_text, ' ', sizeof(long_text));
    assert_int_equal(live_decode(&decoder, &refused, &event), -EBADMSG);
    expect_refusals(0, 0);
    assert_int_equal(live_decode(&decoder, &bad, &event), -EBADMSG);
    expect_refusals(1, 0);
    assert_int_equal(live_decode(&decoder, &damaged, &event), -EBADMSG);
    expect_refusals(2, 0);
    assert_int_equal(live_decode(&decoder, &large, &event), -EBADMSG);
    expect_refusals(2, 1);
    assert_null(event);
}

static void test_without_memory_only_what_no_log_has_is_refused(void **state)
{
    struct live_message heard = message(LIVE_JSON, SL_SLICE(FOLLOW));
    struct event *event = NULL;

    (void)state;
    mem_fail_after(0);
    assert_int_equal(live_decode(&decoder, &heard, &event), -ENOMEM);
    expect_refusals(0, 0);
    heard.id = 0;
    assert_int_equal(live_decode(&decoder, &heard, &event), -EBADMSG);
    mem_fail_never();
    expect_refusals(1, 0);
    assert_null(event);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_json_and_bytes_give_the_same_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_refused_is_counted_by_who_refuses_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_without_memory_only_what_no_log_has_is_refused, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
