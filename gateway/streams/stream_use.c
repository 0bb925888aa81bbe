/* stream_use.c - adds what streams send to the accounts of their subjects and addresses.
 *
 * Delivery counts for each client anyway. Once a second the difference since the last time is added
 * for a quarter of the streams, and for each stream at its end. So events cost nothing more, and a
 * stream may exceed its daily limit by what is sent in four seconds. */
#include "gateway/streams/stream.h"

#include <string.h>

#include "base/clock.h"
#include "gateway/front/fair_use_exchange.h"
#include "gateway/front/use_check.h"

enum { PARTS = 4 /* of the streams; one is added each time */ };

static struct fair_use *uses_of(const struct stream *stream)
{
    return stream->streams->settings.uses;
}

static struct use_times times_now(void)
{
    return (struct use_times){clock_monotonic_ms(), clock_wall_ms()};
}

static struct use_whose subject_of(const struct stream *stream)
{
    return (struct use_whose){USE_OF_SUBJECT, sl_slice_str(stream->own.request.token.holder)};
}

static struct use_whose address_of(const struct stream *stream)
{
    return (struct use_whose){USE_OF_ADDRESS, sl_slice(stream->address, stream->address_size)};
}

/* What a channel was sent since the last call. */
static void take_news(struct channel *channel, uint64_t sums[USE_SUMS])
{
    const struct client *client = &channel->client;
    const uint64_t now[USE_SUMS] = {client->sent_events, client->sent_bytes, client->replayed};

    for (int i = 0; i < USE_SUMS; i++) {
        sums[i] += now[i] - channel->added[i];
        channel->added[i] = now[i];
    }
}

static bool is_above(const struct use_limits *limits, const struct use_state *state,
                     const uint64_t sums[USE_SUMS])
{
    for (int i = 0; i < USE_SUMS; i++) {
        if (sums[i] > 0 && limits->of[USE_RATES + i] != USE_UNBOUNDED &&
            state->everywhere[i] >= limits->of[USE_RATES + i])
            return true;
    }
    return false;
}

/* true: its subject or its address has exceeded the limit. */
static bool add(const struct stream *stream, const uint64_t sums[USE_SUMS])
{
    const struct front_settings *front = stream->streams->settings.front;
    const struct use_limits limits =
        use_limits_of(&front->subject_uses, &stream->own.request.token);
    const struct use_whose subject = subject_of(stream), address = address_of(stream);
    const struct use_times times = times_now();
    struct use_state state;
    bool is_over;

    fair_use_add(uses_of(stream), &subject, sums, &limits, &times, &state);
    is_over = is_above(&limits, &state, sums);
    if (address.name.size == 0)
        return is_over;
    fair_use_add(uses_of(stream), &address, sums, &front->address_uses, &times, &state);
    return is_over || is_above(&front->address_uses, &state, sums);
}

static void add_news(struct stream *stream)
{
    uint64_t sums[USE_SUMS] = {0};

    LIST_EACH(&stream->channels, node)
    take_news(LIST_OWNER(node, struct channel, node), sums);
    if (sums[0] + sums[1] + sums[2] > 0 && add(stream, sums) && stream_goes_on(stream))
        stream_evict(stream, DISCONNECT_QUOTA);
}

static void mark(const struct stream *stream)
{
    const struct use_whose subject = subject_of(stream), address = address_of(stream);
    const struct use_times times = times_now();

    fair_use_mark(uses_of(stream), &subject, &times);
    if (address.name.size > 0)
        fair_use_mark(uses_of(stream), &address, &times);
}

void stream_use_begin(struct stream *stream)
{
    char room[WIRE_ADDRESS_SIZE];
    struct sl_slice address = use_prefix(wire_client_address(&stream->wire, room));

    stream->address_size = (uint8_t)address.size;
    if (address.size > 0)
        memcpy(stream->address, address.data, address.size);
    if (uses_of(stream))
        mark(stream);
}

void stream_use_add(struct stream *stream)
{
    if (uses_of(stream))
        add_news(stream);
}

void stream_use_end(const struct stream *stream)
{
    if (uses_of(stream))
        mark(stream);
}

void streams_add_use(struct streams *streams)
{
    size_t size = admission_size(streams->settings.admission);
    size_t part = size / PARTS + 1, first = streams->use_part * part;

    for (size_t i = first; i < first + part && i < size; i++) {
        if (streams->by_ticket[i])
            stream_use_add(streams->by_ticket[i]);
    }
    streams->use_part = (streams->use_part + 1) % PARTS;
}

uint32_t stream_use_retry_ms(uint64_t random)
{
    enum { SPREAD_MS = 60000 };

    return (uint32_t)(use_day_left_ms(clock_wall_ms()) + random % SPREAD_MS);
}

int stream_use_check_replay(struct use_check *check, const struct stream_request *request,
                            struct http_refusal *refusal)
{
    bool is_replay = request->since == SINCE_CURSOR || request->since == SINCE_TIME ||
                     request->since == SINCE_UNUSABLE || request->last > 0;

    return check && is_replay ? use_check_replay(check, &request->token, refusal) : 0;
}

static struct use_check check_of(const struct streams *streams, struct sl_slice address,
                                 struct buffer *headers)
{
    const struct front_settings *front = streams->settings.front;

    return (struct use_check){
        .uses = streams->settings.uses,
        .of_subject = &front->subject_uses,
        .of_address = &front->address_uses,
        .asks = USE_ASKS_STREAM,
        .address = address,
        .times = times_now(),
        .headers = headers,
        .refused = USE_COUNT,
    };
}

void stream_use_count_refused(const struct streams *streams, const struct use_check *check)
{
    if (check->refused != USE_COUNT)
        metric_add(streams->settings.metrics, metric_at(METRIC_USE_REFUSED, check->refused), 1);
}

struct use_check stream_use_check_of_message(const struct stream *stream, struct buffer *headers)
{
    struct use_check check =
        check_of(stream->streams, sl_slice(stream->address, stream->address_size), headers);

    check.asks = USE_ASKS_LATER; /* it is neither a connection nor a request */
    return check;
}

int stream_use_check_opened(const struct stream *stream, const struct stream_request *request,
                            struct http_refusal *refusal)
{
    struct use_check check =
        check_of(stream->streams, sl_slice(stream->address, stream->address_size), NULL);
    int r = check.uses ? stream_use_check_replay(&check, request, refusal) : 0;

    stream_use_count_refused(stream->streams, &check);
    return r;
}

int stream_use_check(struct streams *streams, struct http_connection *connection,
                     const struct stream_request *request, struct buffer *headers,
                     struct http_refusal *refusal)
{
    char room[WIRE_ADDRESS_SIZE];
    struct use_check check = check_of(
        streams, use_prefix(wire_client_address(http_connection_wire(connection), room)), headers);
    int r = 0;

    if (check.uses)
        r = use_check_subject(&check, &request->token, refusal);
    if (check.uses && r == 0)
        r = stream_use_check_replay(&check, request, refusal);
    stream_use_count_refused(streams, &check);
    return r;
}

/* The limit of this gateway alone, for one that holds for all gateways together; 0: there is none,
 * or it is used up elsewhere. */
static uint32_t left_here(uint64_t limit, uint64_t elsewhere, bool replaces)
{
    uint64_t left = limit > elsewhere ? limit - elsewhere : 0;

    if (limit == USE_UNBOUNDED)
        return 0;
    if (left == 0 && replaces)
        left = 1; /* the oldest stream may be here, and is replaced then */
    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

enum admission_verdict streams_limits_here(const struct streams *streams, const struct token *token,
                                           struct sl_slice address,
                                           struct admission_limits *ret_limits)
{
    const struct front_settings *front = streams->settings.front;
    const struct use_limits limits = use_limits_of(&front->subject_uses, token);
    const struct use_whose subject = {USE_OF_SUBJECT, sl_slice_str(token->holder)};
    const struct use_whose prefix = {USE_OF_ADDRESS, address};
    const struct use_times times = times_now();
    uint64_t of_subject = limits.of[USE_STREAMS], of_address = front->address_uses.of[USE_STREAMS];
    struct use_state here = {0}, there = {0};

    if (streams->settings.uses)
        fair_use_look(streams->settings.uses, &subject, &limits, &times, &here);
    if (streams->settings.uses && address.size > 0)
        fair_use_look(streams->settings.uses, &prefix, &front->address_uses, &times, &there);
    if (here.streams_elsewhere > 0) /* have the number updated */
        fair_use_mark(streams->settings.uses, &subject, &times);
    if (there.streams_elsewhere > 0)
        fair_use_mark(streams->settings.uses, &prefix, &times);
    *ret_limits = front->admission;
    ret_limits->per_subject =
        left_here(of_subject, here.streams_elsewhere, front->admission.replace);
    ret_limits->per_address = left_here(of_address, there.streams_elsewhere, false);
    if (of_subject != USE_UNBOUNDED && ret_limits->per_subject == 0)
        return ADMISSION_SUBJECT_FULL;
    if (of_address != USE_UNBOUNDED && ret_limits->per_address == 0)
        return ADMISSION_ADDRESS_FULL;
    return ADMISSION_GRANTED;
}
