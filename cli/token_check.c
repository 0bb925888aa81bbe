/* token_check.c - sluice token check: explains what a server with these settings would say about a
 * token.
 *
 * It runs the server's own program with the settings as the server would read them, so the answer
 * is that of the installed sluiced. The token is passed through a pipe, where other users of the
 * machine cannot see it. The verdict is the exit status. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/sluiced_program.h"

enum {
    SETTINGS_MAX = 200,
    TOKEN_MOST_BYTES = 32768 /* the capacity of a pipe; sluiced accepts less */
};

struct question {
    const char *argv[SETTINGS_MAX + 1]; /* of sluiced */
    int argc;
    const char *program; /* NULL: that of this installation */
};

static const struct cli_option options[] = {
    {"config", 'c', "FILE", "The configuration file of sluiced.", CLI_FILE, CLI_ONCE},
    {"jwt-secret-file", 's', "FILE", "The same as for sluiced, like those below.", CLI_FILE,
     CLI_ONCE},
    {"jwt-public-key", 'p', "FILE", "May be repeated.", CLI_FILE, CLI_MANY},
    {"jwks-file", 'k', "FILE", "May be repeated.", CLI_FILE, CLI_MANY},
    {"jwks-url", 'w', "URL",
     "Keys that a sluiced has stored in its data-dir; nothing is fetched. May be repeated.", NULL,
     CLI_MANY},
    {"jwt-issuer", 'i', "TEXT", "What iss is to be.", NULL, CLI_ONCE},
    {"jwt-audience", 'a', "TEXT", "What aud is to be.", NULL, CLI_ONCE},
    {"jwt-subject-claim", 'u', "NAME", "The claim that names the subject.", NULL, CLI_ONCE},
    {"issuers-file", 'f', "FILE", "The other issuers.", CLI_FILE, CLI_ONCE},
    {"data-dir", 'd', "DIR", "Where a sluiced stores fetched keys.", CLI_FILE, CLI_ONCE},
    {"sluiced", 'g', "PROGRAM", "The sluiced to run; the default is that of this installation.",
     CLI_FILE, CLI_ONCE},
    CLI_OPTIONS_END,
};

static void add(const struct cli *cli, struct question *question, const char *text)
{
    if (question->argc == SETTINGS_MAX)
        cli_usage(cli, "there are too many options");
    question->argv[question->argc++] = text;
}

/* Adds --NAME=VALUE, because a value may begin with a hyphen. */
static void add_setting(const struct cli *cli, struct question *question, int key)
{
    char *text;

    for (const struct cli_option *row = options; row->name; row++) {
        if (row->key != key)
            continue;
        if (asprintf(&text, "--%s=%s", row->name, optarg) < 0)
            abort();
        add(cli, question, text); /* must be valid until exec */
    }
}

static const char *find_token(const struct cli *cli, int argc, char **argv)
{
    const char *token = getenv("SLUICE_TOKEN");

    if (argc - optind > 1)
        cli_usage(cli, "unexpected argument '%s'; a token has no spaces", argv[optind + 1]);
    if (optind < argc)
        token = argv[optind];
    if (!token || !*token)
        cli_usage(cli, "give a TOKEN, or - for standard input, or set SLUICE_TOKEN in the "
                       "environment");
    if (strlen(token) > TOKEN_MOST_BYTES)
        cli_usage(cli, "the token has %zu bytes; sluiced reads up to 8192", strlen(token));
    return token;
}

/* Makes the token the standard input. */
static int put_on_input(const char *token)
{
    size_t size = strlen(token);
    int ends[2];

    if (strcmp(token, "-") == 0)
        return 0;
    if (pipe(ends) < 0 || write(ends[1], token, size) != (ssize_t)size ||
        dup2(ends[0], STDIN_FILENO) < 0)
        return -errno;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct question question = {.argv = {"sluiced", "--check-token"}, .argc = 2};
    char room[PATH_MAX];
    const char *program, *token;
    int option, r;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == 'g')
            question.program = optarg;
        else
            add_setting(cli, &question, option);
    }
    token = find_token(cli, argc, argv);
    program = question.program ? question.program : sluiced_program(room);
    r = put_on_input(token);
    if (r < 0)
        return cli_failed_with(cli, "cannot pass the token on: %s", strerror(-r));
    execvp(program, (char *const *)question.argv);
    if (errno == ENOENT)
        return cli_failed_with(cli, "there is no program '%s'; --sluiced says where it is",
                               program);
    return cli_failed_with(cli, "cannot run '%s': %s", program, strerror(errno));
}

const struct command command_token_check = {
    .name = "token check",
    .arguments = "[TOKEN]",
    .summary = "check a token like a server with these settings",
    .help = "Prints in more detail than a client gets what is wrong, the content of the token, "
            "and the available keys. TOKEN is - for standard input; the default is SLUICE_TOKEN "
            "in the environment, which other users of the machine cannot see. Settings come from "
            "options, environment and file, like those of sluiced. Revocations are not checked. "
            "The exit status is 0 for a good token, 1 for any other.",
    .options = options,
    .examples = "sluice token check --config /etc/sluice/sluiced.conf -\n"
                "sluice token check --jwt-secret-file jwt.secret \"$TOKEN\"\n"
                "sluice token check --issuers-file issuers.json \"$TOKEN\"\n",
    .run = run,
};
