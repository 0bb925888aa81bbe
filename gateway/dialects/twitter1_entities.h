/* gateway/dialects/twitter1_entities.h - the text of a Tweet, and what is marked in it. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* The text with `<`, `>` and `&` as HTML has them. NULL: out of memory. */
json_t *twitter1_text(struct sl_slice text);
/* {"hashtags":[..],"urls":[..],"user_mentions":[..],"symbols":[..]}: links, hashtags, mentions and
 * cashtags as docs/filters.md finds them in ASCII; beyond it all but punctuation counts as letters.
 * `indices` count code points of twitter1_text(). NULL: out of memory. */
json_t *twitter1_entities(struct sl_slice text);
