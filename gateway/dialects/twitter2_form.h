/* gateway/dialects/twitter2_form.h - renders a post in the format of X's API 2:
 * {"data":{...},"includes":{"users":[..],"places":[..],"media":[..]}}.
 *
 * `options` are those of twitter2_fields.h. Unknown values are left out. Deletions are sent only on
 * compliance streams; our own messages are not rendered. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

/* See dialect.render(). */
int twitter2_render(const struct event *event, uint64_t options, struct buffer *ret_text);
