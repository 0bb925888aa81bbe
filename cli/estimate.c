/* estimate.c - asks a server how much a filter would match, and prints the answer for people, or
 * unchanged.
 *
 * One POST of JSON, answered within ANSWER_MAX_S, with at most ANSWER_MAX_BYTES. Rates are printed
 * per second, minute or hour, whichever is most readable; text from outside without control
 * characters. Warnings of the server go to standard error. */
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/figure.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/command_table.h"
#include "cli/refusal.h"
#include "cli/server.h"

enum { ANSWER_MAX_S = 60 };

enum { KEY_MEMBER = 256, KEY_SINCE = 300, KEY_JSON, KEY_URL, KEY_TOKEN, KEY_CACERT };

static const struct {
    const char *name, *option; /* `option` NULL: it is an argument */
} members[] = {{"rule", NULL},
               {"track", "track"},
               {"follow", "follow"},
               {"locations", "locations"},
               {"language", "language"},
               {"sample", "percent"},
               {"partition", "partition"},
               {"types", "types"}};

enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

struct arguments {
    const char *values[MEMBER_COUNT];
    const char *since, *base, *cacert, *token;
    bool is_json;
};

/* --- the request -------------------------------------------------------------------------- */

static void append_body(const struct arguments *arguments, struct buffer *body)
{
    const char *separator = "";

    buffer_append_str(body, "{\"filter\":{");
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (!arguments->values[i])
            continue;
        buffer_append_format(body, "%s\"%s\":", separator, members[i].name);
        buffer_append_json_string(body, sl_slice_str(arguments->values[i]));
        separator = ",";
    }
    buffer_append_char(body, '}');
    if (arguments->since) {
        buffer_append_str(body, ",\"since\":");
        buffer_append_json_string(body, sl_slice_str(arguments->since));
    }
    buffer_append_char(body, '}');
}

/* --- printing ----------------------------------------------------------------------------- */

static void print_shown(const char *text)
{
    for (struct sl_slice rest = sl_slice_str(text); rest.size > 0;) {
        struct printable character = printable_first(rest);

        if (character.is_shown)
            printf("%.*s", (int)character.size, rest.data);
        else
            putchar(' ');
        rest = sl_slice_from(rest, character.size);
    }
}

static double number(const json_t *json, const char *name)
{
    return json_number_value(json_object_get(json, name));
}

static void print_rate(const json_t *json)
{
    const char *unit = "a second";
    double times = 1;

    if (number(json, "per_second") < 0.1) {
        unit = "an hour";
        times = 3600;
    } else if (number(json, "per_second") < 1) {
        unit = "a minute";
        times = 60;
    }
    printf("%.3g events %s (%.3g to %.3g in the next ten minutes), %.2g %% of all, "
           "%.3g bytes a second\n",
           number(json, "per_second") * times, unit, number(json, "per_second_low") * times,
           number(json, "per_second_high") * times, number(json, "share") * 100,
           number(json, "bytes_per_second"));
    printf("from %.0f of %.0f events of the sample, of %s\n", number(json, "events"),
           number(json, "looked_at"), figure_seconds(number(json, "seconds")).text);
}

static void print_parts(const json_t *parts)
{
    const json_t *part;
    size_t i;

    json_array_foreach(parts, i, part)
    {
        const json_t *without = json_object_get(part, "without");

        printf("  %6.0f  %s: ", number(part, "events"),
               json_string_value(json_object_get(part, "param")));
        print_shown(json_string_value(json_object_get(part, "value")));
        if (without)
            printf("  (without it: %.0f)", json_number_value(without));
        putchar('\n');
    }
}

static void print_examples(const json_t *examples)
{
    const json_t *event;
    size_t i;

    json_array_foreach(examples, i, event)
    {
        const json_t *text = json_object_get(json_object_get(event, "post"), "text");

        fputs(i == 0 ? "\nsuch as\n  " : "  ", stdout);
        print_shown(json_is_string(text) ? json_string_value(text)
                                         : json_string_value(json_object_get(event, "type")));
        putchar('\n');
    }
}

static void print_warnings(const struct cli *cli, const json_t *warnings)
{
    const json_t *warning;
    size_t i;

    json_array_foreach(warnings, i, warning)
    {
        const char *param = json_string_value(json_object_get(warning, "param"));

        fflush(stdout);
        cli_failed_with(cli, "%s%s%s", param ? param : "", param ? ": " : "",
                        json_string_value(json_object_get(warning, "message")));
    }
}

static int print(const struct cli *cli, const struct arguments *arguments,
                 const struct buffer *answer)
{
    json_t *json = json_loadb(answer->data, answer->size, 0, NULL);

    if (!json_is_object(json)) {
        json_decref(json);
        return cli_failed_with(cli, "the answer is not JSON");
    }
    if (arguments->is_json) {
        fwrite(answer->data, 1, answer->size, stdout);
    } else {
        print_rate(json);
        print_parts(json_object_get(json, "parts"));
        print_examples(json_object_get(json, "examples"));
        print_warnings(cli, json_object_get(json, "warnings"));
    }
    json_decref(json);
    return cli_done(cli);
}

/* --- the command -------------------------------------------------------------------------- */

static const char *value_of(const void *owner, const char *param, const char **ret_option)
{
    const struct arguments *arguments = owner;

    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (strcmp(members[i].name, param) != 0)
            continue;
        *ret_option = members[i].option;
        return arguments->values[i];
    }
    if (strcmp(param, "since") != 0)
        return NULL;
    *ret_option = "since";
    return arguments->since;
}

static struct arguments read_options(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.base = server_default_url(), .token = getenv("SLUICE_TOKEN")};
    bool has_filter = false;
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case KEY_SINCE:
            arguments.since = optarg;
            break;
        case KEY_JSON:
            arguments.is_json = true;
            break;
        case KEY_URL:
            arguments.base = optarg;
            break;
        case KEY_TOKEN:
            arguments.token = optarg;
            break;
        case KEY_CACERT:
            arguments.cacert = optarg;
            break;
        default:
            arguments.values[option - KEY_MEMBER] = optarg;
        }
    }
    if (argc - optind > 1)
        cli_usage(cli, "give one rule, in quotes: '(cat OR fox) -dog'");
    if (argc > optind)
        arguments.values[0] = argv[optind];
    for (size_t i = 0; i < MEMBER_COUNT; i++)
        has_filter = has_filter || arguments.values[i];
    if (!has_filter)
        cli_usage(cli, "a rule is needed, or an option such as --track PHRASES");
    server_need_token(cli, arguments.token);
    return arguments;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const struct arguments arguments = read_options(cli, argc, argv);
    struct buffer body = BUFFER_INIT, answer = BUFFER_INIT;
    struct server_request request = {.method = "POST",
                                     .token = arguments.token,
                                     .cacert = arguments.cacert,
                                     .body = &body,
                                     .max_s = ANSWER_MAX_S};
    CURLcode code = CURLE_OUT_OF_MEMORY;
    long status = 0;
    char *url;
    int result;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    request.url = url = server_url(cli, arguments.base, "/v1/filters/estimate");
    append_body(&arguments, &body);
    if (!body.failed)
        code = server_ask(&request, &answer, &status);
    if (code != CURLE_OK) {
        result = server_tell_failure(cli, url, code);
    } else if (status != 200) {
        refusal_tell(cli, status, buffer_slice(&answer), value_of, &arguments);
        result = CLI_FAILED;
    } else {
        result = print(cli, &arguments, &answer);
    }
    curl_free(url);
    buffer_done(&body);
    buffer_done(&answer);
    curl_global_cleanup();
    return result;
}

static const struct cli_option options[] = {
    {"track", KEY_MEMBER + 1, "PHRASES", "Posts with all words of one of these phrases.", NULL,
     CLI_ONCE},
    {"follow", KEY_MEMBER + 2, "USERS", "Posts by and about these users, by id or login.", NULL,
     CLI_ONCE},
    {"locations", KEY_MEMBER + 3, "BOXES", "Posts in one of these boxes, WEST,SOUTH,EAST,NORTH.",
     NULL, CLI_ONCE},
    {"language", KEY_MEMBER + 4, "LANGUAGES", "Only those in one of the languages.", NULL,
     CLI_ONCE},
    {"percent", KEY_MEMBER + 5, "P", "Only a stable sample of them.", NULL, CLI_ONCE},
    {"partition", KEY_MEMBER + 6, "K/N", "Only part K of N disjoint parts.", NULL, CLI_ONCE},
    {"types", KEY_MEMBER + 7, "TYPES",
     "The default is post,delete; there are also follow, "
     "unfollow and user.",
     "post delete follow unfollow user", CLI_ONCE},
    {"since", KEY_SINCE, "MOMENT",
     "Sample events since then, at most an hour ago: -10m, an event id, a time. The default is "
     "the events in the server's memory.",
     NULL, CLI_ONCE},
    {"json", KEY_JSON, NULL, "Print the answer as received.", NULL, CLI_ONCE},
    SERVER_OPTION_URL(KEY_URL, ""),
    SERVER_OPTION_TOKEN(KEY_TOKEN, ""),
    SERVER_OPTION_CACERT(KEY_CACERT),
    CLI_OPTIONS_END,
};

const struct command command_estimate = {
    .name = "estimate",
    .arguments = "[RULE]",
    .summary = "estimate what a filter would match",
    .help = "Asks a sluiced what a filter would match: events and bytes a second, the share of "
            "its parts, the newest examples, and what is probably wrong with it. This is "
            "estimated from at most 2,000 events, drawn evenly from recent ones.\n\n"
            "A refused rule is shown with a caret under the place. Warnings go to standard error.",
    .options = options,
    .examples = "sluice estimate 'coffee OR tea'\n"
                "sluice estimate --track 'cat,dog food' --language en --since -10m\n"
                "sluice estimate 'lang:ja' --json\n",
    .run = run,
};
