/* event_json.c - parses the JSON of an event.
 *
 * The JSON may be from another producer: its ids may be integers, which become strings, and members
 * unknown to us may be numbers that jansson refuses, which become 0. */
#include "gateway/dialects/event_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "src/model/id.h"

/* The end of the string, number or other token that begins at `at`. The JSON must be valid and end
 * with a brace. */
static size_t part_end(const char *json, size_t at)
{
    size_t end = at + 1;

    if (json[at] == '"') {
        for (; json[end] != '"'; end++)
            end += json[end] == '\\';
        return end + 1;
    }
    if (json[at] == '-' || (json[at] >= '0' && json[at] <= '9'))
        end += strspn(json + end, "+-.0123456789eE");
    return end;
}

/* `part` is a number. */
static bool is_too_large(const char *part, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (strchr(".eE", part[i]))
            return isinf(strtod(part, NULL));
    }
    errno = 0;
    (void)strtoll(part, NULL, 10);
    return errno == ERANGE;
}

/* Parses again with 0 for numbers that jansson refuses; no member that we use is such a number. */
static json_t *read_large(struct sl_slice json)
{
    struct buffer text = BUFFER_INIT;
    json_t *read = NULL;

    for (size_t at = 0, end; at < json.size; at = end) {
        end = part_end(json.data, at);
        if (end - at > 1 && json.data[at] != '"' && is_too_large(json.data + at, end - at))
            buffer_append_char(&text, '0');
        else
            buffer_append(&text, json.data + at, end - at);
    }
    if (!text.failed)
        read = json_loadb(text.data, text.size, 0, NULL);
    buffer_done(&text);
    return read;
}

/* Ids may be integers in the JSON of other producers; clients get strings, as for events of the
 * social core. */
static void say_ids(json_t *object)
{
    static const char *const names[] = {"id", "post", "user"};
    const char *name;
    json_t *member;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        member = json_object_get(object, names[i]);
        if (json_is_integer(member))
            json_object_set_new(object, names[i],
                                json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(member)));
    }
    json_object_foreach(object, name, member)
    {
        if (json_is_object(member))
            say_ids(member);
    }
}

json_t *event_json_read(const struct event *event)
{
    json_error_t error;
    json_t *json = json_loadb(event->json.data, event->json.size, 0, &error);

    if (!json && json_error_code(&error) == json_error_numeric_overflow)
        json = read_large(event->json);
    say_ids(json);
    return json;
}

struct sl_slice event_json_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_string(value) ? sl_slice(json_string_value(value), json_string_length(value))
                                 : SL_SLICE_NONE;
}

json_t *event_json_or_null(struct sl_slice text)
{
    return text.data ? json_stringn(text.data, text.size) : json_null();
}

uint64_t event_json_post_ms(const json_t *post)
{
    uint64_t id;

    return sl_id_parse(event_json_text(post, "id"), &id) == 0 ? sl_id_time_ms(id) : 0;
}

json_t *event_json_time(uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    return json_sprintf("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                        tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(ms % 1000));
}

static int append(const char *bytes, size_t size, void *data)
{
    buffer_append(data, bytes, size);
    return 0;
}

int event_json_append(const json_t *json, size_t flags, struct buffer *text)
{
    int r = json_dump_callback(json, append, text, JSON_COMPACT | flags);

    return r < 0 || text->failed ? -ENOMEM : 0;
}
