/* gateway/front/token_policy_parts.h - what a policy is made of, for token_policy.c, which makes
 * it, and token.c, which asks it. */
#pragma once

#include "gateway/front/issuer_keys.h"
#include "gateway/front/token_memory.h"
#include "gateway/metrics/metrics.h"

struct token_policy {
    struct issuer_keys *issuers; /* the first is that of the options */
    unsigned issuer_count;
    struct issuer_settings own; /* of the first */
    char *name, *audience;      /* of the first; NULL: not checked */
    struct issuer_list *list;   /* of the others; NULL: none */
    struct token_memory *memory;
    struct metrics *metrics;     /* NULL: nobody counts */
    token_revoked_fn is_revoked; /* NULL: nobody knows */
    void *revoked_context;
    token_unknown_key_fn tell_unknown; /* NULL: nobody wants to know */
    void *unknown_context;
};
