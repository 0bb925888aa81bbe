/* test_websocket_random.c - random input, read by the WebSocket frame reader and by a second one,
 * which is simple and slow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/draw.h"
#include "tests/support/websocket_script.h"

/* ---- The second reader: gets everything at once, its only state is its position ---- */

/* Could more bytes make it valid? Found by trying, not by reasoning. */
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

/* False: stop reading. */
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
        websocket_reader_init(&reader, max_message_bytes, false);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        READER_TEST(test_random_input_is_read_as_the_second_reader_reads_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
