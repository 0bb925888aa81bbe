/* filters/parse.h - what the parsers of all members of a filter share; internal. */
#pragma once

#include "base/buffer.h"
#include "filters/condition.h"
#include "filters/filter_fault.h"
#include "filters/words_private.h"

enum { SL_RULE_MAX_ATOMS = 64 };

/* Where in a rule the alternatives and items stand that are in no parentheses. */
struct sl_rule_pieces {
    struct sl_slice alternatives[SL_RULE_MAX_ATOMS], items[SL_RULE_MAX_ATOMS];
    size_t alternative_count, item_count;
};

struct sl_parse {
    struct sl_condition_builder builder; /* receives the conditions */
    struct buffer normal;                /* scratch: normal forms */
    struct sl_token_list tokens;         /* scratch: their tokens */
    struct sl_filter_position position;  /* what is being read */
    struct sl_filter_sizes sizes;        /* of what has been read */
    struct sl_filter_error *reterr;
    struct sl_filter_warnings *warnings; /* NULL: nobody wants them */
    struct sl_rule_pieces *pieces;       /* likewise */
};

/* All return 0; -EINVAL: refused, *reterr is filled; -ENOMEM. */

/* A term of section 6: #tag, @name, $cash, or else a keyword. */
int sl_parse_term(struct sl_parse *parse, struct sl_slice term);
/* A keyword, or a place: signs mean nothing in it. */
int sl_parse_keyword(struct sl_parse *parse, enum sl_condition_kind kind, struct sl_slice text);

/* Adds the two to SL_NEAR_MAX_TERMS terms between quotes as keywords: sl_condition_close_near()
 * joins them. */
int sl_parse_near(struct sl_parse *parse, struct sl_slice text);

/* What a user may be named by: see sl_parse_user(). */
struct sl_user_name {
    bool is_id, is_login;  /* at least one of them */
    struct sl_slice id;    /* as it was given */
    struct sl_slice login; /* in normal form: in parse->normal, until the next is read */
};

/* Digits are an id, what begins with '@' is a login, and anything else whichever of the two it can
 * be, or both. Refused with `fault` when it is neither. */
int sl_parse_user(struct sl_parse *parse, struct sl_slice text, enum sl_filter_fault fault,
                  struct sl_user_name *ret_name);
/* A box from its four numbers. */
int sl_parse_box(struct sl_parse *parse, const struct sl_slice numbers[4]);
/* A polygon from its points, separated by commas. */
int sl_parse_polygon(struct sl_parse *parse, struct sl_slice points);
/* Refusals from now on are about `piece`: an item of a list, or where it stands in the rule. */
void sl_parse_at(struct sl_parse *parse, struct sl_slice piece);
int sl_parse_number(struct sl_parse *parse, struct sl_slice text, double *ret_number);
int sl_parse_language(struct sl_parse *parse, struct sl_slice range);

/* The whole of `rule`; `allows_wide` as in struct sl_filter_limits. */
int sl_parse_rule(struct sl_parse *parse, struct sl_slice rule, bool allows_wide);

/* Of a rule that would be accepted where wide ones are. 0; -EINVAL: it would not; -ENOMEM. */
int sl_parse_rule_pieces(struct sl_slice rule, struct sl_rule_pieces *ret_pieces);

/* The warning, to which more may be added; NULL: there is none. */
static inline struct sl_filter_error *sl_parse_warn(struct sl_parse *parse,
                                                    enum sl_filter_fault warning)
{
    return parse->warnings ? sl_filter_warn(parse->warnings, warning, &parse->position) : NULL;
}

static inline int sl_parse_refuse(struct sl_parse *parse, enum sl_filter_fault fault)
{
    return sl_filter_refuse(parse->reterr, fault, &parse->position);
}
