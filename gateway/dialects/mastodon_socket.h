/* gateway/dialects/mastodon_socket.h - the WebSocket of Mastodon's streaming API: many streams on
 * one connection, opened by the request's parameters and by messages. */
#pragma once

#include "gateway/front/dialect.h"

int mastodon_find_token(const struct dialect_request *request, struct sl_slice *ret_jwt,
                        struct http_refusal *refusal);
int mastodon_open(const struct dialect_request *request, struct dialect_stream *ret_asked,
                  struct http_refusal *refusal);
int mastodon_hear(struct sl_slice text, const struct stream_times *times,
                  struct dialect_message *ret_message, struct http_refusal *refusal);
void mastodon_print_refusal(const struct http_refusal *refusal, struct buffer *ret_text);
struct dialect_close mastodon_close_of(enum disconnect_reason why);
