/* twitter2.c - X's API, version 2: its paths and parameters.
 *
 * The credential is a Bearer token; whoever has none learns nothing about parameters. A parameter
 * or value that is not known is refused, as there. */
#include <errno.h>

#include "gateway/dialects/dialects.h"
#include "gateway/dialects/twitter2_form.h"
#include "gateway/dialects/twitter2_problem.h"
#include "gateway/front/bearer.h"
#include "gateway/http/form.h"

/* Clients give up after 20 s of silence. */
enum { KEEPALIVE_MS = 10000 };

enum parameter { PARAMETER_TWEET_FIELDS, PARAMETERS };

static const char *const names[PARAMETERS] = {"tweet.fields"};

/* --- parameters ------------------------------------------------------------------------------ */

/* *refusal is about a parameter: who may not come in is told that alone. */
static int refuse_known(const struct dialect_request *request, struct http_refusal *refusal)
{
    struct http_refusal unknown;
    enum token_fault ignored;
    struct token token;
    int r =
        bearer_check(request->front->policy, request->http, SL_SLICE_NONE, request->times.now_ms,
                     &token, &unknown, request->fault ? request->fault : &ignored);

    if (r == -EPROTO)
        *refusal = unknown;
    return r == -ENOMEM ? r : -EPROTO;
}

static int read_stream(const struct dialect_request *request, enum stream_kind stream,
                       struct dialect_stream *asked, struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    int r = form_read(&form, &request->http->query, 1, refusal);

    *asked =
        (struct dialect_stream){.stream = stream, .format = FORMAT_NDJSON, .memory = form.memory};
    dialect_ask(asked, "types", SL_SLICE("post"));
    return r == -EPROTO ? refuse_known(request, refusal) : r;
}

static int read_sample(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    return read_stream(request, STREAM_SAMPLE, ret_asked, refusal);
}

/* --- the table ------------------------------------------------------------------------------- */

#define GET .methods = DIALECT_GET, .allow = "GET, OPTIONS"

static const struct dialect_route routes[] = {
    {.path = "/2/tweets/sample/stream", GET, .read = read_sample},
};

const struct dialect twitter2 = {
    .id = DIALECT_TWITTER2,
    .routes = routes,
    .route_count = sizeof(routes) / sizeof(routes[0]),
    .content_type = "application/json; charset=utf-8",
    .max_keepalive_ms = KEEPALIVE_MS,
    .render = twitter2_render,
    .refuse = twitter2_refuse,
};
