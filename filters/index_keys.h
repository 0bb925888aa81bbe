/* filters/index_keys.h - what a filter is filed under, and what an event is looked up by.
 *
 * Both sides speak of the same keys, 64-bit hashes: a word, two words side by side, a hashtag, a
 * user, a host, a cell of the map. A filter is filed under keys of which at least one must turn up
 * in every event that it matches, and under the rarest such set. So an event asks for its own few
 * hundred keys, however many filters there are. */
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
    uint32_t verbatim_filters; /* how many ask for what verbatim.h finds */
};

/* --- the side of the filter --------------------------------------------------------------- */

/* One thing to file a filter under. */
struct sl_filter_key {
    uint64_t key;       /* in postings; or a cell of the grid */
    uint32_t condition; /* offset in the filter's condition: the alternative it stands for */
    bool is_cell;
    bool is_sure; /* an event that has it has what the alternative asks for */
};

/* Appends to `ret_keys` (of struct sl_filter_key) what the filter is filed under, by what is known
 * of rarity now. For every event that the filter matches and that is not a bare delete, the event
 * has one of the keys whose alternative is true. 0; -ENOMEM. */
int sl_filter_keys(const struct sl_index_keys *index, const struct sl_filter_view *view,
                   struct buffer *ret_keys);

/* The same for the one alternative at offset `condition`. */
int sl_alternative_keys(const struct sl_index_keys *index, const struct sl_filter_view *view,
                        uint32_t condition, struct buffer *ret_keys);

/* How often the key, or cell, has lately been seen in events. */
uint32_t sl_key_cost(const struct sl_index_keys *index, uint64_t key, bool is_cell);

/* --- the side of the event ---------------------------------------------------------------- */

/* Appends the keys of an event, of uint64_t, repetitions included: those in postings and those in
 * grid.cells. Whether that failed is in the buffers. */
void sl_event_keys(const struct sl_index_keys *index, const struct sl_event_view *event,
                   const struct sl_words *words, struct buffer *keys, struct buffer *cells);

/* --- what keys are made of ---------------------------------------------------------------- */

enum sl_key_kind {
    SL_KEY_HASHTAG = 1, /* a word alone is its own key, two words are a pair */
    SL_KEY_MENTION,
    SL_KEY_CASHTAG,
    SL_KEY_USER, /* author, answered or repeated */
    SL_KEY_AUTHOR,
    SL_KEY_REPLY_TO,
    SL_KEY_REPOST_OF,
    SL_KEY_AUTHOR_LOGIN,
    SL_KEY_REPLY_TO_LOGIN,
    SL_KEY_REPOST_OF_LOGIN,
    SL_KEY_FOLLOW_USER, /* of a follow or unfollow: either */
    SL_KEY_FOLLOW_FROM,
    SL_KEY_FOLLOW_TO,
    SL_KEY_HOST,
    SL_KEY_HOST_AND_PATH, /* and the first part of the path */
    SL_KEY_PLACE,
    SL_KEY_POLE,
    SL_KEY_LANGUAGE, /* first subtag */
    SL_KEY_COUNTRY,  /* in capitals */
    SL_KEY_TYPE,     /* of those that ask for everything */
    SL_KEY_VERBATIM, /* this and the next only if somebody asks: verbatim.h */
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

/* The key of a host and the first part of a path that begins with '/'. */
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
