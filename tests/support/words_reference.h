/* tests/support/words_reference.h - a second implementation of reading words, slow and directly
 * from docs/filters.md, sections 2 to 5: all with ICU, code point by code point, without tables.
 * filters/ must find the same in the same event.
 *
 * With an ICU newer than Unicode 15.0, code points that were added later count as unassigned. */
#pragma once

#include "base/buffer.h"
#include "filters/event_view.h"
#include "filters/words.h"

/* Appends N(text). */
void reference_normalise(struct sl_slice text, struct buffer *normal);

/* Prints everything that was read of an event, for comparison, one line per list:
 *
 *     tokens: iphone'1 手'0 | x'1        token ' gap; the barrier is |
 *     hashtags: 北京                      each between ' ' and so on
 *     urls: t.cn/Ab1 */
void reference_dump(const struct sl_event_view *event, struct buffer *dump);
void words_dump(const struct sl_words *words, struct buffer *dump);

/* Returns the class of a code point as in section 4: 'U', 'W', 'E' or '-'; *ret_letter: category
 * L*? */
char reference_class(uint32_t code_point, bool *ret_letter);
