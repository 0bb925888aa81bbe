/* getter.c - libcurl's multi interface, with an easy handle for each request.
 *
 * libcurl is limited to http and https; front/key_source.h decides which of these a URL may have. A
 * response that is too large is aborted while it arrives. Limits: one request for a source, with
 * GETTER_MAX_BODY_BYTES each. */
#include "gateway/provider/getter.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <curl/curl.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/log.h"
#include "gateway/front/key_source.h"
#include "gateway/http/http.h"

enum { MOST_FDS = 4, OK_STATUS = 200, CONNECT_SHARE = 2 };

struct get {
    struct get *next; /* requests in progress */
    CURL *curl;
    get_done_fn done;
    void *owner;
    struct buffer body;
    struct cache_age age;
    size_t head_bytes;
    bool is_too_big;
    char error[CURL_ERROR_SIZE];
};

struct getter {
    CURLM *multi;
    struct get *first;
    char *ca_file;
    uint32_t timeout_ms;
};

/* --- receiving ----------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct get *get = context;

    (void)size; /* always 1 */
    buffer_append(&get->body, data, count);
    if (!get->body.failed)
        return count;
    get->is_too_big = true;
    return 0;
}

/* Without the end of the line. */
static struct sl_slice line_from(const char *begin, const char *end)
{
    while (end > begin && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    return sl_slice(begin, (size_t)(end - begin));
}

static size_t on_head(char *data, size_t size, size_t count, void *context)
{
    struct get *get = context;
    const char *colon = memchr(data, ':', count);

    (void)size;
    get->head_bytes += count;
    if (get->head_bytes > GETTER_MAX_HEAD_BYTES) {
        get->is_too_big = true;
        return 0;
    }
    if (count >= 5 && memcmp(data, "HTTP/", 5) == 0)
        get->age = (struct cache_age){0}; /* of the last response, after 100 and the like */
    else if (colon)
        cache_age_read(&get->age, sl_slice(data, (size_t)(colon - data)),
                       http_trim(line_from(colon + 1, data + count)));
    return count;
}

/* --- the result ---------------------------------------------------------------------------- */

static bool is_json(const char *type)
{
    struct sl_slice rest = sl_slice_str(type);
    struct sl_slice media = type ? http_next_element(&rest, ';') : SL_SLICE_NONE;

    if (!media.data)
        return false;
    return http_token_is(media, "application/json") ||
           (media.size > strlen("application/+json") &&
            http_token_is(sl_slice(media.data, strlen("application/")), "application/") &&
            http_token_is(sl_slice_from(media, media.size - strlen("+json")), "+json"));
}

static enum fetch_result judge_status(long status, char *why, size_t why_size)
{
    snprintf(why, why_size, "the answer has the status %ld", status);
    return status >= 300 && status < 400 ? FETCH_REDIRECTED : FETCH_BAD_STATUS;
}

static enum fetch_result judge(struct get *get, CURLcode code, char *why, size_t why_size)
{
    char room[LOG_QUOTE_SIZE];
    const char *type = NULL;
    long status = 0;

    curl_easy_getinfo(get->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(get->curl, CURLINFO_CONTENT_TYPE, &type);
    if (get->is_too_big || code == CURLE_FILESIZE_EXCEEDED) {
        snprintf(why, why_size, "the answer is larger than %d bytes, or its header than %d",
                 GETTER_MAX_BODY_BYTES, GETTER_MAX_HEAD_BYTES);
        return FETCH_TOO_BIG;
    }
    if (status != 0 && status != OK_STATUS)
        return judge_status(status, why, why_size);
    if (code != CURLE_OK) {
        snprintf(why, why_size, "%s", get->error[0] ? get->error : curl_easy_strerror(code));
        return code == CURLE_OPERATION_TIMEDOUT ? FETCH_TIMED_OUT : FETCH_UNREACHABLE;
    }
    if (!is_json(type)) {
        snprintf(why, why_size, "the content type of the answer is %s, not application/json",
                 type ? log_quote(sl_slice_str(type), room) : "missing");
        return FETCH_NOT_JSON;
    }
    return FETCH_GOOD;
}

/* --- requests ------------------------------------------------------------------------------ */

static void get_free(struct get *get)
{
    if (!get)
        return;
    curl_easy_cleanup(get->curl);
    buffer_done(&get->body);
    mem_free(get);
}

static void set_options(struct get *get, const struct getter *getter, const char *url)
{
    CURL *curl = get->curl;

    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "sluiced/" SLUICE_VERSION);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)getter->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)getter->timeout_ms / CONNECT_SHARE);
    curl_easy_setopt(curl, CURLOPT_MAXFILESIZE, (long)GETTER_MAX_BODY_BYTES);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, get->error);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, get);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, get);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, get);
    if (key_url_is_loopback(sl_slice_str(url)))
        curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    if (getter->ca_file) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, getter->ca_file);
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    }
}

int getter_start(struct getter *getter, const char *url, get_done_fn done, void *owner)
{
    struct get *get = mem_zalloc(sizeof(*get));

    if (!get)
        return -ENOMEM;
    get->done = done;
    get->owner = owner;
    get->body.limit = GETTER_MAX_BODY_BYTES;
    get->curl = curl_easy_init();
    if (!get->curl) {
        get_free(get);
        return -ENOMEM;
    }
    set_options(get, getter, url);
    if (curl_multi_add_handle(getter->multi, get->curl) != CURLM_OK) {
        get_free(get);
        return -ENOMEM;
    }
    get->next = getter->first;
    getter->first = get;
    return 0;
}

static void take_out(struct getter *getter, struct get *get)
{
    struct get **at = &getter->first;

    while (*at != get)
        at = &(*at)->next;
    *at = get->next;
    curl_multi_remove_handle(getter->multi, get->curl);
}

static void finish(struct getter *getter, struct get *get, CURLcode code)
{
    char why[FAILURE_TEXT_SIZE] = "";
    enum fetch_result result = judge(get, code, why, sizeof(why));
    const struct get_answer answer = {
        .body = buffer_slice(&get->body), .age = get->age, .why = why};

    take_out(getter, get);
    get->done(get->owner, result, &answer); /* may start another request */
    get_free(get);
}

/* true: some requests have ended. */
static bool finish_those_done(struct getter *getter)
{
    const CURLMsg *message;
    bool were_some = false;
    int running, left;

    curl_multi_perform(getter->multi, &running);
    while ((message = curl_multi_info_read(getter->multi, &left)) != NULL) {
        CURLcode code = message->data.result;
        struct get *get = NULL;

        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&get);
        finish(getter, get, code);
        were_some = true;
    }
    return were_some;
}

void getter_run(struct getter *getter, const int *fds, unsigned fd_count, uint32_t most_ms)
{
    struct curl_waitfd waiting[MOST_FDS];

    assert(fd_count <= MOST_FDS);
    if (finish_those_done(getter))
        return; /* something may be due earlier because of that */
    for (unsigned i = 0; i < fd_count; i++)
        waiting[i] = (struct curl_waitfd){.fd = fds[i], .events = CURL_WAIT_POLLIN};
    curl_multi_poll(getter->multi, waiting, fd_count, (int)most_ms, NULL);
    finish_those_done(getter);
}

/* --- creating and freeing ------------------------------------------------------------------ */

struct getter *getter_new(const char *ca_file, uint32_t timeout_ms)
{
    struct getter *getter = mem_zalloc(sizeof(*getter));

    if (!getter)
        return NULL;
    getter->timeout_ms = timeout_ms;
    getter->ca_file = ca_file ? mem_strndup(ca_file, strlen(ca_file)) : NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        getter->multi = curl_multi_init();
    if (getter->multi && (getter->ca_file || !ca_file))
        return getter;
    getter_free(getter);
    return NULL;
}

void getter_free(struct getter *getter)
{
    if (!getter)
        return;
    while (getter->first) {
        struct get *get = getter->first;

        take_out(getter, get);
        get_free(get);
    }
    curl_multi_cleanup(getter->multi);
    curl_global_cleanup();
    mem_free(getter->ca_file);
    mem_free(getter);
}
