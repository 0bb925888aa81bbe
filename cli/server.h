/* cli/server.h - what the commands that ask a sluiced over HTTP share: its URL and the token. */
#pragma once

#include "cli/cli.h"

#define SERVER_URL "http://127.0.0.1:8080" /* unless --url says another */

/* The URL of `path` below `base`, which may have a path of its own: to be freed with curl_free().
 * NULL: no memory. What is no URL of a server ends the program. */
char *server_url(const struct cli *cli, const char *base, const char *path);

/* Ends the program when the token cannot be one. */
void server_check_token(const struct cli *cli, const char *token);
