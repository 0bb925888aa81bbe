/* filters/terms.h - what an event's text is made of, for who counts it: hashtags, words, links,
 * those mentioned, cashtags.
 *
 * They are what a filter finds (docs/filters.md, sections 3 to 5), in normal form and without sign:
 * a term of the text, told to `track` with its sign, finds the text. A word is a token; in a script
 * without spaces, whose tokens are single characters, each two neighbours are one, and so is a
 * character that stands alone. A link is its host and path. Who is mentioned is the login; of
 * "@anna火锅" that is "anna". Terms come in the order of the text and are repeated as there. */
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
    struct sl_slice text, path; /* of the event and of what was read of it; `path` of links only */
    uint64_t hash;              /* of both, keyed: another in each process */
};

/* The next one of the kind; *at begins as 0. false: that was all. */
bool sl_words_next_term(const struct sl_words *words, enum sl_term_kind kind, size_t *at,
                        struct sl_term *ret_term);
