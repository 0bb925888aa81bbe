/* gateway/dialects/mastodon_form.h - an event as Mastodon's streaming API says it.
 *
 * A post is an `update` with a status, whose content is HTML; a deletion is a `delete` with the id.
 * Nothing else has a counterpart.
 *
 * Over Server-Sent Events a block has its `id:` inside, so that a browser that comes back goes on
 * where it was. Lines end by LF, and no block is without event and data: there are clients that
 * cannot bear either (docs/dialects/mastodon.md). On a WebSocket an event is an object, whose
 * `payload` is the status as text; the stream that it belongs to is added at its end. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

/* The options. */
enum {
    MASTODON_ON_WEBSOCKET = 1 << 0,
    MASTODON_MEDIA_ONLY = 1 << 1, /* of posts those without media are not told */
    MASTODON_DIRECT = 1 << 2,     /* only posts for some people by name, as conversations */
    MASTODON_SILENT = 1 << 3      /* nothing */
};

int mastodon_render(const struct event *event, uint64_t options, struct buffer *ret_text);

/* The account of whom only this is known. NULL: out of memory. */
json_t *mastodon_account(struct sl_slice id, struct sl_slice login, struct sl_slice name);
