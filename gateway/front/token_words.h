/* gateway/front/token_words.h - what a server would say of a token, and why, for whoever runs it.
 *
 * Clients are told less (bearer.h): these words name what the token says before its signature is
 * known to be good, and which keys there are. */
#pragma once

#include "base/buffer.h"
#include "gateway/front/token.h"

/* Appends lines: the verdict first, then what it is about. */
enum token_fault token_words(const struct token_policy *policy, struct sl_slice jwt,
                             uint64_t now_ms, struct buffer *words);
