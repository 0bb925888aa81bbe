/* gateway/dialects/oauth1.h - the token in a header of OAuth 1.0a (RFC 5849, section 3.5.1). */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* `OAuth oauth_nonce="..", oauth_token="<JWT>", ..`: the value of `oauth_token`, which a JWT is
 * written as without escapes. false: it is no such header. An absent slice: it has no token, or one
 * with escapes. */
bool oauth1_token(struct sl_slice authorization, struct sl_slice *ret_jwt);
