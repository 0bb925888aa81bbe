/* terms.c - iterates over the lists that sl_words_read() has filled.
 *
 * The only state is a position in the list: whether a token is half of a pair follows from its
 * neighbours. */
#include "filters/terms.h"

#include "filters/tables/unicode_table.h"
#include "filters/words_private.h"

static bool is_unspaced(const struct sl_words *words, const struct sl_token *token)
{
    unsigned size;

    return token->size > 0 &&
           (sl_unicode_info(
                sl_utf8_decode((const unsigned char *)words->bytes.data + token->offset, &size)) &
            SL_UNICODE_CLASS_MASK) == SL_UNICODE_UNSPACED;
}

/* Whether this token belongs to a script without spaces and directly follows another such token. */
static bool goes_on(const struct sl_words *words, size_t index)
{
    const struct sl_token *token = &words->tokens.items[index];

    return index > 0 && index < words->tokens.count && !token->gap && is_unspaced(words, token) &&
           is_unspaced(words, token - 1);
}

static bool next_word(const struct sl_words *words, size_t *at, struct sl_term *ret_term)
{
    while (*at < words->tokens.count) {
        size_t index = (*at)++;
        const struct sl_token *token = &words->tokens.items[index];

        if (token->size == 0)
            continue;
        if (goes_on(words, index)) {
            ret_term->text = sl_words_bytes(words, token[-1].offset, token[-1].size + token->size);
            ret_term->hash = sl_word_hash_pair(&words->key, token[-1].hash, token->hash);
            return true;
        }
        if (goes_on(words, index + 1))
            continue; /* half of the next pair */
        ret_term->text = sl_words_token(words, token);
        ret_term->hash = token->hash;
        return true;
    }
    return false;
}

static bool next_name(const struct sl_words *words, const struct sl_name_list *names, size_t *at,
                      struct sl_term *ret_term)
{
    if (*at == names->count)
        return false;
    ret_term->text = sl_words_name(words, &names->items[*at]);
    ret_term->hash = names->items[(*at)++].hash;
    return true;
}

/* If the login is only a part of the run, the run is stored before it. */
static bool next_user(const struct sl_words *words, size_t *at, struct sl_term *ret_term)
{
    const struct sl_name_list *names = &words->mentions;

    if (*at + 1 < names->count && names->items[*at].offset == names->items[*at + 1].offset)
        (*at)++;
    return next_name(words, names, at, ret_term);
}

static bool next_link(const struct sl_words *words, size_t *at, struct sl_term *ret_term)
{
    const struct sl_url *url;

    while (*at < words->urls.count && words->urls.items[*at].host.size == 0)
        (*at)++;
    if (*at == words->urls.count)
        return false;
    url = &words->urls.items[(*at)++];
    ret_term->text = sl_words_name(words, &url->host);
    ret_term->path = url->path;
    while (ret_term->path.size > 0 && ret_term->path.data[ret_term->path.size - 1] == '/')
        ret_term->path.size--;
    ret_term->hash = url->host.hash;
    if (ret_term->path.size > 0)
        ret_term->hash =
            sl_word_hash_pair(&words->key, url->host.hash,
                              sl_word_hash(&words->key, ret_term->path.data, ret_term->path.size));
    return true;
}

bool sl_words_next_term(const struct sl_words *words, enum sl_term_kind kind, size_t *at,
                        struct sl_term *ret_term)
{
    *ret_term = (struct sl_term){0};
    switch (kind) {
    case SL_TERM_HASHTAG:
        return next_name(words, &words->hashtags, at, ret_term);
    case SL_TERM_WORD:
        return next_word(words, at, ret_term);
    case SL_TERM_LINK:
        return next_link(words, at, ret_term);
    case SL_TERM_USER:
        return next_user(words, at, ret_term);
    case SL_TERM_CASHTAG:
        return next_name(words, &words->cashtags, at, ret_term);
    case SL_TERM_KINDS:
        break;
    }
    return false;
}
