/* fuzz_provider.c - answers of an identity provider, and which URLs may be requested.
 *
 * The input is a discovery document, or, after a '=', the value of Cache-Control, or, after a '>',
 * a URL. libcurl must accept each URL that is accepted, and find the same parts: https, or a host
 * of this machine. */
#include "fuzz/fuzz.h"

#include <string.h>

#include <curl/curl.h>

#include "base/alloc.h"
#include "gateway/front/key_source.h"
#include "gateway/provider/cache_age.h"
#include "gateway/provider/discovery.h"

enum { LEAST_MS = 1000, MOST_MS = 1000000 };

static void check_part(CURLU *url, CURLUPart part, const char *const *allowed)
{
    char *text = NULL;
    bool is_allowed = false;

    must(curl_url_get(url, part, &text, 0) == CURLUE_OK);
    for (; *allowed; allowed++)
        is_allowed |= strncmp(text, *allowed, strlen(*allowed)) == 0;
    must(is_allowed);
    curl_free(text);
}

static void check_url(struct sl_slice input)
{
    static const char *const schemes[] = {"http", NULL};
    static const char *const hosts[] = {"127.", "localhost", "[::1]", NULL};
    char *user = NULL, *text;
    CURLU *url;

    if (key_url_check(input, NULL) < 0)
        return;
    text = mem_strndup(input.data, input.size);
    url = curl_url();
    if (curl_url_set(url, CURLUPART_URL, text, 0) ==
        CURLUE_OK) { /* it may be stricter about the port */
        check_part(url, CURLUPART_SCHEME, schemes);
        must(curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_NO_USER);
        if (key_url_is_plain(input))
            check_part(url, CURLUPART_HOST, hosts);
    }
    curl_url_cleanup(url);
    mem_free(text);
}

static void check_age(struct sl_slice input)
{
    struct cache_age age = {0};
    uint64_t left_ms;

    cache_age_read(&age, SL_SLICE("Cache-Control"), input);
    cache_age_read(&age, SL_SLICE("Age"), input);
    left_ms = cache_age_left_ms(&age, 5000, LEAST_MS, MOST_MS);
    must(left_ms >= LEAST_MS && left_ms <= MOST_MS);
}

static void check_discovery(struct sl_slice input)
{
    struct failure why = {""};
    char *url = NULL;

    if (discovery_read(input, "https://a", &url, &why) != FETCH_GOOD) {
        must(!url && why.text[0]);
        return;
    }
    must(key_url_check(sl_slice_str(url), NULL) == 0);
    must(!key_url_is_plain(sl_slice_str(url)));
    check_url(sl_slice_str(url));
    mem_free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_slice input = sl_slice((const char *)data, size);

    if (size > 0 && data[0] == '=')
        check_age(sl_slice_from(input, 1));
    else if (size > 0 && data[0] == '>')
        check_url(sl_slice_from(input, 1));
    else
        check_discovery(input);
    return 0;
}
