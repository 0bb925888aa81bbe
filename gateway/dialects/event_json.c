#include "gateway/dialects/event_json.h"

#include <errno.h>
#include <time.h>

#include "src/model/id.h"

json_t *event_json_read(const struct event *event)
{
    return json_loadb(event->json.data, event->json.size, 0, NULL);
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
