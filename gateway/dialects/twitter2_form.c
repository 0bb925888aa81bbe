#include "gateway/dialects/twitter2_form.h"

#include <errno.h>
#include <inttypes.h>

#include "gateway/dialects/event_json.h"
#include "gateway/dialects/tweet_id.h"
#include "gateway/dialects/twitter1_entities.h"

/* null, if there is none. */
static json_t *id_of(struct sl_slice id)
{
    return id.data ? json_sprintf("%" PRId64, tweet_id_number(id)) : json_null();
}

static json_t *tweet_of(const json_t *post)
{
    struct sl_slice id = event_json_text(post, "id");

    return json_pack("{s:o,s:o,s:[o]}", "id", id_of(id), "text",
                     twitter1_text(event_json_text(post, "text")), "edit_history_tweet_ids",
                     id_of(id));
}

int twitter2_render(const struct event *event, uint64_t options, struct buffer *ret_text)
{
    json_t *json, *message;
    int r;

    (void)options;
    if (event->kind != EVENT_POST)
        return 0;
    json = event_json_read(event);
    message = json ? json_pack("{s:o}", "data", tweet_of(json_object_get(json, "post"))) : NULL;
    r = message ? event_json_append(message, JSON_ENSURE_ASCII, ret_text) : -ENOMEM;
    json_decref(json);
    json_decref(message);
    return r;
}
