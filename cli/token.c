/* token.c - sluice token: a JWT signed with the secret of sluiced, for tests and scripts.
 *
 * Only HMAC: for public-key signatures other programs exist. The claims that sluiced reads have
 * options; others are given as JSON and are added last, so they can also replace those of the
 * options. The result is checked (token_claims.h) and signed (token_sign.h). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "cli/argument.h"
#include "cli/database.h"
#include "cli/token_claims.h"
#include "cli/token_sign.h"
#include "src/model/id.h"

enum { TTL_DEFAULT_S = 3600 };

#define TTL_MAX_MS UINT64_C(315360000000) /* ten years */

/* Parses NAME=JSON. */
static void add_claim(const struct cli *cli, json_t *claims, const char *text)
{
    const char *equals = strchr(text, '=');
    json_error_t error;
    json_t *value;

    if (!equals || equals == text)
        cli_usage(cli, "--claim must be NAME=JSON, not '%s'", text);
    value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!value)
        cli_usage(cli, "--claim %.*s: not JSON: %s (a text needs its quotes: %.*s='\"...\"')",
                  (int)(equals - text), text, error.text, (int)(equals - text), text);
    json_object_setn_new(claims, text, (size_t)(equals - text), value);
}

static int print_token(const struct cli *cli, const char *algorithm, const char *secret_file,
                       const json_t *claims)
{
    struct buffer token = BUFFER_INIT;
    struct failure failure;
    int status;

    if (token_sign(algorithm, secret_file, claims, &token, &failure) < 0) {
        status = cli_failed(cli, &failure);
    } else {
        printf("%.*s\n", SL_SLICE_ARG(buffer_slice(&token)));
        status = cli_done(cli);
    }
    buffer_done(&token);
    return status;
}

/* The id of the user with a login; NULL: printed why not. Ids, and names that need not be users for
 * these scopes, are returned unchanged. */
static const char *find_subject(const struct cli *cli, const char *sub, const char *scope,
                                char room[static SL_ID_TEXT_SIZE])
{
    const bool is_login = sub[0] == '@';
    struct database database;
    struct sl_user_ref ref;
    struct failure failure;
    uint64_t id;
    int r;

    if (!is_login && (!token_claims_need_user(scope) || !sub[strspn(sub, "0123456789")]))
        return sub;
    ref = argument_user(cli, sub);
    r = database_open(&database, cli, 0);
    if (r == CLI_GOOD) {
        r = database_find_id(&database, &ref, &id, &failure);
        database_close(&database);
        if (r < 0)
            cli_failed(cli, &failure);
    }
    if (r != 0) {
        cli_warn(cli,
                 "these scopes are for a user, whose id was looked up for --sub %s; --sub ID "
                 "needs no Redis, and 'sluice user add' prints one",
                 sub);
        return NULL;
    }
    return sl_id_print(id, room);
}

/* The request of the command line. */
struct arguments {
    const char *algorithm, *secret_file, *sub, *scope;
    long long ttl_s;
    json_t *extra; /* additional claims */
};

static void read_options(struct cli *cli, int argc, char **argv, struct arguments *arguments)
{
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case 'f':
            arguments->secret_file = optarg;
            break;
        case 's':
            arguments->sub = optarg;
            break;
        case 'o':
            arguments->scope = optarg;
            break;
        case 't':
            arguments->ttl_s =
                (long long)argument_duration_ms(cli, "ttl", optarg, 1000, TTL_MAX_MS) / 1000;
            break;
        case 'a':
            if (!token_can_sign(optarg))
                cli_usage(cli, "--alg must be HS256, HS384 or HS512, not '%s'", optarg);
            arguments->algorithm = optarg;
            break;
        case 'c':
            add_claim(cli, arguments->extra, optarg);
            break;
        }
    }
    if (optind < argc)
        cli_usage(cli,
                  "unexpected argument '%s'; give several scopes as one argument: --scope "
                  "'%s %s'",
                  argv[optind], arguments->scope, argv[optind]);
}

static int make_token(const struct cli *cli, const struct arguments *arguments, const char *sub)
{
    const long long now_s = (long long)time(NULL);
    json_t *claims;
    int status;

    claims = json_pack("{s:s, s:s, s:I, s:I}", "sub", sub, "scope", arguments->scope, "iat",
                       (json_int_t)now_s, "exp", (json_int_t)(now_s + arguments->ttl_s));
    if (!claims)
        cli_usage(cli, "--sub and --scope must be valid UTF-8");
    json_object_update(claims, arguments->extra);
    token_claims_check(cli, claims, now_s);
    status = print_token(cli, arguments->algorithm, arguments->secret_file, claims);
    json_decref(claims);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {
        .algorithm = "HS256", .ttl_s = TTL_DEFAULT_S, .extra = json_object()};
    char room[SL_ID_TEXT_SIZE];
    const char *sub;
    int status;

    read_options(cli, argc, argv, &arguments);
    sub = json_object_get(arguments.extra, "sub")
              ? "-"
              : find_subject(cli, arguments.sub, arguments.scope, room);
    status = sub ? make_token(cli, &arguments, sub) : CLI_FAILED;
    json_decref(arguments.extra);
    return status;
}

static const struct cli_option options[] = {
    {"secret-file", 'f', "FILE", "The file that sluiced uses as --jwt-secret-file.", CLI_FILE,
     CLI_NEEDED},
    {"sub", 's', "USER",
     "The subject of the token: the id of a user, or a login, which is looked up in Redis: @ada "
     "always, ada if a scope is for a user (stream:home; read and write without admin). With the "
     "other scopes any name of up to 64 bytes.",
     NULL, CLI_NEEDED},
    {"scope", 'o', "SCOPES",
     "What it permits, in one argument, separated by spaces: stream:filter, stream:sample, "
     "stream:firehose, stream:home, read, write, admin.",
     token_scope_names, CLI_NEEDED},
    {"ttl", 't', "TIME",
     "How long it is valid: 90s, 30m, 24h, 7d, or a number of seconds; the default is an hour.",
     NULL, CLI_ONCE},
    {"alg", 'a', "ALG", "HS256 (the default), HS384 or HS512.", "HS256 HS384 HS512", CLI_ONCE},
    {"claim", 'c', "NAME=JSON", "Another claim; it overrides the others.", NULL, CLI_MANY},
    CLI_OPTIONS_END,
};

const struct command command_token = {
    .name = "token",
    .arguments = "",
    .summary = "make a token for the streams and the HTTP API; prints it",
    .help = "It is a JSON Web Token, signed with the secret of sluiced.",
    .options = options,
    .examples =
        "sluice token --secret-file jwt.secret --sub 114871006736384 --scope 'stream:filter "
        "stream:home' --ttl 24h\n"
        "sluice token --secret-file jwt.secret --sub try --scope stream:filter --claim "
        "'lim={\"track\":50}'\n",
    .run = run,
};
