/* filters/filter_private.h - how a filter looks inside; internal.
 *
 * Everything that decides what matches is one run of bytes, its key: types and restrictors, then
 * the condition that the selectors make. */
#pragma once

#include <stdint.h>

#include "filters/condition.h"
#include "filters/filter.h"

struct sl_filter {
    uint32_t refs;
    uint32_t key_size;
    struct sl_filter_sizes sizes;
    uint8_t kinds;
    bool has_verbatim; /* whole words or verbatim terms, which events are asked for apart */
    char key[];
};

/* A key, taken apart. */
struct sl_filter_view {
    unsigned types;
    uint32_t sample_ppm;
    uint32_t part, parts;      /* 1 of 1: no partition */
    struct sl_slice languages; /* a condition; empty: any language */
    struct sl_slice condition;
};

/* Appends types and restrictors as a key starts with them. */
void sl_filter_write_head(const struct sl_filter_view *view, struct buffer *key);

struct sl_filter_view sl_filter_view(const struct sl_filter *filter);

/* May `event` match at all, whatever the condition? Decides audience, type and restrictors. */
bool sl_filter_admits(const struct sl_filter_view *view, const struct sl_event_view *event);

/* A delete that does not say what is removed: it goes to everyone who takes deletes. */
static inline bool sl_event_is_bare(const struct sl_event_view *event)
{
    return event->type == SL_EVENT_DELETE && !event->text.data;
}

static inline bool sl_event_is_post(const struct sl_event_view *event)
{
    return event->type == SL_EVENT_POST || event->type == SL_EVENT_DELETE;
}
