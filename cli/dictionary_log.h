/* cli/dictionary_log.h - reads the newest public posts of the log that were not deleted. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "cli/database.h"
#include "cli/dictionary_pieces.h"

struct dictionary_log {
    struct buffer bytes;          /* of the samples */
    struct piece_sample *samples; /* allocated with mem_alloc() */
    size_t count;
    uint32_t authors;
};

/* Reads at most `posts` of all shards together, the newest of each. 0: call dictionary_log_done()
 * at the end; a negative errno. */
int dictionary_log_read(struct database *database, size_t posts, struct dictionary_log *ret_log,
                        struct failure *reterr);
void dictionary_log_done(struct dictionary_log *log);
