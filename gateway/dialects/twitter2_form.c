/* twitter2_form.c - parses the JSON of an event and builds a Tweet.
 *
 * A table of members contains the option that asks for each and the function that makes it.
 * twitter2_includes.h adds the objects that they refer to. */
#include "gateway/dialects/twitter2_form.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

#include "gateway/dialects/event_json.h"
#include "gateway/dialects/tweet_id.h"
#include "gateway/dialects/tweet_text.h"
#include "gateway/dialects/twitter2_entities.h"
#include "gateway/dialects/twitter2_fields.h"
#include "gateway/dialects/twitter2_includes.h"
#include "src/model/id.h"

/* --- members of a Tweet ---------------------------------------------------------------------- */

/* Each function returns null if there is no value, NULL if out of memory. */

static json_t *attachments_of(const json_t *post)
{
    json_t *keys = twitter2_media_keys(post);

    return json_is_array(keys) ? json_pack("{s:o}", "media_keys", keys) : keys;
}

static json_t *author_id_of(const json_t *post)
{
    return twitter2_id(event_json_text(json_object_get(post, "user"), "id"));
}

/* Of a reply it is only known which post it answers, not the conversation. */
static json_t *conversation_id_of(const json_t *post)
{
    return json_object_get(post, "reply_to") ? json_null()
                                             : twitter2_id(event_json_text(post, "id"));
}

static json_t *created_at_of(const json_t *post)
{
    return event_json_time(event_json_post_ms(post));
}

static json_t *text_range_of(const json_t *post)
{
    struct tweet_places places = {.text = event_json_text(post, "text")};

    return json_pack("[i,I]", 0, (json_int_t)tweet_place_of(&places, places.text.size));
}

static json_t *edit_controls_of(const json_t *post)
{
    return json_pack("{s:i,s:b,s:o}", "edits_remaining", 0, "is_edit_eligible", 0, "editable_until",
                     created_at_of(post));
}

static json_t *point_of(const json_t *geo)
{
    const json_t *lon = json_object_get(geo, "lon"), *lat = json_object_get(geo, "lat");

    if (!json_is_number(lon) || !json_is_number(lat))
        return NULL;
    return json_pack("{s:s,s:[f,f]}", "type", "Point", "coordinates", json_number_value(lon),
                     json_number_value(lat));
}

static json_t *geo_of(const json_t *post)
{
    json_t *point = point_of(json_object_get(post, "geo"));
    json_t *place = twitter2_place_id(json_object_get(post, "place"));
    json_t *geo = point || place ? json_object() : json_null();

    if (point)
        json_object_set_new(geo, "coordinates", point);
    if (place)
        json_object_set_new(geo, "place_id", place);
    return geo;
}

static json_t *in_reply_to_user_id_of(const json_t *post)
{
    return twitter2_id(event_json_text(json_object_get(post, "reply_to"), "user"));
}

static json_t *lang_of(const json_t *post)
{
    struct sl_slice lang = event_json_text(post, "lang");

    return lang.data ? event_json_or_null(lang) : json_string("und");
}

/* A post has just been made when it is sent. */
static json_t *public_metrics_of(const json_t *post)
{
    (void)post;
    return json_pack("{s:i,s:i,s:i,s:i,s:i,s:i}", "retweet_count", 0, "reply_count", 0,
                     "like_count", 0, "quote_count", 0, "bookmark_count", 0, "impression_count", 0);
}

static json_t *referenced_of(const json_t *post)
{
    json_t *list = json_array();

    for (size_t i = 0; i < TWITTER2_REFERENCES; i++) {
        const struct twitter2_reference *reference = &twitter2_references[i];
        struct sl_slice id = event_json_text(json_object_get(post, reference->member), "post");

        if (list && id.data)
            json_array_append_new(
                list, json_pack("{s:s,s:o}", "type", reference->type, "id", twitter2_id(id)));
    }
    if (!list || json_array_size(list) > 0)
        return list;
    json_decref(list);
    return json_null();
}

static json_t *reply_settings_of(const json_t *post)
{
    (void)post;
    return json_string("everyone");
}

static json_t *source_of(const json_t *post)
{
    return event_json_or_null(event_json_text(post, "source"));
}

static const struct {
    enum twitter2_option option;
    const char *name;
    json_t *(*make)(const json_t *post);
} members[] = {
    {TWITTER2_ATTACHMENTS, "attachments", attachments_of},
    {TWITTER2_AUTHOR_ID, "author_id", author_id_of},
    {TWITTER2_CONVERSATION_ID, "conversation_id", conversation_id_of},
    {TWITTER2_CREATED_AT, "created_at", created_at_of},
    {TWITTER2_DISPLAY_TEXT_RANGE, "display_text_range", text_range_of},
    {TWITTER2_EDIT_CONTROLS, "edit_controls", edit_controls_of},
    {TWITTER2_ENTITIES, "entities", twitter2_entities},
    {TWITTER2_GEO, "geo", geo_of},
    {TWITTER2_IN_REPLY_TO_USER_ID, "in_reply_to_user_id", in_reply_to_user_id_of},
    {TWITTER2_LANG, "lang", lang_of},
    {TWITTER2_PUBLIC_METRICS, "public_metrics", public_metrics_of},
    {TWITTER2_REFERENCED_TWEETS, "referenced_tweets", referenced_of},
    {TWITTER2_REPLY_SETTINGS, "reply_settings", reply_settings_of},
    {TWITTER2_SOURCE, "source", source_of},
};

static int add_member(json_t *tweet, const char *name, json_t *value)
{
    if (!json_is_null(value))
        return json_object_set_new(tweet, name, value); /* -1 if `value` is NULL */
    json_decref(value);
    return 0;
}

static json_t *tweet_of(const json_t *post, uint64_t options)
{
    struct sl_slice id = event_json_text(post, "id");
    json_t *tweet = json_pack("{s:o,s:o,s:[o]}", "id", twitter2_id(id), "text",
                              tweet_text(event_json_text(post, "text")), "edit_history_tweet_ids",
                              twitter2_id(id));
    int r = tweet ? 0 : -1;

    for (size_t i = 0; r == 0 && i < sizeof(members) / sizeof(members[0]); i++) {
        if (options & twitter2_bit(members[i].option))
            r = add_member(tweet, members[i].name, members[i].make(post));
    }
    if (r == 0)
        return tweet;
    json_decref(tweet);
    return NULL;
}

/* --- messages -------------------------------------------------------------------------------- */

static json_t *message_of(const json_t *event, uint64_t options)
{
    const json_t *post = json_object_get(event, "post");
    json_t *message = json_pack("{s:o}", "data", tweet_of(post, options));
    json_t *includes = message ? twitter2_includes(post, options) : NULL;

    if (includes && add_member(message, "includes", includes) == 0)
        return message;
    json_decref(message);
    return NULL;
}

static json_t *deletion_of(const json_t *event)
{
    const json_t *post = json_object_get(event, "post");
    uint64_t id = 0;

    sl_id_parse(event_json_text(event, "id"), &id);
    return json_pack("{s:{s:{s:{s:o,s:o},s:o}}}", "data", "delete", "tweet", "id",
                     twitter2_id(event_json_text(post, "id")), "author_id", author_id_of(post),
                     "event_at", event_json_time(sl_id_time_ms(id)));
}

int twitter2_render(const struct event *event, uint64_t options, struct buffer *ret_text)
{
    bool is_deletion = event->kind == EVENT_DELETE && options & twitter2_bit(TWITTER2_DELETIONS);
    json_t *json, *message;
    int r;

    if (event->kind != EVENT_POST && !is_deletion)
        return 0;
    json = event_json_read(event);
    if (json && is_deletion)
        message = deletion_of(json);
    else
        message = json ? message_of(json, options) : NULL;
    r = message ? event_json_append(message, JSON_ENSURE_ASCII, ret_text) : -ENOMEM;
    json_decref(json);
    json_decref(message);
    return r;
}
