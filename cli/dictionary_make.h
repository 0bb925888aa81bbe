/* cli/dictionary_make.h - makes a zstd dictionary of posts. Pure functions: no Redis, no files. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "cli/dictionary_pieces.h"

/* Separates the strings of a dictionary; it occurs in no event. */
#define DICTIONARY_SEPARATOR '\n'

/* Appends a dictionary of at most `size` bytes with this id (src/database/dictionaries.h): strings
 * written by at least PIECE_AUTHORS authors, the best last, then the beginning of a Server-Sent
 * Event; and the statistics of compressed samples. Sorts the samples by author. 0; -ENODATA: too
 * little was written by enough authors; -ENOMEM. */
int dictionary_make(struct piece_sample *samples, size_t count, uint32_t id, size_t size,
                    struct buffer *dictionary, struct failure *reterr);

/* The offset of its strings, which extend to its end. */
size_t dictionary_strings_at(struct sl_slice dictionary);

struct dictionary_measure {
    size_t events;
    uint64_t bytes, by_itself, with_it; /* uncompressed and compressed, each event as a separate
                                           frame */
};

/* 0; -ENOMEM. */
int dictionary_measure(const struct piece_sample *samples, size_t count, struct sl_slice dictionary,
                       struct dictionary_measure *ret_measure);
