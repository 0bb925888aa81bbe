/* gateway/dialects/text_marks.h - links, hashtags, mentions and cashtags of a text, and where they
 * are.
 *
 * As docs/filters.md finds them in ASCII; beyond it all but punctuation counts as letters. Filters
 * find them in the normal form of the text (filters/words.h), where places are others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/urls.h"

enum text_mark_kind { TEXT_MARK_LINK, TEXT_MARK_HASHTAG, TEXT_MARK_MENTION, TEXT_MARK_CASHTAG };

struct text_mark {
    enum text_mark_kind kind;
    size_t from, to; /* bytes, sign included */
};

/* Begin with the text alone. */
struct text_marks {
    struct sl_slice text;
    size_t at;
    bool is_in_word;
    bool has_link; /* `link` is the next one */
    bool is_read;  /* it is known whether there is one */
    struct sl_url_span link;
};

/* In the order of the text. false: that was all. */
bool text_marks_next(struct text_marks *marks, struct text_mark *ret_mark);

/* Appends the letters, digits and `_` of `text`, and leaves out everything else. */
void text_marks_append_letters(struct sl_slice text, struct buffer *letters);

/* Without its sign. */
static inline struct sl_slice text_mark_name(struct sl_slice text, const struct text_mark *mark)
{
    size_t sign = mark->kind != TEXT_MARK_LINK;

    return sl_slice(text.data + mark->from + sign, mark->to - mark->from - sign);
}
