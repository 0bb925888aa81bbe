/* filters/terms.h - the terms of an event's text, to be counted: hashtags, words, links, mentions,
 * cashtags.
 *
 * They correspond to what filters find (docs/filters.md, sections 3 to 5), in normal form and
 * without sign: `track` with such a term and its sign matches the text. A word is a token; in
 * scripts without spaces, whose tokens are single characters, each two adjacent characters are a
 * word, and so is a character that stands alone. A link is a host and path. A mention is the login;
 * in "@anna火锅" it is "anna". Terms are returned in the order of the text, including repetitions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "filters/words.h"

enum sl_term_kind {
    SL_TERM_HASHTAG,
    SL_TERM_WORD,
    SL_TERM_LINK,
    SL_TERM_USER,
    SL_TERM_CASHTAG,
    SL_TERM_KINDS
};

struct sl_term {
    struct sl_slice text, path; /* slices of the event and of `words`; `path` only for links */
    uint64_t hash;              /* of both, keyed: differs between processes */
};

/* Returns the next term of the kind. *at starts at 0. false: there are no more. */
bool sl_words_next_term(const struct sl_words *words, enum sl_term_kind kind, size_t *at,
                        struct sl_term *ret_term);
