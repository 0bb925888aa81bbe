/* fuzz_http.c - does a stream of requests get the same answers however it is cut?
 *
 * An HTTP server is at one end of a socket pair, the input at the other: the first two bytes say
 * how the rest is cut. It is sent whole and in pieces: the same answers must come, and the end of
 * the stream. Whether a client that waits for 100 (Continue) gets it depends on the cut, so these
 * are left out, and so is the time in Date. Nothing waits: the loop runs until nothing is left to
 * do. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "gateway/http/http_server.h"

enum { MAX_HEAD = 300, MAX_BODY = 20000, TIMEOUT_MS = 3600000, TURNS_MAX = 100000 };

struct world {
    uv_loop_t loop;
    uv_prepare_t turn_end;
    struct turn turn;
    struct wires *wires;
    struct metrics_board *board;
};

struct client {
    struct world *world;
    int fd;
    bool is_ended;
    struct buffer heard;
    struct wire taken;
    struct http_connection *asked; /* is answered in the next turn */
};

/* --- the server --- */

static void on_taken_received(struct wire *wire, char *bytes, size_t size)
{
    must(wire_write(wire, sl_slice(bytes, size)) == 0);
}

static void on_taken_writable(struct wire *wire)
{
    (void)wire;
}

static const struct wire_callbacks taken_callbacks = {on_taken_received, on_taken_writable,
                                                      on_taken_writable};

static void on_abandoned(void *owner)
{
    ((struct client *)owner)->asked = NULL;
}

/* Refuses nothing: it is only called for heads that arrive without their body. */
static int check(void *owner, struct http_connection *connection, const struct http_head *head,
                 struct http_refusal *refusal)
{
    (void)owner;
    (void)head;
    (void)refusal;
    http_connection_set_headers(connection, SL_SLICE("X: checked\r\n"));
    return 0;
}

static void answer(struct http_connection *connection, struct sl_slice text)
{
    http_answer(connection,
                &(struct http_answer){.status = 200, .content_type = "text/plain", .body = text});
}

static void handle(void *owner, struct http_connection *connection, const struct http_head *head)
{
    struct sl_slice path = head->request.path, body = head->request.body;
    struct client *client = owner;
    struct buffer text = BUFFER_INIT;

    must(body.size == head->body_size && body.size <= MAX_BODY);
    http_connection_set_headers(connection, SL_SLICE("X: handled\r\n"));
    if (sl_slice_is(path, "/later")) {
        client->asked = connection;
        http_answer_later(connection, on_abandoned, client);
        return;
    }
    if (sl_slice_is(path, "/take")) {
        http_take_over(connection, &client->taken, &taken_callbacks);
        return;
    }
    buffer_append_slice(&text, path);
    for (size_t i = 0; i < body.size; i++)
        buffer_append_format(&text, "%02x", (unsigned char)body.data[i]);
    answer(connection, buffer_slice(&text));
    buffer_done(&text);
}

static const struct http_handler handler = {check, handle, NULL};

/* --- the two ends --- */

static void hear(struct client *client)
{
    char room[16384];
    ssize_t size;

    while ((size = recv(client->fd, room, sizeof(room), MSG_DONTWAIT)) > 0)
        buffer_append(&client->heard, room, (size_t)size);
    if (size == 0 || errno == ECONNRESET || errno == EPIPE)
        client->is_ended = true;
}

static void run_turn(struct client *client)
{
    uv_run(&client->world->loop, UV_RUN_NOWAIT);
    if (client->asked) {
        struct http_connection *asked = client->asked;

        client->asked = NULL;
        answer(asked, SL_SLICE("later"));
    }
    hear(client);
}

/* Sends until all is accepted, or not wanted any more. */
static void send_piece(struct client *client, const uint8_t *data, size_t size)
{
    for (unsigned turns = 0; size > 0 && !client->is_ended; turns++) {
        ssize_t sent = send(client->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

        must(turns < TURNS_MAX);
        if (sent < 0 && errno != EAGAIN)
            return;
        data += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
        run_turn(client);
    }
}

static void send_all(struct client *client, const uint8_t *data, size_t size, const size_t cuts[2])
{
    for (size_t i = 0; size > 0; i ^= 1) {
        size_t part = cuts[i] < size ? cuts[i] : size;

        send_piece(client, data, part);
        data += part;
        size -= part;
    }
    shutdown(client->fd, SHUT_WR);
    for (unsigned turns = 0; !client->is_ended; turns++) {
        must(turns < TURNS_MAX);
        run_turn(client);
    }
}

static void leave_out(struct buffer *heard, struct sl_slice text)
{
    char *found;

    while (heard->size > 0 && (found = memmem(heard->data, heard->size, text.data, text.size))) {
        heard->size -= text.size;
        memmove(found, found + text.size, heard->size - (size_t)(found - heard->data));
    }
}

static void mask_dates(struct buffer *heard)
{
    static const char name[] = "\r\nDate: ", time[] = "Sun, 06 Nov 1994 08:49:37 GMT";
    const size_t name_size = sizeof(name) - 1, size = name_size + sizeof(time) - 1;
    char *at = heard->data, *found;

    while (heard->size > 0 &&
           (found = memmem(at, heard->size - (size_t)(at - heard->data), name, name_size)) &&
           heard->size - (size_t)(found - heard->data) >= size) {
        memset(found + name_size, '-', size - name_size);
        at = found + size;
    }
}

static void ask(struct world *world, const uint8_t *data, size_t size, const size_t cuts[2],
                struct buffer *ret_heard)
{
    struct client client = {.world = world, .taken = {.fd = -1}};
    const struct http_server_settings settings = {.loop = &world->loop,
                                                  .turn = &world->turn,
                                                  .wires = world->wires,
                                                  .metrics = metrics_slot(world->board, 0),
                                                  .handler = &handler,
                                                  .owner = &client,
                                                  .max_head_bytes = MAX_HEAD,
                                                  .max_body_bytes = MAX_BODY,
                                                  .timeout_ms = TIMEOUT_MS,
                                                  .max_pending = 1,
                                                  .max_idle = 1,
                                                  .max_lingering = 1};
    struct http_server *server = http_server_new(&settings);
    int pair[2];

    must(server != NULL);
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    http_server_accept(server, pair[0], false, false, 0);
    client.fd = pair[1];
    send_all(&client, data, size, cuts);
    close(client.fd);
    http_server_close(server);
    turn_run(&world->turn);
    wire_close(&client.taken);
    http_server_free(server);
    uv_run(&world->loop, UV_RUN_NOWAIT); /* closes its handles */
    leave_out(&client.heard, SL_SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
    mask_dates(&client.heard);
    *ret_heard = client.heard;
}

static void on_turn_end(uv_prepare_t *prepare)
{
    turn_run(&((struct world *)prepare->data)->turn);
}

static struct world *world_begin(void)
{
    static struct world world;
    const struct wires_settings settings = {.loop = &world.loop,
                                            .handshake_timeout_ms = TIMEOUT_MS};
    struct failure failure;

    if (world.wires)
        return &world;
    uv_loop_init(&world.loop);
    turn_init(&world.turn);
    uv_prepare_init(&world.loop, &world.turn_end);
    world.turn_end.data = &world;
    uv_prepare_start(&world.turn_end, on_turn_end);
    world.board = metrics_board_new(1);
    must(world.board && wires_new(&settings, &world.wires, &failure) == 0);
    return &world;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world *world = world_begin();
    struct buffer whole, cut;

    if (size < 2)
        return 0;
    ask(world, data + 2, size - 2, (size_t[]){size, size}, &whole);
    ask(world, data + 2, size - 2, (size_t[]){data[0] + 1U, data[1] + 1U}, &cut);
    must(sl_slice_equal(buffer_slice(&whole), buffer_slice(&cut)));
    buffer_done(&whole);
    buffer_done(&cut);
    return 0;
}
