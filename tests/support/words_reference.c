#include "tests/support/words_reference.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/uscript.h>
#include <unicode/uset.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "filters/words_private.h"

/* Unlike assert(), it is never compiled out. */
static void must(bool condition)
{
    if (!condition)
        abort();
}

struct points {
    UChar32 *items;
    int count;
};

struct lists {
    struct buffer tokens, hashtags, mentions, cashtags, urls, place;
};

/* --- normal form -------------------------------------------------------------------------- */

static bool is_unicode_15(void)
{
    UVersionInfo version;

    u_getUnicodeVersion(version);
    return version[0] == 15 && version[1] == 0;
}

static const UNormalizer2 *pinned(const UNormalizer2 *normaliser)
{
    static const UChar pattern[] = u"[[:age=15.0:][:Default_Ignorable_Code_Point:]]";
    static USet *known;
    UErrorCode status = U_ZERO_ERROR;
    UNormalizer2 *filtered;

    if (is_unicode_15())
        return normaliser;
    if (!known)
        known = uset_openPattern(pattern, -1, &status);
    filtered = unorm2_openFiltered(normaliser, known, &status);
    must(U_SUCCESS(status));
    return filtered;
}

static UChar *apply(const UNormalizer2 *normaliser, UChar *text, int32_t *length)
{
    UErrorCode status = U_ZERO_ERROR;
    int32_t room = *length * 18 + 1; /* no mapping is longer */
    UChar *result = malloc((size_t)room * sizeof(*result));

    must(result);
    *length = unorm2_normalize(normaliser, text, *length, result, room, &status);
    must(U_SUCCESS(status));
    free(text);
    return result;
}

static struct points normal_form(const char *text, size_t size)
{
    static const UNormalizer2 *casefold, *nfc;
    UErrorCode status = U_ZERO_ERROR;
    UChar *units = malloc((size + 1) * sizeof(*units));
    struct points points = {NULL, 0};
    int32_t length;

    must(units);
    if (!nfc) {
        casefold = pinned(unorm2_getNFKCCasefoldInstance(&status));
        nfc = pinned(unorm2_getNFCInstance(&status));
    }
    u_strFromUTF8(units, (int32_t)size + 1, &length, text, (int32_t)size, &status);
    must(U_SUCCESS(status));
    units = apply(casefold, units, &length);
    units = apply(nfc, units, &length);

    points.items = malloc(((size_t)length + 1) * sizeof(*points.items));
    must(points.items);
    for (int32_t i = 0, last = 0; i < length;) {
        UChar32 c;

        U16_NEXT(units, i, length, c);
        if (c != 0x307 || last != 'i')
            points.items[points.count++] = c;
        last = c;
    }
    free(units);
    return points;
}

static void append_points(struct buffer *buffer, const UChar32 *points, int count)
{
    for (int i = 0; i < count; i++) {
        char bytes[4];
        int size = 0;

        U8_APPEND_UNSAFE(bytes, size, points[i]);
        buffer_append(buffer, bytes, (size_t)size);
    }
}

void reference_normalise(struct sl_slice text, struct buffer *normal)
{
    struct points points = normal_form(text.data, text.size);

    append_points(normal, points.items, points.count);
    free(points.items);
}

/* --- tokens and entities ------------------------------------------------------------------ */

char reference_class(uint32_t code_point, bool *ret_letter)
{
    UChar32 c = (UChar32)code_point;
    UErrorCode status = U_ZERO_ERROR;
    UScriptCode script = uscript_getScript(c, &status);
    uint32_t category = U_GET_GC_MASK(c);
    UVersionInfo age;

    u_charAge(c, age);
    if (age[0] > 15 || (age[0] == 15 && age[1] > 0))
        category = U_GC_CN_MASK;
    *ret_letter = (category & U_GC_L_MASK) != 0;
    if (category & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)) {
        switch ((int)script) {
        case USCRIPT_HAN:
        case USCRIPT_HIRAGANA:
        case USCRIPT_KATAKANA:
        case USCRIPT_BOPOMOFO:
        case USCRIPT_HANGUL:
        case USCRIPT_THAI:
        case USCRIPT_LAO:
        case USCRIPT_KHMER:
        case USCRIPT_MYANMAR:
            return 'U';
        default:
            return c == 0x30FC ? 'U' : 'W';
        }
    }
    if (c == '_')
        return 'W';
    return (category & U_GC_SO_MASK) || (c >= 0x1F3FB && c <= 0x1F3FF) ? 'E' : '-';
}

static char class_at(const struct points *p, int i, bool *ret_letter)
{
    *ret_letter = false;
    return i >= 0 && i < p->count ? reference_class((uint32_t)p->items[i], ret_letter) : '-';
}

static void read_tokens(const struct points *p, struct buffer *tokens)
{
    for (int i = 0; i < p->count;) {
        int start = i;
        bool letter, gap = class_at(p, i - 1, &letter) == '-';
        char class = class_at(p, i++, &letter);

        if (class == '-')
            continue;
        while (class == 'W' && class_at(p, i, &letter) == 'W')
            i++;
        buffer_append_char(tokens, ' ');
        append_points(tokens, p->items + start, i - start);
        buffer_append_str(tokens, gap ? "'1" : "'0");
    }
}

static void add_name(struct buffer *list, const UChar32 *points, int count)
{
    buffer_append_char(list, ' ');
    append_points(list, points, count);
}

static bool is_plain(UChar32 c, const char *others)
{
    return (c >= 'a' && c <= 'z') || (c < 0x80 && c > 0 && strchr(others, c));
}

static void read_entities(const struct points *p, struct lists *lists)
{
    int closing = -1;

    for (int i = 0; i < p->count; i++) {
        UChar32 before = i > 0 ? p->items[i - 1] : 0;
        const UChar32 *run = p->items + i + 1;
        bool letter, letters = false, not_letter;
        char class_before = class_at(p, i - 1, &not_letter);
        int size = 0, plain = 0;

        for (char class = class_at(p, i + 1, &letter); class == 'W' || class == 'U';) {
            letters |= letter;
            size++;
            class = class_at(p, i + 1 + size, &letter);
        }
        if (p->items[i] == '#' && class_before != 'W' && before != '&' && i != closing && letters) {
            add_name(&lists->hashtags, run, size);
            if (i + 1 + size < p->count && run[size] == '#')
                closing = i + 1 + size;
        }
        if (p->items[i] == '@' && class_before != 'W' && size > 0) {
            while (plain < size && is_plain(run[plain], "0123456789_"))
                plain++;
            add_name(&lists->mentions, run, size);
            if (plain > 0 && plain < size)
                add_name(&lists->mentions, run, plain);
        }
        if (p->items[i] == '$' && class_before != 'W' && class_before != 'U' && before != '$') {
            while (plain < size && is_plain(run[plain], ""))
                plain++;
            if (size >= 1 && size <= 6 && plain == size)
                add_name(&lists->cashtags, run, size);
        }
    }
}

/* --- URLs --------------------------------------------------------------------------------- */

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Returns the size of the URL at `text`, 0 for none; *ret_skip: where to continue searching. */
static size_t url_size(const char *text, size_t size, size_t *ret_skip)
{
    size_t scheme, end;
    bool found = false;

    *ret_skip = 1;
    if (size >= 7 && strncasecmp(text, "http://", 7) == 0)
        scheme = 7;
    else if (size >= 8 && strncasecmp(text, "https://", 8) == 0)
        scheme = 8;
    else
        return 0;
    *ret_skip = scheme;
    for (end = scheme; end < size && text[end] >= 0x21 && text[end] <= 0x7E; end++)
        if (strchr("\"<>\\^`{|}", text[end]))
            break;
    while (end > scheme && strchr(".,;:!?')]", text[end - 1]))
        end--;
    for (size_t i = scheme; i < end; i++)
        found |= is_alphanumeric(text[i]);
    return found ? end : 0;
}

static void add_url(const char *text, size_t size, struct buffer *urls)
{
    char *url = strndup(text, size);
    char *host = strstr(url, "://") + 3;
    char *path = host + strcspn(host, "/?#");
    char *rest = strndup(path, strcspn(path, "?#"));
    char *colon;

    *path = '\0';
    if (strrchr(host, '@'))
        host = strrchr(host, '@') + 1;
    colon = strrchr(host, ':');
    if (colon && colon[1 + strspn(colon + 1, "0123456789")] == '\0')
        *colon = '\0';
    for (char *c = host; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + ('a' - 'A'));
    while (*host && host[strlen(host) - 1] == '.')
        host[strlen(host) - 1] = '\0';
    if (strncmp(host, "www.", 4) == 0)
        host += 4;
    buffer_append_format(urls, " %s%s", host, rest);
    free(rest);
    free(url);
}

static void read_piece(const char *text, size_t size, struct lists *lists)
{
    struct points points = normal_form(text, size);

    read_tokens(&points, &lists->tokens);
    read_entities(&points, lists);
    free(points.items);
}

static void add_barrier(struct buffer *tokens)
{
    if (tokens->size > 0 && tokens->data[tokens->size - 1] != '|')
        buffer_append_str(tokens, " |");
}

static void read_text(struct sl_slice text, struct lists *lists)
{
    size_t piece = 0, skip;

    for (size_t i = 0; i < text.size; i += skip) {
        size_t size = url_size(text.data + i, text.size - i, &skip);
        char before = i > 0 ? text.data[i - 1] : ' ';

        if (skip > 1 && (is_alphanumeric(before) || before == '_')) {
            skip = 1;
            continue;
        }
        if (size == 0)
            continue;
        read_piece(text.data + piece, i - piece, lists);
        add_barrier(&lists->tokens);
        add_url(text.data + i, size, &lists->urls);
        piece = i + size;
        skip = size;
    }
    read_piece(text.data + piece, text.size - piece, lists);
    if (lists->tokens.size > 0 && lists->tokens.data[lists->tokens.size - 1] == '|')
        lists->tokens.size -= 2;
}

/* --- all of it ---------------------------------------------------------------------------- */

static void append_list(struct buffer *dump, const char *name, struct buffer *list)
{
    buffer_append_str(dump, name);
    buffer_append_slice(dump, buffer_slice(list));
    buffer_append_char(dump, '\n');
    buffer_done(list);
}

static void append_login(struct buffer *dump, const char *name, struct sl_slice login)
{
    buffer_append_str(dump, name);
    reference_normalise(login, dump);
    buffer_append_char(dump, '\n');
}

void reference_dump(const struct sl_event_view *event, struct buffer *dump)
{
    struct lists lists = {BUFFER_INIT, BUFFER_INIT, BUFFER_INIT,
                          BUFFER_INIT, BUFFER_INIT, BUFFER_INIT};
    struct points place = normal_form(event->place.data, event->place.size);
    size_t skip;

    read_text(event->text, &lists);
    for (size_t i = 0; i < event->url_count; i++) {
        size_t size = url_size(event->urls[i].data, event->urls[i].size, &skip);

        if (size > 0)
            add_url(event->urls[i].data, size, &lists.urls);
    }
    read_tokens(&place, &lists.place);
    free(place.items);
    append_list(dump, "tokens:", &lists.tokens);
    append_list(dump, "hashtags:", &lists.hashtags);
    append_list(dump, "mentions:", &lists.mentions);
    append_list(dump, "cashtags:", &lists.cashtags);
    append_list(dump, "urls:", &lists.urls);
    append_list(dump, "place:", &lists.place);
    append_login(dump, "login: ", event->login);
    append_login(dump, "reply_to: ", event->reply_to.login);
    append_login(dump, "repost_of: ", event->repost_of.login);
}

static void dump_tokens(const struct sl_words *words, const char *name,
                        const struct sl_token_list *tokens, struct buffer *dump)
{
    buffer_append_str(dump, name);
    for (size_t i = 0; i < tokens->count; i++) {
        struct sl_slice token = sl_words_token(words, &tokens->items[i]);

        if (token.size == 0) {
            must(tokens->items[i].hash == 0);
            buffer_append_str(dump, " |");
            continue;
        }
        must(tokens->items[i].hash == sl_word_hash(&words->key, token.data, token.size));
        buffer_append_char(dump, ' ');
        buffer_append_slice(dump, token);
        buffer_append_str(dump, tokens->items[i].gap ? "'1" : "'0");
    }
    buffer_append_char(dump, '\n');
}

static void dump_name(const struct sl_words *words, const struct sl_name *name, struct buffer *dump)
{
    struct sl_slice bytes = sl_words_name(words, name);

    must(bytes.size == 0 || name->hash == sl_word_hash(&words->key, bytes.data, bytes.size));
    buffer_append_char(dump, ' ');
    buffer_append_slice(dump, bytes);
}

static void dump_names(const struct sl_words *words, const char *label,
                       const struct sl_name_list *names, struct buffer *dump)
{
    buffer_append_str(dump, label);
    for (size_t i = 0; i < names->count; i++)
        dump_name(words, &names->items[i], dump);
    buffer_append_char(dump, '\n');
}

void words_dump(const struct sl_words *words, struct buffer *dump)
{
    const struct sl_name_list login = {(struct sl_name *)&words->login, 1, 1};
    const struct sl_name_list reply_to = {(struct sl_name *)&words->reply_to_login, 1, 1};
    const struct sl_name_list repost_of = {(struct sl_name *)&words->repost_of_login, 1, 1};

    dump_tokens(words, "tokens:", &words->tokens, dump);
    dump_names(words, "hashtags:", &words->hashtags, dump);
    dump_names(words, "mentions:", &words->mentions, dump);
    dump_names(words, "cashtags:", &words->cashtags, dump);
    buffer_append_str(dump, "urls:");
    for (size_t i = 0; i < words->urls.count; i++) {
        dump_name(words, &words->urls.items[i].host, dump);
        buffer_append_slice(dump, words->urls.items[i].path);
    }
    buffer_append_char(dump, '\n');
    dump_tokens(words, "place:", &words->place, dump);
    dump_names(words, "login:", &login, dump);
    dump_names(words, "reply_to:", &reply_to, dump);
    dump_names(words, "repost_of:", &repost_of, dump);
}
