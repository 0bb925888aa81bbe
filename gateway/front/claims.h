/* gateway/front/claims.h - the claims of a token, whose signature holds -> who asks, what they may
 * do, until when.
 *
 * Tokens that are made for this server say it in its own words: the claim `sub` is a text, `scope`
 * a text of names between spaces. An identity provider says it in others, by the rules that are set
 * for it: the subject in a claim of any name, as a text or a number; scopes in `scope` and `scp`,
 * as text or list; roles that a table makes scopes of. What a provider may never give is cut off.
 */
#pragma once

#include <jansson.h>

#include "gateway/front/token.h"

enum { CLAIM_PATH_MAX = 8 };

/* Names of members, from the outermost on. */
struct claim_path {
    const char *names[CLAIM_PATH_MAX];
    unsigned count; /* 0: none */
};

struct claim_rules {
    struct claim_path subject;  /* none: sub */
    const char *subject_prefix; /* NULL: none */
    struct claim_path roles;    /* none: no roles are looked at */
    const json_t *role_table;   /* names of roles -> texts of scopes; not ours */
    unsigned allowed_scopes;    /* all others are cut off */
    unsigned leeway_s;
};

/* Of the issuer that the options name. */
#define CLAIM_RULES_OWN                                                                            \
    ((struct claim_rules){.allowed_scopes = ~0U, .leeway_s = TOKEN_LEEWAY_S})

/* The scopes that a text names; *ret_unknown, NULL allowed, is set when it names others. */
unsigned claims_scopes(struct sl_slice text, bool *ret_unknown);

/* Fills `token` but for what its key and issuer say. TOKEN_OK, TOKEN_BAD_CLAIMS with its
 * `bad_claim`, TOKEN_EXPIRED or TOKEN_NOT_YET_VALID. */
enum token_fault claims_read(const struct claim_rules *rules, const json_t *claims, uint64_t now_ms,
                             struct token *token);

/* Does `aud` name one of them? */
bool claims_name_audience(const json_t *claims, const char *const *audiences, unsigned count);
