/* rule_request.c - a request, in a dialect, about the kept rules of a token's subject.
 *
 *     parse the request -> read the rules from Redis -> decide -> change -> notify all -> answer
 *                                   ^                               |          |    ^
 *                                   '------ changed meanwhile ------'          '----'
 *                                                                     some have older rules
 *
 * It is answered when all streams of all reachable gateways have the new rules, so that later posts
 * are matched by them; or after TELL_MS, and then the remaining streams find out themselves
 * (kept_reading.c).
 *
 * If two requests change the rules at the same time, the second one reads them again and decides
 * again, so no change is lost. Limits: a subject may have SUBJECT_REQUESTS_MAX requests in progress
 * on a worker, all together REQUESTS_MAX; and the time limit of commands. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/control_channel.h"
#include "gateway/access/rule_store.h"
#include "gateway/front/bearer.h"
#include "gateway/front/dialect.h"
#include "gateway/streams/kept_rules.h"
#include "gateway/streams/ticket_wait.h"

enum {
    SUBJECT_REQUESTS_MAX = 8,
    REQUESTS_MAX = 256,
    TRIES_MAX = 32,
    TELL_MS = 2000,
    TELL_AGAIN_MS = 10, /* the first time; doubled each time */
    TELL_AGAIN_MOST_MS = 160
};

struct rule_request {
    struct streams *streams;
    struct http_connection *connection; /* NULL: it has been closed */
    struct list_node node;              /* in streams->rule_requests */
    const struct dialect *dialect;
    const struct dialect_rules *rules;
    streams_refused_in_fn refused;
    char holder[TOKEN_SUBJECT_SIZE];
    unsigned tries;
    void *asked;
    uint64_t version; /* version of the changed rules */
    uint64_t tell_until_ms, tell_again_ms;
    uv_timer_t timer; /* for notifying again */
};

static void release(uv_handle_t *timer)
{
    mem_free(timer->data);
}

static void request_free(struct rule_request *request)
{
    request->rules->done(request->asked);
    mem_free(request->asked);
    list_remove(&request->streams->rule_requests, &request->node);
    uv_close((uv_handle_t *)&request->timer, release);
}

static void refuse(struct rule_request *request, const struct http_refusal *refusal)
{
    if (request->connection)
        request->refused(request->connection, request->dialect, refusal);
    request_free(request);
}

static void refuse_for(struct rule_request *request, int r)
{
    struct http_refusal refusal;

    if (r == -ENOMEM)
        stream_refuse_for_memory(&refusal);
    else
        ticket_refuse_for_redis(&refusal, "Redis does not answer now");
    refuse(request, &refusal);
}

static void answer(struct rule_request *request, uint64_t version)
{
    struct http_answer http = {.status = 200, .content_type = "application/json; charset=utf-8"};
    struct buffer body = BUFFER_INIT;

    if (!request->connection) {
        request_free(request);
        return;
    }
    if (request->rules->answer(request->asked, version, &body, &http) < 0 || body.failed) {
        refuse_for(request, -ENOMEM);
    } else {
        http.body = buffer_slice(&body);
        http_answer(request->connection, &http);
        request_free(request);
    }
    buffer_done(&body);
}

/* --- notifying --- */

static void tell(struct rule_request *request);

static void on_tell_again(uv_timer_t *timer)
{
    struct rule_request *request = timer->data;

    if (request->connection)
        tell(request);
    else
        request_free(request);
}

static void on_told(void *owner, const struct control_answer *told, bool is_complete)
{
    struct rule_request *request = owner;

    /* A worker that does not answer would not answer the next time. */
    if (is_complete && told->matched > 0 &&
        uv_now(request->streams->settings.loop) < request->tell_until_ms) {
        uv_timer_start(&request->timer, on_tell_again, request->tell_again_ms, 0);
        if (request->tell_again_ms < TELL_AGAIN_MOST_MS)
            request->tell_again_ms *= 2;
    } else {
        answer(request, request->version);
    }
}

static void tell(struct rule_request *request)
{
    struct streams *streams = request->streams;
    struct control_question question = {.operation = CONTROL_RULES, .version = request->version};
    struct control_wait *ignored;

    memcpy(question.holder, request->holder, sizeof(request->holder));
    if (control_channel_ask(streams->settings.control, &question, on_told, request, &ignored) == 0)
        return;
    kept_rules_notify(streams, request->holder, request->version);
    answer(request, request->version);
}

/* --- processing --- */

static void read_rules(struct rule_request *request);

static void on_changed(void *owner, int r, uint64_t version, const char *why)
{
    struct rule_request *request = owner;

    (void)why;
    request->version = version;
    if (r == 0)
        tell(request);
    else if (r == -ESTALE && ++request->tries < TRIES_MAX)
        read_rules(request);
    else
        refuse_for(request, r);
}

static void on_rules(void *owner, int r, struct subject_rules *rules, const char *why)
{
    struct rule_request *request = owner;
    struct rules_change change = {.removed_count = 0};

    (void)why;
    if (!request->connection) {
        request_free(request);
        return;
    }
    if (r == 0)
        r = request->rules->decide(request->asked, rules, &change);
    if (r == 0 && change.removed_count == 0 && change.added_count == 0) {
        answer(request, rules->version);
        return;
    }
    if (r == 0)
        r = rule_store_change(request->streams->settings.rules, sl_slice_str(request->holder),
                              rules->version, &change, on_changed, request);
    if (r < 0)
        refuse_for(request, r);
}

static void read_rules(struct rule_request *request)
{
    int r = rule_store_get(request->streams->settings.rules, sl_slice_str(request->holder),
                           on_rules, request);

    if (r < 0)
        refuse_for(request, r);
}

static void on_abandoned(void *owner)
{
    ((struct rule_request *)owner)->connection = NULL;
}

static int check_room(const struct streams *streams, const char *holder,
                      struct http_refusal *refusal)
{
    unsigned own = 0;

    LIST_EACH(&streams->rule_requests, node)
    own += strcmp(LIST_OWNER(node, struct rule_request, node)->holder, holder) == 0;
    if (own < SUBJECT_REQUESTS_MAX && streams->rule_requests.count < REQUESTS_MAX)
        return 0;
    http_refuse(refusal, own < SUBJECT_REQUESTS_MAX ? 503 : 429, "busy", NULL,
                "too many requests about rules are in progress");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

static int check_token(struct streams *streams, const struct http_request *http,
                       struct token *ret_token, struct http_refusal *refusal,
                       enum token_fault *ret_fault)
{
    int r = bearer_check(streams->settings.front->policy, http, SL_SLICE_NONE, clock_wall_ms(),
                         ret_token, refusal, ret_fault);

    if (r == 0 && !(ret_token->scopes & TOKEN_SCOPE_FILTER)) {
        r = http_refuse(refusal, 403, "insufficient_scope", NULL,
                        "the token's scope does not cover rules of streams");
        refusal->www_authenticate = "Bearer error=\"insufficient_scope\", scope=\"stream:filter\"";
    }
    return r;
}

/* NULL: out of memory. */
static struct rule_request *request_new(struct streams *streams, const struct dialect_rules *rules,
                                        const struct token *token)
{
    struct rule_request *request = mem_zalloc(sizeof(*request));
    void *asked = mem_zalloc(rules->asked_size);

    if (!request || !asked) {
        mem_free(request);
        mem_free(asked);
        return NULL;
    }
    request->streams = streams;
    request->rules = rules;
    request->asked = asked;
    request->tell_until_ms = uv_now(streams->settings.loop) + TELL_MS;
    request->tell_again_ms = TELL_AGAIN_MS;
    uv_timer_init(streams->settings.loop, &request->timer);
    request->timer.data = request;
    memcpy(request->holder, token->holder, sizeof(request->holder));
    list_append(&streams->rule_requests, &request->node);
    return request;
}

static int begin(struct streams *streams, struct http_connection *connection,
                 const struct dialect *dialect, const struct dialect_rules *rules,
                 const struct dialect_request *asking, const struct token *token,
                 streams_refused_in_fn refused, struct http_refusal *refusal)
{
    struct rule_request *request = request_new(streams, rules, token);
    int r = request ? rules->read(asking, token, request->asked, refusal) : -ENOMEM;

    if (r < 0) {
        if (request)
            request_free(request);
        return r;
    }
    request->dialect = dialect;
    request->refused = refused;
    request->connection = connection;
    http_answer_later(connection, on_abandoned, request);
    read_rules(request);
    return 0;
}

int streams_rules(struct streams *streams, struct http_connection *connection,
                  const struct dialect *dialect, const struct dialect_route *route,
                  const struct http_head *head, streams_refused_in_fn refused,
                  struct http_refusal *refusal, enum token_fault *ret_fault)
{
    const struct dialect_request asking = {.http = &head->request,
                                           .front = streams->settings.front,
                                           .times = stream_times_now(streams)};
    struct token token;
    int r;

    *ret_fault = TOKEN_OK;
    r = check_token(streams, &head->request, &token, refusal, ret_fault);
    if (r == 0)
        r = streams_check_readiness(streams, refusal);
    if (r == 0)
        r = check_room(streams, token.holder, refusal);
    if (r == 0)
        r = begin(streams, connection, dialect, route->rules, &asking, &token, refused, refusal);
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}
