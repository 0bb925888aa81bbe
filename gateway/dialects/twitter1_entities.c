/* twitter1_entities.c - what is marked in a text, as JSON.
 *
 * Places are counted along with it, in code points of the text as clients get it. */
#include "gateway/dialects/twitter1_entities.h"

#include <stdbool.h>

#include "base/buffer.h"
#include "gateway/dialects/text_marks.h"

static const char *escape_of(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    default:
        return NULL;
    }
}

json_t *twitter1_text(struct sl_slice text)
{
    struct buffer escaped = BUFFER_INIT;
    json_t *json;

    for (size_t i = 0; i < text.size; i++) {
        const char *escape = escape_of(text.data[i]);

        if (escape)
            buffer_append_str(&escaped, escape);
        else
            buffer_append_char(&escaped, text.data[i]);
    }
    json = escaped.failed ? NULL : json_stringn(escaped.size ? escaped.data : "", escaped.size);
    buffer_done(&escaped);
    return json;
}

/* --- places ---------------------------------------------------------------------------------- */

/* Where bytes of the text are in what clients get. Places are asked for in rising order. */
struct places {
    struct sl_slice text;
    size_t byte, place;
};

static size_t place_of(struct places *places, size_t byte)
{
    for (; places->byte < byte; places->byte++) {
        char c = places->text.data[places->byte];
        const char *escape = escape_of(c);

        if (escape)
            places->place += strlen(escape);
        else if ((c & 0xC0) != 0x80)
            places->place++;
    }
    return places->place;
}

/* --- entities -------------------------------------------------------------------------------- */

struct entities {
    json_t *hashtags, *urls, *mentions, *symbols;
};

static json_t *indices(struct places *places, size_t from, size_t to)
{
    size_t first = place_of(places, from), last = place_of(places, to);

    return json_pack("[I,I]", (json_int_t)first, (json_int_t)last);
}

static json_t *link_of(const struct places *places, const struct text_mark *mark, json_t *where)
{
    struct sl_slice url = sl_slice(places->text.data + mark->from, mark->to - mark->from);
    const char *colon = memchr(url.data, ':', url.size);
    struct sl_slice shown = sl_slice_from(url, (size_t)(colon - url.data) + 3);

    return json_pack("{s:s#,s:s#,s:s#,s:o}", "url", url.data, (int)url.size, "expanded_url",
                     url.data, (int)url.size, "display_url", shown.data, (int)shown.size, "indices",
                     where);
}

static void add(struct entities *entities, struct places *places, const struct text_mark *mark)
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
    struct places places = {.text = text};
    struct text_marks marks = {.text = text};
    struct text_mark mark;

    while (text_marks_next(&marks, &mark))
        add(&entities, &places, &mark);
    return json_pack("{s:o,s:o,s:o,s:o}", "hashtags", entities.hashtags, "urls", entities.urls,
                     "user_mentions", entities.mentions, "symbols", entities.symbols);
}
