/* tests/support/websocket_script.h - a case for the reader of WebSocket frames: what a client
 * sends, and what the reader must report.
 *
 * A case is written with the functions below into `sent` and `expected`. run_case() runs it with
 * the whole input at once, byte by byte and cut at several sizes; each piece is in memory of
 * exactly its size. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/http/websocket_reader.h"

enum { FIN = 0x80, RSV1 = 0x40, MASKED = 0x80 };
enum { CONTINUATION = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10 };
enum { MAX_MESSAGE_BYTES = 128 << 10 };

extern struct buffer sent;     /* by the client */
extern struct buffer expected; /* what the reader must report, as print_item() writes it */

/* Frees the buffers at the end of a test, whether it has passed or not. */
int clear_case(void **state);

#define READER_TEST(test) cmocka_unit_test_teardown(test, clear_case)

/* --- the client --- */

/* A frame header, correct or not; `form` is the length's first byte without the mask bit. */
void send_head(unsigned first, unsigned form, uint64_t length, const unsigned char mask[static 4]);
/* With a different mask each time. */
void send_frame(unsigned first, struct sl_slice payload);
void send_close(unsigned code, struct sl_slice reason);
/* A text in fragments of `step` bytes. `ends_empty`: followed by an empty one. */
void send_text(struct sl_slice text, size_t step, bool ends_empty);
/* `unit` repeated up to `size` bytes. Valid until the next call. */
struct sl_slice repeat(const char *unit, size_t size);

#define SEND(first, literal) send_frame(first, SL_SLICE(literal))

/* --- what the reader reports --- */

void print_item(struct buffer *text, enum websocket_item item, unsigned code,
                struct sl_slice payload);
void expect_close(unsigned code, struct sl_slice reason);
void expect_fault(unsigned code);

#define EXPECT(item, literal) print_item(&expected, item, 0, SL_SLICE(literal))

/* May a peer close with this code? According to RFC 6455, section 7.4. */
bool is_code_of_a_close(unsigned code);

/* --- running it --- */

/* Passes one piece; appends what is reported. */
void read_piece(struct websocket_reader *reader, const char *data, size_t size,
                struct buffer *told);
/* Runs the case and starts the next. */
void run_case(void);
/* The case ends in an error, which is reported with the byte sent[at] and not earlier. */
void run_faulting_at(size_t at);
