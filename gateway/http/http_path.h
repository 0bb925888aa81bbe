/* gateway/http/http_path.h - does a path have one name only, and what does a segment of it stand
 * for?
 *
 * Paths are compared as they were sent, never put right: whoever stands in front of this server
 * and has rules for paths (a proxy, a firewall) must see the name that is served. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* `path` begins with "/" and has no query. False, after percent-decoding: an empty segment in the
 * middle, a segment "." or "..", an encoded slash, an encoded control character. (Other escapes
 * are data: they do no harm in a segment that is a variable, and match no other.) */
bool http_path_is_plain(struct sl_slice path);

/* Writes what `segment` stands for to `room`. 0; -EINVAL: a malformed escape, or a NUL;
 * -ENOSPC: longer than `room_size`. */
int http_path_decode(struct sl_slice segment, char *room, size_t room_size,
                     struct sl_slice *ret_decoded);
