/* src/model/url_parts.h - parts that the URLs of servers have in common: host, port,
 * percent-encoding.
 *
 * `what` and `whose` are the beginning of the error message ("the Redis password ..."). Parts that
 * may be a secret are never quoted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"

enum { SL_URL_HOST_SIZE = 256 };

struct sl_slice sl_url_head(struct sl_slice text, size_t size);
/* The index of the first `c`; text.size when there is none. */
size_t sl_url_index(struct sl_slice text, char c);
/* Letters, digits, . - _; inside brackets also the characters of an IPv6 address. */
bool sl_url_is_host_char(char c, bool in_brackets);

/* Decodes percent-encoding into `room`, with a NUL. 0; -EINVAL: bad encoding, a NUL byte, too
 * long. */
int sl_url_decode(struct sl_slice text, char *room, size_t room_size, const char *what,
                  struct failure *reterr);
/* Parses a number of digits only. 0; -EINVAL. */
int sl_url_number(struct sl_slice text, uint32_t max, uint32_t *ret_number);

/* Parses host, host:port, [v6] or [v6]:port. *port contains the default. 0; -EINVAL. */
int sl_url_endpoint(struct sl_slice text, const char *whose, char host[static SL_URL_HOST_SIZE],
                    uint16_t *port, struct failure *reterr);
