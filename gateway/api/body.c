/* body.c - checks of a request body that the JSON parser does not make: bytes, depth, members.
 *
 * The text is scanned twice before jansson parses it: for invalid UTF-8 and characters
 * (base/json_text.h), and for brackets nested deeper than API_BODY_DEPTH_MAX, because the parser is
 * recursive. Members are read by a table of names and types; the first one that is unknown, missing
 * or of another type is refused by name. A body has at most API_BODY_MAX bytes. */
#include "gateway/api/body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"

/* --- text --- */

static int check_kind(const struct http_request *http, struct http_refusal *refusal)
{
    struct sl_slice rest = http->content_type;

    if (rest.size > 0 && http_token_is(http_next_element(&rest, ';'), "application/json"))
        return 0;
    return http_refuse(refusal, 415, "bad_content_type", NULL,
                       "the body needs Content-Type: application/json");
}

static int refuse_json(struct http_refusal *refusal, const char *why)
{
    return http_refuse(refusal, 400, "bad_json", NULL, "the body is not valid JSON: %s", why);
}

/* Checks how deep brackets outside of strings are nested, because the parser is recursive. */
static int check_depth(struct sl_slice text, struct http_refusal *refusal)
{
    unsigned depth = 0;
    bool in_string = false;

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            in_string = !in_string;
        else if (!in_string && (c == '{' || c == '['))
            depth++;
        else if (!in_string && (c == '}' || c == ']') && depth > 0)
            depth--;
        if (depth > API_BODY_DEPTH_MAX)
            return http_refuse(refusal, 400, "bad_json", NULL,
                               "the body nests more than %d deep at byte %zu", API_BODY_DEPTH_MAX,
                               i);
    }
    return 0;
}

/* jansson's message is: duplicate object key near '"name"'. */
static int refuse_duplicate(const json_error_t *error, struct http_refusal *refusal)
{
    const char *begin = strstr(error->text, "near '\"");
    const char *end = begin ? strrchr(error->text, '\'') : NULL;
    char name[HTTP_PARAM_SIZE] = "";

    if (begin)
        begin += strlen("near '\"");
    if (end && end > begin && end[-1] == '"')
        snprintf(name, sizeof(name), "%.*s", (int)(end - 1 - begin), begin);
    return http_refuse(refusal, 400, "duplicate_member", name,
                       "a member is given twice, at line %d, column %d", error->line,
                       error->column);
}

static int parse(struct sl_slice text, json_t **ret_body, struct http_refusal *refusal)
{
    json_error_t error;
    json_t *body;

    body = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (body) {
        *ret_body = body;
        return 0;
    }
    switch (json_error_code(&error)) {
    case json_error_out_of_memory:
        return -ENOMEM;
    case json_error_duplicate_key:
        return refuse_duplicate(&error, refusal);
    default:
        return http_refuse(refusal, 400, "bad_json", NULL,
                           "the body is not valid JSON at line %d, column %d: %s", error.line,
                           error.column, error.text);
    }
}

int api_body_read(const struct http_request *http, json_t **ret_body, struct http_refusal *refusal)
{
    struct failure failure;
    json_t *body = NULL;
    struct json_breaks breaks;
    int r;

    r = check_kind(http, refusal);
    if (r < 0)
        return r;
    if (http->body.size > API_BODY_MAX)
        return http_refuse(refusal, 413, "body_too_large", NULL, "the body may have %d bytes",
                           API_BODY_MAX);
    if (http->body.size == 0)
        return refuse_json(refusal, "it is empty");
    if (json_text_check(http->body, &breaks, &failure) < 0)
        return refuse_json(refusal, failure.text);
    r = check_depth(http->body, refusal);
    if (r == 0)
        r = parse(http->body, &body, refusal);
    if (r < 0)
        return r;
    if (!json_is_object(body)) {
        json_decref(body);
        return http_refuse(refusal, 400, "bad_json", NULL, "the body is not a JSON object");
    }
    *ret_body = body;
    return 0;
}

/* --- members --- */

static const struct {
    const char *name;
    json_type types[2];
} kinds[] = {
    [API_STRING] = {"a string", {JSON_STRING, JSON_STRING}},
    [API_NUMBER] = {"a number", {JSON_INTEGER, JSON_REAL}},
    [API_OBJECT] = {"an object", {JSON_OBJECT, JSON_OBJECT}},
    [API_ARRAY] = {"an array", {JSON_ARRAY, JSON_ARRAY}},
    [API_STRING_OR_NULL] = {"a string or null", {JSON_STRING, JSON_NULL}},
    [API_ARRAY_OR_NULL] = {"an array or null", {JSON_ARRAY, JSON_NULL}},
};

/* Such as "geo.lon". */
static const char *full_name(const char *inside, const char *name,
                             char room[static HTTP_PARAM_SIZE])
{
    snprintf(room, HTTP_PARAM_SIZE, "%s%s%s", inside ? inside : "", inside ? "." : "", name);
    return room;
}

static int check_known(const json_t *object, const char *inside, const struct api_member *members,
                       size_t count, struct http_refusal *refusal)
{
    char room[HTTP_PARAM_SIZE];
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)object, name, value)
    {
        size_t i = 0;

        while (i < count && strcmp(members[i].name, name) != 0)
            i++;
        if (i == count)
            return http_refuse(refusal, 400, "unknown_member", full_name(inside, name, room),
                               "there is no such member: %s", full_name(inside, name, room));
    }
    return 0;
}

static int read_member(const json_t *value, const char *inside, const struct api_member *member,
                       struct http_refusal *refusal)
{
    char room[HTTP_PARAM_SIZE];
    const char *name = full_name(inside, member->name, room);
    json_type type = json_typeof(value);

    if (type != kinds[member->kind].types[0] && type != kinds[member->kind].types[1])
        return http_refuse(refusal, 400, "bad_type", name, "%s is not %s", name,
                           kinds[member->kind].name);
    switch (member->kind) {
    case API_STRING_OR_NULL:
        if (type == JSON_NULL) {
            *member->ret_string = SL_SLICE("");
            break;
        }
        /* fall through */
    case API_STRING:
        *member->ret_string = sl_slice(json_string_value(value), json_string_length(value));
        break;
    case API_NUMBER:
        *member->ret_number = json_number_value(value);
        break;
    case API_OBJECT:
    case API_ARRAY:
    case API_ARRAY_OR_NULL:
        *member->ret_json = value;
        break;
    }
    return 0;
}

int api_members_read(const json_t *object, const char *inside, const struct api_member *members,
                     size_t count, struct http_refusal *refusal)
{
    int r = check_known(object, inside, members, count, refusal);

    for (size_t i = 0; r == 0 && i < count; i++) {
        const json_t *value = json_object_get(object, members[i].name);
        char room[HTTP_PARAM_SIZE];

        if (value)
            r = read_member(value, inside, &members[i], refusal);
        else if (members[i].is_required)
            r = http_refuse(refusal, 400, "missing_member",
                            full_name(inside, members[i].name, room), "%s is missing",
                            full_name(inside, members[i].name, room));
    }
    return r;
}
