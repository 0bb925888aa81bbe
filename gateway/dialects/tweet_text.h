/* gateway/dialects/tweet_text.h - the text of a Tweet, and positions in it.
 *
 * `<`, `>` and `&` are escaped as in HTML. Positions count code points of the escaped text. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* NULL: out of memory. */
json_t *tweet_text(struct sl_slice text);

/* Converts byte positions in the original text. Initialize `text` only, and convert positions in
 * ascending order. */
struct tweet_places {
    struct sl_slice text;
    size_t byte, place;
};
size_t tweet_place_of(struct tweet_places *places, size_t byte);
