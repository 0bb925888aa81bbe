#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gateway/http/http_connection.h"
#include "tests/support/certificate.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/patience.h"
#include "tests/support/peer.h"

enum {
    MAX_HEAD = 1024,
    MAX_BODY = 200000,
    TIMEOUT_MS = 3600000,
    SHORT_MS = 20,
    PEERS = 8,
    MANY_TURNS = 100,
    SMALL = 4096,
    LARGE = 300000,
    OUTPUT_MAX = 65536 /* of answers that wait for the peer; and one more */
};

#define GET(path)  "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define HEAD(path) "HEAD " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(size, more)                                                                           \
    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " size "\r\n" more "\r\n"
#define UPGRADE "GET /take HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n"

static bool with_tls; /* every test runs both ways */
static bool plain = false, tls = true;
static struct patience patience;
static uv_prepare_t turn_end;
static struct turn turns;
static struct wires *wires;
static struct metrics_board *board;
static struct metrics *metrics;
static struct http_server_settings settings;
static struct http_server *server;
static int listener;
static struct sockaddr_in address;
static struct peer peers[PEERS];
static char large[LARGE];

/* --- the handler --- */

static struct http_connection *asked; /* the last that was handed to it */
static struct http_connection *later[PEERS];
static size_t later_count, handled, abandoned;
static struct wire taken;
static struct buffer taken_heard;
static bool taken_is_closed;

static void on_taken_received(struct wire *wire, char *bytes, size_t size)
{
    assert_ptr_equal(wire, &taken);
    buffer_append(&taken_heard, bytes, size);
}

static void on_taken_writable(struct wire *wire)
{
    (void)wire;
}

static void on_taken_closed(struct wire *wire)
{
    (void)wire;
    taken_is_closed = true;
}

static const struct wire_callbacks taken_callbacks = {on_taken_received, on_taken_writable,
                                                      on_taken_closed};

static void on_abandoned(void *owner)
{
    assert_ptr_equal(owner, &abandoned);
    abandoned++;
}

static void answer_text(struct http_connection *connection, struct sl_slice text)
{
    http_answer(connection,
                &(struct http_answer){.status = 200, .content_type = "text/plain", .body = text});
}

static int check(void *owner, struct http_connection *connection, const struct http_head *head,
                 struct http_refusal *refusal)
{
    (void)owner;
    http_connection_set_headers(connection, SL_SLICE("X-Checked: yes\r\n"));
    if (sl_slice_is(head->request.path, "/no"))
        return http_refuse(refusal, 403, "no", NULL, "no");
    return 0;
}

static void handle(void *owner, struct http_connection *connection, const struct http_head *head)
{
    const struct http_request *request = &head->request;

    assert_ptr_equal(owner, &handled);
    assert_ptr_equal(http_connection_owner(connection), owner);
    asked = connection;
    handled++;
    http_connection_set_headers(connection, SL_SLICE("X-Test: yes\r\n"));
    if (sl_slice_is(request->path, "/echo")) {
        answer_text(connection, request->body);
    } else if (sl_slice_is(request->path, "/large")) {
        answer_text(connection, sl_slice(large, sizeof(large)));
    } else if (sl_slice_is(request->path, "/later")) {
        later[later_count++] = connection;
        http_answer_later(connection, on_abandoned, &abandoned);
    } else if (sl_slice_is(request->path, "/take")) {
        http_take_over(connection, &taken, &taken_callbacks);
        assert_true(wire_write(&taken, SL_SLICE("taken")) <= 0);
    } else if (sl_slice_is(request->path, "/refused")) {
        struct http_refusal refusal;

        http_refuse(&refusal, 403, "no", NULL, "no");
        http_answer_refusal(connection, &refusal);
    } else {
        answer_text(connection, request->path);
    }
}

static const struct http_handler handler = {check, handle};

/* --- running it --- */

static void on_turn_end(uv_prepare_t *prepare)
{
    (void)prepare;
    turn_run(&turns);
}

static void turn(void)
{
    uv_run(&patience.loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < PEERS; i++)
        peer_turn(&peers[i]);
}

#define TURN_UNTIL(condition)                                                                      \
    do {                                                                                           \
        patience_begin(&patience);                                                                 \
        while (!(condition))                                                                       \
            turn();                                                                                \
        patience_end(&patience);                                                                   \
    } while (0)

static void turn_often(void)
{
    for (int i = 0; i < MANY_TURNS; i++)
        turn();
}

static void start(void)
{
    server = http_server_new(&settings);
    assert_non_null(server);
}

static void stop(void)
{
    http_server_close(server);
    turn_run(&turns);
    wire_close(&taken);
    http_server_free(server);
    buffer_done(&taken_heard);
    asked = NULL;
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_IDLE), 0);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_LINGERING), 0);
}

/* The test has changed `settings`. */
static void start_again(void)
{
    stop();
    start();
}

static void create_wires(void)
{
    const struct wires_settings made_with = {.loop = &patience.loop,
                                             .certificate = with_tls ? "cert.pem" : NULL,
                                             .key = with_tls ? "key.pem" : NULL,
                                             .handshake_timeout_ms = TIMEOUT_MS};
    struct failure failure;

    assert_int_equal(wires_new(&made_with, &wires, &failure), 0);
}

static int begin(void **state)
{
    with_tls = *(const bool *)*state;
    *state = NULL;
    patience_init(&patience, NULL);
    turn_init(&turns);
    uv_prepare_init(&patience.loop, &turn_end);
    uv_prepare_start(&turn_end, on_turn_end);
    listener = peer_listen(&address);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    create_wires();
    for (size_t i = 0; i < PEERS; i++)
        peers[i] = (struct peer){.fd = -1};
    taken = (struct wire){.fd = -1};
    taken_is_closed = false;
    later_count = handled = abandoned = 0;
    settings = (struct http_server_settings){.loop = &patience.loop,
                                             .turn = &turns,
                                             .wires = wires,
                                             .metrics = metrics,
                                             .handler = &handler,
                                             .owner = &handled,
                                             .max_head_bytes = MAX_HEAD,
                                             .max_body_bytes = MAX_BODY,
                                             .timeout_ms = TIMEOUT_MS,
                                             .max_pending = 100,
                                             .max_idle = 100,
                                             .max_lingering = 100};
    start();
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < PEERS; i++)
        peer_close(&peers[i]);
    stop();
    wires_close(wires);
    uv_close((uv_handle_t *)&turn_end, NULL);
    uv_run(&patience.loop, UV_RUN_DEFAULT);
    wires_free(wires);
    patience_done(&patience);
    close(listener);
    metrics_board_free(board);
    return 0;
}

static void accept_with(int send_size)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    assert_true(fd >= 0);
    if (send_size > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_size, sizeof(send_size));
    http_server_accept(server, fd, with_tls, 7);
}

static struct peer *enter(size_t i)
{
    peer_close(&peers[i]);
    peer_connect(&peers[i], &address, with_tls, 0);
    accept_with(0);
    return &peers[i];
}

/* Who connects so reads little at a time, if at all. */
static struct peer *enter_slowly(size_t i)
{
    peer_connect(&peers[i], &address, with_tls, SMALL);
    accept_with(SMALL);
    peers[i].reads_most = 0;
    return &peers[i];
}

static void say(struct peer *peer, const char *text)
{
    peer_say(peer, sl_slice_str(text));
}

/* --- what came back, in short: "200 body, 400 code" --- */

static struct sl_slice between(struct sl_slice text, const char *before, const char *behind)
{
    char *from = memmem(text.data, text.size, before, strlen(before)), *to;

    if (!from)
        return SL_SLICE_NONE;
    from += strlen(before);
    to = memmem(from, (size_t)(text.data + text.size - from), behind, strlen(behind));
    return to ? sl_slice(from, (size_t)(to - from)) : SL_SLICE_NONE;
}

/* The first answer, cut off the text; its size. False: it is not whole. */
static bool cut_answer(struct sl_slice *text, bool is_head, struct sl_slice *ret_head,
                       struct sl_slice *ret_body)
{
    struct sl_slice end_of_head = between(*text, "", "\r\n\r\n"), length;
    size_t size;

    if (!end_of_head.data)
        return false;
    *ret_head = sl_slice(text->data, end_of_head.size + 4);
    length = between(*ret_head, "Content-Length: ", "\r\n");
    size = length.data && !is_head ? strtoul(length.data, NULL, 10) : 0;
    if (text->size < ret_head->size + size)
        return false;
    *ret_body = sl_slice(text->data + ret_head->size, size);
    *text = sl_slice_from(*text, ret_head->size + size);
    return true;
}

static void append_short(struct buffer *out, struct sl_slice head, struct sl_slice body)
{
    struct sl_slice code = between(body, "\"code\":\"", "\"");

    if (out->size > 0)
        buffer_append_str(out, ", ");
    buffer_append_slice(out, sl_slice(head.data + 9, 3));
    if (body.size > 0)
        buffer_append_char(out, ' ');
    if (body.size == LARGE && memcmp(body.data, large, LARGE) == 0)
        buffer_append_str(out, "large");
    else
        buffer_append_slice(out, code.data ? code : body);
}

/* `heads`: a letter for each answer, `h` for one to HEAD; NULL: none is. */
static const char *summary(const struct peer *peer, const char *heads)
{
    static struct buffer out = {NULL, 0, 0, 0, false};
    static char text[20000];
    struct sl_slice left = buffer_slice(&peer->heard), head, body;

    for (size_t i = 0; cut_answer(&left, heads && heads[i] == 'h', &head, &body); i++)
        append_short(&out, head, body);
    if (left.size > 0)
        buffer_append_str(&out, " ...");
    assert_true(out.size < sizeof(text));
    snprintf(text, sizeof(text), "%.*s", (int)out.size, out.data ? out.data : "");
    buffer_done(&out);
    return text;
}

static void expect_of(struct peer *peer, const char *expected, const char *heads)
{
    TURN_UNTIL(strlen(summary(peer, heads)) >= strlen(expected) || peer->was_ended ||
               peer->was_reset);
    assert_string_equal(summary(peer, heads), expected);
    buffer_clear(&peer->heard);
}

static void expect(struct peer *peer, const char *expected)
{
    expect_of(peer, expected, NULL);
}

/* It ends properly, behind the answer. */
static void expect_end(struct peer *peer, const char *expected)
{
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_false(peer->was_reset);
    assert_int_equal(peer->was_told, with_tls);
    expect(peer, expected);
}

static void expect_hung_up(struct peer *peer)
{
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_int_equal(peer->heard.size, 0);
}

static void await_metric(enum metric metric, uint64_t value)
{
    TURN_UNTIL(metric_get(metrics, metric) == value);
}

/* Until its head, or its half of one, has arrived. */
static void await_input(size_t size)
{
    struct list_node *last = server->connections.head.previous;

    TURN_UNTIL(LIST_OWNER(last, struct http_connection, node)->input.size == size);
}

static struct http_connection *newest(void)
{
    return LIST_OWNER(server->connections.head.previous, struct http_connection, node);
}

static void await_stage(const struct http_connection *connection, enum http_stage stage)
{
    TURN_UNTIL(connection->stage == stage);
}

/* --- requests --- */

static void test_a_request_is_answered_and_the_connection_kept(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 1);
    say(peer, GET("/a"));
    TURN_UNTIL(handled == 1);
    assert_int_equal(http_connection_listener(asked), 7);
    TURN_UNTIL(strcmp(summary(peer, NULL), "200 /a") == 0);
    assert_non_null(strstr(buffer_str(&peer->heard), "\r\nX-Test: yes\r\n"));
    assert_null(strstr(buffer_str(&peer->heard), "Connection:"));
    buffer_clear(&peer->heard);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_IDLE), 1);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    say(peer, GET("/b"));
    expect(peer, "200 /b");
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_ACCEPTED), 1);
    peer_close(peer);
    await_metric(METRIC_CONNECTIONS, 0);
}

static void test_a_request_may_come_byte_by_byte(void **state)
{
    static const char request[] = POST("4", "") "abcd" GET("/b");
    struct peer *peer = enter(0);

    (void)state;
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        peer_say(peer, sl_slice(request + i, 1));
        TURN_UNTIL(peer_has_spoken(peer));
        turn();
    }
    expect(peer, "200 abcd, 200 /b");
}

/* Wherever a stream of requests is cut, the answers are the same. */
static void test_requests_may_be_cut_anywhere(void **state)
{
    static const char requests[] = GET("/a") POST("4", "") "abcd" HEAD("/c") POST("0", "")
        POST("5", "X: y\r\n") "GET /" UPGRADE "more";

    (void)state;
    for (size_t i = 1; i < sizeof(requests) - 1; i++) {
        struct peer *peer = enter(0);

        handled = 0;
        peer_say(peer, sl_slice(requests, i));
        TURN_UNTIL(peer_has_spoken(peer));
        turn();
        peer_say(peer, sl_slice(requests + i, sizeof(requests) - 1 - i));
        TURN_UNTIL(taken_heard.size == 4);
        assert_memory_equal(taken_heard.data, "more", 4);
        TURN_UNTIL(peer->heard.size > 5 &&
                   memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
        expect_of(peer, "200 /a, 200 abcd, 200, 200, 200 GET / ...", "--h--");
        assert_int_equal(handled, 6);
        wire_close(&taken);
        buffer_done(&taken_heard);
    }
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS), sizeof(requests) - 2); /* ours now */
}

/* They are answered in order, and others in between. */
static void test_many_requests_may_be_sent_ahead(void **state)
{
    struct buffer expected = BUFFER_INIT;
    struct peer *eager = enter(0), *other = enter(1);
    size_t before;

    (void)state;
    say(other, GET("/a"));
    expect(other, "200 /a");
    handled = 0;
    for (int i = 0; i < 500; i++) {
        char request[64];

        snprintf(request, sizeof(request), "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
        say(eager, request);
        buffer_append_format(&expected, "%s200 /%d", i ? ", " : "", i);
    }
    TURN_UNTIL(handled > 0);
    say(other, GET("/other"));
    patience_begin(&patience);
    while (handled < 501) {
        before = handled;
        turn();
        assert_true(handled - before <= 64 + 1); /* what was put off, and what came in */
        if (handled >= 400)
            assert_string_equal(summary(other, NULL), "200 /other");
    }
    patience_end(&patience);
    expect(eager, buffer_str(&expected));
    buffer_done(&expected);
}

static void test_who_expects_to_be_told_to_continue_is(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, POST("4", "Expect: 100-continue\r\n"));
    expect(peer, "100");
    say(peer, "abcd");
    expect(peer, "200 abcd");
    say(peer, POST("4", "Expect: 100-continue\r\n") "abcd"); /* and did not wait */
    expect(peer, "200 abcd");
    say(peer, GET("/a") POST("4", "Expect: 100-continue\r\n"));
    expect(peer, "200 /a, 100"); /* in this order */
}

static void test_large_bodies_are_read(void **state)
{
    struct peer *peer = enter(0);
    struct buffer expected = BUFFER_INIT;

    (void)state;
    buffer_append_str(&expected, "200 ");
    for (int i = 0; i < 15000; i++)
        buffer_append_char(&expected, (char)('a' + i % 26));
    say(peer, POST("15000", ""));
    peer_say(peer, sl_slice_from(buffer_slice(&expected), 4));
    expect(peer, buffer_str(&expected));
    say(peer, POST("200000", ""));
    TURN_UNTIL(newest()->stage == HTTP_STAGE_BODY);
    peer_say(peer, sl_slice(large, 200000));
    TURN_UNTIL(peer->heard.size > 200000);
    assert_int_equal(server->bodies.bytes, 0);
    buffer_done(&expected);
}

static void test_head_has_no_body(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, HEAD("/abc") GET("/b"));
    TURN_UNTIL(strcmp(summary(peer, "h-"), "200, 200 /b") == 0);
    assert_non_null(strstr(buffer_str(&peer->heard), "Content-Length: 4\r\n"));
}

static void test_who_asks_for_the_end_gets_it(void **state)
{
    static const char *const requests[] = {
        "GET /a HTTP/1.0\r\n\r\n" GET("/b"),
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" GET("/b"),
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n" GET(
            "/b")};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct peer *peer = enter(0);

        say(peer, requests[i]);
        expect_end(peer, "200 /a");
        assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_LINGERING), 1);
        peer_close(peer);
        await_metric(METRIC_CONNECTIONS, 0);
    }
    assert_int_equal(metric_get(metrics, METRIC_LINGERING_DROPPED), 0);
}

/* --- refusals --- */

static void expect_refused(const char *request, const char *expected)
{
    struct peer *peer = enter(0);

    say(peer, request);
    TURN_UNTIL(metric_get(metrics, METRIC_CONNECTIONS_LINGERING) == 1);
    say(peer, "and what it still has to say does not reset the answer");
    TURN_UNTIL(peer_has_spoken(peer));
    turn_often();
    peer_say(peer, sl_slice(large, sizeof(large)));
    TURN_UNTIL(peer_has_spoken(peer));
    expect_end(peer, expected);
    peer_close(peer);
    await_metric(METRIC_CONNECTIONS, 0);
}

static void test_what_is_refused_is_answered(void **state)
{
    char too_long[MAX_HEAD + 100];

    (void)state;
    expect_refused("GET a HTTP/1.1\r\n\r\n" GET("/b"), "400 bad_request");
    expect_refused(GET("/a") "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "200 /a, 501 not_implemented");
    expect_refused(POST("200001", ""), "413 body_too_large");
    expect_refused("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n", "403 no");
    expect_refused("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\na", "403 no");
    assert_int_equal(metric_get(metrics, METRIC_REFUSED_HEADS), 3);
    for (size_t size = MAX_HEAD; size <= MAX_HEAD + 1; size++) {
        snprintf(too_long, sizeof(too_long), "GET /a HTTP/1.1\r\nHost: x\r\nX: ");
        memset(too_long + strlen(too_long), 'x', sizeof(too_long) - strlen(too_long));
        strcpy(too_long + size - 4, "\r\n\r\n");
        if (size > MAX_HEAD)
            expect_refused(too_long, "431 headers_too_large");
        else {
            say(enter(0), too_long);
            expect(&peers[0], "200 /a");
            peer_close(&peers[0]);
            await_metric(METRIC_CONNECTIONS, 0);
        }
    }
    memset(too_long, 'x', MAX_HEAD + 1);
    too_long[MAX_HEAD + 1] = '\0';
    expect_refused(too_long, "431 headers_too_large"); /* its end is not waited for */
}

static void test_a_refusal_by_the_handler_keeps_the_connection(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, GET("/refused") GET("/b"));
    expect(peer, "403 no, 200 /b");
}

static void test_the_headers_of_the_check_are_not_those_of_the_answer(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, POST("1", ""));
    TURN_UNTIL(newest()->stage == HTTP_STAGE_BODY);
    say(peer, "a");
    TURN_UNTIL(strcmp(summary(peer, NULL), "200 a") == 0);
    assert_non_null(strstr(buffer_str(&peer->heard), "X-Test"));
    assert_null(strstr(buffer_str(&peer->heard), "X-Checked"));
}

static void test_who_talks_on_for_ever_is_cut_off(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, "\r\n\r\n");
    for (int i = 0; i < 20; i++)
        peer_say(peer, sl_slice(large, sizeof(large)));
    await_metric(METRIC_CONNECTIONS, 0);
    assert_int_equal(metric_get(metrics, METRIC_LINGERING_DROPPED), 0);
}

/* --- time --- */

static void test_who_takes_too_long_is_told_and_who_says_nothing_is_not(void **state)
{
    (void)state;
    settings.timeout_ms = SHORT_MS;
    start_again();
    expect_hung_up(enter(0));
    say(enter(1), "GET / HTTP/1.1\r\n");
    TURN_UNTIL(peer_has_spoken(&peers[1]));
    TURN_UNTIL(peers[1].was_ended || peers[1].was_reset);
    if (peers[1].heard.size > 0) /* unless it came too late, being slow to begin */
        expect_end(&peers[1], "408 request_timeout");
}

static void test_half_a_request_is_timed_out(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, GET("/a") "GET / HTTP/1.1\r\n");
    await_input(16);
    http_connection_time_out(newest(), HTTP_WAIT_PENDING);
    expect_end(peer, "200 /a, 408 request_timeout");
    peer = enter(1);
    say(peer, POST("4", "") "abc");
    await_stage(newest(), HTTP_STAGE_BODY);
    turn_often();
    http_connection_time_out(newest(), HTTP_WAIT_PENDING);
    expect_end(peer, "408 request_timeout");
}

static void test_who_is_idle_or_lingers_for_long_is_closed(void **state)
{
    struct peer *idle = enter(0), *lingering = enter(1);

    (void)state;
    server->waiting.lists[HTTP_WAIT_IDLE].wait_ms = SHORT_MS;
    server->waiting.lists[HTTP_WAIT_LINGERING].wait_ms = SHORT_MS;
    say(idle, GET("/a"));
    say(lingering, "\r\n\r\n");
    TURN_UNTIL(handled == 1);
    await_metric(METRIC_CONNECTIONS, 0);
    expect(idle, "200 /a");
    TURN_UNTIL(idle->was_ended);
    expect_end(lingering, "400 bad_request");
}

static void test_who_reads_slowly_goes_on_and_who_does_not_read_is_cut_off(void **state)
{
    struct peer *peer = enter_slowly(0);
    struct http_connection *connection = newest();
    size_t held;

    (void)state;
    say(peer, GET("/large"));
    TURN_UNTIL(handled == 1 && connection->wire.is_blocked);
    turn_often();
    held = connection->wire.held.size;
    assert_int_equal(connection->waiter.wait, HTTP_WAIT_SENDING);
    peer->reads_most = 20000;
    TURN_UNTIL(connection->wire.held.size < held);
    peer->reads_most = 0;
    connection->waiter.deadline.due_ms = 0; /* its time is up */
    server->waiting.lists[HTTP_WAIT_SENDING].wait_ms = SHORT_MS;
    uv_timer_start(server->waiting.timer, server->waiting.timer->timer_cb, 0, 0);
    turn();
    assert_int_equal(connection->stage, HTTP_STAGE_HEAD);
    assert_int_equal(metric_get(metrics, METRIC_BROKEN), 0);
    await_metric(METRIC_CONNECTIONS, 0); /* it had another SHORT_MS, and read nothing */
    assert_int_equal(metric_get(metrics, METRIC_BROKEN), 1);
}

/* --- bounds --- */

static void test_only_so_many_may_be_pending(void **state)
{
    (void)state;
    settings.max_pending = 2;
    start_again();
    enter(0);
    say(enter(1), "GET");
    TURN_UNTIL(peer_has_spoken(&peers[1]));
    enter(2);
    expect_hung_up(&peers[0]);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_DROPPED), 1);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 2);
    say(&peers[2], GET("/a")); /* then it is idle, and does not count */
    expect(&peers[2], "200 /a");
    enter(3);
    turn_often();
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_DROPPED), 1);
}

static void test_only_so_many_may_be_idle(void **state)
{
    (void)state;
    settings.max_idle = 2;
    start_again();
    for (size_t i = 0; i < 3; i++) {
        say(enter(i), GET("/a"));
        expect(&peers[i], "200 /a");
    }
    expect_hung_up(&peers[0]);
    assert_int_equal(metric_get(metrics, METRIC_IDLE_DROPPED), 1);
    say(&peers[1], GET("/b"));
    expect(&peers[1], "200 /b");
}

static void test_only_so_many_may_linger(void **state)
{
    (void)state;
    settings.max_lingering = 2;
    start_again();
    for (size_t i = 0; i < 4; i++) {
        say(enter(i), "\r\n\r\n");
        expect(&peers[i], "400 bad_request");
    }
    await_metric(METRIC_CONNECTIONS, 2);
    assert_int_equal(metric_get(metrics, METRIC_LINGERING_DROPPED), 2);
}

static void test_without_room_to_be_idle_an_answer_is_the_last(void **state)
{
    (void)state;
    settings.max_idle = 0;
    start_again();
    say(enter(0), GET("/a"));
    TURN_UNTIL(peers[0].was_ended || peers[0].was_reset);
    expect(&peers[0], "200 /a");
}

static void test_the_slowest_large_body_gives_way(void **state)
{
    struct peer *slow = enter(0), *quick;

    (void)state;
    server->bodies.max_bytes = 4 * 100000; /* a quarter is for us */
    say(slow, POST("200000", "") "abc");
    await_stage(newest(), HTTP_STAGE_BODY);
    TURN_UNTIL(server->bodies.bytes == 3);
    newest()->incoming->share.began_ms -= HTTP_BODIES_GRACE_MS;
    quick = enter(1);
    say(quick, POST("200000", ""));
    peer_say(quick, sl_slice(large, 100000));
    expect_end(slow, "503 busy");
    TURN_UNTIL(server->bodies.bytes == 100000);
    peer_say(quick, sl_slice(large, 100000));
    expect_end(quick, "503 busy"); /* nobody else is left */
    assert_int_equal(server->bodies.bytes, 0);
}

/* --- answers that come later --- */

static void test_an_answer_may_come_later(void **state)
{
    struct peer *peer = enter(0), *other = enter(1);

    (void)state;
    say(peer, GET("/a") GET("/later") GET("/c"));
    expect(peer, "200 /a");
    assert_int_equal(later_count, 1);
    say(other, GET("/other"));
    expect(other, "200 /other");
    answer_text(later[0], SL_SLICE("b"));
    expect(peer, "200 b, 200 /c");
    assert_int_equal(abandoned, 0);
}

static void test_who_has_ended_its_half_gets_its_answer(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, GET("/a") GET("/later"));
    TURN_UNTIL(peer_has_spoken(peer));
    peer_end(peer);
    TURN_UNTIL(later_count == 1);
    turn_often();
    assert_int_equal(abandoned, 0);
    answer_text(later[0], SL_SLICE("b"));
    TURN_UNTIL(peer->was_ended);
    expect(peer, "200 /a, 200 b");
    await_metric(METRIC_CONNECTIONS, 0);
}

static void test_an_answer_to_nobody_is_no_harm(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, GET("/later"));
    TURN_UNTIL(later_count == 1);
    peer_reset(peer);
    turn_often();
    answer_text(later[0], sl_slice(large, sizeof(large)));
    await_metric(METRIC_CONNECTIONS, 0);
}

static void test_an_answer_is_abandoned_when_the_server_closes(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, GET("/later"));
    TURN_UNTIL(later_count == 1);
    http_server_close(server);
    assert_int_equal(abandoned, 1);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS), 0);
    expect_hung_up(peer);
}

/* --- peers that do not read --- */

static void test_large_answers_reach_a_slow_reader(void **state)
{
    struct peer *peer = enter_slowly(0);
    struct http_connection *connection = newest();
    size_t most = 0;

    (void)state;
    for (int i = 0; i < 8; i++)
        say(peer, GET("/large") GET("/a"));
    peer->reads_most = 15000;
    patience_begin(&patience);
    while (handled < 16 || connection->wire.is_blocked) {
        turn();
        if (connection->wire.held.size > most)
            most = connection->wire.held.size;
    }
    patience_end(&patience);
    peer->reads_most = SIZE_MAX;
    expect(peer, "200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a, "
                 "200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a");
    assert_true(most > 0);
    assert_true(most <= OUTPUT_MAX + LARGE + 1000);
}

/* However many requests it sends. */
static void test_who_does_not_read_its_answers_is_not_asked_for_more(void **state)
{
    struct peer *peer = enter_slowly(0);
    struct http_connection *connection = newest();

    (void)state;
    for (int i = 0; i < 32; i++)
        say(peer, GET("/large"));
    TURN_UNTIL(connection->wire.is_blocked);
    turn_often();
    assert_true(handled <= 2);
    assert_true(connection->wire.held.size <= OUTPUT_MAX + LARGE + 1000);
    assert_true(server->output.capacity <= 2 * OUTPUT_MAX);
}

static void test_a_last_answer_is_sent_before_the_end(void **state)
{
    struct peer *peer = enter_slowly(0);

    (void)state;
    say(peer, "GET /large HTTP/1.0\r\n\r\n");
    TURN_UNTIL(handled == 1);
    turn_often();
    assert_int_equal(asked->stage, HTTP_STAGE_LAST);
    assert_int_equal(asked->waiter.wait, HTTP_WAIT_SENDING);
    peer->reads_most = SIZE_MAX;
    expect_end(peer, "200 large");
}

/* --- taking over --- */

static void test_what_is_taken_over_begins_behind_the_answers(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    say(peer, GET("/a") UPGRADE "behind the head");
    TURN_UNTIL(taken_heard.size == 15);
    assert_memory_equal(taken_heard.data, "behind the head", 15);
    TURN_UNTIL(peer->heard.size > 5 &&
               memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
    assert_string_equal(summary(peer, NULL), "200 /a ...");
    say(peer, ", and later");
    TURN_UNTIL(taken_heard.size == 26);
    turn_often();
    assert_true(list_is_empty(&server->connections));
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS), 1); /* until it is taken off */
    peer_end(peer);
    TURN_UNTIL(taken_is_closed);
}

static void test_what_was_put_off_may_be_taken_over(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    for (int i = 0; i < 100; i++)
        say(peer, GET("/a"));
    say(peer, UPGRADE "behind the head");
    TURN_UNTIL(taken_heard.size == 15);
    assert_int_equal(handled, 101);
    TURN_UNTIL(peer->heard.size > 5 &&
               memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
}

static void test_a_wire_that_holds_answers_may_be_taken_over(void **state)
{
    struct peer *peer = enter_slowly(0);

    (void)state;
    say(peer, GET("/later"));
    TURN_UNTIL(later_count == 1);
    for (int i = 0; i < 3; i++)
        say(peer, GET("/a"));
    say(peer, UPGRADE "behind");
    answer_text(later[0], sl_slice(large, sizeof(large)));
    turn_often();
    assert_int_equal(handled, 1);
    peer->reads_most = SIZE_MAX;
    TURN_UNTIL(taken_heard.size == 6);
    TURN_UNTIL(peer->heard.size > 5 &&
               memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
    assert_string_equal(summary(peer, NULL), "200 large, 200 /a, 200 /a, 200 /a ...");
}

/* --- the end --- */

static void test_draining_ends_what_is_idle_and_answers_the_last(void **state)
{
    struct peer *idle = enter(0), *asking = enter(1), *half = enter(2);

    (void)state;
    say(idle, GET("/a"));
    expect(idle, "200 /a");
    say(asking, GET("/later"));
    say(half, "GET /a HTTP/1.1\r\n");
    TURN_UNTIL(later_count == 1 && peer_has_spoken(half));
    await_input(17);
    http_server_drain(server, false);
    expect_hung_up(idle);
    assert_true(http_server_is_busy(server));
    answer_text(later[0], SL_SLICE("b"));
    say(half, "Host: x\r\n\r\n");
    expect_end(asking, "200 b");
    expect_end(half, "200 /a");
    assert_true(http_server_is_busy(server)); /* they linger */
    peer_close(asking);
    peer_close(half);
    TURN_UNTIL(!http_server_is_busy(server));
    assert_true(list_is_empty(&server->connections));
}

static void test_one_that_has_just_come_counts_for_a_moment(void **state)
{
    (void)state;
    enter(0);
    http_server_drain(server, false);
    assert_true(http_server_is_busy(server));
    TURN_UNTIL(!http_server_is_busy(server)); /* its first request does not come */
    say(&peers[0], GET("/a"));                /* or late */
    expect_end(&peers[0], "200 /a");
}

static void test_with_a_successor_all_are_served_once_more(void **state)
{
    struct peer *idle = enter(0), *silent = enter(1);

    (void)state;
    say(idle, GET("/a"));
    expect(idle, "200 /a");
    http_server_drain(server, true);
    turn_often();
    assert_true(http_server_is_busy(server));
    say(idle, GET("/b"));
    expect_end(idle, "200 /b");
    say(silent, GET("/c"));
    expect_end(silent, "200 /c");
    peer_close(idle);
    peer_close(silent);
    TURN_UNTIL(!http_server_is_busy(server));
}

static void test_it_may_be_closed_at_any_time(void **state)
{
    struct peer *blocked = enter_slowly(0);

    (void)state;
    say(blocked, GET("/large"));
    TURN_UNTIL(handled == 1);
    say(enter(1), "\r\n\r\n");
    expect(&peers[1], "400 bad_request");
    say(enter(2), "GET");
    await_input(3);
    say(enter(3), POST("200000", "") "a");
    await_stage(newest(), HTTP_STAGE_BODY);
    for (int i = 0; i < 100; i++)
        say(&peers[4], "");
    say(enter(4), GET("/later"));
    TURN_UNTIL(later_count == 1);
    enter(5);
    http_server_close(server);
    turn();
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS), 0);
    assert_true(list_is_empty(&server->connections));
}

/* Whatever is done for one that is put off, it may be closed in between. */
static void test_one_that_is_put_off_may_be_closed(void **state)
{
    struct peer *peer = enter(0);

    (void)state;
    for (int i = 0; i < 300; i++)
        say(peer, GET("/a"));
    TURN_UNTIL(handled > 0);
    http_connection_end(newest());
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_true(list_is_empty(&server->put_off));
}

/* --- memory --- */

static void test_out_of_memory_there_is_no_server(void **state)
{
    (void)state;
    stop();
    server = NULL;
    for (uint64_t n = 0; !server; n++) {
        mem_fail_after(n);
        server = http_server_new(&settings);
        mem_fail_never();
    }
}

/* One peer's requests of all kinds, with memory for n allocations. True: it was enough. */
static bool ask_with_memory_for(uint64_t n)
{
    static const char requests[] = GET("/a") "GET /b HTTP/1.1\r\n";
    static const char rest[] = "Host: x\r\n\r\n" POST("20000", "");
    struct peer *peer = &peers[0];
    bool has_failed;

    peer_connect(peer, &address, with_tls, 0);
    buffer_reserve(&peer->heard, 100000);
    buffer_reserve(&peer->to_say, 100000);
    mem_fail_after(n);
    accept_with(0);
    peer_say(peer, sl_slice(requests, sizeof(requests) - 1));
    TURN_UNTIL(peer->was_ended || peer->was_reset || (peer_has_spoken(peer) && handled == 1));
    turn();
    peer_say(peer, sl_slice(rest, sizeof(rest) - 1));
    peer_say(peer, sl_slice(large, 20000));
    peer_say(peer, SL_SLICE(UPGRADE "more"));
    TURN_UNTIL(peer->was_ended || peer->was_reset || handled == 4);
    turn_often();
    has_failed = mem_failed();
    mem_fail_never();
    peer_close(peer);
    wire_close(&taken);
    buffer_done(&taken_heard);
    handled = 0;
    turn_often();
    assert_true(list_is_empty(&server->connections));
    return !has_failed;
}

static void test_out_of_memory_a_connection_ends(void **state)
{
    uint64_t n = 0;

    (void)state;
    while (!ask_with_memory_for(n))
        n++;
    assert_true(n > 5);
}

/* What follows an answer that was lost must not be taken for it. */
static void test_out_of_memory_nothing_follows_what_is_missing(void **state)
{
    struct peer *peer = &peers[0];
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        start_again();
        peer_connect(peer, &address, with_tls, 0);
        buffer_reserve(&peer->heard, 100000);
        say(peer, GET("/a") GET("/b") UPGRADE);
        accept_with(0);
        mem_fail_after(n);
        TURN_UNTIL(peer->was_ended || peer->was_reset || handled == 3);
        turn_often();
        has_failed = mem_failed();
        mem_fail_never();
        if (peer->heard.size > 0)
            assert_string_equal(summary(peer, NULL), "200 /a, 200 /b ...");
        peer_close(peer);
        handled = 0;
    }
}

static char folder[] = "/tmp/sluice-test-http-XXXXXX";

static int make_folder(void **state)
{
    (void)state; /* the tests have their own */
    if (!mkdtemp(folder) || chdir(folder) < 0)
        return -1;
    certificate_write_pair(CERTIFICATE_EC, "localhost", "cert.pem", "key.pem");
    for (size_t i = 0; i < sizeof(large); i++)
        large[i] = (char)('a' + i % 26);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink("cert.pem");
    unlink("key.pem");
    return rmdir(folder);
}

#define HTTP_TEST(test)                                                                            \
    cmocka_unit_test_prestate_setup_teardown(test, begin, end, &plain),                            \
        cmocka_unit_test_prestate_setup_teardown(test, begin, end, &tls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_a_request_is_answered_and_the_connection_kept),
        HTTP_TEST(test_a_request_may_come_byte_by_byte),
        HTTP_TEST(test_requests_may_be_cut_anywhere),
        HTTP_TEST(test_many_requests_may_be_sent_ahead),
        HTTP_TEST(test_who_expects_to_be_told_to_continue_is),
        HTTP_TEST(test_large_bodies_are_read),
        HTTP_TEST(test_head_has_no_body),
        HTTP_TEST(test_who_asks_for_the_end_gets_it),
        HTTP_TEST(test_what_is_refused_is_answered),
        HTTP_TEST(test_a_refusal_by_the_handler_keeps_the_connection),
        HTTP_TEST(test_the_headers_of_the_check_are_not_those_of_the_answer),
        HTTP_TEST(test_who_talks_on_for_ever_is_cut_off),
        HTTP_TEST(test_who_takes_too_long_is_told_and_who_says_nothing_is_not),
        HTTP_TEST(test_half_a_request_is_timed_out),
        HTTP_TEST(test_who_is_idle_or_lingers_for_long_is_closed),
        HTTP_TEST(test_who_reads_slowly_goes_on_and_who_does_not_read_is_cut_off),
        HTTP_TEST(test_only_so_many_may_be_pending),
        HTTP_TEST(test_only_so_many_may_be_idle),
        HTTP_TEST(test_only_so_many_may_linger),
        HTTP_TEST(test_without_room_to_be_idle_an_answer_is_the_last),
        HTTP_TEST(test_the_slowest_large_body_gives_way),
        HTTP_TEST(test_an_answer_may_come_later),
        HTTP_TEST(test_who_has_ended_its_half_gets_its_answer),
        HTTP_TEST(test_an_answer_to_nobody_is_no_harm),
        HTTP_TEST(test_an_answer_is_abandoned_when_the_server_closes),
        HTTP_TEST(test_large_answers_reach_a_slow_reader),
        HTTP_TEST(test_who_does_not_read_its_answers_is_not_asked_for_more),
        HTTP_TEST(test_a_last_answer_is_sent_before_the_end),
        HTTP_TEST(test_what_is_taken_over_begins_behind_the_answers),
        HTTP_TEST(test_what_was_put_off_may_be_taken_over),
        HTTP_TEST(test_a_wire_that_holds_answers_may_be_taken_over),
        HTTP_TEST(test_draining_ends_what_is_idle_and_answers_the_last),
        HTTP_TEST(test_one_that_has_just_come_counts_for_a_moment),
        HTTP_TEST(test_with_a_successor_all_are_served_once_more),
        HTTP_TEST(test_it_may_be_closed_at_any_time),
        HTTP_TEST(test_one_that_is_put_off_may_be_closed),
        HTTP_TEST(test_out_of_memory_there_is_no_server),
        HTTP_TEST(test_out_of_memory_a_connection_ends),
        HTTP_TEST(test_out_of_memory_nothing_follows_what_is_missing),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
