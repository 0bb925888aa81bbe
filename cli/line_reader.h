/* cli/line_reader.h - reads lines of limited length from a file or a pipe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

struct line_reader;

/* Reads from `fd`, which the caller still owns. NULL: out of memory. */
struct line_reader *line_reader_new(int fd, size_t max_line);
void line_reader_free(struct line_reader *reader);

enum line_status {
    LINE_READ,
    LINE_TOO_LONG, /* counted and skipped */
    LINE_NONE_YET, /* nothing available; only if told not to wait */
    LINE_END,
    LINE_INTERRUPTED, /* by a signal, while waiting */
    LINE_FAILED,      /* see errno */
};

/* The next line, without its end; valid until the next call. */
enum line_status line_reader_next(struct line_reader *reader, bool wait, struct sl_slice *ret_line);

/* The number of the last line returned or skipped, from 1. */
size_t line_reader_number(const struct line_reader *reader);

/* Back to the first line. 0; a negative errno: not a file. */
int line_reader_rewind(struct line_reader *reader);
