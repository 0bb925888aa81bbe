/* post_json.c - checks the members, then writes them: by hand where their form is ours, by jansson
 * for `media`.
 *
 * Media are JSON of the client. They are parsed with a limited depth and written again, so that
 * what is stored is valid and compact. Numbers are the shortest that read back the same, with a
 * decimal point in any locale. Sizes are limited by SL_POST_..., nesting by what gateways
 * accept. */
#include "src/social/post_json.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "src/model/id.h"
#include "src/model/login.h"
#include "src/model/text.h"

enum { MEDIA_DEPTH_MAX = 16 };

/* Appends the shortest decimal that reads back as the same double. The locale may use another
 * decimal point. */
static void append_number(struct buffer *json, double number)
{
    char text[32];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    for (char *c = text; *c; c++) {
        if (!strchr("0123456789+-e", *c))
            *c = '.';
    }
    buffer_append_str(json, text);
}

static bool is_longitude(double degrees)
{
    return degrees >= -180 && degrees <= 180;
}

static bool is_latitude(double degrees)
{
    return degrees >= -90 && degrees <= 90;
}

int sl_post_json_point(struct buffer *json, double lon, double lat, struct failure *reterr)
{
    if (!is_longitude(lon))
        return failure_set(reterr, -EINVAL, "the longitude is not from -180 to 180");
    if (!is_latitude(lat))
        return failure_set(reterr, -EINVAL, "the latitude is not from -90 to 90");
    buffer_append_str(json, "{\"lon\":");
    append_number(json, lon);
    buffer_append_str(json, ",\"lat\":");
    append_number(json, lat);
    buffer_append_char(json, '}');
    return 0;
}

/* Appends "name": before a member, with a comma unless it is the first. */
static void append_name(struct buffer *json, const char *name, bool is_first)
{
    buffer_append_str(json, is_first ? "\"" : ",\"");
    buffer_append_str(json, name);
    buffer_append_str(json, "\":");
}

static bool is_country(struct sl_slice country)
{
    for (size_t i = 0; i < country.size; i++) {
        char c = country.data[i];

        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
            return false;
    }
    return country.size == 2;
}

static int check_place(const struct sl_post_place *place, struct failure *reterr)
{
    int r;

    if (place->name.data) {
        r = sl_text_check_line(place->name, "the name of the place", SL_POST_PLACE_NAME_MAX,
                               reterr);
        if (r < 0)
            return r;
    }
    if (place->country.data && !is_country(place->country))
        return failure_set(reterr, -EINVAL,
                           "the country of the place is not a code of two letters");
    if (place->has_box && (!is_longitude(place->west) || !is_longitude(place->east) ||
                           !is_latitude(place->south) || !is_latitude(place->north)))
        return failure_set(reterr, -EINVAL, "the box of the place lies beyond the map");
    if (place->has_box && place->south > place->north)
        return failure_set(reterr, -EINVAL, "the box of the place is south of itself");
    return 0;
}

int sl_post_json_place(struct buffer *json, const struct sl_post_place *place,
                       struct failure *reterr)
{
    const double edges[] = {place->west, place->south, place->east, place->north};
    bool is_first = true;
    int r;

    r = check_place(place, reterr);
    if (r < 0)
        return r;
    buffer_append_char(json, '{');
    if (place->name.data) {
        append_name(json, "name", is_first);
        buffer_append_json_string(json, place->name);
        is_first = false;
    }
    if (place->country.data) {
        append_name(json, "country", is_first);
        buffer_append_json_string(json, place->country);
        is_first = false;
    }
    if (place->has_box) {
        append_name(json, "bbox", is_first);
        for (size_t i = 0; i < 4; i++) {
            buffer_append_char(json, i == 0 ? '[' : ',');
            append_number(json, edges[i]);
        }
        buffer_append_char(json, ']');
    }
    buffer_append_char(json, '}');
    return 0;
}

/* Posts of other systems may have larger ids than ours. */
static bool is_post_id(struct sl_slice text)
{
    uint64_t id = 0;

    if (text.size == 0 || text.size > 19)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        id = id * 10 + (uint64_t)(text.data[i] - '0');
    }
    return id >= 1 && id <= INT64_MAX;
}

int sl_post_json_reference(struct buffer *json, const struct sl_post_reference *reference,
                           const char *what, struct failure *reterr)
{
    char field[64];
    int r;

    if (!is_post_id(reference->post))
        return failure_set(reterr, -EINVAL, "%s.post is not the id of a post", what);
    if (reference->is_restricted) {
        buffer_append_format(json, "{\"post\":\"%.*s\"}", SL_SLICE_ARG(reference->post));
        return 0;
    }
    snprintf(field, sizeof(field), "%s.user", what);
    r = sl_text_check_line(reference->user, field, SL_USER_ID_TEXT_MAX, reterr);
    if (r == 0 && reference->login.data) {
        snprintf(field, sizeof(field), "%s.login", what);
        r = sl_text_check_line(reference->login, field, SL_LOGIN_SIZE, reterr);
    }
    if (r < 0)
        return r;
    buffer_append_str(json, "{\"post\":");
    buffer_append_json_string(json, reference->post);
    buffer_append_str(json, ",\"user\":");
    buffer_append_json_string(json, reference->user);
    if (reference->login.data) {
        buffer_append_str(json, ",\"login\":");
        buffer_append_json_string(json, reference->login);
    }
    buffer_append_char(json, '}');
    return 0;
}

int sl_post_json_urls(struct buffer *json, const struct sl_slice *urls, size_t count,
                      struct failure *reterr)
{
    int r;

    if (count > SL_POST_URLS_MAX)
        return failure_set(reterr, -EINVAL, "the post has more than %d links", SL_POST_URLS_MAX);
    for (size_t i = 0; i < count; i++) {
        r = sl_text_check_link(urls[i], "a link", reterr);
        if (r < 0)
            return r;
        buffer_append_char(json, i == 0 ? '[' : ',');
        buffer_append_json_string(json, urls[i]);
    }
    buffer_append_char(json, ']');
    return 0;
}

static int dump_to_buffer(const char *data, size_t size, void *context)
{
    buffer_append(context, data, size);
    return 0;
}

/* Gateways refuse events nested deeper than 32 levels; two of them belong to the event itself. */
static bool is_nested_deeper(const json_t *value, int levels)
{
    const char *key;
    json_t *member;
    size_t i;

    if (!json_is_array(value) && !json_is_object(value))
        return false;
    if (levels == 0)
        return true;
    json_array_foreach((json_t *)value, i, member)
    {
        if (is_nested_deeper(member, levels - 1))
            return true;
    }
    json_object_foreach((json_t *)value, key, member)
    {
        if (is_nested_deeper(member, levels - 1))
            return true;
    }
    return false;
}

int sl_post_json_media(struct buffer *json, struct sl_slice media, struct failure *reterr)
{
    json_error_t error;
    json_t *array;
    int r = 0;

    if (media.size > SL_POST_MEDIA_MAX)
        return failure_set(reterr, -EINVAL, "the media are longer than %d bytes",
                           SL_POST_MEDIA_MAX);
    array = json_loadb(media.data, media.size, JSON_REJECT_DUPLICATES, &error);
    if (!array && json_error_code(&error) == json_error_out_of_memory)
        return failure_set(reterr, -ENOMEM, "out of memory");
    if (!json_is_array(array))
        r = failure_set(reterr, -EINVAL, "the media are not a JSON array");
    else if (is_nested_deeper(array, MEDIA_DEPTH_MAX))
        r = failure_set(reterr, -EINVAL, "the media are nested deeper than %d levels",
                        MEDIA_DEPTH_MAX);
    else
        json_dump_callback(array, dump_to_buffer, json, JSON_COMPACT);
    json_decref(array);
    return r;
}
