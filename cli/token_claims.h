/* cli/token_claims.h - checks that the claims of a token are accepted by sluiced and useful. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

/* Checks the claims of a complete token; an error ends the program with a message that says what is
 * valid. */
void token_claims_check(const struct cli *cli, const json_t *claims, int64_t now_s);

/* Whether the scopes need a subject that is a user of the database. */
bool token_claims_need_user(const char *scopes);

/* All scopes, each preceded by a space. */
extern const char token_scope_names[];
