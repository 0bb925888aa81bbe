/* bench/requests.c - what does one request on a kept-alive connection cost a server?
 *
 * Opens some connections and sends the same request repeatedly on each of them, the next one when
 * the answer to the last is complete. Prints one line of JSON: how many were answered with the
 * expected status, how long they took, and the CPU time of the server's processes and of others
 * that work for it (Redis), counted from the moment when all connections have had one answer. It is
 * limited by the number of requests and by a time. bench/performance runs it. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bench/client_socket.h"
#include "bench/fanout_process.h"
#include "bench/latencies.h"
#include "bench/measure.h"

enum { ROOM = 256 << 10 };

struct requester {
    struct client_socket socket;
    bool is_connected;
    uint64_t sent_ns;
    size_t have;
    char room[ROOM];
};

static struct {
    uint16_t port;
    bool is_tls;
    const char *path, *header;
    const char *status; /* beginning of the first line of each answer */
    uint32_t connections;
    uint64_t requests;
    unsigned max_s;
    pid_t server, beside;
} options = {.path = "/healthz", .status = "HTTP/1.1 200", .connections = 1, .max_s = 60};

static struct {
    char request[8192];
    size_t request_size;
    int epoll;
    uint64_t sent, answered, wrong, body_bytes;
    struct latencies latencies;
} run;

static void send_request(struct requester *requester)
{
    if (run.sent == options.requests)
        return;
    run.sent++;
    requester->have = 0;
    requester->sent_ns = measure_now_ns();
    if (client_socket_send(&requester->socket, run.request, run.request_size) !=
        (ssize_t)run.request_size)
        measure_fail("send", NULL);
}

/* Returns the size of the answer at the beginning of the buffer; 0: incomplete. */
static size_t answer_size(struct requester *requester, size_t *ret_body)
{
    char *end, *length;

    requester->room[requester->have] = '\0';
    end = strstr(requester->room, "\r\n\r\n");
    if (!end)
        return 0;
    length = strcasestr(requester->room, "\r\ncontent-length:");
    if (!length || length > end)
        measure_fail("answer", "without a length");
    *ret_body = strtoul(length + 17, NULL, 10);
    end += 4 + *ret_body;
    return end <= requester->room + requester->have ? (size_t)(end - requester->room) : 0;
}

static void on_readable(struct requester *requester)
{
    ssize_t size = client_socket_read(&requester->socket, requester->room + requester->have,
                                      ROOM - 1 - requester->have);
    size_t whole, body = 0;

    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (size <= 0)
        measure_fail("connection", size < 0 ? NULL : "closed by the server");
    requester->have += (size_t)size;
    whole = answer_size(requester, &body);
    if (whole == 0)
        return;
    if (whole != requester->have)
        measure_fail("answer", "more than was asked for");
    latencies_add(&run.latencies, measure_now_ns() - requester->sent_ns);
    run.answered++;
    run.body_bytes += body;
    if (strncmp(requester->room, options.status, strlen(options.status)) != 0)
        run.wrong++;
    send_request(requester);
}

static void on_connecting(struct requester *requester, uint32_t events)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = requester};
    int r = client_socket_connect(&requester->socket);

    if (r < 0)
        measure_fail("connect", NULL);
    if (events & EPOLLOUT)
        epoll_ctl(run.epoll, EPOLL_CTL_MOD, requester->socket.fd, &event);
    if (r > 0) {
        requester->is_connected = true;
        send_request(requester);
    }
}

static void turn_until(uint64_t answered, uint64_t deadline_ns)
{
    struct epoll_event ready[512];

    while (run.answered < answered) {
        int count = epoll_wait(run.epoll, ready, 512, 1000);

        for (int i = 0; i < count; i++) {
            struct requester *requester = ready[i].data.ptr;

            if (requester->is_connected)
                on_readable(requester);
            else
                on_connecting(requester, ready[i].events);
        }
        if (measure_now_ns() > deadline_ns)
            measure_fail("time", "is over");
    }
}

static void open_all(struct requester *requesters)
{
    for (uint32_t i = 0; i < options.connections; i++) {
        struct epoll_event event = {.events = EPOLLOUT, .data.ptr = &requesters[i]};

        client_socket_open(&requesters[i].socket, options.port, i, options.is_tls);
        if (epoll_ctl(run.epoll, EPOLL_CTL_ADD, requesters[i].socket.fd, &event) < 0)
            measure_fail("epoll_ctl", NULL);
    }
}

static double us_each(const struct process_cpu *before, const struct process_cpu *after,
                      uint64_t count)
{
    return (double)(after->all_ns - before->all_ns) / 1e3 / (double)count;
}

/* Connections are opened, and warmed up by a tenth of the requests, before the measurement
 * begins. */
static void measure(struct requester *requesters)
{
    struct process_cpu before, after, beside_before, beside_after;
    struct process_tree server, beside;
    uint64_t deadline_ns = measure_now_ns() + (uint64_t)options.max_s * 1000000000;
    uint64_t warm = options.requests / 10 + options.connections, counted, began_ns, took_ns;

    options.requests += warm;
    open_all(requesters);
    turn_until(warm, deadline_ns);
    memset(&run.latencies, 0, sizeof(run.latencies));
    process_tree_read(options.server, &server);
    process_tree_read(options.beside, &beside);
    process_cpu_read(&server, &before);
    process_cpu_read(&beside, &beside_before);
    began_ns = measure_now_ns();
    counted = run.answered;
    turn_until(options.requests, deadline_ns);
    took_ns = measure_now_ns() - began_ns;
    process_cpu_read(&server, &after);
    process_cpu_read(&beside, &beside_after);
    counted = run.answered - counted;
    printf("{\"requests\": %" PRIu64 ", \"connections\": %u, \"wrong\": %" PRIu64
           ", \"body_bytes\": %" PRIu64 ", \"us_per_request\": %.3f, \"beside_us_per_request\": "
           "%.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"requests_per_s\": %.0f}\n",
           counted, options.connections, run.wrong, run.body_bytes / run.answered,
           us_each(&before, &after, counted), us_each(&beside_before, &beside_after, counted),
           latencies_ms(&run.latencies, 0.5), latencies_ms(&run.latencies, 0.99),
           (double)counted * 1e9 / (double)took_ns);
}

static _Noreturn void fail_with_usage(void)
{
    fputs("requests --port P --requests N [--connections K] [--path /healthz] [--header 'A: b']\n"
          "         [--tls] [--status 'HTTP/1.1 200'] [--server PID] [--beside PID] [--max S]\n",
          stderr);
    exit(2);
}

static void read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"port", 1, NULL, 'p'},   {"requests", 1, NULL, 'r'}, {"connections", 1, NULL, 'c'},
        {"path", 1, NULL, 'u'},   {"header", 1, NULL, 'h'},   {"tls", 0, NULL, 't'},
        {"status", 1, NULL, 'S'}, {"server", 1, NULL, 's'},   {"beside", 1, NULL, 'b'},
        {"max", 1, NULL, 'm'},    {NULL, 0, NULL, 0},
    };

    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        unsigned long long number = optarg ? strtoull(optarg, NULL, 10) : 0;

        switch (name) {
        case 'p':
            options.port = (uint16_t)number;
            break;
        case 'r':
            options.requests = number;
            break;
        case 'c':
            options.connections = (uint32_t)number;
            break;
        case 'u':
            options.path = optarg;
            break;
        case 'h':
            options.header = optarg;
            break;
        case 't':
            options.is_tls = true;
            break;
        case 'S':
            options.status = optarg;
            break;
        case 's':
            options.server = (pid_t)number;
            break;
        case 'b':
            options.beside = (pid_t)number;
            break;
        case 'm':
            options.max_s = (unsigned)number;
            break;
        default:
            fail_with_usage();
        }
    }
    if (!options.port || !options.requests || !options.connections)
        fail_with_usage();
}

int main(int argc, char **argv)
{
    struct requester *requesters;

    read_options(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    requesters = calloc(options.connections, sizeof(*requesters));
    run.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!requesters || run.epoll < 0)
        measure_fail("memory", NULL);
    run.request_size = (size_t)snprintf(
        run.request, sizeof(run.request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n%s%s\r\n",
        options.path, options.port, options.header ? options.header : "",
        options.header ? "\r\n" : "");
    measure(requesters);
    for (uint32_t i = 0; i < options.connections; i++)
        client_socket_close(&requesters[i].socket);
    free(requesters);
    return run.wrong ? 1 : 0;
}
