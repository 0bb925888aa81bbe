/* cli/server.h - what the commands that ask a sluiced over HTTP share: its URL, the token, whom to
 * trust. */
#pragma once

#include <curl/curl.h>

#include "cli/cli.h"

/* Their options; `more` is another sentence of the help. */
#define SERVER_OPTION_URL(key, more)                                                               \
    {                                                                                              \
        "url", key, "URL",                                                                         \
            "Of the server: http://HOST:PORT or https://HOST:PORT, with a path where it is below " \
            "one. "                                                                                \
            "Else SLUICE_URL in the environment, else http://127.0.0.1:8080." more,                \
            NULL, CLI_ONCE                                                                         \
    }
#define SERVER_OPTION_TOKEN(key, more)                                                             \
    {                                                                                              \
        "token", key, "TOKEN",                                                                     \
            "Else SLUICE_TOKEN in the environment, which other users of the machine cannot "       \
            "see." more,                                                                           \
            NULL, CLI_ONCE                                                                         \
    }
#define SERVER_OPTION_CACERT(key)                                                                  \
    {                                                                                              \
        "cacert", key, "FILE",                                                                     \
            "Certificates, in PEM, of the authorities that may vouch for an https server, "        \
            "instead of "                                                                          \
            "those of the system.",                                                                \
            CLI_FILE, CLI_ONCE                                                                     \
    }

/* SLUICE_URL, or where a sluiced of this machine listens. */
const char *server_default_url(void);

/* The URL of `path` below `base`, which may have a path of its own: to be freed with curl_free().
 * NULL: no memory. What is no URL of a server ends the program. */
char *server_url(const struct cli *cli, const char *base, const char *path);

/* Ends the program when the token cannot be one. */
void server_check_token(const struct cli *cli, const char *token);

/* Lets the certificates of a file vouch for the server; NULL: those of the system do. */
void server_trust(CURL *curl, const char *cacert);

/* Says that `url` did not answer, and why; of its query nothing. Returns what cli_failed_with()
 * does. */
int server_tell_failure(const struct cli *cli, const char *url, CURLcode code);
