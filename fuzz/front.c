#include "fuzz/front.h"

#include <string.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64url.h"
#include "fuzz/fuzz.h"

static const char secret[] = "a secret of more than thirty-two bytes";

struct token_policy *front_policy(struct token_policy_settings settings)
{
    char path[] = "/tmp/sluice-fuzz-secret-XXXXXX";
    struct token_policy *policy;
    int fd = mkstemp(path);

    must(fd >= 0 && write(fd, secret, strlen(secret)) == (ssize_t)strlen(secret));
    close(fd);
    settings.secret_file = path;
    must(token_policy_new(&settings, &policy, NULL) == 0);
    unlink(path);
    return policy;
}

void front_sign(struct sl_slice header, struct sl_slice claims, struct buffer *jwt)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    size_t begin = jwt->size;
    unsigned mac_size;

    base64url_encode(header, jwt);
    buffer_append_char(jwt, '.');
    base64url_encode(claims, jwt);
    HMAC(EVP_sha256(), secret, strlen(secret), (unsigned char *)jwt->data + begin,
         jwt->size - begin, mac, &mac_size);
    buffer_append_char(jwt, '.');
    base64url_encode(sl_slice((char *)mac, mac_size), jwt);
}

void front_check_body(const struct http_refusal *refusal)
{
    struct buffer text = BUFFER_INIT;
    json_t *json, *error;

    http_refusal_print(refusal, &text);
    json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    error = json_object_get(json, "error");
    must(json_string_length(json_object_get(error, "code")) > 0);
    must(json_string_length(json_object_get(error, "message")) > 0);
    json_decref(json);
    buffer_done(&text);
}
