/* src/social/post_json.h - the members of a post that are objects or lists: checked, then as JSON.
 *
 * They are kept as JSON in the post's hash, so that the scripts put events together without
 * reading numbers. Each appends to `json` (its memory may run out: look at json->failed) and
 * returns 0, or -EINVAL with what is wrong. */
#pragma once

#include "base/buffer.h"
#include "base/failure.h"
#include "src/social/posts.h"

int sl_post_json_point(struct buffer *json, double lon, double lat, struct failure *reterr);
int sl_post_json_place(struct buffer *json, const struct sl_post_place *place,
                       struct failure *reterr);
/* `what` is the member's name, for messages. The reference has a `user`. */
int sl_post_json_reference(struct buffer *json, const struct sl_post_reference *reference,
                           const char *what, struct failure *reterr);
int sl_post_json_urls(struct buffer *json, const struct sl_slice *urls, size_t count,
                      struct failure *reterr);
int sl_post_json_media(struct buffer *json, struct sl_slice media, struct failure *reterr);
