/* gateway/http/accept.h - what does an Accept header ask for? */
#pragma once

#include <stdbool.h>

#include "gateway/http/http.h"

enum accept_choice { ACCEPT_NDJSON, ACCEPT_SSE, ACCEPT_NEITHER };

/* By RFC 9110, section 12.5.1: text/event-stream is SSE; application/x-ndjson and application/json
 * are NDJSON; the higher weight wins, then the format that was named more exactly, then NDJSON. No
 * header at all takes anything. Ranges that are malformed count as not sent. */
enum accept_choice accept_choose(const struct http_list *accept);

/* Whether application/json will do. */
bool accept_takes_json(const struct http_list *accept);
