/* tail_options.c - a table of the parameters of each stream, and the options that set them.
 *
 * The server checks values; whether a stream has a parameter is checked here, before anything is
 * sent, because a message about a line that cannot work should not need a server. */
#include "cli/tail_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/argument.h"
#include "cli/server.h"
#include "src/model/id.h"
#include "src/model/moment.h"

/* --- streams and parameters ---------------------------------------------------------------- */

enum { FILTER = 1, SAMPLE = 2, FIREHOSE = 4, HOME = 8, COUNTS = 16, TRENDS = 32 };

static const char *const streams[] = {"filter", "sample", "firehose", "home", "counts", "trends"};

enum { STREAM_COUNT = sizeof(streams) / sizeof(streams[0]) };

enum {
    PUBLIC = FILTER | SAMPLE | FIREHOSE,
    EVENTS = PUBLIC | HOME,
    BUCKETS = COUNTS | TRENDS,
    ALL = EVENTS | BUCKETS
};

enum parameter {
    TRACK,
    FOLLOW,
    LOCATIONS,
    RULE,
    LANGUAGE,
    PERCENT,
    PARTITION,
    TYPES,
    BUCKET,
    BY,
    REFRESH_MS,
    WINDOW,
    OF,
    TERMS,
    SINCE,
    UNTIL,
    LAST,
    FIELDS,
    MAX_RATE,
    MAX,
    PICK,
    LATEST_BY,
    CELL_DEGREES,
    ON_SLOW,
    PARAMETER_COUNT
};

static const struct {
    const char *name;
    unsigned streams; /* that have it */
    unsigned needed;  /* by these of them */
} parameters[] = {
    [TRACK] = {"track", FILTER | BUCKETS, 0},
    [FOLLOW] = {"follow", FILTER | BUCKETS, 0},
    [LOCATIONS] = {"locations", FILTER | BUCKETS, 0},
    [RULE] = {"rule", FILTER | BUCKETS, 0},
    [LANGUAGE] = {"language", PUBLIC | BUCKETS, 0},
    [PERCENT] = {"percent", PUBLIC | BUCKETS, 0},
    [PARTITION] = {"partition", PUBLIC | BUCKETS, 0},
    [TYPES] = {"types", EVENTS | COUNTS, 0},
    [BUCKET] = {"bucket", BUCKETS, BUCKETS},
    [BY] = {"by", COUNTS, 0},
    [REFRESH_MS] = {"refresh_ms", COUNTS, 0},
    [WINDOW] = {"window", TRENDS, TRENDS},
    [OF] = {"of", TRENDS, TRENDS},
    [TERMS] = {"limit", TRENDS, 0},
    [SINCE] = {"since", ALL, 0},
    [UNTIL] = {"until", ALL, 0},
    [LAST] = {"last", EVENTS, 0},
    [FIELDS] = {"fields", EVENTS, 0},
    [MAX_RATE] = {"max_rate", EVENTS, 0},
    [MAX] = {"max", EVENTS, 0},
    [PICK] = {"pick", EVENTS, 0},
    [LATEST_BY] = {"latest_by", EVENTS, 0},
    [CELL_DEGREES] = {"cell_degrees", EVENTS | COUNTS, 0},
    [ON_SLOW] = {"on_slow", EVENTS, 0},
};

_Static_assert((int)PARAMETER_COUNT <= (int)TAIL_PARAMETERS_MAX, "there is a value for each");

/* --- options ------------------------------------------------------------------------------- */

/* The key of a parameter's option is KEY_PARAMETER and its number. */
enum {
    KEY_URL = 1,
    KEY_TOKEN,
    KEY_CACERT,
    KEY_LIMIT,
    KEY_PRETTY,
    KEY_JSON,
    KEY_UNCOMPRESSED,
    KEY_PARAMETER
};

#define PARAMETER(number, name, value, help, words, times)                                         \
    {                                                                                              \
        name, KEY_PARAMETER + (number), value, help, words, times                                  \
    }

const struct cli_option tail_options[] = {
    PARAMETER(TRACK, "track", "PHRASES",
              "Posts that have all words of one of these phrases, which are separated by commas; "
              "for filter, counts and trends.",
              NULL, CLI_MANY),
    PARAMETER(FOLLOW, "follow", "USERS",
              "Posts by and about these users, separated by commas, by id or login: digits are an "
              "id, @ada is a login, anything else may be either; for filter, counts and trends.",
              NULL, CLI_MANY),
    PARAMETER(LOCATIONS, "locations", "BOXES",
              "Posts in one of these boxes, WEST,SOUTH,EAST,NORTH in degrees each; for filter, "
              "counts and trends.",
              NULL, CLI_MANY),
    PARAMETER(RULE, "rule", "RULE",
              "Posts that match this rule, such as (cat OR fox) -dog, \"night train\"~3 or "
              "polygon:[8.2 46.8, 8.9 46.8, 8.5 47.3]; for filter, counts and trends.",
              NULL, CLI_ONCE),
    PARAMETER(LANGUAGE, "language", "LANGUAGES",
              "Only those in one of the languages: en,zh; not for home.", NULL, CLI_MANY),
    PARAMETER(PERCENT, "percent", "P", "Only a stable sample of them; not for home.", NULL,
              CLI_ONCE),
    PARAMETER(PARTITION, "partition", "K/N", "Only part K of N disjoint parts; not for home.", NULL,
              CLI_ONCE),
    PARAMETER(TYPES, "types", "TYPES",
              "The default is post,delete; there are also follow, unfollow and user. Not for "
              "trends.",
              "post delete follow unfollow user", CLI_MANY),
    PARAMETER(BUCKET, "bucket", "TIME",
              "How often to report, at each full 1s, 10s, 1m, 1h or 1d; needed for counts and "
              "trends.",
              "1s 10s 1m 1h 1d", CLI_ONCE),
    PARAMETER(BY, "by", "WHAT",
              "Also count by type (of the event), lang, country, or cell of the map; for counts.",
              "type lang country cell", CLI_ONCE),
    PARAMETER(REFRESH_MS, "refresh-ms", "MS",
              "Also print the current bucket so far, every MS milliseconds, 100 to 60000; for "
              "counts.",
              NULL, CLI_ONCE),
    PARAMETER(WINDOW, "window", "TIME",
              "How much of the past to look at: 5m, 1h or 1d; needed for trends.", "5m 1h 1d",
              CLI_ONCE),
    PARAMETER(OF, "of", "KINDS",
              "Which terms: hashtags, words, links, users (mentioned ones), cashtags, separated by "
              "commas; needed for trends.",
              "hashtags words links users cashtags", CLI_MANY),
    PARAMETER(TERMS, "terms", "N",
              "The maximum number of terms in a list, 1 to 100; the default is 20. For trends.",
              NULL, CLI_ONCE),
    PARAMETER(SINCE, "since", "MOMENT",
              "Begin after this event id, or at this time: -1h, 2026-11-21, "
              "2026-11-21T06:00:00Z, Unix seconds.",
              NULL, CLI_ONCE),
    PARAMETER(
        UNTIL, "until", "MOMENT",
        "End with status 0 when everything up to this event id or time has come; +10m is in ten "
        "minutes.",
        NULL, CLI_ONCE),
    PARAMETER(LAST, "last", "N",
              "Begin with this many of the newest events, 1 to 1000, then go on live; not for "
              "counts and trends.",
              NULL, CLI_ONCE),
    PARAMETER(FIELDS, "fields", "NAMES",
              "Only these members of events, separated by commas: text,user.login; or short "
              "(without what a post says twice), ids, full. Not for counts and trends.",
              "full short ids", CLI_MANY),
    PARAMETER(MAX_RATE, "max-rate", "N",
              "At most this many posts a second, 0.1 to 1000; the number of posts left out goes "
              "to standard error. Not for counts and trends.",
              NULL, CLI_ONCE),
    PARAMETER(MAX, "max", "N",
              "At most this many posts, 1 to 1000, of all between --since and --until, which are "
              "needed; the number of posts left out goes to standard error. Not for counts and "
              "trends.",
              NULL, CLI_ONCE),
    PARAMETER(PICK, "pick", "WHICH",
              "With --max-rate or --max, which of them: even (the default), newest, or first, "
              "which does not wait for the second to end.",
              "even newest first", CLI_ONCE),
    PARAMETER(LATEST_BY, "latest-by", "KEY",
              "Instead of --pick: only the newest of each user, or of each cell of the map.",
              "user cell", CLI_ONCE),
    PARAMETER(CELL_DEGREES, "cell-degrees", "DEGREES",
              "With --by cell or --latest-by cell: the side of a cell, 0.01 to 90.", NULL,
              CLI_ONCE),
    PARAMETER(ON_SLOW, "on-slow", "WHAT",
              "What the server does when this program does not keep up: catch_up (the default) "
              "sends everything, late; sample sends a sample; the percentage, and the number of "
              "posts left out, go to standard error. Not for counts and trends.",
              "catch_up sample", CLI_ONCE),
    {"limit", KEY_LIMIT, "N",
     "End with status 0 after printing this many events, counts of whole buckets, or lists of "
     "trends.",
     NULL, CLI_ONCE},
    {"pretty", KEY_PRETTY, NULL,
     "Print for people, not as JSON: events as time, user, text; counts as a line for each bucket, "
     "trends as a table. The default on a terminal.",
     NULL, CLI_ONCE},
    {"json", KEY_JSON, NULL,
     "Print each message as received, a line of JSON. The default everywhere else.", NULL,
     CLI_ONCE},
    {"uncompressed", KEY_UNCOMPRESSED, NULL,
     "Do not ask for gzip; without this a stream takes about a third of the bytes.", NULL,
     CLI_ONCE},
    SERVER_OPTION_URL(KEY_URL, ""),
    SERVER_OPTION_TOKEN(KEY_TOKEN, ""),
    SERVER_OPTION_CACERT(KEY_CACERT),
    CLI_OPTIONS_END,
};

static const struct cli_option *option_of(size_t parameter)
{
    const struct cli_option *option = tail_options;

    while (option->key != KEY_PARAMETER + (int)parameter)
        option++;
    return option;
}

/* --- checks -------------------------------------------------------------------------------- */

/* Returns the stream's bit. */
static unsigned find_stream(const struct cli *cli, int argc, char **argv)
{
    if (argc - optind != 1)
        cli_usage(cli,
                  argc > optind
                      ? "give one stream, and its parameters as options, such as --track PHRASES"
                      : "which stream: filter, sample, firehose, home, counts or trends?");
    for (unsigned i = 0; i < STREAM_COUNT; i++) {
        if (strcmp(argv[optind], streams[i]) == 0)
            return 1u << i;
    }
    cli_usage(
        cli, "there is no stream '%s'; there are filter, sample, firehose, home, counts and trends",
        argv[optind]);
}

/* Appends "filter, counts and trends". */
static void append_streams(struct buffer *text, unsigned bits)
{
    for (unsigned i = 0; i < STREAM_COUNT; i++) {
        unsigned bit = 1u << i;

        if (!(bits & bit))
            continue;
        if (bits & (bit - 1)) /* not the first; the last: */
            buffer_append_str(text, bits >> i == 1 ? " and " : ", ");
        buffer_append_str(text, streams[i]);
    }
}

static void check_parameters(const struct cli *cli, unsigned stream,
                             const struct tail_arguments *arguments)
{
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        const struct cli_option *option = option_of(i);

        if (arguments->values[i].data && !(parameters[i].streams & stream)) {
            struct buffer text = BUFFER_INIT;

            append_streams(&text, parameters[i].streams);
            cli_usage(cli, "--%s is for %s, not for %s", option->name, buffer_str(&text),
                      arguments->stream);
        }
        if (!arguments->values[i].data && parameters[i].needed & stream)
            cli_usage(cli, "%s needs --%s %s (%s)", arguments->stream, option->name, option->value,
                      option->words);
    }
}

/* --- reading ------------------------------------------------------------------------------- */

/* A list may be given in several options, which are joined. */
static void keep_value(struct buffer *values)
{
    if (values->data)
        buffer_append_char(values, ',');
    buffer_append_str(values, optarg);
    buffer_str(values); /* an empty value counts, too */
}

void tail_options_read(struct cli *cli, int argc, char **argv, struct tail_arguments *ret_arguments)
{
    struct tail_arguments *arguments = ret_arguments;
    bool is_pretty = false, is_json = false;
    unsigned stream;
    int option;

    *arguments =
        (struct tail_arguments){.base = server_default_url(), .token = getenv("SLUICE_TOKEN")};
    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case KEY_URL:
            arguments->base = optarg;
            break;
        case KEY_TOKEN:
            arguments->token = optarg;
            break;
        case KEY_CACERT:
            arguments->cacert = optarg;
            break;
        case KEY_LIMIT:
            arguments->limit = argument_number(cli, "limit", optarg, SL_ID_MAX);
            break;
        case KEY_PRETTY:
            is_pretty = true;
            break;
        case KEY_JSON:
            is_json = true;
            break;
        case KEY_UNCOMPRESSED:
            arguments->is_uncompressed = true;
            break;
        default:
            keep_value(&arguments->values[option - KEY_PARAMETER]);
        }
    }
    stream = find_stream(cli, argc, argv);
    arguments->stream = argv[optind];
    if (is_pretty && is_json)
        cli_usage(cli, "--pretty and --json cannot be combined");
    arguments->is_pretty = is_pretty || (!is_json && isatty(STDOUT_FILENO));
    check_parameters(cli, stream, arguments);
    server_need_token(cli, arguments->token);
}

void tail_arguments_done(struct tail_arguments *arguments)
{
    for (size_t i = 0; i < PARAMETER_COUNT; i++)
        buffer_done(&arguments->values[i]);
}

/* --- the request --------------------------------------------------------------------------- */

static void append_parameter(struct buffer *form, CURL *curl, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(curl, value, (int)strlen(value));

    if (!escaped)
        form->failed = true;
    else
        buffer_append_format(form, "%s%s=%s", form->size > 0 ? "&" : "", name, escaped);
    curl_free(escaped);
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

void tail_options_append_form(struct tail_arguments *arguments, CURL *curl, struct buffer *form)
{
    fix_moment(&arguments->values[SINCE]);
    fix_moment(&arguments->values[UNTIL]);
    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if (arguments->values[i].failed)
            form->failed = true;
        else if (arguments->values[i].data)
            append_parameter(form, curl, parameters[i].name, buffer_str(&arguments->values[i]));
    }
    if (isatty(STDERR_FILENO)) /* on a terminal, print how the server understands the filter */
        append_parameter(form, curl, "hello", "true");
}

const char *tail_options_value(const void *arguments, const char *param, const char **ret_option)
{
    const struct tail_arguments *given = arguments;

    for (size_t i = 0; i < PARAMETER_COUNT; i++) {
        if (strcmp(parameters[i].name, param) == 0) {
            *ret_option = option_of(i)->name;
            return given->values[i].data;
        }
    }
    return NULL;
}
