/* twitter1_entities.c - prints the marks of a text as JSON, and converts their positions. */
#include "gateway/dialects/twitter1_entities.h"

#include "gateway/dialects/text_marks.h"
#include "gateway/dialects/tweet_text.h"

/* --- entities -------------------------------------------------------------------------------- */

struct entities {
    json_t *hashtags, *urls, *mentions, *symbols;
};

static json_t *indices(struct tweet_places *places, size_t from, size_t to)
{
    size_t first = tweet_place_of(places, from), last = tweet_place_of(places, to);

    return json_pack("[I,I]", (json_int_t)first, (json_int_t)last);
}

static json_t *link_of(const struct tweet_places *places, const struct text_mark *mark,
                       json_t *where)
{
    struct sl_slice url = sl_slice(places->text.data + mark->from, mark->to - mark->from);
    const char *colon = memchr(url.data, ':', url.size);
    struct sl_slice shown = sl_slice_from(url, (size_t)(colon - url.data) + 3);

    return json_pack("{s:s#,s:s#,s:s#,s:o}", "url", url.data, (int)url.size, "expanded_url",
                     url.data, (int)url.size, "display_url", shown.data, (int)shown.size, "indices",
                     where);
}

static void add(struct entities *entities, struct tweet_places *places,
                const struct text_mark *mark)
{
    struct sl_slice name = text_mark_name(places->text, mark);
    json_t *where = indices(places, mark->from, mark->to);

    if (mark->kind == TEXT_MARK_LINK)
        json_array_append_new(entities->urls, link_of(places, mark, where));
    else if (mark->kind == TEXT_MARK_MENTION)
        json_array_append_new(entities->mentions,
                              json_pack("{s:s#,s:s#,s:o}", "screen_name", name.data, (int)name.size,
                                        "name", name.data, (int)name.size, "indices", where));
    else
        json_array_append_new(
            mark->kind == TEXT_MARK_HASHTAG ? entities->hashtags : entities->symbols,
            json_pack("{s:s#,s:o}", "text", name.data, (int)name.size, "indices", where));
}

json_t *twitter1_entities(struct sl_slice text)
{
    struct entities entities = {json_array(), json_array(), json_array(), json_array()};
    struct tweet_places places = {.text = text};
    struct text_marks marks = {.text = text};
    struct text_mark mark;

    while (text_marks_next(&marks, &mark))
        add(&entities, &places, &mark);
    return json_pack("{s:o,s:o,s:o,s:o}", "hashtags", entities.hashtags, "urls", entities.urls,
                     "user_mentions", entities.mentions, "symbols", entities.symbols);
}
