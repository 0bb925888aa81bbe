#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/delivery/frame.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"

static struct buffer frame;

static int free_frame(void **state)
{
    (void)state;
    buffer_done(&frame);
    return 0;
}

/* Compares, including NULs, and empties the buffer. */
static void expect_bytes(struct buffer *actual, const void *bytes, size_t size)
{
    assert_false(actual->failed);
    assert_int_equal(actual->size, size);
    assert_memory_equal(actual->data, bytes, size);
    buffer_clear(actual);
}

#define EXPECT(literal) expect_bytes(&frame, literal, sizeof(literal) - 1)

static void test_ndjson_is_a_line_in_a_chunk(void **state)
{
    (void)state;
    frame_append_message(&frame, FORMAT_NDJSON, "gap", SL_SLICE("{\"n\":1}"));
    EXPECT("9\r\n{\"n\":1}\r\n\r\n");
    frame_append_message(&frame, FORMAT_NDJSON, "gap", SL_SLICE("{\"n\":12345678}"));
    EXPECT("10\r\n{\"n\":12345678}\r\n\r\n");
}

static void test_delimited_counts_the_line_end(void **state)
{
    (void)state;
    frame_append_message(&frame, FORMAT_DELIMITED, "gap", SL_SLICE("{\"n\":1}"));
    EXPECT("c\r\n9\r\n{\"n\":1}\r\n\r\n");
    frame_append_message(&frame, FORMAT_DELIMITED, "gap", SL_SLICE("{\"n\":12}"));
    EXPECT("e\r\n10\r\n{\"n\":12}\r\n\r\n");
}

static void test_a_message_on_sse_has_a_name_and_no_id(void **state)
{
    (void)state;
    frame_append_message(&frame, FORMAT_SSE, "disconnect", SL_SLICE("{}"));
    EXPECT("1c\r\nevent: disconnect\ndata: {}\n\n\r\n");
}

/* The frame of a short event in one format, as a C string. */
static const char *framed(struct event *event, enum stream_format format)
{
    struct sl_slice bytes = frame_of_event(event, format);

    assert_non_null(bytes.data);
    buffer_clear(&frame);
    buffer_append_slice(&frame, bytes);
    return buffer_str(&frame);
}

#define FOLLOW                                                                                     \
    "{\"id\":\"7\",\"type\":\"follow\",\"user\":{\"id\":\"1\"},\"target\":{\"id\":\"2\"}}"

static void test_an_event_in_each_format(void **state)
{
    struct event *event = event_graph(7, "follow", "1", "2");

    (void)state;
    assert_int_equal(sizeof(FOLLOW) - 1, 0x40);
    assert_string_equal(framed(event, FORMAT_WEBSOCKET), "\x81\x40" FOLLOW);
    assert_string_equal(framed(event, FORMAT_NDJSON), "42\r\n" FOLLOW "\r\n\r\n");
    assert_string_equal(framed(event, FORMAT_DELIMITED), "46\r\n66\r\n" FOLLOW "\r\n\r\n");
    assert_string_equal(framed(event, FORMAT_SSE),
                        "5c\r\nid: 7\nevent: follow\ndata: " FOLLOW "\n\n\r\n");
    event_unref(event);
}

static void test_an_event_outside_of_the_log_does_not_move_the_cursor(void **state)
{
    struct event *event = event_graph(0, "unfollow", "1", "2");
    const char *sse = framed(event, FORMAT_SSE);

    (void)state;
    assert_non_null(strstr(sse, "\r\nevent: unfollow\ndata: {"));
    assert_null(strstr(sse, "id: "));
    event_unref(event);
}

static void test_the_longest_id_fits(void **state)
{
    struct event *event = event_graph(((uint64_t)1 << 53) - 1, "unfollow", "1", "2");

    (void)state;
    assert_non_null(
        strstr(framed(event, FORMAT_SSE), "\r\nid: 9007199254740991\nevent: unfollow\ndata: {"));
    event_unref(event);
}

static void test_a_frame_is_built_once_and_counted(void **state)
{
    struct event *event = event_post(1, "ada", "hello");
    size_t bytes = event->bytes;
    struct sl_slice first = frame_of_event(event, FORMAT_SSE);

    (void)state;
    assert_true(event->bytes >= bytes + first.size);
    bytes = event->bytes;
    assert_ptr_equal(frame_of_event(event, FORMAT_SSE).data, first.data);
    assert_int_equal(event->bytes, bytes);
    assert_ptr_not_equal(frame_of_event(event, FORMAT_NDJSON).data, first.data);
    event_unref(event);
}

static void test_without_memory_there_is_no_frame_and_a_later_try_succeeds(void **state)
{
    struct event *event = event_post(1, "ada", "hello");
    size_t bytes = event->bytes;

    (void)state;
    for (int format = 0; format < FORMAT_COUNT; format++) {
        for (uint64_t n = 0;; n++) {
            struct sl_slice built;

            mem_fail_after(n);
            built = frame_of_event(event, (enum stream_format)format);
            mem_fail_never();
            if (built.data)
                break;
            assert_true(mem_failed());
            assert_int_equal(event->bytes, bytes);
        }
        assert_true(event->bytes > bytes);
        bytes = event->bytes;
    }
    event_unref(event);
}

static void expect_websocket_head(size_t payload_size, const char *head, size_t head_size)
{
    char *payload = calloc(1, payload_size + 1);
    unsigned char room[FRAME_WEBSOCKET_HEAD_SIZE];

    assert_non_null(payload);
    assert_int_equal(frame_websocket_head(FRAME_OPCODE_TEXT, payload_size, room), head_size);
    assert_memory_equal(room, head, head_size);
    memset(payload, 'x', payload_size);
    frame_append_message(&frame, FORMAT_WEBSOCKET, "", sl_slice(payload, payload_size));
    assert_int_equal(frame.size, head_size + payload_size);
    assert_memory_equal(frame.data, head, head_size);
    assert_memory_equal(frame.data + head_size, payload, payload_size);
    buffer_clear(&frame);
    free(payload);
}

#define EXPECT_HEAD(payload_size, literal)                                                         \
    expect_websocket_head(payload_size, literal, sizeof(literal) - 1)

static void test_websocket_lengths_have_the_shortest_form(void **state)
{
    unsigned char room[FRAME_WEBSOCKET_HEAD_SIZE];

    (void)state;
    EXPECT_HEAD(0, "\x81\x00");
    EXPECT_HEAD(1, "\x81\x01");
    EXPECT_HEAD(125, "\x81\x7d");
    EXPECT_HEAD(126, "\x81\x7e\x00\x7e");
    EXPECT_HEAD(127, "\x81\x7e\x00\x7f");
    EXPECT_HEAD(256, "\x81\x7e\x01\x00");
    EXPECT_HEAD(65535, "\x81\x7e\xff\xff");
    EXPECT_HEAD(65536, "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00");
    EXPECT_HEAD(0x123456, "\x81\x7f\x00\x00\x00\x00\x00\x12\x34\x56");
    assert_int_equal(frame_websocket_head(FRAME_OPCODE_CLOSE, 2, room), 2);
    assert_memory_equal(room, "\x88\x02", 2);
}

static void test_a_close_frame_has_room_for_123_bytes_of_reason(void **state)
{
    char reason[130];

    (void)state;
    frame_append_close(&frame, 1001, SL_SLICE("draining"));
    EXPECT("\x88\x0a\x03\xe9"
           "draining");
    frame_append_close(&frame, 4999, SL_SLICE(""));
    EXPECT("\x88\x02\x13\x87");
    frame_append_close(&frame, 1005, SL_SLICE("left out"));
    EXPECT("\x88\x00");
    memset(reason, 'a', sizeof(reason));
    for (size_t size = 120; size <= sizeof(reason); size++) {
        frame_append_close(&frame, 1000, sl_slice(reason, size));
        assert_int_equal(frame.size, 4 + (size < 123 ? size : 123));
        assert_int_equal(frame.data[1], frame.size - 2);
        buffer_clear(&frame);
    }
    memcpy(reason + 121, "\xe4\xb8\xad", 3); /* is one byte too long */
    frame_append_close(&frame, 1000, sl_slice(reason, sizeof(reason)));
    assert_int_equal(frame.size, 4 + 121);
    assert_int_equal(frame.data[1], 2 + 121);
}

static void test_a_pong_repeats_the_payload(void **state)
{
    (void)state;
    frame_append_pong(&frame, SL_SLICE(""));
    EXPECT("\x8a\x00");
    frame_append_pong(&frame, SL_SLICE("\xff\x00"));
    EXPECT("\x8a\x02\xff\x00");
}

static void test_keep_alives(void **state)
{
    (void)state;
    frame_append_keepalive(&frame, FORMAT_WEBSOCKET, &(struct sl_cursor){.id = 5});
    EXPECT("\x89\x00");
    frame_append_keepalive(&frame, FORMAT_NDJSON, &(struct sl_cursor){.id = 5});
    EXPECT("2\r\n\r\n\r\n");
    frame_append_keepalive(&frame, FORMAT_DELIMITED, &(struct sl_cursor){.id = 5});
    EXPECT("2\r\n\r\n\r\n");
    frame_append_keepalive(&frame, FORMAT_SSE, &(struct sl_cursor){.id = 5});
    EXPECT("7\r\nid: 5\n\n\r\n");
    frame_append_keepalive(&frame, FORMAT_SSE, &(struct sl_cursor){.id = SL_ID_MAX});
    EXPECT("16\r\nid: 9007199254740991\n\n\r\n");
    frame_append_keepalive(&frame, FORMAT_SSE, NULL);
    EXPECT("3\r\n:\n\n\r\n");
}

static void test_only_sse_is_told_when_to_come_back(void **state)
{
    (void)state;
    frame_append_retry(&frame, FORMAT_SSE, UINT32_MAX);
    EXPECT("13\r\nretry: 4294967295\n\n\r\n");
    frame_append_retry(&frame, FORMAT_WEBSOCKET, 1);
    frame_append_retry(&frame, FORMAT_NDJSON, 1);
    frame_append_retry(&frame, FORMAT_DELIMITED, 1);
    EXPECT("");
}

/* Every chunk gives the size of its content, and that content is what HTTP/1.0 gets. */
static void test_unchunked_is_exactly_what_the_chunk_says_it_holds(void **state)
{
    static const enum stream_format formats[] = {FORMAT_NDJSON, FORMAT_DELIMITED, FORMAT_SSE};
    char json[5000];

    (void)state;
    memset(json, '\n', sizeof(json)); /* the end of the first line must not be taken from here */
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        for (size_t size = 0; size <= sizeof(json); size += size < 300 ? 1 : 517) {
            struct sl_slice inside;
            char *line_end;

            frame_append_message(&frame, formats[i], "warning", sl_slice(json, size));
            inside = frame_unchunk(buffer_slice(&frame));
            assert_int_equal(strtoul(frame.data, &line_end, 16), inside.size);
            assert_ptr_equal(inside.data, line_end + 2);
            assert_memory_equal(line_end, "\r\n", 2);
            assert_ptr_equal(inside.data + inside.size + 2, frame.data + frame.size);
            assert_memory_equal(inside.data + inside.size, "\r\n", 2);
            buffer_clear(&frame);
        }
    }
    frame_append_keepalive(&frame, FORMAT_NDJSON, NULL);
    assert_true(sl_slice_is(frame_unchunk(buffer_slice(&frame)), "\r\n"));
}

#define FRAME_TEST(test) cmocka_unit_test_teardown(test, free_frame)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRAME_TEST(test_ndjson_is_a_line_in_a_chunk),
        FRAME_TEST(test_delimited_counts_the_line_end),
        FRAME_TEST(test_a_message_on_sse_has_a_name_and_no_id),
        FRAME_TEST(test_an_event_in_each_format),
        FRAME_TEST(test_an_event_outside_of_the_log_does_not_move_the_cursor),
        FRAME_TEST(test_the_longest_id_fits),
        FRAME_TEST(test_a_frame_is_built_once_and_counted),
        FRAME_TEST(test_without_memory_there_is_no_frame_and_a_later_try_succeeds),
        FRAME_TEST(test_websocket_lengths_have_the_shortest_form),
        FRAME_TEST(test_a_close_frame_has_room_for_123_bytes_of_reason),
        FRAME_TEST(test_a_pong_repeats_the_payload),
        FRAME_TEST(test_keep_alives),
        FRAME_TEST(test_only_sse_is_told_when_to_come_back),
        FRAME_TEST(test_unchunked_is_exactly_what_the_chunk_says_it_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
