/* gateway/streams/connections.h - internal to streams: the list of connections. Answers the
 * questions of other workers about ours, and HTTP requests about the connections of all workers.
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

/* The answer of this worker; a control_asked_fn. */
void connections_answer(void *streams, const struct control_question *question,
                        struct control_answer *ret_answer);

/* --- connection_request.c --- */

/* The methods of a path about connections, in the form of `Allow`; NULL: not such a path. Requests
 * for these paths go to streams_connections(). */
const char *connections_allow(struct sl_slice path);

/* Listing one's own connections needs scope `read`, `write` or `admin`; ending them `write` or
 * `admin`. 0; -EPROTO: *refusal is set. */
int connections_check_scope(const struct token *token, bool ends, struct http_refusal *refusal);
/* Sets *refusal: the subject has too many requests in progress. Returns -EPROTO. */
int connections_refuse_subject(struct http_refusal *refusal);
