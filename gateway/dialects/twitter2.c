/* twitter2.c - X's API, version 2: its paths and parameters.
 *
 * The credential is a Bearer token; without a valid one, nothing is reported about the parameters.
 * As in X's API, unknown parameters and values are refused. */
#include "gateway/dialects/dialects.h"
#include "gateway/dialects/twitter2_connections.h"
#include "gateway/dialects/twitter2_form.h"
#include "gateway/dialects/twitter2_parameters.h"
#include "gateway/dialects/twitter2_problem.h"
#include "gateway/dialects/twitter2_rules.h"

/* Clients give up after 20 s without data. */
enum { KEEPALIVE_MS = 10000 };

/* --- volume streams -------------------------------------------------------------------------- */

#define FIREHOSE   "/2/tweets/firehose/stream"
#define COMPLIANCE "/2/tweets/compliance/stream"

#define TIMES .takes_times = true

static const struct twitter2_stream volumes[] = {
    {.path = "/2/tweets/sample/stream", .stream = STREAM_SAMPLE},
    {.path = "/2/tweets/sample10/stream",
     .stream = STREAM_SAMPLE,
     .percent = "10",
     .partitions = 2,
     TIMES},
    {.path = FIREHOSE, .stream = STREAM_FIREHOSE, .partitions = 20, TIMES},
    {.path = FIREHOSE "/lang/en",
     .stream = STREAM_FIREHOSE,
     .language = "en",
     .partitions = 8,
     TIMES},
    {.path = FIREHOSE "/lang/ja",
     .stream = STREAM_FIREHOSE,
     .language = "ja",
     .partitions = 2,
     TIMES},
    {.path = FIREHOSE "/lang/ko",
     .stream = STREAM_FIREHOSE,
     .language = "ko",
     .partitions = 2,
     TIMES},
    {.path = FIREHOSE "/lang/pt",
     .stream = STREAM_FIREHOSE,
     .language = "pt",
     .partitions = 2,
     TIMES},
    {.path = COMPLIANCE, .stream = STREAM_FIREHOSE, .is_compliance = true, .partitions = 4, TIMES},
};

static int read_volume(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    const struct twitter2_stream *volume = volumes;

    while (!sl_slice_is(request->http->path, volume->path)) /* one of them matches */
        volume++;
    return twitter2_read_stream(request, volume, ret_asked, refusal);
}

/* --- the filtered stream --------------------------------------------------------------------- */

static int read_search(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    static const struct twitter2_stream search = {
        .path = "/2/tweets/search/stream", .stream = STREAM_MANY, TIMES};
    int r = twitter2_read_stream(request, &search, ret_asked, refusal);

    ret_asked->has_kept_rules = true;
    ret_asked->is_uncompressed = true;
    return r;
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
    {.path = COMPLIANCE, GET, .read = read_volume},
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
    {.path = "/2/*", DIALECT_ANY_METHOD, .answer = dialect_answer_nothing},
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
    .disconnect = twitter2_disconnect,
    .refuse = twitter2_refuse,
};
