/* gateway/streams/renewal.h - inside streams: another token takes the place of the one by which a
 * stream is here.
 *
 * It must be of the same subject, and permit whatever is sent on the connection now. Otherwise the
 * old one stays what it is. */
#pragma once

#include "gateway/access/control_message.h"
#include "gateway/front/token.h"
#include "gateway/http/http.h"

struct stream;

/* `token` has been checked. CONTROL_DONE: it is the stream's. */
enum control_result stream_renew(struct stream *stream, const struct token *token);
/* Says why not; returns -EPROTO. Not for CONTROL_DONE. */
int renewal_refuse(enum control_result result, struct http_refusal *refusal);

/* The same for a token that has not been checked. 0: it is the stream's; -EPROTO: *refusal;
 * -ENOMEM. */
int stream_renew_by(struct stream *stream, struct sl_slice jwt, struct http_refusal *refusal);

/* --- token_warning.c --- */

/* Tells the client that its token ends. */
void stream_warn_of_token(struct stream *stream);
/* Until that is due; UINT64_MAX: it is not. */
uint64_t stream_token_warning_left_ms(const struct stream *stream);
