/* cli/dictionary_pieces.h - which strings of posts may everybody be given, and which of these pay?
 *
 * A dictionary is public, and stays with whoever has fetched it. So nothing enters one but what at
 * least PIECE_AUTHORS authors have written, each in an event of his own: the name of a member, a
 * date, a common phrase; and never what some of them keep to themselves. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum { PIECE_AUTHORS = 5, PIECE_MIN = 5 /* bytes; shorter ones would not pay */ };

/* An event as clients get it, in one line. */
struct piece_sample {
    struct sl_slice json;
    uint32_t author; /* a number of our own */
};

struct pieces {
    struct sl_slice *at; /* in samples, the best first; from mem_alloc() */
    size_t count;
};

/* Pieces that repeat what is in none before them, for at most `room` bytes with one more for each.
 * Sorts the samples by author. 0; -ENOMEM. */
int pieces_find(struct piece_sample *samples, size_t count, size_t room, struct pieces *ret_pieces);
void pieces_done(struct pieces *pieces);

/* How many authors have written this, up to PIECE_AUTHORS? Looks through all samples, which are
 * sorted by author, byte by byte. */
uint32_t pieces_authors(const struct piece_sample *samples, size_t count, struct sl_slice piece);
