/* bench/broadcaster.c - what does a delivery cost at least?
 *
 * A minimal program that subscribes to a channel of Redis and sends each message to every client as
 * WebSocket, NDJSON or SSE, plain or over TLS: without tokens, filters (except for one word),
 * limits, or checks of its input. The costs of sluiced are divided by those of this program;
 * without posts and with --certificate it shows what OpenSSL itself needs for an idle connection.
 *
 * Framed posts are stored one after the other in a ring whose memory is mapped twice, so that all
 * that a client has not received yet is contiguous and is sent with one send(). With --coalesce
 * that happens once per turn of the loop, with --tick that many milliseconds after the first post,
 * otherwise after each post. Over TLS, data is encrypted for each client separately, in records of
 * up to 16 KiB.
 *
 * With --words a client passes ?track=WORD, and gets the posts whose text has this word between
 * spaces: one lookup in a table for each word, and a send() for each client found. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "bench/measure.h"

enum {
    RING = 64 << 20,
    BEHIND = RING - (1 << 20), /* clients that are further behind have lost posts */
    INPUT = 4 << 20,
    ACCEPTS = 64, /* per turn */
    BUCKETS = 1 << 16,
    RECORD = 16384
};

enum format { FORMAT_WS, FORMAT_NDJSON, FORMAT_SSE };

struct client {
    int fd;
    uint32_t index; /* of all clients */
    SSL *ssl;
    uint64_t cursor;     /* in the stream of frames */
    struct client *next; /* with a word of the same bucket */
    bool is_open, is_blocked;
    char word[22];
};

static struct {
    uint16_t port, redis_port;
    const char *channel, *certificate, *key;
    enum format format;
    bool coalesces, has_words;
    unsigned tick_ms;
} options = {.channel = "posts"};

static struct {
    int epoll, listener, redis;
    char *ring;
    uint64_t head; /* of the stream of frames */
    struct client **clients, *buckets[BUCKETS];
    uint32_t count, capacity;
    SSL_CTX *tls;
    EVP_MD *sha1;
    EVP_MD_CTX *digest;
    char prefix[128]; /* of each message of Redis, up to the size of the post */
    size_t prefix_size, input_size;
    char input[INPUT];
} server;

static volatile sig_atomic_t is_over;

static void on_signal(int number)
{
    (void)number;
    is_over = 1;
}

/* --- clients --- */

static unsigned bucket_of(const char *word, size_t size)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)word[i]) * 16777619u;
    return (hash ^ hash >> 16) % BUCKETS;
}

static void close_client(struct client *client)
{
    if (client->word[0]) {
        struct client **link = &server.buckets[bucket_of(client->word, strlen(client->word))];

        while (*link != client)
            link = &(*link)->next;
        *link = client->next;
    }
    server.clients[client->index] = server.clients[--server.count];
    server.clients[client->index]->index = client->index;
    SSL_free(client->ssl);
    close(client->fd);
    free(client);
}

static void watch_writable(struct client *client, bool is_blocked)
{
    struct epoll_event event = {.events = EPOLLIN | (is_blocked ? EPOLLOUT : 0),
                                .data.ptr = client};

    if (client->is_blocked == is_blocked)
        return;
    client->is_blocked = is_blocked;
    epoll_ctl(server.epoll, EPOLL_CTL_MOD, client->fd, &event);
}

/* The results are those of send() and recv() on a non-blocking socket. */
static ssize_t tls_result(struct client *client, int r)
{
    int error = r > 0 ? SSL_ERROR_NONE : SSL_get_error(client->ssl, r);

    errno = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? EAGAIN : EPROTO;
    if (errno == EPROTO)
        ERR_clear_error();
    return r > 0 ? r : -1;
}

static ssize_t client_send(struct client *client, const char *bytes, size_t size)
{
    if (!client->ssl)
        return send(client->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return tls_result(client, SSL_write(client->ssl, bytes, size < RECORD ? (int)size : RECORD));
}

static ssize_t client_read(struct client *client, char *room, size_t size)
{
    if (!client->ssl)
        return recv(client->fd, room, size, MSG_DONTWAIT);
    return tls_result(client, SSL_read(client->ssl, room, (int)size));
}

static void send_rest(struct client *client)
{
    ssize_t sent = 1;

    if (server.head - client->cursor > BEHIND)
        measure_fail("client", "too far behind");
    while (client->cursor < server.head && sent > 0) {
        sent =
            client_send(client, server.ring + client->cursor % RING, server.head - client->cursor);
        if (sent > 0)
            client->cursor += (uint64_t)sent;
    }
    watch_writable(client, client->cursor < server.head);
}

static void send_all(void)
{
    for (uint32_t i = 0; i < server.count; i++) {
        struct client *client = server.clients[i];

        if (client->is_open && !client->is_blocked && client->cursor < server.head)
            send_rest(client);
    }
}

/* --- posts --- */

static size_t frame_post(char *out, const char *post, size_t size)
{
    unsigned char head[4] = {0x81, (unsigned char)size};
    size_t head_size = 2;

    if (options.format == FORMAT_WS) {
        if (size > 65535)
            measure_fail("post", "too long");
        if (size > 125) {
            head[1] = 126;
            head[2] = (unsigned char)(size >> 8);
            head[3] = (unsigned char)size;
            head_size = 4;
        }
        memcpy(out, head, head_size);
        memcpy(out + head_size, post, size);
        return head_size + size;
    }
    if (options.format == FORMAT_SSE)
        return (size_t)sprintf(out, "%zx\r\ndata: %.*s\n\n\r\n", size + 8, (int)size, post);
    return (size_t)sprintf(out, "%zx\r\n%.*s\n\r\n", size + 1, (int)size, post);
}

static void send_to_word(const char *word, size_t size, const char *frame, size_t frame_size)
{
    struct client *client = server.buckets[bucket_of(word, size)];

    for (; client; client = client->next) {
        if (strlen(client->word) == size && memcmp(client->word, word, size) == 0 &&
            client_send(client, frame, frame_size) != (ssize_t)frame_size)
            measure_fail("client", "too slow");
    }
}

static void send_by_words(const char *post, size_t size)
{
    static char frame[1 << 17];
    size_t frame_size = frame_post(frame, post, size);
    const char *at = memmem(post, size, "\"text\":\"", 8), *end = post + size, *word;

    for (at = at ? at + 8 : end; at < end && *at != '"';) {
        for (word = at; at < end && *at != ' ' && *at != '"';)
            at++;
        send_to_word(word, (size_t)(at - word), frame, frame_size);
        while (at < end && *at == ' ')
            at++;
    }
}

static void on_post(const char *post, size_t size)
{
    if (options.has_words) {
        send_by_words(post, size);
        return;
    }
    server.head += frame_post(server.ring + server.head % RING, post, size);
    if (!options.coalesces)
        send_all();
}

/* --- Redis --- */

static void on_redis(void)
{
    ssize_t got = recv(server.redis, server.input + server.input_size, INPUT - server.input_size,
                       MSG_DONTWAIT);
    char *at = server.input, *end, *size_end;

    if (got <= 0)
        measure_fail("redis", "gone");
    server.input_size += (size_t)got;
    end = server.input + server.input_size;
    while ((size_t)(end - at) > server.prefix_size) {
        size_t size;

        if (memcmp(at, server.prefix, server.prefix_size) != 0)
            measure_fail("redis", "no message");
        size_end = memchr(at + server.prefix_size, '\n', (size_t)(end - at) - server.prefix_size);
        size = size_end ? strtoul(at + server.prefix_size, NULL, 10) : 0;
        if (!size_end || (size_t)(end - size_end) < 1 + size + 2)
            break;
        on_post(size_end + 1, size);
        at = size_end + 1 + size + 2;
    }
    server.input_size = (size_t)(end - at);
    memmove(server.input, at, server.input_size);
}

static void subscribe(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.redis_port)};
    size_t size = strlen(options.channel);
    char text[256];

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.redis = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(server.redis, (struct sockaddr *)&address, sizeof(address)) < 0)
        measure_fail("redis", NULL);
    snprintf(text, sizeof(text), "*2\r\n$9\r\nSUBSCRIBE\r\n$%zu\r\n%s\r\n", size, options.channel);
    send(server.redis, text, strlen(text), MSG_NOSIGNAL);
    snprintf(text, sizeof(text), "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", size,
             options.channel);
    if (recv(server.redis, server.input, strlen(text), MSG_WAITALL) != (ssize_t)strlen(text))
        measure_fail("redis", "no subscription");
    server.prefix_size =
        (size_t)snprintf(server.prefix, sizeof(server.prefix),
                         "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$", size, options.channel);
}

/* --- handshakes --- */

static void on_accept(void)
{
    int on = 1;

    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(server.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct client *client = fd < 0 ? NULL : calloc(1, sizeof(*client));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};

        if (!client)
            return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        client->fd = fd;
        client->index = server.count;
        if (server.count == server.capacity) {
            server.capacity = server.capacity * 2 + 1024;
            server.clients = realloc(server.clients, server.capacity * sizeof(struct client *));
            if (!server.clients)
                measure_fail("memory", NULL);
        }
        server.clients[server.count++] = client;
        if (server.tls) {
            client->ssl = SSL_new(server.tls);
            SSL_set_fd(client->ssl, fd);
            SSL_set_accept_state(client->ssl);
        }
        epoll_ctl(server.epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

/* Computes Sec-WebSocket-Accept from the key (RFC 6455). */
static void accept_key(const char *key, char out[32])
{
    char text[64];
    unsigned char sum[20];

    snprintf(text, sizeof(text), "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    EVP_DigestInit_ex2(server.digest, server.sha1, NULL);
    EVP_DigestUpdate(server.digest, text, strlen(text));
    EVP_DigestFinal_ex(server.digest, sum, NULL);
    EVP_EncodeBlock((unsigned char *)out, sum, sizeof(sum));
}

static void answer(struct client *client, const char *request)
{
    const char *key = strcasestr(request, "\r\nsec-websocket-key: ");
    const char *track = options.has_words ? strstr(request, "track=") : NULL;
    char head[256], sum[32];

    if (key) {
        accept_key(key + 21, sum);
        snprintf(head, sizeof(head),
                 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                 "Connection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                 sum);
    } else {
        snprintf(head, sizeof(head),
                 "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n",
                 options.format == FORMAT_SSE ? "text/event-stream" : "application/x-ndjson");
    }
    if (track) {
        struct client **bucket;

        snprintf(client->word, sizeof(client->word), "%.*s", (int)strcspn(track + 6, " &\r"),
                 track + 6);
        bucket = &server.buckets[bucket_of(client->word, strlen(client->word))];
        client->next = *bucket;
        *bucket = client;
    }
    client->is_open = true;
    client->cursor = server.head;
    if (client_send(client, head, strlen(head)) != (ssize_t)strlen(head))
        close_client(client);
}

/* A request must arrive whole, in one piece; if anything comes after it, the client is closed. */
static void on_client(struct client *client, uint32_t events)
{
    char room[8192];
    ssize_t size;

    if (events & EPOLLOUT)
        send_rest(client);
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    size = client_read(client, room, sizeof(room) - 1);
    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0) {
        close_client(client);
        return;
    }
    room[size] = '\0';
    if (!client->is_open)
        answer(client, room);
}

/* --- the program --- */

static void turn(int wait_ms)
{
    struct epoll_event ready[512];
    int count = epoll_wait(server.epoll, ready, 512, wait_ms);
    bool has_posts = false, has_clients = false;

    for (int i = 0; i < count; i++) {
        if (ready[i].data.ptr == &server.listener)
            has_clients = true;
        else if (ready[i].data.ptr == &server.redis)
            has_posts = true;
        else
            on_client(ready[i].data.ptr, ready[i].events);
    }
    if (has_clients)
        on_accept();
    if (has_posts)
        on_redis();
}

static void serve(void)
{
    uint64_t due_ns = 0, now_ns, sent = 0;

    while (!is_over) {
        now_ns = due_ns ? measure_now_ns() : 0;
        turn(!due_ns ? -1 : now_ns >= due_ns ? 0 : (int)((due_ns - now_ns) / 1000000 + 1));
        if (!options.coalesces || server.head == sent)
            continue;
        if (options.tick_ms && !due_ns)
            due_ns = measure_now_ns() + options.tick_ms * 1000000ull;
        if (!options.tick_ms || measure_now_ns() >= due_ns) {
            send_all();
            sent = server.head;
            due_ns = 0;
        }
    }
}

static void map_ring(void)
{
    int fd = memfd_create("ring", MFD_CLOEXEC);

    server.ring = mmap(NULL, 2ul * RING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || ftruncate(fd, RING) < 0 || server.ring == MAP_FAILED)
        measure_fail("memory", NULL);
    for (int i = 0; i < 2; i++) {
        if (mmap(server.ring + (size_t)i * RING, RING, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
            measure_fail("memory", NULL);
    }
}

static void prepare_tls(void)
{
    server.tls = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(server.tls, options.certificate) != 1 ||
        SSL_CTX_use_PrivateKey_file(server.tls, options.key, SSL_FILETYPE_PEM) != 1)
        measure_fail(options.certificate, "no certificate, or no key");
    SSL_CTX_set_session_cache_mode(server.tls, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(server.tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS |
                                     SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static void listen_and_watch(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(options.port)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &server.listener};
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(server.listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(server.listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(server.listener, 4096) < 0)
        measure_fail("listen", NULL);
    server.epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(server.epoll, EPOLL_CTL_ADD, server.listener, &event);
    event.data.ptr = &server.redis;
    epoll_ctl(server.epoll, EPOLL_CTL_ADD, server.redis, &event);
}

static _Noreturn void fail_with_usage(void)
{
    fputs("broadcaster --port P --redis-port P [--channel C] [--format ws|ndjson|sse]\n"
          "            [--coalesce | --tick MS] [--words] [--certificate FILE --key FILE]\n",
          stderr);
    exit(2);
}

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},   {"redis-port", 1, NULL, 'r'},  {"channel", 1, NULL, 'c'},
        {"format", 1, NULL, 'f'}, {"coalesce", 0, NULL, 'C'},    {"tick", 1, NULL, 't'},
        {"words", 0, NULL, 'w'},  {"certificate", 1, NULL, 'T'}, {"key", 1, NULL, 'K'},
        {NULL, 0, NULL, 0},
    };

    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (name) {
        case 'p':
            options.port = (uint16_t)atoi(optarg);
            break;
        case 'r':
            options.redis_port = (uint16_t)atoi(optarg);
            break;
        case 'c':
            options.channel = optarg;
            break;
        case 'f':
            options.format = strcmp(optarg, "ws") == 0    ? FORMAT_WS
                             : strcmp(optarg, "sse") == 0 ? FORMAT_SSE
                                                          : FORMAT_NDJSON;
            break;
        case 't':
            options.tick_ms = (unsigned)atoi(optarg);
            options.coalesces = true;
            break;
        case 'C':
            options.coalesces = true;
            break;
        case 'w':
            options.has_words = true;
            break;
        case 'T':
            options.certificate = optarg;
            break;
        case 'K':
            options.key = optarg;
            break;
        default:
            fail_with_usage();
        }
    }
    if (!options.port || !options.redis_port || !options.certificate != !options.key)
        fail_with_usage();
}

int main(int argc, char **argv)
{
    struct rlimit files;

    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, on_signal);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    server.sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    server.digest = EVP_MD_CTX_new();
    map_ring();
    if (options.certificate)
        prepare_tls();
    subscribe();
    listen_and_watch();
    serve();
    return 0;
}
