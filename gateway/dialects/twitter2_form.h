/* gateway/dialects/twitter2_form.h - a post as X's API 2 says it:
 * {"data":{...},"includes":{"users":[..],"places":[..],"media":[..]}}.
 *
 * `options` are those of twitter2_fields.h. What we do not know is left out. A deletion is told on
 * compliance streams alone; messages of ours have no counterpart. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

/* The whole message; NULL: out of memory. `event` is the JSON of ours. */
json_t *twitter2_message(const json_t *event, uint64_t options);
/* As dialect.render(). */
int twitter2_render(const struct event *event, uint64_t options, struct buffer *ret_text);
