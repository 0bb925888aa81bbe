/* fuzz_words.c - are all texts read as the reference in tests/support reads them?
 *
 * The bytes are made valid UTF-8: invalid bytes become code points that interact with others. A
 * byte 0xFF, which UTF-8 never has, ends a field: text, two listed URLs, place, login, the login of
 * the post replied to. */
#include "fuzz/fuzz.h"

#include <string.h>

#include <unicode/utf8.h>

#include "filters/urls.h"
#include "filters/words_private.h"
#include "tests/support/words_reference.h"

enum { FIELD_TEXT, FIELD_URL, FIELD_URL_2, FIELD_PLACE, FIELD_LOGIN, FIELD_REPLY_TO, FIELDS };

/* Returns the code point for a byte that is not part of valid UTF-8. */
static UChar32 replacement(uint8_t byte)
{
    static const UChar32 interesting[] = {
        0x0130, 0x0300, 0x0301,  0x0307,  0x0308,  0x0323,  0x0327,  0x0344,  0x0345,
        0x0378, 0x0591, 0x05B4,  0x064B,  0x0651,  0x093C,  0x094D,  0x0958,  0x0DDC,
        0x0E38, 0x0E48, 0x0F71,  0x0F73,  0x0FB2,  0x1100,  0x1112,  0x1161,  0x1175,
        0x11A8, 0x11C2, 0x200D,  0x2126,  0x2460,  0x30AB,  0x3099,  0x309A,  0x30FC,
        0x314F, 0x4E2D, 0xAC00,  0xAC01,  0xFB2C,  0xFDFA,  0xFE0F,  0xFF03,  0xFF76,
        0xFF9E, 0xFFC2, 0x1D15F, 0x1F44D, 0x1F3FD, 0x110BA, 0x11131, 0xE0001, 0x2FA1D,
    };

    return interesting[byte % (sizeof(interesting) / sizeof(interesting[0]))];
}

static void append_valid(const uint8_t *data, size_t size, struct buffer *text)
{
    for (size_t i = 0; i < size;) {
        size_t start = i;
        UChar32 c;
        char *room = buffer_reserve(text, U8_MAX_LENGTH);
        size_t length = 0;

        U8_NEXT(data, i, size, c);
        if (c < 0)
            c = replacement(data[start]);
        else if (c == 0)
            c = ' ';
        U8_APPEND_UNSAFE(room, length, c);
        text->size += length;
    }
}

static void check_equal(struct buffer *ours, struct buffer *reference)
{
    must(sl_slice_equal(buffer_slice(ours), buffer_slice(reference)));
    buffer_done(ours);
    buffer_done(reference);
}

static void check_normal_form(struct sl_slice text)
{
    struct buffer ours = BUFFER_INIT, reference = BUFFER_INIT;

    must(sl_normalise(text, &ours) == 0);
    reference_normalise(text, &reference);
    check_equal(&ours, &reference);
}

static void check_reading(struct sl_words *words, const struct sl_event_view *event)
{
    struct buffer ours = BUFFER_INIT, reference = BUFFER_INIT;

    must(sl_words_read(words, event) == 0);
    words_dump(words, &ours);
    reference_dump(event, &reference);
    check_equal(&ours, &reference);
}

/* A term with the same text as a post has the post's tokens, and its one entity. */
static void check_term(struct sl_words *words, struct sl_slice text)
{
    struct sl_event_view event = {.text = text};
    struct buffer normal = BUFFER_INIT;
    struct sl_token_list tokens = SL_TOKEN_LIST_INIT;
    struct sl_slice name;
    enum sl_entity_kind kind;

    must(sl_words_read(words, &event) == 0);
    must(sl_normalise(text, &normal) == 0);
    must(sl_tokenise(buffer_slice(&normal), &words->key, &tokens) == 0);
    kind = sl_entity_of(buffer_slice(&normal), &name);
    if (words->urls.count == 0) {
        must(tokens.count == words->tokens.count);
        for (size_t i = 0; i < tokens.count; i++)
            must(tokens.items[i].hash == words->tokens.items[i].hash &&
                 tokens.items[i].gap == words->tokens.items[i].gap);
        if (kind != SL_ENTITY_NONE) {
            const struct sl_name_list *names = kind == SL_ENTITY_HASHTAG   ? &words->hashtags
                                               : kind == SL_ENTITY_MENTION ? &words->mentions
                                                                           : &words->cashtags;

            must(names->count > 0 && sl_slice_equal(sl_words_name(words, names->items), name));
        }
    }
    must(!sl_is_login(buffer_slice(&normal)) || (tokens.count > 0 && tokens.items[0].gap));
    sl_token_list_done(&tokens);
    buffer_done(&normal);
}

/* A text that is only a URL is an operand of `url:` with the same host and path. */
static void check_url_operand(struct sl_words *words, struct sl_slice text)
{
    struct sl_event_view event = {.text = text};
    struct buffer host = BUFFER_INIT;
    struct sl_url_span span;
    struct sl_slice path;
    int r = sl_parse_url_operand(text, &host, &path);

    if (sl_url_find(text, 0, &span) && span.start == 0 && span.end == text.size) {
        must(sl_words_read(words, &event) == 0 && words->urls.count == 1);
        must((r == 0) == (words->urls.items[0].host.size > 0));
        if (r == 0) {
            must(sl_slice_equal(buffer_slice(&host),
                                sl_words_name(words, &words->urls.items[0].host)));
            must(sl_slice_starts_with(words->urls.items[0].path, path));
        }
    }
    buffer_done(&host);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer fields[FIELDS];
    struct sl_slice urls[2];
    struct sl_event_view event = {.urls = urls, .url_count = 2};
    struct sl_words *words = sl_words_new(size);

    for (size_t i = 0, at = 0; i < FIELDS; i++) {
        const uint8_t *end = at < size ? memchr(data + at, 0xFF, size - at) : NULL;
        size_t length = (end ? (size_t)(end - data) : size) - at;

        fields[i] = BUFFER_INIT;
        append_valid(data + at, length, &fields[i]);
        at += length + (end ? 1 : 0);
    }
    event.text = buffer_slice(&fields[FIELD_TEXT]);
    urls[0] = buffer_slice(&fields[FIELD_URL]);
    urls[1] = buffer_slice(&fields[FIELD_URL_2]);
    event.place = buffer_slice(&fields[FIELD_PLACE]);
    event.login = buffer_slice(&fields[FIELD_LOGIN]);
    event.reply_to.login = buffer_slice(&fields[FIELD_REPLY_TO]);

    check_normal_form(event.text);
    check_reading(words, &event);
    check_term(words, event.text);
    check_url_operand(words, event.text);

    sl_words_free(words);
    for (size_t i = 0; i < FIELDS; i++)
        buffer_done(&fields[i]);
    return 0;
}
