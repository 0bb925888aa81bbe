/* renewal.c - checks whether the new token permits every channel of the stream, as if its request
 * came with that token, and every filter that came in a message.
 *
 * The numbers of phrases, users and boxes of a filter were recorded when it was made. Each filter
 * is checked once; nothing is stored. */
#include "gateway/streams/renewal.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "filters/filter.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/front/bearer.h"
#include "gateway/front/use_check.h"
#include "gateway/streams/stream.h"

/* --- what the token must permit --- */

static enum control_result check_filter(const struct token *token, const struct sl_filter *filter)
{
    const struct sl_filter_sizes sizes = sl_filter_sizes(filter);
    const struct sl_filter_limits *limits = &token->limits;
    struct http_refusal ignored;

    if (stream_filter_permitted(token, filter, &ignored) < 0)
        return CONTROL_NARROWER_SCOPE;
    if (sizes.track > limits->track || sizes.follow > limits->follow || sizes.boxes > limits->boxes)
        return CONTROL_NARROWER_LIMITS;
    return CONTROL_DONE;
}

static enum control_result check_channel(const struct channel *channel, const struct token *token)
{
    struct stream_request request = channel->request;
    enum control_result result = CONTROL_DONE;
    struct http_refusal ignored;

    request.token = *token;
    if (stream_request_permitted(&request, &ignored) < 0)
        return CONTROL_NARROWER_SCOPE;
    if (request.filter)
        result = check_filter(token, request.filter);
    for (size_t i = 0;
         channel->rules && result == CONTROL_DONE && i < rule_set_count(channel->rules); i++)
        result = check_filter(token, rule_set_at(channel->rules, i)->filter);
    return result;
}

static enum control_result check(const struct stream *stream, const struct token *token)
{
    const char *subject = stream->own.request.token.subject;
    enum control_result result = CONTROL_DONE;

    if (!stream_goes_on(stream))
        return CONTROL_NO_SUCH_CONNECTION;
    if (token_is_revoked(stream->streams->settings.front->policy, token, clock_wall_ms()))
        return CONTROL_TOKEN_REVOKED; /* unknown to the worker that verified it */
    if (!subject[0] || strcmp(subject, token->subject) != 0)
        return CONTROL_ANOTHER_SUBJECT;
    if (stream->own.rules && opened_streams_and_rules(stream) > token->limits.rules)
        return CONTROL_NARROWER_LIMITS;
    LIST_EACH(&stream->channels, node)
    {
        if (result == CONTROL_DONE)
            result = check_channel(LIST_OWNER(node, struct channel, node), token);
    }
    return result;
}

enum control_result stream_renew(struct stream *stream, const struct token *token)
{
    enum control_result result = check(stream, token);

    if (result != CONTROL_DONE)
        return result;
    LIST_EACH(&stream->channels, node)
    LIST_OWNER(node, struct channel, node)->request.token = *token;
    stream->was_warned = false;
    stream_audit_renewed(stream);
    stream_arm(stream);
    return CONTROL_DONE;
}

int renewal_refuse(enum control_result result, struct http_refusal *refusal)
{
    static const struct {
        int status;
        const char *code, *message;
    } rows[CONTROL_RESULT_COUNT] = {
        [CONTROL_NO_SUCH_CONNECTION] = {404, "no_such_connection",
                                        "there is no such connection, or it is not yours"},
        [CONTROL_ANOTHER_SUBJECT] = {403, "another_subject",
                                     "the new token has another subject (sub) than the old one; "
                                     "the old one goes on"},
        [CONTROL_NARROWER_SCOPE] = {403, "narrower_scope",
                                    "the new token's scope does not cover everything on this "
                                    "connection; the old one stays in use"},
        [CONTROL_NARROWER_LIMITS] = {403, "narrower_limits",
                                     "the filters of this connection exceed the new token's "
                                     "limits (lim); the old one stays in use"},
        [CONTROL_TOKEN_REVOKED] = {401, "token_revoked", "the token was revoked"},
    };

    return http_refuse(refusal, rows[result].status, rows[result].code, NULL, "%s",
                       rows[result].message);
}

/* --- messages --- */

/* Bad tokens are counted like those of requests. */
static int check_token(const struct stream *stream, struct sl_slice jwt, struct token *ret_token,
                       struct http_refusal *refusal, enum token_fault *ret_fault)
{
    const struct streams *streams = stream->streams;
    struct buffer headers = BUFFER_INIT; /* not used, because a message has no headers */
    struct use_check check = stream_use_check_of_message(stream, &headers);
    const struct http_request asked = {.use = check.uses ? &check : NULL};
    int r = bearer_check_token(streams->settings.front->policy, &asked, jwt, clock_wall_ms(),
                               ret_token, refusal, ret_fault);

    buffer_done(&headers);
    stream_use_count_refused(streams, &check);
    stream_count_bad_token(streams, *ret_fault);
    return r;
}

int stream_renew_by(struct stream *stream, struct sl_slice jwt, struct http_refusal *refusal)
{
    enum token_fault fault = TOKEN_OK;
    enum control_result result;
    struct token token;
    int r = check_token(stream, jwt, &token, refusal, &fault);

    if (r == 0) {
        result = stream_renew(stream, &token);
        r = result == CONTROL_DONE ? 0 : renewal_refuse(result, refusal);
    }
    if (r == -EPROTO)
        stream_audit_token_refused(stream, fault, refusal);
    return r;
}
