/* src/social/row_json.h - users and posts that were read, as the JSON that the API and `sluice`
 * show. */
#pragma once

#include "base/buffer.h"
#include "src/social/post_rows.h"
#include "src/social/users.h"

/* {"id","login","name","signup","followers","following","posts"}, the counters being integers, and
 * what the user says of itself: "bio", "avatar", "fields". */
void sl_user_row_json(struct buffer *json, const struct sl_user_row *row);

/* The post, and behind its members "likes" and "comments", both integers. */
void sl_post_row_json(struct buffer *json, const struct sl_post_row *row);
