/* tests/support/words_reference.h - the reading of words once more, slowly and straight from
 * docs/filters.md, sections 2 to 5: everything through ICU, code point by code point, no tables.
 * What filters/ makes of the same event must be the same.
 *
 * With an ICU newer than Unicode 15.0, code points that came later count as unassigned. */
#pragma once

#include "base/buffer.h"
#include "filters/event_view.h"
#include "filters/words.h"

/* Appends N(text). */
void reference_normalise(struct sl_slice text, struct buffer *normal);

/* Everything that was read of an event, as text for comparison; a line per list:
 *
 *     tokens: iphone'1 手'0 | x'1        token ' gap; the barrier is |
 *     hashtags: 北京                      each between ' ' and so on
 *     urls: t.cn/Ab1 */
void reference_dump(const struct sl_event_view *event, struct buffer *dump);
void words_dump(const struct sl_words *words, struct buffer *dump);

/* Class of a code point as in section 4: 'U', 'W', 'E' or '-'; *ret_letter: category L*? */
char reference_class(uint32_t code_point, bool *ret_letter);
