#include "gateway/front/token_name.h"

#include <stdio.h>

#include <openssl/sha.h>

void token_name(struct sl_slice text, char ret_name[static TOKEN_NAME_SIZE])
{
    enum { KEPT_BYTES = 22 };
    unsigned char hash[SHA256_DIGEST_LENGTH];
    int at;

    if (text.size < TOKEN_NAME_SIZE) {
        snprintf(ret_name, TOKEN_NAME_SIZE, "%.*s", SL_SLICE_ARG(text));
        return;
    }
    SHA256((const unsigned char *)text.data, text.size, hash);
    at = sprintf(ret_name, "sha256:");
    for (size_t i = 0; i < KEPT_BYTES; i++)
        at += sprintf(ret_name + at, "%02x", hash[i]);
}
