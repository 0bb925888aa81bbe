/* gateway/front/token_words.h - explains to operators what the server thinks of a token, and why.
 *
 * Clients are told less (bearer.h): this explanation contains the content of tokens whose signature
 * is not verified, and the existing keys. */
#pragma once

#include "base/buffer.h"
#include "gateway/front/token.h"

/* Appends lines: the verdict first, then the details. */
enum token_fault token_words(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct buffer *words);
