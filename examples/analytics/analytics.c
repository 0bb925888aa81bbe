/* analytics.c - what are posts about right now? Counts them by hashtag and by language.
 *
 *     analytics [--every SECONDS] [--rounds N] HOST:PORT TOKEN
 *
 * Uses a plain socket, to show that the length-delimited format needs no library but a JSON parser:
 * it sends an HTTP/1.0 request, so that the body comes without chunks, and then reads `length CRLF
 * event CRLF`, again and again. Of each post, it requests only text and language. */
#include <errno.h>
#include <jansson.h>
#include <locale.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

enum { NAME_MAX_CHARS = 64, KINDS_MAX = 100000, SHOWN = 10, EVENT_MAX_BYTES = 16 << 20 };

/* A name and how often it was seen. */
struct tally {
    json_t *counts; /* name -> integer */
    unsigned long total;
};

static void tally_add(struct tally *tally, const char *name)
{
    json_int_t count = json_integer_value(json_object_get(tally->counts, name));

    tally->total++;
    if (count > 0 || json_object_size(tally->counts) < KINDS_MAX)
        json_object_set_new(tally->counts, name, json_integer(count + 1));
}

static void tally_clear(struct tally *tally)
{
    json_object_clear(tally->counts);
    tally->total = 0;
}

/* Prints the most frequent names; searches SHOWN times, because that is simple. */
static void tally_print(struct tally *tally, const char *title)
{
    printf("%s:", title);
    for (int rank = 0; rank < SHOWN; rank++) {
        const char *name, *best = NULL;
        json_int_t best_count = 0;
        json_t *count;

        json_object_foreach(tally->counts, name, count)
        {
            if (json_integer_value(count) > best_count) {
                best = name;
                best_count = json_integer_value(count);
            }
        }
        if (!best)
            break;
        printf(" %s %lld", best, (long long)best_count);
        json_object_del(tally->counts, best);
    }
    printf("\n");
}

/* A hashtag is `#` and the letters, digits and underscores that follow it, in any script. */
static void count_hashtags(struct tally *hashtags, const char *text)
{
    wchar_t wide[NAME_MAX_CHARS];
    char name[NAME_MAX_CHARS * 4 + 1];
    mbstate_t state = {0};
    size_t length = 0;
    bool open = false;
    wchar_t c;
    size_t step;

    for (;; text += step) {
        step = mbrtowc(&c, text, 4, &state);
        if (step == (size_t)-1 || step == (size_t)-2)
            return;
        if (open && (iswalnum((wint_t)c) || c == L'_')) {
            if (length < NAME_MAX_CHARS - 1)
                wide[length++] = (wchar_t)towlower((wint_t)c);
            continue;
        }
        if (open && length > 0) {
            wide[length] = L'\0';
            if (wcstombs(name, wide, sizeof(name)) != (size_t)-1)
                tally_add(hashtags, name);
        }
        if (step == 0)
            return;
        /* The second `#` of #话题# closes the tag. */
        open = c == L'#' && !(open && length > 0);
        length = 0;
    }
}

static int connect_to(const char *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    char host[256];
    const char *colon = strrchr(address, ':');
    int fd = -1;

    if (!colon || (size_t)(colon - address) >= sizeof(host))
        return -1;
    memcpy(host, address, (size_t)(colon - address));
    host[colon - address] = '\0';
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return -1;
    for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

struct listener {
    int fd;
    char *bytes; /* received and not yet parsed */
    size_t used, room;
    bool in_body;
    struct tally hashtags, languages;
};

static void count_event(struct listener *listener, const char *bytes, size_t length)
{
    json_t *event = json_loadb(bytes, length, 0, NULL);
    json_t *post = json_object_get(event, "post");
    const char *text = json_string_value(json_object_get(post, "text"));
    const char *lang = json_string_value(json_object_get(post, "lang"));

    if (text) {
        tally_add(&listener->languages, lang && *lang ? lang : "und");
        count_hashtags(&listener->hashtags, text);
    }
    json_decref(event);
}

/* Parses the head of the response, once it is complete. Returns the bytes used; 0: more are needed;
 * -1: the stream was refused, and the body says why. */
static ssize_t use_head(struct listener *listener)
{
    char *end = memmem(listener->bytes, listener->used, "\r\n\r\n", 4);
    int status = 0;

    if (!end)
        return 0;
    sscanf(listener->bytes, "HTTP/%*s %d", &status);
    if (status != 200) {
        fprintf(stderr, "refused: %.*s\n", (int)listener->used, listener->bytes);
        return -1;
    }
    listener->in_body = true;
    return end + 4 - listener->bytes;
}

/* Parses the next event or keep-alive. Returns the bytes used; 0: more are needed; -1: not a
 * length. */
static ssize_t use_message(struct listener *listener)
{
    char *end = memmem(listener->bytes, listener->used, "\r\n", 2);
    size_t head, length;

    if (!end)
        return 0;
    head = (size_t)(end + 2 - listener->bytes);
    if (head == 2)
        return 2; /* a blank line is a keep-alive */
    length = strtoul(listener->bytes, &end, 10);
    if (*end != '\r' || length == 0 || length > EVENT_MAX_BYTES)
        return -1;
    if (listener->used < head + length)
        return 0;
    count_event(listener, listener->bytes + head, length);
    return (ssize_t)(head + length);
}

/* Reads what has arrived and parses what is complete. false: the stream has ended. */
static bool read_more(struct listener *listener)
{
    ssize_t count, used;

    if (listener->room - listener->used < 65536) {
        size_t room = 2 * listener->room + 131072;
        char *bytes = realloc(listener->bytes, room);

        if (!bytes)
            return false;
        listener->bytes = bytes;
        listener->room = room;
    }
    count = read(listener->fd, listener->bytes + listener->used, 65535);
    if (count <= 0)
        return false;
    listener->used += (size_t)count;
    listener->bytes[listener->used] = '\0';

    while ((used = listener->in_body ? use_message(listener) : use_head(listener)) > 0) {
        listener->used -= (size_t)used;
        memmove(listener->bytes, listener->bytes + used, listener->used + 1);
    }
    return used == 0;
}

static void report(struct listener *listener)
{
    char clock[32];
    time_t now = time(NULL);

    strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
    printf("%s  %lu posts\n", clock, listener->languages.total);
    tally_print(&listener->languages, "  languages");
    tally_print(&listener->hashtags, "  hashtags");
    fflush(stdout);
    tally_clear(&listener->languages);
    tally_clear(&listener->hashtags);
}

int main(int argc, char **argv)
{
    struct listener listener = {0};
    double every_s = 60, next;
    long rounds = -1;
    int at = 1;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--every") == 0)
            every_s = strtod(argv[at + 1], NULL);
        else if (strcmp(argv[at], "--rounds") == 0)
            rounds = strtol(argv[at + 1], NULL, 10);
        else
            break;
    }
    if (argc - at != 2 || every_s <= 0) {
        fprintf(stderr, "Usage: %s [--every SECONDS] [--rounds N] HOST:PORT TOKEN\n", argv[0]);
        return 2;
    }
    if (!setlocale(LC_CTYPE, "C.UTF-8")) /* so that letters of all scripts are letters */
        fprintf(stderr, "no locale C.UTF-8: hashtags will be ASCII only\n");

    listener.fd = connect_to(argv[at]);
    if (listener.fd < 0) {
        fprintf(stderr, "cannot connect to %s: %s\n", argv[at], strerror(errno));
        return 1;
    }
    dprintf(listener.fd,
            "GET /v1/stream/firehose?delimited=length&types=post&fields=text,lang HTTP/1.0\r\n"
            "Authorization: Bearer %s\r\n\r\n",
            argv[at + 1]);
    listener.hashtags.counts = json_object();
    listener.languages.counts = json_object();

    next = now_s() + every_s;
    while (rounds != 0) {
        struct pollfd pollfd = {.fd = listener.fd, .events = POLLIN};
        double left_s = next - now_s();

        if (left_s <= 0) {
            report(&listener);
            next += every_s;
            rounds -= rounds > 0;
        } else if (poll(&pollfd, 1, (int)(left_s * 1000) + 1) > 0 && !read_more(&listener)) {
            fprintf(stderr, "the stream has ended\n");
            break;
        }
    }
    close(listener.fd);
    json_decref(listener.hashtags.counts);
    json_decref(listener.languages.counts);
    free(listener.bytes);
    return rounds == 0 ? 0 : 1;
}
