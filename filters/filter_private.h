/* filters/filter_private.h - the inside of a filter; internal.
 *
 * Everything that decides what matches is one sequence of bytes, the filter's key: types and
 * restrictors, followed by the condition that the selectors make. */
#pragma once

#include <stdint.h>

#include "filters/condition.h"
#include "filters/filter.h"

struct sl_filter {
    uint32_t refs;
    uint32_t key_size;
    struct sl_filter_sizes sizes;
    uint8_t kinds;
    bool has_verbatim; /* contains whole words or verbatim terms, which need additional keys of
                          events */
    char key[];
};

/* A key in decoded form. */
struct sl_filter_view {
    unsigned types;
    uint32_t sample_ppm;
    uint32_t parts;              /* 1: no partition */
    const unsigned char *chosen; /* a bit for each of `parts` */
    struct sl_slice languages;   /* a condition; empty: any language */
    struct sl_slice condition;
};

/* Appends types and restrictors in the form in which a key begins with them. */
void sl_filter_write_head(const struct sl_filter_view *view, struct buffer *key);

struct sl_filter_view sl_filter_view(const struct sl_filter *filter);

/* Whether `event` can match at all: checks audience, type and restrictors, not the condition. */
bool sl_filter_admits(const struct sl_filter_view *view, const struct sl_event_view *event);

/* A deletion that does not contain the deleted post; it goes to everyone who takes deletions. */
static inline bool sl_event_is_bare(const struct sl_event_view *event)
{
    return event->type == SL_EVENT_DELETE && !event->text.data;
}

static inline bool sl_event_is_post(const struct sl_event_view *event)
{
    return event->type == SL_EVENT_POST || event->type == SL_EVENT_DELETE;
}
