/* gateway/dialects/twitter2_rules.h - the rules of the filtered stream in X's API 2.
 *
 *     POST {"add":[{"value":"cat has:media","tag":"cats"}]}, {"delete":{"ids":["..."]}}
 *     GET  ids, max_results, pagination_token; and the number of rules */
#pragma once

#include "gateway/front/dialect.h"

/* See struct dialect. */
int twitter2_check_rules(const struct subject_rules *rules, struct http_refusal *refusal);
int twitter2_read_rule(const struct subject_rule *rule, const struct token *token,
                       struct sl_filter **ret_filter, struct http_refusal *refusal);

extern const struct dialect_rules twitter2_rules, twitter2_rule_counts;
