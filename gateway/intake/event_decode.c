/* event_decode.c - reads the facts from the JSON, checks them for the kind of event, and makes one
 * allocation.
 *
 * It contains the event, the JSON for clients, and those strings that are not in that JSON
 * unchanged: decoded ones, and all of them if the JSON had to be rewritten. */
#include "gateway/intake/event_decode.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json_text.h"
#include "gateway/intake/event_facts.h"

struct event_decoder {
    size_t max_bytes;
    struct event_reader reader;
    struct buffer json; /* for clients, if it is not the message */
    struct buffer deletion;
};

struct event_decoder *event_decoder_new(size_t max_bytes)
{
    struct event_decoder *decoder = mem_zalloc(sizeof(*decoder));

    if (decoder)
        decoder->max_bytes = max_bytes;
    return decoder;
}

void event_decoder_free(struct event_decoder *decoder)
{
    if (!decoder)
        return;
    event_reader_done(&decoder->reader);
    buffer_done(&decoder->json);
    buffer_done(&decoder->deletion);
    mem_free(decoder);
}

static int require(bool is_there, const char *what, struct failure *reterr)
{
    return is_there ? 0 : failure_set(reterr, -EBADMSG, "%s is missing or out of range", what);
}

/* The required members, by kind. */
static int check_facts(const struct event_facts *facts, enum event_kind kind,
                       struct failure *reterr)
{
    bool has_post = kind == EVENT_POST || kind == EVENT_DELETE;
    bool has_users = !has_post && kind < EVENT_LATE;
    int r;

    r = require(facts->id != 0, "id", reterr);
    if (r == 0 && has_post)
        r = require(facts->post.id != 0, "post.id", reterr);
    if (r == 0 && has_post)
        r = require(facts->post.user.id.data != NULL, "post.user.id", reterr);
    if (r == 0 && kind == EVENT_POST)
        r = require(facts->post.text.data != NULL, "post.text", reterr);
    if (r == 0 && has_users)
        r = require(facts->user.id.data != NULL, "user.id", reterr);
    if (r == 0 && has_users && kind != EVENT_USER)
        r = require(facts->target.id.data != NULL, "target.id", reterr);
    if (r == 0 && kind == EVENT_LATE)
        r = require(facts->from < facts->to && facts->to < facts->id, "to", reterr);
    return r;
}

static struct sl_post_ref post_ref(const struct event_reference *reference)
{
    return (struct sl_post_ref){reference->post != 0, reference->user, reference->login};
}

static bool is_longitude(double degrees)
{
    return degrees >= -180 && degrees <= 180;
}

static bool is_latitude(double degrees)
{
    return degrees >= -90 && degrees <= 90;
}

static void set_shape(struct sl_event_view *view, const struct event_post_facts *post)
{
    const double *edges = post->place.bbox.edges;

    view->point = (struct sl_point){post->geo.lon.value, post->geo.lat.value};
    view->has_point = post->geo.lon.is_given && post->geo.lat.is_given &&
                      is_longitude(view->point.lon) && is_latitude(view->point.lat);
    view->box = (struct sl_box){edges[0], edges[1], edges[2], edges[3]};
    view->has_box = post->place.bbox.count == 4 && !post->place.bbox.has_other &&
                    is_longitude(view->box.west) && is_longitude(view->box.east) &&
                    is_latitude(view->box.south) && is_latitude(view->box.north) &&
                    view->box.south <= view->box.north;
}

/* The type for filters of kinds that are neither post nor deletion; those for gateways only are
 * restricted, whatever their type. */
static enum sl_event_type type_of(enum event_kind kind)
{
    switch (kind) {
    case EVENT_UNFOLLOW:
        return SL_EVENT_UNFOLLOW;
    case EVENT_USER:
        return SL_EVENT_USER;
    default:
        return SL_EVENT_FOLLOW;
    }
}

/* The view with slices of message and scratch; its `urls` are set later, when there is memory for
 * them. */
static struct sl_event_view make_view(const struct event_facts *facts, enum event_kind kind)
{
    const struct event_post_facts *post = &facts->post;
    struct sl_event_view view = {0};

    if (kind != EVENT_POST && kind != EVENT_DELETE) {
        view.type = type_of(kind);
        view.sample_id = facts->id;
        view.restricted = kind >= EVENT_HIDE;
        view.user = facts->user.id;
        if (kind == EVENT_USER)
            return view;
        view.target = facts->target.id;
        return view;
    }
    view.type = kind == EVENT_POST ? SL_EVENT_POST : SL_EVENT_DELETE;
    view.sample_id = post->id;
    view.restricted = post->audience.data && !sl_slice_is(post->audience, "public");
    view.text = post->text;
    view.user = post->user.id;
    view.login = post->user.login;
    view.lang = post->lang;
    view.reply_to = post_ref(&post->reply_to);
    view.repost_of = post_ref(&post->repost_of);
    view.quote_of = post_ref(&post->quote_of);
    set_shape(&view, post);
    view.place = post->place.name;
    view.country = post->place.country;
    view.url_count = post->urls.count;
    view.has_media = post->media.count > 0;
    return view;
}

/* Writes the JSON of a deletion for clients. */
static void print_delete(struct event_decoder *decoder, const struct event_facts *facts)
{
    struct buffer *json = &decoder->deletion;

    buffer_clear(json);
    buffer_append_format(json, "{\"id\":\"%" PRIu64 "\",\"type\":\"delete\"", facts->id);
    if (facts->at.data) {
        buffer_append_str(json, ",\"at\":");
        buffer_append_json_string(json, facts->at);
    }
    buffer_append_format(json,
                         ",\"post\":{\"id\":\"%" PRIu64 "\",\"user\":{\"id\":", facts->post.id);
    buffer_append_json_string(json, facts->post.user.id);
    buffer_append_str(json, "},\"state\":\"deleted\"}}");
    json_append_in_one_line(&decoder->json, buffer_slice(json));
    decoder->json.failed = decoder->json.failed || json->failed;
}

/* Writes the message in one line, with each audience reduced to its kind. */
static void print_edited(struct buffer *json, struct sl_slice message,
                         const struct event_edit *edits, size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        json_append_in_one_line(json, sl_slice(message.data + at, edits[i].from - at));
        buffer_append_char(json, ':');
        buffer_append_json_string(json, edits[i].kind);
        at = edits[i].to;
    }
    json_append_in_one_line(json, sl_slice_from(message, at));
}

/* The event's own memory while it is filled: slices of the message are adjusted, others are copied
 * after it. With `room` NULL it only counts. */
struct home {
    struct sl_slice message; /* without data: not part of the event */
    const char *json;        /* its copy */
    char *room;
    size_t size;
};

static void move_slice(struct home *home, struct sl_slice *slice)
{
    if (!slice->data)
        return;
    if (home->message.data && slice->data >= home->message.data &&
        slice->data < home->message.data + home->message.size) {
        if (home->room)
            slice->data = home->json + (slice->data - home->message.data);
        return;
    }
    if (home->room) {
        memcpy(home->room + home->size, slice->data, slice->size);
        slice->data = home->room + home->size;
    }
    home->size += slice->size;
}

static void move_slices(struct home *home, struct sl_event_view *view, struct sl_slice *audience,
                        struct sl_slice *urls)
{
    struct sl_slice *slices[EVENT_SLICE_COUNT];

    event_slices(view, audience, slices);
    for (size_t i = 0; i < EVENT_SLICE_COUNT; i++)
        move_slice(home, slices[i]);
    for (size_t i = 0; i < view->url_count; i++)
        move_slice(home, &urls[i]);
}

/* Makes it one line: outside of strings a space is equivalent to a tab, CR or LF, and strings
 * contain none. */
static void replace_breaks(char *json, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)json[i] < 0x20)
            json[i] = ' ';
    }
}

static int make_event(struct event_decoder *decoder, struct sl_slice message,
                      struct json_breaks breaks, const struct event_facts *facts,
                      enum event_kind kind, const struct event_origin *origin,
                      struct event **ret_event)
{
    const struct event_edit *edits = (struct event_edit *)(void *)decoder->reader.edits.data;
    size_t edit_count = decoder->reader.edits.size / sizeof(*edits);
    struct sl_slice *urls = (struct sl_slice *)(void *)decoder->reader.urls.data;
    bool has_post = kind == EVENT_POST || kind == EVENT_DELETE;
    struct sl_slice audience = has_post ? facts->post.audience : SL_SLICE_NONE;
    struct sl_event_view view = make_view(facts, kind);
    struct sl_slice json = message;
    struct home home = {message, NULL, NULL, 0};
    size_t fixed_size;
    struct event *event;
    char *room;

    if (kind == EVENT_DELETE || edit_count > 0 || breaks.in_strings) {
        buffer_clear(&decoder->json);
        if (kind == EVENT_DELETE)
            print_delete(decoder, facts);
        else
            print_edited(&decoder->json, message, edits, edit_count);
        if (decoder->json.failed)
            return -ENOMEM;
        json = buffer_slice(&decoder->json);
        home.message = SL_SLICE_NONE;
    }

    if (view.url_count > 0)
        urls += facts->post.urls.first;
    move_slices(&home, &view, &audience, urls);
    fixed_size = sizeof(*event) + view.url_count * sizeof(*urls) + json.size;
    event = mem_alloc(fixed_size + home.size);
    if (!event)
        return -ENOMEM;
    *event = (struct event){
        .refs = 1,
        .kind = kind,
        .id = origin->id,
        .previous = origin->previous,
        .shard = origin->shard,
        .received_us = origin->received_us,
        .late_from = kind == EVENT_LATE ? facts->from : 0,
        .late_to = kind == EVENT_LATE ? facts->to : 0,
        .bytes = fixed_size + home.size,
    };
    room = (char *)(event + 1);
    if (view.url_count > 0) {
        memcpy(room, urls, view.url_count * sizeof(*urls));
        urls = (struct sl_slice *)(void *)room;
        view.urls = urls;
        room += view.url_count * sizeof(*urls);
    }
    memcpy(room, json.data, json.size);
    if (breaks.between)
        replace_breaks(room, json.size);
    event->json = sl_slice(room, json.size);
    home = (struct home){home.message, room, room + json.size, 0};
    move_slices(&home, &view, &audience, urls);
    event->view = view;
    event->audience = audience;
    *ret_event = event;
    return 0;
}

static bool is_white_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Removes white space around the text, so that a client's line begins with its `{`. */
static struct sl_slice trim(struct sl_slice text)
{
    while (text.size > 0 && is_white_space(text.data[0]))
        text = sl_slice_from(text, 1);
    while (text.size > 0 && is_white_space(text.data[text.size - 1]))
        text.size--;
    return text;
}

static int decode(struct event_decoder *decoder, struct sl_slice message,
                  const struct event_origin *origin, struct event **ret_event,
                  struct failure *reterr)
{
    struct event_facts facts;
    enum event_kind kind;
    struct json_breaks breaks;
    int r;

    r = event_facts_read(&decoder->reader, message, &facts, &breaks, reterr);
    if (r < 0)
        return r;
    if (!facts.type.data)
        return failure_set(reterr, -EBADMSG, "type is missing or not a string");
    if (!event_kind_find(facts.type, &kind))
        return failure_set(reterr, -EBADMSG, "unknown type");
    r = check_facts(&facts, kind, reterr);
    if (r < 0)
        return r;
    return make_event(decoder, message, breaks, &facts, kind, origin, ret_event);
}

int event_decode(struct event_decoder *decoder, struct sl_slice message,
                 const struct event_origin *origin, struct event **ret_event,
                 struct failure *reterr)
{
    int r;

    if (message.size > decoder->max_bytes)
        return failure_set(reterr, -E2BIG, "longer than %zu bytes", decoder->max_bytes);
    r = decode(decoder, trim(message), origin, ret_event, reterr);
    event_reader_trim(&decoder->reader);
    event_buffer_trim(&decoder->json);
    event_buffer_trim(&decoder->deletion);
    return r;
}
