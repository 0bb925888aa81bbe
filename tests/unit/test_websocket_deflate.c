#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "gateway/http/websocket_deflate.h"
#include "tests/support/cmocka_all.h"

/* --- offers --- */

static void expect_answer(const char *const lines[HTTP_LIST_LINES], const char *answer)
{
    struct buffer header = BUFFER_INIT;
    struct http_list offers = {0};
    struct websocket_deflate deflate;

    for (size_t i = 0; i < HTTP_LIST_LINES; i++)
        offers.lines[i] = sl_slice_str(lines[i]);
    deflate = websocket_deflate_choose(&offers);
    websocket_deflate_append_header(&deflate, &header);
    if (!sl_slice_is(buffer_slice(&header), answer))
        fail_msg("'%s' is answered with '%s'", lines[0], buffer_str(&header));
    buffer_done(&header);
}

#define AGREED "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover"

static void test_an_offer_is_agreed_to_or_declined(void **state)
{
    static const struct {
        const char *offer, *answer;
    } cases[] = {
        {NULL, ""},
        {"", ""},
        {"permessage-deflate", AGREED "\r\n"},
        {"PerMessage-Deflate", AGREED "\r\n"},
        {"permessage-deflate; client_max_window_bits", AGREED "\r\n"},
        {"permessage-deflate; client_max_window_bits=8", AGREED "\r\n"},
        {"permessage-deflate;client_no_context_takeover", AGREED "\r\n"},
        {"permessage-deflate; server_no_context_takeover",
         AGREED "; server_no_context_takeover\r\n"},
        {"permessage-deflate; server_max_window_bits=15", AGREED "; server_max_window_bits=15\r\n"},
        {"permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
         AGREED "; server_max_window_bits=12\r\n"},
        {"permessage-deflate; server_max_window_bits=\"13\"",
         AGREED "; server_max_window_bits=13\r\n"},
        {"permessage-deflate; server_max_window_bits=14; server_no_context_takeover",
         AGREED "; server_no_context_takeover; server_max_window_bits=14\r\n"},
        /* declined: windows that are too small, or missing */
        {"permessage-deflate; server_max_window_bits=11", ""},
        {"permessage-deflate; server_max_window_bits=8", ""},
        {"permessage-deflate; server_max_window_bits=16", ""},
        {"permessage-deflate; server_max_window_bits=012", ""},
        {"permessage-deflate; server_max_window_bits=1x", ""},
        {"permessage-deflate; server_max_window_bits=", ""},
        {"permessage-deflate; server_max_window_bits=\"", ""},
        {"permessage-deflate; server_max_window_bits=\"12", ""},
        {"permessage-deflate; server_max_window_bits", ""},
        {"permessage-deflate; client_max_window_bits=7", ""},
        {"permessage-deflate; client_max_window_bits=", ""},
        {"permessage-deflate; client_max_window_bits=1000", ""},
        /* declined: values of parameters without values, repeated, unknown, malformed */
        {"permessage-deflate; server_no_context_takeover=true", ""},
        {"permessage-deflate; client_no_context_takeover=", ""},
        {"permessage-deflate; client_no_context_takeover; client_no_context_takeover", ""},
        {"permessage-deflate; server_max_window_bits=12; server_max_window_bits=12", ""},
        {"permessage-deflate; client_max_window_bits; client_max_window_bits=9", ""},
        {"permessage-deflate; something", ""},
        {"permessage-deflate; ", ""},
        {"permessage-deflate;", ""},
        {"permessage-deflate; =1", ""},
        {"permessage-deflate; ; client_max_window_bits", ""},
        {"permessage-deflate=1", ""},
        {"permessage-deflate client_max_window_bits", ""},
        {"x-webkit-deflate-frame", ""},
        {"permessage-bzip2", ""},
        /* the first acceptable one */
        {"permessage-deflate; server_max_window_bits=8, permessage-deflate", AGREED "\r\n"},
        {"x, permessage-deflate; server_max_window_bits=12, permessage-deflate",
         AGREED "; server_max_window_bits=12\r\n"},
        {"permessage-deflate; a=\"\\\"\", permessage-deflate", AGREED "\r\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_answer((const char *const[HTTP_LIST_LINES]){cases[i].offer}, cases[i].answer);
}

static void test_the_lines_of_the_header_are_one_list(void **state)
{
    (void)state;
    expect_answer(
        (const char *const[HTTP_LIST_LINES]){"a, b", "permessage-deflate; x", "c",
                                             "permessage-deflate; server_max_window_bits=14"},
        AGREED "; server_max_window_bits=14\r\n");
}

static void test_a_hundred_offers(void **state)
{
    struct buffer offers = BUFFER_INIT;

    (void)state;
    for (int i = 0; i < 100; i++)
        buffer_append_str(&offers, "permessage-deflate; server_max_window_bits=9, x; y=z, ");
    buffer_append_str(&offers, "permessage-deflate");
    expect_answer((const char *const[HTTP_LIST_LINES]){buffer_str(&offers)}, AGREED "\r\n");
    buffer_done(&offers);
}

/* --- messages --- */

static struct websocket_inflater *inflater;

static int begin(void **state)
{
    (void)state;
    inflater = websocket_inflater_new();
    return inflater ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    websocket_inflater_free(inflater);
    return 0;
}

/* One stream of deflate, terminated according to `flush`. */
static void append_deflated(struct buffer *message, struct sl_slice text, int level, int flush)
{
    z_stream stream = {0};
    char *room;

    assert_int_equal(deflateInit2(&stream, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    room = buffer_reserve(message, deflateBound(&stream, text.size) + 64);
    stream.next_in = (Bytef *)text.data;
    stream.avail_in = (uInt)text.size;
    stream.next_out = (Bytef *)room;
    stream.avail_out = (uInt)deflateBound(&stream, text.size) + 64;
    deflate(&stream, flush);
    message->size += stream.total_out;
    deflateEnd(&stream);
}

static void expect_inflated(struct sl_slice message, size_t max_bytes, int r, struct sl_slice text)
{
    struct sl_slice inflated;

    assert_int_equal(websocket_inflate(inflater, message, max_bytes, &inflated), r);
    if (r < 0)
        return;
    assert_int_equal(inflated.size, text.size);
    assert_memory_equal(inflated.data, text.data, text.size);
    websocket_inflater_release(inflater);
}

static void test_a_message_of_every_size_and_level(void **state)
{
    struct buffer text = BUFFER_INIT;

    (void)state;
    for (size_t size = 0; size < 200000; size = size * 2 + 1) {
        while (text.size < size)
            buffer_append_format(&text, "{\"n\":%zu},", text.size * 7919 % 1000);
        for (int level = 0; level <= 9; level += 3) {
            struct buffer message = BUFFER_INIT;
            struct sl_slice said = sl_slice(text.data, size);

            append_deflated(&message, said, level, Z_SYNC_FLUSH);
            message.size -= 4;
            expect_inflated(buffer_slice(&message), size, 0, said);
            if (size > 0)
                expect_inflated(buffer_slice(&message), size - 1, -EMSGSIZE, said);
            buffer_done(&message);
        }
    }
    buffer_done(&text);
}

/* RFC 7692, section 7.2.3: one block, two blocks, none compressed, with BFINAL. */
static void test_the_examples_of_the_rfc(void **state)
{
    static const unsigned char one[] = {0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00};
    static const unsigned char two[] = {0xf2, 0x48, 0x05, 0x00, 0x00, 0x00, 0xff,
                                        0xff, 0xca, 0xc9, 0xc9, 0x07, 0x00};
    static const unsigned char stored[] = {0x00, 0x05, 0x00, 0xfa, 0xff, 0x48,
                                           0x65, 0x6c, 0x6c, 0x6f, 0x00};
    static const unsigned char final[] = {0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00};

    (void)state;
    expect_inflated(sl_slice((const char *)one, sizeof(one)), 5, 0, SL_SLICE("Hello"));
    expect_inflated(sl_slice((const char *)two, sizeof(two)), 5, 0, SL_SLICE("Hello"));
    expect_inflated(sl_slice((const char *)stored, sizeof(stored)), 5, 0, SL_SLICE("Hello"));
    expect_inflated(sl_slice((const char *) final, sizeof(final)), 5, 0, SL_SLICE("Hello"));
}

static void test_a_message_may_have_several_streams_that_are_one_history(void **state)
{
    /* "Hello" terminated with BFINAL, and a second stream that refers to it. */
    static const unsigned char back[] = {0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07,
                                         0x00, 0x02, 0x13, 0x00, 0x00};
    struct buffer message = BUFFER_INIT;

    (void)state;
    append_deflated(&message, SL_SLICE("Hello, "), 9, Z_FINISH);
    append_deflated(&message, SL_SLICE("world"), 9, Z_SYNC_FLUSH);
    message.size -= 4;
    expect_inflated(buffer_slice(&message), 100, 0, SL_SLICE("Hello, world"));
    buffer_done(&message);
    expect_inflated(sl_slice((const char *)back, sizeof(back)), 100, 0, SL_SLICE("HelloHello"));
}

static void test_nothing_is_kept_between_messages(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) /* refers to 5 bytes before, which do not exist */
        expect_inflated(SL_SLICE("\x02\x13\x00\x00"), 100, -EBADMSG, SL_SLICE_NONE);
}

static void test_what_is_not_a_message(void **state)
{
    (void)state;
    expect_inflated(SL_SLICE(""), 100, -EBADMSG, SL_SLICE_NONE);
    expect_inflated(SL_SLICE("\xff"), 100, -EBADMSG, SL_SLICE_NONE);
    expect_inflated(SL_SLICE("\x00\x09\x00\xf6\xff\x48"), 100, -EBADMSG, SL_SLICE_NONE);
    expect_inflated(SL_SLICE("\x00\x01\x00\xfe\xff\xff\x00"), 100, -EILSEQ, SL_SLICE_NONE);
}

static void test_a_bomb_is_stopped_at_the_bound(void **state)
{
    struct buffer text = BUFFER_INIT, message = BUFFER_INIT;

    (void)state;
    memset(buffer_reserve(&text, 64 << 20), ' ', 64 << 20);
    text.size = 64 << 20;
    append_deflated(&message, buffer_slice(&text), 9, Z_SYNC_FLUSH);
    assert_true(message.size < 100000);
    message.size -= 4;
    expect_inflated(buffer_slice(&message), 1000, -EMSGSIZE, SL_SLICE_NONE);
    buffer_done(&text);
    buffer_done(&message);
}

static void test_the_number_of_deflate_streams_is_limited(void **state)
{
    struct buffer message = BUFFER_INIT;

    (void)state;
    for (int i = 0; i < 16; i++)
        buffer_append(&message, "\x03", 2);
    buffer_append(&message, "", 1);
    expect_inflated(buffer_slice(&message), 100, 0, SL_SLICE(""));
    message.size--;
    buffer_append(&message, "\x03\0", 3);
    expect_inflated(buffer_slice(&message), 100, -EBADMSG, SL_SLICE_NONE);
    buffer_done(&message);
}

static void test_out_of_memory_is_told(void **state)
{
    struct websocket_inflater *made = NULL;
    struct sl_slice text;
    int r = -1;

    (void)state;
    for (uint64_t n = 0; !made; n++) {
        assert_true(n < 10);
        mem_fail_after(n);
        made = websocket_inflater_new();
        mem_fail_never();
    }
    for (uint64_t n = 0; r < 0; n++) {
        assert_true(n < 10);
        mem_fail_after(n);
        r = websocket_inflate(made, SL_SLICE("\xf2\x48\xcd\xc9\xc9\x07\x00"), 100, &text);
        mem_fail_never();
        assert_int_equal(r, r < 0 ? -ENOMEM : 0);
    }
    assert_true(sl_slice_is(text, "Hello"));
    websocket_inflater_free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_offer_is_agreed_to_or_declined),
        cmocka_unit_test(test_the_lines_of_the_header_are_one_list),
        cmocka_unit_test(test_a_hundred_offers),
        cmocka_unit_test(test_a_message_of_every_size_and_level),
        cmocka_unit_test(test_the_examples_of_the_rfc),
        cmocka_unit_test(test_a_message_may_have_several_streams_that_are_one_history),
        cmocka_unit_test(test_nothing_is_kept_between_messages),
        cmocka_unit_test(test_what_is_not_a_message),
        cmocka_unit_test(test_a_bomb_is_stopped_at_the_bound),
        cmocka_unit_test(test_the_number_of_deflate_streams_is_limited),
        cmocka_unit_test(test_out_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
