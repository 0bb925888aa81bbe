/* stream_wire.c - chooses the stream format and compression by the headers.
 *
 * For HTTP, Accept and Accept-Encoding decide; for a WebSocket, its extensions. Streams that
 * contain private data are not compressed together with data of others. */
#include "gateway/front/stream_wire.h"

#include <errno.h>

#include "gateway/http/accept.h"
#include "gateway/http/accept_encoding.h"

/* Browsers close a WebSocket whose server chose none of the offered subprotocols. */
static int check_protocols(struct sl_slice protocols, bool *ret_echo, struct http_refusal *refusal)
{
    bool offers_any = false, offers_ours = false;

    while (protocols.size > 0) {
        struct sl_slice protocol = http_next_element(&protocols, ',');

        offers_any = offers_any || protocol.size > 0;
        offers_ours = offers_ours || sl_slice_is(protocol, "sluice.v1");
    }
    if (offers_any && !offers_ours)
        return http_refuse(refusal, 400, "bad_protocol", NULL,
                           "the subprotocol of this server is sluice.v1");
    *ret_echo = offers_ours;
    return 0;
}

static int check_form_type(const struct http_request *http, struct http_refusal *refusal)
{
    struct sl_slice rest = http->content_type;

    if (http->body.size == 0)
        return 0;
    if (rest.size > 0 &&
        http_token_is(http_next_element(&rest, ';'), "application/x-www-form-urlencoded"))
        return 0;
    return http_refuse(refusal, 415, "bad_content_type", NULL,
                       "parameters in a body need Content-Type: application/x-www-form-urlencoded");
}

/* How well private data compresses next to text chosen by others would reveal it (CRIME, BREACH):
 * so only public data is compressed. */
static bool may_be_compressed(enum stream_kind stream)
{
    return stream != STREAM_HOME;
}

static int refuse_encoding(bool has_deflate, bool has_zstd, struct http_refusal *refusal)
{
    return http_refuse(refusal, 406, "not_acceptable", NULL,
                       has_deflate ? "streams are available uncompressed, with gzip, or with zstd"
                       : has_zstd  ? "streams are available uncompressed, or with zstd"
                                   : "this stream is not compressed");
}

/* With equal weights gzip is chosen, which can refer to earlier data and so compresses better. */
static int choose_encoding(const struct front_settings *settings, enum stream_kind stream,
                           const struct http_request *http, struct stream_request *request,
                           struct http_refusal *refusal)
{
    const struct accept_encoding accept = accept_encoding_read(&http->accept_encoding);
    bool has_deflate = settings->has_deflate && may_be_compressed(stream);
    bool has_zstd = settings->has_zstd && may_be_compressed(stream);
    bool takes_zstd = has_zstd && accept_encoding_prefers(&accept, accept.zstd);

    if (has_deflate && accept_encoding_prefers(&accept, accept.gzip) &&
        !(takes_zstd && accept.zstd > accept.gzip)) {
        request->encoding = ENCODING_DEFLATE;
        request->window_bits = DEFLATE_WINDOW_BITS;
    } else if (takes_zstd) {
        request->encoding = ENCODING_ZSTD;
    } else if (accept.identity == 0) {
        return refuse_encoding(has_deflate, has_zstd, refusal);
    }
    return 0;
}

static void choose_extension(const struct http_request *http, struct stream_request *request)
{
    const struct websocket_deflate deflate = websocket_deflate_choose(&http->extensions);

    request->deflate = deflate;
    if (!deflate.is_agreed)
        return;
    request->encoding = ENCODING_DEFLATE;
    request->window_bits = deflate.server_no_context_takeover ? 0 : deflate.window_bits;
}

int stream_wire_choose_encoding(const struct front_settings *settings, enum stream_kind stream,
                                const struct http_request *http, struct stream_request *request,
                                struct http_refusal *refusal)
{
    if (request->format != FORMAT_WEBSOCKET)
        return choose_encoding(settings, stream, http, request, refusal);
    if (settings->has_deflate && may_be_compressed(stream))
        choose_extension(http, request);
    return 0;
}

int stream_wire_choose(const struct front_settings *settings, enum stream_kind stream,
                       const struct http_request *http, struct stream_request *request,
                       struct http_refusal *refusal)
{
    if (stream == STREAM_PAST_COUNTS) {
        request->format = FORMAT_NDJSON; /* for the wording of the response */
        return check_form_type(http, refusal);
    }
    if (http->is_upgrade) {
        request->format = FORMAT_WEBSOCKET;
        stream_wire_choose_encoding(settings, stream, http, request, refusal);
        return check_protocols(http->protocols, &request->echo_protocol, refusal);
    }
    if (stream == STREAM_MANY)
        return http_refuse(refusal, 426, "upgrade_required", NULL,
                           "this stream is for WebSockets only");
    switch (accept_choose(&http->accept)) {
    case ACCEPT_NDJSON:
        request->format = FORMAT_NDJSON;
        break;
    case ACCEPT_SSE:
        request->format = FORMAT_SSE;
        break;
    case ACCEPT_NEITHER:
        return http_refuse(refusal, 406, "not_acceptable", NULL,
                           "streams are application/x-ndjson or text/event-stream");
    }
    if (stream_wire_choose_encoding(settings, stream, http, request, refusal) < 0)
        return -EPROTO;
    return check_form_type(http, refusal);
}
