/* twitter2_parameters.c - as in X's API, unknown parameters are refused.
 *
 * Everything that our own parser would refuse is refused here first, with the names of X's API. The
 * token is checked later; if a parameter is wrong, streams/streams.c checks the token first, so
 * that nothing is reported without a valid one. */
#include "gateway/dialects/twitter2_parameters.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/dialects/twitter2_fields.h"
#include "gateway/http/form.h"
#include "src/model/moment.h"

enum { BACKFILL_MAX = 5 };

/* After the lists of twitter2_fields.h. */
enum parameter {
    PARAMETER_BACKFILL_MINUTES = TWITTER2_LISTS,
    PARAMETER_END_TIME,
    PARAMETER_PARTITION,
    PARAMETER_START_TIME,
    PARAMETERS
};

static const char *const own_names[PARAMETERS] = {
    [PARAMETER_BACKFILL_MINUTES] = "backfill_minutes",
    [PARAMETER_END_TIME] = "end_time",
    [PARAMETER_PARTITION] = "partition",
    [PARAMETER_START_TIME] = "start_time",
};

static const char *name_of(enum parameter parameter)
{
    return parameter < PARAMETER_BACKFILL_MINUTES
               ? twitter2_list_name((enum twitter2_list)parameter)
               : own_names[parameter];
}

/* --- known parameters ------------------------------------------------------------------------ */

static bool takes(const struct twitter2_stream *stream, enum parameter parameter)
{
    switch (parameter) {
    case PARAMETER_PARTITION:
        return stream->partitions > 0;
    case PARAMETER_START_TIME:
    case PARAMETER_END_TIME:
        return stream->takes_times;
    case PARAMETER_BACKFILL_MINUTES:
        return true;
    default:
        return !stream->is_compliance;
    }
}

static int refuse_name(const struct twitter2_stream *stream, const char *name,
                       struct http_refusal *refusal)
{
    struct buffer known = BUFFER_INIT;
    char copy[HTTP_PARAM_SIZE];
    int r;

    snprintf(copy, sizeof(copy), "%s", name);
    for (unsigned i = 0; i < PARAMETERS; i++) {
        if (takes(stream, (enum parameter)i))
            buffer_append_format(&known, "%s%s", known.size > 0 ? "," : "",
                                 name_of((enum parameter)i));
    }
    r = http_refuse(refusal, 400, "unknown_parameter", copy,
                    "The query parameter [%s] is not one of [%.*s]", copy,
                    SL_SLICE_ARG(buffer_slice(&known)));
    buffer_done(&known);
    return r;
}

static int check_known(const struct twitter2_stream *stream, const struct sl_slice *values,
                       struct http_refusal *refusal)
{
    for (unsigned i = 0; i < PARAMETERS; i++) {
        if (values[i].data && !takes(stream, (enum parameter)i))
            return refuse_name(stream, name_of((enum parameter)i), refusal);
    }
    return 0;
}

/* --- numbers and times ----------------------------------------------------------------------- */

/* At most three digits; UINT32_MAX: not a number. */
static uint32_t number_of(struct sl_slice text)
{
    uint32_t number = 0;

    if (text.size == 0 || text.size > 3)
        return UINT32_MAX;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return UINT32_MAX;
        number = number * 10 + (uint32_t)(text.data[i] - '0');
    }
    return number;
}

static int refuse_value(const char *name, struct sl_slice value, const char *what,
                        struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_parameter", name,
                       "The `%s` query parameter value [%.*s] is not %s", name,
                       value.size < 80 ? (int)value.size : 80, value.data ? value.data : "", what);
}

static int read_partition(const struct twitter2_stream *stream, struct sl_slice value,
                          struct dialect_stream *asked, struct http_refusal *refusal)
{
    uint32_t partition = number_of(value);
    char what[64];

    if (stream->partitions == 0)
        return 0;
    snprintf(what, sizeof(what), "a number between 1 and %u", stream->partitions);
    if (!value.data)
        return http_refuse(refusal, 400, "no_partition", "partition",
                           "The `partition` query parameter can not be empty: it is %s", what);
    if (partition < 1 || partition > stream->partitions)
        return refuse_value("partition", value, what, refusal);
    snprintf(asked->room, sizeof(asked->room), "%" PRIu32 "/%u", partition, stream->partitions);
    dialect_ask(asked, "partition", sl_slice_str(asked->room));
    return 0;
}

/* Sets *ret_minutes; 0: not requested. */
static int read_backfill(const struct sl_slice *values, struct dialect_stream *asked,
                         uint32_t *ret_minutes, struct http_refusal *refusal)
{
    static const char *const sinces[BACKFILL_MAX + 1] = {NULL, "1m", "2m", "3m", "4m", "5m"};
    struct sl_slice value = values[PARAMETER_BACKFILL_MINUTES];

    *ret_minutes = value.data ? number_of(value) : 0;
    if (*ret_minutes > BACKFILL_MAX)
        return refuse_value("backfill_minutes", value, "a number between 0 and 5", refusal);
    if (*ret_minutes > 0 && values[PARAMETER_START_TIME].data)
        return http_refuse(refusal, 400, "bad_parameter", "backfill_minutes",
                           "`backfill_minutes` and `start_time` both say where to begin: one of "
                           "the two");
    if (*ret_minutes > 0)
        dialect_ask(asked, "since", sl_slice_str(sinces[*ret_minutes]));
    return 0;
}

/* Only X's format of a time: not a day or an id, which our parameters also accept. */
static int read_time(const char *name, struct sl_slice value, uint64_t now_ms, uint64_t *ret_ms,
                     struct http_refusal *refusal)
{
    struct sl_moment moment;

    *ret_ms = 0;
    if (!value.data)
        return 0;
    if (!memchr(value.data, 'T', value.size) || sl_moment_parse(value, now_ms, &moment, NULL) < 0)
        return refuse_value(name, value, "a time of the form YYYY-MM-DDTHH:mm:ssZ", refusal);
    *ret_ms = sl_moment_ms(&moment);
    return 0;
}

static int read_times(const struct dialect_request *request, const struct sl_slice *values,
                      struct dialect_stream *asked, struct http_refusal *refusal)
{
    struct sl_slice start = values[PARAMETER_START_TIME], end = values[PARAMETER_END_TIME];
    uint64_t now_ms = request->times.now_ms, start_ms, end_ms;
    uint32_t minutes;
    int r = read_backfill(values, asked, &minutes, refusal);

    if (r == 0)
        r = read_time("start_time", start, now_ms, &start_ms, refusal);
    if (r == 0)
        r = read_time("end_time", end, now_ms, &end_ms, refusal);
    if (r < 0)
        return r;
    if (start.data && start_ms > now_ms)
        return refuse_value("start_time", start, "in the past", refusal);
    if (!start.data)
        start_ms = now_ms - (uint64_t)minutes * 60000;
    if (end.data && end_ms <= start_ms)
        return refuse_value("end_time", end, "after the time at which the stream begins", refusal);
    dialect_ask(asked, "since", start);
    dialect_ask(asked, "until", end);
    return 0;
}

/* --- all parameters -------------------------------------------------------------------------- */

static int read_values(const struct dialect_request *request, const struct twitter2_stream *stream,
                       const struct sl_slice *values, struct dialect_stream *asked,
                       struct http_refusal *refusal)
{
    int r = check_known(stream, values, refusal);

    if (r == 0)
        r = twitter2_fields_read(values, &asked->options, refusal);
    if (r == 0)
        r = read_partition(stream, values[PARAMETER_PARTITION], asked, refusal);
    if (r == 0)
        r = read_times(request, values, asked, refusal);
    return r;
}

int twitter2_read_stream(const struct dialect_request *request,
                         const struct twitter2_stream *stream, struct dialect_stream *ret_asked,
                         struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    const char *names[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    int r;

    for (unsigned i = 0; i < PARAMETERS; i++)
        names[i] = name_of((enum parameter)i);
    r = form_read(&form, &request->http->query, 1, refusal);
    *ret_asked = (struct dialect_stream){
        .stream = stream->stream, .format = FORMAT_NDJSON, .memory = form.memory};
    if (r == -EPROTO && strcmp(refusal->code, "unknown_parameter") == 0)
        r = refuse_name(stream, refusal->param, refusal);
    if (r == 0)
        r = read_values(request, stream, values, ret_asked, refusal);
    dialect_ask(ret_asked, "types", sl_slice_str(stream->is_compliance ? "delete" : "post"));
    if (stream->is_compliance)
        ret_asked->options |= twitter2_bit(TWITTER2_DELETIONS);
    if (stream->percent)
        dialect_ask(ret_asked, "percent", sl_slice_str(stream->percent));
    if (stream->language)
        dialect_ask(ret_asked, "language", sl_slice_str(stream->language));
    return r;
}
