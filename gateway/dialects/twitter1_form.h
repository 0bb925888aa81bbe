/* gateway/dialects/twitter1_form.h - an event as Twitter's Streaming API 1.1 said it.
 *
 * A post is a Tweet, in ASCII, with `<`, `>` and `&` of its text escaped as HTML has them, as
 * there; `indices` count code points of that. A deletion is a `delete`. Who asked for warnings is
 * told that it falls behind; other messages of ours have no counterpart. What we do not know is
 * null, 0 or left out, as docs/dialects/twitter1.md lists: members which clients cannot bear to be
 * null are left out.
 */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

enum { TWITTER1_WARNINGS = 1 }; /* options */

int twitter1_render(const struct event *event, uint64_t options, struct buffer *ret_text);
