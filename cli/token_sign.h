/* cli/token_sign.h - signs claims as a JSON Web Token. */
#pragma once

#include <jansson.h>

#include "base/buffer.h"
#include "base/failure.h"

enum { TOKEN_MAX_BYTES = 8192 /* the limit of sluiced */ };

/* Whether the algorithm is supported: HS256, HS384, HS512. */
bool token_can_sign(const char *algorithm);

/* Signs with the secret in the file, which is wiped from memory afterwards, and appends the token.
 * 0; -E2BIG: it would be longer than sluiced accepts; another errno. */
int token_sign(const char *algorithm, const char *secret_file, const json_t *claims,
               struct buffer *token, struct failure *reterr);
