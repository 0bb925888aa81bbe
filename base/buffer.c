/* buffer.c - one block of memory, which doubles when it is full.
 *
 * Appending is amortised O(1), and a buffer that is cleared keeps its memory for the next use.
 * Formatted text is written into the available room, and again after growing if that was too small.
 * The size is limited only by `limit`, which callers set if the content comes from outside. */
#include "base/buffer.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void buffer_done(struct buffer *buffer)
{
    mem_free(buffer->data);
    *buffer = BUFFER_INIT;
}

void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
}

static bool grow(struct buffer *buffer, size_t needed)
{
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    char *data;

    while (capacity < needed) {
        if (capacity > SIZE_MAX / 2)
            return false;
        capacity *= 2;
    }
    data = mem_realloc(buffer->data, capacity);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

char *buffer_reserve(struct buffer *buffer, size_t size)
{
    size_t needed;

    assert(buffer->size <= buffer->capacity);
    if (buffer->failed)
        return NULL;
    if (__builtin_add_overflow(buffer->size, size, &needed) ||
        (buffer->limit && needed > buffer->limit) ||
        ((needed > buffer->capacity || !buffer->data) && !grow(buffer, needed))) {
        buffer->failed = true;
        return NULL;
    }
    return buffer->data + buffer->size;
}

void buffer_append(struct buffer *buffer, const void *data, size_t size)
{
    char *room = buffer_reserve(buffer, size);

    if (!room || size == 0)
        return;
    memcpy(room, data, size);
    buffer->size += size;
}

void buffer_append_slice(struct buffer *buffer, struct sl_slice slice)
{
    buffer_append(buffer, slice.data, slice.size);
}

void buffer_append_str(struct buffer *buffer, const char *text)
{
    buffer_append(buffer, text, strlen(text));
}

void buffer_append_char(struct buffer *buffer, char c)
{
    buffer_append(buffer, &c, 1);
}

void buffer_append_decimal(struct buffer *buffer, uint64_t number)
{
    char digits[20];
    size_t first = sizeof(digits);

    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    buffer_append(buffer, digits + first, sizeof(digits) - first);
}

void buffer_append_vformat(struct buffer *buffer, const char *format, va_list args)
{
    size_t room_size = buffer->limit || buffer->failed ? 0 : buffer->capacity - buffer->size;
    va_list again;
    char *room;
    int length;

    va_copy(again, args);
    length = vsnprintf(room_size ? buffer->data + buffer->size : NULL, room_size, format, again);
    va_end(again);
    if (length < 0) {
        buffer->failed = true;
        return;
    }
    if ((size_t)length < room_size) {
        buffer->size += (size_t)length;
        return;
    }
    room = buffer_reserve(buffer, (size_t)length + 1);
    if (!room)
        return;
    vsnprintf(room, (size_t)length + 1, format, args);
    buffer->size += (size_t)length;
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    buffer_append_vformat(buffer, format, args);
    va_end(args);
}

static const char *short_escape(unsigned char c)
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\b':
        return "\\b";
    case '\f':
        return "\\f";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

void buffer_append_json_string(struct buffer *buffer, struct sl_slice text)
{
    size_t start = 0;

    buffer_append_char(buffer, '"');
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        const char *escape;

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buffer_append(buffer, text.data + start, i - start);
        escape = short_escape(c);
        if (escape)
            buffer_append_str(buffer, escape);
        else
            buffer_append_format(buffer, "\\u%04x", c);
        start = i + 1;
    }
    buffer_append(buffer, text.data + start, text.size - start);
    buffer_append_char(buffer, '"');
}

void buffer_consume(struct buffer *buffer, size_t size)
{
    if (size >= buffer->size) {
        buffer->size = 0;
        return;
    }
    memmove(buffer->data, buffer->data + size, buffer->size - size);
    buffer->size -= size;
}

const char *buffer_str(struct buffer *buffer)
{
    char *room = buffer_reserve(buffer, 1);

    if (!room)
        return NULL;
    *room = '\0';
    return buffer->data;
}
