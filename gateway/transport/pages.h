/* gateway/transport/pages.h - inside transport: health, metrics, status and the dashboard. */
#pragma once

#include "gateway/transport/connection.h"

/* Answers with the page at the request's path, if there is one: the rest of what exchange.c does
 * not know. Returns what the callback of libwebsockets returns. */
int pages_answer(struct connection *connection, const struct http_request *http);
