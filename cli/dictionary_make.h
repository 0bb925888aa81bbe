/* cli/dictionary_make.h - a dictionary of zstd, of posts. Pure: no Redis, no files. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "cli/dictionary_pieces.h"

/* What the strings of a dictionary are separated by: it is in no event. */
#define DICTIONARY_SEPARATOR '\n'

/* Appends a dictionary of at most `size` bytes with this id (src/database/dictionaries.h): strings
 * that at least PIECE_AUTHORS authors have written, the best last, then the beginning of a
 * Server-Sent Event; and how often which bytes come in compressed samples. Sorts the samples by
 * author. 0; -ENODATA: too little has been written by enough authors; -ENOMEM. */
int dictionary_make(struct piece_sample *samples, size_t count, uint32_t id, size_t size,
                    struct buffer *dictionary, struct failure *reterr);

/* Where its strings begin, which go to its end. */
size_t dictionary_strings_at(struct sl_slice dictionary);

struct dictionary_measure {
    size_t events;
    uint64_t bytes, by_itself, with_it; /* before and after, each event a frame of its own */
};

/* 0; -ENOMEM. */
int dictionary_measure(const struct piece_sample *samples, size_t count, struct sl_slice dictionary,
                       struct dictionary_measure *ret_measure);
