/* stream_request.c - a table of the parameters of each stream, and the order of the checks.
 *
 * The order is that of the header, so that a client without a token learns nothing.
 * stream_parameters.c reads the parameters; everything that does not depend on the way in which a
 * stream is requested is here. */
#include "gateway/front/stream_request.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/front/bearer.h"
#include "gateway/front/stream_parameters.h"
#include "gateway/front/stream_wire.h"
#include "gateway/http/form.h"

/* --- the streams -------------------------------------------------------------------------- */

#define BIT(parameter) PARAMETER_BIT(parameter)

enum {
    COMMON = BIT(ACCESS_TOKEN) | BIT(CURSORS) | BIT(DELIMITED) | BIT(FIELDS) | BIT(GATHER_MS) |
             BIT(HELLO) | BIT(LAST) | BIT(SINCE) | BIT(UNTIL),
    PACE = BIT(CELL_DEGREES) | BIT(LATEST_BY) | BIT(MAX) | BIT(MAX_RATE) | BIT(PICK),
    EVENTS = COMMON | PACE | BIT(ON_SLOW),
    PUBLIC = EVENTS | BIT(ZSTD_DICTIONARY), /* may be compressed */
    RESTRICTORS = PARAMETER_RESTRICTORS,
    OF_CONNECTIONS = BIT(ACCESS_TOKEN) | BIT(DELIMITED) | BIT(HELLO) | BIT(ZSTD_DICTIONARY),
    SELECTORS = PARAMETER_SELECTORS,
    COUNTS = RESTRICTORS | SELECTORS | BIT(BUCKET) | BIT(BY) | BIT(CELL_DEGREES),
    TRENDS = ((RESTRICTORS | SELECTORS) & ~BIT(TYPES)) | BIT(BUCKET) | BIT(LANG) | BIT(LIMIT) |
             BIT(OF) | BIT(WINDOW)
};

#define INSUFFICIENT "Bearer error=\"insufficient_scope\""

struct stream_row {
    const char *path;
    unsigned parameters;      /* BIT()s */
    enum token_scope scope;   /* 0: depends on each subscription */
    const char *insufficient; /* WWW-Authenticate if the scope is missing */
};

static const struct stream_row streams[] = {
    [STREAM_FILTER] = {"/v1/stream/filter", PUBLIC | RESTRICTORS | SELECTORS, TOKEN_SCOPE_FILTER,
                       INSUFFICIENT ", scope=\"stream:filter\""},
    [STREAM_SAMPLE] = {"/v1/stream/sample", PUBLIC | RESTRICTORS, TOKEN_SCOPE_SAMPLE,
                       INSUFFICIENT ", scope=\"stream:sample\""},
    [STREAM_FIREHOSE] = {"/v1/stream/firehose", PUBLIC | RESTRICTORS, TOKEN_SCOPE_FIREHOSE,
                         INSUFFICIENT ", scope=\"stream:firehose\""},
    [STREAM_HOME] = {"/v1/stream/home", EVENTS | BIT(TYPES), TOKEN_SCOPE_HOME,
                     INSUFFICIENT ", scope=\"stream:home\""},
    [STREAM_COUNTS] = {"/v1/stream/counts",
                       (COMMON & ~(BIT(FIELDS) | BIT(LAST))) | COUNTS | BIT(REFRESH_MS), 0, NULL},
    [STREAM_TRENDS] = {"/v1/stream/trends", (COMMON & ~(BIT(FIELDS) | BIT(LAST))) | TRENDS, 0,
                       NULL},
    [STREAM_PAST_COUNTS] = {"/v1/counts", COUNTS | BIT(ACCESS_TOKEN) | BIT(SINCE) | BIT(UNTIL), 0,
                            NULL},
    [STREAM_MANY] = {"/v1/stream", PUBLIC, 0, NULL},
};

bool stream_path(struct sl_slice path, enum stream_kind *ret_stream)
{
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        if (sl_slice_is(path, streams[i].path)) {
            *ret_stream = (enum stream_kind)i;
            return true;
        }
    }
    return false;
}

const char *stream_path_of(enum stream_kind stream)
{
    return stream < sizeof(streams) / sizeof(streams[0]) ? streams[stream].path : NULL;
}

/* --- scope --------------------------------------------------------------------------------- */

static bool is_deletions_only(unsigned types)
{
    return types == 1u << SL_EVENT_DELETE;
}

int stream_filter_permitted(const struct token *token, const struct sl_filter *filter,
                            struct http_refusal *refusal)
{
    unsigned kinds = sl_filter_kinds(filter);
    bool is_selective = !(kinds & SL_FILTER_FIREHOSE) && (kinds & SL_FILTER_SELECTIVE);
    bool is_permitted;
    int r;

    if (is_selective)
        is_permitted = token->scopes & TOKEN_SCOPE_FILTER;
    else if (!(kinds & SL_FILTER_FIREHOSE))
        is_permitted = (token->scopes & TOKEN_SCOPE_SAMPLE) &&
                       sl_filter_sample_ppm(filter) <= token->limits.sample_ppm;
    else if (is_deletions_only(sl_filter_types(filter)))
        is_permitted = token->scopes & (TOKEN_SCOPE_FIREHOSE | TOKEN_SCOPE_FILTER);
    else
        is_permitted = (token->scopes & TOKEN_SCOPE_FIREHOSE) &&
                       sl_filter_sample_ppm(filter) <= token->limits.sample_ppm;
    if (is_permitted)
        return 0;
    r = http_refuse(refusal, 403, "not_permitted", NULL, "this token does not permit it");
    refusal->www_authenticate = INSUFFICIENT;
    return r;
}

int stream_request_permitted(const struct stream_request *request, struct http_refusal *refusal)
{
    const struct stream_row *row = &streams[request->stream];
    unsigned enough = row->scope;
    int r;

    if (request->stream == STREAM_FIREHOSE && is_deletions_only(request->types))
        enough |= TOKEN_SCOPE_FILTER;
    if (enough && !(request->token.scopes & enough)) {
        r = http_refuse(refusal, 403, "insufficient_scope", NULL,
                        "the token's scope does not cover this stream");
        refusal->www_authenticate = row->insufficient;
        return r;
    }
    if (request->stream == STREAM_HOME && !request->token.subject[0]) {
        r = http_refuse(refusal, 403, "no_subject", NULL,
                        "the token has no sub, which a home stream needs");
        refusal->www_authenticate = row->insufficient;
        return r;
    }
    return request->filter ? stream_filter_permitted(&request->token, request->filter, refusal) : 0;
}

/* --- the whole request --------------------------------------------------------------------- */

/* Also checks the limits of the token. */
static int read_parameters(const struct front_settings *settings, const struct http_request *http,
                           const struct sl_slice *values, const struct stream_times *times,
                           struct stream_request *request, struct http_refusal *refusal)
{
    int r = stream_parameters_read(settings, http, values, times, request, refusal);

    return r < 0 ? r : stream_request_permitted(request, refusal);
}

/* Hashes everything but the token and the beginning. */
static int print_request(enum stream_kind stream, const struct sl_slice *values,
                         struct stream_print *ret_print)
{
    const unsigned left_out =
        BIT(ACCESS_TOKEN) | BIT(TICKET) | BIT(SINCE) | BIT(LAST); /* may differ */
    struct buffer text = BUFFER_INIT;
    int r;

    buffer_append_str(&text, streams[stream].path);
    for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
        if (!values[i].data || left_out & 1u << i)
            continue;
        buffer_append_format(&text, "\n%s %zu ", stream_parameter_names[i], values[i].size);
        buffer_append_slice(&text, values[i]);
    }
    r = text.failed ? -ENOMEM : stream_pass_hash(buffer_slice(&text), ret_print->text);
    buffer_done(&text);
    return r;
}

int stream_request_print(enum stream_kind stream, struct sl_slice query,
                         struct stream_print *ret_print)
{
    struct sl_slice values[PARAMETER_COUNT];
    struct form form = {stream_parameter_names, PARAMETER_COUNT, values, NULL};
    struct http_refusal ignored;
    int r = form_read(&form, &query, 1, &ignored);

    if (r == 0)
        r = print_request(stream, values, ret_print);
    form_done(&form);
    return r;
}

struct sl_slice stream_request_ticket(const struct http_request *http)
{
    const struct sl_slice begin = SL_SLICE("ticket=");
    struct sl_slice rest = http->method == HTTP_GET ? http->query : SL_SLICE_NONE;

    while (rest.size > 0) {
        const char *end = memchr(rest.data, '&', rest.size);
        struct sl_slice pair = sl_slice(rest.data, end ? (size_t)(end - rest.data) : rest.size);

        if (sl_slice_starts_with(pair, begin))
            return sl_slice_from(pair, begin.size);
        rest = sl_slice_from(rest, pair.size + (end ? 1 : 0));
    }
    return SL_SLICE_NONE;
}

int stream_request_refuse_ticket(struct http_refusal *refusal, const char *why)
{
    http_refuse(refusal, 401, "invalid_ticket", "ticket", "%s", why);
    refusal->www_authenticate = "Bearer error=\"invalid_token\"";
    return -EPROTO;
}

/* Checks the pass instead of a token. */
static int check_pass(const struct front_settings *settings, const struct stream_pass *pass,
                      const struct http_request *http, const struct sl_slice *values,
                      uint64_t now_ms, struct stream_request *request, struct http_refusal *refusal)
{
    struct stream_print print;
    enum token_fault fault;
    int r;

    if (bearer_is_there(http, values[PARAMETER_ACCESS_TOKEN]))
        return bearer_refuse_two(refusal);
    if (pass->token.expires_ms <= now_ms)
        return bearer_refuse(TOKEN_EXPIRED, &pass->token, refusal);
    if (token_is_revoked(settings->policy, &pass->token, now_ms))
        return bearer_refuse(TOKEN_REVOKED, &pass->token, refusal);
    fault = token_check_key(settings->policy, &pass->token);
    if (fault == TOKEN_NO_KEYS_YET)
        return bearer_refuse(fault, &pass->token, refusal);
    if (fault != TOKEN_OK)
        return stream_request_refuse_ticket(refusal, "the key of its token is not in use");
    r = print_request(request->stream, values, &print);
    if (r == 0 && strcmp(print.text, pass->print.text) != 0)
        r = stream_request_refuse_ticket(refusal, "the ticket is for another path or filter");
    request->token = pass->token;
    return r;
}

/* `pass` NULL: the request contains the token. */
static int understand(const struct front_settings *settings, const struct http_request *http,
                      const struct stream_times *times, const struct stream_pass *pass,
                      struct form *form, struct stream_request *request,
                      struct http_refusal *refusal, enum token_fault *ret_fault)
{
    const struct sl_slice texts[] = {http->query, http->body};
    unsigned known = streams[request->stream].parameters | (pass ? BIT(TICKET) : 0);
    struct http_refusal form_refusal;
    int form_r, r;

    form_r = form_read(form, texts, http->method == HTTP_POST ? 2 : 1, &form_refusal);
    if (form_r == -ENOMEM)
        return form_r;
    if (form_r < 0 && (pass || strcmp(form_refusal.param, "access_token") == 0)) {
        *refusal = form_refusal;
        return form_r;
    }
    if (pass)
        r = check_pass(settings, pass, http, form->values, times->now_ms, request, refusal);
    else
        r = bearer_check(settings->policy, http, form->values[PARAMETER_ACCESS_TOKEN],
                         times->now_ms, &request->token, refusal, ret_fault);
    if (r < 0)
        return r;
    if (form_r < 0) {
        *refusal = form_refusal;
        return form_r;
    }
    r = stream_parameters_check_known(known, form->values, refusal);
    if (r == 0)
        r = read_parameters(settings, http, form->values, times, request, refusal);
    if (r == 0 && request->stream != STREAM_PAST_COUNTS && http_trim(http->last_event_id).size > 0)
        stream_parameters_read_last_event_id(http_trim(http->last_event_id), times, request);
    else if (r == 0)
        r = stream_parameters_check_until(request, times->now_ms, refusal);
    return r;
}

static int read_request(const struct front_settings *settings, enum stream_kind stream,
                        const struct http_request *http, const struct stream_times *times,
                        const struct stream_pass *pass, struct stream_request *ret_request,
                        struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct stream_request request = {.stream = stream, .since = SINCE_NOW, .gather_ms = -1};
    struct sl_slice values[PARAMETER_COUNT];
    struct form form = {stream_parameter_names, PARAMETER_COUNT, values, NULL};
    int r;

    *ret_fault = TOKEN_OK;
    r = stream_wire_choose(settings, stream, http, &request, refusal);
    if (r == 0)
        r = understand(settings, http, times, pass, &form, &request, refusal, ret_fault);
    form_done(&form);
    if (r < 0) {
        stream_request_done(&request);
        return r;
    }
    *ret_request = request;
    return 0;
}

int stream_request_read(const struct front_settings *settings, enum stream_kind stream,
                        const struct http_request *http, const struct stream_times *times,
                        struct stream_request *ret_request, struct http_refusal *refusal,
                        enum token_fault *ret_fault)
{
    return read_request(settings, stream, http, times, NULL, ret_request, refusal, ret_fault);
}

int stream_request_read_passed(const struct front_settings *settings, enum stream_kind stream,
                               const struct http_request *http, const struct stream_times *times,
                               const struct stream_pass *pass, struct stream_request *ret_request,
                               struct http_refusal *refusal)
{
    enum token_fault ignored;

    return read_request(settings, stream, http, times, pass, ret_request, refusal, &ignored);
}

/* --- requests given by a path --- */

/* Splits a path into the stream and its query. false: there is no such stream. */
static bool cut_path(struct sl_slice path, enum stream_kind *ret_stream, struct sl_slice *ret_query)
{
    const char *mark = memchr(path.data, '?', path.size);
    size_t size = mark ? (size_t)(mark - path.data) : path.size;

    *ret_query = sl_slice_from(path, size + (mark != NULL));
    return stream_path(sl_slice(path.data, size), ret_stream) && *ret_stream != STREAM_PAST_COUNTS;
}

static int refuse_path(struct http_refusal *refusal)
{
    return http_refuse(refusal, 404, "no_such_stream", "path", "there is no stream at this path");
}

/* A stream format in which the request is valid. */
static enum stream_format format_for(enum stream_kind stream, const struct sl_slice *values)
{
    if (stream == STREAM_MANY || sl_slice_is(values[PARAMETER_BY], "rule"))
        return FORMAT_WEBSOCKET;
    return values[PARAMETER_DELIMITED].data ? FORMAT_NDJSON : FORMAT_SSE;
}

static int understand_path(const struct front_settings *settings, struct sl_slice query,
                           const struct stream_times *times, struct form *form,
                           struct stream_request *request, struct http_refusal *refusal)
{
    const struct http_request http = {.method = HTTP_GET};
    unsigned known = streams[request->stream].parameters & ~BIT(ACCESS_TOKEN);
    int r = form_read(form, &query, 1, refusal);

    if (r == 0)
        r = stream_parameters_check_known(known, form->values, refusal);
    if (r < 0)
        return r;
    request->format = format_for(request->stream, form->values);
    r = read_parameters(settings, &http, form->values, times, request, refusal);
    return r < 0 ? r : stream_parameters_check_until(request, times->now_ms, refusal);
}

int stream_request_check_path(const struct front_settings *settings, const struct token *token,
                              struct sl_slice path, const struct stream_times *times,
                              struct stream_print *ret_print, struct http_refusal *refusal)
{
    struct stream_request request = {.token = *token, .since = SINCE_NOW, .gather_ms = -1};
    struct sl_slice values[PARAMETER_COUNT], query;
    struct form form = {stream_parameter_names, PARAMETER_COUNT, values, NULL};
    int r;

    if (!cut_path(path, &request.stream, &query))
        return refuse_path(refusal);
    r = understand_path(settings, query, times, &form, &request, refusal);
    if (r == 0)
        r = print_request(request.stream, values, ret_print);
    form_done(&form);
    stream_request_done(&request);
    return r;
}

static int understand_opened(const struct front_settings *settings, struct sl_slice query,
                             const struct stream_times *times, struct form *form,
                             struct stream_request *request, struct http_refusal *refusal)
{
    const struct http_request http = {.method = HTTP_GET, .is_upgrade = true};
    unsigned known = streams[request->stream].parameters & ~(unsigned)OF_CONNECTIONS;
    int r = form_read(form, &query, 1, refusal);

    if (r == 0)
        r = stream_parameters_check_known(known, form->values, refusal);
    if (r == 0)
        r = read_parameters(settings, &http, form->values, times, request, refusal);
    if (r == 0 && stream_request_takes_rules(request))
        r = http_refuse(refusal, 400, "bad_by", "by",
                        "by=rule is possible only on a WebSocket to /v1/stream/counts");
    return r < 0 ? r : stream_parameters_check_until(request, times->now_ms, refusal);
}

/* The request for a stream that is opened on an existing connection. */
static struct stream_request beginning_of(const struct stream_request *connection,
                                          enum stream_kind stream)
{
    return (struct stream_request){
        .stream = stream,
        .format = FORMAT_WEBSOCKET,
        .token = connection->token,
        .encoding = stream == STREAM_HOME ? ENCODING_NONE : connection->encoding,
        .since = SINCE_NOW,
        .gather_ms = -1,
    };
}

int stream_request_read_opened(const struct front_settings *settings,
                               const struct stream_request *connection, struct sl_slice path,
                               const struct stream_times *times, struct stream_request *ret_request,
                               struct http_refusal *refusal)
{
    struct stream_request request;
    struct sl_slice values[PARAMETER_COUNT], query;
    struct form form = {stream_parameter_names, PARAMETER_COUNT, values, NULL};
    enum stream_kind stream;
    int r;

    if (!cut_path(path, &stream, &query) || stream == STREAM_MANY)
        return refuse_path(refusal);
    request = beginning_of(connection, stream);
    r = understand_opened(settings, query, times, &form, &request, refusal);
    form_done(&form);
    if (r < 0) {
        stream_request_done(&request);
        return r;
    }
    *ret_request = request;
    return 0;
}

void dialect_stream_done(struct dialect_stream *asked)
{
    mem_free(asked->memory);
    asked->memory = NULL;
}

static void place_parameters(const struct dialect_stream *asked, struct sl_slice *values)
{
    for (unsigned i = 0; i < asked->parameter_count; i++) {
        unsigned at = 0;

        while (strcmp(stream_parameter_names[at], asked->parameters[i].name) != 0)
            at++;
        values[at] = asked->parameters[i].value;
    }
}

static int check_bearer(const struct front_settings *settings, const struct http_request *http,
                        struct sl_slice jwt, const struct sl_slice *values, uint64_t now_ms,
                        struct token *ret_token, struct http_refusal *refusal,
                        enum token_fault *ret_fault)
{
    if (jwt.data)
        return bearer_check_token(settings->policy, http, jwt, now_ms, ret_token, refusal,
                                  ret_fault);
    return bearer_check(settings->policy, http, values[PARAMETER_ACCESS_TOKEN], now_ms, ret_token,
                        refusal, ret_fault);
}

int stream_request_refuse_asked(const struct front_settings *settings,
                                const struct dialect_stream *asked, struct sl_slice jwt,
                                const struct http_request *http, const struct stream_times *times,
                                struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct sl_slice values[PARAMETER_COUNT] = {0};
    struct http_refusal unknown;
    struct token token;
    int r;

    place_parameters(asked, values);
    r = check_bearer(settings, http, jwt, values, times->now_ms, &token, &unknown, ret_fault);
    if (r == -EPROTO)
        *refusal = unknown;
    return r == -ENOMEM ? r : -EPROTO;
}

int stream_request_read_asked(const struct front_settings *settings,
                              const struct dialect_stream *asked, struct sl_slice jwt,
                              const struct http_request *http, const struct stream_times *times,
                              struct stream_request *ret_request, struct http_refusal *refusal,
                              enum token_fault *ret_fault)
{
    struct stream_request request = {.stream = asked->stream,
                                     .format = asked->format,
                                     .since = SINCE_NOW,
                                     .gather_ms = -1,
                                     .track_is_verbatim = asked->track_is_verbatim,
                                     .authors_only = asked->authors_only};
    struct sl_slice values[PARAMETER_COUNT] = {0};
    int r;

    *ret_fault = TOKEN_OK;
    place_parameters(asked, values);
    r = check_bearer(settings, http, jwt, values, times->now_ms, &request.token, refusal,
                     ret_fault);
    if (r == 0 && !asked->is_uncompressed)
        r = stream_wire_choose_encoding(settings, asked->stream, http, &request, refusal);
    if (r == 0)
        r = read_parameters(settings, http, values, times, &request, refusal);
    if (r == 0)
        r = stream_parameters_check_until(&request, times->now_ms, refusal);
    if (r < 0) {
        stream_request_done(&request);
        return r;
    }
    *ret_request = request;
    return 0;
}

int stream_request_read_asked_opened(const struct front_settings *settings,
                                     const struct stream_request *connection,
                                     const struct dialect_stream *asked,
                                     const struct stream_times *times,
                                     struct stream_request *ret_request,
                                     struct http_refusal *refusal)
{
    const struct http_request http = {.method = HTTP_GET, .is_upgrade = true};
    struct stream_request request = beginning_of(connection, asked->stream);
    struct sl_slice values[PARAMETER_COUNT] = {0};
    int r;

    request.authors_only = asked->authors_only;
    place_parameters(asked, values);
    r = read_parameters(settings, &http, values, times, &request, refusal);
    if (r == 0)
        r = stream_parameters_check_until(&request, times->now_ms, refusal);
    if (r < 0) {
        stream_request_done(&request);
        return r;
    }
    *ret_request = request;
    return 0;
}

void stream_request_done(struct stream_request *request)
{
    sl_filter_unref(request->filter);
    request->filter = NULL;
    mem_free(request->warnings);
    request->warnings = NULL;
}
