/* twitter1_entities.c - one walk over the text: links first, then what is marked between them.
 *
 * Places are counted along with it, in code points of the text as clients get it. Filters find the
 * same in the normal form of the text (filters/words.h), where places are others. */
#include "gateway/dialects/twitter1_entities.h"

#include <stdbool.h>

#include "base/buffer.h"
#include "base/utf8.h"
#include "filters/urls.h"

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

/* --- words ----------------------------------------------------------------------------------- */

static bool ascii_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool ascii_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Punctuation and spaces of Unicode that stand in texts beside words. */
static bool is_punctuation(const unsigned char *at, size_t size)
{
    unsigned code;

    if (size != 3)
        return size == 2 && at[0] == 0xC2; /* U+0080 to U+00BF */
    code = (at[0] & 0xFu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    return (code >= 0x2000 && code <= 0x206F) ||
           (code >= 0x3000 && code <= 0x303F && code != 0x3005) ||
           (code >= 0xFF00 && code <= 0xFF0F) || (code >= 0xFF1A && code <= 0xFF20) ||
           (code >= 0xFF3B && code <= 0xFF40) || (code >= 0xFF5B && code <= 0xFF65);
}

/* Bytes of the letter, digit or `_` at `at`; 0: there is none. */
static size_t letter_size(struct sl_slice text, size_t at)
{
    const unsigned char *from = (const unsigned char *)text.data + at;
    size_t size;

    if (at == text.size)
        return 0;
    if (from[0] < 0x80)
        return ascii_is_letter(text.data[at]) || ascii_is_digit(text.data[at]) ||
               text.data[at] == '_';
    size = utf8_code_point_size(from, (const unsigned char *)text.data + text.size);
    return is_punctuation(from, size) ? 0 : size;
}

/* Where the word at `at` ends; *ret_has_letter: not all of it are digits and `_`. */
static size_t word_end(struct sl_slice text, size_t at, bool *ret_has_letter)
{
    size_t size;

    *ret_has_letter = false;
    while ((size = letter_size(text, at)) > 0) {
        *ret_has_letter =
            *ret_has_letter || !(ascii_is_digit(text.data[at]) || text.data[at] == '_');
        at += size;
    }
    return at;
}

static size_t cashtag_end(struct sl_slice text, size_t at)
{
    size_t end = at;

    while (end < text.size && end - at < 7 && ascii_is_letter(text.data[end]))
        end++;
    return end - at >= 1 && end - at <= 6 && letter_size(text, end) == 0 ? end : at;
}

static size_t login_end(struct sl_slice text, size_t at)
{
    bool has_letter;

    return word_end(text, at, &has_letter);
}

static size_t hashtag_end(struct sl_slice text, size_t at)
{
    bool has_letter;
    size_t end = word_end(text, at, &has_letter);

    return has_letter ? end : at;
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

static json_t *link_of(struct places *places, const struct sl_url_span *span)
{
    struct sl_slice url = sl_slice(places->text.data + span->start, span->end - span->start);
    const char *colon = memchr(url.data, ':', url.size);
    struct sl_slice shown = sl_slice_from(url, (size_t)(colon - url.data) + 3);

    return json_pack("{s:s#,s:s#,s:s#,s:o}", "url", url.data, (int)url.size, "expanded_url",
                     url.data, (int)url.size, "display_url", shown.data, (int)shown.size, "indices",
                     indices(places, span->start, span->end));
}

/* The sign at `at` begins something that ends at `end`. */
static void add_marked(struct entities *entities, struct places *places, size_t at, size_t end)
{
    struct sl_slice name = sl_slice(places->text.data + at + 1, end - at - 1);
    json_t *where = indices(places, at, end);

    if (places->text.data[at] == '@')
        json_array_append_new(entities->mentions,
                              json_pack("{s:s#,s:s#,s:o}", "screen_name", name.data, (int)name.size,
                                        "name", name.data, (int)name.size, "indices", where));
    else
        json_array_append_new(
            places->text.data[at] == '#' ? entities->hashtags : entities->symbols,
            json_pack("{s:s#,s:o}", "text", name.data, (int)name.size, "indices", where));
}

static size_t marked_end(struct sl_slice text, size_t at)
{
    switch (text.data[at]) {
    case '#':
        return hashtag_end(text, at + 1);
    case '@':
        return login_end(text, at + 1);
    case '$':
        return cashtag_end(text, at + 1);
    default:
        return at + 1;
    }
}

static void find_between(struct entities *entities, struct places *places, size_t from, size_t to)
{
    struct sl_slice text = sl_slice(places->text.data, to);
    bool is_in_word = false;

    for (size_t at = from; at < to;) {
        size_t size = letter_size(text, at), end;

        if (size > 0) {
            is_in_word = (unsigned char)text.data[at] < 0x80;
            at += size;
            continue;
        }
        end = is_in_word ? at + 1 : marked_end(text, at);
        if (end > at + 1)
            add_marked(entities, places, at, end);
        is_in_word = end > at + 1 || text.data[at] == '&';
        at = end;
    }
}

json_t *twitter1_entities(struct sl_slice text)
{
    struct entities entities = {json_array(), json_array(), json_array(), json_array()};
    struct places places = {.text = text};
    struct sl_url_span span;
    size_t at = 0;

    while (at < text.size && sl_url_find(text, at, &span)) {
        find_between(&entities, &places, at, span.start);
        json_array_append_new(entities.urls, link_of(&places, &span));
        at = span.end;
    }
    find_between(&entities, &places, at, text.size);
    return json_pack("{s:o,s:o,s:o,s:o}", "hashtags", entities.hashtags, "urls", entities.urls,
                     "user_mentions", entities.mentions, "symbols", entities.symbols);
}
