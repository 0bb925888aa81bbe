/* twitter2_includes.c - lists of users, places and media, each object once.
 *
 * A post refers to few objects, so lists are searched linearly. If jansson fails in between, a
 * member is missing; the lists are complete or the result is NULL. */
#include "gateway/dialects/twitter2_includes.h"

#include <inttypes.h>

#include "base/stable_hash.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/text_marks.h"
#include "gateway/dialects/tweet_id.h"
#include "gateway/dialects/twitter2_entities.h"
#include "gateway/dialects/twitter2_fields.h"

const struct twitter2_reference twitter2_references[TWITTER2_REFERENCES] = {
    {"reply_to", "replied_to"},
    {"repost_of", "retweeted"},
    {"quote_of", "quoted"},
};

static bool has(uint64_t options, enum twitter2_option option)
{
    return options & twitter2_bit(option);
}

json_t *twitter2_id(struct sl_slice id)
{
    return id.data ? json_sprintf("%" PRId64, tweet_id_number(id)) : json_null();
}

/* --- users ----------------------------------------------------------------------------------- */

static bool is_listed(const json_t *users, const json_t *id)
{
    for (size_t i = 0; i < json_array_size(users); i++) {
        if (json_equal(json_object_get(json_array_get(users, i), "id"), id))
            return true;
    }
    return false;
}

/* Adds a user unless it is in the list. */
static void add_user(json_t *users, struct sl_slice id, struct sl_slice login, struct sl_slice name,
                     uint64_t options)
{
    struct sl_slice username = login.data ? login : id;
    json_t *user, *id_json;

    if (!id.data)
        return;
    id_json = twitter2_id(id);
    if (is_listed(users, id_json)) {
        json_decref(id_json);
        return;
    }
    user = json_pack("{s:o,s:o,s:o}", "id", id_json, "name",
                     event_json_or_null(name.data ? name : username), "username",
                     event_json_or_null(username));
    if (has(options, TWITTER2_USER_PROTECTED))
        json_object_set_new(user, "protected", json_false());
    if (has(options, TWITTER2_USER_VERIFIED))
        json_object_set_new(user, "verified", json_false());
    if (has(options, TWITTER2_USER_VERIFIED_TYPE))
        json_object_set_new(user, "verified_type", json_string("none"));
    json_array_append_new(users, user);
}

static void add_referenced(json_t *users, const json_t *reference, uint64_t options)
{
    add_user(users, event_json_text(reference, "user"), event_json_text(reference, "login"),
             SL_SLICE_NONE, options);
}

static void add_mentioned(json_t *users, const json_t *post, uint64_t options)
{
    struct sl_slice text = event_json_text(post, "text");
    struct text_marks marks = {.text = text};
    struct text_mark mark;

    while (text_marks_next(&marks, &mark)) {
        struct sl_slice name = text_mark_name(text, &mark);

        if (mark.kind == TEXT_MARK_MENTION)
            add_user(users, twitter2_user_called(post, name), name, SL_SLICE_NONE, options);
    }
}

static json_t *users_of(const json_t *post, uint64_t options)
{
    const json_t *author = json_object_get(post, "user");
    json_t *users = json_array();

    if (has(options, TWITTER2_WITH_AUTHOR))
        add_user(users, event_json_text(author, "id"), event_json_text(author, "login"),
                 event_json_text(author, "name"), options);
    if (has(options, TWITTER2_WITH_REPLIED_TO))
        add_referenced(users, json_object_get(post, "reply_to"), options);
    if (has(options, TWITTER2_WITH_MENTIONED))
        add_mentioned(users, post, options);
    for (size_t i = 0; has(options, TWITTER2_WITH_REFERENCED_AUTHORS) && i < TWITTER2_REFERENCES;
         i++)
        add_referenced(users, json_object_get(post, twitter2_references[i].member), options);
    return users;
}

/* --- places ---------------------------------------------------------------------------------- */

static uint64_t hash_text(uint64_t hash, struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++)
        hash = stable_hash(hash ^ (unsigned char)text.data[i]);
    return stable_hash(hash ^ text.size);
}

json_t *twitter2_place_id(const json_t *place)
{
    const json_t *bbox = json_object_get(place, "bbox");
    uint64_t hash = hash_text(0, event_json_text(place, "name"));

    if (!json_is_object(place))
        return NULL;
    hash = hash_text(hash, event_json_text(place, "country"));
    for (size_t i = 0; i < 4; i++) {
        double edge = json_number_value(json_array_get(bbox, i));

        hash = hash_text(hash, sl_slice((const char *)&edge, sizeof(edge)));
    }
    return json_sprintf("%016" PRIx64, hash);
}

static json_t *place_geo_of(const json_t *bbox)
{
    if (json_array_size(bbox) != 4)
        return json_null();
    return json_pack("{s:s,s:O,s:{}}", "type", "Feature", "bbox", bbox, "properties");
}

static json_t *place_of(const json_t *place, uint64_t options)
{
    struct sl_slice name = event_json_text(place, "name");
    json_t *country = event_json_or_null(event_json_text(place, "country"));
    json_t *json = json_pack("{s:o,s:o}", "id", twitter2_place_id(place), "full_name",
                             name.data ? event_json_or_null(name) : json_string(""));

    if (has(options, TWITTER2_PLACE_NAME) && name.data)
        json_object_set_new(json, "name", event_json_or_null(name));
    if (has(options, TWITTER2_PLACE_COUNTRY) && json_is_string(country))
        json_object_set(json, "country", country);
    if (has(options, TWITTER2_PLACE_COUNTRY_CODE) && json_is_string(country))
        json_object_set(json, "country_code", country);
    if (has(options, TWITTER2_PLACE_TYPE))
        json_object_set_new(json, "place_type", json_string("city"));
    if (has(options, TWITTER2_PLACE_GEO) && json_array_size(json_object_get(place, "bbox")) == 4)
        json_object_set_new(json, "geo", place_geo_of(json_object_get(place, "bbox")));
    json_decref(country);
    return json;
}

static json_t *places_of(const json_t *post, uint64_t options)
{
    const json_t *place = json_object_get(post, "place");
    json_t *places = json_array();

    if (json_is_object(place))
        json_array_append_new(places, place_of(place, options));
    return places;
}

/* --- media ----------------------------------------------------------------------------------- */

static json_t *media_key_of(const json_t *post, const json_t *item, size_t number)
{
    struct sl_slice key = event_json_text(item, "media_key");
    struct sl_slice id = event_json_text(post, "id");

    return key.data ? event_json_or_null(key)
                    : json_sprintf("%zu_%" PRId64, number + 1, tweet_id_number(id));
}

json_t *twitter2_media_keys(const json_t *post)
{
    const json_t *media = json_object_get(post, "media");
    json_t *keys;

    if (json_array_size(media) == 0)
        return json_null();
    keys = json_array();
    for (size_t i = 0; i < json_array_size(media); i++)
        json_array_append_new(keys, media_key_of(post, json_array_get(media, i), i));
    return keys;
}

static json_t *medium_of(const json_t *post, const json_t *item, size_t number, uint64_t options)
{
    static const struct {
        enum twitter2_option option;
        const char *name;
    } members[] = {
        {TWITTER2_MEDIA_ALT_TEXT, "alt_text"},
        {TWITTER2_MEDIA_DURATION_MS, "duration_ms"},
        {TWITTER2_MEDIA_HEIGHT, "height"},
        {TWITTER2_MEDIA_PREVIEW_IMAGE_URL, "preview_image_url"},
        {TWITTER2_MEDIA_URL, "url"},
        {TWITTER2_MEDIA_VARIANTS, "variants"},
        {TWITTER2_MEDIA_WIDTH, "width"},
    };
    struct sl_slice type = event_json_text(item, "type");
    json_t *json = json_pack("{s:o,s:o}", "media_key", media_key_of(post, item, number), "type",
                             type.data ? event_json_or_null(type) : json_string("photo"));

    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        json_t *value = json_object_get(item, members[i].name);

        if (has(options, members[i].option) && value && !json_is_null(value))
            json_object_set(json, members[i].name, value);
    }
    return json;
}

static json_t *media_of(const json_t *post, uint64_t options)
{
    const json_t *media = json_object_get(post, "media");
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(media); i++)
        json_array_append_new(list, medium_of(post, json_array_get(media, i), i, options));
    return list;
}

/* --- includes -------------------------------------------------------------------------------- */

/* Adds the list unless it is empty. 0; -1: out of memory. */
static int add_list(json_t *includes, const char *name, json_t *list)
{
    if (!list || json_array_size(list) > 0)
        return json_object_set_new(includes, name, list);
    json_decref(list);
    return 0;
}

json_t *twitter2_includes(const json_t *post, uint64_t options)
{
    json_t *includes = json_object();
    int r = includes ? add_list(includes, "users", users_of(post, options)) : -1;

    if (r == 0 && has(options, TWITTER2_WITH_PLACE))
        r = add_list(includes, "places", places_of(post, options));
    if (r == 0 && has(options, TWITTER2_WITH_MEDIA))
        r = add_list(includes, "media", media_of(post, options));
    if (r == 0 && json_object_size(includes) > 0)
        return includes;
    json_decref(includes);
    return r < 0 ? NULL : json_null();
}
