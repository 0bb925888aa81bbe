/* filters/rule_operator.h - the operators of rules, such as `from:`, and the operands that each
 * accepts. */
#pragma once

#include <stdbool.h>

#include "filters/parse.h"

struct sl_rule_operator {
    const char *name;  /* matched in any letter case */
    bool is_bracketed; /* its operand is in brackets */
    bool is_anchor;    /* selective enough to find the rule by */
    bool is_wide;      /* an anchor if wide rules are allowed */
    bool is_sample;    /* allowed only in certain places */
    /* Adds the condition for the operand, which is trimmed and not empty. 0; -EINVAL: refused by
     * sl_parse_refuse(); -ENOMEM. */
    int (*read)(struct sl_parse *parse, struct sl_slice operand);
};

/* NULL: there is no operator with this name. */
const struct sl_rule_operator *sl_rule_operator_find(struct sl_slice name);
/* The operator that was probably meant; NULL: none is near enough. */
const char *sl_rule_operator_meant(struct sl_slice name);
