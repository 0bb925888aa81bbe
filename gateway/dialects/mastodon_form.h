/* gateway/dialects/mastodon_form.h - renders an event in the format of Mastodon's streaming API.
 *
 * A post is an `update` with a status, whose content is HTML; a deletion is a `delete` with the id.
 * Nothing else is rendered.
 *
 * In Server-Sent Events each block contains its `id:`, so that a browser resumes where it stopped.
 * Lines end with LF, and no block lacks event or data, because some clients fail otherwise
 * (docs/dialects/mastodon.md). On a WebSocket an event is an object whose `payload` is the status
 * as a string; the name of the stream is added at its end. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

/* Options. */
enum {
    MASTODON_ON_WEBSOCKET = 1 << 0,
    MASTODON_MEDIA_ONLY = 1 << 1, /* only posts with media */
    MASTODON_DIRECT = 1 << 2,     /* only posts for named users, as conversations */
    MASTODON_SILENT = 1 << 3      /* no events at all */
};

int mastodon_render(const struct event *event, uint64_t options, struct buffer *ret_text);

/* An account with only these members. NULL: out of memory. */
json_t *mastodon_account(struct sl_slice id, struct sl_slice login, struct sl_slice name);
