/* gateway/dialects/twitter2_entities.h - what is marked in the text of a Tweet, as X's API 2 says
 * it. */
#pragma once

#include <jansson.h>

#include "base/slice.h"

/* Whose login this is, as far as the post says it: its author, or that of a post that it refers
 * to. Without data: unknown. */
struct sl_slice twitter2_user_called(const json_t *post, struct sl_slice login);
/* {"cashtags":[..],"hashtags":[..],"mentions":[..],"urls":[..]}, those that there are; null: none.
 * `start` and `end` count code points of tweet_text(). NULL: out of memory. */
json_t *twitter2_entities(const json_t *post);
