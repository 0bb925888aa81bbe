/* gateway/delivery/reduce.h - removes members from the JSON of an event.
 *
 * The remaining text is unchanged and in the same order. Objects that would be empty are removed.
 * `id`, `type`, `late` and `cursor` always remain, and the `post.id` of a deletion. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"

/* `json`: an event for clients; `fields`: the members to keep, not all. The result is not longer
 * than `json`. `scratch` is memory that is reused. 0; -EBADMSG: not a JSON object; -ENOMEM. On
 * failure *ret_json must be cleared. */
int reduce_json(struct sl_slice json, bool is_deletion, uint64_t fields, struct buffer *scratch,
                struct buffer *ret_json);
