/* base/printable.h - may a text from outside be shown to a person as it is?
 *
 * Not what controls a terminal (U+0000 to U+001F, U+007F to U+009F), nor what reorders or breaks
 * the line around it (the marks, embeddings and isolates of bidirectional text, U+2028, U+2029),
 * nor bytes that are no UTF-8: those are shown as escapes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct printable {
    size_t size;         /* bytes */
    uint32_t code_point; /* U+FFFD, if it is no UTF-8 */
    bool is_utf8;
    bool is_shown; /* as it is */
};

/* The character that `text` begins with; it is not empty. */
struct printable printable_first(struct sl_slice text);

/* Bytes at the beginning of `text` that may all be shown as they are. */
size_t printable_prefix(struct sl_slice text);
