/* filters/filter_pieces.h - an accepted filter, taken apart into what its owner wrote side by side.
 *
 * Phrases of `track`, users of `follow`, boxes of `locations`, alternatives of `rule`; of a rule
 * without alternatives, its items, and what is left of it without each of them. So that each can be
 * asked for what it brings. */
#pragma once

#include "filters/filter.h"

enum { SL_FILTER_PIECES_MAX = 100 };

struct sl_filter_piece {
    const char *param;          /* the member it stands in; static */
    struct sl_slice value;      /* the piece, in the text of the member */
    struct sl_filter_text text; /* a filter of this piece alone, with the restrictors of the whole */
    struct sl_slice rest_before, rest_behind; /* of a rule of several items, but this one; else
                                                 without data */
};

/* Fills `ret_pieces` with the first SL_FILTER_PIECES_MAX in the order of the members. Returns how
 * many there are of all. The slices are those of `text`. 0 as well when memory is short. */
size_t sl_filter_pieces(const struct sl_filter_text *text,
                        struct sl_filter_piece ret_pieces[static SL_FILTER_PIECES_MAX]);
