/* cli/demo.h - what the people of examples/demo-producer say, again and again. */
#pragma once

#include "cli/cli.h"

/* Posts `per_minute` times a minute, at random, until it is killed. Before that `follower`, the
 * login of a user who exists, follows all who post. What fails is said and left out. An exit
 * status: it could not begin. */
int demo_run(const struct cli *cli, const char *follower, double per_minute);
