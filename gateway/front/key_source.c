/* key_source.c - decides by the text of a URL what may be fetched, before any connection is made.
 *
 * The check accepts less than a URL may be: what a library could interpret in another way (a user
 * before an @, a backslash, a host in an unusual form) is refused. The name of a file is the
 * SHA-256 of issuer and URL, cut to 128 bits. There are at most KEY_SOURCES_MAX sources. */
#include "gateway/front/key_source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/alloc.h"

enum { NAME_BYTES = 16 };

#define DISCOVERY_PATH "/.well-known/openid-configuration"

/* --- URLs ---------------------------------------------------------------------------------- */

static bool is_of_an_url(struct sl_slice text)
{
    static const char others[] = "-._~:/?[]@!$&'()*+,;=%";

    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !(c && strchr(others, c)))
            return false;
    }
    return true;
}

/* The part between scheme and path; absent: another scheme. */
static struct sl_slice authority_of(struct sl_slice url)
{
    size_t scheme = sl_slice_starts_with(url, SL_SLICE("https://"))  ? strlen("https://")
                    : sl_slice_starts_with(url, SL_SLICE("http://")) ? strlen("http://")
                                                                     : 0;
    size_t size = 0;

    if (scheme == 0)
        return SL_SLICE_NONE;
    url = sl_slice_from(url, scheme);
    while (size < url.size && url.data[size] != '/' && url.data[size] != '?')
        size++;
    return sl_slice(url.data, size);
}

/* Empty: there is none, or the port is not a number. */
static struct sl_slice host_of(struct sl_slice authority)
{
    const char *end = authority.data + authority.size;
    const char *colon = end;

    if (authority.size > 0 && authority.data[0] == '[') {
        const char *bracket = memchr(authority.data, ']', authority.size);

        colon = bracket ? bracket + 1 : authority.data;
    } else if (authority.size > 0) {
        colon = memchr(authority.data, ':', authority.size);
        colon = colon ? colon : end;
    }
    if (colon < end && (*colon != ':' || colon + 1 == end))
        return sl_slice(authority.data, 0);
    for (const char *c = colon + 1; c < end; c++) {
        if (*c < '0' || *c > '9')
            return sl_slice(authority.data, 0);
    }
    return sl_slice(authority.data, (size_t)(colon - authority.data));
}

static bool is_loopback(struct sl_slice host)
{
    struct in_addr address;
    char text[INET_ADDRSTRLEN];

    if (sl_slice_is(host, "localhost") || sl_slice_is(host, "[::1]"))
        return true;
    snprintf(text, sizeof(text), "%.*s", SL_SLICE_ARG(host));
    return host.size < sizeof(text) && inet_pton(AF_INET, text, &address) == 1 &&
           ntohl(address.s_addr) >> 24 == 127;
}

bool key_url_is_plain(struct sl_slice url)
{
    return sl_slice_starts_with(url, SL_SLICE("http://"));
}

bool key_url_is_loopback(struct sl_slice url)
{
    return is_loopback(host_of(authority_of(url)));
}

int key_url_check(struct sl_slice url, struct failure *reterr)
{
    struct sl_slice authority = authority_of(url);
    struct sl_slice host;

    if (!authority.data)
        return failure_set(reterr, -EINVAL, "not a URL that begins with https://");
    if (url.size > KEY_URL_MAX_BYTES)
        return failure_set(reterr, -EINVAL, "a URL of %zu bytes, more than %d", url.size,
                           KEY_URL_MAX_BYTES);
    if (!is_of_an_url(url))
        return failure_set(reterr, -EINVAL, "a URL with an invalid character or a fragment");
    if (memchr(authority.data, '@', authority.size))
        return failure_set(reterr, -EINVAL, "a URL with a user in it");
    host = host_of(authority);
    if (host.size == 0)
        return failure_set(reterr, -EINVAL, "a URL without a host, or with a bad port");
    if (key_url_is_plain(url) && !is_loopback(host))
        return failure_set(reterr, -EINVAL, "http is for this machine only (loopback): use https");
    return 0;
}

bool key_issuer_has_discovery(struct sl_slice issuer)
{
    return issuer.size > 0 && !memchr(issuer.data, '?', issuer.size) &&
           key_url_check(issuer, NULL) == 0;
}

void key_discovery_url(const char *issuer, struct buffer *ret_url)
{
    size_t size = strlen(issuer);

    if (size > 0 && issuer[size - 1] == '/')
        size--;
    buffer_append(ret_url, issuer, size);
    buffer_append_str(ret_url, DISCOVERY_PATH);
}

/* --- sources ------------------------------------------------------------------------------- */

/* Texts contain no NUL, so with a NUL between them the concatenation is unambiguous. */
static int hash(const char *issuer, const char *url, unsigned char ret_hash[static 32])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int r = -ENOMEM;

    if (context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
        EVP_DigestUpdate(context, issuer, strlen(issuer) + 1) == 1 &&
        EVP_DigestUpdate(context, url ? url : "", url ? strlen(url) : 0) == 1 &&
        EVP_DigestFinal_ex(context, ret_hash, NULL) == 1)
        r = 0;
    EVP_MD_CTX_free(context);
    return r;
}

static char *path_of(const char *folder, const unsigned char *digest)
{
    struct buffer path = BUFFER_INIT;
    const char *text;
    char *copy;

    buffer_append_format(&path, "%s/jwks-", folder);
    for (unsigned i = 0; i < NAME_BYTES; i++)
        buffer_append_format(&path, "%02x", digest[i]);
    buffer_append_str(&path, ".json");
    text = buffer_str(&path);
    copy = text ? mem_strndup(text, path.size) : NULL;
    buffer_done(&path);
    return copy;
}

static void source_done(struct key_source *source)
{
    mem_free(source->issuer);
    mem_free(source->url);
    mem_free(source->path);
}

static int source_init(struct key_source *source, const char *folder, const char *issuer,
                       const char *url)
{
    unsigned char digest[32];

    *source = (struct key_source){0};
    if (hash(issuer, url, digest) < 0)
        return -ENOMEM;
    memcpy(&source->id, digest, sizeof(source->id));
    source->id |= 1;
    source->issuer = mem_strndup(issuer, strlen(issuer));
    source->url = url ? mem_strndup(url, strlen(url)) : NULL;
    source->path = path_of(folder, digest);
    if (source->issuer && source->path && (source->url || !url))
        return 0;
    source_done(source);
    return -ENOMEM;
}

int key_sources_add(struct key_sources *sources, const char *folder, const char *issuer,
                    const char *url, struct failure *reterr)
{
    struct key_source source;

    if (source_init(&source, folder, issuer, url) < 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < sources->count; i++) {
        if (strcmp(sources->items[i].path, source.path) == 0) {
            source_done(&source);
            return 0;
        }
    }
    if (sources->count == KEY_SOURCES_MAX) {
        source_done(&source);
        return failure_set(reterr, -ENOSPC, "more than %d key sets to fetch", KEY_SOURCES_MAX);
    }
    sources->items[sources->count++] = source;
    return 0;
}

void key_sources_done(struct key_sources *sources)
{
    for (unsigned i = 0; i < sources->count; i++)
        source_done(&sources->items[i]);
    sources->count = 0;
}
