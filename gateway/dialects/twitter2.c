/* twitter2.c - X's API, version 2: its paths and parameters.
 *
 * The credential is a Bearer token; whoever has none learns nothing about parameters. A parameter
 * or value that is not known is refused, as there. */
#include "gateway/dialects/dialects.h"
#include "gateway/dialects/twitter2_connections.h"
#include "gateway/dialects/twitter2_form.h"
#include "gateway/dialects/twitter2_parameters.h"
#include "gateway/dialects/twitter2_problem.h"
#include "gateway/dialects/twitter2_rules.h"

/* Clients give up after 20 s of silence. */
enum { KEEPALIVE_MS = 10000 };

/* --- streams of many posts ------------------------------------------------------------------- */

#define FIREHOSE "/2/tweets/firehose/stream"

static const struct twitter2_stream volumes[] = {
    {"/2/tweets/sample/stream", STREAM_SAMPLE, NULL, NULL, 0, false},
    {"/2/tweets/sample10/stream", STREAM_SAMPLE, "10", NULL, 2, true},
    {FIREHOSE, STREAM_FIREHOSE, NULL, NULL, 20, true},
    {FIREHOSE "/lang/en", STREAM_FIREHOSE, NULL, "en", 8, true},
    {FIREHOSE "/lang/ja", STREAM_FIREHOSE, NULL, "ja", 2, true},
    {FIREHOSE "/lang/ko", STREAM_FIREHOSE, NULL, "ko", 2, true},
    {FIREHOSE "/lang/pt", STREAM_FIREHOSE, NULL, "pt", 2, true},
};

static int read_volume(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    const struct twitter2_stream *volume = volumes;

    while (!sl_slice_is(request->http->path, volume->path)) /* one of them, by the table below */
        volume++;
    return twitter2_read_stream(request, volume, ret_asked, refusal);
}

/* --- the filtered stream --------------------------------------------------------------------- */

static int read_search(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    static const struct twitter2_stream search = {
        "/2/tweets/search/stream", STREAM_MANY, NULL, NULL, 0, true};
    int r = twitter2_read_stream(request, &search, ret_asked, refusal);

    ret_asked->has_kept_rules = true;
    ret_asked->is_uncompressed = true;
    return r;
}

static int answer_nothing(const struct dialect_request *request, struct buffer *ret_body,
                          struct http_answer *ret_answer, struct http_refusal *refusal)
{
    (void)ret_body;
    (void)ret_answer;
    return http_refuse(refusal, 404, "not_found", NULL, "there is nothing at %.*s",
                       request->http->path.size < 200 ? (int)request->http->path.size : 200,
                       request->http->path.data);
}

/* --- the table ------------------------------------------------------------------------------- */

#define GET .methods = DIALECT_GET, .allow = "GET, OPTIONS"

static const struct dialect_route routes[] = {
    {.path = "/2/tweets/sample/stream", GET, .read = read_volume},
    {.path = "/2/tweets/sample10/stream", GET, .read = read_volume},
    {.path = FIREHOSE, GET, .read = read_volume},
    {.path = FIREHOSE "/lang/en", GET, .read = read_volume},
    {.path = FIREHOSE "/lang/ja", GET, .read = read_volume},
    {.path = FIREHOSE "/lang/ko", GET, .read = read_volume},
    {.path = FIREHOSE "/lang/pt", GET, .read = read_volume},
    {.path = "/2/tweets/search/stream", GET, .read = read_search},
    {.path = "/2/tweets/search/stream/rules",
     .methods = DIALECT_GET | DIALECT_POST,
     .allow = "GET, POST, OPTIONS",
     .rules = &twitter2_rules},
    {.path = "/2/tweets/search/stream/rules/counts", GET, .rules = &twitter2_rule_counts},
    {.path = TWITTER2_CONNECTIONS,
     .methods = DIALECT_GET | DIALECT_DELETE,
     .allow = "GET, DELETE, OPTIONS",
     .connections = &twitter2_connections},
    {.path = TWITTER2_CONNECTIONS "/*",
     .methods = DIALECT_DELETE,
     .allow = "DELETE, OPTIONS",
     .connections = &twitter2_connections},
    /* What is not above. */
    {.path = "/2/*",
     .methods = DIALECT_GET | DIALECT_POST | DIALECT_PUT | DIALECT_DELETE,
     .allow = "GET, POST, PUT, DELETE, OPTIONS",
     .answer = answer_nothing},
};

const struct dialect twitter2 = {
    .id = DIALECT_TWITTER2,
    .routes = routes,
    .route_count = sizeof(routes) / sizeof(routes[0]),
    .content_type = "application/json; charset=utf-8",
    .max_keepalive_ms = KEEPALIVE_MS,
    .tells_rate_limits = true,
    .render = twitter2_render,
    .check_rules = twitter2_check_rules,
    .read_rule = twitter2_read_rule,
    .refuse = twitter2_refuse,
};
