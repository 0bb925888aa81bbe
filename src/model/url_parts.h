/* src/model/url_parts.h - what the URLs of servers have in common: host, port, percent-encoding.
 *
 * `what` and `whose` begin the sentence of a refusal ("the Redis password ..."); a part that may be
 * a secret is never quoted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SL_URL_HOST_SIZE = 256 };

struct sl_slice sl_url_head(struct sl_slice text, size_t size);
/* Where `c` stands first, text.size when nowhere. */
size_t sl_url_index(struct sl_slice text, char c);
/* Letters, digits, . - _; in brackets what IPv6 has, too. */
bool sl_url_is_host_char(char c, bool in_brackets);

/* NUL-terminates. 0; -EINVAL: bad encoding, a NUL byte, too long. */
int sl_url_decode(struct sl_slice text, char *room, size_t room_size, const char *what,
                  struct failure *reterr);
/* Digits only. 0; -EINVAL. */
int sl_url_number(struct sl_slice text, uint32_t max, uint32_t *ret_number);

/* host, host:port, [v6], [v6]:port; *port holds the default. 0; -EINVAL. */
int sl_url_endpoint(struct sl_slice text, const char *whose, char host[static SL_URL_HOST_SIZE],
                    uint16_t *port, struct failure *reterr);
