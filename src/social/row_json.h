/* src/social/row_json.h - writes users and posts that were read as the JSON shown by the API and
 * `sluice`. */
#pragma once

#include "base/buffer.h"
#include "src/social/post_rows.h"
#include "src/social/users.h"

/* {"id","login","name","signup","followers","following","posts"} with integer counters, and the
 * user's profile: "bio", "avatar", "fields". */
void sl_user_row_json(struct buffer *json, const struct sl_user_row *row);

/* The post, followed by the members "likes" and "comments", both integers. */
void sl_post_row_json(struct buffer *json, const struct sl_post_row *row);
