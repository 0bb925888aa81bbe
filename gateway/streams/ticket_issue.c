/* ticket_issue.c - POST /v1/tickets: a token and the path of a stream -> a ticket for that stream.
 *
 * The path is checked like a request for the stream, so errors are reported to the program that
 * asks for the ticket, and not to an EventSource, which cannot read the response. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/pass_store.h"
#include "gateway/front/json_request.h"
#include "gateway/streams/stream.h"
#include "gateway/streams/ticket_wait.h"

struct ticket_issue {
    struct ticket_wait wait; /* must be the first member */
    char secret[STREAM_PASS_SECRET_SIZE];
    uint64_t ttl_ms;
};

static void answer(struct ticket_issue *issue)
{
    struct buffer json = BUFFER_INIT;
    struct http_refusal refusal;

    buffer_append_format(&json, "{\"ticket\":\"%s\",\"expires_in\":%" PRIu64 "}\n", issue->secret,
                         issue->ttl_ms / 1000);
    if (json.failed) {
        stream_refuse_for_memory(&refusal);
        ticket_wait_refuse(&issue->wait, &refusal);
    } else {
        http_answer(issue->wait.connection,
                    &(struct http_answer){.status = 200,
                                          .content_type = "application/json",
                                          .body = buffer_slice(&json)});
    }
    buffer_done(&json);
}

static void on_put(void *owner, int r, const struct stream_pass *pass, const char *why)
{
    struct ticket_issue *issue = owner;
    struct http_refusal refusal;

    (void)pass;
    (void)why;
    if (issue->wait.connection && r == 0) {
        answer(issue);
    } else {
        ticket_refuse_for_redis(&refusal, "Redis does not answer now, so no ticket can be made");
        ticket_wait_refuse(&issue->wait, &refusal);
    }
    ticket_wait_done(&issue->wait);
    mem_free(issue);
}

/* {"path":"..."}; the slice points into the JSON. */
static int read_path(const json_t *json, struct sl_slice *ret_path, struct http_refusal *refusal)
{
    const json_t *path = json_object_get(json, "path");
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)json, name, value)
    {
        if (strcmp(name, "path") != 0)
            return http_refuse(refusal, 400, "unknown_member", name, "the only member is path");
    }
    if (!path)
        return http_refuse(refusal, 400, "missing_member", "path", "path is missing");
    if (!json_is_string(path))
        return http_refuse(refusal, 400, "bad_type", "path",
                           "a text, as in \"/v1/stream/filter?track=tea\"");
    *ret_path = sl_slice(json_string_value(path), json_string_length(path));
    return 0;
}

static int read_request(struct streams *streams, const struct http_request *http,
                        struct stream_pass *ret_pass, struct http_refusal *refusal,
                        enum token_fault *ret_fault)
{
    const struct front_settings *front = streams->settings.front;
    const struct stream_times times = stream_times_now(streams);
    json_t *json = NULL;
    struct sl_slice path;
    int r = json_request_token(front, http, times.now_ms, &ret_pass->token, refusal, ret_fault);

    if (r == 0)
        r = json_request_body(http, &json, refusal);
    if (r == 0)
        r = read_path(json, &path, refusal);
    if (r == 0)
        r = stream_request_check_path(front, &ret_pass->token, path, &times, &ret_pass->print,
                                      refusal);
    json_decref(json);
    return r;
}

/* No longer than the token; whole seconds, because the response contains seconds. */
static uint64_t ttl_of(const struct streams *streams, const struct token *token)
{
    uint64_t now = clock_wall_ms(), ttl = streams->settings.front->ticket_ms;

    if (token->expires_ms < now + ttl)
        ttl = token->expires_ms > now ? token->expires_ms - now : 0;
    return ttl < 1000 ? 1000 : ttl / 1000 * 1000;
}

static int put(struct streams *streams, struct http_connection *connection,
               const struct stream_pass *pass, streams_refused_fn refused,
               struct http_refusal *refusal)
{
    struct ticket_issue *issue = mem_zalloc(sizeof(*issue));
    int r;

    if (!issue)
        return -ENOMEM;
    issue->ttl_ms = ttl_of(streams, &pass->token);
    ticket_wait_init(&issue->wait, streams, connection, refused);
    r = stream_pass_secret(issue->secret);
    if (r == 0)
        r = pass_store_put(streams->settings.passes, SL_PASS_TICKET, sl_slice_str(issue->secret),
                           pass, issue->ttl_ms, on_put, issue);
    if (r == 0) {
        ticket_wait_begin(&issue->wait);
        return 0;
    }
    ticket_wait_done(&issue->wait);
    mem_free(issue);
    return r == -ENOMEM ? r : ticket_refuse_for_redis(refusal, "no ticket can be made now");
}

int streams_make_ticket(struct streams *streams, struct http_connection *connection,
                        const struct http_head *head, streams_refused_fn refused,
                        struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct stream_pass pass;
    int r;

    *ret_fault = TOKEN_OK;
    r = read_request(streams, &head->request, &pass, refusal, ret_fault);
    if (r == 0)
        r = streams_check_readiness(streams, refusal);
    if (r == 0)
        r = ticket_wait_check_room(streams, refusal);
    if (r == 0)
        r = put(streams, connection, &pass, refused, refusal);
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}
