/* tokenise.c - splits text in normal form into tokens and entities, in one pass.
 *
 * A token is a run of class W, or one code point of class U or E. Its bounds and its gap depend
 * only on what is directly before it. At the sign of an entity the run after it is read ahead; a
 * run contains no sign, so no byte is read ahead twice. */
#include "filters/words_private.h"

#include <errno.h>

#include "filters/list.h"
#include "filters/tables/unicode_table.h"

enum { CASHTAG_MAX = 6 };

static const uint8_t ascii_info[128] = {
    ['0' ... '9'] = SL_UNICODE_WORD,
    ['A' ... 'Z'] = SL_UNICODE_WORD | SL_UNICODE_LETTER,
    ['_'] = SL_UNICODE_WORD,
    ['a' ... 'z'] = SL_UNICODE_WORD | SL_UNICODE_LETTER,
};

static const bool ascii_word[256] = {
    ['0' ... '9'] = true,
    ['A' ... 'Z'] = true,
    ['_'] = true,
    ['a' ... 'z'] = true,
};

/* Class and letter bit of the code point at `at`, and its size. */
static inline unsigned read_info(const unsigned char *at, unsigned *ret_size)
{
    if (*at < 0x80) {
        *ret_size = 1;
        return ascii_info[*at];
    }
    return sl_unicode_info(sl_utf8_decode(at, ret_size));
}

static inline enum sl_unicode_class class_of(unsigned info)
{
    return (enum sl_unicode_class)(info & SL_UNICODE_CLASS_MASK);
}

/* The end of the run of W and U at `at`. *ret_letter: it contains a letter. */
static const unsigned char *run_end(const unsigned char *at, const unsigned char *end,
                                    bool *ret_letter)
{
    *ret_letter = false;
    while (at < end) {
        unsigned size;
        unsigned info = read_info(at, &size);

        if (class_of(info) != SL_UNICODE_WORD && class_of(info) != SL_UNICODE_UNSPACED)
            break;
        if (info & SL_UNICODE_LETTER)
            *ret_letter = true;
        at += size;
    }
    return at;
}

/* The inner loop processes most bytes of most texts. */
static inline const unsigned char *word_end(const unsigned char *at, const unsigned char *end)
{
    while (at < end) {
        unsigned size;

        if (*at < 0x80) {
            while (at < end && ascii_word[*at])
                at++;
            if (at == end || *at < 0x80)
                break;
        }
        if (class_of(sl_unicode_info(sl_utf8_decode(at, &size))) != SL_UNICODE_WORD)
            break;
        at += size;
    }
    return at;
}

static bool is_sign(unsigned char byte)
{
    return byte == '#' || byte == '@' || byte == '$';
}

static bool is_cashtag(const unsigned char *run, const unsigned char *end)
{
    if (run == end || end - run > CASHTAG_MAX)
        return false;
    for (; run < end; run++)
        if (*run < 'a' || *run > 'z')
            return false;
    return true;
}

/* The end of the longest [a-z0-9_] prefix. */
static const unsigned char *plain_prefix_end(const unsigned char *run, const unsigned char *end)
{
    while (run < end && *run < 0x80 && class_of(ascii_info[*run]) == SL_UNICODE_WORD)
        run++;
    return run;
}

static int add_name(struct sl_words *words, struct sl_name_list *names, const unsigned char *name,
                    const unsigned char *end)
{
    size_t size = (size_t)(end - name);
    struct sl_name *items =
        sl_list_grow(names->items, names->count, &names->capacity, 1, sizeof(*names->items));

    if (!items)
        return -ENOMEM;
    names->items = items;
    items[names->count++] = (struct sl_name){
        .hash = sl_word_hash(&words->key, name, size),
        .offset = (uint32_t)(name - (const unsigned char *)words->bytes.data),
        .size = (uint32_t)size,
    };
    return 0;
}

/* Reads the entity at `sign`, if it is one. `before` is the class of what is directly before it,
 * `before_byte` its last byte (0: nothing). *closing is the `#` that closed the last hashtag. */
static int read_entity(struct sl_words *words, const unsigned char *sign, const unsigned char *end,
                       enum sl_unicode_class before, unsigned char before_byte,
                       const unsigned char **closing)
{
    const unsigned char *run = sign + 1;
    const unsigned char *stop;
    bool letter;
    int r;

    if (before == SL_UNICODE_WORD || sign == *closing)
        return 0;
    stop = run_end(run, end, &letter);
    if (stop == run)
        return 0;
    switch (*sign) {
    case '#':
        if (!letter || before_byte == '&')
            return 0;
        if (stop < end && *stop == '#')
            *closing = stop;
        return add_name(words, &words->hashtags, run, stop);
    case '@':
        r = add_name(words, &words->mentions, run, stop);
        if (r < 0)
            return r;
        end = plain_prefix_end(run, stop);
        return end > run && end < stop ? add_name(words, &words->mentions, run, end) : 0;
    default:
        if (before == SL_UNICODE_UNSPACED || before_byte == '$' || !is_cashtag(run, stop))
            return 0;
        return add_name(words, &words->cashtags, run, stop);
    }
}

/* Reads the tokens, and with `words` the entities, of the text at `text`, whose first byte has the
 * offset `offset`. */
static inline __attribute__((always_inline)) int
read_piece(const unsigned char *text, size_t size, size_t offset, const struct sl_word_key *key,
           struct sl_token_list *tokens, struct sl_words *words)
{
    const unsigned char *at = text, *end = text + size, *closing = NULL;
    enum sl_unicode_class before = SL_UNICODE_SEPARATOR;
    struct sl_token *items, *next;

    /* a token takes at least two bytes: its own, if it is only one, and that of a separator */
    items =
        sl_list_grow(tokens->items, tokens->count, &tokens->capacity, size / 2 + 1, sizeof(*items));
    if (!items)
        return -ENOMEM;
    tokens->items = items;
    next = items + tokens->count;

    while (at < end) {
        const unsigned char *token = at;
        unsigned code_point_size;
        enum sl_unicode_class class = class_of(read_info(at, &code_point_size));

        at += code_point_size;
        if (class == SL_UNICODE_SEPARATOR) {
            if (words && is_sign(*token)) {
                unsigned char before_byte = token > text ? token[-1] : 0;
                int r = read_entity(words, token, end, before, before_byte, &closing);

                if (r < 0)
                    return r;
            }
            before = class;
            continue;
        }
        if (class == SL_UNICODE_WORD)
            at = word_end(at, end);
        *next++ = (struct sl_token){
            .hash = key ? sl_word_hash(key, token, (size_t)(at - token)) : 0,
            .offset = (uint32_t)(offset + (size_t)(token - text)),
            .size = (uint32_t)(at - token) & INT32_MAX,
            .gap = before == SL_UNICODE_SEPARATOR,
        };
        before = class;
    }
    tokens->count = (size_t)(next - items);
    return 0;
}

int sl_tokenise(struct sl_slice normal, const struct sl_word_key *key, struct sl_token_list *tokens)
{
    if (normal.size == 0)
        return 0;
    if (normal.size > SL_WORDS_MAX)
        return -ENOMEM;
    return read_piece((const unsigned char *)normal.data, normal.size, 0, key, tokens, NULL);
}

int sl_words_read_piece(struct sl_words *words, size_t offset)
{
    size_t size = words->bytes.size - offset;

    if (size == 0)
        return 0;
    return read_piece((const unsigned char *)words->bytes.data + offset, size, offset, &words->key,
                      &words->tokens, words);
}

void sl_token_list_done(struct sl_token_list *tokens)
{
    mem_free(tokens->items);
    *tokens = SL_TOKEN_LIST_INIT;
}

enum sl_entity_kind sl_entity_of(struct sl_slice normal, struct sl_slice *ret_name)
{
    const unsigned char *run, *end, *stop;
    enum sl_entity_kind kind = SL_ENTITY_NONE;
    bool letter;

    if (normal.size < 2 || !is_sign((unsigned char)normal.data[0]))
        return SL_ENTITY_NONE;
    run = (const unsigned char *)normal.data + 1;
    end = run + normal.size - 1;
    stop = run_end(run, end, &letter);
    if (normal.data[0] == '#' && letter && (stop == end || (*stop == '#' && stop + 1 == end)))
        kind = SL_ENTITY_HASHTAG;
    else if (normal.data[0] == '@' && stop == end)
        kind = SL_ENTITY_MENTION;
    else if (normal.data[0] == '$' && stop == end && is_cashtag(run, stop))
        kind = SL_ENTITY_CASHTAG;
    if (kind != SL_ENTITY_NONE)
        *ret_name = sl_slice(normal.data + 1, (size_t)(stop - run));
    return kind;
}

bool sl_is_login(struct sl_slice normal)
{
    const unsigned char *at = (const unsigned char *)normal.data;
    bool letter;

    return normal.size > 0 && run_end(at, at + normal.size, &letter) == at + normal.size;
}
