/* cli/argument.h - what stands on the command line for users, posts and numbers. What is none ends
 * the program with a sentence. */
#pragma once

#include "cli/cli.h"
#include "src/social/users.h"

/* A login, or =ID. */
struct sl_user_ref argument_user(const struct cli *cli, const char *text);

/* The id of a post. */
uint64_t argument_post(const struct cli *cli, const char *text);

/* The value of the option --NAME: 1 to `max`. */
uint64_t argument_number(const struct cli *cli, const char *name, const char *text, uint64_t max);

/* The whole command line of a command that takes `--user LOGIN ID`: the login, and the post. */
const char *argument_user_and_post(struct cli *cli, int argc, char **argv, uint64_t *ret_post);
