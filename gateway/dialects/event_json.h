/* gateway/dialects/event_json.h - an event as jansson reads it, for those who write another JSON.
 *
 * Once for all clients of a dialect, so jansson is quick enough. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

/* NULL: out of memory. */
json_t *event_json_read(const struct event *event);
/* A member that is text; absent: it is none. NULL as the object is fine. */
struct sl_slice event_json_text(const json_t *object, const char *name);
json_t *event_json_or_null(struct sl_slice text);
/* When it was posted, by its id, in Unix time; 0: it has none. */
uint64_t event_json_post_ms(const json_t *post);
/* 2026-11-21T01:02:03.456Z */
json_t *event_json_time(uint64_t ms);
/* `flags` of jansson, besides being compact. 0; -ENOMEM. */
int event_json_append(const json_t *json, size_t flags, struct buffer *text);
