/* gateway/delivery/dictionary.h - a zstd dictionary, ready for use.
 *
 * It belongs to the worker's set (dictionaries.h), which outlives all pointers to it: a withdrawn
 * one stays in the set without its bytes. */
#pragma once

#include "base/slice.h"
#include "src/database/dictionaries.h"

struct ZSTD_CDict_s;

struct dictionary {
    struct sl_dictionary known; /* its row in the list */
    struct sl_slice bytes; /* owned, from mem_alloc(); without data: not read yet, or withdrawn */
    struct ZSTD_CDict_s *tables; /* made from the bytes; NULL: none */
    bool is_asked_for;           /* its bytes have been requested */
};

/* Takes the bytes. 0: it is ready; -EINVAL: not a dictionary with this id; -ENOMEM. */
int dictionary_load(struct dictionary *dictionary, struct sl_slice bytes, int level);
/* Frees the bytes and tables. */
void dictionary_unload(struct dictionary *dictionary);
