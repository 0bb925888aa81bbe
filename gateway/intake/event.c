/* event.c - an event is one block of memory, except for its frames and a cursor of its own.
 *
 * It contains, in this order: the event, the slices of its URLs, the JSON, and strings that are not
 * in the JSON. So its bytes can be copied anywhere, even to another process, if the slices are
 * adjusted by the distance that the JSON has moved. It is freed with the last reference. A copy
 * with another cursor shares the original, to whose memory its view points, and has only what
 * differs: the cursor, the frames, and the JSON of late and unlogged events, which is the
 * original's with further members. A reduction has memory of its own; neither it nor the original
 * keeps the other alive, and whichever is freed first unlinks itself from the other. Nothing is
 * limited here; the decoder and outboxes do that. */
#include "gateway/intake/event.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "src/model/moment.h"

static const char *const kind_names[EVENT_SAMPLING + 1] = {
    [EVENT_POST] = "post",         [EVENT_DELETE] = "delete",   [EVENT_FOLLOW] = "follow",
    [EVENT_UNFOLLOW] = "unfollow", [EVENT_USER] = "user",       [EVENT_HIDE] = "hide",
    [EVENT_UNHIDE] = "unhide",     [EVENT_MUTE] = "mute",       [EVENT_UNMUTE] = "unmute",
    [EVENT_LATE] = "late",         [EVENT_REVOKE] = "revoke",   [EVENT_UNREVOKE] = "unrevoke",
    [EVENT_GAP] = "gap",           [EVENT_WARNING] = "warning", [EVENT_COUNTS] = "counts",
    [EVENT_SKIPPED] = "skipped",   [EVENT_TRENDS] = "trends",   [EVENT_SAMPLING] = "sampling",
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

int event_set_cursor(struct event *event, const struct sl_cursor *cursor)
{
    assert(!event->cursor);
    event->cursor = mem_copy(cursor, sizeof(*cursor));
    return event->cursor ? 0 : -ENOMEM;
}

struct event *event_copy_with_cursor(struct event *event, const struct sl_cursor *cursor,
                                     bool is_late)
{
    const struct sl_cursor beginning = {.id = SL_MOMENT_ID_MIN}; /* lower ones are times */
    const struct sl_cursor *after = cursor->id ? cursor : &beginning;
    char text[SL_CURSOR_TEXT_SIZE], tail[SL_CURSOR_TEXT_SIZE + 32];
    struct sl_slice json = event->original ? event->original->json : event->json;
    bool says_cursor = is_late || event_is_unlogged(event);
    size_t tail_size =
        (size_t)snprintf(tail, sizeof(tail), ",%s\"cursor\":\"%s\"}",
                         is_late ? "\"late\":true," : "", sl_cursor_print(after, text));
    size_t size = says_cursor ? json.size - 1 + tail_size : 0;
    struct event *copy = mem_alloc(sizeof(*copy) + size);
    char *room;

    if (!copy)
        return NULL;
    *copy = *event;
    copy->refs = 1;
    copy->account = NULL;
    memset(copy->frames, 0, sizeof(copy->frames));
    copy->more_frames = NULL;
    copy->reductions = NULL;
    copy->is_late = is_late;
    copy->original = event_ref(event->original ? event->original : event);
    copy->bytes = sizeof(*copy) + size + sizeof(*after);
    copy->json = json;
    copy->cursor = NULL;
    if (says_cursor) {
        room = (char *)(copy + 1);
        memcpy(room, json.data, json.size - 1);
        memcpy(room + json.size - 1, tail, tail_size);
        copy->json = sl_slice(room, size);
    }
    if (event_set_cursor(copy, after) < 0) {
        event_unref(copy);
        return NULL;
    }
    return copy;
}

struct event *event_at_cursor(struct event *event, const struct sl_cursor *cursor)
{
    assert(event_is_unlogged(event));
    return event->cursor && sl_cursor_equals(event->cursor, cursor)
               ? event_ref(event)
               : event_copy_with_cursor(event, cursor, false);
}

/* ---- reductions ---- */

struct event *event_find_reduction(const struct event *event, uint64_t fields)
{
    struct event *reduction = event->reductions;

    while (reduction && reduction->fields != fields)
        reduction = reduction->next_reduction;
    return reduction;
}

static bool has_room(const struct event *event)
{
    size_t count = 0;

    for (const struct event *at = event->reductions; at; at = at->next_reduction)
        count++;
    return count < EVENT_REDUCTIONS_MAX;
}

struct event *event_new_reduction(struct event *event, uint64_t fields, struct sl_slice json)
{
    struct event *reduction = mem_alloc(sizeof(*reduction) + json.size);

    assert(!event->fields);
    if (!reduction)
        return NULL;
    *reduction = (struct event){
        .refs = 1,
        .kind = event->kind,
        .id = event->id,
        .previous = event->previous,
        .shard = event->shard,
        .is_late = event->is_late,
        .is_rewound = event->is_rewound,
        .gap_from = event->gap_from,
        .gap_to = event->gap_to,
        .late_to = event->late_to,
        .sequence = event->sequence,
        .received_us = event->received_us,
        .fields = fields,
        .json = sl_slice(memcpy(reduction + 1, json.data, json.size), json.size),
        .bytes = sizeof(*reduction) + json.size,
    };
    if (event->cursor && event_set_cursor(reduction, event->cursor) < 0) {
        event_unref(reduction);
        return NULL;
    }
    if (event->cursor)
        reduction->bytes += sizeof(*event->cursor);
    if (has_room(event)) {
        reduction->reduced_from = event;
        reduction->next_reduction = event->reductions;
        event->reductions = reduction;
    }
    return reduction;
}

static void leave_reductions(struct event *event)
{
    struct event **at;

    for (struct event *reduction = event->reductions; reduction;
         reduction = reduction->next_reduction)
        reduction->reduced_from = NULL;
    if (!event->reduced_from)
        return;
    for (at = &event->reduced_from->reductions; *at != event; at = &(*at)->next_reduction)
        continue;
    *at = event->next_reduction;
}

/* ---- conversion to bytes ---- */

void event_slices(struct sl_event_view *view, struct sl_slice *audience,
                  struct sl_slice *ret_slices[static EVENT_SLICE_COUNT])
{
    struct sl_slice *slices[] = {&view->text,
                                 &view->user,
                                 &view->login,
                                 &view->target,
                                 &view->lang,
                                 &view->reply_to.user,
                                 &view->reply_to.login,
                                 &view->repost_of.user,
                                 &view->repost_of.login,
                                 &view->quote_of.user,
                                 &view->quote_of.login,
                                 &view->place,
                                 &view->country,
                                 audience};

    _Static_assert(sizeof(slices) / sizeof(slices[0]) == EVENT_SLICE_COUNT, "all of them");
    memcpy(ret_slices, slices, sizeof(slices));
}

struct sl_slice event_bytes(const struct event *event)
{
    assert(event->refs == 1 && !event->cursor && !event->original && !event->account);
    return sl_slice((const char *)event, event->bytes);
}

/* Adjusts a slice to the current address of the event. false: it was not part of it. */
static bool follow(struct sl_slice *slice, const struct event *event, uintptr_t was_at)
{
    uintptr_t offset = (uintptr_t)slice->data - was_at;

    if (!slice->data)
        return slice->size == 0;
    if (offset < sizeof(*event) || offset > event->bytes || slice->size > event->bytes - offset)
        return false;
    slice->data = (const char *)event + offset;
    return true;
}

/* Adjusts all slices and checks them: none may point out of the event, whatever the bytes
 * contain. */
static bool follow_all(struct event *event)
{
    struct sl_slice *slices[EVENT_SLICE_COUNT], *urls = (struct sl_slice *)(event + 1);
    size_t count = event->view.url_count;
    uintptr_t was_at = (uintptr_t)event->json.data - sizeof(*event) - count * sizeof(*urls);

    if (event->kind >= EVENT_KIND_COUNT || event->view.type >= SL_EVENT_TYPE_COUNT ||
        count > (event->bytes - sizeof(*event)) / sizeof(*urls) || !event->json.data ||
        !follow(&event->json, event, was_at))
        return false;
    event_slices(&event->view, &event->audience, slices);
    for (size_t i = 0; i < EVENT_SLICE_COUNT; i++) {
        if (!follow(slices[i], event, was_at))
            return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!follow(&urls[i], event, was_at))
            return false;
    }
    event->view.urls = count > 0 ? urls : NULL;
    return true;
}

int event_from_bytes(struct sl_slice bytes, struct event **ret_event)
{
    struct event *event;

    if (bytes.size < sizeof(*event))
        return -EBADMSG;
    event = mem_copy(bytes.data, bytes.size);
    if (!event)
        return -ENOMEM;
    event->refs = 1;
    event->cursor = NULL;
    event->original = NULL;
    event->account = NULL;
    event->fields = 0;
    event->reductions = event->next_reduction = event->reduced_from = NULL;
    memset(event->frames, 0, sizeof(event->frames));
    event->more_frames = NULL;
    event->bytes = bytes.size;
    if (!follow_all(event)) {
        event_unref(event);
        return -EBADMSG;
    }
    *ret_event = event;
    return 0;
}

/* ---- references ---- */

struct event *event_ref(struct event *event)
{
    assert(event->refs > 0);
    event->refs++;
    return event;
}

static void free_frames(struct event *event)
{
    for (int i = 0; i < EVENT_FRAME_COUNT; i++)
        mem_free((void *)event->frames[i].data);
    while (event->more_frames) {
        struct event_frame *next = event->more_frames->next;

        mem_free(event->more_frames);
        event->more_frames = next;
    }
}

void event_unref(struct event *event)
{
    assert(!event || event->refs > 0);
    if (!event || --event->refs > 0)
        return;
    leave_reductions(event);
    free_frames(event);
    if (event->account)
        *event->account -= event->bytes;
    mem_free(event->cursor);
    event_unref(event->original);
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

struct sl_slice event_frame_at(const struct event *event, uint64_t key)
{
    for (const struct event_frame *frame = event->more_frames; frame; frame = frame->next) {
        if (frame->key == key)
            return sl_slice(frame->bytes, frame->size);
    }
    return SL_SLICE_NONE;
}

struct sl_slice event_keep_frame(struct event *event, uint64_t key, struct sl_slice bytes)
{
    struct event_frame *frame = mem_alloc(sizeof(*frame) + bytes.size);

    if (!frame)
        return SL_SLICE_NONE;
    frame->key = key;
    frame->size = bytes.size;
    memcpy(frame->bytes, bytes.data, bytes.size);
    frame->next = event->more_frames;
    event->more_frames = frame;
    event_grow(event, sizeof(*frame) + bytes.size);
    return sl_slice(frame->bytes, frame->size);
}

const char *event_kind_name(enum event_kind kind)
{
    assert(kind <= EVENT_SAMPLING);
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
