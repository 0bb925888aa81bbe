/* twitter1.c - Twitter's Streaming API 1.1: its paths, parameters and refusals.
 *
 * The credential is a JWT, as everywhere: as a Bearer token, or as the `oauth_token` of OAuth 1.0a,
 * which the clients of that time send. The signature of the OAuth header is not checked: it would
 * prove that the client knows a second secret, which does not exist here. The token itself must be
 * kept secret, so without TLS an OAuth header is accepted only from the same machine, unless
 * configured otherwise. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gateway/dialects/basic_token.h"
#include "gateway/dialects/dialects.h"
#include "gateway/dialects/oauth1.h"
#include "gateway/dialects/twitter1_form.h"
#include "gateway/front/bearer.h"
#include "gateway/http/form.h"
#include "src/model/id.h"

enum {
    PHRASE_MAX_BYTES = 60,
    COUNT_MAX = 150000,
    COUNT_ROOM = 16,
    FIREHOSE_PARTITIONS = 16,
    PARTITIONS_ROOM = FIREHOSE_PARTITIONS * 3 + 3, /* 1,...,16/16 and its end */
    KEEPALIVE_MS = 30000,
    COUNT_ENDS_WITHIN_MS = 1000
};

enum parameter {
    PARAMETER_ACCESS_TOKEN,
    PARAMETER_COUNT,
    PARAMETER_DELIMITED,
    PARAMETER_FILTER_LEVEL,
    PARAMETER_FOLLOW,
    PARAMETER_LANGUAGE,
    PARAMETER_LOCATIONS,
    PARAMETER_PARTITIONS,
    PARAMETER_STALL_WARNINGS,
    PARAMETER_TRACK,
    PARAMETERS
};

static const char *const names[PARAMETERS] = {
    [PARAMETER_ACCESS_TOKEN] = "access_token",
    [PARAMETER_COUNT] = "count",
    [PARAMETER_DELIMITED] = "delimited",
    [PARAMETER_FILTER_LEVEL] = "filter_level",
    [PARAMETER_FOLLOW] = "follow",
    [PARAMETER_LANGUAGE] = "language",
    [PARAMETER_LOCATIONS] = "locations",
    [PARAMETER_PARTITIONS] = "partitions",
    [PARAMETER_STALL_WARNINGS] = "stall_warnings",
    [PARAMETER_TRACK] = "track",
};

/* --- the token ------------------------------------------------------------------------------- */

static int find_token(const struct dialect_request *request, struct sl_slice *ret_jwt,
                      struct http_refusal *refusal)
{
    if (basic_token(request->http->authorization, request->room, ret_jwt))
        return ret_jwt->data ? 0
                             : http_refuse(refusal, 401, "no_token", NULL,
                                           "the secret of the client must be a token");
    if (!oauth1_token(request->http->authorization, ret_jwt))
        return 0;
    if (!ret_jwt->data)
        return http_refuse(refusal, 401, "no_token", NULL, "oauth_token must be a token");
    if (!request->is_private)
        return http_refuse(refusal, 403, "insecure", NULL,
                           "OAuth 1.0a needs TLS here: the token could be read in transit");
    return 0;
}

/* POST /oauth2/token, with which a program without a user exchanged its secret for a token. Here
 * the secret is the token itself, which is returned. */
static int answer_token(const struct dialect_request *request, struct buffer *ret_body,
                        struct http_answer *ret_answer, struct http_refusal *refusal)
{
    static const char *const grant_type = "grant_type";
    struct sl_slice value, jwt = SL_SLICE_NONE;
    struct form form = {&grant_type, 1, &value, NULL};
    struct token token;
    int r = dialect_read_form(request, &form, refusal);

    (void)ret_answer;
    if (r == 0 && !sl_slice_is(value, "client_credentials"))
        r = http_refuse(refusal, 403, "bad_grant_type", grant_type,
                        "grant_type must be client_credentials");
    form_done(&form);
    if (r == 0)
        r = find_token(request, &jwt, refusal);
    if (r == 0 && !jwt.data)
        r = http_refuse(refusal, 401, "no_token", NULL, "the password of Basic must be a token");
    if (r == 0)
        r = bearer_check_token(request->front->policy, request->http, jwt, request->times.now_ms,
                               &token, refusal, request->fault);
    if (r < 0)
        return r;
    buffer_append_str(ret_body, "{\"token_type\":\"bearer\",\"access_token\":");
    buffer_append_json_string(ret_body, jwt);
    buffer_append_char(ret_body, '}');
    return 0;
}

/* --- parameters ------------------------------------------------------------------------------ */

static int check_track(struct sl_slice track, struct http_refusal *refusal)
{
    while (track.data) {
        const char *comma = memchr(track.data, ',', track.size);
        size_t size = comma ? (size_t)(comma - track.data) : track.size;
        struct sl_slice phrase = http_trim(sl_slice(track.data, size));

        if (phrase.size == 0 || phrase.size > PHRASE_MAX_BYTES)
            return http_refuse(refusal, 406, "bad_track", "track",
                               "a phrase of track must have 1 to %d bytes", PHRASE_MAX_BYTES);
        track = comma ? sl_slice_from(track, size + 1) : SL_SLICE_NONE;
    }
    return 0;
}

/* Boxes across the antimeridian are an extension of ours. */
static int check_locations(struct sl_slice locations, struct http_refusal *refusal)
{
    double edges[4] = {0};
    char number[32];

    for (size_t i = 0; locations.size > 0; i++) {
        struct sl_slice item = http_next_element(&locations, ',');

        if (item.size == 0 || item.size >= sizeof(number))
            return 0; /* reading the boxes reports the fault */
        memcpy(number, item.data, item.size);
        number[item.size] = 0;
        edges[i % 4] = strtod(number, NULL);
        if (i % 4 == 3 && (edges[0] >= edges[2] || edges[1] >= edges[3]))
            return http_refuse(refusal, 406, "bad_locations", "locations",
                               "a box must begin with its south-west corner");
    }
    return 0;
}

/* How many more there are is not known. */
static const char fewer_posts[] =
    "{\"warning\":{\"code\":\"COUNT\",\"message\":\"At most 1000 posts of the past are "
    "sent here. Earlier ones may be missing.\",\"percent_full\":0}}";
static_assert(STREAM_LAST_MAX == 1000, "as it says");

/* At most as many events as a stream can begin with. Clients compute how many they have missed, and
 * ask for more. */
static int read_count(const struct dialect_request *request, struct sl_slice text,
                      struct dialect_stream *asked, struct http_refusal *refusal)
{
    bool is_negative = sl_slice_starts_with(text, SL_SLICE("-"));
    char *last = asked->room, *until = asked->room + COUNT_ROOM;
    struct sl_slice digits;
    uint64_t count = 0;

    if (!text.data)
        return 0;
    digits = sl_slice_from(text, is_negative);
    for (size_t i = 0; i < digits.size && count <= COUNT_MAX; i++)
        count = digits.data[i] >= '0' && digits.data[i] <= '9'
                    ? count * 10 + (uint64_t)(digits.data[i] - '0')
                    : COUNT_MAX + 1;
    if (count == 0 || count > COUNT_MAX)
        return http_refuse(refusal, 416, "bad_count", "count",
                           "count must be a number from 1 to %d, or from -1 to -%d", COUNT_MAX,
                           COUNT_MAX);
    if (count > STREAM_LAST_MAX) {
        count = STREAM_LAST_MAX;
        asked->notice = fewer_posts;
    }
    snprintf(last, COUNT_ROOM, "%u", (unsigned)count);
    dialect_ask(asked, "last", sl_slice_str(last));
    if (!is_negative)
        return 0;
    sl_id_print(sl_id_first_at(request->times.now_ms + COUNT_ENDS_WITHIN_MS), until);
    dialect_ask(asked, "until", sl_slice_str(until));
    return 0;
}

/* Reads and removes the first number of `list`; FIREHOSE_PARTITIONS: not a partition. */
static unsigned next_partition(struct sl_slice *list)
{
    struct sl_slice item = http_next_element(list, ',');
    unsigned number = 0;

    if (item.size < 1 || item.size > 2)
        return FIREHOSE_PARTITIONS;
    for (size_t i = 0; i < item.size; i++) {
        if (item.data[i] < '0' || item.data[i] > '9')
            return FIREHOSE_PARTITIONS;
        number = number * 10 + (unsigned)(item.data[i] - '0');
    }
    return number < FIREHOSE_PARTITIONS ? number : FIREHOSE_PARTITIONS;
}

/* Clients divide the firehose among their connections. Partitions begin at 0, Sluice's at 1. */
static int read_partitions(struct sl_slice list, struct dialect_stream *asked,
                           struct http_refusal *refusal)
{
    char *parts = asked->room + 2 * COUNT_ROOM;
    size_t size = 0;
    unsigned found = 0;

    if (!list.data)
        return 0;
    do
        found |= 1u << next_partition(&list);
    while (list.size > 0);
    if (found & 1u << FIREHOSE_PARTITIONS)
        return http_refuse(refusal, 406, "bad_partitions", "partitions",
                           "partitions must be numbers from 0 to %d", FIREHOSE_PARTITIONS - 1);
    for (unsigned i = 0; i < FIREHOSE_PARTITIONS; i++) {
        if (found & 1u << i)
            size += (size_t)snprintf(parts + size, PARTITIONS_ROOM - size, "%s%u",
                                     size > 0 ? "," : "", i + 1);
    }
    snprintf(parts + size, PARTITIONS_ROOM - size, "/%d", FIREHOSE_PARTITIONS);
    dialect_ask(asked, "partition", sl_slice_str(parts));
    return 0;
}

/* tweepy sends `True`. */
static bool is_true(struct sl_slice text)
{
    return sl_slice_is(text, "true") || sl_slice_is(text, "True") || sl_slice_is(text, "1");
}

/* Every post has the level `low`, so a stream with `medium` would be empty. */
static int check_level(struct sl_slice level, struct http_refusal *refusal)
{
    if (!level.data || sl_slice_is(level, "none") || sl_slice_is(level, "low"))
        return 0;
    return http_refuse(refusal, 406, "bad_filter_level", "filter_level",
                       "filter_level must be none or low here: posts are not ranked");
}

static int read_common(const struct dialect_request *request, const struct sl_slice *values,
                       struct dialect_stream *asked, struct http_refusal *refusal)
{
    struct sl_slice delimited = values[PARAMETER_DELIMITED];
    int r = check_level(values[PARAMETER_FILTER_LEVEL], refusal);

    if (r == 0 && delimited.data && !sl_slice_is(delimited, "length"))
        r = http_refuse(refusal, 406, "bad_delimited", "delimited", "delimited must be length");
    if (r == 0)
        r = read_count(request, values[PARAMETER_COUNT], asked, refusal);
    asked->format = delimited.data ? FORMAT_DELIMITED : FORMAT_NDJSON;
    if (is_true(values[PARAMETER_STALL_WARNINGS]))
        asked->options = TWITTER1_WARNINGS;
    dialect_ask(asked, "access_token", values[PARAMETER_ACCESS_TOKEN]);
    dialect_ask(asked, "language", values[PARAMETER_LANGUAGE]);
    return r;
}

static int read_stream(const struct dialect_request *request, enum stream_kind stream,
                       struct dialect_stream *asked, struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    int r = dialect_read_form(request, &form, refusal);

    *asked = (struct dialect_stream){.stream = stream};
    if (r == 0)
        r = read_common(request, values, asked, refusal);
    if (r == 0 && stream == STREAM_FILTER) {
        r = check_track(values[PARAMETER_TRACK], refusal);
        if (r == 0)
            r = check_locations(values[PARAMETER_LOCATIONS], refusal);
        asked->track_is_verbatim = true;
        dialect_ask(asked, "track", values[PARAMETER_TRACK]);
        dialect_ask(asked, "follow", values[PARAMETER_FOLLOW]);
        dialect_ask(asked, "locations", values[PARAMETER_LOCATIONS]);
    }
    if (r == 0 && stream == STREAM_FIREHOSE)
        r = read_partitions(values[PARAMETER_PARTITIONS], asked, refusal);
    asked->memory = form.memory;
    return r;
}

static int read_filter(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    return read_stream(request, STREAM_FILTER, ret_asked, refusal);
}

static int read_sample(const struct dialect_request *request, struct dialect_stream *ret_asked,
                       struct http_refusal *refusal)
{
    return read_stream(request, STREAM_SAMPLE, ret_asked, refusal);
}

static int read_firehose(const struct dialect_request *request, struct dialect_stream *ret_asked,
                         struct http_refusal *refusal)
{
    return read_stream(request, STREAM_FIREHOSE, ret_asked, refusal);
}

/* --- refusals -------------------------------------------------------------------------------- */

/* Clients only use the status. */
static void refuse(const struct http_request *http, const struct http_refusal *refusal,
                   struct buffer *ret_body, struct http_answer *ret_answer)
{
    (void)http;
    ret_answer->status = refusal->status == 400   ? 406
                         : refusal->status == 429 ? 420
                                                  : refusal->status;
    ret_answer->content_type = "text/plain; charset=utf-8";
    buffer_append_str(ret_body, refusal->message);
    buffer_append_str(ret_body, "\r\n");
}

/* --- the table ------------------------------------------------------------------------------- */

#define BOTH .methods = DIALECT_GET | DIALECT_POST, .allow = "GET, POST, OPTIONS"

static const struct dialect_route routes[] = {
    {.path = "/1.1/statuses/filter.json", BOTH, .read = read_filter},
    {.path = "/1.1/statuses/sample.json", BOTH, .read = read_sample},
    {.path = "/1.1/statuses/firehose.json", BOTH, .read = read_firehose},
    {.path = "/oauth2/token",
     .methods = DIALECT_POST,
     .allow = "POST, OPTIONS",
     .answer = answer_token},
    {.path = "/1.1/*", DIALECT_ANY_METHOD, .answer = dialect_answer_nothing},
};

const struct dialect twitter1 = {
    .id = DIALECT_TWITTER1,
    .routes = routes,
    .route_count = sizeof(routes) / sizeof(routes[0]),
    .content_type = "application/json",
    .max_keepalive_ms = KEEPALIVE_MS,
    .find_token = find_token,
    .render = twitter1_render,
    .limit = twitter1_limit,
    .refuse = refuse,
};
