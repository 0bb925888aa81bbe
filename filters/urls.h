/* filters/urls.h - finds URLs in raw text (docs/filters.md, section 3); internal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Parts of one text. */
struct sl_url_span {
    size_t start, end;          /* offsets of the URL */
    struct sl_slice host, path; /* the host as written, without "user@" and ":port" */
};

/* Finds the first URL that begins at or after `from`. */
bool sl_url_find(struct sl_slice text, size_t from, struct sl_url_span *ret_span);

/* Appends `host` in lower case, without trailing dots and then without one leading "www.". 0;
 * -ENOMEM. */
int sl_url_append_host(struct sl_slice host, struct buffer *bytes);
