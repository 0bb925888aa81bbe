/* filters/index_keys.h - the keys under which filters are filed and events look them up.
 *
 * Keys are 64-bit hashes of a word, two adjacent words, a hashtag, a user, a host, a cell of the
 * map and so on. A filter is filed under a set of keys of which every event that it matches has at
 * least one; the rarest such set is chosen. So an event looks up its own few hundred keys, however
 * many filters there are. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "filters/box_grid.h"
#include "filters/filter_private.h"
#include "filters/postings.h"
#include "filters/rarity.h"
#include "filters/words_private.h"

struct sl_index_keys {
    struct sl_word_key word_key;
    struct sl_postings postings; /* everything but places on the map */
    struct sl_box_grid grid;
    struct sl_rarity rarity;
    uint32_t verbatim_filters; /* number of filters with terms of verbatim.h */
};

/* --- the side of the filter --------------------------------------------------------------- */

/* A key under which a filter is filed. */
struct sl_filter_key {
    uint64_t key;       /* in postings; or a cell of the grid */
    uint32_t condition; /* offset in the filter's condition of the alternative that it represents */
    bool is_cell;
    bool is_sure; /* every event with this key satisfies the alternative */
};

/* Appends to `ret_keys` (of struct sl_filter_key) the keys for a filter, chosen by the current
 * rarity. Every event that the filter matches, except a bare deletion, has a key whose alternative
 * is true. 0; -ENOMEM. */
int sl_filter_keys(const struct sl_index_keys *index, const struct sl_filter_view *view,
                   struct buffer *ret_keys);

/* The same for the single alternative at offset `condition`. */
int sl_alternative_keys(const struct sl_index_keys *index, const struct sl_filter_view *view,
                        uint32_t condition, struct buffer *ret_keys);

/* How often the key, or cell, was recently seen in events. */
uint32_t sl_key_cost(const struct sl_index_keys *index, uint64_t key, bool is_cell);

/* --- the side of the event ---------------------------------------------------------------- */

/* Appends the keys of an event (of uint64_t), possibly repeated: those in postings, and those in
 * grid.cells. Check the buffers for failure. */
void sl_event_keys(const struct sl_index_keys *index, const struct sl_event_view *event,
                   const struct sl_words *words, struct buffer *keys, struct buffer *cells);

/* --- what keys are made of ---------------------------------------------------------------- */

enum sl_key_kind {
    SL_KEY_HASHTAG = 1, /* words and pairs of words need no kind */
    SL_KEY_MENTION,
    SL_KEY_CASHTAG,
    SL_KEY_USER, /* author, or author of the post replied to or reposted */
    SL_KEY_AUTHOR,
    SL_KEY_REPLY_TO,
    SL_KEY_REPOST_OF,
    SL_KEY_AUTHOR_LOGIN,
    SL_KEY_REPLY_TO_LOGIN,
    SL_KEY_REPOST_OF_LOGIN,
    SL_KEY_FOLLOW_USER, /* of an event without a post: any of its users */
    SL_KEY_FOLLOW_FROM,
    SL_KEY_FOLLOW_TO,
    SL_KEY_HOST,
    SL_KEY_HOST_AND_PATH, /* the host and the first part of the path */
    SL_KEY_PLACE,
    SL_KEY_POLE,
    SL_KEY_LANGUAGE, /* first subtag */
    SL_KEY_COUNTRY,  /* in capitals */
    SL_KEY_TYPE,     /* for filters that ask for everything */
    SL_KEY_VERBATIM, /* this and the next only if a filter needs them: verbatim.h */
    SL_KEY_LINK_WORD,
};

static inline uint64_t sl_key_of_hash(const struct sl_index_keys *index, enum sl_key_kind kind,
                                      uint64_t hash)
{
    return sl_word_hash_pair(&index->word_key, hash, kind);
}

static inline uint64_t sl_key_of_text(const struct sl_index_keys *index, enum sl_key_kind kind,
                                      struct sl_slice text)
{
    return sl_key_of_hash(index, kind, sl_word_hash(&index->word_key, text.data, text.size));
}

/* The key of a host and the first part of a path, which begins with '/'. */
uint64_t sl_key_of_url(const struct sl_index_keys *index, uint64_t host_hash, struct sl_slice path);

enum { SL_SOUTH_POLE, SL_NORTH_POLE };

static inline uint64_t sl_key_of_pole(const struct sl_index_keys *index, unsigned pole)
{
    return sl_key_of_hash(index, SL_KEY_POLE, pole);
}

static inline uint64_t sl_key_of_type(const struct sl_index_keys *index, enum sl_event_type type)
{
    return sl_key_of_hash(index, SL_KEY_TYPE, type);
}
