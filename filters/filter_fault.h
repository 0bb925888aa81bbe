/* filters/filter_fault.h - all errors and warnings of filters.
 *
 * The order is the order of the checks, see docs/filters.md. */
#pragma once

#include "filters/filter.h"

enum sl_filter_fault {
    SL_FAULT_EMPTY_TRACK,
    SL_FAULT_TOO_MANY_PHRASES,
    SL_FAULT_PHRASE_TOO_LONG,
    SL_FAULT_WILDCARD,
    SL_FAULT_EMPTY_KEYWORD,
    SL_FAULT_EMPTY_FOLLOW,
    SL_FAULT_TOO_MANY_USERS,
    SL_FAULT_BAD_FOLLOW,
    SL_FAULT_BAD_LOCATIONS,
    SL_FAULT_TOO_MANY_BOXES,
    SL_FAULT_BAD_NUMBER,
    SL_FAULT_BAD_BOX,
    SL_FAULT_EMPTY_RULE,
    SL_FAULT_RULE_TOO_LONG,
    SL_FAULT_MISSING_TERM,
    SL_FAULT_MISSING_TERM_BEFORE, /* before an OR or AND */
    SL_FAULT_NEGATED_TWICE,
    SL_FAULT_UNCLOSED_GROUP,
    SL_FAULT_UNOPENED_GROUP,
    SL_FAULT_UNCLOSED_QUOTE,
    SL_FAULT_UNCLOSED_BRACKET,
    SL_FAULT_UNKNOWN_OPERATOR,
    SL_FAULT_EMPTY_OPERAND,
    SL_FAULT_NEAR_TERMS,
    SL_FAULT_NEAR_WORDS,
    SL_FAULT_NEAR_BETWEEN,
    SL_FAULT_BAD_OPERAND,
    SL_FAULT_BAD_USER,
    SL_FAULT_BAD_URL,
    SL_FAULT_BAD_HAS,
    SL_FAULT_BAD_IS,
    SL_FAULT_BAD_COUNTRY,
    SL_FAULT_BAD_RADIUS,
    SL_FAULT_POLYGON_POINTS,
    SL_FAULT_BAD_POINT,
    SL_FAULT_POLYGON_FLAT,
    SL_FAULT_POLYGON_ROUND,
    SL_FAULT_TOO_DEEP,
    SL_FAULT_TOO_MANY_ATOMS,
    SL_FAULT_SAMPLE_PLACEMENT,
    SL_FAULT_RULE_TOO_BROAD,
    SL_FAULT_BAD_LANGUAGE,
    SL_FAULT_BAD_SAMPLE,
    SL_FAULT_BAD_PARTITION,
    SL_FAULT_BAD_TYPES,
    SL_FAULT_NO_SELECTOR,

    /* Warnings, for filters that are accepted. */
    SL_WARNING_OPERATOR_IN_RULE,
    SL_WARNING_OPERATOR_IN_TRACK,
    SL_WARNING_BOX_AT_SEA,
    SL_WARNING_UNKNOWN_LANGUAGE,
};

/* The position of an error in a filter. */
struct sl_filter_position {
    const char *param;     /* the member */
    struct sl_slice item;  /* the item of a list or the named part; without data: none */
    struct sl_slice value; /* the whole member; without data: none */
    bool is_rule;          /* show the position instead of the item */
    const char *at;        /* in a rule; NULL: the rule as a whole */
};

/* Fills *reterr (NULL is allowed) and returns -EINVAL, so that a function can end with it. */
int sl_filter_refuse(struct sl_filter_error *reterr, enum sl_filter_fault fault,
                     const struct sl_filter_position *position);

/* Adds a warning, unless there already is one with its code, or no room. Returns it, or NULL. */
struct sl_filter_error *sl_filter_warn(struct sl_filter_warnings *warnings,
                                       enum sl_filter_fault fault,
                                       const struct sl_filter_position *position);

/* Appends to the message of an error. */
void sl_filter_error_add(struct sl_filter_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
