/* filters/parse.h - what the parsers of all members of a filter share; internal. */
#pragma once

#include "base/buffer.h"
#include "filters/condition.h"
#include "filters/filter_fault.h"
#include "filters/words_private.h"

struct sl_parse {
    struct sl_condition_builder builder; /* receives the conditions */
    struct buffer normal;                /* scratch: normal forms */
    struct sl_token_list tokens;         /* scratch: their tokens */
    const char *param;                   /* the member being read */
    struct sl_filter_error *reterr;
};

/* All return 0; -EINVAL: refused, *reterr is filled; -ENOMEM. */

/* A term of section 6: #tag, @name, $cash, or else a keyword. */
int sl_parse_term(struct sl_parse *parse, struct sl_slice term);
/* A keyword, or a place: signs mean nothing in it. */
int sl_parse_keyword(struct sl_parse *parse, enum sl_condition_kind kind, struct sl_slice text);
enum sl_login_sign { SL_LOGIN_WITH_SIGN, SL_LOGIN_PERHAPS_WITH_SIGN };

/* A login, '@' in front, as a condition of each of `kinds`; refused with `fault`. */
int sl_parse_login(struct sl_parse *parse, struct sl_slice text, enum sl_login_sign sign,
                   enum sl_filter_fault fault, const enum sl_condition_kind *kinds, size_t count);
/* A box from its four numbers. */
int sl_parse_box(struct sl_parse *parse, const struct sl_slice numbers[4]);
int sl_parse_number(struct sl_parse *parse, struct sl_slice text, double *ret_number);
int sl_parse_language(struct sl_parse *parse, struct sl_slice range);

/* The whole of `rule`; *parse->param is "rule". */
int sl_parse_rule(struct sl_parse *parse, struct sl_slice rule);

static inline int sl_parse_refuse(struct sl_parse *parse, enum sl_filter_fault fault)
{
    return sl_filter_refuse(parse->reterr, fault, parse->param);
}
