/* connections.c - lists the open streams of a gateway and all others on the same database, or ends
 * some.
 *
 * Each page is one GET, ended by the last page without a next one; ending streams is one DELETE.
 * Text from outside (subjects) is printed without control characters. Incomplete answers are
 * reported on standard error. */
#include <curl/curl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/cli.h"
#include "cli/command_table.h"
#include "cli/refusal.h"
#include "cli/server.h"

#define PATH "/v1/connections"

enum { ANSWER_MAX_S = 30 };

enum { KEY_END = 256, KEY_END_SUB, KEY_SUB, KEY_JSON, KEY_URL, KEY_TOKEN, KEY_CACERT };

struct arguments {
    const char *end, *end_sub, *sub;
    const char *base, *cacert, *token;
    bool is_json;
    bool is_incomplete; /* of an answer */
};

/* --- requests ---------------------------------------------------------------------------- */

/* NULL: out of memory. Free with curl_free(). */
static char *with_parameter(char *url, const char *name, const char *value)
{
    CURLU *parts = curl_url();
    struct buffer pair = BUFFER_INIT;
    char *whole = NULL;

    buffer_append_format(&pair, "%s=%s", name, value);
    if (parts && url && buffer_str(&pair) &&
        curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_set(parts, CURLUPART_QUERY, buffer_str(&pair),
                     CURLU_APPENDQUERY | CURLU_URLENCODE) == CURLUE_OK)
        curl_url_get(parts, CURLUPART_URL, &whole, 0);
    curl_url_cleanup(parts);
    curl_free(url);
    buffer_done(&pair);
    return whole;
}

static const char *value_of(const void *owner, const char *param, const char **ret_option)
{
    const struct arguments *arguments = owner;

    if (strcmp(param, "sub") != 0)
        return NULL;
    *ret_option = arguments->end_sub ? "end-sub" : "sub";
    return arguments->end_sub ? arguments->end_sub : arguments->sub;
}

/* Takes ownership of `url`. CLI_GOOD: the caller owns *ret_json, NULL if the answer has no body. */
static int ask(const struct cli *cli, const struct arguments *arguments, const char *method,
               char *url, struct buffer *answer, json_t **ret_json)
{
    const struct server_request request = {method, url, arguments->token, arguments->cacert,
                                           .max_s = ANSWER_MAX_S};
    long status = 0;
    CURLcode code = server_ask(&request, answer, &status);
    int result = CLI_GOOD;

    *ret_json = NULL;
    if (code != CURLE_OK) {
        result = server_tell_failure(cli, url, code);
    } else if (status != 200 && status != 204) {
        refusal_tell(cli, status, buffer_slice(answer), value_of, arguments);
        result = CLI_FAILED;
    } else if (status == 200) {
        *ret_json = json_loadb(answer->data, answer->size, 0, NULL);
        if (!json_is_object(*ret_json))
            result = cli_failed_with(cli, "the answer is not JSON");
    }
    curl_free(url);
    return result;
}

/* --- the list ----------------------------------------------------------------------------- */

static const char *text(const json_t *row, const char *name)
{
    const char *value = json_string_value(json_object_get(row, name));

    return value ? value : "-";
}

static uint64_t number(const json_t *row, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(row, name));
}

static void append_words(struct buffer *line, const json_t *row, const char *const *names)
{
    for (; *names; names++) {
        cli_append_word(line, sl_slice_str(text(row, *names)));
        buffer_append_char(line, ' ');
    }
}

static void print_row(const json_t *row)
{
    static const char *const names[] = {"id", "since", "address", "path", "transport", NULL};
    struct buffer line = BUFFER_INIT;

    append_words(&line, row, names);
    buffer_append_format(&line,
                         "filters=%" PRIu64 " filter_bytes=%" PRIu64 " lag_ms=%" PRIu64
                         " events=%" PRIu64 " bytes=%" PRIu64,
                         number(row, "filters"), number(row, "filter_bytes"), number(row, "lag_ms"),
                         number(row, "events"), number(row, "bytes"));
    if (number(row, "streams"))
        buffer_append_format(&line, " streams=%" PRIu64, number(row, "streams"));
    if (json_object_get(row, "subject")) {
        buffer_append_str(&line, " subject=");
        cli_append_word(&line, sl_slice_str(text(row, "subject")));
    }
    if (buffer_str(&line))
        puts(buffer_str(&line));
    buffer_done(&line);
}

static void print_page(const struct arguments *arguments, const json_t *items)
{
    const json_t *row;
    size_t i;

    json_array_foreach(items, i, row)
    {
        if (arguments->is_json) {
            json_dumpf(row, stdout, JSON_COMPACT);
            putchar('\n');
        } else {
            print_row(row);
        }
    }
}

/* *ret_after: where the next page begins; empty: there is none. */
static int list_page(const struct cli *cli, struct arguments *arguments, char ret_after[static 64])
{
    struct buffer answer = BUFFER_INIT;
    char *url = server_url(cli, arguments->base, PATH);
    json_t *json;
    int result;

    if (arguments->sub)
        url = with_parameter(url, "sub", arguments->sub);
    if (ret_after[0])
        url = with_parameter(url, "after", ret_after);
    result = ask(cli, arguments, "GET", url, &answer, &json);
    if (result == CLI_GOOD) {
        print_page(arguments, json_object_get(json, "items"));
        snprintf(ret_after, 64, "%s", json_object_get(json, "next") ? text(json, "next") : "");
        arguments->is_incomplete =
            arguments->is_incomplete || !json_is_true(json_object_get(json, "complete"));
    }
    json_decref(json);
    buffer_done(&answer);
    return result;
}

static int list_all(const struct cli *cli, struct arguments *arguments)
{
    char after[64] = "";
    int result;

    do {
        result = list_page(cli, arguments, after);
    } while (result == CLI_GOOD && after[0]);
    return result;
}

/* --- ending ------------------------------------------------------------------------------- */

static int end(const struct cli *cli, struct arguments *arguments)
{
    struct buffer answer = BUFFER_INIT, path = BUFFER_INIT;
    json_t *json;
    char *url;
    int result;

    buffer_append_str(&path, PATH);
    if (arguments->end)
        buffer_append_format(&path, "/%s", arguments->end);
    url = buffer_str(&path) ? server_url(cli, arguments->base, buffer_str(&path)) : NULL;
    if (arguments->end_sub)
        url = with_parameter(url, "sub", arguments->end_sub);
    result = ask(cli, arguments, "DELETE", url, &answer, &json);
    if (result == CLI_GOOD && json) {
        printf("%" PRIu64 "\n", number(json, "ended"));
        arguments->is_incomplete = !json_is_true(json_object_get(json, "complete"));
    }
    json_decref(json);
    buffer_done(&answer);
    buffer_done(&path);
    return result;
}

/* --- the command -------------------------------------------------------------------------- */

static void check_id(const struct cli *cli, const char *id)
{
    if (strlen(id) != 32 || strspn(id, "0123456789abcdef") != 32)
        cli_usage(cli, "--end needs the id of a connection: 32 digits from 0 to f");
}

static struct arguments read_options(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.base = server_default_url(), .token = getenv("SLUICE_TOKEN")};
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case KEY_END:
            arguments.end = optarg;
            check_id(cli, optarg);
            break;
        case KEY_END_SUB:
            arguments.end_sub = optarg;
            break;
        case KEY_SUB:
            arguments.sub = optarg;
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
        }
    }
    cli_no_arguments(cli, argc, argv);
    if ((arguments.end != NULL) + (arguments.end_sub != NULL) + (arguments.sub != NULL) > 1)
        cli_usage(cli, "one of --end, --end-sub and --sub");
    server_need_token(cli, arguments.token);
    return arguments;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = read_options(cli, argc, argv);
    int result;

    curl_global_init(CURL_GLOBAL_DEFAULT);
    result = arguments.end || arguments.end_sub ? end(cli, &arguments) : list_all(cli, &arguments);
    curl_global_cleanup();
    if (result == CLI_GOOD && arguments.is_incomplete)
        cli_warn(cli, "not all gateways have answered: there may be more");
    return result == CLI_GOOD ? cli_done(cli) : result;
}

static const struct cli_option options[] = {
    {"sub", KEY_SUB, "SUBJECT", "List only those of this subject.", NULL, CLI_ONCE},
    {"end", KEY_END, "ID", "End this one.", NULL, CLI_ONCE},
    {"end-sub", KEY_END_SUB, "SUBJECT", "End all streams of this subject, and print how many.",
     NULL, CLI_ONCE},
    {"json", KEY_JSON, NULL, "Print them as received, as lines of JSON.", NULL, CLI_ONCE},
    SERVER_OPTION_URL(KEY_URL, ""),
    SERVER_OPTION_TOKEN(KEY_TOKEN, ""),
    SERVER_OPTION_CACERT(KEY_CACERT),
    CLI_OPTIONS_END,
};

const struct command command_connections = {
    .name = "connections",
    .arguments = "",
    .summary = "list the open streams of all gateways, or end some",
    .help = "Asks a sluiced for the streams that are open on it and on all others of its "
            "database: those of the token's subject (scope read or write), or everybody's (scope "
            "admin). One line for each: id, start, address, path, transport, then its cost and "
            "what it has been sent, and with admin its subject.\n\n"
            "A stream that is ended gets a message, and should not reconnect; a client that does "
            "so nevertheless is served as long as its token is valid.",
    .options = options,
    .examples = "sluice connections\n"
                "sluice connections --sub 42 --json\n"
                "sluice connections --end 5f0c7a1e000100002a9e3779b97f4a7c\n"
                "sluice connections --end-sub 42\n",
    .run = run,
};
