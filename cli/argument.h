/* cli/argument.h - parses users, posts and numbers on the command line. Invalid ones end the
 * program with a message. */
#pragma once

#include "cli/cli.h"
#include "src/social/users.h"

/* For the help of all commands that take a USER. */
#define ARGUMENT_USER_HELP                                                                         \
    "A USER is an id or a login: digits are an id, @ada is a login, anything else may be either, " \
    "so that @123 is the user whose login is 123."

/* Options shared by several commands, with their keys. */
enum { ARGUMENT_KEY_USER = 'u', ARGUMENT_KEY_BEFORE = 'b', ARGUMENT_KEY_LIMIT = 'l' };

#define ARGUMENT_OPTION_LIMIT(max)                                                                 \
    {                                                                                              \
        "limit", ARGUMENT_KEY_LIMIT, "N", "The maximum number, 1 to " max "; the default is 20.",  \
            NULL, CLI_ONCE                                                                         \
    }
#define ARGUMENT_OPTION_BEFORE                                                                     \
    {                                                                                              \
        "before", ARGUMENT_KEY_BEFORE, "N",                                                        \
            "The next page: what comes after this one in the list; the \"position\" of a user, "   \
            "or the \"id\" of a post.",                                                            \
            NULL, CLI_ONCE                                                                         \
    }

/* Digits are an id, and anything else is a login, with or without @, because ids of this database
 * are digits. */
struct sl_user_ref argument_user(const struct cli *cli, const char *text);

/* Parses the id of a post. */
uint64_t argument_post(const struct cli *cli, const char *text);

/* Parses the value of the option --NAME: 1 to `max`. */
uint64_t argument_number(const struct cli *cli, const char *name, const char *text, uint64_t max);

/* Parses the value of the option --NAME, a duration: 500ms, 90s, 30m, 24h, 7d, or a number of units
 * of `unit_ms`. More than 0, up to `max_ms`. */
uint64_t argument_duration_ms(const struct cli *cli, const char *name, const char *text,
                              uint64_t unit_ms, uint64_t max_ms);

/* Parses the whole command line of a command whose only option is --user, and whose argument is a
 * post. */
struct sl_user_ref argument_user_and_post(struct cli *cli, int argc, char **argv,
                                          uint64_t *ret_post);
