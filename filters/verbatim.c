/* verbatim.c - matches whole words, and runs of text between white space.
 *
 * A whole word is looked up among the tokens, like a keyword, and its neighbours are checked: a
 * script without spaces does not end a word here, an emoji does. Links are split into words on
 * demand. For each verbatim term the text is scanned once; few filters have such terms, and only
 * those are evaluated whose terms are known to be in the text (event_keys.c).
 *
 * Calls in a circle with condition.c: that decodes the operand of a whole word, as it does for all
 * kinds. */
#include "filters/verbatim.h"

#include "filters/ascii.h"
#include "filters/condition.h"
#include "filters/tables/unicode_table.h"

/* --- whole words -------------------------------------------------------------------------- */

static enum sl_unicode_class class_at(const char *at, unsigned *ret_size)
{
    uint32_t code_point = sl_utf8_decode((const unsigned char *)at, ret_size);

    return (enum sl_unicode_class)(sl_unicode_info(code_point) & SL_UNICODE_CLASS_MASK);
}

static bool is_emoji(const struct sl_words *words, size_t at)
{
    unsigned ignored;

    return class_at(sl_words_token(words, &words->tokens.items[at]).data, &ignored) ==
           SL_UNICODE_EMOJI;
}

/* Whether one word ends and another begins before token `at`. */
static bool is_edge(const struct sl_words *words, size_t at)
{
    const struct sl_token *items = words->tokens.items;

    return at == 0 || at == words->tokens.count || items[at].gap || items[at].size == 0 ||
           is_emoji(words, at) || is_emoji(words, at - 1);
}

static bool stands_at(struct sl_slice operand, const struct sl_words *words, size_t first)
{
    const struct sl_token_list *tokens = &words->tokens;
    struct sl_condition_token wanted;
    size_t at = first;

    for (; sl_condition_next_token(&operand, &wanted); at++) {
        if (at == tokens->count || (at > first && tokens->items[at].gap) ||
            !sl_slice_equal(sl_words_token(words, &tokens->items[at]), wanted.text))
            return false;
    }
    return is_edge(words, first) && is_edge(words, at);
}

static bool stands_in_text(struct sl_slice operand, const struct sl_words *words)
{
    const struct sl_token_list *tokens = &words->tokens;
    struct sl_slice rest = operand;
    struct sl_condition_token first;
    uint64_t hash;
    size_t at;

    sl_condition_next_token(&rest, &first);
    hash = sl_word_hash(&words->key, first.text.data, first.text.size);
    at = sl_token_map_first(words->map, tokens->items, tokens->count, hash);
    for (; at < tokens->count; at = sl_token_map_next(words->map, tokens->count, at)) {
        if (tokens->items[at].hash == hash && stands_at(operand, words, at))
            return true;
    }
    return false;
}

bool sl_whole_word_is_of_links(struct sl_slice operand, struct sl_slice *ret_word)
{
    struct sl_condition_token token;

    sl_condition_next_token(&operand, &token);
    for (size_t i = 0; i < token.text.size; i++) {
        if ((unsigned char)token.text.data[i] >= 0x80)
            return false;
    }
    *ret_word = token.text;
    return operand.size == 0;
}

/* A mention ends where ASCII ends, whatever follows. */
bool sl_whole_word_holds(struct sl_slice operand, const struct sl_words *words)
{
    struct sl_link_words link_words = {.words = words};
    struct sl_slice word, found;

    if (stands_in_text(operand, words))
        return true;
    if (!sl_whole_word_is_of_links(operand, &word))
        return false;
    for (size_t i = 0; i < words->mentions.count; i++) {
        if (sl_slice_equal(sl_words_name(words, &words->mentions.items[i]), word))
            return true;
    }
    while (sl_link_words_next(&link_words, &found)) {
        if (sl_slice_equal(found, word))
            return true;
    }
    return false;
}

static bool is_of_word(char c)
{
    c = sl_ascii_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* A byte of the host and path, concatenated. */
static char link_byte(const struct sl_words *words, const struct sl_url *link, size_t at)
{
    if (at < link->host.size)
        return sl_words_name(words, &link->host).data[at];
    return sl_ascii_lower(link->path.data[at - link->host.size]);
}

bool sl_link_words_next(struct sl_link_words *link_words, struct sl_slice *ret_word)
{
    const struct sl_words *words = link_words->words;

    for (; link_words->link < words->urls.count; link_words->link++, link_words->at = 0) {
        const struct sl_url *link = &words->urls.items[link_words->link];
        size_t end = link->host.size + link->path.size;

        while (link_words->at < end) {
            size_t size = 0;
            char c;

            for (; link_words->at < end; link_words->at++, size++) {
                c = link_byte(words, link, link_words->at);
                if (!is_of_word(c))
                    break;
                if (size < sizeof(link_words->room))
                    link_words->room[size] = c;
            }
            link_words->at += size == 0;
            if (size > 0 && size <= sizeof(link_words->room)) {
                *ret_word = sl_slice(link_words->room, size);
                return true;
            }
        }
    }
    return false;
}

/* --- stretches ---------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Symbols such as `+` and `$` belong to the text next to them. */
static bool is_punctuation(const char *at, unsigned *ret_size)
{
    if ((unsigned char)*at >= 0x80)
        return class_at(at, ret_size) == SL_UNICODE_SEPARATOR;
    *ret_size = 1;
    return *at != '\0' && strchr("!\"#%&'()*,-./:;?@[\\]{}", *at);
}

static bool is_sign_of_name(struct sl_slice text)
{
    unsigned ignored;

    return text.size > 1 && (text.data[0] == '#' || text.data[0] == '@') &&
           class_at(text.data + 1, &ignored) != SL_UNICODE_SEPARATOR;
}

static struct sl_slice without_punctuation(struct sl_slice text)
{
    unsigned size;

    while (text.size > 0 && !is_sign_of_name(text) && is_punctuation(text.data, &size))
        text = sl_slice_from(text, size);
    while (text.size > 0) {
        size_t last = text.size - 1;

        while (last > 0 && ((unsigned char)text.data[last] & 0xC0) == 0x80)
            last--;
        if (!is_punctuation(text.data + last, &size))
            break;
        text.size = last;
    }
    return text;
}

static struct sl_slice without_www(struct sl_slice text)
{
    return sl_slice_starts_with(text, SL_SLICE("www.")) ? sl_slice_from(text, 4) : text;
}

/* false: it is too long. */
static bool read_link(struct sl_stretches *stretches, const struct sl_url *link,
                      struct sl_slice *ret_text)
{
    size_t size = link->host.size + link->path.size;

    if (size > sizeof(stretches->room))
        return false;
    for (size_t i = 0; i < size; i++)
        stretches->room[i] = link_byte(stretches->words, link, i);
    *ret_text = sl_slice(stretches->room, size);
    return true;
}

/* The next link, or NULL. *ret_end: the end of the text before it. */
static const struct sl_url *next_link(const struct sl_stretches *stretches, size_t *ret_end)
{
    const struct sl_words *words = stretches->words;
    const struct sl_url *link =
        stretches->link < words->urls.count ? &words->urls.items[stretches->link] : NULL;

    *ret_end = link && link->host.offset < words->text_size ? link->host.offset : words->text_size;
    return link;
}

/* The next run before `end` that has more than ASCII letters and digits. */
static bool next_in_text(struct sl_stretches *stretches, size_t end, struct sl_slice *ret_text)
{
    const char *bytes = stretches->words->bytes.data;
    size_t at = stretches->at, start;
    bool is_word = true;

    do {
        while (at < end && is_space(bytes[at]))
            at++;
        start = at;
        for (is_word = true; at < end && !is_space(bytes[at]); at++)
            is_word = is_word && is_of_word(bytes[at]);
    } while (is_word && at < end);
    stretches->at = at;
    *ret_text = sl_slice(bytes + start, at - start);
    return !is_word;
}

static bool next_stretch(struct sl_stretches *stretches, struct sl_slice *ret_text)
{
    const struct sl_url *link;
    size_t end;

    for (;;) {
        link = next_link(stretches, &end);
        if (stretches->at < end && next_in_text(stretches, end, ret_text))
            return true;
        if (!link)
            return false;
        if (link->host.offset < stretches->words->text_size)
            stretches->at = link->host.offset + link->host.size;
        stretches->link++;
        if (read_link(stretches, link, ret_text))
            return true;
    }
}

bool sl_stretches_next(struct sl_stretches *stretches, struct sl_slice *ret_written,
                       struct sl_slice *ret_bare)
{
    struct sl_slice text;

    if (!next_stretch(stretches, &text))
        return false;
    *ret_written = without_www(text);
    *ret_bare = without_www(without_punctuation(text));
    return true;
}

bool sl_verbatim_holds(struct sl_slice operand, const struct sl_words *words)
{
    struct sl_stretches stretches = {.words = words};
    struct sl_slice written, bare;

    while (sl_stretches_next(&stretches, &written, &bare)) {
        if (sl_slice_equal(written, operand) || sl_slice_equal(bare, operand))
            return true;
    }
    return false;
}
