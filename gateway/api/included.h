/* gateway/api/included.h - inside the API: what `include` asks to be shown with posts and users.
 *
 * When all that is asked for has been read, this goes on for the whole page at once: the newest
 * comments and likers of each post, and what the caller has to do with them. Two rounds at most,
 * the second only for what lives in other shards than its post. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "gateway/api/request.h"

/* Something to be shown. */
typedef struct sl_slice (*api_shown_fn)(const struct api_request *request, size_t i);

/* Is there something to be asked for, which has not been yet? */
bool api_wants_included(const struct api_request *request);
/* Asks for `count` posts, or users by the route; shown(i) is the i-th one's JSON, as it is shown.
 * `then` comes without a reply. */
int api_include(struct api_request *request, size_t count, api_shown_fn shown, api_step_fn then);
/* Does the caller like the i-th? */
bool api_included_is_liked(const struct api_request *request, size_t i);
/* Appends the i-th one's JSON, with what is included. */
void api_included_append(struct buffer *json, const struct api_request *request, size_t i,
                         struct sl_slice shown);

/* Answers with request->json, one post or user, and with what is included. */
int api_answer_shown(struct api_request *request, int status);
