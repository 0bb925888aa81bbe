/* src/social/post_json.h - checks the members of a post that are objects or lists, and writes them
 * as JSON.
 *
 * They are stored as JSON in the post's hash, so that the scripts can assemble events without
 * parsing numbers. Each function appends to `json` and returns 0, or -EINVAL with a message. Check
 * json->failed afterwards for out of memory. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "src/social/posts.h"

int sl_post_json_point(struct buffer *json, double lon, double lat, struct failure *reterr);
int sl_post_json_place(struct buffer *json, const struct sl_post_place *place,
                       struct failure *reterr);
/* `what` is the member's name, for messages. The reference must have a `user`. */
int sl_post_json_reference(struct buffer *json, const struct sl_post_reference *reference,
                           const char *what, struct failure *reterr);
int sl_post_json_urls(struct buffer *json, const struct sl_slice *urls, size_t count,
                      struct failure *reterr);
int sl_post_json_media(struct buffer *json, struct sl_slice media, struct failure *reterr);
