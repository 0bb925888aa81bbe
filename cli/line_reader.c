/* line_reader.c - read(2) into a buffer for one line of the maximum length.
 *
 * The rest of the next line is moved to the front before more is read. A line that is too long is
 * skipped without storing it, and reported once. With poll(2) a caller that has something to send
 * is told that nothing is available yet, so that a silent pipe does not delay it. */
#include "cli/line_reader.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/alloc.h"

struct line_reader {
    int fd;
    size_t max_line;
    char *room; /* max_line + 1 bytes: the longest line and its end */
    size_t begin, end;
    size_t number;
    bool is_skipping; /* within a line that is too long */
    bool is_at_end;
};

struct line_reader *line_reader_new(int fd, size_t max_line)
{
    struct line_reader *reader = mem_zalloc(sizeof(*reader));

    if (!reader)
        return NULL;
    reader->fd = fd;
    reader->max_line = max_line;
    reader->room = mem_alloc(max_line + 1);
    if (!reader->room) {
        mem_free(reader);
        return NULL;
    }
    return reader;
}

void line_reader_free(struct line_reader *reader)
{
    if (!reader)
        return;
    mem_free(reader->room);
    mem_free(reader);
}

size_t line_reader_number(const struct line_reader *reader)
{
    return reader->number;
}

int line_reader_rewind(struct line_reader *reader)
{
    if (lseek(reader->fd, 0, SEEK_SET) < 0)
        return -errno;
    reader->begin = reader->end = 0;
    reader->number = 0;
    reader->is_skipping = reader->is_at_end = false;
    return 0;
}

/* Takes a complete line, or the rest at the end of the file, out of the buffer. */
static bool take_line(struct line_reader *reader, struct sl_slice *ret_line)
{
    const char *data = reader->room + reader->begin;
    size_t size = reader->end - reader->begin;
    const char *newline = size > 0 ? memchr(data, '\n', size) : NULL;

    if (!newline && (!reader->is_at_end || size == 0))
        return false;
    reader->number++;
    if (newline)
        size = (size_t)(newline - data);
    reader->begin += newline ? size + 1 : size;
    if (size > 0 && data[size - 1] == '\r')
        size--;
    *ret_line = sl_slice(data, size);
    return true;
}

/* Reads more bytes. LINE_READ: there are some, or the end was reached. */
static enum line_status fill(struct line_reader *reader, bool wait)
{
    struct pollfd readable = {.fd = reader->fd, .events = POLLIN};
    ssize_t count;

    if (!wait && poll(&readable, 1, 0) == 0)
        return LINE_NONE_YET;
    memmove(reader->room, reader->room + reader->begin, reader->end - reader->begin);
    reader->end -= reader->begin;
    reader->begin = 0;
    if (reader->end > reader->max_line) {
        reader->end = 0;
        reader->is_skipping = true;
    }
    count = read(reader->fd, reader->room + reader->end, reader->max_line + 1 - reader->end);
    if (count < 0)
        return errno == EINTR ? LINE_INTERRUPTED : LINE_FAILED;
    reader->end += (size_t)count;
    reader->is_at_end = count == 0;
    return LINE_READ;
}

enum line_status line_reader_next(struct line_reader *reader, bool wait, struct sl_slice *ret_line)
{
    enum line_status status;

    while (!take_line(reader, ret_line)) {
        if (reader->is_at_end && !reader->is_skipping)
            return LINE_END;
        if (reader->is_at_end) { /* the skipped line ended with the file */
            reader->number++;
            break;
        }
        status = fill(reader, wait);
        if (status != LINE_READ)
            return status;
    }
    if (!reader->is_skipping)
        return LINE_READ;
    reader->is_skipping = false;
    return LINE_TOO_LONG;
}
