/* base/buffer.h - a growing byte buffer.
 *
 * Initialize with BUFFER_INIT, append, read `data` and `size`, and end with buffer_done(). A failed
 * allocation, or reaching `limit`, sets `failed`: the buffer keeps its content and refuses all
 * further appends, so the caller checks only once, at the end. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct buffer {
    char *data; /* no NUL at the end; NULL while empty */
    size_t size;
    size_t capacity;
    size_t limit; /* bytes; 0: none */
    bool failed;
};

#define BUFFER_INIT ((struct buffer){NULL, 0, 0, 0, false})

void buffer_done(struct buffer *buffer);
/* Removes the content, keeps the memory, and clears `failed`. */
void buffer_clear(struct buffer *buffer);

/* Makes room for `size` more bytes at data + size; the caller adds to `size`. NULL: failed. */
char *buffer_reserve(struct buffer *buffer, size_t size);
void buffer_append(struct buffer *buffer, const void *data, size_t size);
void buffer_append_slice(struct buffer *buffer, struct sl_slice slice);
void buffer_append_str(struct buffer *buffer, const char *text);
void buffer_append_char(struct buffer *buffer, char c);
void buffer_append_decimal(struct buffer *buffer, uint64_t number);
void buffer_append_format(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void buffer_append_vformat(struct buffer *buffer, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
/* Appends a JSON string with quotes and minimal escapes. `text` must be valid UTF-8. */
void buffer_append_json_string(struct buffer *buffer, struct sl_slice text);
/* Removes the first `size` bytes. */
void buffer_consume(struct buffer *buffer, size_t size);

static inline struct sl_slice buffer_slice(const struct buffer *buffer)
{
    return sl_slice(buffer->data ? buffer->data : "", buffer->size);
}

/* The content as a C string: adds a NUL that does not count in `size`. NULL: failed. */
const char *buffer_str(struct buffer *buffer);
