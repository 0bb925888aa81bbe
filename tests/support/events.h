/* tests/support/events.h - creating events in one line. */
#pragma once

#include "gateway/intake/event.h"

/* Decodes a message as if it came from the log under `id` (0: not from the log); fails the test if
 * it is refused. The caller owns one reference. */
struct event *event_of(uint64_t id, const char *json);

/* A public post by `user`; `text` needs no escapes. */
struct event *event_post(uint64_t id, const char *user, const char *text);
/* `kind` "follow" or "unfollow". */
struct event *event_graph(uint64_t id, const char *kind, const char *user, const char *target);
