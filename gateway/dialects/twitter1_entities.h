/* gateway/dialects/twitter1_entities.h - the entities in the text of a Tweet. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* {"hashtags":[..],"urls":[..],"user_mentions":[..],"symbols":[..]}, as text_marks.h finds them.
 * `indices` count code points of tweet_text(). NULL: out of memory. */
json_t *twitter1_entities(struct sl_slice text);
