/* mastodon.c - Mastodon's streaming API: its paths, its parameters over Server-Sent Events, its
 * refusals, and the requests by which its clients find out whom they talk to. Its WebSocket is in
 * mastodon_socket.c.
 *
 * The path decides, not Accept. Direct messages and lists are none that a stream of ours brings. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "gateway/dialects/dialects.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/mastodon_form.h"
#include "gateway/dialects/mastodon_socket.h"
#include "gateway/front/bearer.h"
#include "gateway/http/form.h"

enum { KEEPALIVE_MS = 15000 };

#define MASTODON_VERSION "4.2.0 (compatible; Sluice " SLUICE_VERSION ")"

enum parameter { PARAMETER_ACCESS_TOKEN, PARAMETER_ONLY_MEDIA, PARAMETER_TAG, PARAMETERS };

static const char *const names[PARAMETERS] = {"access_token", "only_media", "tag"};

/* --- streams --------------------------------------------------------------------------------- */

static int ask_tag(struct dialect_stream *asked, struct sl_slice tag, struct http_refusal *refusal)
{
    int size;

    if (mastodon_check_tag(tag, refusal) < 0)
        return -EPROTO;
    if (sl_slice_starts_with(tag, SL_SLICE("#")))
        tag = sl_slice_from(tag, 1);
    size = snprintf(asked->room, sizeof(asked->room), "#%.*s", SL_SLICE_ARG(tag));
    dialect_ask(asked, "track", sl_slice(asked->room, (size_t)size));
    return 0;
}

static int read_stream(const struct dialect_request *request, enum stream_kind stream,
                       struct dialect_stream *asked, struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    struct sl_slice since = http_trim(request->http->last_event_id);
    int r = dialect_read_form(request, &form, refusal);

    *asked = (struct dialect_stream){
        .stream = stream, .format = FORMAT_SSE, .is_uncompressed = true, .memory = form.memory};
    dialect_ask(asked, "access_token", values[PARAMETER_ACCESS_TOKEN]);
    if (since.size > 0)
        dialect_ask(asked, "since", since);
    if (r == 0 && sl_slice_is(values[PARAMETER_ONLY_MEDIA], "true"))
        r = http_refuse(refusal, 400, "bad_only_media", "only_media",
                        "streams of media only are not served");
    return r == 0 && stream == STREAM_FILTER ? ask_tag(asked, values[PARAMETER_TAG], refusal) : r;
}

static int read_public(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    return read_stream(request, STREAM_FIREHOSE, ret_asked, refusal);
}

static int read_hashtag(const struct dialect_request *request, struct dialect_stream *ret_asked,
                        struct http_refusal *refusal)
{
    return read_stream(request, STREAM_FILTER, ret_asked, refusal);
}

static int read_user(const struct dialect_request *request, struct dialect_stream *ret_asked,
                     struct http_refusal *refusal)
{
    return read_stream(request, STREAM_HOME, ret_asked, refusal);
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

/* As the client has written the server's name. */
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

/* Of the user no more is known than the token says. */
static int answer_credentials(const struct dialect_request *request, struct buffer *ret_body,
                              struct http_answer *ret_answer, struct http_refusal *refusal)
{
    struct token token;
    int r = bearer_check(request->front->policy, request->http, SL_SLICE_NONE,
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
    (void)http;
    ret_answer->content_type = "application/json; charset=utf-8";
    buffer_append_str(ret_body, "{\"error\":");
    buffer_append_json_string(ret_body, sl_slice_str(refusal->message));
    buffer_append_char(ret_body, '}');
}

/* --- the table ------------------------------------------------------------------------------- */

#define GET .methods = DIALECT_GET, .allow = "GET, OPTIONS"

static const struct dialect_route routes[] = {
    {.path = "/api/v1/streaming", GET, .open = mastodon_open},
    {.path = "/api/v1/streaming/", GET, .open = mastodon_open},
    {.path = "/api/v1/streaming/user", GET, .read = read_user},
    {.path = "/api/v1/streaming/public", GET, .read = read_public},
    {.path = "/api/v1/streaming/public/local", GET, .read = read_public},
    {.path = "/api/v1/streaming/hashtag", GET, .read = read_hashtag},
    {.path = "/api/v1/streaming/hashtag/local", GET, .read = read_hashtag},
    {.path = "/api/v1/streaming/health", GET, .answer = answer_health},
    {.path = "/api/v1/instance", GET, .answer = answer_instance1},
    {.path = "/api/v1/instance/", GET, .answer = answer_instance1},
    {.path = "/api/v2/instance", GET, .answer = answer_instance2},
    {.path = "/.well-known/nodeinfo", GET, .answer = answer_nodeinfo_links},
    {.path = "/nodeinfo/2.0", GET, .answer = answer_nodeinfo},
    {.path = "/api/v1/accounts/verify_credentials", GET, .answer = answer_credentials},
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
    .complain = mastodon_complain,
    .complains_of_first = true,
    .echoes_protocol = true,
    .close_of = mastodon_close_of,
    .refuse = refuse,
};
