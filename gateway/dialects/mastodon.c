/* mastodon.c - Mastodon's streaming API: paths, parameters of Server-Sent Events, refusals, and the
 * requests with which clients identify a server. For its WebSocket see mastodon_socket.c.
 *
 * The path decides on the stream; the Accept header is ignored. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "gateway/dialects/dialects.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/mastodon_form.h"
#include "gateway/dialects/mastodon_socket.h"
#include "gateway/dialects/mastodon_streams.h"
#include "gateway/front/bearer.h"
#include "gateway/http/form.h"

enum { KEEPALIVE_MS = 15000 };

#define MASTODON_VERSION "4.2.0 (compatible; Sluice " SLUICE_VERSION ")"

enum parameter {
    PARAMETER_ACCESS_TOKEN,
    PARAMETER_LIST,
    PARAMETER_ONLY_MEDIA,
    PARAMETER_TAG,
    PARAMETERS
};

static const char *const names[PARAMETERS] = {"access_token", "list", "only_media", "tag"};

/* --- streams --------------------------------------------------------------------------------- */

#define STREAMING "/api/v1/streaming/"

enum { NAME_SIZE = 32 }; /* longer than all names */

/* As in Mastodon, everything that does not mean no means yes. */
static bool is_wanted(struct sl_slice text)
{
    static const char *const noes[] = {"0", "f", "F", "false", "FALSE", "off", "OFF"};

    for (size_t i = 0; i < sizeof(noes) / sizeof(noes[0]); i++) {
        if (sl_slice_is(text, noes[i]))
            return false;
    }
    return text.size > 0;
}

/* The name of the stream from its path: `public/local` with `only_media` is public:local:media. */
static struct sl_slice name_of(struct sl_slice path, struct sl_slice only_media,
                               char room[static NAME_SIZE])
{
    struct sl_slice name = sl_slice_from(path, sizeof(STREAMING) - 1);
    bool is_of_media = sl_slice_starts_with(name, SL_SLICE("public")) && is_wanted(only_media);

    snprintf(room, NAME_SIZE, "%.*s%s", SL_SLICE_ARG(name), is_of_media ? ":media" : "");
    for (char *c = room; *c; c++) {
        if (*c == '/')
            *c = ':';
    }
    return sl_slice_str(room);
}

static int read_stream(const struct dialect_request *request, struct dialect_stream *asked,
                       struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    struct sl_slice since = http_trim(request->http->last_event_id);
    int r = dialect_read_form(request, &form, refusal);
    struct mastodon_selection selection = {.tag = values[PARAMETER_TAG],
                                           .list = values[PARAMETER_LIST]};
    char name[NAME_SIZE];

    *asked = (struct dialect_stream){
        .format = FORMAT_SSE, .is_uncompressed = true, .memory = form.memory};
    dialect_ask(asked, "access_token", values[PARAMETER_ACCESS_TOKEN]);
    if (since.size > 0)
        dialect_ask(asked, "since", since);
    selection.name = name_of(request->http->path, values[PARAMETER_ONLY_MEDIA], name);
    return r < 0 ? r : mastodon_ask(&selection, asked, asked->room, refusal);
}

/* --- discovery ------------------------------------------------------------------------------- */

static int answer_json(json_t *json, struct buffer *body)
{
    int r = json ? event_json_append(json, 0, body) : -ENOMEM;

    json_decref(json);
    return r;
}

static int answer_health(const struct dialect_request *request, struct buffer *ret_body,
                         struct http_answer *ret_answer, struct http_refusal *refusal)
{
    (void)request;
    (void)refusal;
    ret_answer->content_type = "text/plain; charset=utf-8";
    buffer_append_str(ret_body, "OK");
    return 0;
}

/* With the server's name as the client has written it. */
static json_t *streaming_url(const struct dialect_request *request)
{
    return json_sprintf("%s://%.*s", request->is_secure ? "wss" : "ws",
                        SL_SLICE_ARG(request->http->host));
}

static int answer_instance1(const struct dialect_request *request, struct buffer *ret_body,
                            struct http_answer *ret_answer, struct http_refusal *refusal)
{
    struct sl_slice host = request->http->host;

    (void)ret_answer;
    (void)refusal;
    return answer_json(
        json_pack("{s:s#,s:s,s:s,s:s,s:s,s:s,s:{s:o},s:{s:i,s:i,s:i},s:[s],s:b,s:b,s:b,s:n,s:[]}",
                  "uri", host.data ? host.data : "", (int)host.size, "title", "Sluice",
                  "short_description", "", "description", "", "email", "", "version",
                  MASTODON_VERSION, "urls", "streaming_api", streaming_url(request), "stats",
                  "user_count", 0, "status_count", 0, "domain_count", 0, "languages", "en",
                  "registrations", 0, "approval_required", 0, "invites_enabled", 0,
                  "contact_account", "rules"),
        ret_body);
}

static int answer_instance2(const struct dialect_request *request, struct buffer *ret_body,
                            struct http_answer *ret_answer, struct http_refusal *refusal)
{
    struct sl_slice host = request->http->host;

    (void)ret_answer;
    (void)refusal;
    return answer_json(json_pack("{s:s#,s:s,s:s,s:s,s:[s],s:{s:{s:o}},s:{s:b},s:[]}", "domain",
                                 host.data ? host.data : "", (int)host.size, "title", "Sluice",
                                 "version", MASTODON_VERSION, "description", "", "languages", "en",
                                 "configuration", "urls", "streaming", streaming_url(request),
                                 "registrations", "enabled", 0, "rules"),
                       ret_body);
}

static int answer_nodeinfo_links(const struct dialect_request *request, struct buffer *ret_body,
                                 struct http_answer *ret_answer, struct http_refusal *refusal)
{
    (void)ret_answer;
    (void)refusal;
    return answer_json(
        json_pack("{s:[{s:s,s:o}]}", "links", "rel",
                  "http://nodeinfo.diaspora.software/ns/schema/2.0", "href",
                  json_sprintf("%s://%.*s/nodeinfo/2.0", request->is_secure ? "https" : "http",
                               SL_SLICE_ARG(request->http->host))),
        ret_body);
}

static int answer_nodeinfo(const struct dialect_request *request, struct buffer *ret_body,
                           struct http_answer *ret_answer, struct http_refusal *refusal)
{
    (void)request;
    (void)ret_answer;
    (void)refusal;
    return answer_json(json_pack("{s:s,s:{s:s,s:s},s:[s],s:{s:[],s:[]},s:b,s:{s:{}},s:{}}",
                                 "version", "2.0", "software", "name", "mastodon", "version",
                                 MASTODON_VERSION, "protocols", "activitypub", "services",
                                 "inbound", "outbound", "openRegistrations", 0, "usage", "users",
                                 "metadata"),
                       ret_body);
}

/* Of the user only what the token contains is known. */
static int answer_credentials(const struct dialect_request *request, struct buffer *ret_body,
                              struct http_answer *ret_answer, struct http_refusal *refusal)
{
    struct token token;
    int r = bearer_check(request->front->policy, request->http, dialect_query_token(request->http),
                         request->times.now_ms, &token, refusal, request->fault);

    (void)ret_answer;
    if (r < 0)
        return r;
    return answer_json(mastodon_account(sl_slice_str(token.subject), SL_SLICE_NONE, SL_SLICE_NONE),
                       ret_body);
}

/* --- refusals -------------------------------------------------------------------------------- */

static void refuse(const struct http_request *http, const struct http_refusal *refusal,
                   struct buffer *ret_body, struct http_answer *ret_answer)
{
    struct mastodon_error error = mastodon_error_of(refusal);

    (void)http;
    ret_answer->status = error.status;
    ret_answer->content_type = "application/json; charset=utf-8";
    buffer_append_str(ret_body, "{\"error\":");
    buffer_append_json_string(ret_body, error.message);
    buffer_append_char(ret_body, '}');
}

/* --- the table ------------------------------------------------------------------------------- */

#define GET .methods = DIALECT_GET, .allow = "GET, OPTIONS"

static const struct dialect_route routes[] = {
    {.path = "/api/v1/streaming", GET, .open = mastodon_open},
    {.path = STREAMING, GET, .open = mastodon_open},
    {.path = STREAMING "health", GET, .answer = answer_health},
    {.path = STREAMING "*", GET, .read = read_stream},
    {.path = "/api/v1/instance", GET, .answer = answer_instance1},
    {.path = "/api/v1/instance/", GET, .answer = answer_instance1},
    {.path = "/api/v2/instance", GET, .answer = answer_instance2},
    {.path = "/api/v2/instance/", GET, .answer = answer_instance2},
    {.path = "/health", GET, .answer = answer_health},
    {.path = "/.well-known/nodeinfo", GET, .answer = answer_nodeinfo_links},
    {.path = "/nodeinfo/2.0", GET, .answer = answer_nodeinfo},
    {.path = "/api/v1/accounts/verify_credentials", GET, .answer = answer_credentials},
    {.path = "/api/v1/*", DIALECT_ANY_METHOD, .answer = dialect_answer_nothing},
    {.path = "/api/v2/*", DIALECT_ANY_METHOD, .answer = dialect_answer_nothing},
};

const struct dialect mastodon = {
    .id = DIALECT_MASTODON,
    .routes = routes,
    .route_count = sizeof(routes) / sizeof(routes[0]),
    .content_type = "text/event-stream",
    .max_keepalive_ms = KEEPALIVE_MS,
    .greeting = ":)\n",
    .keepalive = ":thump\n",
    .find_token = mastodon_find_token,
    .render = mastodon_render,
    .hear = mastodon_hear,
    .print_refusal = mastodon_print_refusal,
    .sends_first_refusal = true,
    .echoes_protocol = true,
    .close_of = mastodon_close_of,
    .refuse = refuse,
};
