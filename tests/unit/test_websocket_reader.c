/* test_websocket_reader.c - RFC 6455 for a server, case by case.
 *
 * The cases follow the sections of the Autobahn test suite: here 1 framing, 2 pings and pongs, 3
 * reserved bits, 4 opcodes, 5 fragments, 9 limits, 10 others; 6 UTF-8 and 7 closing are in
 * test_websocket_text.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/websocket_script.h"

/* ---- 1: framing ---- */

static void test_a_text_of_any_length_is_read(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   7,
                                   8,
                                   9,
                                   124,
                                   125,
                                   126,
                                   127,
                                   128,
                                   255,
                                   256,
                                   1023,
                                   65534,
                                   65535,
                                   65536,
                                   65537,
                                   MAX_MESSAGE_BYTES - 1,
                                   MAX_MESSAGE_BYTES};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct sl_slice text = repeat("*abcdefghijk", sizes[i]);

        send_frame(FIN | TEXT, text);
        SEND(FIN | TEXT, "next");
        print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
        EXPECT(WEBSOCKET_MESSAGE, "next");
        run_case();
    }
}

static void test_a_binary_message_is_refused_with_its_first_byte(void **state)
{
    (void)state;
    SEND(FIN | BINARY, "abc");
    expect_fault(1003);
    run_faulting_at(0);
    SEND(BINARY, "");
    expect_fault(1003);
    run_faulting_at(0);
}

static void test_a_frame_without_a_mask_is_refused(void **state)
{
    (void)state;
    buffer_append(&sent,
                  "\x81\x03"
                  "abc",
                  5);
    expect_fault(1002);
    run_faulting_at(1);
    buffer_append(&sent, "\x81\x00", 2);
    expect_fault(1002);
    run_faulting_at(1);
    buffer_append(&sent, "\x89\x00", 2);
    expect_fault(1002);
    run_faulting_at(1);
    buffer_append(&sent, "\x88\x02\x03\xe8", 4);
    expect_fault(1002);
    run_faulting_at(1);
    buffer_append(&sent, "\x81\x7e\x00\x80", 4);
    expect_fault(1002);
    run_faulting_at(1);
}

static void test_a_length_has_its_shortest_form(void **state)
{
    static const struct {
        unsigned form;
        uint64_t length;
        size_t at;
    } cases[] = {
        {126, 0, 3},   {126, 1, 3},     {126, 125, 3},       {127, 0, 9},
        {127, 125, 9}, {127, 65535, 9}, {127, INT64_MIN, 9}, {127, UINT64_MAX, 9},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        send_head(FIN | TEXT, cases[i].form, cases[i].length, (const unsigned char *)"mask");
        expect_fault(1002);
        run_faulting_at(cases[i].at);
    }
}

static void test_every_mask_is_taken_off(void **state)
{
    static const unsigned char masks[][4] = {
        {0, 0, 0, 0}, {255, 255, 255, 255}, {1, 2, 3, 4}, {0x80, 0, 0, 0}, {0, 0, 0, 0x80}};
    struct sl_slice text = repeat("0123456789abcdefghijk", 61);

    (void)state;
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        send_head(FIN | TEXT, (unsigned)text.size, 0, masks[i]);
        for (size_t k = 0; k < text.size; k++)
            buffer_append_char(&sent, (char)(text.data[k] ^ masks[i][k % 4]));
        print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
        run_case();
    }
}

/* ---- 2: pings and pongs ---- */

static void test_pings_and_pongs_are_told_with_their_payload(void **state)
{
    (void)state;
    SEND(FIN | PING, "");
    EXPECT(WEBSOCKET_PING, "");
    run_case();
    SEND(FIN | PING, "Hello, world!");
    EXPECT(WEBSOCKET_PING, "Hello, world!");
    run_case();
    SEND(FIN | PING, "\x00\xff\xfe\xfd\xfc\xfb\x00\xff");
    EXPECT(WEBSOCKET_PING, "\x00\xff\xfe\xfd\xfc\xfb\x00\xff");
    run_case();
    send_frame(FIN | PING, repeat("\xfe", 125));
    print_item(&expected, WEBSOCKET_PING, 0, repeat("\xfe", 125));
    run_case();
    SEND(FIN | PONG, "");
    SEND(FIN | PONG, "unsolicited");
    SEND(FIN | PING, "and a ping");
    EXPECT(WEBSOCKET_PONG, "");
    EXPECT(WEBSOCKET_PONG, "unsolicited");
    EXPECT(WEBSOCKET_PING, "and a ping");
    run_case();
}

static void test_each_of_many_pings_is_told(void **state)
{
    char payload[16];

    (void)state;
    for (int i = 0; i < 10; i++) {
        int size = snprintf(payload, sizeof(payload), "payload-%d", i);

        send_frame(FIN | PING, sl_slice(payload, (size_t)size));
        print_item(&expected, WEBSOCKET_PING, 0, sl_slice(payload, (size_t)size));
    }
    run_case();
}

static void test_a_control_frame_beyond_125_bytes_is_refused(void **state)
{
    static const unsigned opcodes[] = {CLOSE, PING, PONG};

    (void)state;
    for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        send_frame(FIN | opcodes[i], repeat("\x03\xe8", 126));
        expect_fault(1002);
        run_faulting_at(1);
        send_frame(FIN | opcodes[i], repeat("\x03\xe8", 65536));
        expect_fault(1002);
        run_faulting_at(1);
    }
}

/* ---- 3: reserved bits ---- */

static void test_a_reserved_bit_is_refused(void **state)
{
    static const unsigned opcodes[] = {CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG};

    (void)state;
    for (unsigned rsv = 1; rsv <= 7; rsv++) {
        for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
            SEND(FIN | rsv << 4 | opcodes[i], "small payload");
            expect_fault(1002);
            run_faulting_at(0);
        }
        SEND(FIN | TEXT, "Hello");
        SEND(FIN | rsv << 4 | TEXT, "Hello");
        SEND(FIN | PING, "");
        EXPECT(WEBSOCKET_MESSAGE, "Hello");
        expect_fault(1002);
        run_case();
    }
    SEND(TEXT, "a");
    SEND(FIN | RSV1 | CONTINUATION, "b");
    expect_fault(1002);
    run_faulting_at(7);
}

/* ---- 4: opcodes ---- */

static void test_a_reserved_opcode_is_refused(void **state)
{
    static const unsigned opcodes[] = {3, 4, 5, 6, 7, 11, 12, 13, 14, 15};

    (void)state;
    for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        SEND(FIN | opcodes[i], "");
        expect_fault(1002);
        run_faulting_at(0);
        SEND(FIN | opcodes[i], "reserved payload");
        expect_fault(1002);
        run_faulting_at(0);
        SEND(opcodes[i], "");
        expect_fault(1002);
        run_faulting_at(0);
        SEND(FIN | TEXT, "Hello");
        SEND(FIN | opcodes[i], "x");
        SEND(FIN | PING, "");
        EXPECT(WEBSOCKET_MESSAGE, "Hello");
        expect_fault(1002);
        run_case();
    }
}

/* ---- 5: fragments ---- */

static void test_a_control_frame_has_no_fragments(void **state)
{
    static const unsigned opcodes[] = {CLOSE, PING, PONG};

    (void)state;
    for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
        SEND(opcodes[i], "");
        SEND(FIN | CONTINUATION, "");
        expect_fault(1002);
        run_faulting_at(0);
    }
}

static void test_fragments_make_one_message(void **state)
{
    (void)state;
    SEND(TEXT, "fragment1");
    SEND(FIN | CONTINUATION, "fragment2");
    EXPECT(WEBSOCKET_MESSAGE, "fragment1fragment2");
    run_case();
    for (int i = 0; i < 5; i++)
        SEND(i == 0 ? TEXT : i == 4 ? FIN | CONTINUATION : CONTINUATION, "0123456789");
    SEND(FIN | TEXT, "whole");
    EXPECT(WEBSOCKET_MESSAGE, "01234567890123456789012345678901234567890123456789");
    EXPECT(WEBSOCKET_MESSAGE, "whole");
    run_case();
}

static void test_empty_fragments_count_for_nothing(void **state)
{
    (void)state;
    SEND(TEXT, "");
    SEND(CONTINUATION, "");
    SEND(FIN | CONTINUATION, "");
    SEND(TEXT, "");
    SEND(CONTINUATION, "middle");
    SEND(FIN | CONTINUATION, "");
    SEND(TEXT, "first");
    SEND(CONTINUATION, "");
    SEND(FIN | CONTINUATION, "");
    EXPECT(WEBSOCKET_MESSAGE, "");
    EXPECT(WEBSOCKET_MESSAGE, "middle");
    EXPECT(WEBSOCKET_MESSAGE, "first");
    run_case();
}

static void test_control_frames_come_between_fragments(void **state)
{
    (void)state;
    SEND(TEXT, "fragment1");
    SEND(FIN | PING, "ping payload");
    SEND(FIN | PONG, "");
    SEND(CONTINUATION, "fragment2");
    SEND(FIN | PING, "");
    SEND(FIN | PONG, "pong payload");
    SEND(FIN | PING, "second");
    SEND(CONTINUATION, "fragment3");
    SEND(FIN | CONTINUATION, "fragment4");
    EXPECT(WEBSOCKET_PING, "ping payload");
    EXPECT(WEBSOCKET_PONG, "");
    EXPECT(WEBSOCKET_PING, "");
    EXPECT(WEBSOCKET_PONG, "pong payload");
    EXPECT(WEBSOCKET_PING, "second");
    EXPECT(WEBSOCKET_MESSAGE, "fragment1fragment2fragment3fragment4");
    run_case();
    SEND(TEXT, "");
    SEND(FIN | PING, "within an empty one");
    SEND(FIN | CONTINUATION, "");
    EXPECT(WEBSOCKET_PING, "within an empty one");
    EXPECT(WEBSOCKET_MESSAGE, "");
    run_case();
    SEND(TEXT, "never ended");
    SEND(FIN | PING, "ping");
    send_close(1000, SL_SLICE("bye"));
    EXPECT(WEBSOCKET_PING, "ping");
    expect_close(1000, SL_SLICE("bye"));
    run_case();
}

static void test_a_continuation_without_a_beginning_is_refused(void **state)
{
    static const unsigned fins[] = {FIN, 0};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        SEND(fins[i] | CONTINUATION, "non-continuation");
        SEND(FIN | TEXT, "Hello");
        expect_fault(1002);
        run_faulting_at(0);
        SEND(TEXT, "fragment1");
        SEND(FIN | CONTINUATION, "fragment2");
        SEND(fins[i] | CONTINUATION, "fragment3");
        SEND(FIN | TEXT, "Hello");
        EXPECT(WEBSOCKET_MESSAGE, "fragment1fragment2");
        expect_fault(1002);
        run_case();
        SEND(FIN | TEXT, "whole");
        SEND(fins[i] | CONTINUATION, "");
        EXPECT(WEBSOCKET_MESSAGE, "whole");
        expect_fault(1002);
        run_case();
    }
}

static void test_a_message_within_a_message_is_refused(void **state)
{
    static const unsigned firsts[] = {TEXT, FIN | TEXT, BINARY, FIN | BINARY};

    (void)state;
    for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
        SEND(TEXT, "fragment1");
        SEND(FIN | PING, "");
        SEND(firsts[i], "fragment2");
        EXPECT(WEBSOCKET_PING, "");
        expect_fault(1002);
        run_faulting_at(15 + 6);
    }
}

/* ---- 9: limits ---- */

static void test_a_message_too_long_is_refused_with_its_head(void **state)
{
    static const uint64_t lengths[] = {MAX_MESSAGE_BYTES + 1, 1 << 20, UINT32_MAX,
                                       UINT64_C(1) << 32, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        send_head(FIN | TEXT, 127, lengths[i], (const unsigned char *)"mask");
        expect_fault(1009);
        run_faulting_at(9);
    }
}

static void test_the_limit_counts_all_fragments(void **state)
{
    (void)state;
    send_frame(TEXT, repeat("a", 65536));
    SEND(FIN | PING, "does not count");
    send_frame(CONTINUATION, repeat("a", 65535));
    SEND(FIN | CONTINUATION, "a");
    EXPECT(WEBSOCKET_PING, "does not count");
    print_item(&expected, WEBSOCKET_MESSAGE, 0, repeat("a", MAX_MESSAGE_BYTES));
    run_case();
    send_frame(TEXT, repeat("a", 65536));
    send_frame(CONTINUATION, repeat("a", 65535));
    SEND(FIN | CONTINUATION, "aa");
    expect_fault(1009);
    run_faulting_at(sent.size - 7);
}

static void test_what_is_whole_is_not_copied(void **state)
{
    struct websocket_reader reader;
    struct websocket_input input;
    struct websocket_event event;

    (void)state;
    send_frame(FIN | TEXT, repeat("a", 1000));
    SEND(FIN | PING, "ping");
    input = (struct websocket_input){(unsigned char *)sent.data, sent.size};
    websocket_reader_init(&reader, MAX_MESSAGE_BYTES, false);
    mem_fail_after(0);
    assert_int_equal(websocket_read(&reader, &input, &event), WEBSOCKET_MESSAGE);
    assert_ptr_equal(event.payload.data, sent.data + 8);
    assert_int_equal(websocket_read(&reader, &input, &event), WEBSOCKET_PING);
    assert_ptr_equal(event.payload.data, sent.data + sent.size - 4);
    assert_int_equal(websocket_read(&reader, &input, &event), WEBSOCKET_MORE);
    assert_false(mem_failed());
    mem_fail_never();
    websocket_reader_done(&reader);
}

/* Also checks that a long message is not allocated before it arrives. */
static void test_memory_is_held_only_within_a_message(void **state)
{
    struct websocket_reader reader;
    struct buffer told = BUFFER_INIT;

    (void)state;
    websocket_reader_init(&reader, MAX_MESSAGE_BYTES, false);
    SEND(TEXT, "");
    SEND(FIN | PING, "a ping that comes in two pieces");
    send_head(FIN | CONTINUATION, 127, 100000, (const unsigned char[]){0, 0, 0, 0});
    read_piece(&reader, sent.data, 20, &told);
    assert_non_null(reader.held.data);
    read_piece(&reader, sent.data + 20, sent.size - 20, &told);
    assert_null(reader.held.data);
    read_piece(&reader, "hello", 5, &told);
    assert_in_range(reader.held.capacity, 5, 64);
    read_piece(&reader, repeat("a", 99995).data, 99995, &told);
    assert_null(reader.held.data);
    assert_non_null(strstr(buffer_str(&told), "message 0 100000 'helloaaa"));
    buffer_clear(&sent);
    SEND(TEXT, "");
    SEND(FIN | CONTINUATION, "");
    read_piece(&reader, sent.data, sent.size, &told);
    assert_null(reader.held.data);
    buffer_clear(&sent);
    SEND(TEXT, "begun");
    SEND(FIN | RSV1, "");
    read_piece(&reader, sent.data, sent.size, &told);
    assert_null(reader.held.data);
    websocket_reader_done(&reader);
    buffer_done(&told);
}

static void test_who_is_stopped_is_not_read(void **state)
{
    struct websocket_reader reader;
    struct buffer told = BUFFER_INIT;

    (void)state;
    websocket_reader_init(&reader, MAX_MESSAGE_BYTES, false);
    assert_int_equal(websocket_reader_kept_bytes(&reader), 0);
    SEND(TEXT, "begun");
    read_piece(&reader, sent.data, sent.size, &told);
    assert_in_range(websocket_reader_kept_bytes(&reader), 5, 64);
    websocket_reader_stop(&reader);
    assert_int_equal(websocket_reader_kept_bytes(&reader), 0);
    buffer_clear(&sent);
    SEND(FIN | CONTINUATION, "and ended");
    SEND(FIN | CLOSE, "");
    read_piece(&reader, sent.data, sent.size, &told);
    assert_int_equal(told.size, 0);
    buffer_done(&told);
    websocket_reader_done(&reader);
}

static void test_without_memory_the_connection_ends_with_1011(void **state)
{
    struct websocket_reader reader;
    struct websocket_event event;
    enum websocket_item item = WEBSOCKET_MORE;
    uint64_t failures = 0;

    (void)state;
    for (bool has_failed = true; has_failed; failures += has_failed) {
        bool is_at_end = false;

        buffer_clear(&sent);
        send_frame(TEXT, repeat("a", 100));
        SEND(FIN | PING, "ping");
        send_frame(FIN | CONTINUATION, repeat("b", 1000));
        SEND(FIN | PING, "another ping");
        websocket_reader_init(&reader, MAX_MESSAGE_BYTES, false);
        mem_fail_after(failures);
        for (size_t i = 0; i < sent.size; i++) {
            unsigned char *byte = (unsigned char *)sent.data + i;
            struct websocket_input input = {byte, 1};

            while ((item = websocket_read(&reader, &input, &event)) != WEBSOCKET_MORE) {
                assert_false(is_at_end);
                is_at_end = item == WEBSOCKET_FAULT;
                assert_int_equal(event.code, is_at_end ? 1011 : 0);
            }
        }
        has_failed = mem_failed();
        mem_fail_never();
        assert_int_equal(is_at_end, has_failed);
        assert_true(!has_failed || !reader.held.data);
        websocket_reader_done(&reader);
    }
    assert_in_range(failures, 5, 50);
}

/* ---- 10: others ---- */

static void test_a_message_cut_into_many_fragments(void **state)
{
    struct sl_slice text = repeat("*0123456789", 65536);

    (void)state;
    send_text(text, 1300, false);
    print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
    run_case();
    send_text(text, 61, true);
    print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
    run_case();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        READER_TEST(test_a_text_of_any_length_is_read),
        READER_TEST(test_a_binary_message_is_refused_with_its_first_byte),
        READER_TEST(test_a_frame_without_a_mask_is_refused),
        READER_TEST(test_a_length_has_its_shortest_form),
        READER_TEST(test_every_mask_is_taken_off),
        READER_TEST(test_pings_and_pongs_are_told_with_their_payload),
        READER_TEST(test_each_of_many_pings_is_told),
        READER_TEST(test_a_control_frame_beyond_125_bytes_is_refused),
        READER_TEST(test_a_reserved_bit_is_refused),
        READER_TEST(test_a_reserved_opcode_is_refused),
        READER_TEST(test_a_control_frame_has_no_fragments),
        READER_TEST(test_fragments_make_one_message),
        READER_TEST(test_empty_fragments_count_for_nothing),
        READER_TEST(test_control_frames_come_between_fragments),
        READER_TEST(test_a_continuation_without_a_beginning_is_refused),
        READER_TEST(test_a_message_within_a_message_is_refused),
        READER_TEST(test_a_message_too_long_is_refused_with_its_head),
        READER_TEST(test_the_limit_counts_all_fragments),
        READER_TEST(test_what_is_whole_is_not_copied),
        READER_TEST(test_memory_is_held_only_within_a_message),
        READER_TEST(test_who_is_stopped_is_not_read),
        READER_TEST(test_without_memory_the_connection_ends_with_1011),
        READER_TEST(test_a_message_cut_into_many_fragments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
