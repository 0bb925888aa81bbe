/* fuzz_event.c - is every message decoded as a plain walk over jansson's tree would decode it, and
 * copied to another process unchanged?
 *
 * Both parsers must agree on what is JSON, and on each fact of an event; they may differ where
 * jansson gives up (numbers beyond its types) and where depth is limited. What clients get must be
 * one line that decodes to the same event, and to the same line, again; and so must its reduction
 * for clients that want only some members. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "gateway/delivery/reduce.h"
#include "gateway/front/event_fields.h"
#include "gateway/intake/event.h"
#include "gateway/intake/event_decode.h"

static const struct event_origin nowhere;

/* ---- the reference ---- */

static struct sl_slice text_of(const json_t *value)
{
    return json_is_string(value) ? sl_slice(json_string_value(value), json_string_length(value))
                                 : SL_SLICE_NONE;
}

static uint64_t id_of(const json_t *value)
{
    struct sl_slice text = text_of(value);
    uint64_t id = 0;

    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    if (text.size < 1 || text.size > 19)
        return 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return 0;
        id = id * 10 + (uint64_t)(text.data[i] - '0');
    }
    return id <= INT64_MAX ? id : 0;
}

/* Whether `ours` is the user id in `value`; without data: there is none. */
static bool is_user_id(const json_t *value, struct sl_slice ours)
{
    struct sl_slice text = text_of(value);
    char digits[24];

    if (json_is_integer(value) && json_integer_value(value) > 0) {
        snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        text = sl_slice_str(digits);
    }
    if (text.size < 1 || text.size > 64)
        text = SL_SLICE_NONE;
    return (text.data == NULL) == (ours.data == NULL) && sl_slice_equal(text, ours);
}

static bool is_text(const json_t *value, struct sl_slice ours)
{
    struct sl_slice text = text_of(value);

    return (text.data == NULL) == (ours.data == NULL) && sl_slice_equal(text, ours);
}

static void check_reference(const json_t *value, const struct sl_post_ref *ours)
{
    must(ours->has_post == (id_of(json_object_get(value, "post")) != 0));
    must(is_user_id(json_object_get(value, "user"), ours->user));
    must(is_text(json_object_get(value, "login"), ours->login));
}

static bool within(double value, double limit)
{
    return value >= -limit && value <= limit;
}

static void check_shape(const json_t *post, const struct sl_event_view *ours)
{
    const json_t *geo = json_object_get(post, "geo");
    const json_t *bbox = json_object_get(json_object_get(post, "place"), "bbox");
    const json_t *lon = json_object_get(geo, "lon"), *lat = json_object_get(geo, "lat");
    double edges[4];
    bool has_box = json_is_array(bbox) && json_array_size(bbox) == 4;

    must(ours->has_point ==
         (json_is_number(lon) && json_is_number(lat) && within(json_number_value(lon), 180) &&
          within(json_number_value(lat), 90)));
    if (ours->has_point)
        must(ours->point.lon == json_number_value(lon) &&
             ours->point.lat == json_number_value(lat));
    for (size_t i = 0; has_box && i < 4; i++) {
        const json_t *edge = json_array_get(bbox, i);

        edges[i] = json_number_value(edge);
        has_box = json_is_number(edge) && within(edges[i], i % 2 ? 90 : 180);
    }
    has_box = has_box && edges[1] <= edges[3];
    must(ours->has_box == has_box);
    if (has_box)
        must(ours->box.west == edges[0] && ours->box.south == edges[1] &&
             ours->box.east == edges[2] && ours->box.north == edges[3]);
}

static void check_lists(const json_t *post, const struct sl_event_view *ours)
{
    const json_t *urls = json_object_get(post, "urls");
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(urls); i++) {
        if (!json_is_string(json_array_get(urls, i)))
            continue;
        must(count < ours->url_count && is_text(json_array_get(urls, i), ours->urls[count]));
        count++;
    }
    must(count == ours->url_count);
    must(ours->has_media == (json_array_size(json_object_get(post, "media")) > 0));
}

static void check_post(const json_t *post, const struct event *event)
{
    const struct sl_event_view *ours = &event->view;
    const json_t *user = json_object_get(post, "user"), *place = json_object_get(post, "place");
    const json_t *audience = json_object_get(post, "audience");
    bool is_absent = !audience || json_is_null(audience);

    must(ours->sample_id == id_of(json_object_get(post, "id")));
    must(is_user_id(json_object_get(user, "id"), ours->user));
    must(is_text(json_object_get(user, "login"), ours->login));
    must(is_text(json_object_get(post, "text"), ours->text));
    must(is_text(json_object_get(post, "lang"), ours->lang));
    must(is_text(json_object_get(place, "name"), ours->place));
    must(is_text(json_object_get(place, "country"), ours->country));
    check_reference(json_object_get(post, "reply_to"), &ours->reply_to);
    check_reference(json_object_get(post, "repost_of"), &ours->repost_of);
    check_reference(json_object_get(post, "quote_of"), &ours->quote_of);
    check_shape(post, ours);
    check_lists(post, ours);
    must(ours->restricted == !(is_absent || sl_slice_is(text_of(audience), "public")));
    must((event->audience.data == NULL) == is_absent);
    if (json_is_string(audience))
        must(is_text(audience, event->audience));
}

static bool has_user_id(const json_t *user)
{
    return !is_user_id(json_object_get(user, "id"), SL_SLICE_NONE);
}

/* Whether a tree is an event, and of which kind. */
static bool find_kind(const json_t *root, enum event_kind *ret_kind)
{
    const json_t *post = json_object_get(root, "post");
    struct sl_slice type = text_of(json_object_get(root, "type"));

    if (!type.data || !event_kind_find(type, ret_kind) || id_of(json_object_get(root, "id")) == 0)
        return false;
    if (*ret_kind == EVENT_POST || *ret_kind == EVENT_DELETE)
        return id_of(json_object_get(post, "id")) != 0 &&
               has_user_id(json_object_get(post, "user")) &&
               (*ret_kind == EVENT_DELETE || json_is_string(json_object_get(post, "text")));
    return has_user_id(json_object_get(root, "user")) &&
           (*ret_kind == EVENT_USER || has_user_id(json_object_get(root, "target")));
}

static void check_against_tree(const json_t *root, int r, const struct event *event)
{
    enum event_kind kind;

    must((r == 0) == find_kind(root, &kind));
    if (r < 0)
        return;
    must(event->kind == kind);
    if (kind == EVENT_POST || kind == EVENT_DELETE) {
        check_post(json_object_get(root, "post"), event);
        return;
    }
    must(event->view.sample_id == id_of(json_object_get(root, "id")));
    must(is_user_id(json_object_get(json_object_get(root, "user"), "id"), event->view.user));
    if (kind == EVENT_USER)
        must(!event->view.target.data);
    else
        must(
            is_user_id(json_object_get(json_object_get(root, "target"), "id"), event->view.target));
}

/* ---- what clients get ---- */

static struct event *decode_again(struct event_decoder *decoder, const struct event *event)
{
    struct event *again = NULL;

    must(event_decode(decoder, event->json, &nowhere, &again, NULL) == 0);
    must(again->kind == event->kind && sl_slice_equal(again->json, event->json));
    return again;
}

static void check_json(struct event_decoder *decoder, const struct event *event)
{
    struct sl_slice json = event->json;
    struct event *again;
    json_t *tree;

    must(json.size > 2 && json.data[0] == '{' && json.data[json.size - 1] == '}');
    for (size_t i = 0; i < json.size; i++)
        must((unsigned char)json.data[i] >= 0x20);
    again = decode_again(decoder, event);
    must(again->view.sample_id == event->view.sample_id);
    must(sl_slice_equal(again->view.user, event->view.user));
    if (event->kind == EVENT_DELETE) {
        must(!again->view.text.data && !again->audience.data);
    } else {
        /* The same facts, except for the audience, of which only the kind is left. */
        tree = json_loadb(json.data, json.size, 0, NULL);
        must(again->view.restricted == event->view.restricted);
        if (tree)
            check_against_tree(tree, 0, again);
        must(!memmem(again->audience.data ? again->audience.data : "", again->audience.size, ":",
                     1));
        json_decref(tree);
    }
    event_unref(again);
}

/* What clients get that want only some members. */
static const char *const sets[] = {"short", "ids", "text,user.login,geo.lon", "at,user,place.name"};

static void check_reduced(const struct event *event)
{
    struct buffer scratch = BUFFER_INIT, json = BUFFER_INIT;
    json_t *full = json_loadb(event->json.data, event->json.size, 0, NULL), *left;
    uint64_t fields;

    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        must(event_fields_parse(sl_slice_str(sets[i]), &fields, NULL) == 0);
        buffer_clear(&json);
        must(reduce_json(event->json, event->kind == EVENT_DELETE, fields, &scratch, &json) == 0);
        must(json.size <= event->json.size);
        left = full ? json_loadb(json.data, json.size, 0, NULL) : NULL;
        must(!left == !full);
        must(json_equal(json_object_get(left, "id"), json_object_get(full, "id")) || !full);
        must(json_equal(json_object_get(left, "type"), json_object_get(full, "type")) || !full);
        json_decref(left);
    }
    json_decref(full);
    buffer_done(&scratch);
    buffer_done(&json);
}

/* It is made for messages that the decoder accepts; with anything else it must only not crash. */
static void reduce_anything(struct sl_slice message)
{
    struct buffer scratch = BUFFER_INIT, json = BUFFER_INIT;
    int r = reduce_json(message, false, EVENT_FIELDS_SHORT, &scratch, &json);

    must(r == 0 || r == -EBADMSG);
    must(json.size <= message.size + 1);
    buffer_done(&scratch);
    buffer_done(&json);
}

/* Returns the event as another process gets it; the decoded one is freed. */
static struct event *carry(struct event *event)
{
    struct event *carried = NULL;

    must(event_from_bytes(event_bytes(event), &carried) == 0);
    event_unref(event);
    return carried;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_slice message = sl_slice((const char *)data, size);
    struct event_decoder *decoder = event_decoder_new(SIZE_MAX);
    struct failure failure = {""};
    struct event *event = NULL;
    json_error_t error;
    json_t *tree;
    int r;

    must(decoder != NULL);
    r = event_decode(decoder, message, &nowhere, &event, &failure);
    must(r == 0 || (r == -EBADMSG && failure.text[0] != '\0'));
    if (r == 0)
        event = carry(event);
    tree = json_loadb(message.data, message.size, JSON_DECODE_ANY, &error);
    if (tree && memchr(data, '\0', size)) {
        must(r < 0); /* jansson misses one after a number */
    } else if (tree && json_is_object(tree)) {
        if (!strstr(failure.text, "nested deeper"))
            check_against_tree(tree, r, event);
    } else if (tree || json_error_code(&error) != json_error_numeric_overflow) {
        must(r < 0);
    }
    json_decref(tree);
    reduce_anything(message);
    if (r == 0) {
        check_json(decoder, event);
        check_reduced(event);
    }
    event_unref(event);
    event_decoder_free(decoder);
    return 0;
}
