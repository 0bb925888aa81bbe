/* cli/dictionary_pieces.h - finds strings in posts that may be published and are worth having in a
 * dictionary.
 *
 * A dictionary is public, and clients keep it. So it contains only what at least PIECE_AUTHORS
 * authors have written, each in an event of their own: names of members, dates, common phrases; and
 * never what a few of them keep private. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { PIECE_AUTHORS = 5, PIECE_MIN = 5 /* in bytes; shorter ones would not be worth it */ };

/* An event as sent to clients, in one line. */
struct piece_sample {
    struct sl_slice json;
    uint32_t author; /* a number of our own */
};

struct pieces {
    struct sl_slice *at; /* slices of samples, the best first; allocated with mem_alloc() */
    size_t count;
};

/* Finds pieces that do not repeat parts of those before them, for at most `room` bytes including
 * one more for each. Sorts the samples by author. 0; -ENOMEM. */
int pieces_find(struct piece_sample *samples, size_t count, size_t room, struct pieces *ret_pieces);
void pieces_done(struct pieces *pieces);

/* The number of authors who have written this, up to PIECE_AUTHORS. Searches all samples, which
 * must be sorted by author, byte by byte. */
uint32_t pieces_authors(const struct piece_sample *samples, size_t count, struct sl_slice piece);
