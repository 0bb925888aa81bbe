/* streams.c - admits streams, and keeps the list of them.
 *
 * front/stream_request.h parses a request and checks permissions; this file checks whether the
 * server can take another stream now. The list of all streams is shared by the workers
 * (front/admission.h). When a stream of another worker replaces one of ours, a descriptor becomes
 * readable. Limits: max-connections for all streams, and limits of a subject and of an address. */
#include "gateway/streams/streams.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/stable_hash.h"
#include "gateway/access/control_channel.h"
#include "gateway/delivery/dictionaries.h"
#include "gateway/front/bearer.h"
#include "gateway/front/dialect.h"
#include "gateway/front/event_fields.h"
#include "gateway/front/use_check.h"
#include "gateway/http/form.h"
#include "gateway/http/http_bodies.h"
#include "gateway/streams/connections.h"
#include "gateway/streams/filter_estimate.h"
#include "gateway/streams/late_answer.h"
#include "gateway/streams/past_counts.h"
#include "gateway/streams/stream.h"

/* --- admission --- */

static enum admission_verdict ask_admission(struct streams *streams, const struct wire *wire,
                                            const struct stream_request *request,
                                            admission_ticket *ret_ticket)
{
    char room[WIRE_ADDRESS_SIZE];
    struct sl_slice address = use_prefix(wire_client_address(wire, room));
    struct admission_limits limits;
    enum admission_verdict verdict =
        streams_limits_here(streams, &request->token, address, &limits);

    if (verdict != ADMISSION_GRANTED)
        return verdict;
    return admission_enter(streams->settings.admission, &limits, streams->settings.worker,
                           sl_slice_str(request->token.holder), address, ret_ticket);
}

static int check_admission(struct streams *streams, const struct wire *wire,
                           const struct stream_request *request, admission_ticket *ret_ticket,
                           struct http_refusal *refusal)
{
    static const struct {
        enum metric metric;
        const char *code, *message;
    } rows[] = {
        [ADMISSION_FULL] = {METRIC_ADMISSION_FULL, "too_many_connections",
                            "this server has too many streams"},
        [ADMISSION_SUBJECT_FULL] = {METRIC_ADMISSION_SUBJECT_FULL, "too_many_connections",
                                    "this token's subject has too many streams"},
        [ADMISSION_ADDRESS_FULL] = {METRIC_ADMISSION_ADDRESS_FULL, "too_many_connections",
                                    "this address has too many streams"},
    };
    enum admission_verdict verdict;

    if (streams_check_readiness(streams, refusal) < 0)
        return -EPROTO;
    verdict = ask_admission(streams, wire, request, ret_ticket);
    if (verdict == ADMISSION_GRANTED)
        return 0;
    metric_add(streams->settings.metrics, rows[verdict].metric, 1);
    http_refuse(refusal, 429, rows[verdict].code, NULL, "%s", rows[verdict].message);
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

static int refuse_for_now(struct http_refusal *refusal, const char *message)
{
    http_refuse(refusal, 503, "dictionary_not_ready", "zstd_dictionary", "%s", message);
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

/* *ret_dictionary is set if the request names one. */
static int find_dictionary(const struct streams *streams, const struct stream_request *request,
                           const struct dictionary **ret_dictionary, struct http_refusal *refusal)
{
    const struct dictionaries *all = streams->settings.dictionaries;
    const struct dictionary *dictionary;

    if (!request->dictionary)
        return 0;
    dictionary = dictionaries_find(all, request->dictionary);
    if (!dictionary && !dictionaries_are_current(all))
        return refuse_for_now(refusal, "the dictionaries have not been read yet");
    if (!dictionary)
        return http_refuse(refusal, 400, "unknown_dictionary", "zstd_dictionary",
                           "there is no dictionary %" PRIu32, request->dictionary);
    if (dictionary->known.withdrawn_ms)
        return http_refuse(refusal, 410, "dictionary_withdrawn", "zstd_dictionary",
                           "dictionary %" PRIu32 " has been withdrawn", request->dictionary);
    if (!dictionary->tables)
        return refuse_for_now(refusal, "this dictionary has not been read yet");
    *ret_dictionary = dictionary;
    return 0;
}

int stream_refuse_for_memory(struct http_refusal *refusal)
{
    http_refuse(refusal, 503, "no_memory", NULL, "out of memory");
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

int streams_check_head(struct streams *streams, const struct http_head *head,
                       struct http_refusal *refusal, enum token_fault *ret_fault)
{
    static const char *const names[] = {"access_token"};
    struct sl_slice values[] = {SL_SLICE_NONE};
    struct form form = {names, 1, values, NULL};
    struct http_refusal ignored;
    struct token token;
    int r;

    *ret_fault = TOKEN_OK;
    r = form_read(&form, &head->request.query, 1, &ignored);
    if (r != -ENOMEM)
        r = bearer_check(streams->settings.front->policy, &head->request, values[0],
                         clock_wall_ms(), &token, refusal, ret_fault);
    form_done(&form);
    if (r == -EPROTO && refusal->status == 401 && *ret_fault == TOKEN_OK &&
        head->body_size <= HTTP_SMALL_BODY)
        return 0; /* there is none in the head; it may be in the body */
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}

int streams_check_dialect(struct streams *streams, const struct dialect *dialect, bool is_private,
                          const struct http_head *head, struct http_refusal *refusal,
                          enum token_fault *ret_fault)
{
    struct buffer room = BUFFER_INIT;
    const struct dialect_request asking = {.http = &head->request,
                                           .front = streams->settings.front,
                                           .times = stream_times_now(streams),
                                           .is_private = is_private,
                                           .room = &room};
    struct sl_slice jwt = SL_SLICE_NONE;
    struct token token;
    int r;

    *ret_fault = TOKEN_OK;
    r = dialect->find_token ? dialect->find_token(&asking, &jwt, refusal) : 0;
    if (r == 0 && !jwt.data)
        r = streams_check_head(streams, head, refusal, ret_fault);
    else if (r == 0)
        r = bearer_check_token(streams->settings.front->policy, &head->request, jwt,
                               asking.times.now_ms, &token, refusal, ret_fault);
    buffer_done(&room);
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}

/* --- beginning --- */

/* NULL: out of memory. */
static struct stream *stream_new(struct streams *streams, const struct stream_request *request,
                                 const struct filter_share *filters, admission_ticket ticket)
{
    const struct stream_protocol *protocol =
        request->format == FORMAT_WEBSOCKET ? &websocket_protocol : &http_stream_protocol;
    struct stream *stream = mem_zalloc(protocol->size);

    if (!stream)
        return NULL;
    stream->protocol = protocol;
    stream->streams = streams;
    stream->ticket = ticket;
    streams->random++;
    connection_id_print(control_channel_worker_name(streams->settings.control), ticket,
                        hash_bytes(streams->id_key, &streams->random, sizeof(streams->random)),
                        stream->connection_id);
    list_init(&stream->channels);
    channel_init(&stream->own, stream, request, filters);
    return stream;
}

static int begin_past_counts(struct streams *streams, struct http_connection *connection,
                             struct stream_request *request, struct http_refusal *refusal)
{
    int r = streams_check_readiness(streams, refusal);

    if (r < 0)
        stream_request_done(request);
    else
        r = past_counts_begin(streams, connection, request, refusal);
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}

int streams_estimate(struct streams *streams, struct http_connection *connection,
                     const struct http_head *head, struct http_refusal *refusal,
                     enum token_fault *ret_fault)
{
    int r;

    *ret_fault = TOKEN_OK;
    r = streams_check_readiness(streams, refusal);
    if (r == 0)
        r = filter_estimate_begin(streams, connection, &head->request, refusal, ret_fault);
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}

void stream_opening_undo(struct streams *streams, struct stream_opening *opening)
{
    admission_leave(streams->settings.admission, opening->ticket);
    stream_filters_settle(streams, &opening->request.token, 0, &opening->share);
    stream_request_done(&opening->request);
}

int stream_opening_check(struct streams *streams, const struct wire *wire,
                         struct stream_opening *opening, struct http_refusal *refusal)
{
    const struct dictionary *ignored;
    int r;

    opening->share = (struct filter_share){0};
    r = stream_check_request(streams, &opening->request, &opening->share, refusal);
    if (r == 0)
        r = find_dictionary(streams, &opening->request, &ignored, refusal);
    if (r == 0)
        r = check_admission(streams, wire, &opening->request, &opening->ticket, refusal);
    if (r < 0) {
        stream_filters_settle(streams, &opening->request.token, 0, &opening->share);
        stream_request_done(&opening->request);
    }
    return r;
}

struct stream *stream_opening_take(struct streams *streams, struct stream_opening *opening,
                                   struct http_refusal *refusal)
{
    const struct dictionary *dictionary = NULL; /* looked up again, because they may have changed */
    struct stream *stream = NULL;

    stream_refuse_for_memory(refusal);
    if (find_dictionary(streams, &opening->request, &dictionary, refusal) == 0)
        stream = stream_new(streams, &opening->request, &opening->share, opening->ticket);
    if (stream)
        stream->own.client.dictionary = dictionary;
    else
        stream_opening_undo(streams, opening);
    return stream;
}

/* Begins the stream of opening->request, which is permitted, if this server has room for it. */
static int begin(struct streams *streams, struct http_connection *connection,
                 struct stream_opening *opening, const struct http_head *head,
                 struct stream **ret_stream, struct http_refusal *refusal)
{
    int r = stream_use_check_replay(head->request.use, &opening->request, refusal);
    struct stream *stream;
    struct buffer headers;

    if (r < 0) {
        stream_request_done(&opening->request);
        return r;
    }
    r = stream_opening_check(streams, http_connection_wire(connection), opening, refusal);
    if (r < 0)
        return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
    stream = stream_opening_take(streams, opening, refusal);
    if (!stream)
        return -EPROTO;
    headers = http_connection_take_headers(connection);
    http_take_over(connection, &stream->wire, &stream_wire_callbacks);
    stream_start(stream, head, buffer_slice(&headers));
    buffer_done(&headers);
    *ret_stream = stream;
    return 0;
}

int streams_begin(struct streams *streams, struct http_connection *connection,
                  enum stream_kind kind, const struct http_head *head, struct http_refusal *refusal,
                  enum token_fault *ret_fault)
{
    const struct http_request *http = &head->request;
    const struct stream_times times = stream_times_now(streams);
    struct stream_opening opening;
    struct stream *ignored;
    int r;

    r = stream_request_read(streams->settings.front, kind, http, &times, &opening.request, refusal,
                            ret_fault);
    if (r < 0)
        return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
    if (opening.request.format == FORMAT_SSE && stream_request_is_over(&opening.request)) {
        stream_request_done(&opening.request);
        http_answer(connection, &(struct http_answer){.status = 204}); /* it stays away */
        return 0;
    }
    if (kind == STREAM_PAST_COUNTS)
        return begin_past_counts(streams, connection, &opening.request, refusal);
    return begin(streams, connection, &opening, head, &ignored, refusal);
}

static int read_dialect(const struct streams *streams, const struct dialect *dialect,
                        const struct dialect_route *route, const struct dialect_request *asking,
                        struct stream_request *ret_request, bool *ret_has_kept_rules,
                        struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct dialect_stream asked = {0};
    struct sl_slice jwt = SL_SLICE_NONE;
    bool is_read = true;
    int r;

    *ret_fault = TOKEN_OK;
    r = dialect->find_token ? dialect->find_token(asking, &jwt, refusal) : 0;
    if (r == 0)
        is_read = (r = route->read(asking, &asked, refusal)) != -EPROTO;
    if (!is_read)
        r = stream_request_refuse_asked(streams->settings.front, &asked, jwt, asking->http,
                                        &asking->times, refusal, ret_fault);
    if (r == 0)
        r = stream_request_read_asked(streams->settings.front, &asked, jwt, asking->http,
                                      &asking->times, ret_request, refusal, ret_fault);
    if (r == 0) {
        ret_request->dialect = dialect;
        ret_request->path = route->path;
        ret_request->notice = asked.notice;
        ret_request->fields = event_fields_of_dialect(dialect->id, asked.options);
    }
    *ret_has_kept_rules = asked.has_kept_rules;
    dialect_stream_done(&asked);
    return r;
}

/* Reads the request of the connection itself: its token. */
static int read_connection(const struct streams *streams, const struct dialect *dialect,
                           const struct dialect_request *asking, struct stream_request *ret_request,
                           struct http_refusal *refusal, enum token_fault *ret_fault)
{
    const struct dialect_stream connection = {.stream = STREAM_MANY, .format = FORMAT_WEBSOCKET};
    struct sl_slice jwt = SL_SLICE_NONE;
    int r = dialect->find_token ? dialect->find_token(asking, &jwt, refusal) : 0;

    if (r == 0)
        r = stream_request_read_asked(streams->settings.front, &connection, jwt, asking->http,
                                      &asking->times, ret_request, refusal, ret_fault);
    if (r == 0) {
        ret_request->dialect = dialect;
        ret_request->fields = event_fields_of_dialect(dialect->id, 0);
    }
    return r;
}

/* Reads the first stream of the connection. */
static int read_first(const struct streams *streams, const struct dialect_route *route,
                      const struct dialect_request *asking, const struct stream_request *connection,
                      struct dialect_stream *ret_asked, struct http_refusal *refusal)
{
    struct stream_request request;
    int r = route->open(asking, ret_asked, refusal);

    if (r < 0 || ret_asked->first == DIALECT_IDLES)
        return r;
    r = stream_request_read_asked_opened(streams->settings.front, connection, ret_asked,
                                         &asking->times, &request, refusal);
    if (r == 0)
        stream_request_done(&request);
    return r;
}

static int begin_dialect_websocket(struct streams *streams, struct http_connection *connection,
                                   const struct dialect *dialect, const struct dialect_route *route,
                                   const struct dialect_request *asking,
                                   const struct http_head *head, struct http_refusal *refusal,
                                   enum token_fault *ret_fault)
{
    struct dialect_stream asked = {0};
    struct stream_opening opening;
    struct http_refusal later;
    struct stream *stream;
    bool is_refused;
    int r = read_connection(streams, dialect, asking, &opening.request, refusal, ret_fault);

    if (r < 0)
        return r;
    opening.request.path = route->path;
    r = read_first(streams, route, asking, &opening.request, &asked, &later);
    is_refused = r == -EPROTO;
    if (is_refused && !dialect->sends_first_refusal)
        *refusal = later;
    else if (is_refused)
        r = 0;
    if (r < 0)
        stream_request_done(&opening.request);
    else
        r = begin(streams, connection, &opening, head, &stream, refusal);
    if (r == 0)
        dialect_websocket_begin(websocket_of(stream), &asked, is_refused ? &later : NULL);
    dialect_stream_done(&asked);
    return r;
}

/* A stream over HTTP. */
static int begin_reading(struct streams *streams, struct http_connection *connection,
                         const struct dialect *dialect, const struct dialect_route *route,
                         const struct dialect_request *asking, const struct http_head *head,
                         streams_refused_in_fn refused, struct http_refusal *refusal,
                         enum token_fault *ret_fault)
{
    struct stream_opening opening;
    struct stream *ignored;
    bool has_kept_rules;
    int r = read_dialect(streams, dialect, route, asking, &opening.request, &has_kept_rules,
                         refusal, ret_fault);

    if (r < 0)
        return r;
    if (has_kept_rules)
        return rule_entry_begin(streams, connection, &opening.request, head, refused, refusal);
    return begin(streams, connection, &opening, head, &ignored, refusal);
}

int streams_begin_dialect(struct streams *streams, struct http_connection *connection,
                          const struct dialect *dialect, const struct dialect_route *route,
                          bool is_private, const struct http_head *head,
                          streams_refused_in_fn refused, struct http_refusal *refusal,
                          enum token_fault *ret_fault)
{
    struct buffer room = BUFFER_INIT;
    const struct dialect_request asking = {.http = &head->request,
                                           .front = streams->settings.front,
                                           .times = stream_times_now(streams),
                                           .is_private = is_private,
                                           .room = &room};
    int r;

    *ret_fault = TOKEN_OK;
    if (head->request.is_upgrade)
        r = begin_dialect_websocket(streams, connection, dialect, route, &asking, head, refusal,
                                    ret_fault);
    else
        r = begin_reading(streams, connection, dialect, route, &asking, head, refused, refusal,
                          ret_fault);
    buffer_done(&room);
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}

/* --- all streams --- */

void streams_set_ready(struct streams *streams, bool is_ready)
{
    streams->is_ready = is_ready;
    if (!is_ready)
        late_answers_end_all(streams);
}

void streams_drain(struct streams *streams, bool has_successor, bool hurries)
{
    streams->is_draining = true;
    streams->has_successor = has_successor;
    LIST_EACH(&streams->list, node)
    stream_drain(LIST_OWNER(node, struct stream, node), hurries);
}

size_t streams_count(const struct streams *streams)
{
    return streams->list.count;
}

static void replace(void *owner, admission_ticket ticket)
{
    struct streams *streams = owner;

    if (streams->by_ticket[ticket])
        stream_evict(streams->by_ticket[ticket], DISCONNECT_REPLACED);
}

static void on_replaced(uv_poll_t *watch, int status, int events)
{
    struct streams *streams = watch->data;

    (void)status;
    (void)events;
    admission_take_replaced(streams->settings.admission, streams->settings.worker, replace,
                            streams);
}

static int watch_replaced(struct streams *streams)
{
    struct admission *admission = streams->settings.admission;
    int r;

    streams->by_ticket =
        mem_zalloc(mem_array_size(admission_size(admission), sizeof(*streams->by_ticket)));
    streams->replaced_watch = mem_zalloc(sizeof(*streams->replaced_watch));
    if (!streams->by_ticket || !streams->replaced_watch)
        return -ENOMEM;
    r = uv_poll_init(streams->settings.loop, streams->replaced_watch,
                     admission_wake_fd(admission, streams->settings.worker));
    if (r < 0) {
        mem_free(streams->replaced_watch);
        streams->replaced_watch = NULL;
        return r;
    }
    streams->replaced_watch->data = streams;
    return uv_poll_start(streams->replaced_watch, UV_READABLE, on_replaced);
}

struct streams *streams_new(const struct streams_settings *settings)
{
    struct streams *streams = mem_zalloc(sizeof(*streams));

    if (!streams)
        return NULL;
    streams->settings = *settings;
    streams->random = hash_key_random().k1;
    streams->id_key = hash_key_random();
    list_init(&streams->list);
    list_init(&streams->late_answers);
    list_init(&streams->connection_requests);
    list_init(&streams->rule_requests);
    list_init(&streams->connection_queries);
    list_init(&streams->rule_waits);
    list_init(&streams->kept_readings);
    list_init(&streams->kept_streams);
    stream_memory_init(streams);
    streams->budget = filter_budget_new();
    streams->inflater = websocket_inflater_new();
    if (!streams->budget || !streams->inflater || watch_replaced(streams) < 0 ||
        survey_start(streams) < 0) {
        streams_close(streams);
        streams_free(streams);
        return NULL;
    }
    control_channel_set_asked(settings->control, connections_answer, streams);
    return streams;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

void streams_close(struct streams *streams)
{
    LIST_EACH(&streams->list, node)
    stream_end(LIST_OWNER(node, struct stream, node), STREAM_PEER_LEFT);
    survey_stop(streams);
    if (streams->replaced_watch)
        uv_close((uv_handle_t *)streams->replaced_watch, free_handle);
    streams->replaced_watch = NULL;
}

void streams_free(struct streams *streams)
{
    if (!streams)
        return;
    assert(list_is_empty(&streams->list));
    filter_budget_free(streams->budget);
    websocket_inflater_free(streams->inflater);
    mem_free(streams->by_ticket);
    mem_free(streams);
}
