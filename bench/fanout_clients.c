/* fanout_clients.c - all clients in one epoll, each a small state machine: connect, TLS, request,
 * stream.
 *
 * Everything is read into one buffer; only the rest of an incomplete message is stored with its
 * client. The time of a message is the clock after the read that returned it. Posts that are
 * missing, repeated, of another client or unreadable are counted and do not end anything: they show
 * in the result. */
#include "bench/fanout_clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bench/client_socket.h"
#include "bench/measure.h"

enum { READ_SIZE = 1 << 20 };

enum client_state { CLIENT_CONNECTING, CLIENT_SHAKING, CLIENT_OPEN, CLIENT_CLOSED };

struct client {
    struct client_socket socket;
    uint32_t number;
    enum client_state state;
    struct wire wire;
    uint64_t expected; /* number of the next post */
    char *kept;        /* bytes not parsed yet */
    size_t kept_size, kept_capacity;
};

static struct {
    const struct client_settings *settings;
    const struct publish_settings *publish;
    struct client_counts counts;
    struct client *clients;
    char **tokens;
    size_t token_count;
    uint32_t started, shaking;
    uint64_t churn_started;
    uint64_t read_ns; /* clock after the last read */
    char *room;
    int epoll;
} pool;

static void complain(const char *what)
{
    snprintf(pool.counts.complaint, sizeof(pool.counts.complaint), "%s", what);
    for (char *at = pool.counts.complaint; *at; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = ' ';
    }
}

/* --- messages --- */

/* ..."text":"WORD NS NUMBER... */
static bool read_text(const char *bytes, size_t size, uint64_t *ret_ns, uint64_t *ret_number)
{
    const char *text = memmem(bytes, size, "\"text\":\"", 8), *space;
    char *end;

    space = text ? memchr(text, ' ', size - (size_t)(text - bytes)) : NULL;
    if (!space)
        return false;
    *ret_ns = strtoull(space + 1, &end, 10);
    *ret_number = strtoull(end, NULL, 10);
    return *end == ' ';
}

static void on_message(void *owner, const char *bytes, size_t size)
{
    struct client *client = owner;
    uint64_t sent_ns, number, stride = publish_stride(pool.publish), took_ns;

    if (!read_text(bytes, size, &sent_ns, &number)) {
        pool.counts.unreadable++;
        return;
    }
    if (number < client->expected) {
        pool.counts.repeated++;
        return;
    }
    if ((number - client->expected) % stride != 0) {
        pool.counts.foreign++;
        return;
    }
    pool.counts.missing += (number - client->expected) / stride;
    client->expected = number + stride;
    took_ns = pool.read_ns > sent_ns ? pool.read_ns - sent_ns : 0;
    latencies_add(&pool.counts.latencies, took_ns);
    if (!pool.counts.first_ns)
        pool.counts.first_ns = pool.read_ns;
    pool.counts.last_ns = pool.read_ns;
    atomic_fetch_add_explicit(&pool.counts.delivered, 1, memory_order_relaxed);
}

static void on_answer(void *owner, const void *bytes, size_t size)
{
    struct client *client = owner;

    if (client_socket_send(&client->socket, bytes, size) == (ssize_t)size)
        pool.counts.pongs++;
}

/* --- connections --- */

static void close_client(struct client *client, const char *why)
{
    if (client->state == CLIENT_OPEN) {
        pool.counts.open--;
        pool.counts.closed++;
    } else {
        pool.shaking--;
        pool.counts.refused++;
    }
    if (why)
        complain(why);
    client_socket_close(&client->socket);
    wire_done(&client->wire);
    client->state = CLIENT_CLOSED;
}

/* Replaces the single %d of a path. */
static void print_numbered(char *out, size_t size, const char *format, uint64_t number)
{
    const char *hole = strstr(format, "%d");

    if (hole)
        snprintf(out, size, "%.*s%" PRIu64 "%s", (int)(hole - format), format, number, hole + 2);
    else
        snprintf(out, size, "%s", format);
}

static uint64_t keyword_or_number(const struct client *client)
{
    return pool.publish->keywords ? client->number % pool.publish->keywords : client->number;
}

/* Sends one text frame, with a mask of zeros. */
static bool say_hello(struct client *client)
{
    char text[1024], frame[8 + sizeof(text)] = {(char)0x81, (char)(0x80 | 126)};
    size_t size;

    print_numbered(text, sizeof(text), pool.settings->hello, keyword_or_number(client));
    size = strlen(text);
    frame[2] = (char)(size >> 8);
    frame[3] = (char)size;
    memcpy(frame + 8, text, size);
    return client_socket_send(&client->socket, frame, 8 + size) == (ssize_t)(8 + size);
}

static void send_request(struct client *client)
{
    static const char *const accepts[FORMAT_COUNT] = {
        [FORMAT_WEBSOCKET] = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                             "Sec-WebSocket-Key: dGhlcmUgaXMgbm9uY2UgaA==\r\n"
                             "Sec-WebSocket-Version: 13\r\n",
        [FORMAT_NDJSON] = "",
        [FORMAT_DELIMITED] = "",
        [FORMAT_SSE] = "Accept: text/event-stream\r\n",
    };
    static const char *const compressions[FORMAT_COUNT] = {
        [FORMAT_WEBSOCKET] = "Sec-WebSocket-Extensions: permessage-deflate\r\n",
        [FORMAT_NDJSON] = "Accept-Encoding: gzip\r\n",
        [FORMAT_DELIMITED] = "Accept-Encoding: gzip\r\n",
        [FORMAT_SSE] = "Accept-Encoding: gzip\r\n",
    };
    const struct client_settings *settings = pool.settings;
    char path[1024], request[8192];
    const char *token = pool.token_count ? pool.tokens[client->number % pool.token_count] : NULL;
    int size;

    print_numbered(path, sizeof(path), settings->path, keyword_or_number(client));
    size = snprintf(request, sizeof(request),
                    "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s%s%s%s%s%s\r\n", path,
                    settings->port, accepts[settings->format],
                    settings->is_compressed ? compressions[settings->format] : "",
                    token ? "Authorization: Bearer " : "", token ? token : "", token ? "\r\n" : "",
                    settings->header ? settings->header : "", settings->header ? "\r\n" : "");
    if (client_socket_send(&client->socket, request, (size_t)size) != size) {
        close_client(client, "the request did not go out");
        return;
    }
    client->state = CLIENT_SHAKING;
}

static void start_client(struct client *client)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = client};

    client->state = CLIENT_CONNECTING;
    client->wire = (struct wire){.format = pool.settings->format};
    client->expected = publish_first_with(
        pool.publish, pool.publish->keywords ? client->number % pool.publish->keywords : 0);
    client->kept_size = 0;
    pool.shaking++;
    client_socket_open(&client->socket, pool.settings->port, client->number, pool.settings->is_tls);
    if (epoll_ctl(pool.epoll, EPOLL_CTL_ADD, client->socket.fd, &event) < 0)
        measure_fail("epoll_ctl", NULL);
}

/* Writable: connected. From then on only input matters. */
static void on_connecting(struct client *client, uint32_t events)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    int r = client_socket_connect(&client->socket);

    if (r < 0) {
        close_client(client, strerror(errno));
        return;
    }
    if (events & EPOLLOUT)
        epoll_ctl(pool.epoll, EPOLL_CTL_MOD, client->socket.fd, &event);
    if (r > 0)
        send_request(client);
}

static void churn(struct client *client)
{
    client_socket_close(&client->socket);
    client->state = CLIENT_CLOSED;
    pool.shaking--;
    if (pool.churn_started < pool.settings->churn) {
        pool.churn_started++;
        client->number += pool.settings->count; /* the next token, another address */
        start_client(client);
    }
}

/* Returns the size of the head; 0: incomplete; -1: closed, refused, or counted and done. */
static ptrdiff_t take_head(struct client *client, char *bytes, size_t size)
{
    const char *wanted =
        pool.settings->format == FORMAT_WEBSOCKET ? "HTTP/1.1 101" : "HTTP/1.1 200";
    char *end = memmem(bytes, size, "\r\n\r\n", 4);

    if (!end)
        return 0;
    *end = '\0';
    if (strncmp(bytes, wanted, strlen(wanted)) != 0) {
        close_client(client, bytes);
        return -1;
    }
    if (pool.settings->is_compressed && !strcasestr(bytes, "permessage-deflate") &&
        !strcasestr(bytes, "content-encoding: gzip")) {
        close_client(client, "it does not compress");
        return -1;
    }
    client->wire.is_chunked = strcasestr(bytes, "transfer-encoding: chunked") != NULL;
    pool.counts.handshakes++;
    if (pool.settings->churn) {
        churn(client);
        return -1;
    }
    if (pool.settings->hello && !say_hello(client)) {
        close_client(client, "the first message did not go out");
        return -1;
    }
    if (pool.settings->is_compressed)
        wire_begin_inflating(&client->wire);
    client->state = CLIENT_OPEN;
    pool.shaking--;
    pool.counts.open++;
    return end + 4 - bytes;
}

static void keep(struct client *client, const char *bytes, size_t size)
{
    if (size > client->kept_capacity) {
        client->kept_capacity = size * 2;
        client->kept = realloc(client->kept, client->kept_capacity);
        if (!client->kept)
            measure_fail("memory", NULL);
    }
    if (size > 0)
        memcpy(client->kept, bytes, size);
    client->kept_size = size;
}

/* `kept` bytes of `bytes` have been dechunked and inflated already; `fresh` bytes are as
 * received. */
static void on_stream(struct client *client, char *bytes, size_t kept, size_t fresh)
{
    struct wire_reader reader = {on_message, on_answer, client};
    bool ended = false;
    ptrdiff_t used;
    size_t size;

    if (client->wire.is_chunked)
        fresh = wire_dechunk(&client->wire, bytes + kept, fresh, &ended);
    size = kept + fresh;
    if (client->wire.inflater && client->wire.format != FORMAT_WEBSOCKET)
        bytes = wire_inflate(&client->wire, bytes, kept, fresh, &size);
    used = bytes ? wire_take(&client->wire, bytes, size, &reader) : -1;
    if (used < 0 || ended)
        close_client(client, "the server ended the stream, or it makes no sense");
    else
        keep(client, bytes + used, size - (size_t)used);
}

static void on_readable(struct client *client)
{
    size_t kept = client->kept_size;
    ptrdiff_t head;
    ssize_t size;

    if (kept > 0)
        memcpy(pool.room, client->kept, kept);
    size = client_socket_read(&client->socket, pool.room + kept, READ_SIZE - kept);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        close_client(client, size < 0 ? strerror(errno) : "closed by the server");
        return;
    }
    pool.read_ns = measure_now_ns();
    pool.counts.bytes += (uint64_t)size;
    if (client->state == CLIENT_OPEN) {
        on_stream(client, pool.room, kept, (size_t)size);
        return;
    }
    head = take_head(client, pool.room, kept + (size_t)size);
    if (head == 0)
        keep(client, pool.room, kept + (size_t)size);
    else if (head > 0)
        on_stream(client, pool.room + head, 0, kept + (size_t)size - (size_t)head);
}

void clients_turn(int wait_ms)
{
    struct epoll_event ready[512];
    int count = epoll_wait(pool.epoll, ready, 512, wait_ms);

    for (int i = 0; i < count; i++) {
        struct client *client = ready[i].data.ptr;

        if (client->state == CLIENT_CONNECTING)
            on_connecting(client, ready[i].events);
        else if (client->state != CLIENT_CLOSED)
            on_readable(client);
    }
}

void clients_turn_for(uint64_t ms)
{
    uint64_t until = measure_now_ns() + ms * 1000000;

    while (measure_now_ns() < until)
        clients_turn((int)((until - measure_now_ns()) / 1000000 + 1));
}

/* --- all of them --- */

static void read_tokens(const char *name)
{
    FILE *file = fopen(name, "re");
    char line[4096];

    if (!file)
        measure_fail(name, NULL);
    while (fgets(line, sizeof(line), file)) {
        pool.tokens = realloc(pool.tokens, (pool.token_count + 1) * sizeof(*pool.tokens));
        line[strcspn(line, "\r\n")] = '\0';
        if (!pool.tokens || !(pool.tokens[pool.token_count] = strdup(line)))
            measure_fail("memory", NULL);
        pool.token_count++;
    }
    fclose(file);
}

const struct client_counts *clients_init(const struct client_settings *settings,
                                         const struct publish_settings *publish)
{
    pool.settings = settings;
    pool.publish = publish;
    if (settings->token_file)
        read_tokens(settings->token_file);
    pool.clients = calloc(settings->count, sizeof(*pool.clients));
    pool.room = malloc(READ_SIZE);
    pool.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!pool.clients || !pool.room || pool.epoll < 0)
        measure_fail("memory", NULL);
    return &pool.counts;
}

void clients_open(void)
{
    const struct client_settings *settings = pool.settings;

    while (pool.started < settings->count || pool.shaking > 0) {
        while (pool.started < settings->count && pool.shaking < settings->at_once) {
            pool.clients[pool.started].number = pool.started;
            pool.churn_started++;
            start_client(&pool.clients[pool.started++]);
        }
        clients_turn(1000);
    }
}

static uint64_t posts_expected(uint64_t keyword)
{
    const struct publish_settings *publish = pool.publish;
    uint64_t first = publish_first_with(publish, keyword);

    if (first >= publish->posts)
        return 0;
    return (publish->posts - first - 1) / publish_stride(publish) + 1;
}

uint64_t clients_expected(void)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < pool.settings->count; i++) {
        if (pool.clients[i].state == CLIENT_OPEN)
            total += posts_expected(pool.publish->keywords ? i % pool.publish->keywords : 0);
    }
    return total;
}
