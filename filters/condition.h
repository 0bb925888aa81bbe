/* filters/condition.h - what must be true of an event: a compiled filter.
 *
 * A condition is a run of bytes: one byte says what kind it is, a varint how many bytes follow,
 * then its operand, or the conditions it is made of. Nothing in it depends on a seed or an address,
 * and alternatives and conjuncts are sorted, each once, so that equal bytes mean equal conditions:
 * the same bytes are evaluated, compared and hashed.
 *
 *     kind          operand
 *     anything      -                                       what firehose asks for
 *     all, any      two or more conditions, sorted
 *     not           one condition
 *     keyword       its tokens, see struct sl_condition_token
 *     whole word    the same
 *     verbatim      the term, in normal form
 *     hashtag ...   the name, in normal form
 *     users         a sorted set of user ids, see sl_condition_users_have()
 *     author ...    a user id, or a login in normal form
 *     url           host, as varint size and bytes; path
 *     place         its tokens, gaps not counted
 *     box, circle   struct sl_box, struct sl_circle
 *     near          two or more keywords, sorted; one byte: how many other words may be between
 *     polygon       see polygon.h
 *     language      a range, in lower case
 *     country       a code, in upper case
 *     trait         one byte, enum sl_condition_trait
 *     sample        parts per million, uint32_t */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/event_view.h"
#include "filters/polygon.h"
#include "filters/words_private.h"

enum sl_condition_kind {
    SL_CONDITION_ANYTHING,
    SL_CONDITION_ALL,
    SL_CONDITION_ANY,
    SL_CONDITION_NOT,
    SL_CONDITION_KEYWORD,
    SL_CONDITION_HASHTAG,
    SL_CONDITION_MENTION,
    SL_CONDITION_CASHTAG,
    SL_CONDITION_USERS, /* author, reply to or repost of one of these; who follows or is followed */
    SL_CONDITION_AUTHOR,
    SL_CONDITION_REPLY_TO,
    SL_CONDITION_REPOST_OF,
    SL_CONDITION_AUTHOR_LOGIN,
    SL_CONDITION_REPLY_TO_LOGIN,
    SL_CONDITION_REPOST_OF_LOGIN,
    SL_CONDITION_URL,
    SL_CONDITION_PLACE,
    SL_CONDITION_BOX,
    SL_CONDITION_CIRCLE,
    SL_CONDITION_LANGUAGE,
    SL_CONDITION_COUNTRY,
    SL_CONDITION_TRAIT,
    SL_CONDITION_SAMPLE,
    SL_CONDITION_NEAR,
    SL_CONDITION_POLYGON,
    SL_CONDITION_WHOLE_WORD, /* this and the next: verbatim.h */
    SL_CONDITION_VERBATIM,
};

/* Terms of words near each other, words of all terms, words between them. */
enum { SL_NEAR_MAX_TERMS = 8, SL_NEAR_MAX_WORDS = 64, SL_NEAR_MAX_BETWEEN = 6 };

enum sl_condition_trait {
    SL_TRAIT_HASHTAGS, /* has: */
    SL_TRAIT_MENTIONS,
    SL_TRAIT_CASHTAGS,
    SL_TRAIT_LINKS,
    SL_TRAIT_MEDIA,
    SL_TRAIT_GEO,
    SL_TRAIT_REPLY, /* is: */
    SL_TRAIT_REPOST,
    SL_TRAIT_QUOTE,
};

/* --- building ----------------------------------------------------------------------------- */

/* Conditions are appended to `bytes`; whether that failed is asked once, at the end. */
struct sl_condition_builder {
    struct buffer bytes;
    struct buffer copy, order; /* scratch of sl_condition_close() */
};

#define SL_CONDITION_BUILDER_INIT                                                                  \
    ((struct sl_condition_builder){BUFFER_INIT, BUFFER_INIT, BUFFER_INIT})

void sl_condition_builder_done(struct sl_condition_builder *builder);

void sl_condition_add(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                      const void *operand, size_t size);
/* SL_CONDITION_KEYWORD, _WHOLE_WORD or _PLACE, from at least one token. */
void sl_condition_add_tokens(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                             struct sl_slice normal, const struct sl_token_list *tokens);
void sl_condition_add_url(struct sl_condition_builder *builder, struct sl_slice host,
                          struct sl_slice path);
/* Sorts `ids`, at least one. */
void sl_condition_add_users(struct sl_condition_builder *builder, struct sl_slice *ids,
                            size_t count);

/* Unwound points: see sl_polygon_unwind(). */
void sl_condition_add_polygon(struct sl_condition_builder *builder, const struct sl_point *points,
                              size_t count);

/* Joins the keywords appended since bytes.size was `mark`, which are within the limits, into one
 * condition: they stand near each other, with at most `between` other words. */
void sl_condition_close_near(struct sl_condition_builder *builder, unsigned between, size_t mark);

/* Joins the conditions appended since bytes.size was `mark`, at least one, into one: all or any of
 * them; or negates it, if it is one. */
void sl_condition_close(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                        size_t mark);

/* --- reading ------------------------------------------------------------------------------ */

struct sl_condition {
    enum sl_condition_kind kind;
    struct sl_slice operand;
    struct sl_slice whole; /* with what stands before the operand */
};

/* Takes the next condition off *rest. false: there are no more. */
bool sl_condition_next(struct sl_slice *rest, struct sl_condition *ret_condition);

struct sl_condition_token {
    struct sl_slice text;
    bool gap; /* may stand apart from the one before; false for the first */
};

/* Takes the next token off the operand of a keyword or place. */
bool sl_condition_next_token(struct sl_slice *rest, struct sl_condition_token *ret_token);

/* What all of them must stand near; *ret_between as in sl_condition_close_near(). */
struct sl_slice sl_condition_near_terms(struct sl_slice operand, unsigned *ret_between);

void sl_condition_read_url(struct sl_slice operand, struct sl_slice *ret_host,
                           struct sl_slice *ret_path);

uint32_t sl_condition_user_count(struct sl_slice operand);
struct sl_slice sl_condition_user(struct sl_slice operand, uint32_t at);

/* --- evaluating --------------------------------------------------------------------------- */

/* Is the first condition of `bytes` true of `event`, of which `words` is the reading? Asks for
 * nothing but the condition: not for audience and type of the event. */
bool sl_condition_holds(struct sl_slice bytes, const struct sl_event_view *event,
                        const struct sl_words *words);
