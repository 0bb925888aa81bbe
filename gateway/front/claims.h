/* gateway/front/claims.h - reads the claims of a token with a valid signature: subject,
 * permissions, times.
 *
 * Tokens made for this server use its own format: the claim `sub` is a text, `scope` a text of
 * names separated by spaces. Tokens of identity providers are read by configured rules: the subject
 * is in a claim of any name, a text or a number; scopes are in `scope` and `scp`, as text or list;
 * a table maps roles to scopes. Scopes that a provider may not grant are removed. */
#pragma once

#include <jansson.h>

#include "gateway/front/token.h"

enum { CLAIM_PATH_MAX = 8 };

/* Names of members, beginning with the outermost. */
struct claim_path {
    const char *names[CLAIM_PATH_MAX];
    unsigned count; /* 0: none */
};

struct claim_rules {
    struct claim_path subject;  /* none: sub */
    const char *subject_prefix; /* NULL: none */
    struct claim_path roles;    /* none: roles are ignored */
    const json_t *role_table;   /* names of roles -> texts of scopes; borrowed */
    unsigned allowed_scopes;    /* all others are removed */
    unsigned leeway_s;
};

/* For the issuer configured by the options. */
#define CLAIM_RULES_OWN ((struct claim_rules){.allowed_scopes = ~0U, .leeway_s = TOKEN_LEEWAY_S})

/* The scopes named in a text; *ret_unknown, which may be NULL, is set if it names others. */
unsigned claims_scopes(struct sl_slice text, bool *ret_unknown);

/* Fills `token` except for what its key and issuer determine. TOKEN_OK, TOKEN_BAD_CLAIMS with its
 * `bad_claim`, TOKEN_EXPIRED or TOKEN_NOT_YET_VALID. */
enum token_fault claims_read(const struct claim_rules *rules, const json_t *claims, uint64_t now_ms,
                             struct token *token);

/* Whether `aud` contains one of them. */
bool claims_name_audience(const json_t *claims, const char *const *audiences, unsigned count);
