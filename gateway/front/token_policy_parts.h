/* gateway/front/token_policy_parts.h - the inside of a policy, for token_policy.c, which creates
 * it, and token.c, which uses it. */
#pragma once

#include "gateway/front/issuer_keys.h"
#include "gateway/front/token_memory.h"
#include "gateway/metrics/metrics.h"

struct token_policy {
    struct issuer_keys *issuers; /* the first is that of the options */
    unsigned issuer_count;
    struct issuer_settings own; /* of the first one */
    char *name, *audience;      /* of the first one; NULL: not checked */
    char *subject_claim;        /* of the first one; NULL: sub */
    struct issuer_list *list;   /* of the others; NULL: none */
    struct token_memory *memory;
    struct metrics *metrics;     /* NULL: no counting */
    token_revoked_fn is_revoked; /* NULL: revocations are unknown */
    void *revoked_context;
    token_unknown_key_fn tell_unknown; /* may be NULL */
    void *unknown_context;
};
