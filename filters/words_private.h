/* filters/words_private.h - the result of sl_words_read(), and the same parsing for terms of
 * filters.
 *
 * Only for other files of filters/; not installed. The text of events and the terms of filters go
 * through the same functions, so that both agree on every code point.
 *
 * An event: sl_words_read() fills a struct sl_words. A term, operand or login:
 *
 *     sl_normalise(term, &normal);                    N(term), section 2 of docs/filters.md
 *     kind = sl_entity_of(normal, &name);             "#tag", "@name", "$cash"? section 6
 *     sl_tokenise(normal, NULL, &tokens);             else a keyword: its tokens, section 4
 *
 * The functions have no state and share nothing between threads. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/token_map.h"
#include "filters/word_hash.h"
#include "filters/words.h"

/* --- what was read ------------------------------------------------------------------------ */

/* A token. A barrier between two parts of the text is stored as a token, too, with hash and size 0.
 * No real token has these, so a walk over adjacent tokens needs no special case. */
struct sl_token {
    uint64_t hash;   /* sl_word_hash() of its bytes; 0 if tokenised without a key */
    uint32_t offset; /* of its normal form, see sl_words_bytes() */
    uint32_t size : 31;
    uint32_t gap : 1; /* a separator, a barrier or nothing is directly before it */
};

/* A hashtag, mention or cashtag without its sign, or a login, in normal form. */
struct sl_name {
    uint64_t hash;
    uint32_t offset;
    uint32_t size; /* 0: absent */
};

struct sl_url {
    struct sl_name host;  /* lower case, without "www."; may be empty */
    struct sl_slice path; /* "", or from its "/" on, as written; a slice of the event */
};

struct sl_token_list {
    struct sl_token *items;
    size_t count, capacity;
};

struct sl_name_list {
    struct sl_name *items;
    size_t count, capacity;
};

struct sl_url_list {
    struct sl_url *items;
    size_t count, capacity;
};

#define SL_TOKEN_LIST_INIT ((struct sl_token_list){NULL, 0, 0})

void sl_token_list_done(struct sl_token_list *tokens);

/* Offsets have 32 bits, sizes 31: longer normal forms are treated as out of memory. */
enum { SL_WORDS_MAX = INT32_MAX };

/* The content after a successful sl_words_read(). Lists are in the order of the text and contain
 * repetitions. For follow and unfollow events, and for deletions without text, there are no tokens
 * but possibly logins. */
struct sl_words {
    struct sl_word_key key;
    struct buffer bytes;          /* all normal forms; offsets refer to this */
    uint32_t text_size;           /* size of the text and the hosts of its links, which come
                                     first */
    struct sl_token_list tokens;  /* of the text, with barriers between its parts (never first or
                                     last) */
    struct sl_token_map *map;     /* hash -> tokens */
    struct sl_name_list hashtags; /* has:hashtags is count > 0, and so on */
    struct sl_name_list mentions; /* the run, and its [a-z0-9_] prefix if that is shorter: two
                                     entries */
    struct sl_name_list cashtags;
    struct sl_url_list urls;    /* those in the text, then those of event.urls */
    struct sl_token_list place; /* tokens of event.place */
    struct sl_name login;       /* N(event.login): for comparison, need not be a valid login */
    struct sl_name reply_to_login;
    struct sl_name repost_of_login;
};

static inline struct sl_slice sl_words_bytes(const struct sl_words *words, uint32_t offset,
                                             uint32_t size)
{
    return sl_slice(size > 0 ? words->bytes.data + offset : "", size);
}

static inline struct sl_slice sl_words_token(const struct sl_words *words,
                                             const struct sl_token *token)
{
    return sl_words_bytes(words, token->offset, token->size);
}

static inline struct sl_slice sl_words_name(const struct sl_words *words,
                                            const struct sl_name *name)
{
    return sl_words_bytes(words, name->offset, name->size);
}

/* --- terms and operands ------------------------------------------------------------------- */

/* Appends N(text) to `normal`. `text` must be valid UTF-8. 0; -ENOMEM: `normal` is unchanged, or
 * has failed. */
int sl_normalise(struct sl_slice text, struct buffer *normal);

/* Appends the tokens of one part in normal form (without URL search and barriers). Offsets refer to
 * `normal`. `key` NULL: hashes are 0. 0; -ENOMEM: `tokens` is unchanged. */
int sl_tokenise(struct sl_slice normal, const struct sl_word_key *key,
                struct sl_token_list *tokens);

enum sl_entity_kind { SL_ENTITY_NONE, SL_ENTITY_HASHTAG, SL_ENTITY_MENTION, SL_ENTITY_CASHTAG };

/* Whether `normal` is a sign followed by a complete valid run (section 6; a hashtag may end with
 * one more '#'). *ret_name is the run, a slice of `normal`; unchanged for SL_ENTITY_NONE. */
enum sl_entity_kind sl_entity_of(struct sl_slice normal, struct sl_slice *ret_name);

/* Whether the text, without '@', is not empty and consists only of letters, marks, digits and '_'
 * (classes W and U). */
bool sl_is_login(struct sl_slice normal);

/* Parses the operand of `url:`. Appends the host, in lower case and without "www.", to `host`;
 * *ret_path is a slice of `operand` without trailing '/'. 0; -EINVAL: not a host; -ENOMEM. */
int sl_parse_url_operand(struct sl_slice operand, struct buffer *host, struct sl_slice *ret_path);

/* For words.c: parses the tokens and entities of words->bytes from `offset` on, which is one part
 * in normal form, into `words`. 0; -ENOMEM: some may have been added. */
int sl_words_read_piece(struct sl_words *words, size_t offset);
