#include "tests/support/http_scene.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/certificate.h"

struct http_scene scene;

/* --- the handler --- */

static void on_taken_received(struct wire *wire, char *bytes, size_t size)
{
    assert_ptr_equal(wire, &scene.taken);
    buffer_append(&scene.taken_heard, bytes, size);
}

static void on_taken_writable(struct wire *wire)
{
    (void)wire;
}

static void on_taken_closed(struct wire *wire)
{
    (void)wire;
    scene.taken_is_closed = true;
}

static const struct wire_callbacks taken_callbacks = {on_taken_received, on_taken_writable,
                                                      on_taken_closed};

static void on_abandoned(void *owner)
{
    assert_ptr_equal(owner, &scene.abandoned);
    scene.abandoned++;
}

void scene_answer(struct http_connection *connection, struct sl_slice text)
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

    assert_ptr_equal(owner, &scene.handled);
    assert_ptr_equal(http_connection_owner(connection), owner);
    scene.asked = connection;
    scene.handled++;
    http_connection_set_headers(connection, SL_SLICE("X-Test: yes\r\n"));
    if (sl_slice_is(request->path, "/echo")) {
        scene_answer(connection, request->body);
    } else if (sl_slice_is(request->path, "/large")) {
        scene_answer(connection, sl_slice(scene.large, sizeof(scene.large)));
    } else if (sl_slice_is(request->path, "/later")) {
        scene.later[scene.later_count++] = connection;
        http_answer_later(connection, on_abandoned, &scene.abandoned);
    } else if (sl_slice_is(request->path, "/take")) {
        http_take_over(connection, &scene.taken, &taken_callbacks);
        assert_true(wire_write(&scene.taken, SL_SLICE("taken")) <= 0);
    } else if (sl_slice_is(request->path, "/refused")) {
        struct http_refusal refusal;

        http_refuse(&refusal, 403, "no", NULL, "no");
        http_answer_refusal(connection, &refusal);
    } else {
        scene_answer(connection, request->path);
    }
}

static const struct http_handler handler = {check, handle, NULL};

/* --- running it --- */

static void on_turn_end(uv_prepare_t *prepare)
{
    (void)prepare;
    turn_run(&scene.turns);
}

void scene_turn(void)
{
    uv_run(&scene.test_loop.uv, UV_RUN_NOWAIT);
    for (size_t i = 0; i < PEERS; i++)
        peer_turn(&scene.peers[i]);
}

void scene_turn_often(void)
{
    for (int i = 0; i < MANY_TURNS; i++)
        scene_turn();
}

static void start(void)
{
    scene.server = http_server_new(&scene.settings);
    assert_non_null(scene.server);
}

void scene_stop(void)
{
    http_server_close(scene.server);
    turn_run(&scene.turns);
    wire_close(&scene.taken);
    http_server_free(scene.server);
    buffer_done(&scene.taken_heard);
    scene.asked = NULL;
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_PENDING), 0);
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS_IDLE), 0);
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS_LINGERING), 0);
}

void scene_start_again(void)
{
    scene_stop();
    start();
}

void scene_create_wires(void)
{
    const struct wires_settings made_with = {.loop = &scene.test_loop.uv,
                                             .certificate = scene.with_tls ? "cert.pem" : NULL,
                                             .key = scene.with_tls ? "key.pem" : NULL,
                                             .handshake_timeout_ms = TIMEOUT_MS};
    struct failure failure;

    assert_int_equal(wires_new(&made_with, &scene.wires, &failure), 0);
}

int scene_begin(void **state)
{
    scene.with_tls = *(const bool *)*state;
    *state = NULL;
    test_loop_init(&scene.test_loop, NULL);
    turn_init(&scene.turns);
    uv_prepare_init(&scene.test_loop.uv, &scene.turn_end);
    uv_prepare_start(&scene.turn_end, on_turn_end);
    scene.listener = peer_listen(&scene.address);
    scene.board = metrics_board_new(1);
    scene.metrics = metrics_slot(scene.board, 0);
    scene_create_wires();
    for (size_t i = 0; i < PEERS; i++)
        scene.peers[i] = (struct peer){.fd = -1};
    scene.taken = (struct wire){.fd = -1};
    scene.taken_is_closed = false;
    scene.later_count = scene.handled = scene.abandoned = 0;
    scene.settings = (struct http_server_settings){.loop = &scene.test_loop.uv,
                                                   .turn = &scene.turns,
                                                   .wires = scene.wires,
                                                   .metrics = scene.metrics,
                                                   .handler = &handler,
                                                   .owner = &scene.handled,
                                                   .max_head_bytes = MAX_HEAD,
                                                   .max_body_bytes = MAX_BODY,
                                                   .timeout_ms = TIMEOUT_MS,
                                                   .max_pending = 100,
                                                   .max_idle = 100,
                                                   .max_lingering = 100};
    start();
    return 0;
}

int scene_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < PEERS; i++)
        peer_close(&scene.peers[i]);
    scene_stop();
    wires_close(scene.wires);
    uv_close((uv_handle_t *)&scene.turn_end, NULL);
    uv_run(&scene.test_loop.uv, UV_RUN_DEFAULT);
    wires_free(scene.wires);
    test_loop_done(&scene.test_loop);
    close(scene.listener);
    metrics_board_free(scene.board);
    return 0;
}

void scene_accept(int send_size)
{
    int fd = accept4(scene.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    assert_true(fd >= 0);
    if (send_size > 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_size, sizeof(send_size));
    http_server_accept(scene.server, fd, scene.with_tls, scene.with_proxy, 7);
}

struct peer *scene_enter(size_t i)
{
    peer_close(&scene.peers[i]);
    peer_connect(&scene.peers[i], &scene.address, scene.with_tls, 0);
    scene_accept(0);
    return &scene.peers[i];
}

struct peer *scene_enter_slowly(size_t i)
{
    peer_connect(&scene.peers[i], &scene.address, scene.with_tls, SMALL);
    scene_accept(SMALL);
    scene.peers[i].reads_most = 0;
    return &scene.peers[i];
}

void scene_say(struct peer *peer, const char *text)
{
    peer_say(peer, sl_slice_str(text));
}

/* --- a summary of the answers: "200 body, 400 code" --- */

static struct sl_slice between(struct sl_slice text, const char *before, const char *behind)
{
    char *from = memmem(text.data, text.size, before, strlen(before)), *to;

    if (!from)
        return SL_SLICE_NONE;
    from += strlen(before);
    to = memmem(from, (size_t)(text.data + text.size - from), behind, strlen(behind));
    return to ? sl_slice(from, (size_t)(to - from)) : SL_SLICE_NONE;
}

/* Cuts the first answer off the text; returns its size. False: it is incomplete. */
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
    if (body.size == LARGE && memcmp(body.data, scene.large, LARGE) == 0)
        buffer_append_str(out, "large");
    else
        buffer_append_slice(out, code.data ? code : body);
}

const char *scene_summary(const struct peer *peer, const char *heads)
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

void scene_expect_of(struct peer *peer, const char *expected, const char *heads)
{
    TURN_UNTIL(strlen(scene_summary(peer, heads)) >= strlen(expected) || peer->was_ended ||
               peer->was_reset);
    assert_string_equal(scene_summary(peer, heads), expected);
    buffer_clear(&peer->heard);
}

void scene_expect(struct peer *peer, const char *expected)
{
    scene_expect_of(peer, expected, NULL);
}

void scene_expect_end(struct peer *peer, const char *expected)
{
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_false(peer->was_reset);
    assert_int_equal(peer->was_told, scene.with_tls);
    scene_expect(peer, expected);
}

void scene_expect_hung_up(struct peer *peer)
{
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_int_equal(peer->heard.size, 0);
}

void scene_await_metric(enum metric metric, uint64_t value)
{
    TURN_UNTIL(metric_get(scene.metrics, metric) == value);
}

void scene_await_input(size_t size)
{
    struct list_node *last = scene.server->connections.head.previous;

    TURN_UNTIL(LIST_OWNER(last, struct http_connection, node)->input.size == size);
}

struct http_connection *scene_newest(void)
{
    return LIST_OWNER(scene.server->connections.head.previous, struct http_connection, node);
}

void scene_await_stage(const struct http_connection *connection, enum http_stage stage)
{
    TURN_UNTIL(connection->stage == stage);
}

/* --- the folder --- */

static char folder[] = "/tmp/sluice-test-http-XXXXXX";

int scene_make_folder(void **state)
{
    (void)state; /* the tests have their own */
    if (!mkdtemp(folder) || chdir(folder) < 0)
        return -1;
    certificate_write_pair(CERTIFICATE_EC, "localhost", "cert.pem", "key.pem");
    for (size_t i = 0; i < sizeof(scene.large); i++)
        scene.large[i] = (char)('a' + i % 26);
    return 0;
}

int scene_remove_folder(void **state)
{
    (void)state;
    unlink("cert.pem");
    unlink("key.pem");
    return rmdir(folder);
}
