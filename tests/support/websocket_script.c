#include "tests/support/websocket_script.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tests/support/cmocka_all.h"

struct buffer sent, expected;

int clear_case(void **state)
{
    (void)state;
    buffer_done(&sent);
    buffer_done(&expected);
    return 0;
}

/* ---- The client ---- */

/* A frame header, correct or not; `form` is the length's first byte without the mask bit. */
void send_head(unsigned first, unsigned form, uint64_t length, const unsigned char mask[static 4])
{
    int length_bytes = form == 126 ? 2 : form == 127 ? 8 : 0;

    buffer_append_char(&sent, (char)first);
    buffer_append_char(&sent, (char)(MASKED | form));
    for (int i = length_bytes - 1; i >= 0; i--)
        buffer_append_char(&sent, (char)(length >> (8 * i)));
    buffer_append(&sent, mask, 4);
}

/* With a different mask each time. */
void send_frame(unsigned first, struct sl_slice payload)
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

void send_close(unsigned code, struct sl_slice reason)
{
    char payload[200] = {(char)(code >> 8), (char)code};

    memcpy(payload + 2, reason.data, reason.size);
    send_frame(FIN | CLOSE, sl_slice(payload, 2 + reason.size));
}

/* ---- What the reader reports ---- */

void print_item(struct buffer *text, enum websocket_item item, unsigned code,
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

void expect_close(unsigned code, struct sl_slice reason)
{
    print_item(&expected, WEBSOCKET_CLOSE, code, reason);
}

void expect_fault(unsigned code)
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

/* Passes one piece; appends what is reported. */
void read_piece(struct websocket_reader *reader, const char *data, size_t size, struct buffer *told)
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

    websocket_reader_init(&reader, MAX_MESSAGE_BYTES, false);
    for (size_t at = 0; at < sent.size; at += step)
        read_piece(&reader, sent.data + at, sent.size - at < step ? sent.size - at : step, &told);
    if (told.size != expected.size || memcmp(told.data, expected.data, told.size) != 0)
        fail_msg("in steps of %zu: told\n%.500sexpected\n%.500s", step, buffer_str(&told),
                 buffer_str(&expected));
    buffer_done(&told);
    websocket_reader_done(&reader);
}

/* Runs the case and starts the next. */
void run_case(void)
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

/* The case ends in an error, which is reported with the byte sent[at] and not earlier. */
void run_faulting_at(size_t at)
{
    struct websocket_reader reader;
    struct websocket_event event;
    size_t i = 0;

    websocket_reader_init(&reader, MAX_MESSAGE_BYTES, false);
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
    run_case();
}

struct sl_slice repeat(const char *unit, size_t size)
{
    static char text[2 * MAX_MESSAGE_BYTES];
    size_t unit_size = strlen(unit);

    for (size_t i = 0; i < size; i++)
        text[i] = unit[i % unit_size];
    return sl_slice(text, size);
}

/* As fragments of `step` bytes, 0: none; followed by an empty one if `ends_empty`. */
void send_text(struct sl_slice text, size_t step, bool ends_empty)
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

bool is_code_of_a_close(unsigned code)
{
    static const unsigned codes[] = {1000, 1001, 1002, 1003, 1007, 1008,
                                     1009, 1010, 1011, 1012, 1013, 1014};

    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (code == codes[i])
            return true;
    return code >= 3000 && code < 5000;
}
