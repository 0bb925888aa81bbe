/* gateway/dialects/twitter2_form.h - a post as X's API 2 says it: {"data":{...}}.
 *
 * Deletions and messages of ours have no counterpart in its streams. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

/* As dialect.render(). */
int twitter2_render(const struct event *event, uint64_t options, struct buffer *ret_text);
