/* gateway/http/http_path.h - checks that a path is unambiguous, and decodes its segments.
 *
 * Paths are compared as they were sent and never normalised: a proxy or firewall in front of this
 * server with rules for paths must see the same path that is served. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* `path` begins with "/" and has no query. false if after percent-decoding there is an empty
 * segment in the middle, a segment "." or "..", an encoded slash, or an encoded control character.
 * (Other escapes are harmless: they are data in a segment that is a variable, and match no other
 * segment.) */
bool http_path_is_plain(struct sl_slice path);

/* Decodes `segment` into `room`. 0; -EINVAL: a malformed escape, or a NUL; -ENOSPC: longer than
 * `room_size`. */
int http_path_decode(struct sl_slice segment, char *room, size_t room_size,
                     struct sl_slice *ret_decoded);
