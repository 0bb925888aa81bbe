/* channel.c - makes a request a client of delivery, and sends the messages that are not events.
 *
 * What a channel sends goes through the wire of its stream, in order with everything else. If the
 * wire is full or broken, this affects all channels of the connection. */
#include "gateway/streams/channel.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/front/dialect.h"
#include "gateway/front/filter_json.h"
#include "gateway/intake/gap.h"
#include "gateway/streams/stream.h"
#include "src/model/id.h"
#include "src/model/moment.h"

enum {
    UNTIL_RETRY_MS = 100 /* between two checks of its end */
};

static struct deliver *deliver_of(const struct channel *channel)
{
    return channel->stream->streams->settings.deliver;
}

static uint64_t now_of(const struct channel *channel)
{
    return uv_now(channel->stream->streams->settings.loop);
}

static void tell_metric(const struct channel *channel, bool has_come)
{
    const struct stream_request *request = &channel->request;
    struct metrics *metrics = channel->stream->streams->settings.metrics;
    bool has_kept_rules = request->stream == STREAM_MANY && request->format != FORMAT_WEBSOCKET;
    unsigned kind = has_kept_rules ? STREAM_FILTER : request->stream;
    enum metric metric = metric_at(METRIC_STREAMS_BY, kind * FORMAT_COUNT + request->format);

    static_assert(STREAM_MANY == 6 && FORMAT_WEBSOCKET == 0,
                  "the rows end with many over WebSocket");
    if (has_come)
        metric_add(metrics, metric, 1);
    else
        metric_sub(metrics, metric, 1);
}

/* --- callbacks of delivery --- */

static struct channel *as_channel(const struct client *client)
{
    return (struct channel *)client;
}

static ssize_t client_send(struct client *client, const struct iovec *pieces, int count)
{
    return wire_send(&as_channel(client)->stream->wire, pieces, count);
}

static int client_hold(struct client *client, const struct iovec *pieces, int count)
{
    struct stream *stream = as_channel(client)->stream;
    int r = wire_hold(&stream->wire, pieces, count);

    stream_memory_count(stream);
    return r;
}

static bool client_is_blocked(const struct client *client)
{
    return as_channel(client)->stream->wire.is_blocked;
}

static void client_evict(struct client *client, enum disconnect_reason reason)
{
    channel_evict(as_channel(client), reason);
}

static void client_broken(struct client *client)
{
    stream_end(as_channel(client)->stream, STREAM_BROKEN);
}

static const struct transport transport = {
    .send = client_send,
    .hold = client_hold,
    .is_blocked = client_is_blocked,
    .evict = client_evict,
    .broken = client_broken,
};

struct channel *channel_of(const struct client *client)
{
    return client->transport == &transport ? as_channel(client) : NULL;
}

/* --- messages --- */

/* Sends a message and frees it; `name` is the event name in Server-Sent Events. */
static void say(struct channel *channel, const char *name, struct buffer *json)
{
    struct buffer frame = BUFFER_INIT;

    if (channel->request.dialect) { /* no dialect has such messages */
        buffer_done(json);
        return;
    }
    if (channel_is_opened(channel) && json->size > 0) {
        json->size--; /* removes the closing brace */
        buffer_append_slice(json, channel->client.tail);
        buffer_append_char(json, '}');
    }
    frame_append_message(&frame, channel->client.format, name, buffer_slice(json));
    frame.failed = frame.failed || json->failed;
    stream_say_frame(channel->stream, &frame);
    buffer_done(json);
}

/* The cursor after which it begins. For a time: the last id before that time. */
static struct sl_cursor beginning_of(const struct channel *channel)
{
    switch (channel->request.since) {
    case SINCE_CURSOR:
    case SINCE_TIME:
        return channel->request.since_cursor;
    default:
        return channel_cursor(channel);
    }
}

/* The client's position is unknown: everything up to the newest event may have been missed. The
 * newest id depends on the clock of Redis, not on ours. */
static void say_gap_to_head(struct channel *channel)
{
    uint64_t head = deliver_cursor(deliver_of(channel)).id;
    struct gap gap = {.to = head ? head : sl_id_first_at(clock_wall_ms()), .reason = GAP_RETENTION};
    struct event *event = gap_event(&gap, false);
    struct buffer json = BUFFER_INIT;

    if (event)
        buffer_append_slice(&json, event->json);
    json.failed = json.failed || !event;
    event_unref(event);
    say(channel, "gap", &json);
}

/* Sends the position at which a stream without a cursor begins. An EventSource that loses the
 * connection before the first event resumes with it and misses nothing. */
static void say_beginning(struct channel *channel)
{
    const struct sl_cursor cursor = beginning_of(channel);
    const struct dialect *dialect = channel->request.dialect;
    struct buffer frame = BUFFER_INIT;

    if (dialect && dialect->greeting && channel->client.format != FORMAT_WEBSOCKET)
        frame_append_chunk(&frame, sl_slice_str(dialect->greeting));
    else if (channel->client.format == FORMAT_SSE && !dialect)
        frame_append_keepalive(&frame, FORMAT_SSE, &cursor);
    stream_say_frame(channel->stream, &frame);
}

static void say_hello(struct channel *channel)
{
    struct buffer json = BUFFER_INIT;
    struct sl_cursor cursor = beginning_of(channel);

    if (cursor.id == 0)
        cursor.id = SL_MOMENT_ID_MIN;
    hello_print(channel, &cursor, &json);
    say(channel, "hello", &json);
}

static void say_unknown_user(void *owner, const char *id, const struct sl_filter_login *login)
{
    struct channel *channel = owner;
    struct buffer text = BUFFER_INIT, json = BUFFER_INIT;

    if (!stream_goes_on(channel->stream))
        return;
    buffer_append_format(&text, "no user of this server has the login '%s'", login->text);
    buffer_append_str(&json, "{\"type\":\"warning\",\"code\":\"unknown_user\",\"message\":");
    buffer_append_json_string(&json, buffer_slice(&text));
    buffer_append_format(&json, ",\"param\":\"%s\"", login->param);
    if (id[0])
        buffer_append_format(&json, ",\"id\":\"%s\"", id);
    buffer_append_char(&json, '}');
    json.failed = json.failed || text.failed;
    buffer_done(&text);
    say(channel, "warning", &json);
}

struct sl_filter_warnings *channel_take_warnings(struct channel *channel)
{
    struct sl_filter_warnings *warnings = channel->request.warnings;

    channel->request.warnings = NULL;
    if (channel->request.since == SINCE_CURSOR) {
        mem_free(warnings);
        return NULL;
    }
    if (warnings)
        user_questions_add(&channel->user_questions, SL_SLICE_NONE, warnings);
    return warnings;
}

static void say_warnings(struct channel *channel)
{
    struct sl_filter_warnings *warnings = channel_take_warnings(channel);

    for (size_t i = 0; warnings && i < warnings->count; i++) {
        struct buffer json = BUFFER_INIT;

        buffer_append_str(&json, "{\"type\":\"warning\",");
        filter_json_append_warning(&warnings->list[i], &json);
        buffer_append_char(&json, '}');
        say(channel, "warning", &json);
    }
    mem_free(warnings);
}

static void say_notice(struct channel *channel)
{
    struct buffer frame = BUFFER_INIT;

    frame_append_message(&frame, channel->client.format, NULL,
                         sl_slice_str(channel->request.notice));
    stream_say_frame(channel->stream, &frame);
}

void channel_say_first(struct channel *channel)
{
    const struct stream_request *request = &channel->request;

    if (request->notice)
        say_notice(channel);
    if (request->hello)
        say_hello(channel);
    if ((request->since == SINCE_NOW && !request->last) ||
        (request->since == SINCE_TIME && request->counts.bucket_ms))
        say_beginning(channel);
    else if (request->since == SINCE_UNUSABLE)
        say_gap_to_head(channel);
    say_warnings(channel);
}

void channel_say_cursor(struct channel *channel)
{
    const struct sl_cursor cursor = channel_cursor(channel);
    struct buffer json = BUFFER_INIT;

    frame_print_cursor(&cursor, &json);
    say(channel, "cursor", &json);
}

void channel_say_token_expiring(struct channel *channel, uint64_t left_ms)
{
    struct buffer json = BUFFER_INIT;

    buffer_append_format(
        &json,
        "{\"type\":\"warning\",\"code\":\"token_expiring\",\"message\":\"this "
        "stream ends with its token, unless the token is replaced\",\"ms\":%" PRIu64 "}",
        left_ms);
    say(channel, "warning", &json);
}

/* Over HTTP only; a WebSocket's close code contains the reason. */
static void say_dialect_disconnect(struct channel *channel)
{
    const struct dialect *dialect = channel->request.dialect;
    struct buffer frame = BUFFER_INIT, json = BUFFER_INIT;

    if (dialect->disconnect && channel->client.format != FORMAT_WEBSOCKET)
        dialect->disconnect(channel->disconnect_reason, &json);
    if (json.size > 0)
        frame_append_message(&frame, channel->client.format, NULL, buffer_slice(&json));
    frame.failed = frame.failed || json.failed;
    stream_say_frame(channel->stream, &frame);
    buffer_done(&json);
}

void channel_say_disconnect(struct channel *channel, uint32_t retry_ms)
{
    struct buffer json = BUFFER_INIT;

    if (channel->request.dialect) {
        say_dialect_disconnect(channel);
        return;
    }
    disconnect_print(channel->disconnect_reason, &channel->disconnect_cursor, retry_ms, &json);
    say(channel, "disconnect", &json);
}

/* --- beginning --- */

void channel_init(struct channel *channel, struct stream *stream,
                  const struct stream_request *request, const struct filter_share *filters)
{
    struct client *client = &channel->client;

    *channel = (struct channel){.stream = stream, .request = *request, .filters = *filters};
    client->transport = &transport;
    client->format = request->format;
    client->question = request->counts;
    client->until = request->until;
    client->encoding = request->encoding;
    client->window_bits = request->window_bits;
    client->says_cursors = request->cursors && request->format != FORMAT_SSE;
    client->fields = request->fields;
    client->sampling.is_wanted = request->samples_when_slow;
    client->last_sent_ms = channel->opened_ms = now_of(channel);
    user_questions_init(&channel->user_questions, stream->streams->settings.user_checks,
                        say_unknown_user, channel);
    list_append(&stream->channels, &channel->node);
    tell_metric(channel, true);
}

int channel_set_name(struct channel *channel, struct sl_slice name, struct sl_slice tail)
{
    channel->name = mem_strndup(name.data ? name.data : "", name.size);
    channel->name_size = name.size;
    if (tail.data)
        channel->client.tail = sl_slice(mem_strndup(tail.data, tail.size), tail.size);
    return channel->name && (!tail.data || channel->client.tail.data) ? 0 : -ENOMEM;
}

/* Equal filters of many clients are stored once. */
static int join_filter(struct channel *channel)
{
    struct stream_request *request = &channel->request;
    struct sl_filter *own = request->filter;
    struct deliver *deliver = deliver_of(channel);
    int r = deliver_subscribe(deliver, &channel->client, own, request->gather_ms);

    if (r < 0)
        return r;
    request->filter = sl_filter_ref(deliver_shared_filter(&channel->client));
    sl_filter_unref(own);
    return 0;
}

/* The connection of a WebSocket in a dialect has no filters or messages of its own. It does not
 * join delivery, and counts as having been sent everything. */
static bool is_bare(const struct stream_request *request)
{
    return request->stream == STREAM_MANY && request->dialect &&
           request->format == FORMAT_WEBSOCKET;
}

int channel_join(struct channel *channel)
{
    struct deliver *deliver = deliver_of(channel);
    const struct stream_request *request = &channel->request;

    if (is_bare(request))
        return 0;
    switch (request->stream) {
    case STREAM_FILTER:
    case STREAM_SAMPLE:
    case STREAM_FIREHOSE:
    case STREAM_TRENDS:
        return join_filter(channel);
    case STREAM_COUNTS:
        if (request->counts.by != COUNT_BY_RULE)
            return join_filter(channel);
        return deliver_subscribe_rules(deliver, &channel->client, request->gather_ms,
                                       &channel->rules);
    case STREAM_HOME:
        return deliver_subscribe_home(deliver, &channel->client,
                                      sl_slice_str(request->token.subject), request->types,
                                      request->gather_ms);
    case STREAM_MANY:
        return deliver_subscribe_rules(deliver, &channel->client, request->gather_ms,
                                       &channel->rules);
    case STREAM_PAST_COUNTS:
        break;
    }
    return -EINVAL;
}

/* Then it asks only for deletions. */
static bool takes_no_posts(const struct stream_request *request)
{
    return request->stream != STREAM_MANY && !(request->types & 1u << SL_EVENT_POST);
}

int channel_resume(struct channel *channel)
{
    const struct stream_request *request = &channel->request;
    struct deliver *deliver = deliver_of(channel);

    if (request->last)
        return deliver_begin_last(deliver, &channel->client, request->last,
                                  takes_no_posts(request));
    if (request->since != SINCE_CURSOR && request->since != SINCE_TIME &&
        (!request->counts.bucket_ms || request->stream == STREAM_TRENDS))
        return 0;
    return deliver_resume(deliver, &channel->client, &request->since_cursor);
}

/* --- position --- */

/* Before the first event of the log it is the lowest valid id. */
struct sl_cursor channel_cursor(const struct channel *channel)
{
    struct sl_cursor cursor = deliver_client_cursor(deliver_of(channel), &channel->client);

    if (cursor.id == 0)
        cursor.id = SL_MOMENT_ID_MIN;
    return cursor;
}

uint64_t channel_until_left_ms(const struct channel *channel)
{
    uint64_t until = channel->request.until, now = clock_wall_ms();
    uint64_t end = sl_id_time_ms(until) + CLIENT_UNTIL_GRACE_MS;
    bool is_told;

    if (!until || (end <= now && channel->client.catcher))
        return UINT64_MAX;
    if (end > now)
        return end - now;
    is_told = !channel->request.counts.bucket_ms || channel_cursor(channel).id >= until;
    return is_told && deliver_client_is_served(&channel->client) ? 0 : UNTIL_RETRY_MS;
}

/* --- end --- */

void channel_suspend(struct channel *channel, enum disconnect_reason reason)
{
    if (channel->is_evicted)
        return;
    channel->is_evicted = true;
    channel->disconnect_reason = (uint8_t)reason;
    channel->disconnect_cursor = channel_cursor(channel);
    if (reason == DISCONNECT_COMPLETE)
        sl_cursor_move(&channel->disconnect_cursor, channel->request.until);
    deliver_suspend(&channel->client); /* nothing after this cursor may be sent */
}

void channel_evict(struct channel *channel, enum disconnect_reason reason)
{
    struct stream *stream = channel->stream;

    if (stream->stage != STREAM_LIVE || stream->end > STREAM_EVICTED)
        return;
    channel_suspend(channel, reason);
    if (channel_is_opened(channel) && !channel->request.dialect) {
        turn_schedule(stream->streams->settings.turn, &stream->turn_end);
    } else {
        channel_suspend(&stream->own, reason); /* dialects do not announce this */
        stream_end(stream, STREAM_EVICTED);
    }
}

void channel_leave_delivery(struct channel *channel)
{
    struct stream_request *request = &channel->request;

    if (channel->rules) {
        channel->left_filters = rule_set_count(channel->rules);
        for (size_t i = 0; i < channel->left_filters; i++)
            channel->left_filter_bytes +=
                sl_filter_key(rule_set_at(channel->rules, i)->filter).size;
        channel->rules = NULL;
    } else if (request->filter) {
        channel->left_filters = 1;
        channel->left_filter_bytes = sl_filter_key(request->filter).size;
        sl_filter_unref(request->filter);
        request->filter = NULL;
    }
    deliver_leave(&channel->client);
    stream_filters_settle(channel->stream->streams, &request->token, 0, &channel->filters);
}

void channel_log_end(const struct channel *channel, const char *why)
{
    const struct stream_request *request = &channel->request;
    struct sl_slice name = channel_name(channel);
    char subject[LOG_QUOTE_SIZE];

    log_info("stream_end",
             "connection=\"%s\" subject=%s stream=%s transport=%s filters=%zu filter_bytes=%zu "
             "seconds=%.1f "
             "events=%" PRIu64 " bytes=%" PRIu64 " why=%s%s%.*s",
             channel->stream->connection_id,
             log_quote(sl_slice_str(request->token.subject), subject),
             stream_kind_name(request->stream), stream_format_name(request->format),
             channel->left_filters, channel->left_filter_bytes,
             (double)(now_of(channel) - channel->opened_ms) / 1000, channel->client.sent_events,
             channel->client.sent_bytes, why,
             !name.data         ? ""
             : request->dialect ? " opened=yes"
                                : " opened=",
             SL_SLICE_ARG(request->dialect ? SL_SLICE("") : name));
}

void channel_done(struct channel *channel)
{
    tell_metric(channel, false);
    user_questions_forget(&channel->user_questions);
    stream_request_done(&channel->request);
    list_remove(&channel->stream->channels, &channel->node);
    mem_free((char *)channel->client.tail.data);
    mem_free(channel->name);
}
