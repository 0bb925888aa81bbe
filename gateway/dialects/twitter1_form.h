/* gateway/dialects/twitter1_form.h - renders an event in the format of Twitter's Streaming API 1.1.
 *
 * A post is a Tweet, in ASCII; `<`, `>` and `&` in its text are escaped as in HTML, and `indices`
 * count code points of that. A deletion is a `delete`, a gap a `warning`. A client that asked for
 * warnings is told when it falls behind; our other messages are not rendered. Posts that are too
 * large for clients are not rendered; twitter1_limit() prints their number. Unknown values are
 * null, 0 or left out, as docs/dialects/twitter1.md lists; members that must not be null for some
 * clients are left out. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

enum { TWITTER1_WARNINGS = 1 }; /* options */

int twitter1_render(const struct event *event, uint64_t options, struct buffer *ret_text);
void twitter1_limit(uint64_t posts, uint64_t now_ms, struct buffer *ret_json);
