#include "gateway/intake/event.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

static const char *const kind_names[EVENT_WARNING + 1] = {
    [EVENT_POST] = "post",         [EVENT_DELETE] = "delete",   [EVENT_FOLLOW] = "follow",
    [EVENT_UNFOLLOW] = "unfollow", [EVENT_HIDE] = "hide",       [EVENT_UNHIDE] = "unhide",
    [EVENT_MUTE] = "mute",         [EVENT_UNMUTE] = "unmute",   [EVENT_LATE] = "late",
    [EVENT_GAP] = "gap",           [EVENT_WARNING] = "warning",
};

struct event *event_new_control(enum event_kind kind, struct sl_slice json)
{
    struct event *event = mem_zalloc(sizeof(*event) + json.size);

    if (!event)
        return NULL;
    event->refs = 1;
    event->kind = kind;
    event->received_us = clock_monotonic_us();
    event->bytes = sizeof(*event) + json.size;
    event->json = sl_slice(memcpy(event + 1, json.data, json.size), json.size);
    return event;
}

struct event *event_ref(struct event *event)
{
    assert(event->refs > 0);
    event->refs++;
    return event;
}

void event_unref(struct event *event)
{
    assert(!event || event->refs > 0);
    if (!event || --event->refs > 0)
        return;
    for (int i = 0; i < EVENT_FRAME_COUNT; i++)
        mem_free((void *)event->frames[i].data);
    if (event->account)
        *event->account -= event->bytes;
    mem_free(event);
}

void event_charge(struct event *event, size_t *account)
{
    assert(!event->account);
    event->account = account;
    *account += event->bytes;
}

void event_grow(struct event *event, size_t bytes)
{
    event->bytes += bytes;
    if (event->account)
        *event->account += bytes;
}

const char *event_kind_name(enum event_kind kind)
{
    assert(kind <= EVENT_WARNING);
    return kind_names[kind];
}

bool event_kind_find(struct sl_slice name, enum event_kind *ret_kind)
{
    for (int kind = 0; kind < EVENT_KIND_COUNT; kind++) {
        if (sl_slice_is(name, kind_names[kind])) {
            *ret_kind = (enum event_kind)kind;
            return true;
        }
    }
    return false;
}
