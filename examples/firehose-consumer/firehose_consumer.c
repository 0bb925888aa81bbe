/* firehose_consumer.c - follows all public posts and their deletions.
 *
 *     firehose-consumer [--count N] URL TOKEN
 *
 * Prints a line for each event: `+ id login: text` for a post, `- id` for a deletion. It shows what
 * a good client does: read NDJSON line by line, know the server's own messages, reconnect after a
 * failure with growing pauses, and not at all after a refusal; and send the id of the last event
 * when it reconnects, so that the server continues after it and nothing is missed.
 *
 * The id of an event is such a cursor when events come from Sluice's log; one that comes late,
 * after events with greater ids, also has a `cursor`, which counts instead. A producer that only
 * publishes chooses ids as it likes: if there is one, read Server-Sent Events, which mark every
 * cursor with `id:`. */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { LINE_MAX_BYTES = 16 << 20, WAIT_FIRST_MS = 500, WAIT_LAST_MS = 60000, SILENCE_MAX_S = 60 };

struct consumer {
    char *line; /* received part of the current line */
    size_t length, room;
    unsigned long events; /* since the connection was opened */
    unsigned long wanted; /* exit after this many; 0: never */
    long retry_ms;        /* requested by the server; -1: it did not */
    char cursor[160]; /* of the last event, or how far a quiet stream has got; empty: none yet */
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static void keep_cursor(struct consumer *consumer, const json_t *id)
{
    if (json_is_string(id) && json_string_length(id) < sizeof(consumer->cursor))
        strcpy(consumer->cursor, json_string_value(id));
}

static void keep_event(struct consumer *consumer, const json_t *event)
{
    const json_t *cursor = json_object_get(event, "cursor");

    keep_cursor(consumer, cursor ? cursor : json_object_get(event, "id"));
}

/* Handles one event, or one message of the server about the stream. */
static void consume(struct consumer *consumer, const char *line, size_t length)
{
    json_error_t error;
    json_t *event = json_loadb(line, length, 0, &error);
    const char *type = json_string_value(json_object_get(event, "type"));
    json_t *post = json_object_get(event, "post");
    const char *id = json_string_value(json_object_get(post, "id"));

    if (!type) {
        fprintf(stderr, "not an event: %s\n", error.text);
    } else if (strcmp(type, "post") == 0 && id) {
        const char *login =
            json_string_value(json_object_get(json_object_get(post, "user"), "login"));
        const char *text = json_string_value(json_object_get(post, "text"));

        printf("+ %s %s: %s\n", id, login ? login : "?", text ? text : "");
        consumer->events++;
        keep_event(consumer, event);
    } else if (strcmp(type, "delete") == 0 && id) {
        printf("- %s\n", id);
        consumer->events++;
        keep_event(consumer, event);
    } else if (strcmp(type, "cursor") == 0) {
        keep_cursor(consumer, json_object_get(event, "id"));
    } else if (strcmp(type, "gap") == 0) {
        fprintf(stderr, "events are lost: %.*s\n", (int)length, line);
    } else if (strcmp(type, "disconnect") == 0) {
        json_t *retry = json_object_get(event, "retry_ms");
        const char *code = json_string_value(json_object_get(event, "code"));

        fprintf(stderr, "the server leaves: %s\n", code ? code : "?");
        keep_cursor(consumer, json_object_get(event, "cursor"));
        if (json_is_integer(retry))
            consumer->retry_ms = (long)json_integer_value(retry);
    }
    fflush(stdout);
    json_decref(event);
}

/* libcurl passes bytes as they arrive; splitting them into lines is left to us. */
static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    struct consumer *consumer = context;
    size_t length = size * count;
    char *start, *end;

    if (consumer->length + length > consumer->room) {
        size_t room = 2 * (consumer->length + length);
        char *line = room <= LINE_MAX_BYTES ? realloc(consumer->line, room) : NULL;

        if (!line)
            return 0; /* ends the transfer */
        consumer->line = line;
        consumer->room = room;
    }
    memcpy(consumer->line + consumer->length, bytes, length);
    consumer->length += length;

    start = consumer->line;
    while ((end = memchr(start, '\n', consumer->length - (size_t)(start - consumer->line)))) {
        size_t line_length = (size_t)(end - start);

        if (line_length > 0 && start[line_length - 1] == '\r')
            line_length--;
        if (line_length > 0) /* a blank line is a keep-alive */
            consume(consumer, start, line_length);
        start = end + 1;
        if (consumer->wanted > 0 && consumer->events >= consumer->wanted)
            return 0;
    }
    consumer->length -= (size_t)(start - consumer->line);
    memmove(consumer->line, start, consumer->length);
    return length;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)context, (void)a, (void)b, (void)c, (void)d;
    return stopped; /* not 0: libcurl gives up */
}

/* Follows the stream until it ends. Returns the HTTP status; 0: there was no answer. */
static long follow(struct consumer *consumer, const char *url, const char *token)
{
    struct curl_slist *headers = NULL;
    char header[9000], reason[CURL_ERROR_SIZE] = "";
    CURL *curl = curl_easy_init();
    long status = 0;
    CURLcode code;

    snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
    headers = curl_slist_append(headers, header);
    if (consumer->cursor[0]) {
        snprintf(header, sizeof(header), "Last-Event-ID: %s", consumer->cursor);
        headers = curl_slist_append(headers, header);
    }
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, consumer);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    /* Keep-alives come every 20 seconds, so a minute of silence means that the connection is
     * dead. */
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_MAX_S);

    consumer->length = 0;
    consumer->events = 0;
    consumer->retry_ms = -1;
    code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK && code != CURLE_WRITE_ERROR && !stopped)
        fprintf(stderr, "%s\n", reason[0] ? reason : curl_easy_strerror(code));
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return status;
}

/* Waits between half of `most_ms` and all of it: a thousand clients must not come back at once. */
static void wait_at_random(long most_ms)
{
    unsigned random = 0;
    long ms;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (unsigned)time(NULL);
    ms = most_ms / 2 + (long)(random % (unsigned)(most_ms / 2 + 1));
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000},
              NULL); /* a signal interrupts it */
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct consumer consumer = {0};
    long wait_ms = WAIT_FIRST_MS;
    int at = 1, status = 0;

    if (argc == 5 && strcmp(argv[1], "--count") == 0) {
        consumer.wanted = strtoul(argv[2], NULL, 10);
        at = 3;
    }
    if (argc - at != 2) {
        fprintf(stderr, "Usage: %s [--count N] URL TOKEN\n", argv[0]);
        return 2;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    curl_global_init(CURL_GLOBAL_DEFAULT);

    while (!stopped) {
        long answer = follow(&consumer, argv[at], argv[at + 1]);

        if (consumer.wanted > 0 && consumer.events >= consumer.wanted)
            break;
        if (answer >= 400 && answer < 500 && answer != 429) {
            status = 1; /* refused: asking again would not help */
            break;
        }
        if (consumer.events > 0)
            wait_ms = WAIT_FIRST_MS;
        if (!stopped)
            wait_at_random(consumer.retry_ms >= 0 ? consumer.retry_ms + 1 : wait_ms);
        wait_ms = wait_ms * 2 < WAIT_LAST_MS ? wait_ms * 2 : WAIT_LAST_MS;
    }
    curl_global_cleanup();
    free(consumer.line);
    return status;
}
