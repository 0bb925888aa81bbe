/* gateway/api/included.h - internal to the API: what the parameter `include` adds to posts and
 * users.
 *
 * When all items of a page have been read, this reads for the whole page at once: the newest
 * comments and likers of each post, and the caller's relation to posts and users. It takes at most
 * two rounds, the second one only for data in other shards than the post. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "gateway/api/request.h"

/* Returns the JSON of item `i`. */
typedef struct sl_slice (*api_shown_fn)(const struct api_request *request, size_t i);

/* Whether there is something to include that has not been read yet. */
bool api_wants_included(const struct api_request *request);
/* Reads what to include for `count` posts or users, depending on the route; shown(i) is the JSON of
 * item i. `then` is called without a reply. */
int api_include(struct api_request *request, size_t count, api_shown_fn shown, api_step_fn then);
/* Whether the caller likes item i. */
bool api_included_is_liked(const struct api_request *request, size_t i);
/* Appends the JSON of item i with what is included. */
void api_included_append(struct buffer *json, const struct api_request *request, size_t i,
                         struct sl_slice shown);

/* Answers with request->json, one post or user, and what is included. */
int api_answer_shown(struct api_request *request, int status);
