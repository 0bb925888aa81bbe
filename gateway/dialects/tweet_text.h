/* gateway/dialects/tweet_text.h - the text of a Tweet, and places in it.
 *
 * `<`, `>` and `&` are as HTML has them. Places count code points of that. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* NULL: out of memory. */
json_t *tweet_text(struct sl_slice text);

/* Where bytes of the text are in what clients get. Begin with the text alone, and ask for places in
 * rising order. */
struct tweet_places {
    struct sl_slice text;
    size_t byte, place;
};
size_t tweet_place_of(struct tweet_places *places, size_t byte);
