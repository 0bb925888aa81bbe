/* gateway/dialects/twitter2_rules.h - X's API 2: the rules of the filtered stream.
 *
 *     POST {"add":[{"value":"cat has:media","tag":"cats"}]}, {"delete":{"ids":["..."]}}
 *     GET  ids, max_results, pagination_token; and how many there are */
#pragma once

#include "gateway/front/dialect.h"

/* As of struct dialect. */
int twitter2_check_rules(const struct subject_rules *rules, struct http_refusal *refusal);
int twitter2_read_rule(const struct subject_rule *rule, const struct token *token,
                       struct sl_filter **ret_filter, struct http_refusal *refusal);

extern const struct dialect_rules twitter2_rules, twitter2_rule_counts;
