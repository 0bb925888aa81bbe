/* cli/dictionary_ids.h - the common part of the commands for dictionaries. */
#pragma once

#include "cli/database.h"
#include "src/database/dictionaries.h"

struct dictionary_list {
    struct sl_dictionary at[SL_DICTIONARY_ID_MAX - SL_DICTIONARY_ID_MIN + 1];
    size_t count;
};

/* Reads the list, allocated with mem_alloc(). 0; a negative errno. */
int dictionary_list_read(struct database *database, struct dictionary_list **ret_list,
                         struct failure *reterr);
