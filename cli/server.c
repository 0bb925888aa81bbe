/* server.c - URLs, tokens, and requests by libcurl.
 *
 * A request is answered as a whole: of at most ANSWER_MAX_BYTES, within the time that the caller
 * allows. Text that cannot be a URL or a token ends the program before anything is sent. */
#include "cli/server.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX_BYTES = 4 << 20 };

const char *server_default_url(void)
{
    const char *url = getenv("SLUICE_URL");

    return url && *url ? url : "http://127.0.0.1:8080";
}

char *server_url(const struct cli *cli, const char *base, const char *path)
{
    struct buffer whole = BUFFER_INIT;
    CURLU *url = curl_url();
    char *scheme = NULL, *prefix = NULL, *text = NULL;

    if (curl_url_set(url, CURLUPART_URL, base, CURLU_GUESS_SCHEME) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0) ||
        curl_url_get(url, CURLUPART_PATH, &prefix, 0) != CURLUE_OK)
        cli_usage(cli, "--url is http://HOST:PORT or https://HOST:PORT, not '%s'", base);
    buffer_append_str(&whole, prefix);
    while (whole.size > 0 && whole.data[whole.size - 1] == '/')
        whole.size--;
    buffer_append_str(&whole, path);
    if (buffer_str(&whole) && curl_url_set(url, CURLUPART_PATH, whole.data, 0) == CURLUE_OK)
        curl_url_get(url, CURLUPART_URL, &text, 0);
    curl_free(scheme);
    curl_free(prefix);
    curl_url_cleanup(url);
    buffer_done(&whole);
    return text;
}

void server_check_token(const struct cli *cli, const char *token)
{
    if (!*token)
        cli_usage(cli, "the token is empty");
    for (const char *c = token; *c; c++) {
        if (*c <= ' ' || *c > '~')
            cli_usage(cli, "the token has characters that cannot occur in a token");
    }
}

void server_need_token(const struct cli *cli, const char *token)
{
    if (!token || !*token)
        cli_usage(cli, "--token TOKEN is needed, or SLUICE_TOKEN in the environment; 'sluice "
                       "token' makes one");
    server_check_token(cli, token);
}

void server_trust(CURL *curl, const char *cacert)
{
    if (cacert)
        curl_easy_setopt(curl, CURLOPT_CAINFO, cacert);
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *answer)
{
    buffer_append(answer, bytes, size * count);
    return ((struct buffer *)answer)->failed ? 0 : size * count;
}

CURLcode server_ask(const struct server_request *request, struct buffer *answer, long *ret_status)
{
    struct buffer header = BUFFER_INIT;
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    CURL *curl = curl_easy_init();

    buffer_append_format(&header, "Authorization: Bearer %s", request->token);
    headers = curl_slist_append(headers, buffer_str(&header));
    answer->limit = ANSWER_MAX_BYTES;
    if (curl && headers && request->url) {
        curl_easy_setopt(curl, CURLOPT_URL, request->url);
        if (request->body) {
            headers = curl_slist_append(headers, "Content-Type: application/json");
            curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body->data);
            curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body->size);
        }
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, request->max_s);
        server_trust(curl, request->cacert);
        code = curl_easy_perform(curl);
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    }
    curl_easy_cleanup(curl);
    curl_slist_free_all(headers);
    buffer_done(&header);
    return code;
}

int server_tell_failure(const struct cli *cli, const char *url, CURLcode code)
{
    int shown = url ? (int)strcspn(url, "?") : 0;

    if (shown == 0) /* out of memory */
        return cli_failed_with(cli, "%s", curl_easy_strerror(code));
    return cli_failed_with(cli, "no answer from %.*s: %s", shown, url, curl_easy_strerror(code));
}
