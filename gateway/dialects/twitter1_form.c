/* twitter1_form.c - parses the JSON of an event and builds a Tweet.
 *
 * This is done once for all clients of the dialect, so jansson is fast enough. If an id is not a
 * number, `id_str` is the original id. */
#include "gateway/dialects/twitter1_form.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/tweet_id.h"
#include "gateway/dialects/tweet_text.h"
#include "gateway/dialects/twitter1_entities.h"
#include "src/model/id.h"

/* The largest message that hbc accepts, including its line end. */
enum { MESSAGE_MAX_BYTES = 500000, LINE_END_BYTES = 2 };

static json_t *number_of(struct sl_slice id)
{
    return id.data ? json_integer(tweet_id_number(id)) : json_null();
}

/* Tue Aug 06 02:23:21 +0000 2013 */
static json_t *time_of(uint64_t ms)
{
    time_t seconds = (time_t)(ms / 1000);
    char text[64];
    struct tm tm;

    gmtime_r(&seconds, &tm);
    snprintf(text, sizeof(text), "%s %s %02d %02d:%02d:%02d +0000 %d", clock_day_names[tm.tm_wday],
             clock_month_names[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
             tm.tm_year + 1900);
    return json_string(text);
}

static json_t *milliseconds_of(uint64_t ms)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, ms);
    return json_string(text);
}

/* --- parts of a Tweet ------------------------------------------------------------------------ */

static json_t *user_of(struct sl_slice id, struct sl_slice login, struct sl_slice name)
{
    json_t *user =
        json_pack("{s:o,s:o,s:o,s:o}", "id", number_of(id), "id_str", event_json_or_null(id),
                  "screen_name", event_json_or_null(login.data ? login : id), "name",
                  event_json_or_null(name.data    ? name
                                     : login.data ? login
                                                  : id));
    json_t *rest = json_pack(
        "{s:n,s:n,s:n,s:b,s:b,s:i,s:i,s:i,s:i,s:i,s:b,s:b,s:s,s:s}", "location", "url",
        "description", "protected", 0, "verified", 0, "followers_count", 0, "friends_count", 0,
        "listed_count", 0, "favourites_count", 0, "statuses_count", 0, "default_profile", 1,
        "default_profile_image", 1, "profile_image_url", "", "profile_image_url_https", "");

    if (!user || !rest || json_object_update(user, rest) < 0) {
        json_decref(user);
        user = NULL;
    }
    json_decref(rest);
    return user;
}

/* tweepy searches for the anchor. */
static json_t *source_of(struct sl_slice source)
{
    return source.size
               ? json_sprintf("<a href=\"\" rel=\"nofollow\">%.*s</a>", SL_SLICE_ARG(source))
               : json_string("");
}

static json_t *coordinates_of(const json_t *geo)
{
    const json_t *lon = json_object_get(geo, "lon"), *lat = json_object_get(geo, "lat");

    if (!json_is_number(lon) || !json_is_number(lat))
        return json_null();
    return json_pack("{s:s,s:[f,f]}", "type", "Point", "coordinates", json_number_value(lon),
                     json_number_value(lat));
}

static json_t *box_of(const json_t *bbox)
{
    double edges[4];

    if (json_array_size(bbox) != 4)
        return json_null();
    for (size_t i = 0; i < 4; i++)
        edges[i] = json_number_value(json_array_get(bbox, i));
    return json_pack("{s:s,s:[[[f,f],[f,f],[f,f],[f,f]]]}", "type", "Polygon", "coordinates",
                     edges[0], edges[1], edges[0], edges[3], edges[2], edges[3], edges[2],
                     edges[1]);
}

static json_t *place_of(const json_t *place)
{
    struct sl_slice name = event_json_text(place, "name"),
                    country = event_json_text(place, "country");

    if (!json_is_object(place))
        return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:s,s:o,s:{}}", "name", event_json_or_null(name),
                     "full_name", event_json_or_null(name), "country_code",
                     event_json_or_null(country), "country", event_json_or_null(country),
                     "place_type", "city", "bounding_box", box_of(json_object_get(place, "bbox")),
                     "attributes");
}

static int set_reply(json_t *tweet, const json_t *reply)
{
    struct sl_slice post = event_json_text(reply, "post"), user = event_json_text(reply, "user");
    json_t *members =
        json_pack("{s:o,s:o,s:o,s:o,s:o}", "in_reply_to_status_id", number_of(post),
                  "in_reply_to_status_id_str", event_json_or_null(post), "in_reply_to_user_id",
                  number_of(user), "in_reply_to_user_id_str", event_json_or_null(user),
                  "in_reply_to_screen_name", event_json_or_null(event_json_text(reply, "login")));
    int r = members ? json_object_update(tweet, members) : -1;

    json_decref(members);
    return r;
}

/* A repeated or quoted post, as far as the event describes it. */
static json_t *other_of(const json_t *reference)
{
    struct sl_slice id = event_json_text(reference, "post"),
                    user = event_json_text(reference, "user");
    uint64_t number;
    json_t *other = json_pack("{s:o,s:o,s:n}", "id", number_of(id), "id_str",
                              event_json_or_null(id), "in_reply_to_status_id");

    if (other && user.data)
        json_object_set_new(other, "user",
                            user_of(user, event_json_text(reference, "login"), SL_SLICE_NONE));
    if (other && sl_id_parse(id, &number) == 0)
        json_object_set_new(other, "created_at", time_of(sl_id_time_ms(number)));
    return other;
}

static int set_others(json_t *tweet, const json_t *post)
{
    const json_t *repost = json_object_get(post, "repost_of");
    const json_t *quote = json_object_get(post, "quote_of");
    struct sl_slice quoted = event_json_text(quote, "post");
    int r = json_object_set_new(tweet, "is_quote_status", json_boolean(quoted.data));

    if (event_json_text(repost, "post").data)
        r |= json_object_set_new(tweet, "retweeted_status", other_of(repost));
    if (quoted.data) {
        r |= json_object_set_new(tweet, "quoted_status_id", number_of(quoted));
        r |= json_object_set_new(tweet, "quoted_status_id_str", event_json_or_null(quoted));
    }
    return r;
}

/* --- messages -------------------------------------------------------------------------------- */

static json_t *tweet_of(const json_t *event)
{
    const json_t *post = json_object_get(event, "post"), *user = json_object_get(post, "user");
    struct sl_slice id = event_json_text(post, "id"), text = event_json_text(post, "text");
    struct sl_slice lang = event_json_text(post, "lang");
    json_t *tweet =
        json_pack("{s:o,s:o,s:o,s:o,s:o,s:b,s:o,s:n,s:o,s:o,s:n,s:o,s:b,s:b,s:i,s:i,s:s,s:o,s:o}",
                  "created_at", time_of(event_json_post_ms(post)), "id", number_of(id), "id_str",
                  event_json_or_null(id), "text", tweet_text(text), "source",
                  source_of(event_json_text(post, "source")), "truncated", 0, "user",
                  user_of(event_json_text(user, "id"), event_json_text(user, "login"),
                          event_json_text(user, "name")),
                  "geo", "coordinates", coordinates_of(json_object_get(post, "geo")), "place",
                  place_of(json_object_get(post, "place")), "contributors", "entities",
                  twitter1_entities(text), "favorited", 0, "retweeted", 0, "retweet_count", 0,
                  "favorite_count", 0, "filter_level", "low", "lang",
                  lang.data ? event_json_or_null(lang) : json_string("und"), "timestamp_ms",
                  milliseconds_of(event_json_post_ms(post)));

    if (tweet &&
        (set_reply(tweet, json_object_get(post, "reply_to")) < 0 || set_others(tweet, post) < 0)) {
        json_decref(tweet);
        return NULL;
    }
    return tweet;
}

static json_t *delete_of(const json_t *event)
{
    const json_t *post = json_object_get(event, "post");
    struct sl_slice id = event_json_text(post, "id"),
                    user = event_json_text(json_object_get(post, "user"), "id");
    uint64_t when = 0;

    sl_id_parse(event_json_text(event, "id"), &when);
    return json_pack("{s:{s:{s:o,s:o,s:o,s:o},s:o}}", "delete", "status", "id", number_of(id),
                     "id_str", event_json_or_null(id), "user_id", number_of(user), "user_id_str",
                     event_json_or_null(user), "timestamp_ms",
                     milliseconds_of(sl_id_time_ms(when)));
}

/* The fill level of the queue is unknown here; clients only use the code. */
static json_t *warning_of(const json_t *event)
{
    if (!sl_slice_is(event_json_text(event, "code"), "behind"))
        return json_null();
    return json_pack("{s:{s:s,s:s,s:i}}", "warning", "code", "FALLING_BEHIND", "message",
                     "Your connection is falling behind and messages are being queued for delivery "
                     "to you. Your queue is now over 60% full.",
                     "percent_full", 60);
}

/* A `limit` would need the number of posts, which is not known. hbc needs `percent_full`. */
static json_t *gap_of(const json_t *event)
{
    json_t *message = json_sprintf("Posts are missing here: those after id %s, up to id %s, can no "
                                   "longer be delivered. Their number is not known.",
                                   json_string_value(json_object_get(event, "from")),
                                   json_string_value(json_object_get(event, "to")));

    return json_pack("{s:{s:s,s:o,s:i}}", "warning", "code", "GAP", "message", message,
                     "percent_full", 0);
}

/* NULL: out of memory; null: no message. */
static json_t *message_of(const struct event *event, const json_t *json, uint64_t options)
{
    switch (event->kind) {
    case EVENT_POST:
        return tweet_of(json);
    case EVENT_DELETE:
        return delete_of(json);
    case EVENT_WARNING:
        return options & TWITTER1_WARNINGS ? warning_of(json) : json_null();
    case EVENT_GAP:
        return gap_of(json);
    default:
        return json_null();
    }
}

int twitter1_render(const struct event *event, uint64_t options, struct buffer *ret_text)
{
    json_t *json = event_json_read(event);
    json_t *message = json ? message_of(event, json, options) : NULL;
    size_t begin = ret_text->size;
    int r = message ? 0 : -ENOMEM;

    if (message && !json_is_null(message))
        r = event_json_append(message, JSON_ENSURE_ASCII, ret_text);
    if (ret_text->size - begin > MESSAGE_MAX_BYTES - LINE_END_BYTES)
        ret_text->size = begin;
    json_decref(json);
    json_decref(message);
    return r;
}

void twitter1_limit(uint64_t posts, uint64_t now_ms, struct buffer *ret_json)
{
    buffer_append_format(ret_json,
                         "{\"limit\":{\"track\":%" PRIu64 ",\"timestamp_ms\":\"%" PRIu64 "\"}}",
                         posts, now_ms);
}
