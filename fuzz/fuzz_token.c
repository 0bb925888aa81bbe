/* fuzz_token.c - is every token, well signed or not, read or refused without harm?
 *
 * The input is tried as a token as it is; then, cut at its first newline, as header and claims of
 * one that is signed well. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "gateway/front/token.h"

#define NOW_MS UINT64_C(1800000000000)

static const char secret[] = "a secret of more than thirty-two bytes";
static struct token_policy *policy;

static void must(bool condition)
{
    if (!condition)
        abort();
}

static void set_up(void)
{
    struct token_policy_settings settings = {.issuer = "issuer", .audience = "audience"};
    char path[] = "/tmp/sluice-fuzz-secret-XXXXXX";
    int fd = mkstemp(path);

    must(fd >= 0 && write(fd, secret, strlen(secret)) == (ssize_t)strlen(secret));
    close(fd);
    settings.secret_file = path;
    must(token_policy_new(&settings, &policy, NULL) == 0);
    unlink(path);
}

/* Checks a copy that ends where the token ends. */
static enum token_fault check(struct sl_slice jwt)
{
    char *copy = mem_copy(jwt.data, jwt.size);
    struct token token;
    enum token_fault fault = token_check(policy, sl_slice(copy, jwt.size), NOW_MS, &token);

    must(fault < TOKEN_FAULT_COUNT);
    if (fault == TOKEN_OK) {
        must(jwt.size <= TOKEN_MAX_BYTES);
        must(memchr(token.subject, '\0', sizeof(token.subject)) != NULL);
        must(token.expires_ms > NOW_MS);
        must(token.limits.sample_ppm <= 1000000);
    }
    mem_free(copy);
    return fault;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sl_slice input = sl_slice((const char *)data, size);
    const char *newline = size > 0 ? memchr(input.data, '\n', size) : NULL;
    size_t header_size = newline ? (size_t)(newline - input.data) : size;
    struct buffer jwt = BUFFER_INIT;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_size;

    if (!policy)
        set_up();
    must(check(input) != TOKEN_OK);
    base64url_encode(sl_slice(input.data, header_size), &jwt);
    buffer_append_char(&jwt, '.');
    base64url_encode(sl_slice_from(input, header_size + (newline ? 1 : 0)), &jwt);
    HMAC(EVP_sha256(), secret, strlen(secret), (unsigned char *)jwt.data, jwt.size, mac, &mac_size);
    buffer_append_char(&jwt, '.');
    base64url_encode(sl_slice((char *)mac, mac_size), &jwt);
    check(buffer_slice(&jwt));
    buffer_done(&jwt);
    return 0;
}
