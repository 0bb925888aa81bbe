/* base/json_text.h - what a JSON parser lets through and we must not pass on.
 *
 * yajl takes overlong UTF-8, encoded surrogates, vertical tabs between tokens, `\u0000` and lone
 * `\ud800`. This looks at the raw bytes for all of these, once, before the parser runs; grammar
 * is the parser's business. */
#pragma once

#include <stdbool.h>

#include "base/failure.h"
#include "base/slice.h"

/* 0: `text` is valid UTF-8 without control characters other than tab, CR and LF (which in valid
 * JSON then stand between tokens only), and none of its escapes means U+0000 or half a surrogate
 * pair; *ret_has_breaks tells whether there are any tabs, CRs or LFs. -EBADMSG: *reterr says what
 * stands at which byte. */
int json_text_check(struct sl_slice text, bool *ret_has_breaks, struct failure *reterr);
