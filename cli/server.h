/* cli/server.h - the common part of commands that use a sluiced over HTTP: its URL, the token,
 * trusted certificates. */
#pragma once

#include <curl/curl.h>

#include "base/buffer.h"
#include "cli/cli.h"

/* Their options; `more` is another sentence of the help. */
#define SERVER_OPTION_URL(key, more)                                                               \
    {                                                                                              \
        "url", key, "URL",                                                                         \
            "The server's http://HOST:PORT or https://HOST:PORT, with a path if it is below one. " \
            "The default is SLUICE_URL in the environment, or else http://127.0.0.1:8080." more,   \
            NULL, CLI_ONCE                                                                         \
    }
#define SERVER_OPTION_TOKEN(key, more)                                                             \
    {                                                                                              \
        "token", key, "TOKEN",                                                                     \
            "A token as 'sluice token' makes them. The default is SLUICE_TOKEN in the "            \
            "environment, which other users of the machine cannot see." more,                      \
            NULL, CLI_ONCE                                                                         \
    }
#define SERVER_OPTION_CACERT(key)                                                                  \
    {                                                                                              \
        "cacert", key, "FILE",                                                                     \
            "The certificates, in PEM, of the authorities to trust for an https server, instead "  \
            "of those of the system.",                                                             \
            CLI_FILE, CLI_ONCE                                                                     \
    }

/* SLUICE_URL, or the default address of a sluiced on this machine. */
const char *server_default_url(void);

/* The URL of `path` below `base`, which may have a path of its own. Free with curl_free(). NULL:
 * out of memory. An invalid base ends the program. */
char *server_url(const struct cli *cli, const char *base, const char *path);

/* Ends the program if the text cannot be a token. */
void server_check_token(const struct cli *cli, const char *token);
/* The same if there is none. `token`: from the option, or from SLUICE_TOKEN, or NULL. */
void server_need_token(const struct cli *cli, const char *token);

/* Trusts the certificates of a file; NULL: those of the system. */
void server_trust(CURL *curl, const char *cacert);

/* A request and its whole answer. */
struct server_request {
    const char *method, *url, *token, *cacert;
    const struct buffer *body; /* JSON; NULL: none */
    long max_s;                /* until the answer is complete */
};

/* The answer may have 4 MiB; `answer` is the caller's. CURLE_OK: *ret_status is set. */
CURLcode server_ask(const struct server_request *request, struct buffer *answer, long *ret_status);

/* Prints that `url`, without its query, did not answer, and why. Returns the result of
 * cli_failed_with(). */
int server_tell_failure(const struct cli *cli, const char *url, CURLcode code);
