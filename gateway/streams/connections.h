/* gateway/streams/connections.h - inside streams: what other workers ask of ours, and what is asked
 * over HTTP of the connections of all.
 *
 *     GET    /v1/connections?sub=...&after=...
 *     DELETE /v1/connections?sub=...
 *     GET    /v1/connections/{id}
 *     DELETE /v1/connections/{id}
 *     PUT    /v1/connections/{id}/token */
#pragma once

#include <stdbool.h>

#include "base/slice.h"
#include "gateway/access/control_message.h"
#include "gateway/streams/streams.h"

/* --- connections.c --- */

/* Answers for this worker; a control_asked_fn. */
void connections_answer(void *streams, const struct control_question *question,
                        struct control_answer *ret_answer);

/* --- connection_request.c --- */

/* The methods of a path that is about connections; NULL: it is not. What is asked on it goes to
 * streams_connections(). */
const char *connections_allow(struct sl_slice path);
