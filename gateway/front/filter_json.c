/* filter_json.c - checks the JSON of a filter: is it an object, does it have an id, are its members
 * texts?
 *
 * The texts are slices of the JSON, which the caller keeps as long as they are used. jansson
 * parses; what it would accept wrongly is checked before (base/json_text.h). An id has at most 64
 * characters and a tag 255 bytes, because both are returned with each event. The total size is
 * limited by the transport's limit for a message or body. */
#include "gateway/front/filter_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"

enum { ID_MAX_SIZE = 64, TAG_MAX_SIZE = 255 };

static int refuse(struct sl_filter_error *reterr, const char *code, const char *message,
                  const char *param)
{
    *reterr = (struct sl_filter_error){.code = code, .param = param, .status = 400};
    snprintf(reterr->message, sizeof(reterr->message), "%s", message);
    return -EINVAL;
}

int filter_json_load(struct sl_slice text, json_t **ret_json, struct sl_filter_error *reterr)
{
    /* As reals, integers of any length are accepted; no member of a filter is a number. */
    size_t flags = JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY;
    json_error_t error;
    struct json_breaks breaks;
    json_t *json;

    /* jansson does not notice a NUL byte after a number. */
    if (json_text_check(text, &breaks, NULL) < 0)
        return refuse(reterr, "bad_json", "not a JSON object", NULL);
    json = json_loadb(text.data, text.size, flags, &error);
    if (!json) {
        if (error.text[0] == '\0')
            return -ENOMEM;
        return refuse(reterr, "bad_json", "not a JSON object", NULL);
    }
    *ret_json = json;
    return 0;
}

static struct sl_slice string_slice(const json_t *string)
{
    return sl_slice(json_string_value(string), json_string_length(string));
}

static bool is_id_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '-';
}

static bool is_id(struct sl_slice id)
{
    for (size_t i = 0; i < id.size; i++) {
        if (!is_id_character(id.data[i]))
            return false;
    }
    return id.size >= 1 && id.size <= ID_MAX_SIZE;
}

int filter_json_id(const json_t *id, struct sl_slice *ret_id, struct sl_filter_error *reterr)
{
    if (!json_is_string(id) || !is_id(string_slice(id)))
        return refuse(reterr, "bad_id", "filter id missing or malformed", "id");
    *ret_id = string_slice(id);
    return 0;
}

static int bad_type(const char *name, struct sl_filter_error *reterr)
{
    return refuse(reterr, "bad_type", "parameter has the wrong type", name);
}

int filter_json_members(const json_t *json, struct filter_json *ret_filter,
                        struct sl_filter_error *reterr)
{
    struct filter_json filter = {0};
    const struct {
        const char *name;
        struct sl_slice *slice;
    } strings[] = {
        {"tag", &filter.tag},
        {"track", &filter.text.track},
        {"follow", &filter.text.follow},
        {"locations", &filter.text.locations},
        {"rule", &filter.text.rule},
        {"language", &filter.text.language},
        {"sample", &filter.text.sample},
        {"partition", &filter.text.partition},
        {"types", &filter.text.types},
    };
    const json_t *firehose;

    if (!json_is_object(json))
        return refuse(reterr, "bad_json", "not a JSON object", NULL);
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        const json_t *value = json_object_get(json, strings[i].name);

        if (!value || json_is_null(value))
            continue;
        if (!json_is_string(value))
            return bad_type(strings[i].name, reterr);
        *strings[i].slice = string_slice(value);
    }
    firehose = json_object_get(json, "firehose");
    if (firehose && !json_is_null(firehose) && !json_is_boolean(firehose))
        return bad_type("firehose", reterr);
    if (filter.tag.size > TAG_MAX_SIZE)
        return refuse(reterr, "bad_tag", "tag longer than 255 bytes", "tag");
    filter.text.firehose = json_is_true(firehose);
    *ret_filter = filter;
    return 0;
}

int filter_json_read(const json_t *json, struct filter_json *ret_filter,
                     struct sl_filter_error *reterr)
{
    struct sl_slice id;
    int r;

    if (!json_is_object(json))
        return refuse(reterr, "bad_json", "not a JSON object", NULL);
    r = filter_json_id(json_object_get(json, "id"), &id, reterr);
    if (r < 0)
        return r;
    r = filter_json_members(json, ret_filter, reterr);
    if (r < 0)
        return r;
    ret_filter->id = id;
    return 0;
}

int filter_json_refuse(const struct sl_filter_error *error, struct http_refusal *refusal)
{
    int r = http_refuse(refusal, error->status, error->code, error->param, "%s", error->message);

    refusal->place = error->place;
    return r;
}

void filter_json_append_warning(const struct sl_filter_error *warning, struct buffer *json)
{
    buffer_append_format(json, "\"code\":\"%s\",\"message\":", warning->code);
    buffer_append_json_string(json, sl_slice_str(warning->message));
    buffer_append_format(json, ",\"param\":\"%s\"", warning->param);
    if (warning->place > 0)
        buffer_append_format(json, ",\"at\":%zu", warning->place - 1);
}

int filter_json_duplicate_id(struct sl_filter_error *reterr)
{
    *reterr = (struct sl_filter_error){.code = "duplicate_id",
                                       .param = "id",
                                       .status = 409,
                                       .message = "filter id already in use"};
    return -EEXIST;
}
