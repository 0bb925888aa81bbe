/* gateway/http/accept.h - chooses a stream format by an Accept header. */
#pragma once

#include <stdbool.h>

#include "gateway/http/http.h"

enum accept_choice { ACCEPT_NDJSON, ACCEPT_SSE, ACCEPT_NEITHER };

/* By RFC 9110, section 12.5.1: text/event-stream is SSE; application/x-ndjson and application/json
 * are NDJSON. The higher weight wins, then the format named more specifically, then NDJSON. Without
 * the header anything is accepted. Malformed ranges are ignored. */
enum accept_choice accept_choose(const struct http_list *accept);

enum { ACCEPT_WEIGHT_MAX = 1000 }; /* q=1.000 */

/* Reads the value of a `q`: "0", "0.5", "1.000"; at most three decimals, at most 1. false:
 * malformed. */
bool accept_read_weight(struct sl_slice text, int *ret_weight);

/* Whether application/json is acceptable. */
bool accept_takes_json(const struct http_list *accept);
