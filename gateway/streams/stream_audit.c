/* stream_audit.c - lines of the audit log about streams: one when a stream is opened and one when
 * it ends; between these, one for each filter that the client adds or removes, each new token, and
 * each request that is not permitted.
 *
 * A filter is described in words (filters/filter_describe.h), as in `hello`: in one form, however
 * it was written. All lines of a connection have its id. */
#include "base/clock.h"
#include "filters/filter_describe.h"
#include "gateway/access/audit_log.h"
#include "gateway/streams/stream.h"

static struct audit_log *log_of(const struct channel *channel)
{
    return channel->stream->streams->settings.audit;
}

static void append_text(struct buffer *json, const char *name, const char *text)
{
    if (text[0])
        audit_text(json, name, sl_slice_str(text));
}

static void append_who(const struct channel *channel, struct buffer *json)
{
    const struct token *token = stream_token(channel->stream);

    append_text(json, "connection", channel->stream->connection_id);
    append_text(json, "sub", token->subject);
    append_text(json, "jti", token->jti);
}

/* Appends the key and issuer of the token. */
static void append_key(const struct token *token, struct buffer *json)
{
    append_text(json, "kid", token->kid);
    append_text(json, "iss", token->issuer);
}

static void append_address(const struct stream *stream, struct buffer *json)
{
    char room[WIRE_ADDRESS_SIZE];

    audit_address(json, wire_client_address(&stream->wire, room));
}

static void append_stream(const struct channel *channel, struct buffer *json)
{
    append_text(json, "stream", stream_kind_name(channel->request.stream));
    append_text(json, "transport", stream_format_name(channel->request.format));
    if (channel_is_opened(channel))
        audit_text(json, "opened", channel_name(channel));
}

static void append_words(const struct buffer *words, struct buffer *json)
{
    if (words->size > 0)
        audit_text(json, "filter", buffer_slice(words));
    json->failed = json->failed || words->failed;
}

void stream_audit_open(const struct channel *channel)
{
    struct buffer json, words = BUFFER_INIT;

    if (!audit_begin(log_of(channel), "stream_open", &json))
        return;
    append_who(channel, &json);
    append_key(stream_token(channel->stream), &json);
    append_address(channel->stream, &json);
    append_stream(channel, &json);
    stream_describe(&channel->request, AUDIT_TEXT_MAX, &words);
    append_words(&words, &json);
    buffer_done(&words);
    audit_end_take(log_of(channel), &json);
}

void stream_audit_end(const struct channel *channel, const char *why, uint64_t ms)
{
    struct buffer json;

    if (!audit_begin(log_of(channel), "stream_end", &json))
        return;
    append_who(channel, &json);
    append_stream(channel, &json);
    audit_number(&json, "ms", ms);
    audit_number(&json, "events", channel->client.sent_events);
    audit_number(&json, "bytes", channel->client.sent_bytes);
    append_text(&json, "why", why);
    audit_end_take(log_of(channel), &json);
}

void stream_audit_filter(const struct channel *channel, const char *event, struct sl_slice id,
                         const struct sl_filter *filter)
{
    struct buffer json, words = BUFFER_INIT;

    if (!audit_begin(log_of(channel), event, &json))
        return;
    append_who(channel, &json);
    audit_text(&json, "id", id);
    if (filter)
        sl_filter_describe(filter, AUDIT_TEXT_MAX, &words);
    append_words(&words, &json);
    buffer_done(&words);
    audit_end_take(log_of(channel), &json);
}

void stream_audit_renewed(const struct stream *stream)
{
    const struct token *token = stream_token(stream);
    char expires[CLOCK_RFC3339_SIZE];
    struct buffer json;

    if (!audit_begin(log_of(&stream->own), "token_renewed", &json))
        return;
    append_who(&stream->own, &json);
    append_key(token, &json);
    if (token->expires_ms) {
        clock_format_rfc3339(token->expires_ms, expires);
        append_text(&json, "expires", expires);
    }
    audit_end_take(log_of(&stream->own), &json);
}

static void audit_refusal(const struct stream *stream, const char *event, const char *name,
                          const char *why)
{
    struct buffer json;

    if (!audit_begin_refused(log_of(&stream->own), event, &json))
        return;
    append_who(&stream->own, &json);
    append_address(stream, &json);
    append_text(&json, name, why);
    audit_end_take(log_of(&stream->own), &json);
}

void stream_audit_token_refused(const struct stream *stream, enum token_fault fault,
                                const struct http_refusal *refusal)
{
    if (fault == TOKEN_OK)
        audit_refusal(stream, "token_refused", "code", refusal->code);
    else
        audit_refusal(stream, "token_refused", "fault", token_fault_name(fault));
}

void stream_audit_refused(const struct stream *stream, const struct http_refusal *refusal)
{
    if (refusal->status == 403)
        audit_refusal(stream, "refused", "code", refusal->code);
}
