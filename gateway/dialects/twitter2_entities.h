/* gateway/dialects/twitter2_entities.h - the entities in the text of a Tweet, in the format of X's
 * API 2. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* The id of the user with this login, if the post contains it: its author, or the author of a post
 * that it refers to. Without data: unknown. */
struct sl_slice twitter2_user_called(const json_t *post, struct sl_slice login);
/* {"cashtags":[..],"hashtags":[..],"mentions":[..],"urls":[..]}, without empty ones; null: no
 * entities. `start` and `end` count code points of tweet_text(). NULL: out of memory. */
json_t *twitter2_entities(const json_t *post);
