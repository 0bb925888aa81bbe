/* base/json_text.h - checks JSON text for what a JSON parser accepts but must not be passed on.
 *
 * yajl accepts overlong UTF-8, encoded surrogates, vertical tabs between tokens, `\u0000` and lone
 * `\ud800`. This module checks the raw bytes for all of these in one pass before the parser runs.
 * It does not check the grammar. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

/* The characters in a text that some readers take for the end of a line. */
struct json_breaks {
    bool between;    /* tabs, CRs or LFs, which valid JSON has only between tokens */
    bool in_strings; /* U+0085, U+2028 or U+2029, which valid JSON has only in strings */
};

/* 0: `text` is valid UTF-8 without control characters other than tab, CR and LF, and no escape
 * means U+0000 or half a surrogate pair; *ret_breaks is filled. -EBADMSG: *reterr says what is at
 * which byte. */
int json_text_check(struct sl_slice text, struct json_breaks *ret_breaks, struct failure *reterr);

/* Appends valid JSON, or a part of it between two tokens, with U+0085, U+2028 and U+2029 escaped,
 * so that it stays one line even for readers that take these for line ends. */
void json_append_in_one_line(struct buffer *buffer, struct sl_slice json);
