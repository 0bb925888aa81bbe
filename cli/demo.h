/* cli/demo.h - posts the texts of examples/demo-producer repeatedly. */
#pragma once

#include "cli/cli.h"

/* Posts `per_minute` times a minute, at random, until it is killed. First the user with the login
 * `follower` follows all who post. Failures are printed and ignored. Returns an exit status if it
 * could not begin. */
int demo_run(const struct cli *cli, const char *follower, double per_minute);
