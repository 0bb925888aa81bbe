/* filters/words.h - the parsed text of one event: tokens, entities, URLs.
 *
 * Created once per thread and filled again for each event. Used by the index and by the direct
 * evaluation of a filter. Normal form, URLs, tokens and entities are defined in docs/filters.md,
 * sections 2 to 5. */
#pragma once

#include <stdint.h>

#include "base/export.h"
#include "filters/event_view.h"

struct sl_words;

/* `seed` must be secret and random, because clients choose keywords and token hashes must not be
 * predictable; and the same as that of the index. NULL: out of memory. */
SL_EXPORT struct sl_words *sl_words_new(uint64_t seed);
SL_EXPORT void sl_words_free(struct sl_words *words);

/* Parses `event` and discards the previous one. The slices of `event` must be valid as long as the
 * result is used. 0; -ENOMEM: the content must not be used until the next success. */
SL_EXPORT int sl_words_read(struct sl_words *words, const struct sl_event_view *event);
