/* stream_checks.c - checks whether this server can provide now what a permitted request asks for.
 *
 * It may have no source of events, or no memory for another filter, home feed or trends; and it
 * resends at most COUNT_BUCKETS_MAX or TREND_BUCKETS_MAX buckets. A stream that is opened on an
 * existing connection is checked in the same way. The number of connections is checked in
 * streams.c. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/delivery/deliver.h"
#include "gateway/front/dialect.h"
#include "gateway/front/event_fields.h"
#include "gateway/streams/stream.h"
#include "src/model/id.h"

/* Trends of a subject, on a worker. */
enum { TRENDS_PER_SUBJECT = 10 };

int streams_check_readiness(const struct streams *streams, struct http_refusal *refusal)
{
    bool is_closing = streams->is_draining && !streams->has_successor;

    if (streams->is_ready && !is_closing)
        return 0;
    if (is_closing)
        http_refuse(refusal, 503, "draining", NULL, "this server is shutting down");
    else
        http_refuse(refusal, 503, "redis_away", NULL, "Redis is not reachable now");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

/* The filter replaces the one in the share. */
static int take_filter(struct streams *streams, const struct stream_request *request,
                       struct filter_share *share, struct http_refusal *refusal)
{
    struct filter_change change = {.replaced = share->bytes};
    int r;

    if (!request->filter) {
        stream_filters_settle(streams, &request->token, 0, share);
        return 0;
    }
    r = deliver_filter_cost(streams->settings.deliver, request->filter, &change.added);
    return r < 0 ? r : stream_filters_take(streams, &request->token, &change, share, refusal);
}

/* The follows of a home stream are read after it has begun. */
static int check_home(struct streams *streams, const struct stream_request *request,
                      struct http_refusal *refusal)
{
    if (request->stream != STREAM_HOME ||
        deliver_has_home_room(streams->settings.deliver, sl_slice_str(request->token.subject)))
        return 0;
    metric_add(streams->settings.metrics, METRIC_HOME_REFUSED, 1);
    http_refuse(refusal, 429, "too_many_connections", NULL,
                "home streams take too much memory of this server");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

/* The number of trends that are computed for this request: those with a filter, and those from a
 * cursor on. The trends that everybody gets cost nothing more. */
static unsigned trends_of(const struct stream_request *request)
{
    bool has_cursor = request->since == SINCE_CURSOR || request->since == SINCE_TIME;

    if (request->stream != STREAM_TRENDS)
        return 0;
    return trend_kinds(&request->counts.trends) *
           ((unsigned)has_cursor + !request->counts.trends.stands);
}

static unsigned trends_of_holder(const struct streams *streams, const char *holder)
{
    unsigned kinds = 0;

    LIST_EACH(&streams->list, node)
    {
        const struct stream *stream = LIST_OWNER(node, struct stream, node);

        if (strcmp(stream->own.request.token.holder, holder) != 0)
            continue;
        LIST_EACH(&stream->channels, other)
        kinds += trends_of(&LIST_OWNER(other, struct channel, node)->request);
    }
    return kinds;
}

static int check_trends(struct streams *streams, const struct stream_request *request,
                        struct http_refusal *refusal)
{
    bool has_cursor = request->since == SINCE_CURSOR || request->since == SINCE_TIME;
    unsigned own = trends_of(request);

    if (request->stream != STREAM_TRENDS)
        return 0;
    if (own > 0)
        own += trends_of_holder(streams, request->token.holder);
    if (own <= TRENDS_PER_SUBJECT &&
        deliver_make_trend_room(streams->settings.deliver, request->filter, &request->counts,
                                has_cursor))
        return 0;
    metric_add(streams->settings.metrics, METRIC_TRENDS_REFUSED, 1);
    http_refuse(refusal, 429, "too_many_trends", NULL,
                own <= TRENDS_PER_SUBJECT ? "this server has too many trends"
                                          : "this token's subject has too many trends");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

/* While Redis is down, and in a worker that has just started, the newest id is unknown: then a
 * request is refused for that reason, not for its cursor. */
struct stream_times stream_times_now(const struct streams *streams)
{
    uint64_t newest = deliver_cursor(streams->settings.deliver).id;

    return (struct stream_times){
        .now_ms = clock_wall_ms(),
        .newest_ms = sl_id_time_ms(streams->is_ready ? newest : SL_ID_MAX),
        .shards = deliver_shards(streams->settings.deliver),
    };
}

/* Without a position, a stream begins with the current bucket. Counts begin and end with whole
 * buckets. */
static int align_buckets(const struct streams *streams, struct stream_request *request,
                         struct http_refusal *refusal)
{
    const struct count_question *question = &request->counts;
    uint64_t closed = deliver_closed(streams->settings.deliver), count;
    uint32_t most = question->trends.window_ms ? TREND_BUCKETS_MAX : COUNT_BUCKETS_MAX;

    if (closed == 0) /* the time of Redis is unknown yet */
        closed = sl_id_first_at(clock_wall_ms());
    if (request->since == SINCE_NOW && request->stream != STREAM_TRENDS) {
        request->since = SINCE_TIME;
        request->since_cursor = (struct sl_cursor){.id = count_bucket_before(question, closed + 1)};
    } else if (request->since == SINCE_UNUSABLE) {
        request->since_cursor = (struct sl_cursor){.id = count_bucket_before(question, closed + 1)};
    }
    if (question->pick.posts)
        return 0;
    if (request->until)
        request->until = count_bucket_id(question, request->until);
    if (request->since == SINCE_NOW || request->since_cursor.id >= closed)
        return 0;
    count = (sl_id_time_ms(closed) - sl_id_time_ms(request->since_cursor.id)) / question->bucket_ms;
    if (count <= most)
        return 0;
    return http_refuse(refusal, 400, "too_many_buckets", "since",
                       "that is %" PRIu64 " buckets ago, and at most %" PRIu32 " are sent again; "
                       "use a later since or a longer bucket",
                       count, most);
}

int stream_check_request(struct streams *streams, struct stream_request *request,
                         struct filter_share *share, struct http_refusal *refusal)
{
    int r = request->counts.bucket_ms ? align_buckets(streams, request, refusal) : 0;

    if (r == 0)
        r = check_home(streams, request, refusal);
    if (r == 0)
        r = check_trends(streams, request, refusal);
    return r < 0 ? r : take_filter(streams, request, share, refusal);
}

/* Makes the other checks. On failure, frees `request`. */
static int check_rest(const struct stream *stream, struct stream_request *request,
                      struct filter_share *share, struct http_refusal *refusal)
{
    int r = stream_use_check_opened(stream, request, refusal);

    if (r == 0)
        r = stream_check_request(stream->streams, request, share, refusal);
    if (r < 0)
        stream_request_done(request);
    return r;
}

int stream_check_opened(const struct stream *stream, struct sl_slice path,
                        struct filter_share *share, struct stream_request *ret_request,
                        struct http_refusal *refusal)
{
    struct streams *streams = stream->streams;
    const struct stream_times times = stream_times_now(streams);
    int r = streams_check_readiness(streams, refusal);

    if (r == 0)
        r = stream_request_read_opened(streams->settings.front, &stream->own.request, path, &times,
                                       ret_request, refusal);
    return r < 0 ? r : check_rest(stream, ret_request, share, refusal);
}

int stream_check_asked(const struct stream *stream, const struct dialect_stream *asked,
                       struct filter_share *share, struct stream_request *ret_request,
                       struct http_refusal *refusal)
{
    const struct dialect *dialect = stream->own.request.dialect;
    struct streams *streams = stream->streams;
    const struct stream_times times = stream_times_now(streams);
    int r = streams_check_readiness(streams, refusal);

    if (r == 0)
        r = stream_request_read_asked_opened(streams->settings.front, &stream->own.request, asked,
                                             &times, ret_request, refusal);
    if (r < 0)
        return r;
    ret_request->dialect = dialect;
    ret_request->fields = event_fields_of_dialect(dialect->id, asked->options);
    return check_rest(stream, ret_request, share, refusal);
}
