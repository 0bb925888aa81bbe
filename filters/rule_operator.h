/* filters/rule_operator.h - the operators of rules, `from:` and its like: what may stand behind
 * each. */
#pragma once

#include <stdbool.h>

#include "filters/parse.h"

struct sl_rule_operator {
    const char *name;  /* in any case */
    bool is_bracketed; /* its operand is */
    bool is_anchor;    /* narrow enough to find the rule by */
    bool is_wide;      /* an anchor where wide rules are allowed */
    bool is_sample;    /* may not stand everywhere */
    /* Adds the condition that the operand, trimmed and not empty, says. 0; -EINVAL: it has refused
     * it, as sl_parse_refuse() does; -ENOMEM. */
    int (*read)(struct sl_parse *parse, struct sl_slice operand);
};

/* NULL: there is none of this name. */
const struct sl_rule_operator *sl_rule_operator_find(struct sl_slice name);
/* The name that was probably meant; NULL: none is near enough. */
const char *sl_rule_operator_meant(struct sl_slice name);
