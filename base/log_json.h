/* base/log_json.h - converts a log line of key=value pairs to a JSON object.
 *
 * For log collectors that read JSON. Lines are always written as logfmt and converted here, so that
 * no call site formats a line twice. */
#pragma once

#include <stddef.h>

#include "base/slice.h"

/* The maximum size of the JSON of a line of `size` bytes. */
#define LOG_JSON_SIZE(size) ((size)*6 + 3)

/* Writes the object, without a newline, to `room`, which must hold LOG_JSON_SIZE(line.size) bytes.
 * Returns its length. A bare decimal number of up to 15 digits, which every JSON parser can
 * represent, stays a number; everything else is a string, including ids, which have more digits.
 * What log_quote() escaped is escaped in the JSON way. Bytes that are not UTF-8 (a quoted text may
 * be truncated anywhere) become U+FFFD. */
size_t log_json(struct sl_slice line, char *room);
