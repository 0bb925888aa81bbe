/* base/log_json.h - a line of key=value pairs as one JSON object.
 *
 * For those whose log collector reads JSON: every line is written as logfmt by whoever has
 * something to say, and turned here, so that nobody writes a line twice. */
#pragma once

#include <stddef.h>

#include "base/slice.h"

/* No line of `size` bytes needs more. */
#define LOG_JSON_SIZE(size) ((size)*6 + 3)

/* Writes the object, without a newline, to `room`, which holds LOG_JSON_SIZE(line.size) bytes;
 * returns its length. A bare decimal number stays a number when every JSON parser can hold it (15
 * digits); all else is a string: ids, which have more, too. What log_quote() escaped is escaped as
 * JSON has it, and bytes that are no UTF-8 (a quoted text may be cut off anywhere) become U+FFFD.
 */
size_t log_json(struct sl_slice line, char *room);
