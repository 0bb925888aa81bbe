/* gateway/dialects/event_json.h - parses an event with jansson, for the dialects that render it as
 * other JSON.
 *
 * This is done once for all clients of a dialect, so jansson is fast enough. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

/* NULL: out of memory. */
json_t *event_json_read(const struct event *event);
/* A string member; absent: it is missing or not a string. `object` may be NULL. */
struct sl_slice event_json_text(const json_t *object, const char *name);
json_t *event_json_or_null(struct sl_slice text);
/* The time of a post in Unix time, from its id; 0: unknown. */
uint64_t event_json_post_ms(const json_t *post);
/* A string such as 2026-11-21T01:02:03.456Z. */
json_t *event_json_time(uint64_t ms);
/* Prints without spaces, with more `flags` of jansson. 0; -ENOMEM. */
int event_json_append(const json_t *json, size_t flags, struct buffer *text);
