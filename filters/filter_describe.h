/* filters/filter_describe.h - a filter in words, as it was understood.
 *
 * For people who wonder why a filter matches what it does, or nothing. The words are made of what
 * was compiled, not of what was written: so they show normal forms, what is joined by "and" and by
 * "or", and which number of a box is taken for a latitude. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "filters/filter.h"

/* Appends an English phrase without a full stop, of about `max_bytes` at most; what is longer ends
 * with "...". Valid UTF-8. */
void sl_filter_describe(const struct sl_filter *filter, size_t max_bytes, struct buffer *words);

/* "posts and deletions": of a set of types, see sl_filter_types(). */
void sl_filter_describe_types(unsigned types, struct buffer *words);
