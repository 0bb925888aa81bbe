/* filters/verbatim.h - the terms of `track` in the rules of Twitter's Streaming API 1.1; internal.
 *
 * A term without punctuation is a whole word: it matches between separators in the text and in
 * links. Any other term is verbatim: it matches a run of text between white space, or a whole link,
 * with or without the punctuation around it. The rules are in docs/dialects/twitter1.md. */
#pragma once

#include <stdbool.h>

#include "filters/parse.h"
#include "filters/words_private.h"

enum { SL_VERBATIM_MAX = 60 }; /* bytes of a phrase; longer parts of links are not looked up */

/* --- filters ------------------------------------------------------------------------------ */

/* Parses all of `track`; its phrases are separated by ',' only. */
int sl_parse_verbatim_track(struct sl_parse *parse, struct sl_slice track, uint32_t max);

bool sl_whole_word_holds(struct sl_slice operand, const struct sl_words *words);
bool sl_verbatim_holds(struct sl_slice operand, const struct sl_words *words);

/* Whether the whole word can occur in a link. If so, *ret_word is the word. */
bool sl_whole_word_is_of_links(struct sl_slice operand, struct sl_slice *ret_word);

/* --- events ------------------------------------------------------------------------------- */

/* Iterates over the runs between white space in the text, except words of ASCII only, which are no
 * verbatim terms; and over the links, without scheme and in lower case. */
struct sl_stretches {
    const struct sl_words *words; /* set this, and the rest to 0 */
    size_t at, link;
    char room[SL_VERBATIM_MAX];
};

/* The next run as written, and without the punctuation around it; both without a leading `www.`.
 * false: there are no more. */
bool sl_stretches_next(struct sl_stretches *stretches, struct sl_slice *ret_written,
                       struct sl_slice *ret_bare);

/* Iterates over the words of all links, in lower case. */
struct sl_link_words {
    const struct sl_words *words; /* set this, and the rest to 0 */
    size_t link, at;
    char room[SL_VERBATIM_MAX];
};

bool sl_link_words_next(struct sl_link_words *link_words, struct sl_slice *ret_word);
