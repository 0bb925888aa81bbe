/* tail.c - follows a stream and reconnects.
 *
 * Events, counts and trends are written to standard output; messages of the server about the
 * stream, and all problems, to standard error. If a connection ends, a new one continues after the
 * last event printed: after the time that the server said in its `disconnect` or in Retry-After, at
 * most an hour, otherwise after a random wait that doubles up to a minute. A refusal that would
 * only be repeated, and a `disconnect` that does not invite the client back, end the program.
 *
 * The stream is requested as Server-Sent Events, whose `id:` lines are cursors, whatever ids the
 * events have. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

#include "base/backoff.h"
#include "base/buffer.h"
#include "cli/bucket_pretty.h"
#include "cli/event_pretty.h"
#include "cli/refusal.h"
#include "cli/server.h"
#include "cli/tail_options.h"
#include "src/model/cursor.h"

enum {
    CURSOR_SIZE = SL_CURSOR_TEXT_SIZE,
    LINE_MAX_BYTES = 128 << 20,
    REFUSAL_MAX_BYTES = 65536,
    CONNECT_MAX_S = 10,
    SILENCE_MAX_S = 60, /* keep-alives are sent every 20 s: after this time the server is gone */
    WAIT_FIRST_MS = 500,
    WAIT_LAST_MS = 60000,
    WAIT_ASKED_MS = 3600000 /* the longest wait accepted from a server */
};

struct tail {
    const struct cli *cli;
    struct tail_arguments arguments;
    uint64_t printed; /* messages that count towards the limit */
    CURL *curl;
    struct curl_slist *headers;
    char *url;
    struct buffer form;
    char cursor[CURSOR_SIZE]; /* the stream's, of the last event; empty: none yet */

    /* of the current connection */
    struct buffer line;   /* the incomplete line of the stream; or the text of a refusal */
    char id[CURSOR_SIZE]; /* of the current event */
    bool is_message;      /* its name is that of one of the server's own messages */
    bool is_disconnect;
    bool is_counts;   /* of a bucket; without an id the bucket is not over */
    int write_error;  /* errno of standard output; 0: none */
    bool is_too_long; /* the line */
    bool has_disconnect;
    bool is_complete; /* everything up to --until has arrived */
    int64_t retry_ms; /* as in `disconnect`; -1: do not reconnect */
};

/* --- lines --------------------------------------------------------------------------------- */

static void read_name(struct tail *tail, struct sl_slice name)
{
    static const char *const messages[] = {"disconnect", "gap",     "warning", "cursor",
                                           "hello",      "skipped", "sampling"};

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
        tail->is_message = tail->is_message || sl_slice_is(name, messages[i]);
    tail->is_disconnect = sl_slice_is(name, messages[0]);
    tail->is_counts = sl_slice_is(name, "counts");
}

static void read_disconnect(struct tail *tail, struct sl_slice text)
{
    json_t *json = json_loadb(text.data, text.size, 0, NULL);
    json_t *retry_ms = json_object_get(json, "retry_ms");

    const char *code = json_string_value(json_object_get(json, "code"));

    tail->has_disconnect = true;
    tail->is_complete = code && strcmp(code, "complete") == 0;
    tail->retry_ms = json_is_integer(retry_ms) ? json_integer_value(retry_ms) : -1;
    json_decref(json);
}

static void keep_cursor(struct tail *tail)
{
    if (tail->id[0])
        memcpy(tail->cursor, tail->id, sizeof(tail->cursor));
}

static bool is_enough(const struct tail *tail)
{
    return tail->arguments.limit > 0 && tail->printed == tail->arguments.limit;
}

/* false: of an unknown kind, nothing was printed. */
static bool print_for_people(struct sl_slice data)
{
    json_t *message = json_loadb(data.data, data.size, 0, NULL);
    bool is_known = event_pretty_print(stdout, message) || bucket_pretty_print(stdout, message);

    json_decref(message);
    return is_known;
}

static int print_message(const struct tail *tail, struct sl_slice data)
{
    if (tail->arguments.is_pretty && print_for_people(data))
        return ferror(stdout) ? -errno : 0;
    if (cli_print(stdout, data) < 0 || putchar('\n') == EOF)
        return -errno;
    return 0;
}

static void take_data(struct tail *tail, struct sl_slice data)
{
    if (tail->is_disconnect)
        read_disconnect(tail, data);
    if (tail->is_message) {
        if (!tail->is_complete) {
            cli_print(stderr, data);
            fputc('\n', stderr);
        }
        keep_cursor(tail);
    } else if (print_message(tail, data) < 0) {
        tail->write_error = errno;
    } else {
        keep_cursor(tail);
        if (tail->id[0] || !tail->is_counts)
            tail->printed++;
    }
}

static void begin_event(struct tail *tail)
{
    tail->id[0] = '\0';
    tail->is_message = tail->is_disconnect = tail->is_counts = false;
}

/* Returns the value of a field; false: the line is another field. */
static bool read_field(struct sl_slice line, const char *name, struct sl_slice *ret_value)
{
    size_t size = strlen(name);

    if (!sl_slice_starts_with(line, sl_slice(name, size)))
        return false;
    if (line.size > size && line.data[size] == ' ')
        size++;
    *ret_value = sl_slice_from(line, size);
    return true;
}

/* The id and name of an event precede its data; an id without data is a keep-alive. */
static void take_line(struct tail *tail, struct sl_slice line)
{
    struct sl_slice value;

    if (line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    if (line.size == 0) {
        keep_cursor(tail);
        begin_event(tail);
    } else if (read_field(line, "data:", &value)) {
        take_data(tail, value);
    } else if (read_field(line, "event:", &value)) {
        read_name(tail, value);
    } else if (read_field(line, "id:", &value) && value.size < sizeof(tail->id)) {
        memcpy(tail->id, value.data, value.size);
        tail->id[value.size] = '\0';
    }
}

static void take_bytes(struct tail *tail, struct sl_slice bytes)
{
    const char *end;

    while (!is_enough(tail) && (end = memchr(bytes.data, '\n', bytes.size))) {
        struct sl_slice line = sl_slice(bytes.data, (size_t)(end - bytes.data));

        bytes = sl_slice_from(bytes, line.size + 1);
        if (tail->line.size > 0) {
            buffer_append_slice(&tail->line, line);
            line = buffer_slice(&tail->line);
        }
        if (!tail->line.failed)
            take_line(tail, line);
        tail->line.size = 0;
    }
    buffer_append_slice(&tail->line, bytes);
    tail->is_too_long = tail->line.failed;
    if (fflush(stdout) != 0)
        tail->write_error = errno;
}

static long status_of(CURL *curl)
{
    long status = 0;

    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* Called by libcurl; returning anything but `size` ends the transfer. */
static size_t on_bytes(char *data, size_t one, size_t size, void *context)
{
    struct tail *tail = context;

    (void)one;
    if (status_of(tail->curl) == 200)
        take_bytes(tail, sl_slice(data, size));
    else if (tail->line.size + size <= REFUSAL_MAX_BYTES)
        buffer_append(&tail->line, data, size);
    return tail->write_error || tail->is_too_long || is_enough(tail) ? 0 : size;
}

/* --- the end of a connection --------------------------------------------------------------- */

struct ending {
    CURLcode code;
    long status;            /* 0: there was no answer */
    int64_t retry_after_ms; /* 0: not given */
};

/* Whether the same request may succeed later. */
static bool is_worth_repeating(const struct tail *tail, const struct ending *ending)
{
    switch (ending->code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
        return false;
    default:
        break;
    }
    if (ending->status == 0 || ending->status == 408 || ending->status == 429 ||
        ending->status >= 500)
        return true;
    return ending->status == 200 && !(tail->has_disconnect && tail->retry_ms < 0);
}

static void explain(const struct tail *tail, const struct ending *ending)
{
    if (ending->status != 0 && ending->status != 200) {
        refusal_tell(tail->cli, ending->status, buffer_slice(&tail->line), tail_options_value,
                     &tail->arguments);
    } else if (ending->code != CURLE_OK) {
        server_tell_failure(tail->cli, tail->url, ending->code);
    } else if (!tail->has_disconnect) {
        cli_failed_with(tail->cli, "the stream ended without a disconnect message");
    }
}

/* Randomized, so that many clients do not reconnect at once. */
static int64_t next_wait_ms(const struct tail *tail, const struct ending *ending,
                            struct backoff *backoff)
{
    if (tail->has_disconnect) /* already spread by the server */
        return tail->retry_ms < WAIT_ASKED_MS ? tail->retry_ms : WAIT_ASKED_MS;
    if (ending->retry_after_ms > 0)
        return ending->retry_after_ms + backoff_spread_ms(WAIT_FIRST_MS);
    return backoff_next_spread_ms(backoff, WAIT_FIRST_MS, WAIT_LAST_MS);
}

static void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
}

/* --- connections --------------------------------------------------------------------------- */

static bool add_header(struct tail *tail, const char *header)
{
    struct curl_slist *longer = curl_slist_append(tail->headers, header);

    if (longer)
        tail->headers = longer;
    return longer != NULL;
}

static bool add_token(struct tail *tail)
{
    struct buffer header = BUFFER_INIT;
    bool is_added;

    buffer_append_format(&header, "Authorization: Bearer %s", tail->arguments.token);
    is_added = buffer_str(&header) && add_header(tail, header.data);
    buffer_done(&header);
    return is_added;
}

/* Last-Event-ID overrides `since`, and is never refused. */
static bool add_cursor(struct tail *tail)
{
    char header[sizeof("Last-Event-ID: ") + CURSOR_SIZE];

    if (!tail->cursor[0])
        return true;
    snprintf(header, sizeof(header), "Last-Event-ID: %s", tail->cursor);
    return add_header(tail, header);
}

static bool set_headers(struct tail *tail)
{
    curl_slist_free_all(tail->headers);
    tail->headers = NULL;
    if (!add_token(tail) || !add_header(tail, "Accept: text/event-stream") ||
        !add_header(tail, "Expect:") || !add_cursor(tail))
        return false;
    return curl_easy_setopt(tail->curl, CURLOPT_HTTPHEADER, tail->headers) == CURLE_OK;
}

static struct ending follow_once(struct tail *tail)
{
    struct ending ending;
    curl_off_t retry_after_s = 0;

    buffer_clear(&tail->line);
    begin_event(tail);
    tail->has_disconnect = tail->is_complete = false;
    ending.code = set_headers(tail) ? curl_easy_perform(tail->curl) : CURLE_OUT_OF_MEMORY;
    ending.status = status_of(tail->curl);
    curl_easy_getinfo(tail->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    ending.retry_after_ms =
        retry_after_s < WAIT_ASKED_MS / 1000 ? (int64_t)retry_after_s * 1000 : WAIT_ASKED_MS;
    return ending;
}

static int follow(struct tail *tail)
{
    struct backoff backoff = {0};
    int64_t ms;

    for (;;) {
        struct ending ending = follow_once(tail);

        if (tail->write_error == EPIPE)
            return CLI_GOOD; /* the reader has closed the pipe */
        if (tail->write_error)
            return cli_failed_with(tail->cli, "cannot write: %s", strerror(tail->write_error));
        if (tail->is_too_long)
            return cli_failed_with(tail->cli, "a line is too long, or there is not enough memory");
        if (is_enough(tail) || tail->is_complete || ending.status == 204)
            return cli_done(tail->cli);
        explain(tail, &ending);
        if (!is_worth_repeating(tail, &ending))
            return CLI_FAILED;
        if (ending.status == 200)
            backoff_reset(&backoff);
        ms = next_wait_ms(tail, &ending, &backoff);
        cli_failed_with(tail->cli, "reconnecting in %.1f s", (double)ms / 1000);
        sleep_ms(ms);
    }
}

/* --- the request --------------------------------------------------------------------------- */

static char *make_url(const struct cli *cli, const char *base, const char *stream)
{
    char path[sizeof("/v1/stream/firehose")];

    snprintf(path, sizeof(path), "/v1/stream/%s", stream);
    return server_url(cli, base, path);
}

/* libcurl inflates piece by piece into a buffer of fixed size; the output is limited line by line,
 * like uncompressed data. Not requested if libcurl does not support it. */
static void ask_for_gzip(const struct tail *tail)
{
    if (!tail->arguments.is_uncompressed &&
        (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_LIBZ))
        curl_easy_setopt(tail->curl, CURLOPT_ACCEPT_ENCODING, "gzip");
}

/* The parameters are sent as a form, because lists may be longer than a URL allows. */
static bool set_up(struct tail *tail)
{
    CURL *curl = tail->curl;

    if (!tail->url || !buffer_str(&tail->form))
        return false;
    tail->line.limit = LINE_MAX_BYTES;
    curl_easy_setopt(curl, CURLOPT_URL, tail->url);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, tail->form.data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)tail->form.size);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, tail);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_MAX_S);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_MAX_S);
    ask_for_gzip(tail);
    server_trust(curl, tail->arguments.cacert);
    return true;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct tail tail = {.cli = cli, .form = BUFFER_INIT, .line = BUFFER_INIT};
    int status;

    tail_options_read(cli, argc, argv, &tail.arguments);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    tail.url = make_url(cli, tail.arguments.base, tail.arguments.stream);
    tail.curl = curl_easy_init();
    if (tail.curl)
        tail_options_append_form(&tail.arguments, tail.curl, &tail.form);
    status = tail.curl && set_up(&tail) ? follow(&tail) : cli_failed_with(cli, "out of memory");
    curl_easy_cleanup(tail.curl);
    curl_slist_free_all(tail.headers);
    curl_free(tail.url);
    tail_arguments_done(&tail.arguments);
    buffer_done(&tail.form);
    buffer_done(&tail.line);
    curl_global_cleanup();
    return status;
}

const struct command command_tail = {
    .name = "tail",
    .arguments = "filter|sample|firehose|home|counts|trends",
    .summary = "print events, counts or trends, and resume after breaks",
    .help =
        "Prints the messages of a stream of sluiced: the events of filter, sample, firehose or "
        "home; for counts, how many there were in each bucket of time; for trends, the terms that "
        "more users post than before. On a terminal they are printed for people, otherwise as one "
        "JSON object per line.\n\n"
        "When the connection breaks, it reconnects and resumes: what has happened meanwhile is "
        "printed then, nothing twice. It waits as long as the server asks for, at most an hour. "
        "Ends when the server refuses for good or says not to reconnect. Messages of the server go "
        "to standard error. Terminal control characters are printed as \\u001b and the like, which "
        "means the same in JSON.\n\n"
        "On filter any of --track, --follow, --locations and --rule may match, and one is needed. "
        "Counts and trends are of what they match, or of everything. An option that takes a list "
        "may be given several times.\n\n"
        "A line of counts begins with the start of its bucket, in local time, and ends with the "
        "ten "
        "largest groups of --by. A table of trends has the users of each term, those of the window "
        "before, the posts, by how many standard deviations there are more users than expected, "
        "and how the users are distributed over the window.",
    .options = tail_options,
    .examples = "sluice tail filter --track 'cat,dog food' --language en\n"
                "sluice tail filter --follow @ada --follow @bob\n"
                "sluice tail firehose --since -1h --limit 100 --json >posts.jsonl\n"
                "sluice tail firehose --fields text,user.login\n"
                "sluice tail firehose --max-rate 5\n"
                "sluice tail firehose --since -1d --until -1h --max 20 --pick newest\n"
                "sluice tail counts --bucket 10s --track coffee,tea --by lang\n"
                "sluice tail counts --bucket 1d --since -30d\n"
                "sluice tail trends --window 5m --of hashtags,words --bucket 10s\n"
                "sluice tail home --url https://live.example.org --cacert ca.pem\n",
    .words = "filter sample firehose home counts trends",
    .run = run,
};
