/* gateway/front/stream_wire.h - internal to stream_request: how a stream is framed and
 * compressed. */
#pragma once

#include "gateway/front/stream_request.h"

/* Sets what the headers determine: format, encoding, extension and subprotocol. 0; -EPROTO:
 * *refusal. */
int stream_wire_choose(const struct front_settings *settings, enum stream_kind stream,
                       const struct http_request *http, struct stream_request *request,
                       struct http_refusal *refusal);
/* The same for compression only, if the format is known. */
int stream_wire_choose_encoding(const struct front_settings *settings, enum stream_kind stream,
                                const struct http_request *http, struct stream_request *request,
                                struct http_refusal *refusal);
