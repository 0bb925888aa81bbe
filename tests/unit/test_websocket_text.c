/* test_websocket_text.c - UTF-8 and closing, for a server: sections 6 and 7 of the Autobahn test
 * suite. The other sections are in test_websocket_reader.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/websocket_script.h"

/* ---- 6: UTF-8 ---- */

static const char *const good_texts[] = {
    "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!",
    "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5",
    "\x7f",
    "\xc2\x80",
    "\xdf\xbf",
    "\xe0\xa0\x80",
    "\xed\x9f\xbf",
    "\xee\x80\x80",
    "\xef\xbf\xbd",
    "\xef\xbf\xbe", /* non-characters are code points nevertheless */
    "\xef\xbf\xbf",
    "\xf0\x90\x80\x80",
    "\xf0\x9f\xbf\xbe",
    "\xf3\xbf\xbf\xbf",
    "\xf4\x8f\xbf\xbf",
    "12345678\xe4\xb8\xad\x65\x66\x67\xf0\x9f\x98\x80",
};

/* `at`: index of the byte after which nothing could make it valid; the size: it is incomplete. */
static const struct {
    const char *text;
    size_t at;
} bad_texts[] = {
    {"\x80", 0},
    {"\xbf", 0},
    {"abc\x80\xbf", 3},
    {"12345678\x80", 8},
    {"\xc0\xaf", 0},
    {"\xc1\xbf", 0},
    {"\xc2", 1},
    {"\xc2 ", 1},
    {"\xc2\xc2", 1},
    {"\xdf\x7f", 1},
    {"\xe0\x80\xaf", 1},
    {"\xe0\x9f\xbf", 1},
    {"\xe0\xa0", 2},
    {"\xe0\xa0\x7f", 2},
    {"\xe4\xb8", 2},
    {"\xe4\xb8\xc0", 2},
    {"\xed\xa0\x80", 1},
    {"\xed\xaf\xbf\xed\xbf\xbf", 1},
    {"\xed\x9f", 2},
    {"\xf0\x80\x80\xaf", 1},
    {"\xf0\x8f\xbf\xbf", 1},
    {"\xf0\x90\x80", 3},
    {"\xf0\x90\x80 ", 3},
    {"\xf0\x90", 2},
    {"\xf0", 1},
    {"\xf4\x90\x80\x80", 1},
    {"\xf4\x8f\xbf", 3},
    {"\xf5\x80\x80\x80", 0},
    {"\xf8\x88\x80\x80\x80", 0},
    {"\xfc\x84\x80\x80\x80\x80", 0},
    {"\xfe", 0},
    {"\xff", 0},
    {"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64\x69\x74\x65\x64", 12},
    {"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xf4\x90\x80\x80\x65\x64\x69\x74\x65\x64", 12},
};
static void test_utf8_may_be_cut_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
        struct sl_slice text = sl_slice_str(good_texts[i]);

        for (size_t step = 0; step <= text.size; step++) {
            send_text(text, step, step % 2);
            print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
            run_case();
        }
    }
}

/* Header and mask of a short frame take six bytes. */
static void test_bad_utf8_is_refused_at_the_first_bad_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
        struct sl_slice text = sl_slice_str(bad_texts[i].text);
        size_t at = bad_texts[i].at;

        send_text(text, 0,
                  false); /* incomplete text is noticed with the last byte of the last frame */
        expect_fault(1007);
        run_faulting_at(6 + (at < text.size ? at : at - 1));
        send_text(text, 1, true); /* here: with the last byte of the header of the empty one */
        expect_fault(1007);
        run_faulting_at(7 * at + (at < text.size ? 6 : 5));
    }
}

static void test_bad_utf8_is_refused_before_its_frame_is_complete(void **state)
{
    (void)state;
    send_head(FIN | TEXT, 126, 1000, (const unsigned char[]){0, 0, 0, 0});
    buffer_append(&sent, "\xce\xba\xe1\xbd\xb9\xf4\x90", 7);
    expect_fault(1007);
    run_faulting_at(8 + 6);
    send_head(TEXT, 20, 0, (const unsigned char[]){0, 0, 0, 0});
    buffer_append(&sent, "good\xed\xa0", 6);
    expect_fault(1007);
    run_faulting_at(6 + 5);
}

static void test_a_control_frame_does_not_disturb_a_cut_code_point(void **state)
{
    (void)state;
    SEND(TEXT, "\xf0\x9f");
    SEND(FIN | PING, "\xff\xff\xff");
    SEND(FIN | CONTINUATION, "\x98\x80");
    EXPECT(WEBSOCKET_PING, "\xff\xff\xff");
    EXPECT(WEBSOCKET_MESSAGE, "\xf0\x9f\x98\x80");
    run_case();
}

/* ---- 7: closing ---- */

static void test_a_close_is_told_with_code_and_reason(void **state)
{
    (void)state;
    SEND(FIN | CLOSE, "");
    expect_close(1005, SL_SLICE(""));
    run_case();
    send_close(1000, SL_SLICE(""));
    expect_close(1000, SL_SLICE(""));
    run_case();
    send_close(1001, SL_SLICE("tsch\xc3\xbc\xc3\x9f"));
    expect_close(1001, SL_SLICE("tsch\xc3\xbc\xc3\x9f"));
    run_case();
    send_close(1000, repeat("*", 123));
    expect_close(1000, repeat("*", 123));
    run_case();
    send_close(1000, repeat("*", 124));
    expect_fault(1002);
    run_case();
    SEND(FIN | TEXT, "Hello");
    send_close(1000, SL_SLICE("bye"));
    EXPECT(WEBSOCKET_MESSAGE, "Hello");
    expect_close(1000, SL_SLICE("bye"));
    run_case();
}

static void test_a_close_of_one_byte_is_refused(void **state)
{
    (void)state;
    SEND(FIN | CLOSE, "\x03");
    expect_fault(1002);
    run_faulting_at(6);
}
static void test_every_close_code_is_judged(void **state)
{
    (void)state;
    for (unsigned code = 0; code <= UINT16_MAX; code++) {
        if (code > 5100 && code < 65500)
            continue;
        send_close(code, SL_SLICE("why"));
        if (is_code_of_a_close(code))
            expect_close(code, SL_SLICE("why"));
        else
            expect_fault(1002);
        run_case();
    }
}

static void test_a_close_reason_is_utf8(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
        send_close(1000, sl_slice_str(good_texts[i]));
        expect_close(1000, sl_slice_str(good_texts[i]));
        run_case();
    }
    for (size_t i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
        send_close(1000, sl_slice_str(bad_texts[i].text));
        expect_fault(1007);
        run_case();
    }
}

static void test_nothing_is_read_behind_a_close(void **state)
{
    (void)state;
    send_close(1000, SL_SLICE(""));
    send_close(1001, SL_SLICE(""));
    expect_close(1000, SL_SLICE(""));
    run_case();
    send_close(1000, SL_SLICE(""));
    SEND(FIN | PING, "ping");
    expect_close(1000, SL_SLICE(""));
    run_case();
    send_close(1000, SL_SLICE(""));
    SEND(FIN | TEXT, "text");
    expect_close(1000, SL_SLICE(""));
    run_case();
    SEND(TEXT, "fragment1");
    send_close(1000, SL_SLICE("in the middle"));
    SEND(FIN | CONTINUATION, "fragment2");
    expect_close(1000, SL_SLICE("in the middle"));
    run_case();
    send_close(1000, SL_SLICE(""));
    buffer_append(&sent, "\xff\xff\xff\xff no frame at all", 20);
    expect_close(1000, SL_SLICE(""));
    run_case();
}

static void test_nothing_is_read_behind_a_fault(void **state)
{
    (void)state;
    SEND(FIN | RSV1 | TEXT, "bad");
    SEND(FIN | TEXT, "good");
    SEND(FIN | PING, "");
    send_close(1000, SL_SLICE(""));
    expect_fault(1002);
    run_case();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        READER_TEST(test_utf8_may_be_cut_anywhere),
        READER_TEST(test_bad_utf8_is_refused_at_the_first_bad_byte),
        READER_TEST(test_bad_utf8_is_refused_before_its_frame_is_complete),
        READER_TEST(test_a_control_frame_does_not_disturb_a_cut_code_point),
        READER_TEST(test_a_close_is_told_with_code_and_reason),
        READER_TEST(test_a_close_of_one_byte_is_refused),
        READER_TEST(test_every_close_code_is_judged),
        READER_TEST(test_a_close_reason_is_utf8),
        READER_TEST(test_nothing_is_read_behind_a_close),
        READER_TEST(test_nothing_is_read_behind_a_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
