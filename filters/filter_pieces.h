/* filters/filter_pieces.h - splits an accepted filter into the pieces that its owner wrote.
 *
 * The pieces are the phrases of `track`, the users of `follow`, the boxes of `locations` and the
 * alternatives of `rule`. A rule without alternatives is split into its items, each with the rule
 * that remains without it. Each piece can then be asked for what it contributes. */
#pragma once

#include "filters/filter.h"

enum { SL_FILTER_PIECES_MAX = 100 };

struct sl_filter_piece {
    const char *param;          /* the member that contains it; static */
    struct sl_slice value;      /* the text of the piece within the member */
    struct sl_filter_text text; /* a filter of this piece alone, with the restrictors of the whole
                                   filter */
    struct sl_slice rest_before, rest_behind; /* of a rule with several items: the text before and
                                                 after this one; else without data */
};

/* Fills `ret_pieces` with up to SL_FILTER_PIECES_MAX pieces in the order of the members. Returns
 * the number of all pieces; 0 also if out of memory. The slices are those of `text`. */
size_t sl_filter_pieces(const struct sl_filter_text *text,
                        struct sl_filter_piece ret_pieces[static SL_FILTER_PIECES_MAX]);
