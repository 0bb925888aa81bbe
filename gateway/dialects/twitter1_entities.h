/* gateway/dialects/twitter1_entities.h - what is marked in the text of a Tweet. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* {"hashtags":[..],"urls":[..],"user_mentions":[..],"symbols":[..]}: links, hashtags, mentions and
 * cashtags as docs/filters.md finds them in ASCII; beyond it all but punctuation counts as letters.
 * `indices` count code points of tweet_text(). NULL: out of memory. */
json_t *twitter1_entities(struct sl_slice text);
