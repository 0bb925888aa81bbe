/* fanout_publish.c - a thread that sends posts at a given rate, or as fast as a window of
 * undelivered ones allows.
 *
 * Redis gets them by PUBLISH, in batches if there is no rate; an HTTP server by one POST each,
 * which is answered before the next. Each post has the time of its creation in its text. The time
 * at which a post is due is computed from the beginning, so that a pause of the machine does not
 * lower the rate. */
#include "bench/fanout_publish.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench/measure.h"

enum { MAX_POST = 64 << 10, BATCH_POSTS = 64 };

struct publisher {
    const struct publish_settings *settings;
    char **texts;
    size_t text_count;
    int fd;
    char *output;
    size_t output_size, output_capacity;
    uint64_t batched;
};

uint64_t publish_first_with(const struct publish_settings *settings, uint64_t keyword)
{
    return settings->keywords ? keyword * settings->keyword_every : 0;
}

uint64_t publish_stride(const struct publish_settings *settings)
{
    return settings->keywords ? settings->keywords * settings->keyword_every : 1;
}

static bool keyword_of(const struct publish_settings *settings, uint64_t number, uint64_t *ret)
{
    if (settings->keywords == 0 || number % settings->keyword_every != 0)
        return false;
    *ret = number / settings->keyword_every % settings->keywords;
    return true;
}

/* --- connections --- */

static int dial_tcp(const char *host, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        errno = EINVAL;
        measure_fail(host, NULL);
    }
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        measure_fail(host, NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static int dial_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        measure_fail(path, NULL);
    return fd;
}

static int dial_redis(const char *where)
{
    const char *colon = strrchr(where, ':');
    char host[64];

    if (where[0] == '/' || !colon)
        return dial_unix(where);
    snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
    return dial_tcp(host, (uint16_t)atoi(colon + 1));
}

static void flush(struct publisher *publisher)
{
    size_t at = 0;

    while (at < publisher->output_size) {
        ssize_t sent =
            send(publisher->fd, publisher->output + at, publisher->output_size - at, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            measure_fail("send", NULL);
        at += sent > 0 ? (size_t)sent : 0;
    }
    publisher->output_size = publisher->batched = 0;
}

/* Redis answers each PUBLISH with a number that is not needed. */
static void drain_replies(struct publisher *publisher)
{
    char room[16384];

    while (recv(publisher->fd, room, sizeof(room), MSG_DONTWAIT) == sizeof(room)) {
    }
}

static void read_http_answer(struct publisher *publisher)
{
    char answer[8192];
    size_t have = 0;
    char *end = NULL, *length;

    while (!end || have < (size_t)(end - answer)) {
        ssize_t size = recv(publisher->fd, answer + have, sizeof(answer) - 1 - have, 0);

        if (size <= 0)
            measure_fail("HTTP answer", NULL);
        have += (size_t)size;
        answer[have] = '\0';
        if (end || !(end = strstr(answer, "\r\n\r\n")))
            continue;
        if (strncmp(answer, "HTTP/1.1 2", 10) != 0) {
            errno = EPROTO;
            measure_fail(strtok(answer, "\r"), NULL);
        }
        length = strcasestr(answer, "content-length:");
        end += 4 + (length ? strtoul(length + 15, NULL, 10) : 0);
    }
}

/* --- posts --- */

static void read_texts(struct publisher *publisher, const char *name)
{
    FILE *file = fopen(name, "re");
    char line[MAX_POST / 2];

    if (!file)
        measure_fail(name, NULL);
    while (fgets(line, sizeof(line), file)) {
        size_t size = (publisher->text_count + 1) * sizeof(*publisher->texts);

        line[strcspn(line, "\r\n")] = '\0';
        publisher->texts = realloc(publisher->texts, size);
        if (!publisher->texts || !(publisher->texts[publisher->text_count++] = strdup(line)))
            measure_fail("memory", NULL);
    }
    fclose(file);
    if (publisher->text_count == 0)
        measure_fail(name, NULL);
}

/* Like the social core publishes it: 100 posts a second by 2,000 users. */
static size_t print_real_post(const struct publisher *publisher, uint64_t number, char *post)
{
    uint64_t id = UINT64_C(114894979948544) + number * 41234, user = number * 2654435761u % 2000;
    unsigned minute = (unsigned)(number / 6000 % 60), second = (unsigned)(number / 100 % 60);
    char when[32];

    snprintf(when, sizeof(when), "2026-11-21T15:%02u:%02u.%02u3Z", minute, second,
             (unsigned)(number % 100));
    return (size_t)sprintf(
        post,
        "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"at\":\"%s\",\"post\":{\"id\":\"%" PRIu64
        "\",\"user\":{\"id\":\"%" PRIu64 "\",\"login\":\"user%" PRIu64 "\",\"name\":\"User %" PRIu64
        "\"},\"text\":\"none %" PRIu64 " %" PRIu64 " %s\",\"lang\":\"en\",\"created_at\":\"%s\","
        "\"source\":\"bench\",\"audience\":\"public\"}}",
        id, when, id, UINT64_C(114894826770441) + user * 977, user, user, measure_now_ns(), number,
        publisher->texts[number % publisher->text_count], when);
}

static size_t print_post(const struct publish_settings *settings, uint64_t number, char *post)
{
    static const char *const words[] = {"the",  "stream", "of",     "posts", "goes", "on",
                                        "and",  "people", "follow", "music", "maps", "trains",
                                        "rain", "coffee", "books",  "birds"};
    uint64_t keyword, random = number * 2654435761u;
    char word[32] = "none";
    size_t size;

    if (keyword_of(settings, number, &keyword))
        snprintf(word, sizeof(word), "kw%" PRIu64, keyword);
    size =
        (size_t)sprintf(post,
                        "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
                        "\",\"user\":{\"id\":\"%u\",\"login\":\"user%u\",\"name\":\"Some Body\"},"
                        "\"lang\":\"en\",\"text\":\"%s %" PRIu64 " %" PRIu64,
                        1000000 + number, 1000000 + number, (unsigned)(number % 9973),
                        (unsigned)(number % 9973), word, measure_now_ns(), number);
    while (size + 3 < settings->size) {
        const char *next = words[random >> 33 & 15];

        random = random * 6364136223846793005u + 1442695040888963407u;
        post[size++] = ' ';
        while (*next && size + 3 < settings->size)
            post[size++] = *next++;
    }
    return size + (size_t)sprintf(post + size, "\"}}");
}

static void reserve(struct publisher *publisher, size_t size)
{
    if (publisher->output_size + size <= publisher->output_capacity)
        return;
    publisher->output_capacity = (publisher->output_size + size) * 2;
    publisher->output = realloc(publisher->output, publisher->output_capacity);
    if (!publisher->output)
        measure_fail("memory", NULL);
}

static void put_head(struct publisher *publisher, uint64_t number, size_t size)
{
    const struct publish_settings *settings = publisher->settings;
    char *at = publisher->output + publisher->output_size;
    const char *hole;
    uint64_t keyword = 0;
    int printed;

    if (settings->redis) {
        printed = sprintf(at, "*3\r\n$7\r\nPUBLISH\r\n$%zu\r\n%s\r\n$%zu\r\n",
                          strlen(settings->channel), settings->channel, size);
    } else {
        keyword_of(settings, number, &keyword);
        hole = strstr(settings->http_path, "%d");
        printed = hole ? sprintf(at, "POST %.*s%" PRIu64 "%s", (int)(hole - settings->http_path),
                                 settings->http_path, keyword, hole + 2)
                       : sprintf(at, "POST %s", settings->http_path);
        printed += sprintf(at + printed,
                           " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           "Content-Length: %zu\r\n\r\n",
                           size);
    }
    publisher->output_size += (size_t)printed;
}

static void put(struct publisher *publisher, uint64_t number)
{
    char post[MAX_POST];
    size_t size = publisher->texts ? print_real_post(publisher, number, post)
                                   : print_post(publisher->settings, number, post);

    reserve(publisher, size + 1024);
    put_head(publisher, number, size);
    memcpy(publisher->output + publisher->output_size, post, size);
    publisher->output_size += size;
    if (publisher->settings->redis) {
        memcpy(publisher->output + publisher->output_size, "\r\n", 2);
        publisher->output_size += 2;
    }
    publisher->batched++;
}

/* --- rate --- */

static void wait_until(uint64_t due_ns)
{
    struct timespec due = {(time_t)(due_ns / 1000000000), (long)(due_ns % 1000000000)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR) {
    }
}

static bool window_is_full(const struct publish_settings *settings, uint64_t number)
{
    if (settings->burst)
        return number % settings->burst == 0 &&
               number * settings->deliveries_per_post >
                   atomic_load_explicit(settings->delivered, memory_order_relaxed);
    return settings->window && number * settings->deliveries_per_post >
                                   atomic_load_explicit(settings->delivered, memory_order_relaxed) +
                                       settings->window * settings->deliveries_per_post;
}

static void await_window(struct publisher *publisher, uint64_t number)
{
    while (window_is_full(publisher->settings, number) && !*publisher->settings->is_over) {
        flush(publisher);
        wait_until(measure_now_ns() + 100000);
    }
}

void *publish_run(void *argument)
{
    const struct publish_settings *settings = argument;
    struct publisher publisher = {.settings = settings};
    uint64_t start = measure_now_ns();

    if (settings->texts)
        read_texts(&publisher, settings->texts);
    publisher.fd =
        settings->redis ? dial_redis(settings->redis) : dial_tcp("127.0.0.1", settings->http_port);
    for (uint64_t i = 0; i < settings->posts && !*settings->is_over; i++) {
        if (settings->rate > 0)
            wait_until(start + (uint64_t)((double)i / settings->rate * 1e9));
        await_window(&publisher, i);
        put(&publisher, i);
        if (settings->rate > 0 || !settings->redis ||
            publisher.batched == (settings->burst ? settings->burst : BATCH_POSTS))
            flush(&publisher);
        if (settings->redis)
            drain_replies(&publisher);
        else
            read_http_answer(&publisher);
    }
    flush(&publisher);
    if (settings->redis) { /* closing with unread answers could reset what was sent */
        shutdown(publisher.fd, SHUT_WR);
        while (recv(publisher.fd, publisher.output, publisher.output_capacity, 0) > 0) {
        }
    }
    close(publisher.fd);
    free(publisher.output);
    return NULL;
}
