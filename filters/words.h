/* filters/words.h - the text of one event, read once: tokens, entities, URLs.
 *
 * Made once per thread and filled anew for every event; the index and the direct evaluation of a
 * single filter read from it. Normal form, URLs, tokens and entities as in docs/filters.md,
 * sections 2 to 5. */
#pragma once

#include <stdint.h>

#include "base/export.h"
#include "filters/event_view.h"

struct sl_words;

/* `seed`: secret and random, the same for the index that looks these words up (clients choose
 * keywords, so token hashes must not be predictable). NULL: out of memory. */
SL_EXPORT struct sl_words *sl_words_new(uint64_t seed);
SL_EXPORT void sl_words_free(struct sl_words *words);

/* Reads `event`, forgetting what was read before. The slices of `event` must stay valid for
 * as long as the result is used. 0; -ENOMEM: nothing is readable until the next success. */
SL_EXPORT int sl_words_read(struct sl_words *words, const struct sl_event_view *event);
