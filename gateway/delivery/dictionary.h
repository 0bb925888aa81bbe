/* gateway/delivery/dictionary.h - a dictionary that streams are compressed with, ready for use.
 *
 * Belongs to the set of a worker (dictionaries.h), which outlives whoever points to it: a withdrawn
 * one stays, without its bytes. */
#pragma once

#include "base/slice.h"
#include "src/database/dictionaries.h"

struct ZSTD_CDict_s;

struct dictionary {
    struct sl_dictionary known;  /* as the list has it */
    struct sl_slice bytes;       /* from mem_alloc(); without data: not read yet, or withdrawn */
    struct ZSTD_CDict_s *tables; /* of the bytes; NULL: there are none */
    bool is_asked_for;           /* its bytes are on their way */
};

/* 0: it is ready; -EINVAL: they are no dictionary of this id; -ENOMEM. */
int dictionary_load(struct dictionary *dictionary, struct sl_slice bytes, int level);
/* It has no bytes and no tables any more. */
void dictionary_unload(struct dictionary *dictionary);
