/* past_counts.c - a client of delivery whose transport collects the lines in a buffer.
 *
 * The last bucket is closed when the request arrives, so the client reaches its end: then delivery
 * evicts it, and the lines become the response at the end of the turn. */
#include "gateway/streams/past_counts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/deliver.h"
#include "gateway/front/filter_json.h"
#include "gateway/streams/late_answer.h"

struct past_counts {
    struct client client; /* must be the first member */
    struct late_answer answer;
    struct stream_request request;
    struct filter_share filters;
    struct buffer lines;
};

static struct past_counts *past_counts_of(const struct client *client)
{
    return (struct past_counts *)client;
}

/* --- callbacks of delivery --- */

static ssize_t take_pieces(struct client *client, const struct iovec *pieces, int count)
{
    struct buffer *lines = &past_counts_of(client)->lines;
    ssize_t size = 0;

    for (int i = 0; i < count; i++) {
        buffer_append(lines, pieces[i].iov_base, pieces[i].iov_len);
        size += (ssize_t)pieces[i].iov_len;
    }
    return lines->failed ? -ENOBUFS : size;
}

static int hold(struct client *client, const struct iovec *pieces, int count)
{
    ssize_t r = take_pieces(client, pieces, count);

    return r < 0 ? (int)r : 0;
}

static bool is_blocked(const struct client *client)
{
    (void)client;
    return false;
}

static void evict(struct client *client, enum disconnect_reason reason)
{
    deliver_suspend(client);
    late_answer_end(&past_counts_of(client)->answer, reason == DISCONNECT_COMPLETE);
}

static void broken(struct client *client)
{
    evict(client, DISCONNECT_INTERNAL);
}

static const struct transport transport = {
    .send = take_pieces,
    .hold = hold,
    .is_blocked = is_blocked,
    .evict = evict,
    .broken = broken,
};

/* --- the response --- */

/* Appends the lines that begin with `prefix` as elements of an array. */
static void append_lines(struct sl_slice lines, struct sl_slice prefix, struct buffer *json)
{
    bool is_first = true;

    while (lines.size > 0) {
        const char *end = memchr(lines.data, '\r', lines.size);
        struct sl_slice line = sl_slice(lines.data, (size_t)(end - lines.data));

        assert(end);
        lines = sl_slice(end + 2, lines.size - line.size - 2);
        if (line.size < prefix.size || memcmp(line.data, prefix.data, prefix.size) != 0)
            continue;
        buffer_append_str(json, is_first ? "\n" : ",\n");
        buffer_append_slice(json, line);
        is_first = false;
    }
}

static void append_warnings(const struct sl_filter_warnings *warnings, struct buffer *json)
{
    for (size_t i = 0; warnings && i < warnings->count; i++) {
        buffer_append_str(json, i == 0 ? ",\"warnings\":[{" : ",{");
        filter_json_append_warning(&warnings->list[i], json);
        buffer_append_str(json, i + 1 < warnings->count ? "}" : "}]");
    }
}

/* The lines, and the cursor after them. */
static void append_answer(const struct stream_request *request, uint64_t cursor,
                          struct sl_slice lines, struct buffer *json)
{
    char id[SL_ID_TEXT_SIZE];

    buffer_append_str(json, "{\"counts\":[");
    append_lines(lines, SL_SLICE("{\"type\":\"counts\""), json);
    buffer_append_str(json, "],\"gaps\":[");
    append_lines(lines, SL_SLICE("{\"type\":\"gap\""), json);
    buffer_append_format(json, "],\"cursor\":\"%s\"", sl_id_print(cursor, id));
    append_warnings(request->warnings, json);
    buffer_append_str(json, "}\n");
}

static struct past_counts *past_counts_of_answer(const struct late_answer *answer)
{
    return LIST_OWNER(answer, struct past_counts, answer);
}

static int print(struct late_answer *answer, struct buffer *ret_json)
{
    struct past_counts *past = past_counts_of_answer(answer);

    if (past->lines.failed)
        return -ENOMEM;
    append_answer(&past->request, past->request.until, buffer_slice(&past->lines), ret_json);
    return 0;
}

static void past_counts_free(struct past_counts *past)
{
    struct streams *streams = past->answer.streams;

    late_answer_done(&past->answer);
    deliver_leave(&past->client);
    stream_filters_settle(streams, &past->request.token, 0, &past->filters);
    stream_request_done(&past->request);
    buffer_done(&past->lines);
    mem_free(past);
}

static void done(struct late_answer *answer)
{
    past_counts_free(past_counts_of_answer(answer));
}

static uint64_t progress(const struct late_answer *answer)
{
    return deliver_client_reached(&past_counts_of_answer(answer)->client);
}

static const struct late_answer_kind kind = {
    .code = "too_many_counts",
    .what = "counts of the past",
    .per_holder = PAST_COUNTS_PER_SUBJECT,
    .max = PAST_COUNTS_MAX,
    .print = print,
    .done = done,
    .progress = progress,
};

static int answer_at_once(struct http_connection *connection, const struct stream_request *request,
                          uint64_t cursor)
{
    struct buffer json = BUFFER_INIT;
    int r;

    append_answer(request, cursor, SL_SLICE(""), &json);
    r = json.failed ? -ENOMEM : 0;
    if (r == 0)
        http_answer(connection, &(struct http_answer){.status = 200,
                                                      .content_type = "application/json",
                                                      .body = buffer_slice(&json)});
    buffer_done(&json);
    return r;
}

/* --- the request --- */

/* Chooses the requested buckets that are closed: their ids are above *ret_from, up to `until`. */
static int choose_buckets(struct streams *streams, struct stream_request *request,
                          uint64_t *ret_from, struct http_refusal *refusal)
{
    const struct count_question *question = &request->counts;
    uint64_t closed = deliver_closed(streams->settings.deliver);
    uint64_t last = count_bucket_before(question, closed + 1);
    uint64_t count;
    uint32_t most =
        question->by == COUNT_BY_NONE ? PAST_COUNTS_BUCKETS : PAST_COUNTS_GROUPED_BUCKETS;

    *ret_from = count_bucket_before(question, request->since_cursor.id + 1);
    if (request->until && count_bucket_id(question, request->until) < last)
        last = count_bucket_id(question, request->until);
    request->until = last > *ret_from ? last : *ret_from;
    count = (sl_id_time_ms(request->until) - sl_id_time_ms(*ret_from)) / question->bucket_ms;
    if (count <= most)
        return 0;
    return http_refuse(refusal, 400, "too_many_buckets", "since",
                       "that is %" PRIu64 " buckets, and an answer may have at most %" PRIu32
                       "; use a later since, an earlier until or a longer bucket",
                       count, most);
}

static int take_filter(struct past_counts *past, struct http_refusal *refusal)
{
    struct filter_change change = {0};
    int r = deliver_filter_cost(past->answer.streams->settings.deliver, past->request.filter,
                                &change.added);

    return r < 0 ? r
                 : stream_filters_take(past->answer.streams, &past->request.token, &change,
                                       &past->filters, refusal);
}

static int join(struct past_counts *past, uint64_t from)
{
    struct deliver *deliver = past->answer.streams->settings.deliver;
    const struct sl_cursor cursor = {.id = from};
    int r;

    past->client.transport = &transport;
    past->client.format = FORMAT_NDJSON;
    past->client.unchunked = true;
    past->client.question = past->request.counts;
    past->client.until = past->request.until;
    r = deliver_subscribe(deliver, &past->client, past->request.filter, 0);
    return r < 0 ? r : deliver_resume(deliver, &past->client, &cursor);
}

int past_counts_begin(struct streams *streams, struct http_connection *connection,
                      struct stream_request *request, struct http_refusal *refusal)
{
    struct past_counts *past = NULL;
    uint64_t from;
    int r;

    r = late_answer_check_room(streams, &kind, request->token.holder, refusal);
    if (r == 0)
        r = choose_buckets(streams, request, &from, refusal);
    if (r == 0 && request->until == from) {
        r = answer_at_once(connection, request, from);
        stream_request_done(request);
        return r;
    }
    if (r == 0)
        past = mem_zalloc(sizeof(*past));
    if (!past) {
        stream_request_done(request);
        return r < 0 ? r : -ENOMEM;
    }
    past->request = *request;
    late_answer_init(&past->answer, &kind, streams, connection, past->request.token.holder);
    r = take_filter(past, refusal);
    if (r == 0)
        r = join(past, from);
    if (r < 0)
        past_counts_free(past);
    else
        late_answer_wait(&past->answer);
    return r;
}
