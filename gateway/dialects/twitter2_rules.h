/* gateway/dialects/twitter2_rules.h - X's API 2: the rules of the filtered stream.
 *
 *     POST {"add":[{"value":"cat has:media","tag":"cats"}]}, {"delete":{"ids":["..."]}}
 *     GET  ids, max_results, pagination_token; and how many there are */
#pragma once

#include "gateway/front/dialect.h"

extern const struct dialect_rules twitter2_rules, twitter2_rule_counts;
