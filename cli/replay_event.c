/* replay_event.c - converts a line of JSON to what the builders of posts and follows take.
 *
 * The slices belong to the parsed JSON, which the event owns; ids that are integers are printed
 * into buffers of the event. Optional members of the wrong type are ignored, because they may be of
 * a newer version; a line without the required members is refused with the reason. */
#include "cli/replay_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[REPLAY_KIND_COUNT] = {"post", "delete", "follow", "unfollow",
                                                          "user"};

/* A string that is not empty; absent: anything else. */
static struct sl_slice get_text(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    if (!json_is_string(value) || json_string_length(value) == 0)
        return SL_SLICE_NONE;
    return sl_slice(json_string_value(value), json_string_length(value));
}

static struct sl_slice get_id(struct replay_event *event, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    char *room;

    if (!json_is_integer(value) || event->numbers_used == REPLAY_NUMBERS)
        return get_text(object, name);
    room = event->numbers[event->numbers_used++];
    snprintf(room, REPLAY_NUMBER_SIZE, "%" PRIdMAX, (intmax_t)json_integer_value(value));
    return sl_slice_str(room);
}

static bool get_number(const json_t *value, double *ret_number)
{
    if (!json_is_number(value))
        return false;
    *ret_number = json_number_value(value);
    return true;
}

static int read_user(struct replay_event *event, const json_t *object, const char *what,
                     struct replay_user *ret_user, struct failure *reterr)
{
    ret_user->id = get_id(event, object, "id");
    ret_user->login = get_text(object, "login");
    ret_user->name = get_text(object, "name");
    if (!ret_user->id.data && !ret_user->login.data)
        return failure_set(reterr, -EINVAL, "%s has neither id nor login", what);
    return 0;
}

static void read_reference(struct replay_event *event, const json_t *object,
                           struct sl_post_reference *ret_reference)
{
    ret_reference->post = get_id(event, object, "post");
    ret_reference->user = get_id(event, object, "user");
    ret_reference->login = get_text(object, "login");
}

static void read_geo(const json_t *geo, struct sl_post *ret_post)
{
    ret_post->has_point = get_number(json_object_get(geo, "lon"), &ret_post->lon) &&
                          get_number(json_object_get(geo, "lat"), &ret_post->lat);
}

static void read_place(const json_t *object, struct sl_post_place *ret_place)
{
    double *edges[] = {&ret_place->west, &ret_place->south, &ret_place->east, &ret_place->north};
    const json_t *bbox = json_object_get(object, "bbox");

    ret_place->name = get_text(object, "name");
    ret_place->country = get_text(object, "country");
    ret_place->has_box = json_array_size(bbox) == 4;
    for (size_t i = 0; ret_place->has_box && i < 4; i++)
        ret_place->has_box = get_number(json_array_get(bbox, i), edges[i]);
}

/* One element too many is kept, so that the builder refuses the post. */
static void read_urls(struct replay_event *event, const json_t *urls)
{
    struct sl_post *post = &event->post;
    const json_t *url;
    size_t i;

    json_array_foreach(urls, i, url)
    {
        if (json_is_string(url) && post->url_count < sizeof(event->urls) / sizeof(event->urls[0]))
            event->urls[post->url_count++] =
                sl_slice(json_string_value(url), json_string_length(url));
    }
    post->urls = event->urls;
}

static int read_media(struct replay_event *event, const json_t *media, struct failure *reterr)
{
    if (json_array_size(media) == 0)
        return 0;
    event->media = json_dumps(media, JSON_COMPACT);
    if (!event->media)
        return failure_set(reterr, -ENOMEM, "out of memory");
    event->post.media = sl_slice_str(event->media);
    return 0;
}

/* The ids in audiences belong to another database; events that were delivered contain none. */
static int read_audience(const json_t *object, struct sl_post *post, struct failure *reterr)
{
    post->audience = get_text(object, "audience");
    if (!post->audience.data || sl_slice_is(post->audience, "public") ||
        sl_slice_is(post->audience, "followers"))
        return 0;
    return failure_set(reterr, -EINVAL, "the post's audience is users of another database");
}

static int read_post(struct replay_event *event, const json_t *object, struct failure *reterr)
{
    struct sl_post *post = &event->post;

    post->text = get_text(object, "text");
    if (!post->text.data)
        return failure_set(reterr, -EINVAL, "the post has no text");
    post->lang = get_text(object, "lang");
    post->source = get_text(object, "source");
    read_geo(json_object_get(object, "geo"), post);
    read_place(json_object_get(object, "place"), &post->place);
    read_reference(event, json_object_get(object, "reply_to"), &post->reply_to);
    read_reference(event, json_object_get(object, "repost_of"), &post->repost_of);
    read_reference(event, json_object_get(object, "quote_of"), &post->quote_of);
    read_urls(event, json_object_get(object, "urls"));
    if (read_audience(object, post, reterr) < 0)
        return -EINVAL;
    return read_media(event, json_object_get(object, "media"), reterr);
}

static int read_kind(const json_t *object, enum replay_kind *ret_kind, struct failure *reterr)
{
    struct sl_slice type = get_text(object, "type");

    for (int kind = 0; kind < REPLAY_KIND_COUNT; kind++) {
        if (sl_slice_is(type, kind_names[kind])) {
            *ret_kind = (enum replay_kind)kind;
            return 0;
        }
    }
    return failure_set(reterr, -EINVAL,
                       "the type of the event is not post, delete, follow, unfollow or user");
}

static int read_members(struct replay_event *event, struct failure *reterr)
{
    const json_t *post = json_object_get(event->json, "post");
    int r;

    r = read_kind(event->json, &event->kind, reterr);
    if (r < 0)
        return r;
    if (event->kind == REPLAY_FOLLOW || event->kind == REPLAY_UNFOLLOW) {
        r = read_user(event, json_object_get(event->json, "user"), "user", &event->user, reterr);
        return r < 0 ? r
                     : read_user(event, json_object_get(event->json, "target"), "target",
                                 &event->target, reterr);
    }
    if (event->kind == REPLAY_USER) {
        event->is_new_user = sl_slice_is(get_text(event->json, "change"), "created");
        return read_user(event, json_object_get(event->json, "user"), "user", &event->user, reterr);
    }
    event->post_id = get_id(event, post, "id");
    if (event->kind == REPLAY_DELETE)
        return event->post_id.data ? 0 : failure_set(reterr, -EINVAL, "post.id is missing");
    r = read_user(event, json_object_get(post, "user"), "post.user", &event->user, reterr);
    return r < 0 ? r : read_post(event, post, reterr);
}

int replay_event_read(struct sl_slice line, struct replay_event *ret_event, struct failure *reterr)
{
    json_error_t error;
    int r;

    *ret_event = (struct replay_event){0};
    ret_event->json = json_loadb(line.data, line.size, 0, &error);
    if (!ret_event->json)
        return failure_set(reterr, -EINVAL, "not JSON: %s", error.text);
    r = json_is_object(ret_event->json) ? read_members(ret_event, reterr)
                                        : failure_set(reterr, -EINVAL, "not a JSON object");
    if (r < 0)
        replay_event_done(ret_event);
    return r;
}

void replay_event_done(struct replay_event *event)
{
    json_decref(event->json);
    free(event->media); /* from json_dumps() */
    event->json = NULL;
    event->media = NULL;
}
