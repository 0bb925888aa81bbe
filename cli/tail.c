/* tail.c - follows a stream and reconnects.
 *
 * Events are written to standard output, a line each; messages of the server about the stream, and
 * all problems, to standard error. If a connection ends, a new one continues after the last event
 * printed: after the time that the server said in its `disconnect` or in Retry-After, at most an
 * hour, otherwise after a random wait that doubles up to a minute. A refusal that would only be
 * repeated, and a `disconnect` that does not invite the client back, end the program.
 *
 * The stream is requested as Server-Sent Events, because only this format says for each event
 * whether its id is a cursor. Events that were published without the log have ids, too, which are
 * no cursors. */
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
#include "base/clock.h"
#include "cli/argument.h"
#include "cli/event_pretty.h"
#include "cli/refusal.h"
#include "cli/server.h"
#include "src/model/cursor.h"
#include "src/model/id.h"
#include "src/model/moment.h"

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

/* Keys of the options; those of parameters of the stream begin after KEY_PARAMETER, in the order of
 * the options. */
enum { KEY_URL = 1, KEY_TOKEN, KEY_CACERT, KEY_LIMIT, KEY_PRETTY, KEY_UNCOMPRESSED, KEY_PARAMETER };

/* The parameters, in the order of their options. */
static const char *const parameters[] = {
    "track",     "follow", "locations", "rule",         "language", "percent",
    "partition", "types",  "since",     "until",        "last",     "fields",
    "max_rate",  "pick",   "latest_by", "cell_degrees", "on_slow"};

enum { SINCE = 8, UNTIL = 9, PARAMETER_COUNT = sizeof(parameters) / sizeof(parameters[0]) };

static const char *const streams[] = {"filter", "sample", "firehose", "home"};

struct tail {
    const struct cli *cli;
    const char *token;
    uint64_t limit; /* number of events to print; 0: no limit */
    uint64_t printed;
    bool is_pretty;
    bool is_uncompressed;
    CURL *curl;
    struct curl_slist *headers;
    char *url;
    struct buffer form;
    char cursor[CURSOR_SIZE]; /* the stream's, of the last event; empty: none yet */

    /* of the current connection */
    const struct buffer *values; /* for each parameter */
    struct buffer line;          /* the incomplete line of the stream; or the text of a refusal */
    char id[CURSOR_SIZE];        /* of the current event */
    bool is_message;             /* its name is that of one of the server's own messages */
    bool is_disconnect;
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
    return tail->limit > 0 && tail->printed == tail->limit;
}

static int print_event(const struct tail *tail, struct sl_slice event)
{
    if (tail->is_pretty && event_pretty_print(stdout, event))
        return ferror(stdout) ? -errno : 0;
    if (cli_print(stdout, event) < 0 || putchar('\n') == EOF)
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
    } else if (print_event(tail, data) < 0) {
        tail->write_error = errno;
    } else {
        keep_cursor(tail);
        tail->printed++;
    }
}

static void begin_event(struct tail *tail)
{
    tail->id[0] = '\0';
    tail->is_message = tail->is_disconnect = false;
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

static const char *value_of(const void *owner, const char *param)
{
    const struct tail *tail = owner;

    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if (strcmp(parameters[i], param) == 0)
            return tail->values[i].data;
    }
    return NULL;
}

static void explain(const struct tail *tail, const struct ending *ending)
{
    if (ending->status != 0 && ending->status != 200) {
        refusal_tell(tail->cli, ending->status, buffer_slice(&tail->line), value_of, tail);
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

    buffer_append_format(&header, "Authorization: Bearer %s", tail->token);
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

static void add_parameter(struct tail *tail, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(tail->curl, value, (int)strlen(value));

    if (!escaped)
        tail->form.failed = true;
    else
        buffer_append_format(&tail->form, "%s%s=%s", tail->form.size > 0 ? "&" : "", name, escaped);
    curl_free(escaped);
}

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
    if (!tail->is_uncompressed &&
        (curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_LIBZ))
        curl_easy_setopt(tail->curl, CURLOPT_ACCEPT_ENCODING, "gzip");
}

/* The parameters are sent as a form, because lists may be longer than a URL allows. */
static bool set_up(struct tail *tail, const char *cacert)
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
    server_trust(curl, cacert);
    return true;
}

static const char *find_stream(const struct cli *cli, int argc, char **argv)
{
    if (argc - optind != 1)
        cli_usage(cli,
                  argc > optind
                      ? "give one stream, and its parameters as options, such as --track PHRASES"
                      : "which stream: filter, sample, firehose or home?");
    for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        if (strcmp(argv[optind], streams[i]) == 0)
            return streams[i];
    }
    cli_usage(cli, "there is no stream '%s'; there are filter, sample, firehose and home",
              argv[optind]);
}

/* A moment given by an age would be different for each connection: the server is sent the time that
 * it means now. An invalid moment is refused by the server. */
static void fix_moment(struct buffer *value)
{
    const uint64_t now_ms = clock_wall_ms();
    struct sl_moment moment;

    if (!value->data || sl_moment_parse(buffer_slice(value), now_ms, &moment, NULL) < 0 ||
        moment.kind != SL_MOMENT_TIME)
        return;
    buffer_clear(value);
    buffer_append_decimal(value, moment.value);
    buffer_str(value);
}

/* A list may be given in several options, which are joined. */
static void add_values(struct tail *tail, struct buffer values[PARAMETER_COUNT])
{
    fix_moment(&values[SINCE]);
    fix_moment(&values[UNTIL]);
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if (values[i].failed)
            tail->form.failed = true;
        else if (values[i].data)
            add_parameter(tail, parameters[i], buffer_str(&values[i]));
    }
}

static void keep_value(struct buffer *values)
{
    if (values->data)
        buffer_append_char(values, ',');
    buffer_append_str(values, optarg);
    buffer_str(values); /* an empty value counts, too */
}

/* Options that are not parameters of the stream, and the stream. */
struct wish {
    const char *base, *cacert, *stream;
};

static void read_options(struct cli *cli, int argc, char **argv, struct tail *tail,
                         struct wish *ret_wish, struct buffer values[PARAMETER_COUNT])
{
    struct wish wish = {.base = server_default_url()};
    int option;

    tail->token = getenv("SLUICE_TOKEN");
    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case KEY_URL:
            wish.base = optarg;
            break;
        case KEY_TOKEN:
            tail->token = optarg;
            break;
        case KEY_CACERT:
            wish.cacert = optarg;
            break;
        case KEY_LIMIT:
            tail->limit = argument_number(cli, "limit", optarg, SL_ID_MAX);
            break;
        case KEY_PRETTY:
            tail->is_pretty = true;
            break;
        case KEY_UNCOMPRESSED:
            tail->is_uncompressed = true;
            break;
        default:
            keep_value(&values[option - KEY_PARAMETER]);
        }
    }
    wish.stream = find_stream(cli, argc, argv);
    if (!tail->token || !*tail->token)
        cli_usage(cli,
                  "--token TOKEN is needed, or SLUICE_TOKEN in the environment; 'sluice token' "
                  "makes one");
    server_check_token(cli, tail->token);
    *ret_wish = wish;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct buffer values[PARAMETER_COUNT] = {BUFFER_INIT};
    struct tail tail = {.cli = cli, .form = BUFFER_INIT, .values = values, .line = BUFFER_INIT};
    struct wish wish;
    int status;

    read_options(cli, argc, argv, &tail, &wish, values);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    tail.url = make_url(cli, wish.base, wish.stream);
    tail.curl = curl_easy_init();
    if (tail.curl)
        add_values(&tail, values);
    if (tail.curl && isatty(STDERR_FILENO)) /* on a terminal, print how the server understands the
                                               filter */
        add_parameter(&tail, "hello", "true");
    status = tail.curl && set_up(&tail, wish.cacert) ? follow(&tail)
                                                     : cli_failed_with(cli, "out of memory");
    curl_easy_cleanup(tail.curl);
    curl_slist_free_all(tail.headers);
    curl_free(tail.url);
    for (size_t i = 0; i < PARAMETER_COUNT; i++)
        buffer_done(&values[i]);
    buffer_done(&tail.form);
    buffer_done(&tail.line);
    curl_global_cleanup();
    return status;
}

#define PARAMETER(number, name, value, help, words, times)                                         \
    {                                                                                              \
        name, KEY_PARAMETER + (number), value, help, words, times                                  \
    }

static const struct cli_option options[] = {
    PARAMETER(
        0, "track", "PHRASES",
        "Posts that have all words of one of these phrases, which are separated by commas; for "
        "filter.",
        NULL, CLI_MANY),
    PARAMETER(1, "follow", "USERS",
              "Posts by and about these users, separated by commas, by id or login: digits are an "
              "id, @ada is a login, anything else may be either; for filter.",
              NULL, CLI_MANY),
    PARAMETER(2, "locations", "BOXES",
              "Posts in one of these boxes, WEST,SOUTH,EAST,NORTH in degrees each; for filter.",
              NULL, CLI_MANY),
    PARAMETER(3, "rule", "RULE",
              "Posts that match this rule, such as (cat OR fox) -dog, \"night train\"~3 or "
              "polygon:[8.2 46.8, 8.9 46.8, 8.5 47.3]; for filter.",
              NULL, CLI_ONCE),
    PARAMETER(4, "language", "LANGUAGES",
              "Only those in one of the languages: en,zh; not for home.", NULL, CLI_MANY),
    PARAMETER(5, "percent", "P", "Only a stable sample of them; not for home.", NULL, CLI_ONCE),
    PARAMETER(6, "partition", "K/N", "Only part K of N disjoint parts.", NULL, CLI_ONCE),
    PARAMETER(7, "types", "TYPES",
              "The default is post,delete; there are also follow, unfollow and user.",
              "post delete follow unfollow user", CLI_MANY),
    PARAMETER(SINCE, "since", "MOMENT",
              "Begin after this event id, or at this time: -1h, 2026-11-21, "
              "2026-11-21T06:00:00Z, Unix seconds.",
              NULL, CLI_ONCE),
    PARAMETER(
        UNTIL, "until", "MOMENT",
        "End with status 0 when everything up to this event id or time has come; +10m is in ten "
        "minutes.",
        NULL, CLI_ONCE),
    PARAMETER(10, "last", "N",
              "Begin with this many of the newest events, 1 to 1000, then go on live.", NULL,
              CLI_ONCE),
    PARAMETER(
        11, "fields", "NAMES",
        "Only these members of events, separated by commas: text,user.login; or short (without "
        "what a post says twice), ids, full.",
        "full short ids", CLI_MANY),
    PARAMETER(12, "max-rate", "N",
              "At most this many posts a second, 0.1 to 1000; the number of posts left out goes "
              "to standard error.",
              NULL, CLI_ONCE),
    PARAMETER(13, "pick", "WHICH",
              "Which of them: even (the default), newest, or first, which does not wait for the "
              "second to end.",
              "even newest first", CLI_ONCE),
    PARAMETER(14, "latest-by", "KEY",
              "Instead of pick: only the newest of each user, or of each cell of the map.",
              "user cell", CLI_ONCE),
    PARAMETER(15, "cell-degrees", "DEGREES", "The side of a cell, 0.01 to 90.", NULL, CLI_ONCE),
    PARAMETER(16, "on-slow", "WHAT",
              "What the server does when this program does not keep up: catch_up (the default) "
              "sends everything, late; sample sends a sample; the percentage, and the number of "
              "posts left out, go to standard error.",
              "catch_up sample", CLI_ONCE),
    {"limit", KEY_LIMIT, "N", "End with status 0 after printing this many events.", NULL, CLI_ONCE},
    {"pretty", KEY_PRETTY, NULL, "Print events in readable form, not as JSON: time, user, text.",
     NULL, CLI_ONCE},
    {"uncompressed", KEY_UNCOMPRESSED, NULL,
     "Do not ask for gzip; without this a stream takes about a third of the bytes.", NULL,
     CLI_ONCE},
    SERVER_OPTION_URL(KEY_URL, ""),
    SERVER_OPTION_TOKEN(KEY_TOKEN, ""),
    SERVER_OPTION_CACERT(KEY_CACERT),
    CLI_OPTIONS_END,
};

const struct command command_tail = {
    .name = "tail",
    .arguments = "filter|sample|firehose|home",
    .summary = "print the events of a stream, and resume it when it breaks",
    .help =
        "Prints the events of a stream of sluiced, one JSON object per line. When the connection "
        "breaks, it reconnects and resumes: what has happened meanwhile is printed then, nothing "
        "twice. It waits as long as the server asks for, at most an hour. Terminal control "
        "characters are printed as \\u001b and the like, which means the same in JSON.\n\n"
        "On filter any of track, follow, locations and rule may match. An option that takes a "
        "list may be given several times. Messages of the server go to standard error. Ends when "
        "the server refuses for good or says not to reconnect.",
    .options = options,
    .examples = "sluice tail filter --track 'cat,dog food' --language en --pretty\n"
                "sluice tail filter --follow @ada --follow @bob\n"
                "sluice tail firehose --since -1h --limit 100\n"
                "sluice tail firehose --fields text,user.login\n"
                "sluice tail firehose --max-rate 5 --pretty\n"
                "sluice tail home --url https://live.example.org --cacert ca.pem\n",
    .words = "filter sample firehose home",
    .run = run,
};
