/* gateway/dialects/text_marks.h - finds links, hashtags, mentions and cashtags in a text, with
 * their positions.
 *
 * For ASCII the rules are those of docs/filters.md; all other characters except punctuation count
 * as letters. Filters use the normalized text instead (filters/words.h), which has other
 * positions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/urls.h"

enum text_mark_kind { TEXT_MARK_LINK, TEXT_MARK_HASHTAG, TEXT_MARK_MENTION, TEXT_MARK_CASHTAG };

struct text_mark {
    enum text_mark_kind kind;
    size_t from, to; /* in bytes, with the sign */
};

/* Initialize `text` only. */
struct text_marks {
    struct sl_slice text;
    size_t at;
    bool is_in_word;
    bool has_link; /* `link` is the next link */
    bool is_read;  /* the next link has been searched for */
    struct sl_url_span link;
};

/* Returns marks in the order of the text. false: no more. */
bool text_marks_next(struct text_marks *marks, struct text_mark *ret_mark);

/* Appends the letters, digits and `_` of `text`, without all other characters. */
void text_marks_append_letters(struct sl_slice text, struct buffer *letters);

/* The text of the mark without its sign. */
static inline struct sl_slice text_mark_name(struct sl_slice text, const struct text_mark *mark)
{
    size_t sign = mark->kind != TEXT_MARK_LINK;

    return sl_slice(text.data + mark->from + sign, mark->to - mark->from - sign);
}
