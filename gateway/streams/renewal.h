/* gateway/streams/renewal.h - internal to streams: replaces the token of a stream.
 *
 * The new token must have the same subject, and permit everything that is sent on the connection.
 * Otherwise the old one stays in use. */
#pragma once

#include "gateway/access/control_message.h"
#include "gateway/front/token.h"
#include "gateway/http/http.h"

struct stream;

/* `token` has been verified. CONTROL_DONE: it has replaced the old one. */
enum control_result stream_renew(struct stream *stream, const struct token *token);
/* Sets *refusal; returns -EPROTO. Not for CONTROL_DONE. */
int renewal_refuse(enum control_result result, struct http_refusal *refusal);

/* Also verifies the token. 0: it has replaced the old one; -EPROTO: *refusal is set; -ENOMEM. */
int stream_renew_by(struct stream *stream, struct sl_slice jwt, struct http_refusal *refusal);

/* --- token_warning.c --- */

/* Sends a warning that the token expires soon. */
void stream_warn_of_token(struct stream *stream);
/* The time until that warning; UINT64_MAX: none is due. */
uint64_t stream_token_warning_left_ms(const struct stream *stream);
