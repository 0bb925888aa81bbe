/* test_websocket_reader.c - RFC 6455 from the side of a server, case by case.
 *
 * A case is a script of what a client sends and of what the reader is to tell about it. It is run
 * with the input whole, byte by byte and cut at several sizes; each piece is memory of its own that
 * ends where the piece ends. The cases follow the sections of the Autobahn test suite: 1 framing, 2
 * pings and pongs, 3 reserved bits, 4 opcodes, 5 fragments, 6 UTF-8, 7 closing, 9 limits, 10
 * others. Then random input is compared with a second reader, which is simple and slow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "gateway/http/websocket_reader.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/draw.h"

enum { FIN = 0x80, RSV1 = 0x40, MASKED = 0x80 };
enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };
enum { MAX_MESSAGE_BYTES = 128 << 10 };

static struct buffer sent;     /* by the client */
static struct buffer expected; /* what the reader is to tell, as print_item() writes it */

static int clear_case(void **state)
{
    (void)state;
    buffer_done(&sent);
    buffer_done(&expected);
    return 0;
}

/* ---- The client ---- */

/* A head as it is told to be, right or wrong; `form` is the length's first byte without the mask
 * bit. */
static void send_head(unsigned first, unsigned form, uint64_t length,
                      const unsigned char mask[static 4])
{
    int length_bytes = form == 126 ? 2 : form == 127 ? 8 : 0;

    buffer_append_char(&sent, (char)first);
    buffer_append_char(&sent, (char)(MASKED | form));
    for (int i = length_bytes - 1; i >= 0; i--)
        buffer_append_char(&sent, (char)(length >> (8 * i)));
    buffer_append(&sent, mask, 4);
}

/* Another mask each time. */
static void send_frame(unsigned first, struct sl_slice payload)
{
    static uint32_t last = 0x12345678;
    unsigned char mask[4];
    unsigned form = payload.size < 126 ? (unsigned)payload.size : payload.size <= 65535 ? 126 : 127;

    last = last * 1664525 + 1013904223;
    memcpy(mask, &last, sizeof(mask));
    send_head(first, form, payload.size, mask);
    for (size_t i = 0; i < payload.size; i++)
        buffer_append_char(&sent, (char)(payload.data[i] ^ mask[i % 4]));
}

#define SEND(first, literal) send_frame(first, SL_SLICE(literal))

static void send_close(unsigned code, struct sl_slice reason)
{
    char payload[200] = {(char)(code >> 8), (char)code};

    memcpy(payload + 2, reason.data, reason.size);
    send_frame(FIN | CLOSE, sl_slice(payload, 2 + reason.size));
}

/* ---- What the reader tells ---- */

static void print_item(struct buffer *text, enum websocket_item item, unsigned code,
                       struct sl_slice payload)
{
    static const char *const names[] = {[WEBSOCKET_MESSAGE] = "message",
                                        [WEBSOCKET_PING] = "ping",
                                        [WEBSOCKET_PONG] = "pong",
                                        [WEBSOCKET_CLOSE] = "close",
                                        [WEBSOCKET_FAULT] = "fault"};

    buffer_append_format(text, "%s %u %zu '", names[item], code, payload.size);
    buffer_append_slice(text, payload);
    buffer_append_str(text, "'\n");
}

#define EXPECT(item, literal) print_item(&expected, item, 0, SL_SLICE(literal))

static void expect_close(unsigned code, struct sl_slice reason)
{
    print_item(&expected, WEBSOCKET_CLOSE, code, reason);
}

static void expect_fault(unsigned code)
{
    print_item(&expected, WEBSOCKET_FAULT, code, SL_SLICE(""));
}

static void check_event(enum websocket_item item, const struct websocket_event *event)
{
    assert_non_null(event->payload.data);
    assert_true(item == WEBSOCKET_CLOSE || item == WEBSOCKET_FAULT || event->code == 0);
    if (item == WEBSOCKET_FAULT)
        assert_in_range(event->payload.size, 1, 60);
    if (item == WEBSOCKET_MESSAGE || item == WEBSOCKET_CLOSE)
        assert_true(utf8_is_valid(event->payload));
}

/* Gives one piece; appends what is told. */
static void read_piece(struct websocket_reader *reader, const char *data, size_t size,
                       struct buffer *told)
{
    unsigned char *copy = mem_copy(data, size);
    struct websocket_input input = {copy, size};
    struct websocket_event event;
    enum websocket_item item;

    while ((item = websocket_read(reader, &input, &event)) != WEBSOCKET_MORE) {
        check_event(item, &event);
        print_item(told, item, event.code, item == WEBSOCKET_FAULT ? SL_SLICE("") : event.payload);
    }
    assert_int_equal(input.size, 0);
    assert_ptr_equal(input.data, copy + size);
    mem_free(copy);
}

/* Reads all that was sent in pieces of `step` bytes and compares. */
static void run_in_steps(size_t step)
{
    struct websocket_reader reader;
    struct buffer told = BUFFER_INIT;

    websocket_reader_init(&reader, MAX_MESSAGE_BYTES);
    for (size_t at = 0; at < sent.size; at += step)
        read_piece(&reader, sent.data + at, sent.size - at < step ? sent.size - at : step, &told);
    if (told.size != expected.size || memcmp(told.data, expected.data, told.size) != 0)
        fail_msg("in steps of %zu: told\n%.500sexpected\n%.500s", step, buffer_str(&told),
                 buffer_str(&expected));
    buffer_done(&told);
    websocket_reader_done(&reader);
}

/* Runs the case and begins the next. */
static void run(void)
{
    static const size_t steps[] = {1, 2, 3, 4, 5, 7, 8, 13, 64, 127, 1000, 4096, 65537};

    buffer_append_char(&expected, '\0');
    expected.size--;
    run_in_steps(sent.size);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        run_in_steps(steps[i]);
    buffer_clear(&sent);
    buffer_clear(&expected);
}

/* The case ends in a fault, which is told with the byte sent[at] and not before. */
static void run_faulting_at(size_t at)
{
    struct websocket_reader reader;
    struct websocket_event event;
    size_t i = 0;

    websocket_reader_init(&reader, MAX_MESSAGE_BYTES);
    for (enum websocket_item item = WEBSOCKET_MORE; i < sent.size; i++) {
        unsigned char byte = (unsigned char)sent.data[i];
        struct websocket_input input = {&byte, 1};

        while ((item = websocket_read(&reader, &input, &event)) != WEBSOCKET_MORE)
            if (item == WEBSOCKET_FAULT)
                break;
        if (item == WEBSOCKET_FAULT)
            break;
    }
    assert_int_equal(i, at);
    websocket_reader_done(&reader);
    run();
}

static struct sl_slice repeat(const char *unit, size_t size)
{
    static char text[2 * MAX_MESSAGE_BYTES];
    size_t unit_size = strlen(unit);

    for (size_t i = 0; i < size; i++)
        text[i] = unit[i % unit_size];
    return sl_slice(text, size);
}

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
        run();
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
        run();
    }
}

/* ---- 2: pings and pongs ---- */

static void test_pings_and_pongs_are_told_with_their_payload(void **state)
{
    (void)state;
    SEND(FIN | PING, "");
    EXPECT(WEBSOCKET_PING, "");
    run();
    SEND(FIN | PING, "Hello, world!");
    EXPECT(WEBSOCKET_PING, "Hello, world!");
    run();
    SEND(FIN | PING, "\x00\xff\xfe\xfd\xfc\xfb\x00\xff");
    EXPECT(WEBSOCKET_PING, "\x00\xff\xfe\xfd\xfc\xfb\x00\xff");
    run();
    send_frame(FIN | PING, repeat("\xfe", 125));
    print_item(&expected, WEBSOCKET_PING, 0, repeat("\xfe", 125));
    run();
    SEND(FIN | PONG, "");
    SEND(FIN | PONG, "unsolicited");
    SEND(FIN | PING, "and a ping");
    EXPECT(WEBSOCKET_PONG, "");
    EXPECT(WEBSOCKET_PONG, "unsolicited");
    EXPECT(WEBSOCKET_PING, "and a ping");
    run();
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
    run();
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
        run();
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
        run();
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
    run();
    for (int i = 0; i < 5; i++)
        SEND(i == 0 ? TEXT : i == 4 ? FIN | CONTINUATION : CONTINUATION, "0123456789");
    SEND(FIN | TEXT, "whole");
    EXPECT(WEBSOCKET_MESSAGE, "01234567890123456789012345678901234567890123456789");
    EXPECT(WEBSOCKET_MESSAGE, "whole");
    run();
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
    run();
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
    run();
    SEND(TEXT, "");
    SEND(FIN | PING, "within an empty one");
    SEND(FIN | CONTINUATION, "");
    EXPECT(WEBSOCKET_PING, "within an empty one");
    EXPECT(WEBSOCKET_MESSAGE, "");
    run();
    SEND(TEXT, "never ended");
    SEND(FIN | PING, "ping");
    send_close(1000, SL_SLICE("bye"));
    EXPECT(WEBSOCKET_PING, "ping");
    expect_close(1000, SL_SLICE("bye"));
    run();
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
        run();
        SEND(FIN | TEXT, "whole");
        SEND(fins[i] | CONTINUATION, "");
        EXPECT(WEBSOCKET_MESSAGE, "whole");
        expect_fault(1002);
        run();
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
    "\xef\xbf\xbe", /* non-characters are code points all the same */
    "\xef\xbf\xbf",
    "\xf0\x90\x80\x80",
    "\xf0\x9f\xbf\xbe",
    "\xf3\xbf\xbf\xbf",
    "\xf4\x8f\xbf\xbf",
    "12345678\xe4\xb8\xad\x65\x66\x67\xf0\x9f\x98\x80",
};

/* `at`: the byte with which no continuation could make it valid; size: it is cut off. */
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

/* As fragments of `step` bytes, 0: none; an empty one behind it when `ends_empty`. */
static void send_text(struct sl_slice text, size_t step, bool ends_empty)
{
    size_t at = 0;

    if (step == 0)
        step = text.size;
    do {
        size_t left = text.size - at;
        bool is_last = left <= step && !ends_empty;

        send_frame((at == 0 ? TEXT : CONTINUATION) | (is_last ? FIN : 0),
                   sl_slice(text.data + at, left < step ? left : step));
        at += step;
    } while (at < text.size);
    if (ends_empty)
        send_frame(FIN | CONTINUATION, SL_SLICE(""));
}

static void test_utf8_may_be_cut_anywhere(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
        struct sl_slice text = sl_slice_str(good_texts[i]);

        for (size_t step = 0; step <= text.size; step++) {
            send_text(text, step, step % 2);
            print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
            run();
        }
    }
}

/* Head and mask of a short frame are six bytes. */
static void test_bad_utf8_is_refused_at_the_first_bad_byte(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
        struct sl_slice text = sl_slice_str(bad_texts[i].text);
        size_t at = bad_texts[i].at;

        send_text(text, 0,
                  false); /* what is cut off is seen with the last byte of the last frame */
        expect_fault(1007);
        run_faulting_at(6 + (at < text.size ? at : at - 1));
        send_text(text, 1, true); /* here: with the last byte of the head of the empty one */
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
    run();
}

/* ---- 7: closing ---- */

static void test_a_close_is_told_with_code_and_reason(void **state)
{
    (void)state;
    SEND(FIN | CLOSE, "");
    expect_close(1005, SL_SLICE(""));
    run();
    send_close(1000, SL_SLICE(""));
    expect_close(1000, SL_SLICE(""));
    run();
    send_close(1001, SL_SLICE("tsch\xc3\xbc\xc3\x9f"));
    expect_close(1001, SL_SLICE("tsch\xc3\xbc\xc3\x9f"));
    run();
    send_close(1000, repeat("*", 123));
    expect_close(1000, repeat("*", 123));
    run();
    send_close(1000, repeat("*", 124));
    expect_fault(1002);
    run();
    SEND(FIN | TEXT, "Hello");
    send_close(1000, SL_SLICE("bye"));
    EXPECT(WEBSOCKET_MESSAGE, "Hello");
    expect_close(1000, SL_SLICE("bye"));
    run();
}

static void test_a_close_of_one_byte_is_refused(void **state)
{
    (void)state;
    SEND(FIN | CLOSE, "\x03");
    expect_fault(1002);
    run_faulting_at(6);
}

static bool is_code_of_a_close(unsigned code)
{
    static const unsigned codes[] = {1000, 1001, 1002, 1003, 1007, 1008,
                                     1009, 1010, 1011, 1012, 1013, 1014};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code == codes[i])
            return true;
    return code >= 3000 && code < 5000;
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
        run();
    }
}

static void test_a_close_reason_is_utf8(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
        send_close(1000, sl_slice_str(good_texts[i]));
        expect_close(1000, sl_slice_str(good_texts[i]));
        run();
    }
    for (size_t i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
        send_close(1000, sl_slice_str(bad_texts[i].text));
        expect_fault(1007);
        run();
    }
}

static void test_nothing_is_read_behind_a_close(void **state)
{
    (void)state;
    send_close(1000, SL_SLICE(""));
    send_close(1001, SL_SLICE(""));
    expect_close(1000, SL_SLICE(""));
    run();
    send_close(1000, SL_SLICE(""));
    SEND(FIN | PING, "ping");
    expect_close(1000, SL_SLICE(""));
    run();
    send_close(1000, SL_SLICE(""));
    SEND(FIN | TEXT, "text");
    expect_close(1000, SL_SLICE(""));
    run();
    SEND(TEXT, "fragment1");
    send_close(1000, SL_SLICE("in the middle"));
    SEND(FIN | CONTINUATION, "fragment2");
    expect_close(1000, SL_SLICE("in the middle"));
    run();
    send_close(1000, SL_SLICE(""));
    buffer_append(&sent, "\xff\xff\xff\xff no frame at all", 20);
    expect_close(1000, SL_SLICE(""));
    run();
}

static void test_nothing_is_read_behind_a_fault(void **state)
{
    (void)state;
    SEND(FIN | RSV1 | TEXT, "bad");
    SEND(FIN | TEXT, "good");
    SEND(FIN | PING, "");
    send_close(1000, SL_SLICE(""));
    expect_fault(1002);
    run();
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
    run();
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
    websocket_reader_init(&reader, MAX_MESSAGE_BYTES);
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

/* Also that a long message is not given memory before it comes. */
static void test_memory_is_held_only_within_a_message(void **state)
{
    struct websocket_reader reader;
    struct buffer told = BUFFER_INIT;

    (void)state;
    websocket_reader_init(&reader, MAX_MESSAGE_BYTES);
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
    websocket_reader_init(&reader, MAX_MESSAGE_BYTES);
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
        websocket_reader_init(&reader, MAX_MESSAGE_BYTES);
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
    run();
    send_text(text, 61, true);
    print_item(&expected, WEBSOCKET_MESSAGE, 0, text);
    run();
}

/* ---- The second reader: everything at once, no state but where it stands ---- */

/* Could bytes behind it make it valid? Tried, not reasoned. */
static bool is_beginning_of_utf8(struct sl_slice text)
{
    static const char tails[] = "\x80\x90\xa0\xbf";
    char tried[8];

    while (text.size > 0) {
        const unsigned char *at = (const unsigned char *)text.data;
        size_t size = *at < 0x80 ? 1 : utf8_code_point_size(at, at + text.size);

        if (size == 0)
            break;
        text = sl_slice_from(text, size);
    }
    if (text.size == 0 || text.size > 3)
        return text.size == 0;
    for (size_t total = text.size + 1; total <= 4; total++) {
        for (int i = 0; i < 64; i++) {
            memcpy(tried, text.data, text.size);
            for (size_t k = text.size; k < total; k++)
                tried[k] = tails[i >> (2 * (k - text.size)) & 3];
            if (utf8_code_point_size((unsigned char *)tried, (unsigned char *)tried + total) ==
                total)
                return true;
        }
    }
    return false;
}

struct reference {
    const unsigned char *bytes;
    size_t size, at;
    struct buffer message;
    bool is_in_message;
    struct buffer told;
};

static bool refuse(struct reference *reference, unsigned code)
{
    print_item(&reference->told, WEBSOCKET_FAULT, code, SL_SLICE(""));
    return false;
}

static bool reference_control(struct reference *reference, unsigned opcode, struct sl_slice payload)
{
    const unsigned char *bytes = (const unsigned char *)payload.data;

    if (opcode != CLOSE) {
        print_item(&reference->told, opcode == PING ? WEBSOCKET_PING : WEBSOCKET_PONG, 0, payload);
        return true;
    }
    if (payload.size == 0)
        print_item(&reference->told, WEBSOCKET_CLOSE, 1005, payload);
    else if (payload.size == 1 || !is_code_of_a_close(bytes[0] * 256u + bytes[1]))
        return refuse(reference, 1002);
    else if (!utf8_is_valid(sl_slice_from(payload, 2)))
        return refuse(reference, 1007);
    else
        print_item(&reference->told, WEBSOCKET_CLOSE, bytes[0] * 256u + bytes[1],
                   sl_slice_from(payload, 2));
    return false;
}

/* False: nothing further is read. */
static bool reference_data(struct reference *reference, bool is_final, struct sl_slice payload,
                           bool is_whole)
{
    buffer_append_slice(&reference->message, payload);
    if (!is_beginning_of_utf8(buffer_slice(&reference->message)))
        return refuse(reference, 1007);
    reference->is_in_message = !is_final;
    if (!is_whole || !is_final)
        return is_whole;
    if (!utf8_is_valid(buffer_slice(&reference->message)))
        return refuse(reference, 1007);
    print_item(&reference->told, WEBSOCKET_MESSAGE, 0, buffer_slice(&reference->message));
    buffer_clear(&reference->message);
    return true;
}

static bool reference_frame(struct reference *reference, uint32_t max_message_bytes)
{
    const unsigned char *bytes = reference->bytes + reference->at;
    size_t left = reference->size - reference->at;
    size_t length_bytes, head;
    uint64_t length;
    unsigned opcode;
    char payload[4096];

    if (left < 1)
        return false;
    opcode = bytes[0] & 15;
    if ((bytes[0] & 0x70) || (opcode > BINARY && opcode < CLOSE) || opcode > PONG ||
        (opcode >= CLOSE && !(bytes[0] & FIN)) ||
        (opcode <= BINARY && (opcode == CONTINUATION) != reference->is_in_message))
        return refuse(reference, 1002);
    if (opcode == BINARY)
        return refuse(reference, 1003);
    if (left < 2)
        return false;
    length = bytes[1] & 127;
    if (!(bytes[1] & MASKED) || (opcode >= CLOSE && length > 125))
        return refuse(reference, 1002);
    length_bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (left < 2 + length_bytes)
        return false;
    if (length_bytes) {
        length = 0;
        for (size_t i = 0; i < length_bytes; i++)
            length = length * 256 + bytes[2 + i];
        if (length < (length_bytes == 2 ? 126 : 65536) || length >> 63)
            return refuse(reference, 1002);
    }
    if (opcode < CLOSE && length + reference->message.size > max_message_bytes)
        return refuse(reference, 1009);
    head = 2 + length_bytes + 4;
    if (left < head)
        return false;
    assert_in_range(length, 0, sizeof(payload));
    left = left - head < length ? left - head : length;
    for (size_t i = 0; i < left; i++)
        payload[i] = (char)(bytes[head + i] ^ bytes[head - 4 + i % 4]);
    reference->at += head + left;
    if (opcode < CLOSE)
        return reference_data(reference, bytes[0] & FIN, sl_slice(payload, left), left == length);
    return left == length && reference_control(reference, opcode, sl_slice(payload, left));
}

static void random_payload(struct buffer *payload, size_t size)
{
    static const char *const units[] = {"a", "bc", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80"};

    buffer_clear(payload);
    while (payload->size < size)
        buffer_append_str(payload, units[draw(5)]);
    if (payload->size > 1 && draw(40) == 0)
        payload->size -= 1; /* often within a code point */
    if (draw(60) == 0)
        payload->data[draw((uint32_t)payload->size)] = (char)draw(256);
}

static void random_input(void)
{
    struct buffer payload = BUFFER_INIT;
    bool is_in_message = false;

    for (uint32_t frames = 1 + draw(12); frames > 0; frames--) {
        size_t size = 1 + draw(draw(4) == 0 ? 300 : 12);
        unsigned first;

        if (draw(3)) {
            first = (is_in_message ? CONTINUATION : TEXT) | (draw(2) ? FIN : 0);
            is_in_message = !(first & FIN);
        } else {
            first = FIN | (draw(8) == 0 ? CLOSE : PING + draw(2));
        }
        if (draw(100) == 0)
            first = draw(4) ? draw(256) : FIN | BINARY;
        random_payload(&payload, first & 8 && size > 110 ? 110 : size);
        if (first == (FIN | CLOSE) && draw(4))
            memcpy(payload.data, "\x03\xe8", payload.size < 2 ? payload.size : 2);
        if (draw(10) == 0)
            payload.size = 0;
        send_frame(first, buffer_slice(&payload));
        if (draw(200) == 0)
            sent.data[draw((uint32_t)sent.size)] = (char)draw(256);
    }
    if (draw(4) == 0)
        sent.size -= draw((uint32_t)sent.size);
    buffer_done(&payload);
}

static void test_random_input_is_read_as_the_second_reader_reads_it(void **state)
{
    static const char *const all[] = {"message 0",  "ping",       "pong",
                                      "close 1005", "close 1000", "fault 1002",
                                      "fault 1003", "fault 1007", "fault 1009"};
    bool has_come[sizeof(all) / sizeof(all[0])] = {false};

    (void)state;
    draw_begin();
    for (int i = 0; i < 20000; i++) {
        uint32_t max_message_bytes = draw(4) ? 4000 : 200;
        struct reference reference = {.message = BUFFER_INIT, .told = BUFFER_INIT};
        struct websocket_reader reader;
        struct buffer told = BUFFER_INIT;

        buffer_clear(&sent);
        random_input();
        reference.bytes = (unsigned char *)sent.data;
        reference.size = sent.size;
        while (reference_frame(&reference, max_message_bytes))
            ;
        websocket_reader_init(&reader, max_message_bytes);
        for (size_t at = 0, step; at < sent.size; at += step) {
            step = 1 + draw(draw(2) ? 8 : 400);
            step = step < sent.size - at ? step : sent.size - at;
            read_piece(&reader, sent.data + at, step, &told);
            assert_true(reader.held.size <= max_message_bytes + WEBSOCKET_CONTROL_MAX_BYTES);
        }
        assert_true(sl_slice_equal(buffer_slice(&told), buffer_slice(&reference.told)));
        for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            if (told.size > 0 && memmem(told.data, told.size, all[k], strlen(all[k])))
                has_come[k] = true;
        websocket_reader_done(&reader);
        buffer_done(&told);
        buffer_done(&reference.message);
        buffer_done(&reference.told);
    }
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (!has_come[i])
            fail_msg("'%s' never came", all[i]);
}

#define READER_TEST(test) cmocka_unit_test_teardown(test, clear_case)

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
        READER_TEST(test_a_message_too_long_is_refused_with_its_head),
        READER_TEST(test_the_limit_counts_all_fragments),
        READER_TEST(test_what_is_whole_is_not_copied),
        READER_TEST(test_memory_is_held_only_within_a_message),
        READER_TEST(test_who_is_stopped_is_not_read),
        READER_TEST(test_without_memory_the_connection_ends_with_1011),
        READER_TEST(test_a_message_cut_into_many_fragments),
        READER_TEST(test_random_input_is_read_as_the_second_reader_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
