#include "gateway/dialects/twitter2_entities.h"

#include <inttypes.h>
#include <strings.h>

#include "gateway/dialects/event_json.h"
#include "gateway/dialects/text_marks.h"
#include "gateway/dialects/tweet_id.h"
#include "gateway/dialects/tweet_text.h"

static bool is_login(struct sl_slice a, struct sl_slice b)
{
    return a.size == b.size && a.size > 0 && strncasecmp(a.data, b.data, a.size) == 0;
}

struct sl_slice twitter2_user_called(const json_t *post, struct sl_slice login)
{
    static const char *const references[] = {"reply_to", "repost_of", "quote_of"};
    const json_t *author = json_object_get(post, "user");

    if (is_login(event_json_text(author, "login"), login))
        return event_json_text(author, "id");
    for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++) {
        const json_t *reference = json_object_get(post, references[i]);

        if (is_login(event_json_text(reference, "login"), login))
            return event_json_text(reference, "user");
    }
    return SL_SLICE_NONE;
}

static json_t *mention_of(const json_t *post, struct sl_slice name)
{
    struct sl_slice id = twitter2_user_called(post, name);
    json_t *mention = json_pack("{s:s#}", "username", name.data, (int)name.size);

    if (mention && id.data)
        json_object_set_new(mention, "id", json_sprintf("%" PRId64, tweet_id_number(id)));
    return mention;
}

static json_t *link_of(struct sl_slice url)
{
    const char *colon = memchr(url.data, ':', url.size);
    struct sl_slice shown = sl_slice_from(url, (size_t)(colon - url.data) + 3);

    return json_pack("{s:s#,s:s#,s:s#}", "url", url.data, (int)url.size, "expanded_url", url.data,
                     (int)url.size, "display_url", shown.data, (int)shown.size);
}

static json_t *entity_of(const json_t *post, struct sl_slice text, const struct text_mark *mark)
{
    struct sl_slice name = text_mark_name(text, mark);

    switch (mark->kind) {
    case TEXT_MARK_LINK:
        return link_of(name);
    case TEXT_MARK_MENTION:
        return mention_of(post, name);
    default:
        return json_pack("{s:s#}", "tag", name.data, (int)name.size);
    }
}

json_t *twitter2_entities(const json_t *post)
{
    static const char *const kinds[] = {
        [TEXT_MARK_LINK] = "urls",
        [TEXT_MARK_HASHTAG] = "hashtags",
        [TEXT_MARK_MENTION] = "mentions",
        [TEXT_MARK_CASHTAG] = "cashtags",
    };
    struct sl_slice text = event_json_text(post, "text");
    struct tweet_places places = {.text = text};
    struct text_marks marks = {.text = text};
    json_t *entities = json_object();
    struct text_mark mark;
    bool failed = !entities;

    while (!failed && text_marks_next(&marks, &mark)) {
        json_t *entity = entity_of(post, text, &mark);
        size_t start = tweet_place_of(&places, mark.from), end = tweet_place_of(&places, mark.to);

        if (!json_object_get(entities, kinds[mark.kind]))
            json_object_set_new(entities, kinds[mark.kind], json_array());
        json_object_set_new(entity, "start", json_integer((json_int_t)start));
        json_object_set_new(entity, "end", json_integer((json_int_t)end));
        failed = json_array_append_new(json_object_get(entities, kinds[mark.kind]), entity) < 0;
    }
    if (failed || json_object_size(entities) == 0) {
        json_decref(entities);
        return failed ? NULL : json_null();
    }
    return entities;
}
