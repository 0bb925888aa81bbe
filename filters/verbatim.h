/* filters/verbatim.h - the terms of `track` as Twitter's Streaming API 1.1 read them; internal.
 *
 * A term without punctuation is a whole word: it is found where it stands between separators, in
 * the text and in links. Any other is found verbatim: as what stands between white space, or as
 * all of a link, with the punctuation around it or without. docs/dialects/twitter1.md has the
 * rules. */
#pragma once

#include <stdbool.h>

#include "filters/parse.h"
#include "filters/words_private.h"

enum { SL_VERBATIM_MAX = 60 }; /* bytes of a phrase; what is longer in a link is not looked for */

/* --- filters ------------------------------------------------------------------------------ */

/* All of `track`; its phrases are separated by ',' alone. */
int sl_parse_verbatim_track(struct sl_parse *parse, struct sl_slice track, uint32_t max);

bool sl_whole_word_holds(struct sl_slice operand, const struct sl_words *words);
bool sl_verbatim_holds(struct sl_slice operand, const struct sl_words *words);

/* May the whole word stand in a link? If so, *ret_word is all of it. */
bool sl_whole_word_is_of_links(struct sl_slice operand, struct sl_slice *ret_word);

/* --- events ------------------------------------------------------------------------------- */

/* What stands between white space in the text, but for words of ASCII alone, which are no verbatim
 * terms; and links, without scheme and in lower case. */
struct sl_stretches {
    const struct sl_words *words; /* set this, and the rest to 0 */
    size_t at, link;
    char room[SL_VERBATIM_MAX];
};

/* The next one as it is written, and without punctuation around it; both without a `www.` at the
 * start. false: that was all. */
bool sl_stretches_next(struct sl_stretches *stretches, struct sl_slice *ret_written,
                       struct sl_slice *ret_bare);

/* The words of all links, in lower case. */
struct sl_link_words {
    const struct sl_words *words; /* set this, and the rest to 0 */
    size_t link, at;
    char room[SL_VERBATIM_MAX];
};

bool sl_link_words_next(struct sl_link_words *link_words, struct sl_slice *ret_word);
