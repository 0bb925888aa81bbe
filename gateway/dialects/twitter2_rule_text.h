/* gateway/dialects/twitter2_rule_text.h - a rule of X's filtered stream, in our words.
 *
 * Its language is close to ours (docs/filters.md, section 9): words, phrases, tags, operators,
 * `OR`, parentheses and `-` mean the same. What X refuses is refused; what we have not, or only
 * nearly, is refused as an operator that is not available. Pure. */
#pragma once

#include "base/buffer.h"
#include "base/slice.h"
#include "filters/filter.h"

enum { TWITTER2_RULE_MAX = 1024, TWITTER2_DETAIL_SIZE = 512 };

/* `value`: UTF-8 without U+0000. 0: our rule is appended to `ret_rule`; -EINVAL: *ret_detail says
 * why it is none, and where. */
int twitter2_rule_translate(struct sl_slice value, struct buffer *ret_rule,
                            char ret_detail[static TWITTER2_DETAIL_SIZE]);

/* The filter of the rule: posts, and nothing else. 0: one reference is the caller's; -EINVAL:
 * *ret_detail; -ENOMEM. */
int twitter2_rule_filter(struct sl_slice value, const struct sl_filter_limits *limits,
                         struct sl_filter **ret_filter,
                         char ret_detail[static TWITTER2_DETAIL_SIZE]);
