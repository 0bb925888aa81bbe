/* filters/words_private.h - what sl_words_read() found, and the same reading for filter terms.
 *
 * For the other files of filters/ only; not installed. An event's text and a filter's terms go
 * through the same functions here, so that both sides agree code point by code point.
 *
 * Two ways in. An event: sl_words_read() fills a struct sl_words. A term, an operand, a login:
 *
 *     sl_normalise(term, &normal);                    N(term), section 2 of docs/filters.md
 *     kind = sl_entity_of(normal, &name);             "#tag", "@name", "$cash"? section 6
 *     sl_tokenise(normal, NULL, &tokens);             else a keyword: its tokens, section 4
 *
 * Nothing here has state of its own; nothing is shared between threads. */
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

/* A token. The barrier between two pieces of text is one too, with hash and size 0: as no real
 * token has either, a walk over neighbours needs no special case. */
struct sl_token {
    uint64_t hash;   /* sl_word_hash() of its bytes; 0 when read without a key */
    uint32_t offset; /* of its normal form, see sl_words_bytes() */
    uint32_t size : 31;
    uint32_t gap : 1; /* a separator, a barrier or nothing stands directly before it */
};

/* A hashtag, mention or cashtag without its sign, or a login: normal form. */
struct sl_name {
    uint64_t hash;
    uint32_t offset;
    uint32_t size; /* 0: absent */
};

struct sl_url {
    struct sl_name host;  /* lower case, without "www."; can be empty */
    struct sl_slice path; /* "" or from its "/" on, as written; in the memory of the event */
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

/* Offsets have 32 bits, sizes 31: normal forms that would take more count as out of memory. */
enum { SL_WORDS_MAX = INT32_MAX };

/* After a successful sl_words_read(). Lists are in the order of the text and keep repetitions.
 * follow and unfollow events, and deletes without text, have what their event has: no tokens,
 * perhaps logins. */
struct sl_words {
    struct sl_word_key key;
    struct buffer bytes;          /* all normal forms; offsets point in here */
    uint32_t text_size;           /* of the text, with the hosts of its links: the first of them */
    struct sl_token_list tokens;  /* of the text, with barriers between (never first or last) */
    struct sl_token_map *map;     /* hash -> tokens */
    struct sl_name_list hashtags; /* has:hashtags is count > 0, and so on */
    struct sl_name_list mentions; /* the run, and its [a-z0-9_] prefix if shorter: two entries */
    struct sl_name_list cashtags;
    struct sl_url_list urls;    /* of the text, then of event.urls */
    struct sl_token_list place; /* tokens of event.place */
    struct sl_name login;       /* N(event.login): compares, needs not be a valid login */
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

/* Appends N(text) to `normal`. `text` is valid UTF-8. 0; -ENOMEM: `normal` is as before, or
 * failed. */
int sl_normalise(struct sl_slice text, struct buffer *normal);

/* Appends the tokens of one piece in normal form (no URL search, no barrier); offsets are into
 * `normal`. `key` NULL: hashes are 0. 0; -ENOMEM: `tokens` is as before. */
int sl_tokenise(struct sl_slice normal, const struct sl_word_key *key,
                struct sl_token_list *tokens);

enum sl_entity_kind { SL_ENTITY_NONE, SL_ENTITY_HASHTAG, SL_ENTITY_MENTION, SL_ENTITY_CASHTAG };

/* Is `normal` a sign and a full valid run (section 6; a hashtag may end with one more '#')?
 * *ret_name is the run, a part of `normal`; untouched for SL_ENTITY_NONE. */
enum sl_entity_kind sl_entity_of(struct sl_slice normal, struct sl_slice *ret_name);

/* Not empty, and only letters, marks, digits and '_' (classes W and U). Without the '@'. */
bool sl_is_login(struct sl_slice normal);

/* The operand of `url:`. Appends the host, in lower case and without "www.", to `host`; *ret_path
 * is a part of `operand` without trailing '/'. 0; -EINVAL: not a host; -ENOMEM. */
int sl_parse_url_operand(struct sl_slice operand, struct buffer *host, struct sl_slice *ret_path);

/* For words.c: reads tokens and entities of words->bytes from `offset` on, one piece in normal
 * form, into `words`. 0; -ENOMEM: some may have been read. */
int sl_words_read_piece(struct sl_words *words, size_t offset);
