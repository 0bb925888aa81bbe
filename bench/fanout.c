/* bench/fanout.c - what does one delivery cost a server, and does everything arrive?
 *
 * Opens many streams on one server, publishes numbered posts, checks that every client gets exactly
 * the posts that are its own, in order and none twice, and prints one line of JSON: counts,
 * latencies, the CPU time of the server's processes and their memory. Nothing in it knows Sluice
 * but the shape of a post, so that other servers can be held against it. bench/performance runs it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/fanout_process.h"
#include "bench/fanout_publish.h"
#include "bench/fanout_wire.h"

enum {
    READ_SIZE = 1 << 20,
    SOURCES = 16, /* addresses 127.0.0.1 and on, so that ports do not run out */
    OCTAVE = 64,  /* steps of the histogram in each doubling */
    HISTOGRAM = 40 * OCTAVE,
    QUIET_MS = 5000, /* nothing came for so long: nothing will */
    LINGER_MS = 250, /* after the last post: for what should not come */
    STILL_MS = 500   /* between the last handshake and the first post */
};

enum client_state { CLIENT_CONNECTING, CLIENT_SHAKING, CLIENT_OPEN, CLIENT_CLOSED };

struct client {
    int fd;
    uint32_t number;
    enum client_state state;
    struct wire wire;
    uint64_t expected; /* number of the post that must come next */
    char *kept;        /* bytes not used up yet */
    size_t kept_size, kept_capacity;
};

struct counts {
    _Atomic uint64_t delivered; /* the publisher looks */
    uint64_t bytes, missing, repeated, foreign, unreadable, pongs;
    uint64_t open, refused, closed, handshakes;
};

struct options {
    uint16_t port;
    enum wire_format format;
    const char *path, *header, *token_file;
    uint32_t clients, at_once;
    uint64_t churn; /* handshakes to make and close; 0: streams that stay */
    bool from_log;  /* the posts have been published; the path says since when */
    unsigned idle_s;
    pid_t server;
    unsigned max_s;
};

struct bench {
    struct options options;
    struct publish_settings publish;
    struct counts counts;
    struct client *clients;
    char **tokens;
    size_t token_count;
    uint32_t started, shaking;
    uint64_t churn_started;
    uint64_t first_ns, last_ns; /* of what was delivered */
    uint64_t read_ns;           /* clock after the last read */
    uint64_t histogram[HISTOGRAM], slowest_ns;
    char *room;
    int epoll;
    _Atomic int is_over;
    char complaint[160]; /* the last thing that went wrong */
};

static struct bench bench = {
    .options = {.path = "/v1/stream/firehose", .clients = 100, .at_once = 64, .max_s = 120},
    .publish = {.channel = "sluice:{0}:live", .size = 500, .keyword_every = 1},
};

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void give_up(const char *what)
{
    fprintf(stderr, "fanout: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void complain(const char *what)
{
    snprintf(bench.complaint, sizeof(bench.complaint), "%s", what);
    for (char *at = bench.complaint; *at; at++) {
        if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
            *at = ' ';
    }
}

/* --- latencies --- */

static size_t step_of(uint64_t ns)
{
    unsigned octave;
    size_t step;

    if (ns < OCTAVE)
        return ns;
    octave = 63 - (unsigned)__builtin_clzll(ns);
    step = (octave - 5) * (size_t)OCTAVE + (ns >> (octave - 6) & (OCTAVE - 1));
    return step < HISTOGRAM ? step : HISTOGRAM - 1;
}

static double step_ms(size_t step)
{
    size_t octave = step / OCTAVE + 5;

    if (step < OCTAVE)
        return (double)step / 1e6;
    return (double)((OCTAVE + step % OCTAVE) << (octave - 6)) / 1e6;
}

static double latency_ms(double share)
{
    uint64_t all = 0, seen = 0;

    for (size_t i = 0; i < HISTOGRAM; i++)
        all += bench.histogram[i];
    for (size_t i = 0; i < HISTOGRAM; i++) {
        seen += bench.histogram[i];
        if (seen > 0 && (double)seen >= share * (double)all)
            return step_ms(i);
    }
    return 0;
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
    uint64_t sent_ns, number, stride = publish_stride(&bench.publish), took_ns;

    if (!read_text(bytes, size, &sent_ns, &number)) {
        bench.counts.unreadable++;
        return;
    }
    if (number < client->expected) {
        bench.counts.repeated++;
        return;
    }
    if ((number - client->expected) % stride != 0) {
        bench.counts.foreign++;
        return;
    }
    bench.counts.missing += (number - client->expected) / stride;
    client->expected = number + stride;
    took_ns = bench.read_ns > sent_ns ? bench.read_ns - sent_ns : 0;
    bench.histogram[step_of(took_ns)]++;
    if (took_ns > bench.slowest_ns)
        bench.slowest_ns = took_ns;
    if (!bench.first_ns)
        bench.first_ns = bench.read_ns;
    bench.last_ns = bench.read_ns;
    atomic_fetch_add_explicit(&bench.counts.delivered, 1, memory_order_relaxed);
}

static void on_answer(void *owner, const void *bytes, size_t size)
{
    struct client *client = owner;

    if (send(client->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size)
        bench.counts.pongs++;
}

/* --- connections --- */

static void close_client(struct client *client, const char *why)
{
    if (client->state == CLIENT_OPEN) {
        bench.counts.open--;
        bench.counts.closed++;
    } else {
        bench.shaking--;
        bench.counts.refused++;
    }
    if (why)
        complain(why);
    close(client->fd);
    client->state = CLIENT_CLOSED;
}

/* Replaces the one %d of a path. */
static void print_numbered(char *out, size_t size, const char *format, uint64_t number)
{
    const char *hole = strstr(format, "%d");

    if (hole)
        snprintf(out, size, "%.*s%" PRIu64 "%s", (int)(hole - format), format, number, hole + 2);
    else
        snprintf(out, size, "%s", format);
}

static void send_request(struct client *client)
{
    static const char *const accepts[WIRE_FORMAT_COUNT] = {
        [WIRE_WEBSOCKET] = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Key: dGhlcmUgaXMgbm9uY2UgaA==\r\n"
                           "Sec-WebSocket-Version: 13\r\n",
        [WIRE_NDJSON] = "",
        [WIRE_DELIMITED] = "",
        [WIRE_SSE] = "Accept: text/event-stream\r\n",
    };
    const struct options *options = &bench.options;
    char path[1024], request[8192];
    const char *token = bench.token_count ? bench.tokens[client->number % bench.token_count] : NULL;
    int size;

    print_numbered(path, sizeof(path), options->path,
                   bench.publish.keywords ? client->number % bench.publish.keywords
                                          : client->number);
    size = snprintf(request, sizeof(request),
                    "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s%s%s%s%s\r\n", path,
                    options->port, accepts[options->format], token ? "Authorization: Bearer " : "",
                    token ? token : "", token ? "\r\n" : "", options->header ? options->header : "",
                    options->header ? "\r\n" : "");
    if (send(client->fd, request, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL) != size) {
        close_client(client, "the request did not go out");
        return;
    }
    client->state = CLIENT_SHAKING;
}

static void open_socket(struct client *client)
{
    struct sockaddr_in source = {.sin_family = AF_INET}, server = source;
    struct linger reset = {1, 0}; /* no TIME_WAIT: tens of thousands come and go */
    int on = 1;

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (client->fd < 0)
        give_up("socket");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(client->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + client->number % SOURCES);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.sin_port = htons(bench.options.port);
    if (bind(client->fd, (struct sockaddr *)&source, sizeof(source)) < 0)
        give_up("bind");
    if (connect(client->fd, (struct sockaddr *)&server, sizeof(server)) < 0 && errno != EINPROGRESS)
        give_up("connect");
}

static void start_client(struct client *client)
{
    struct epoll_event event = {.events = EPOLLOUT, .data.ptr = client};

    client->state = CLIENT_CONNECTING;
    client->wire = (struct wire){.format = bench.options.format};
    client->expected = publish_first_with(
        &bench.publish, bench.publish.keywords ? client->number % bench.publish.keywords : 0);
    client->kept_size = 0;
    bench.shaking++;
    open_socket(client);
    if (epoll_ctl(bench.epoll, EPOLL_CTL_ADD, client->fd, &event) < 0)
        give_up("epoll_ctl");
}

static void on_connected(struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    socklen_t size = sizeof(int);
    int error = 0;

    getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) {
        close_client(client, strerror(error));
        return;
    }
    epoll_ctl(bench.epoll, EPOLL_CTL_MOD, client->fd, &event);
    send_request(client);
}

static void churn(struct client *client)
{
    close(client->fd);
    client->state = CLIENT_CLOSED;
    bench.shaking--;
    if (bench.churn_started < bench.options.churn) {
        bench.churn_started++;
        client->number += bench.options.clients; /* the next token, another address */
        start_client(client);
    }
}

/* The size of the head, 0: not all there, or -1: closed, refused or counted and done. */
static ptrdiff_t take_head(struct client *client, char *bytes, size_t size)
{
    const char *wanted = bench.options.format == WIRE_WEBSOCKET ? "HTTP/1.1 101" : "HTTP/1.1 200";
    char *end = memmem(bytes, size, "\r\n\r\n", 4);

    if (!end)
        return 0;
    *end = '\0';
    if (strncmp(bytes, wanted, strlen(wanted)) != 0) {
        close_client(client, bytes);
        return -1;
    }
    client->wire.is_chunked = strcasestr(bytes, "transfer-encoding: chunked") != NULL;
    bench.counts.handshakes++;
    if (bench.options.churn) {
        churn(client);
        return -1;
    }
    client->state = CLIENT_OPEN;
    bench.shaking--;
    bench.counts.open++;
    return end + 4 - bytes;
}

static void keep(struct client *client, const char *bytes, size_t size)
{
    if (size > client->kept_capacity) {
        client->kept_capacity = size * 2;
        client->kept = realloc(client->kept, client->kept_capacity);
        if (!client->kept)
            give_up("memory");
    }
    if (size > 0)
        memcpy(client->kept, bytes, size);
    client->kept_size = size;
}

/* `kept` bytes of `bytes` are without their chunked coding already, `fresh` are as they came. */
static void on_stream(struct client *client, char *bytes, size_t kept, size_t fresh)
{
    struct wire_reader reader = {on_message, on_answer, client};
    bool ended = false;
    ptrdiff_t used;

    if (client->wire.is_chunked)
        fresh = wire_dechunk(&client->wire, bytes + kept, fresh, &ended);
    used = wire_take(&client->wire, bytes, kept + fresh, &reader);
    if (used < 0 || ended)
        close_client(client, "the server ended the stream, or it makes no sense");
    else
        keep(client, bytes + used, kept + fresh - (size_t)used);
}

static void on_readable(struct client *client)
{
    size_t kept = client->kept_size;
    ptrdiff_t head;
    ssize_t size;

    if (kept > 0)
        memcpy(bench.room, client->kept, kept);
    size = recv(client->fd, bench.room + kept, READ_SIZE - kept, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0) {
        close_client(client, size < 0 ? strerror(errno) : "closed by the server");
        return;
    }
    bench.read_ns = now_ns();
    bench.counts.bytes += (uint64_t)size;
    if (client->state == CLIENT_OPEN) {
        on_stream(client, bench.room, kept, (size_t)size);
        return;
    }
    head = take_head(client, bench.room, kept + (size_t)size);
    if (head == 0)
        keep(client, bench.room, kept + (size_t)size);
    else if (head > 0)
        on_stream(client, bench.room + head, 0, kept + (size_t)size - (size_t)head);
}

static void turn(int wait_ms)
{
    struct epoll_event ready[512];
    int count = epoll_wait(bench.epoll, ready, 512, wait_ms);

    for (int i = 0; i < count; i++) {
        struct client *client = ready[i].data.ptr;

        if (client->state == CLIENT_CONNECTING)
            on_connected(client);
        else if (client->state != CLIENT_CLOSED)
            on_readable(client);
    }
}

static void turns_for(uint64_t ms)
{
    uint64_t until = now_ns() + ms * 1000000;

    while (now_ns() < until)
        turn((int)((until - now_ns()) / 1000000 + 1));
}

/* --- the run --- */

static void open_all(void)
{
    const struct options *options = &bench.options;

    while (bench.started < options->clients || bench.shaking > 0) {
        while (bench.started < options->clients && bench.shaking < options->at_once) {
            bench.clients[bench.started].number = bench.started;
            bench.churn_started++;
            start_client(&bench.clients[bench.started++]);
        }
        turn(1000);
    }
}

static uint64_t posts_expected(uint64_t keyword)
{
    const struct publish_settings *publish = &bench.publish;
    uint64_t first = publish_first_with(publish, keyword);

    if (first >= publish->posts)
        return 0;
    return (publish->posts - first - 1) / publish_stride(publish) + 1;
}

static uint64_t deliveries_expected(void)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < bench.options.clients; i++) {
        if (bench.clients[i].state == CLIENT_OPEN)
            total += posts_expected(bench.publish.keywords ? i % bench.publish.keywords : 0);
    }
    return total;
}

static void publish_all(uint64_t expected)
{
    uint64_t deadline = now_ns() + (uint64_t)bench.options.max_s * 1000000000, quiet_since;
    uint64_t seen = 0, delivered;
    pthread_t thread;

    bench.publish.delivered = &bench.counts.delivered;
    bench.publish.is_over = &bench.is_over;
    if (bench.publish.keywords == 0)
        bench.publish.deliveries_per_post = bench.counts.open;
    else
        bench.publish.deliveries_per_post = expected / bench.publish.posts;
    if (!bench.options.from_log && pthread_create(&thread, NULL, publish_run, &bench.publish) != 0)
        give_up("thread");
    quiet_since = now_ns();
    while ((delivered = bench.counts.delivered) < expected && now_ns() < deadline) {
        if (delivered != seen)
            quiet_since = now_ns();
        else if (now_ns() - quiet_since > (uint64_t)QUIET_MS * 1000000)
            break;
        seen = delivered;
        turn(100);
    }
    turns_for(LINGER_MS);
    bench.is_over = 1;
    if (!bench.options.from_log)
        pthread_join(thread, NULL);
}

static double us(uint64_t ns)
{
    return (double)ns / 1000;
}

static double per(double what, uint64_t count)
{
    return count ? what / (double)count : 0;
}

static void report_costs(const struct process_cpu *before, const struct process_cpu *after,
                         uint64_t posts)
{
    uint64_t ns = after->all_ns - before->all_ns;
    uint64_t user = after->user_ms - before->user_ms, sys = after->sys_ms - before->sys_ms;

    printf(", \"cpu_s\": %.4f, \"user_share\": %.3f, \"us_per_delivery\": %.3f, "
           "\"us_per_post\": %.2f, \"us_per_handshake\": %.2f",
           (double)ns / 1e9, per((double)user, user + sys), per(us(ns), bench.counts.delivered),
           per(us(ns), posts), per(us(ns), bench.options.churn ? bench.counts.handshakes : 0));
}

static void report_counts(uint64_t expected)
{
    const struct counts *counts = &bench.counts;
    double seconds = (double)(bench.last_ns - bench.first_ns) / 1e9;
    bool complete = counts->delivered == expected && !counts->missing && !counts->repeated &&
                    !counts->foreign && !counts->unreadable && !counts->closed && !counts->refused;

    printf("{\"format\": \"%s\", \"clients\": %u, \"complete\": %s, \"expected\": %" PRIu64
           ", \"delivered\": %" PRIu64 ", \"missing\": %" PRIu64 ", \"repeated\": %" PRIu64
           ", \"foreign\": %" PRIu64 ", \"unreadable\": %" PRIu64 ", \"refused\": %" PRIu64
           ", \"closed\": %" PRIu64 ", \"handshakes\": %" PRIu64 ", \"bytes\": %" PRIu64
           ", \"complaint\": \"%s\"",
           wire_names[bench.options.format], bench.options.clients, complete ? "true" : "false",
           expected, (uint64_t)counts->delivered, counts->missing, counts->repeated,
           counts->foreign, counts->unreadable, counts->refused, counts->closed, counts->handshakes,
           counts->bytes, bench.complaint);
    printf(", \"deliveries_per_s\": %.0f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"p999_ms\": %.3f, "
           "\"slowest_ms\": %.3f",
           seconds > 0 ? (double)counts->delivered / seconds : 0, latency_ms(0.5), latency_ms(0.99),
           latency_ms(0.999), (double)bench.slowest_ns / 1e6);
}

static int run(void)
{
    struct process_cpu before, after, idle_from, idle_to;
    struct process_tree tree;
    uint64_t pss, expected, began_ns = now_ns(), opened_ns;

    process_tree_read(bench.options.server, &tree);
    pss = process_pss_bytes(&tree);
    process_cpu_read(&tree, &before);
    opened_ns = now_ns();
    open_all();
    opened_ns = now_ns() - opened_ns;
    turns_for(bench.options.from_log ? 0 : STILL_MS);
    if (bench.options.churn) {
        process_cpu_read(&tree, &after);
        report_counts(0);
        report_costs(&before, &after, 0);
        printf(", \"handshakes_per_s\": %.0f}\n",
               (double)bench.counts.handshakes * 1e9 / (double)opened_ns);
        return bench.counts.handshakes == bench.options.churn ? 0 : 1;
    }
    pss = process_pss_bytes(&tree) - pss;
    process_cpu_read(&tree, &idle_from);
    if (bench.options.idle_s)
        turns_for((uint64_t)bench.options.idle_s * 1000);
    process_cpu_read(&tree, &idle_to);

    expected = deliveries_expected();
    if (!bench.options.from_log)
        process_cpu_read(&tree, &before);
    publish_all(expected);
    process_cpu_read(&tree, &after);
    report_counts(expected);
    report_costs(&before, &after, bench.publish.posts);
    printf(", \"open_s\": %.3f, \"all_s\": %.3f, \"pss_per_client\": %.0f", (double)opened_ns / 1e9,
           (double)(bench.last_ns - began_ns) / 1e9, per((double)pss, bench.options.clients));
    if (bench.options.idle_s)
        printf(", \"idle_cpu_percent\": %.3f",
               (double)(idle_to.all_ns - idle_from.all_ns) / 1e7 / bench.options.idle_s);
    printf("}\n");
    return bench.counts.delivered == expected ? 0 : 1;
}

/* --- options --- */

static void read_tokens(const char *name)
{
    FILE *file = fopen(name, "re");
    char line[4096];

    if (!file)
        give_up(name);
    while (fgets(line, sizeof(line), file)) {
        bench.tokens = realloc(bench.tokens, (bench.token_count + 1) * sizeof(*bench.tokens));
        line[strcspn(line, "\r\n")] = '\0';
        if (!bench.tokens || !(bench.tokens[bench.token_count] = strdup(line)))
            give_up("memory");
        bench.token_count++;
    }
    fclose(file);
}

static enum wire_format format_called(const char *name)
{
    for (int i = 0; i < WIRE_FORMAT_COUNT; i++) {
        if (strcmp(name, wire_names[i]) == 0)
            return (enum wire_format)i;
    }
    fprintf(stderr, "fanout: no format is called '%s'\n", name);
    exit(2);
}

static const char usage[] =
    "fanout --port P --clients N [--format ws|ndjson|delimited|sse] [--path /x?track=kw%d]\n"
    "       [--token-file FILE (a token a line)] [--header 'A: b'] [--at-once N]\n"
    "       [--server PID] [--idle SECONDS] [--max SECONDS]\n"
    "       --churn HANDSHAKES\n"
    "     | --redis HOST:PORT|/SOCKET [--channel C] --posts N [--size BYTES]\n"
    "       [--rate N | --window POSTS] [--keywords K [--keyword-every N]]\n"
    "     | --http-port P --http-path /pub?id=kw%d ... the same\n"
    "     | --from-log --posts N [--keywords K ...]: they are there, and --path says since when\n"
    "%d is the number of the client's or the post's keyword.\n";

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},          {"clients", 1, NULL, 'n'},    {"format", 1, NULL, 'f'},
        {"path", 1, NULL, 'u'},          {"token-file", 1, NULL, 't'}, {"header", 1, NULL, 'H'},
        {"at-once", 1, NULL, 'a'},       {"server", 1, NULL, 's'},     {"idle", 1, NULL, 'i'},
        {"max", 1, NULL, 'm'},           {"churn", 1, NULL, 'C'},      {"redis", 1, NULL, 'r'},
        {"channel", 1, NULL, 'c'},       {"posts", 1, NULL, 'N'},      {"size", 1, NULL, 'S'},
        {"rate", 1, NULL, 'R'},          {"window", 1, NULL, 'w'},     {"keywords", 1, NULL, 'k'},
        {"keyword-every", 1, NULL, 'e'}, {"http-port", 1, NULL, 'P'},  {"http-path", 1, NULL, 'U'},
        {"from-log", 0, NULL, 'L'},      {NULL, 0, NULL, 0},
    };
    struct publish_settings *publish = &bench.publish;
    struct options *options = &bench.options;

    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        unsigned long long number = optarg ? strtoull(optarg, NULL, 10) : 0;

        switch (name) {
        case 'p':
            options->port = (uint16_t)number;
            break;
        case 'n':
            options->clients = (uint32_t)number;
            break;
        case 'f':
            options->format = format_called(optarg);
            break;
        case 'u':
            options->path = optarg;
            break;
        case 't':
            options->token_file = optarg;
            break;
        case 'H':
            options->header = optarg;
            break;
        case 'a':
            options->at_once = (uint32_t)number;
            break;
        case 's':
            options->server = (pid_t)number;
            break;
        case 'i':
            options->idle_s = (unsigned)number;
            break;
        case 'm':
            options->max_s = (unsigned)number;
            break;
        case 'C':
            options->churn = number;
            break;
        case 'r':
            publish->redis = optarg;
            break;
        case 'c':
            publish->channel = optarg;
            break;
        case 'N':
            publish->posts = number;
            break;
        case 'S':
            publish->size = (unsigned)number;
            break;
        case 'R':
            publish->rate = strtod(optarg, NULL);
            break;
        case 'w':
            publish->window = number;
            break;
        case 'k':
            publish->keywords = number;
            break;
        case 'e':
            publish->keyword_every = number;
            break;
        case 'L':
            options->from_log = true;
            break;
        case 'P':
            publish->http_port = (uint16_t)number;
            break;
        case 'U':
            publish->http_path = optarg;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (!options->port || !options->clients || !options->at_once || publish->size > 60000 ||
        !publish->keyword_every ||
        (!options->churn &&
         (!publish->posts || (!publish->redis && !publish->http_path && !options->from_log)))) {
        fputs(usage, stderr);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct rlimit files;

    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (bench.options.token_file)
        read_tokens(bench.options.token_file);
    if (bench.options.churn && bench.options.clients > bench.options.at_once)
        bench.options.clients = bench.options.at_once;
    bench.clients = calloc(bench.options.clients, sizeof(*bench.clients));
    bench.room = malloc(READ_SIZE);
    bench.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!bench.clients || !bench.room || bench.epoll < 0)
        give_up("memory");
    return run();
}
