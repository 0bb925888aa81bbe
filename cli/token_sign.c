#include "cli/token_sign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64url.h"
#include "base/key_file.h"

static const struct {
    const char *name;
    const EVP_MD *(*digest)(void);
} algorithms[] = {
    {"HS256", EVP_sha256},
    {"HS384", EVP_sha384},
    {"HS512", EVP_sha512},
};

static const EVP_MD *find_digest(const char *algorithm)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        if (strcmp(algorithm, algorithms[i].name) == 0)
            return algorithms[i].digest();
    }
    return NULL;
}

bool token_can_sign(const char *algorithm)
{
    return find_digest(algorithm) != NULL;
}

static void append_json(struct buffer *token, const json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    if (text)
        base64url_encode(sl_slice_str(text), token);
    else
        token->failed = true;
    free(text);
}

int token_sign(const char *algorithm, const char *secret_file, const json_t *claims,
               struct buffer *token, struct failure *reterr)
{
    json_t *header = json_pack("{s:s, s:s}", "alg", algorithm, "typ", "JWT");
    struct buffer secret = BUFFER_INIT;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_size = 0;
    bool is_exposed;
    int r;

    r = key_file_read_secret(secret_file, &secret, &is_exposed, reterr);
    if (r < 0)
        goto out;
    append_json(token, header);
    buffer_append_char(token, '.');
    append_json(token, claims);
    if (!token->failed && HMAC(find_digest(algorithm), secret.data, (int)secret.size,
                               (unsigned char *)token->data, token->size, mac, &mac_size)) {
        buffer_append_char(token, '.');
        base64url_encode(sl_slice((char *)mac, mac_size), token);
    }
    if (token->failed || mac_size == 0)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    else if (token->size > TOKEN_MAX_BYTES)
        r = failure_set(reterr, -E2BIG, "the token would have %zu bytes; sluiced reads up to %d",
                        token->size, TOKEN_MAX_BYTES);
out:
    key_file_done(&secret);
    json_decref(header);
    return r;
}
