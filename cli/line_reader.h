/* cli/line_reader.h - the lines of a file or a pipe, of a bounded length. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct line_reader;

/* Reads from `fd`, which stays the caller's. NULL: out of memory. */
struct line_reader *line_reader_new(int fd, size_t max_line);
void line_reader_free(struct line_reader *reader);

enum line_status {
    LINE_READ,
    LINE_TOO_LONG, /* counted and skipped */
    LINE_NONE_YET, /* nothing has come; only when not told to wait */
    LINE_END,
    LINE_INTERRUPTED, /* by a signal, while it waited */
    LINE_FAILED,      /* errno says why */
};

/* The next line, without its end; borrowed until the next call. */
enum line_status line_reader_next(struct line_reader *reader, bool wait, struct sl_slice *ret_line);

/* The number of the line that was last returned or skipped, from 1. */
size_t line_reader_number(const struct line_reader *reader);

/* Back to the first line. 0; a negative errno: not a file. */
int line_reader_rewind(struct line_reader *reader);
