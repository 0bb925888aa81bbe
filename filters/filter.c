/* filter.c - a filter is its key: one block of bytes that contains all its criteria.
 *
 * The first byte has a bit for each type and says which restrictors follow (sample, partition,
 * languages); the rest is a condition (filters/condition.h). Equal filters have equal bytes, so
 * that clients can share them. Apart from that, only the reference count and the size of the text
 * are stored; everything else is decoded from the key when needed, which takes a few steps. */
#include "filters/filter.h"

#include <assert.h>

#include "base/alloc.h"
#include "filters/filter_private.h"
#include "filters/sample.h"

/* The first byte of a key: a bit for each type, and which restrictors follow. */
enum { TYPES = 0x1F, HAS_SAMPLE = 0x20, HAS_PARTITION = 0x40, HAS_LANGUAGES = 0x80 };
_Static_assert(1 << SL_EVENT_TYPE_COUNT == TYPES + 1, "a bit for each");

static size_t chosen_bytes(uint32_t parts)
{
    return (parts + 7) / 8;
}

void sl_filter_write_head(const struct sl_filter_view *view, struct buffer *key)
{
    unsigned first = view->types;

    if (view->sample_ppm < SL_SAMPLE_ALL)
        first |= HAS_SAMPLE;
    if (view->parts > 1)
        first |= HAS_PARTITION;
    if (view->languages.size > 0)
        first |= HAS_LANGUAGES;
    buffer_append_char(key, (char)first);
    if (first & HAS_SAMPLE)
        buffer_append(key, &view->sample_ppm, sizeof(view->sample_ppm));
    if (first & HAS_PARTITION) {
        buffer_append(key, &view->parts, sizeof(view->parts));
        buffer_append(key, view->chosen, chosen_bytes(view->parts));
    }
    buffer_append_slice(key, view->languages);
}

static void take(struct sl_slice *rest, void *number, size_t size)
{
    memcpy(number, rest->data, size);
    *rest = sl_slice_from(*rest, size);
}

struct sl_filter_view sl_filter_view(const struct sl_filter *filter)
{
    struct sl_filter_view view = {.sample_ppm = SL_SAMPLE_ALL, .parts = 1};
    struct sl_slice rest = sl_slice(filter->key, filter->key_size);
    struct sl_condition languages;
    unsigned char first;

    take(&rest, &first, 1);
    view.types = first & TYPES;
    if (first & HAS_SAMPLE)
        take(&rest, &view.sample_ppm, sizeof(view.sample_ppm));
    if (first & HAS_PARTITION) {
        take(&rest, &view.parts, sizeof(view.parts));
        view.chosen = (const unsigned char *)rest.data;
        rest = sl_slice_from(rest, chosen_bytes(view.parts));
    }
    if (first & HAS_LANGUAGES) {
        sl_condition_next(&rest, &languages);
        view.languages = languages.whole;
    }
    view.condition = rest;
    return view;
}

struct sl_filter *sl_filter_ref(struct sl_filter *filter)
{
    filter->refs++;
    return filter;
}

void sl_filter_unref(struct sl_filter *filter)
{
    if (!filter)
        return;
    assert(filter->refs > 0);
    if (--filter->refs == 0)
        mem_free(filter);
}

unsigned sl_filter_kinds(const struct sl_filter *filter)
{
    return filter->kinds;
}

struct sl_filter_sizes sl_filter_sizes(const struct sl_filter *filter)
{
    return filter->sizes;
}

uint32_t sl_filter_sample_ppm(const struct sl_filter *filter)
{
    return sl_filter_view(filter).sample_ppm;
}

unsigned sl_filter_types(const struct sl_filter *filter)
{
    return sl_filter_view(filter).types;
}

struct sl_slice sl_filter_key(const struct sl_filter *filter)
{
    return sl_slice(filter->key, filter->key_size);
}

bool sl_filter_admits(const struct sl_filter_view *view, const struct sl_event_view *event)
{
    if (event->restricted || !(view->types & 1u << event->type))
        return false;
    if (view->sample_ppm < SL_SAMPLE_ALL && !sl_sample_has(view->sample_ppm, event->sample_id))
        return false;
    if (view->parts > 1 && !sl_partition_has(view->chosen, view->parts, event->sample_id))
        return false;
    if (view->languages.size == 0 || sl_event_is_bare(event) || !sl_event_is_post(event))
        return true;
    return sl_condition_holds(view->languages, event, NULL);
}

bool sl_filter_matches(const struct sl_filter *filter, const struct sl_event_view *event,
                       const struct sl_words *words)
{
    struct sl_filter_view view = sl_filter_view(filter);

    if (!sl_filter_admits(&view, event))
        return false;
    return sl_event_is_bare(event) || sl_condition_holds(view.condition, event, words);
}
