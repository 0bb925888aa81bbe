/* cli/token_claims.h - would any sluiced take a token with these claims, and would it be of use? */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

/* What the claims of a finished token say of itself is checked; what is wrong ends the program with
 * a sentence that says what would be right. */
void token_claims_check(const struct cli *cli, const json_t *claims, int64_t now_s);

/* Is whose token it is to be a user of the database: do its scopes act for one? */
bool token_claims_need_user(const char *scopes);

/* The scopes there are, a space before each. */
extern const char token_scope_names[];
