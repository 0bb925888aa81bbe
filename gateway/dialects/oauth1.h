/* gateway/dialects/oauth1.h - the token in an OAuth 1.0a header (RFC 5849, section 3.5.1). */
#pragma once

#include <stdbool.h>

#include "base/slice.h"

/* Finds the value of `oauth_token` in `OAuth oauth_nonce="..", oauth_token="<JWT>", ..`; a JWT
 * needs no escapes there. false: not such a header. Absent: it has no token, or one with
 * escapes. */
bool oauth1_token(struct sl_slice authorization, struct sl_slice *ret_jwt);
