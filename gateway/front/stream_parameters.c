/* stream_parameters.c - reads the parameters of a stream request, and checks combinations.
 *
 * Values are slices of the decoded form, which is valid during the call; a filter is compiled from
 * them once (filters/filter.h), within the limits of the token. Numbers have as many digits as
 * their largest value, and times may be at most a minute in the future. */
#include "gateway/front/stream_parameters.h"

#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "gateway/front/event_fields.h"
#include "gateway/front/filter_json.h"
#include "gateway/http/accept_encoding.h"
#include "src/model/dictionary_id.h"
#include "src/model/id.h"
#include "src/model/moment.h"

const char *const stream_parameter_names[PARAMETER_COUNT] = {
    [PARAMETER_ACCESS_TOKEN] = "access_token",
    [PARAMETER_BUCKET] = "bucket",
    [PARAMETER_BY] = "by",
    [PARAMETER_CELL_DEGREES] = "cell_degrees",
    [PARAMETER_CURSORS] = "cursors",
    [PARAMETER_DELIMITED] = "delimited",
    [PARAMETER_FIELDS] = "fields",
    [PARAMETER_FOLLOW] = "follow",
    [PARAMETER_GATHER_MS] = "gather_ms",
    [PARAMETER_HELLO] = "hello",
    [PARAMETER_LAST] = "last",
    [PARAMETER_LANG] = "lang",
    [PARAMETER_LATEST_BY] = "latest_by",
    [PARAMETER_LIMIT] = "limit",
    [PARAMETER_LANGUAGE] = "language",
    [PARAMETER_LOCATIONS] = "locations",
    [PARAMETER_OF] = "of",
    [PARAMETER_ON_SLOW] = "on_slow",
    [PARAMETER_MAX] = "max",
    [PARAMETER_MAX_RATE] = "max_rate",
    [PARAMETER_PARTITION] = "partition",
    [PARAMETER_PERCENT] = "percent",
    [PARAMETER_PICK] = "pick",
    [PARAMETER_REFRESH_MS] = "refresh_ms",
    [PARAMETER_RULE] = "rule",
    [PARAMETER_SINCE] = "since",
    [PARAMETER_TICKET] = "ticket",
    [PARAMETER_TRACK] = "track",
    [PARAMETER_TYPES] = "types",
    [PARAMETER_UNTIL] = "until",
    [PARAMETER_WINDOW] = "window",
    [PARAMETER_ZSTD_DICTIONARY] = "zstd_dictionary",
};

/* Digits only, up to `max`. */
static bool read_number(struct sl_slice text, uint32_t max, uint32_t *ret_number)
{
    uint64_t number = 0;

    if (text.size == 0 || text.size > 10)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret_number = (uint32_t)number;
    return number <= max;
}

static uint64_t latest_since_ms(const struct stream_times *times)
{
    return STREAM_FUTURE_MS + (times->newest_ms > times->now_ms ? times->newest_ms : times->now_ms);
}

/* Only cursors of the form with shards that are behind differ from moments. */
static int read_cursor(struct sl_slice text, struct stream_request *request,
                       struct http_refusal *refusal)
{
    struct failure failure;

    if (sl_cursor_parse(text, &request->since_cursor, &failure) < 0)
        return http_refuse(refusal, 400, "bad_since", "since", "%s", failure.text);
    request->since = SINCE_CURSOR;
    return 0;
}

static int read_moment(struct sl_slice text, uint64_t now_ms, struct stream_request *request,
                       struct http_refusal *refusal)
{
    struct sl_moment moment;
    struct failure failure;

    if (sl_moment_parse(text, now_ms, &moment, &failure) < 0)
        return http_refuse(refusal, 400, "bad_since", "since", "%s", failure.text);
    request->since = moment.kind == SL_MOMENT_ID ? SINCE_CURSOR : SINCE_TIME;
    request->since_cursor = (struct sl_cursor){.id = sl_moment_cursor(&moment)};
    return 0;
}

static int read_since(struct sl_slice text, const struct stream_times *times,
                      struct stream_request *request, struct http_refusal *refusal)
{
    bool is_cursor = memchr(text.data, '~', text.size);
    int r = is_cursor ? read_cursor(text, request, refusal)
                      : read_moment(text, times->now_ms, request, refusal);

    if (r == 0 && sl_id_time_ms(request->since_cursor.id + (request->since == SINCE_TIME)) >
                      latest_since_ms(times))
        return http_refuse(refusal, 400, "bad_since", "since", "more than a minute in the future");
    return r;
}

static int read_last(struct sl_slice text, const struct sl_slice *since,
                     struct stream_request *request, struct http_refusal *refusal)
{
    if (!read_number(text, STREAM_LAST_MAX, &request->last) || request->last == 0)
        return http_refuse(refusal, 400, "bad_last", "last", "not a number from 1 to %d",
                           STREAM_LAST_MAX);
    if (since->data)
        return http_refuse(refusal, 400, "bad_last", "last", "since and last cannot be combined");
    return 0;
}

/* Events after it are not wanted. */
static int read_until(struct sl_slice text, uint64_t now_ms, struct stream_request *request,
                      struct http_refusal *refusal)
{
    struct sl_moment moment;
    struct failure failure;

    if (sl_moment_parse(text, now_ms, &moment, &failure) < 0)
        return http_refuse(refusal, 400, "bad_until", "until", "%s", failure.text);
    request->until = sl_moment_cursor(&moment);
    if (request->until == 0)
        return http_refuse(refusal, 400, "bad_until", "until", "too long ago");
    return 0;
}

/* A range that is already over needs a beginning; a client that resumes has one. */
int stream_parameters_check_until(const struct stream_request *request, uint64_t now_ms,
                                  struct http_refusal *refusal)
{
    if (!request->until)
        return 0;
    if (request->since != SINCE_NOW && request->until < request->since_cursor.id)
        return http_refuse(refusal, 400, "bad_until", "until", "it lies before since");
    if (request->since == SINCE_NOW && sl_id_time_ms(request->until) <= now_ms)
        return http_refuse(refusal, 400, "bad_until", "until",
                           "it is in the past: until needs since then");
    return 0;
}

void stream_parameters_read_last_event_id(struct sl_slice text, const struct stream_times *times,
                                          struct stream_request *request)
{
    struct sl_cursor cursor;

    request->since = SINCE_UNUSABLE;
    request->since_cursor = (struct sl_cursor){0};
    request->last = 0;
    if (sl_cursor_parse(text, &cursor, NULL) == 0 &&
        sl_id_time_ms(cursor.id) <= latest_since_ms(times)) {
        request->since = SINCE_CURSOR;
        request->since_cursor = cursor;
    }
}

int stream_parameters_check_known(unsigned known, const struct sl_slice *values,
                                  struct http_refusal *refusal)
{
    for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
        if (values[i].data && !(known & 1u << i))
            return http_refuse(refusal, 400, "unknown_parameter", stream_parameter_names[i],
                               "this stream has no such parameter");
    }
    return 0;
}

/* Absent: false. */
static bool read_bool(struct sl_slice text, bool *ret_bool)
{
    *ret_bool = sl_slice_is(text, "true");
    return !text.data || *ret_bool || sl_slice_is(text, "false");
}

int stream_fields_read(struct sl_slice text, uint64_t *ret_fields, struct http_refusal *refusal)
{
    struct failure failure;

    if (event_fields_parse(text, ret_fields, &failure) < 0)
        return http_refuse(refusal, 400, "bad_fields", "fields", "%s", failure.text);
    return 0;
}

/* The parameters common to all streams. */
static int read_common(const struct front_settings *settings, const struct sl_slice *values,
                       const struct stream_times *times, struct stream_request *request,
                       struct http_refusal *refusal)
{
    struct sl_slice since = values[PARAMETER_SINCE];
    struct sl_slice delimited = values[PARAMETER_DELIMITED];
    struct sl_slice gather_ms = values[PARAMETER_GATHER_MS];
    uint32_t number;

    if (!read_bool(values[PARAMETER_CURSORS], &request->cursors))
        return http_refuse(refusal, 400, "bad_cursors", "cursors", "neither true nor false");
    if (!read_bool(values[PARAMETER_HELLO], &request->hello))
        return http_refuse(refusal, 400, "bad_hello", "hello", "neither true nor false");
    if (delimited.data) {
        if (!sl_slice_is(delimited, "length"))
            return http_refuse(refusal, 400, "bad_delimited", "delimited",
                               "delimited must be length");
        if (request->format != FORMAT_NDJSON)
            return http_refuse(refusal, 400, "bad_delimited", "delimited",
                               "only application/x-ndjson can be delimited");
        request->format = FORMAT_DELIMITED;
    }
    if (gather_ms.data) {
        if (!read_number(gather_ms, settings->max_gather_ms, &number))
            return http_refuse(refusal, 400, "bad_gather_ms", "gather_ms",
                               "not a number of milliseconds from 0 to %" PRIu32,
                               settings->max_gather_ms);
        request->gather_ms = (int)number;
    }
    if (values[PARAMETER_FIELDS].data &&
        stream_fields_read(values[PARAMETER_FIELDS], &request->fields, refusal) < 0)
        return -EPROTO;
    if (since.data && read_since(since, times, request, refusal) < 0)
        return -EPROTO;
    if (values[PARAMETER_LAST].data &&
        read_last(values[PARAMETER_LAST], &since, request, refusal) < 0)
        return -EPROTO;
    return values[PARAMETER_UNTIL].data
               ? read_until(values[PARAMETER_UNTIL], times->now_ms, request, refusal)
               : 0;
}

/* Without a selector everything is counted, as on the firehose. */
static bool counts_everything(const struct sl_slice *values)
{
    return !values[PARAMETER_TRACK].data && !values[PARAMETER_FOLLOW].data &&
           !values[PARAMETER_LOCATIONS].data && !values[PARAMETER_RULE].data &&
           !values[PARAMETER_PERCENT].data && !values[PARAMETER_PARTITION].data;
}

static bool is_counting(enum stream_kind stream)
{
    return stream == STREAM_COUNTS || stream == STREAM_PAST_COUNTS || stream == STREAM_TRENDS;
}

/* Counts by rule get their rules by messages. */
static int check_counted_rules(const struct sl_slice *values, const struct stream_request *request,
                               struct http_refusal *refusal)
{
    if (request->counts.by != COUNT_BY_RULE)
        return 0;
    if (request->format != FORMAT_WEBSOCKET)
        return http_refuse(refusal, 400, "bad_by", "by",
                           "by=rule is possible only on a WebSocket to /v1/stream/counts");
    for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
        if (values[i].data && (PARAMETER_RESTRICTORS | PARAMETER_SELECTORS) & 1u << i)
            return http_refuse(refusal, 400, "unknown_parameter", stream_parameter_names[i],
                               "with by=rule, filters are given in messages");
    }
    return 0;
}

/* The terms and the filter of trends, which may also be everything, or a language alone. */
static int read_trends(const struct sl_slice *values, struct stream_request *request,
                       struct http_refusal *refusal)
{
    struct trend_question *trends = &request->counts.trends;
    int r = trend_question_read(values[PARAMETER_WINDOW], values[PARAMETER_OF],
                                values[PARAMETER_LIMIT], trends, refusal);

    if (r < 0)
        return r;
    if (values[PARAMETER_LANG].data && values[PARAMETER_LANGUAGE].data)
        return http_refuse(refusal, 400, "bad_lang", "lang",
                           "lang and language are the same: give one of them");
    trends->stands = counts_everything(values) && !values[PARAMETER_LANG].data &&
                     !values[PARAMETER_LANGUAGE].data;
    return 0;
}

static int read_pick(const struct sl_slice *values, struct stream_request *request,
                     struct http_refusal *refusal)
{
    const struct pick_values pick = {
        .max_rate = values[PARAMETER_MAX_RATE],
        .max = values[PARAMETER_MAX],
        .pick = values[PARAMETER_PICK],
        .latest_by = values[PARAMETER_LATEST_BY],
        .cell_degrees = values[PARAMETER_CELL_DEGREES],
    };

    int r = pick_question_read(&pick, request->since_cursor.id, request->until,
                               &request->counts.pick, &request->counts.bucket_ms, refusal);

    return r < 0 ? r
                 : on_slow_read(values[PARAMETER_ON_SLOW], &request->counts.pick,
                                &request->samples_when_slow, refusal);
}

static int read_question(const struct sl_slice *values, struct stream_request *request,
                         struct http_refusal *refusal)
{
    int r;

    if (!is_counting(request->stream))
        return read_pick(values, request, refusal);
    if (request->stream == STREAM_PAST_COUNTS && request->since == SINCE_NOW)
        return http_refuse(refusal, 400, "no_since", "since",
                           "since is required: where to begin "
                           "counting");
    r = count_question_read(values[PARAMETER_BUCKET], values[PARAMETER_BY],
                            values[PARAMETER_CELL_DEGREES], values[PARAMETER_REFRESH_MS],
                            &request->counts, refusal);
    if (r == 0 && request->stream == STREAM_TRENDS)
        r = read_trends(values, request, refusal);
    return r < 0 ? r : check_counted_rules(values, request, refusal);
}

/* Selects zstd, whatever else was negotiated, because naming a dictionary requests it. */
static int read_dictionary(const struct front_settings *settings, const struct http_request *http,
                           struct sl_slice text, struct stream_request *request,
                           struct http_refusal *refusal)
{
    const struct accept_encoding accept = accept_encoding_read(&http->accept_encoding);
    struct failure failure;

    if (!text.data)
        return 0;
    if (!settings->has_zstd)
        return http_refuse(refusal, 400, "bad_zstd_dictionary", "zstd_dictionary",
                           "this server does not compress");
    if (sl_dictionary_id_parse(text, &request->dictionary, &failure) < 0)
        return http_refuse(refusal, 400, "bad_zstd_dictionary", "zstd_dictionary", "%s",
                           failure.text);
    if (request->format != FORMAT_WEBSOCKET && http->accept_encoding.lines[0].data &&
        accept.zstd == 0)
        return http_refuse(refusal, 406, "not_acceptable", "zstd_dictionary",
                           "Accept-Encoding does not permit zstd");
    request->encoding = ENCODING_ZSTD_DICTIONARY;
    request->window_bits = 0;
    request->deflate = (struct websocket_deflate){0};
    return 0;
}

/* The name of the parameter on this stream. */
static const char *param_of(const struct sl_filter_error *error, const struct sl_slice *values)
{
    if (error->param && strcmp(error->param, "sample") == 0)
        return "percent";
    if (error->param && strcmp(error->param, "language") == 0 && values[PARAMETER_LANG].data)
        return "lang";
    return error->param;
}

/* Home streams use a filter only to read `types`. */
static int read_filter(const struct sl_slice *values, struct stream_request *request,
                       struct http_refusal *refusal)
{
    enum stream_kind stream = request->stream;
    struct sl_slice percent = values[PARAMETER_PERCENT];
    struct sl_filter_text text = {
        .track = values[PARAMETER_TRACK],
        .follow = values[PARAMETER_FOLLOW],
        .authors_only = request->authors_only,
        .locations = values[PARAMETER_LOCATIONS],
        .rule = values[PARAMETER_RULE],
        .firehose = stream == STREAM_FIREHOSE || stream == STREAM_HOME ||
                    (is_counting(stream) && counts_everything(values)),
        .language =
            values[PARAMETER_LANG].data ? values[PARAMETER_LANG] : values[PARAMETER_LANGUAGE],
        .sample = stream == STREAM_SAMPLE && !percent.data ? SL_SLICE("1") : percent,
        .partition = values[PARAMETER_PARTITION],
        .types = stream == STREAM_TRENDS ? SL_SLICE("post") : values[PARAMETER_TYPES],
        .track_is_verbatim = request->track_is_verbatim,
    };
    const struct sl_filter_limits limits = stream_request_limits(request);
    struct sl_filter_warnings warnings;
    struct sl_filter_error error;
    int r;

    if (stream_request_takes_rules(request))
        return 0;
    r = sl_filter_new_warned(&text, &limits, &request->filter, &error, &warnings);
    if (r == -EINVAL) {
        error.param = param_of(&error, values);
        return filter_json_refuse(&error, refusal);
    }
    if (r < 0)
        return r;
    if (warnings.count > 0 || warnings.login_count > 0) {
        request->warnings = mem_copy(&warnings, sizeof(warnings));
        if (!request->warnings)
            return -ENOMEM;
    }
    request->types = sl_filter_types(request->filter);
    if (stream == STREAM_HOME) {
        sl_filter_unref(request->filter);
        request->filter = NULL;
    }
    return 0;
}

int stream_parameters_read(const struct front_settings *settings, const struct http_request *http,
                           const struct sl_slice *values, const struct stream_times *times,
                           struct stream_request *request, struct http_refusal *refusal)
{
    int r = read_common(settings, values, times, request, refusal);

    if (r == 0)
        r = read_question(values, request, refusal);
    if (r == 0)
        r = read_dictionary(settings, http, values[PARAMETER_ZSTD_DICTIONARY], request, refusal);
    if (r == 0)
        r = read_filter(values, request, refusal);
    return r;
}
