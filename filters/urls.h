/* filters/urls.h - URLs in raw text, section 3 of docs/filters.md; internal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"

/* Parts of one text. */
struct sl_url_span {
    size_t start, end;          /* of the URL, offsets */
    struct sl_slice host, path; /* the host as written, but for "user@" and ":port" */
};

/* Finds the first URL that begins at `from` or later. */
bool sl_url_find(struct sl_slice text, size_t from, struct sl_url_span *ret_span);

/* Appends `host` in lower case, without trailing dots and then one leading "www.". 0; -ENOMEM. */
int sl_url_append_host(struct sl_slice host, struct buffer *bytes);
