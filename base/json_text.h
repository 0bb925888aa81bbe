/* base/json_text.h - what a JSON parser lets through and we must not pass on.
 *
 * yajl takes overlong UTF-8, encoded surrogates, vertical tabs between tokens, `\u0000` and lone
 * `\ud800`. This looks at the raw bytes for all of these, once, before the parser runs; grammar
 * is the parser's business. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

/* What some reader takes for the end of a line. */
struct json_breaks {
    bool between;    /* tabs, CRs or LFs, which in valid JSON stand between tokens */
    bool in_strings; /* U+0085, U+2028 or U+2029, which can be in strings only */
};

/* 0: `text` is valid UTF-8 without control characters other than tab, CR and LF, and none of
 * its escapes means U+0000 or half a surrogate pair; *ret_breaks tells what breaks lines.
 * -EBADMSG: *reterr says what stands at which byte. */
int json_text_check(struct sl_slice text, struct json_breaks *ret_breaks, struct failure *reterr);

/* Appends valid JSON, or a piece of it between two tokens, with U+0085, U+2028 and U+2029 as
 * escapes: to a reader that takes these for line ends, too, it stays in one line. */
void json_append_in_one_line(struct buffer *buffer, struct sl_slice json);
