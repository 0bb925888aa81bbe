/* filters/parse.h - the common part of the parsers of all members of a filter; internal. */
#pragma once

#include "base/buffer.h"
#include "filters/condition.h"
#include "filters/filter_fault.h"
#include "filters/words_private.h"

enum { SL_RULE_MAX_ATOMS = 64 };

/* The alternatives and items of a rule that are not in parentheses. */
struct sl_rule_pieces {
    struct sl_slice alternatives[SL_RULE_MAX_ATOMS], items[SL_RULE_MAX_ATOMS];
    size_t alternative_count, item_count;
};

struct sl_parse {
    struct sl_condition_builder builder; /* receives the conditions */
    struct buffer normal;                /* scratch: normal forms */
    struct sl_token_list tokens;         /* scratch: their tokens */
    struct sl_filter_position position;  /* the part being parsed */
    struct sl_filter_sizes sizes;        /* of what has been parsed */
    struct sl_filter_error *reterr;
    struct sl_filter_warnings *warnings; /* NULL: not wanted */
    struct sl_rule_pieces *pieces;       /* NULL: not wanted */
};

/* All functions return 0; -EINVAL: refused, *reterr is filled; -ENOMEM. */

/* Parses a term (docs/filters.md, section 6): #tag, @name, $cash, or else a keyword. */
int sl_parse_term(struct sl_parse *parse, struct sl_slice term);
/* Parses a keyword, or a place, in which #, @ and $ have no special meaning. */
int sl_parse_keyword(struct sl_parse *parse, enum sl_condition_kind kind, struct sl_slice text);

/* Adds two to SL_NEAR_MAX_TERMS terms between quotes as keywords, to be joined by
 * sl_condition_close_near(). */
int sl_parse_near(struct sl_parse *parse, struct sl_slice text);

/* A reference to a user, see sl_parse_user(). */
struct sl_user_name {
    bool is_id, is_login;  /* at least one of them */
    struct sl_slice id;    /* as it was given */
    struct sl_slice login; /* in normal form: in parse->normal, until the next one is parsed */
};

/* Digits are an id, a text that begins with '@' is a login, and anything else is whichever of the
 * two it can be, or both. Refused with `fault` if it is neither. */
int sl_parse_user(struct sl_parse *parse, struct sl_slice text, enum sl_filter_fault fault,
                  struct sl_user_name *ret_name);
/* Parses a box from its four numbers. */
int sl_parse_box(struct sl_parse *parse, const struct sl_slice numbers[4]);
/* Parses a polygon from its points, separated by commas. */
int sl_parse_polygon(struct sl_parse *parse, struct sl_slice points);
/* Sets the position of later errors to `piece`: an item of a list, or a part of the rule. */
void sl_parse_at(struct sl_parse *parse, struct sl_slice piece);
int sl_parse_number(struct sl_parse *parse, struct sl_slice text, double *ret_number);
int sl_parse_language(struct sl_parse *parse, struct sl_slice range);

/* Parses a whole rule. `allows_wide` as in struct sl_filter_limits. */
int sl_parse_rule(struct sl_parse *parse, struct sl_slice rule, bool allows_wide);

/* Splits a rule. It must be one that would be accepted with `allows_wide`. 0; -EINVAL: it would
 * not; -ENOMEM. */
int sl_parse_rule_pieces(struct sl_slice rule, struct sl_rule_pieces *ret_pieces);

/* Adds a warning and returns it, so that more can be appended; NULL: not added. */
static inline struct sl_filter_error *sl_parse_warn(struct sl_parse *parse,
                                                    enum sl_filter_fault warning)
{
    return parse->warnings ? sl_filter_warn(parse->warnings, warning, &parse->position) : NULL;
}

static inline int sl_parse_refuse(struct sl_parse *parse, enum sl_filter_fault fault)
{
    return sl_filter_refuse(parse->reterr, fault, &parse->position);
}
