/* http_connection.c - the state of an HTTP connection, from one request to the next.
 *
 * A connection is in one stage: it reads a head, reads a body, is being answered, or lingers. Input
 * is parsed in the buffer into which libwebsockets read it; only an incomplete head and pipelined
 * requests are copied into the connection's own buffer. So the usual request, one packet with a
 * short response, costs a read, a parse, a send, and no allocation.
 *
 * Responses to requests that arrived together are sent together. While a request is being answered
 * later, or the peer does not read its responses, nothing is read from the connection.
 *
 * Limits: a head by max_head_bytes (431), a body by max_body_bytes (413), all large bodies by
 * http_bodies.h (503); pipelined input by one read after the head that is being answered; responses
 * that the peer has not read by OUTPUT_MAX and one more; waiting by http_waiting.h; input of a
 * lingering peer by THROWN_AWAY_MAX; and the requests of a connection in one turn of the loop by
 * REQUESTS_PER_TURN. */
#include "gateway/http/http_connection.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"

enum {
    THROWN_AWAY_MAX = 4 << 20, /* bytes that a lingering peer may send */
    REQUESTS_PER_TURN = 32,
    OUTPUT_MAX = 65536 /* bytes of responses that are collected before they are sent */
};

/* --- the end --- */

static void incoming_free(struct http_connection *connection)
{
    struct http_incoming *incoming = connection->incoming;

    if (!incoming)
        return;
    http_bodies_remove(&connection->server->bodies, &incoming->share);
    buffer_done(&incoming->head);
    buffer_done(&incoming->body);
    mem_free(incoming);
    connection->incoming = NULL;
}

static void run_end(struct turn_task *task)
{
    struct http_connection *connection = LIST_OWNER(task, struct http_connection, turn_end);

    wire_close(&connection->wire);
    buffer_done(&connection->input);
    mem_free(connection);
}

/* Ends the connection; it is freed at the end of the turn. */
static void retire(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    http_wait(&server->waiting, &connection->waiter, HTTP_WAIT_NONE);
    connection->stage = HTTP_STAGE_ENDED;
    proxy_gate_free(connection->gate);
    connection->gate = NULL;
    incoming_free(connection);
    buffer_done(&connection->headers);
    if (list_contains(&connection->put_off))
        list_remove(&server->put_off, &connection->put_off);
    list_remove(&server->connections, &connection->node);
    turn_schedule(server->settings.turn, &connection->turn_end);
}

void http_connection_end(struct http_connection *connection)
{
    void (*abandoned)(void *owner) = connection->abandoned;

    if (connection->stage == HTTP_STAGE_ENDED)
        return;
    metric_sub(connection->server->settings.metrics, METRIC_CONNECTIONS, 1);
    retire(connection);
    connection->abandoned = NULL;
    if (abandoned)
        abandoned(connection->answerer);
}

static void end_broken(struct http_connection *connection)
{
    metric_add(connection->server->settings.metrics, METRIC_BROKEN, 1);
    http_connection_end(connection);
}

/* --- responses --- */

static void wait_for(struct http_connection *connection, enum http_wait wait)
{
    if (connection->waiter.wait != wait)
        connection->held_before = connection->wire.held.size;
    http_wait(&connection->server->waiting, &connection->waiter, wait);
}

static bool may_read(const struct http_connection *connection)
{
    return connection->stage == HTTP_STAGE_LINGERING ||
           (connection->stage <= HTTP_STAGE_BODY && !connection->wire.is_blocked &&
            !list_contains(&connection->put_off));
}

static void on_next_turn(uv_idle_t *idle);

/* Continues with pipelined requests in the next turn of the loop. */
static void put_off(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    if (list_contains(&connection->put_off))
        return;
    list_append(&server->put_off, &connection->put_off);
    if (server->put_off.count == 1)
        uv_idle_start(server->next_turn, on_next_turn);
}

/* Puts the connection into the list of its stage, and starts or stops reading accordingly. */
static void settle(struct http_connection *connection)
{
    if (connection->stage == HTTP_STAGE_LAST && !connection->wire.is_blocked) {
        wire_finish(&connection->wire);
        connection->stage = HTTP_STAGE_LINGERING;
        buffer_done(&connection->input);
    }
    switch ((enum http_stage)connection->stage) {
    case HTTP_STAGE_HEAD:
        if (connection->wire.is_blocked)
            wait_for(connection, HTTP_WAIT_SENDING);
        else if (connection->is_served && connection->input.size == 0)
            wait_for(connection, HTTP_WAIT_IDLE);
        else
            wait_for(connection, HTTP_WAIT_PENDING);
        break;
    case HTTP_STAGE_BODY:
        wait_for(connection, HTTP_WAIT_PENDING);
        break;
    case HTTP_STAGE_ANSWERING: /* whoever answers has a deadline */
        wait_for(connection, HTTP_WAIT_NONE);
        break;
    case HTTP_STAGE_LAST:
        wait_for(connection, HTTP_WAIT_SENDING);
        break;
    case HTTP_STAGE_LINGERING:
        wait_for(connection, HTTP_WAIT_LINGERING);
        break;
    case HTTP_STAGE_GATE:
    case HTTP_STAGE_ENDED:
        return;
    }
    if (may_read(connection))
        wire_resume_reading(&connection->wire);
    else
        wire_stop_reading(&connection->wire);
}

static int send_output(struct http_connection *connection, struct buffer *output)
{
    int r = output->failed ? -ENOMEM : 0;

    if (r == 0 && output->size > 0)
        r = wire_write(&connection->wire, buffer_slice(output));
    if (output->capacity > 2 * OUTPUT_MAX)
        buffer_done(output); /* the usual response does not need this */
    else
        buffer_clear(output);
    return r;
}

void http_answer(struct http_connection *connection, const struct http_answer *answer)
{
    struct http_server *server = connection->server;
    struct buffer *out = connection->is_serving ? &server->output : &server->scratch;
    struct http_answer_form form = {
        .is_head = connection->is_head,
        .is_http_1_0 = connection->is_http_1_0,
        .closes = connection->closes || server->is_draining,
        .date = http_date_line(&server->date, clock_wall_ms()),
        .headers = buffer_slice(&connection->headers),
    };

    assert(connection->stage == HTTP_STAGE_ANSWERING);
    http_answer_print(&form, answer, out);
    out->failed = out->failed || connection->headers.failed;
    buffer_done(&connection->headers);
    connection->abandoned = NULL;
    connection->is_served = true;
    connection->stage = form.closes ? HTTP_STAGE_LAST : HTTP_STAGE_HEAD;
    if (connection->is_serving) {
        if (out->failed) /* nothing may follow a missing response */
            end_broken(connection);
        return;
    }
    if (send_output(connection, out) < 0) {
        end_broken(connection);
        return;
    }
    if (connection->stage == HTTP_STAGE_HEAD && connection->input.size > 0)
        put_off(connection);
    settle(connection);
}

void http_answer_refusal(struct http_connection *connection, const struct http_refusal *refusal)
{
    struct buffer headers = BUFFER_INIT, body = BUFFER_INIT;

    http_refusal_append_headers(refusal, &headers);
    http_refusal_print(refusal, &body);
    if (headers.failed || body.failed)
        connection->headers.failed = true;
    http_answer(connection, &(struct http_answer){.status = refusal->status,
                                                  .content_type = "application/json",
                                                  .headers = buffer_slice(&headers),
                                                  .body = buffer_slice(&body)});
    buffer_done(&headers);
    buffer_done(&body);
}

void http_answer_later(struct http_connection *connection, void (*abandoned)(void *owner),
                       void *owner)
{
    assert(connection->stage == HTTP_STAGE_ANSWERING);
    connection->abandoned = abandoned;
    connection->answerer = owner;
}

void http_connection_set_headers(struct http_connection *connection, struct sl_slice headers)
{
    buffer_clear(&connection->headers);
    buffer_append_slice(&connection->headers, headers);
}

struct buffer *http_connection_headers(struct http_connection *connection)
{
    return &connection->headers;
}

struct buffer http_connection_take_headers(struct http_connection *connection)
{
    struct buffer headers = connection->headers;

    connection->headers = BUFFER_INIT;
    buffer_append_slice(&headers, http_date_line(&connection->server->date, clock_wall_ms()));
    return headers;
}

void *http_connection_owner(const struct http_connection *connection)
{
    return connection->server->settings.owner;
}

unsigned http_connection_listener(const struct http_connection *connection)
{
    return connection->listener;
}

const struct wire *http_connection_wire(const struct http_connection *connection)
{
    return &connection->wire;
}

void http_take_over(struct http_connection *connection, struct wire *wire,
                    const struct wire_callbacks *callbacks)
{
    assert(connection->stage == HTTP_STAGE_ANSWERING && connection->is_serving);
    (void)send_output(connection, &connection->server->output); /* if it is broken, the next send
                                                                   reports it */
    connection->server->taken = wire;
    wire_move(&connection->wire, wire, callbacks);
    wire_resume_reading(wire);
    retire(connection);
}

void http_take_over_late(struct http_connection *connection, struct wire *wire,
                         const struct wire_callbacks *callbacks, struct buffer *ret_rest)
{
    assert(connection->stage == HTTP_STAGE_ANSWERING && !connection->is_serving);
    *ret_rest = connection->input;
    connection->input = BUFFER_INIT;
    connection->abandoned = NULL;
    wire_move(&connection->wire, wire, callbacks);
    wire_resume_reading(wire);
    retire(connection);
}

/* Answers a request before it was received completely. The rest of the input cannot be delimited,
 * so the connection ends. */
static void answer_early(struct http_connection *connection, const struct http_request *request,
                         const struct http_refusal *refusal)
{
    const struct http_server_settings *settings = &connection->server->settings;

    connection->closes = true;
    connection->stage = HTTP_STAGE_ANSWERING;
    if (request->path.data && settings->handler->refuse)
        settings->handler->refuse(settings->owner, connection, request, refusal);
    else
        http_answer_refusal(connection, refusal);
}

/* Refuses a request, given the part of its head that was received. */
static void refuse_with(struct http_connection *connection, struct sl_slice head,
                        const struct http_refusal *refusal)
{
    const struct http_request request = http_head_read_line(head);

    metric_add(connection->server->settings.metrics, METRIC_REFUSED_HEADS, 1);
    answer_early(connection, &request, refusal);
}

/* The same while a head or a body is being received. */
static void refuse(struct http_connection *connection, const struct http_refusal *refusal)
{
    struct http_incoming *incoming = connection->incoming;

    refuse_with(connection, incoming ? buffer_slice(&incoming->head) : SL_SLICE(""), refusal);
    incoming_free(connection);
}

/* --- bodies --- */

static void refuse_busy(struct http_connection *connection)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, "busy", NULL, "this server is reading too much at once");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    refuse(connection, &refusal);
}

static uint64_t now_of(const struct http_server *server)
{
    return uv_now(server->settings.loop);
}

/* Makes room for `size` more bytes of this body. false: this body is the one that must give way. */
static bool make_room(struct http_connection *connection, size_t size)
{
    struct http_server *server = connection->server;
    struct http_body_share *own = &connection->incoming->share, *slowest;

    while ((slowest = http_bodies_grow(&server->bodies, own, size, now_of(server)))) {
        struct http_incoming *incoming = LIST_OWNER(slowest, struct http_incoming, share);

        size = 0;
        if (slowest == own)
            return false;
        LIST_EACH(&server->connections, node)
        {
            struct http_connection *other = LIST_OWNER(node, struct http_connection, node);

            if (other->incoming == incoming)
                refuse_busy(other);
        }
    }
    return true;
}

/* 0; negative: the request was refused, or the connection is broken. */
static int begin_body(struct http_connection *connection, struct sl_slice text,
                      const struct http_head *head, bool has_more)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct http_server_settings *settings = &connection->server->settings;
    char room[WIRE_ADDRESS_SIZE];
    struct http_refusal refusal;
    struct http_incoming *incoming;

    if (settings->handler->check(settings->owner, connection, head, &refusal) < 0) {
        answer_early(connection, &head->request, &refusal);
        return -EPROTO;
    }
    buffer_done(&connection->headers); /* the handler sets them again */
    connection->incoming = incoming = mem_zalloc(sizeof(*incoming));
    if (!incoming)
        return -ENOMEM;
    buffer_append_slice(&incoming->head, text);
    incoming->left = head->body_size;
    if (head->body_size > HTTP_SMALL_BODY)
        http_bodies_add(&connection->server->bodies, &incoming->share,
                        wire_client_address(&connection->wire, room), now_of(connection->server));
    if (head->expects_continue && !has_more)
        buffer_append(&connection->server->output, go_on, sizeof(go_on) - 1);
    connection->stage = HTTP_STAGE_BODY;
    return incoming->head.failed ? -ENOMEM : 0;
}

static void handle(struct http_connection *connection, const struct http_head *head);

/* Returns the number of input bytes that belonged to the body. */
static size_t take_body(struct http_connection *connection, struct sl_slice input)
{
    struct http_incoming *incoming = connection->incoming;
    size_t size = input.size < incoming->left ? input.size : incoming->left;
    struct http_refusal refusal;
    struct http_head head;

    buffer_append(&incoming->body, input.data, size);
    incoming->left -= size;
    if (incoming->body.failed) {
        end_broken(connection);
        return size;
    }
    if (!make_room(connection, size)) {
        refuse_busy(connection);
        return size;
    }
    if (incoming->left > 0)
        return size;
    connection->incoming = NULL; /* a refusal must not free what is being handled */
    if (http_head_read(buffer_slice(&incoming->head), connection->server->settings.max_body_bytes,
                       &head, &refusal) == 0) {
        head.request.body = buffer_slice(&incoming->body);
        handle(connection, &head);
    }
    http_bodies_remove(&connection->server->bodies, &incoming->share);
    buffer_done(&incoming->head);
    buffer_done(&incoming->body);
    mem_free(incoming);
    return size;
}

/* --- requests --- */

static void handle(struct http_connection *connection, const struct http_head *head)
{
    const struct http_server_settings *settings = &connection->server->settings;

    wait_for(connection, HTTP_WAIT_NONE);
    connection->stage = HTTP_STAGE_ANSWERING;
    settings->handler->handle(settings->owner, connection, head);
}

static void take_form(struct http_connection *connection, const struct http_request *request)
{
    connection->is_head = request->method == HTTP_HEAD;
    connection->is_http_1_0 = request->is_http_1_0;
    connection->closes = request->wants_close || request->is_upgrade;
}

/* A trusted proxy may forward another client with each request. */
static void find_client(struct http_connection *connection, const struct http_request *request)
{
    const struct client_trust *trust = connection->server->settings.trust;
    struct client_found found = {.is_secure = false};
    struct ip_address peer;

    if (connection->is_gated || !trust ||
        (trust->proxies.count == 0 && connection->wire.client.size == 0))
        return;
    peer = wire_peer(&connection->wire);
    if (ip_networks_contain(&trust->proxies, &peer))
        found = client_address_find(trust, &peer, request);
    if (found.is_unusable)
        metric_add(connection->server->settings.metrics, METRIC_CLIENT_UNUSABLE, 1);
    wire_set_client(&connection->wire, &found.address, found.is_secure);
}

/* Returns the number of input bytes used; 0: the head is incomplete. */
static size_t take_head(struct http_connection *connection, struct sl_slice input)
{
    const struct http_server_settings *settings = &connection->server->settings;
    size_t size = http_head_end(input, connection->seen);
    struct http_refusal refusal;
    struct http_head head;

    connection->seen = size ? 0 : input.size;
    if (size > settings->max_head_bytes || (size == 0 && input.size > settings->max_head_bytes)) {
        take_form(connection, &(struct http_request){.method = HTTP_OTHER});
        http_refuse(&refusal, 431, "headers_too_large", NULL,
                    "the request line and headers may have %zu bytes", settings->max_head_bytes);
        refuse(connection, &refusal);
        return input.size;
    }
    if (size == 0)
        return 0;
    if (http_head_read(sl_slice(input.data, size), settings->max_body_bytes, &head, &refusal) < 0) {
        take_form(connection, &(struct http_request){.method = HTTP_OTHER});
        refuse_with(connection, sl_slice(input.data, size), &refusal);
        return input.size;
    }
    find_client(connection, &head.request);
    take_form(connection, &head.request);
    connection->closes = connection->closes || head.lacks_length; /* the end of the request is
                                                                     unknown */
    if (head.body_size <= input.size - size) {
        head.request.body = sl_slice(input.data + size, head.body_size);
        handle(connection, &head);
        return size + head.body_size;
    }
    if (begin_body(connection, sl_slice(input.data, size), &head, input.size > size) == -ENOMEM)
        end_broken(connection);
    return size;
}

/* Returns the number of input bytes used. */
static size_t serve_input(struct http_connection *connection, struct sl_slice input)
{
    const struct buffer *output = &connection->server->output;
    size_t used = 0, part = 1;

    for (unsigned i = 0; i < REQUESTS_PER_TURN && used < input.size && part > 0; i++) {
        struct sl_slice rest = sl_slice_from(input, used);

        if (output->size >= OUTPUT_MAX)
            break;
        if (connection->stage == HTTP_STAGE_HEAD && !connection->wire.is_blocked)
            part = take_head(connection, rest);
        else if (connection->stage == HTTP_STAGE_BODY)
            part = take_body(connection, rest);
        else
            return used;
        used += part;
    }
    if (part > 0 && used < input.size && connection->stage == HTTP_STAGE_HEAD)
        put_off(connection);
    return used;
}

/* Passes on the input that followed the request by which the connection was taken over. */
static void pass_on(struct wire *wire, struct sl_slice rest)
{
    if (wire && rest.size > 0)
        wire->callbacks->received(wire, (char *)rest.data, rest.size);
}

/* Processes the stored input, followed by the new input. */
static void serve(struct http_connection *connection, char *bytes, size_t size)
{
    struct http_server *server = connection->server;
    bool is_kept = connection->input.size > 0;
    struct sl_slice input = sl_slice(bytes, size);
    size_t used;

    if (is_kept) {
        buffer_append(&connection->input, bytes, size);
        input = buffer_slice(&connection->input);
    }
    server->taken = NULL;
    connection->is_serving = true;
    used = connection->input.failed ? 0 : serve_input(connection, input);
    connection->is_serving = false;
    if (connection->stage == HTTP_STAGE_ENDED) {
        buffer_clear(&server->output);
        pass_on(server->taken, sl_slice_from(input, used));
        return;
    }
    if (is_kept)
        buffer_consume(&connection->input, used);
    else if (used < size)
        buffer_append(&connection->input, bytes + used, size - used);
    if (connection->input.size == 0)
        buffer_done(&connection->input);
    if (send_output(connection, &server->output) < 0 || connection->input.failed)
        end_broken(connection);
    else
        settle(connection);
}

static void on_next_turn(uv_idle_t *idle)
{
    struct http_server *server = idle->data;

    for (size_t left = server->put_off.count; left > 0 && server->put_off.count > 0; left--) {
        struct list_node *node = list_first(&server->put_off);

        list_remove(&server->put_off, node);
        serve(LIST_OWNER(node, struct http_connection, put_off), NULL, 0);
    }
    if (list_is_empty(&server->put_off))
        uv_idle_stop(idle);
}

/* --- callbacks of the wire --- */

static void on_received(struct wire *wire, char *bytes, size_t size)
{
    struct http_connection *connection = LIST_OWNER(wire, struct http_connection, wire);

    switch ((enum http_stage)connection->stage) {
    case HTTP_STAGE_HEAD:
    case HTTP_STAGE_BODY:
    case HTTP_STAGE_ANSWERING: /* reading is off, so this does not happen; nothing would be lost */
        serve(connection, bytes, size);
        break;
    case HTTP_STAGE_LINGERING:
        connection->thrown_away += size;
        if (connection->thrown_away > THROWN_AWAY_MAX)
            http_connection_end(connection);
        break;
    case HTTP_STAGE_LAST:
    case HTTP_STAGE_GATE:
    case HTTP_STAGE_ENDED:
        break;
    }
}

static void on_writable(struct wire *wire)
{
    struct http_connection *connection = LIST_OWNER(wire, struct http_connection, wire);

    if (connection->stage == HTTP_STAGE_HEAD && connection->input.size > 0)
        put_off(connection);
    settle(connection);
}

static void on_closed(struct wire *wire)
{
    http_connection_end(LIST_OWNER(wire, struct http_connection, wire));
}

const struct wire_callbacks http_wire_callbacks = {on_received, on_writable, on_closed};

/* --- timeouts --- */

static void time_out_request(struct http_connection *connection)
{
    struct http_refusal refusal;

    if (connection->stage == HTTP_STAGE_GATE)
        metric_add(connection->server->settings.metrics, METRIC_PROXY_LATE, 1);
    if (connection->stage == HTTP_STAGE_GATE ||
        (connection->stage == HTTP_STAGE_HEAD && connection->input.size == 0)) {
        http_connection_end(connection); /* nothing was requested, so nothing is answered */
        return;
    }
    if (connection->stage == HTTP_STAGE_HEAD)
        take_form(connection, &(struct http_request){.method = HTTP_OTHER});
    http_refuse(&refusal, 408, "request_timeout", NULL, "the request took too long to arrive");
    refuse(connection, &refusal);
}

/* A peer that reads, however slowly, is kept. */
static void time_out_sending(struct http_connection *connection)
{
    if (connection->wire.held.size < connection->held_before)
        settle(connection);
    else
        end_broken(connection);
}

void http_connection_time_out(struct http_connection *connection, enum http_wait wait)
{
    if (wait == HTTP_WAIT_PENDING)
        time_out_request(connection);
    else if (wait == HTTP_WAIT_SENDING)
        time_out_sending(connection);
    else
        http_connection_end(connection);
}

void http_connection_start(struct http_connection *connection)
{
    connection->turn_end.run = run_end;
    wait_for(connection, HTTP_WAIT_PENDING);
}

bool http_connection_is_silent(const struct http_connection *connection)
{
    if (connection->stage == HTTP_STAGE_GATE)
        return !proxy_gate_has_begun(connection->gate);
    return connection->stage == HTTP_STAGE_HEAD && connection->input.size == 0 &&
           !connection->wire.is_blocked;
}
