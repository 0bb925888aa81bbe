/* filters/filter_describe.h - describes in words how a filter was understood.
 *
 * For people who wonder why a filter matches something, or nothing. The description is made from
 * the compiled filter: it shows normal forms, what is joined by "and" and "or", and which number of
 * a box is a latitude. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"
#include "filters/filter.h"

/* Appends an English phrase without a full stop, of about `max_bytes` at most; longer ones end with
 * "...". Valid UTF-8. */
void sl_filter_describe(const struct sl_filter *filter, size_t max_bytes, struct buffer *words);

/* Appends the names of a set of types, such as "posts and deletions"; see sl_filter_types(). */
void sl_filter_describe_types(unsigned types, struct buffer *words);
