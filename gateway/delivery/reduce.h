/* gateway/delivery/reduce.h - the JSON of an event with some of its members only.
 *
 * What is left stands where it stood, byte for byte. An object of which nothing is left is left
 * out. `id`, `type`, `late` and `cursor` always stay, and a deletion's `post.id`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* `json`: an event's, for clients; `fields`: not all of it. What is appended is no longer than
 * `json`. `scratch` is memory that is used again from one event to the next. 0; -EBADMSG: it is no
 * JSON object; -ENOMEM. On failure *ret_json is to be cleared. */
int reduce_json(struct sl_slice json, bool is_deletion, uint64_t fields, struct buffer *scratch,
                struct buffer *ret_json);
