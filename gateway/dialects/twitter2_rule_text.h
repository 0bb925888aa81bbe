/* gateway/dialects/twitter2_rule_text.h - translates a rule of X's filtered stream to our rule
 * language.
 *
 * The languages are similar (docs/filters.md, section 9): words, phrases, tags, operators, `OR`,
 * parentheses and `-` have the same meaning. What X refuses is refused; what we do not have, or
 * only approximately, is refused as an operator that is not available. No I/O, no state. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/filter.h"

enum { TWITTER2_RULE_MAX = 1024, TWITTER2_DETAIL_SIZE = 512 };

/* `value` must be UTF-8 without U+0000. 0: our rule has been appended to `ret_rule`; -EINVAL:
 * *ret_detail says what is wrong and where. */
int twitter2_rule_translate(struct sl_slice value, struct buffer *ret_rule,
                            char ret_detail[static TWITTER2_DETAIL_SIZE]);

/* The filter of the rule, which matches posts only. 0: the caller owns a reference to *ret_filter;
 * -EINVAL: *ret_detail is set; -ENOMEM. */
int twitter2_rule_filter(struct sl_slice value, const struct sl_filter_limits *limits,
                         struct sl_filter **ret_filter,
                         char ret_detail[static TWITTER2_DETAIL_SIZE]);
