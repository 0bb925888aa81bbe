/* base/printable.h - which characters of an untrusted text may be shown to people unchanged.
 *
 * All except those that control a terminal (U+0000 to U+001F, U+007F to U+009F), those that reorder
 * or break the surrounding line (marks, embeddings and isolates of bidirectional text, U+2028,
 * U+2029), and bytes that are not UTF-8. These are shown as escapes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct printable {
    size_t size;         /* bytes */
    uint32_t code_point; /* U+FFFD if it is not UTF-8 */
    bool is_utf8;
    bool is_shown; /* may be shown unchanged */
};

/* The first character of `text`, which must not be empty. */
struct printable printable_first(struct sl_slice text);

/* The number of bytes at the beginning of `text` that may be shown unchanged. */
size_t printable_prefix(struct sl_slice text);
