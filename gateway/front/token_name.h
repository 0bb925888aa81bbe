/* gateway/front/token_name.h - names that a token has from outside, in a bounded room: of itself
 * (jti), of its key (kid), of its issuer (iss). */
#pragma once

#include "base/slice.h"

/* Every stream keeps three of them. */
enum { TOKEN_NAME_SIZE = 52 };

/* `text` itself; of one that is too long for that "sha256:" and the first 22 bytes of the hash, in
 * hexadecimal. Whoever compares names makes both with this. */
void token_name(struct sl_slice text, char ret_name[static TOKEN_NAME_SIZE]);
