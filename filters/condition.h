/* filters/condition.h - conditions: a filter in its compiled form.
 *
 * A condition is a sequence of bytes: one byte for its kind, a varint for the size of the rest,
 * then its operand or the conditions that it consists of. It contains no seeds or addresses, and
 * alternatives and conjuncts are sorted without duplicates, so equal bytes mean equal conditions.
 * The same bytes are evaluated, compared and hashed.
 *
 *     kind          operand
 *     anything      -                                       what firehose asks for
 *     all, any      two or more conditions, sorted
 *     not           one condition
 *     keyword       its tokens, see struct sl_condition_token
 *     whole word    the same
 *     verbatim      the term, in normal form
 *     hashtag ...   the name, in normal form
 *     users         a sorted set of user ids, see sl_condition_user()
 *     author ...    a user id, or a login in normal form
 *     url           host, as varint size and bytes; path
 *     place         its tokens, without their gaps
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
    SL_CONDITION_USERS, /* by, in reply to, or a repost of one of these; a follow or unfollow by or
                           of one */
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
    SL_CONDITION_WHOLE_WORD, /* for this and the next kind see verbatim.h */
    SL_CONDITION_VERBATIM,
};

/* Limits of `near`: terms, words of all terms, words between them. */
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

/* Conditions are appended to `bytes`. Check bytes.failed once at the end. */
struct sl_condition_builder {
    struct buffer bytes;
    struct buffer copy, order; /* scratch of sl_condition_close() */
};

#define SL_CONDITION_BUILDER_INIT                                                                  \
    ((struct sl_condition_builder){BUFFER_INIT, BUFFER_INIT, BUFFER_INIT})

void sl_condition_builder_done(struct sl_condition_builder *builder);

void sl_condition_add(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                      const void *operand, size_t size);
/* For SL_CONDITION_KEYWORD, _WHOLE_WORD or _PLACE; needs at least one token. */
void sl_condition_add_tokens(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                             struct sl_slice normal, const struct sl_token_list *tokens);
void sl_condition_add_url(struct sl_condition_builder *builder, struct sl_slice host,
                          struct sl_slice path);
/* Sorts `ids`, of which there must be at least one. */
void sl_condition_add_users(struct sl_condition_builder *builder, struct sl_slice *ids,
                            size_t count);

/* The points must be unwound: see sl_polygon_unwind(). */
void sl_condition_add_polygon(struct sl_condition_builder *builder, const struct sl_point *points,
                              size_t count);

/* Joins the keywords appended since bytes.size was `mark`, which must be within the limits, into
 * one condition: they are near each other, with at most `between` other words. */
void sl_condition_close_near(struct sl_condition_builder *builder, unsigned between, size_t mark);

/* Joins the conditions appended since bytes.size was `mark`, at least one, into one: all or any of
 * them. For SL_CONDITION_NOT, negates the only one. */
void sl_condition_close(struct sl_condition_builder *builder, enum sl_condition_kind kind,
                        size_t mark);

/* --- reading ------------------------------------------------------------------------------ */

struct sl_condition {
    enum sl_condition_kind kind;
    struct sl_slice operand;
    struct sl_slice whole; /* including the bytes before the operand */
};

/* Removes the next condition from *rest. false: there are no more. */
bool sl_condition_next(struct sl_slice *rest, struct sl_condition *ret_condition);

struct sl_condition_token {
    struct sl_slice text;
    bool gap; /* there may be other text between this token and the one before; false for the
                 first */
};

/* Removes the next token from the operand of a keyword or place. */
bool sl_condition_next_token(struct sl_slice *rest, struct sl_condition_token *ret_token);

/* The keywords of a `near` condition; *ret_between as in sl_condition_close_near(). */
struct sl_slice sl_condition_near_terms(struct sl_slice operand, unsigned *ret_between);

void sl_condition_read_url(struct sl_slice operand, struct sl_slice *ret_host,
                           struct sl_slice *ret_path);

uint32_t sl_condition_user_count(struct sl_slice operand);
struct sl_slice sl_condition_user(struct sl_slice operand, uint32_t at);

/* --- evaluating --------------------------------------------------------------------------- */

/* Whether the first condition of `bytes` is true of `event`. `words` was read from the same event.
 * Does not check audience and type of the event. */
bool sl_condition_holds(struct sl_slice bytes, const struct sl_event_view *event,
                        const struct sl_words *words);
