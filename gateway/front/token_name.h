/* gateway/front/token_name.h - names in tokens, which come from outside, in a bounded size: of the
 * token (jti), of its key (kid), of its issuer (iss). */
#pragma once

#include "base/slice.h"

/* Every stream stores three of them. */
enum { TOKEN_NAME_SIZE = 52 };

/* `text` itself; if it is too long, "sha256:" and the first 22 bytes of its hash in hexadecimal. To
 * compare names, convert both with this function. */
void token_name(struct sl_slice text, char ret_name[static TOKEN_NAME_SIZE]);
