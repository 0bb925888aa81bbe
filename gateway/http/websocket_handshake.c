#include "gateway/http/websocket_handshake.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>

#include <openssl/evp.h>

/* 16 bytes in base64: 22 digits and the padding. */
enum { KEY_DIGITS = 22, KEY_SIZE = 24, SHA1_SIZE = 20 };

#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* Nonzero bits of the last digit beyond the 16 bytes are accepted, because the answer depends only
 * on the text. */
static bool key_is_valid(struct sl_slice key)
{
    if (key.size != KEY_SIZE || key.data[KEY_DIGITS] != '=' || key.data[KEY_DIGITS + 1] != '=')
        return false;
    for (size_t i = 0; i < KEY_DIGITS; i++) {
        unsigned char digit = (unsigned char)key.data[i];

        if (!isalnum(digit) && digit != '+' && digit != '/')
            return false;
    }
    return true;
}

int websocket_handshake_check(const struct http_head *head, struct http_refusal *refusal)
{
    assert(head->request.is_upgrade);
    if (head->request.method != HTTP_GET) {
        http_refuse(refusal, 405, "method_not_allowed", NULL, "a WebSocket handshake must use GET");
        refusal->allow = "GET";
        return -EPROTO;
    }
    if (!head->connection_upgrades)
        return http_refuse(refusal, 400, "bad_request", NULL,
                           "a WebSocket handshake needs Connection: Upgrade");
    if (!sl_slice_is(head->websocket_version, "13"))
        return http_refuse(refusal, 426, "websocket_version", NULL,
                           "Sec-WebSocket-Version must be 13");
    if (!key_is_valid(head->websocket_key))
        return http_refuse(refusal, 400, "bad_request", NULL,
                           "Sec-WebSocket-Key is missing or malformed");
    return 0;
}

int websocket_handshake_accept(struct sl_slice key,
                               char ret_accept[static WEBSOCKET_ACCEPT_SIZE + 1])
{
    char text[KEY_SIZE + sizeof(ACCEPT_GUID)];
    unsigned char digest[SHA1_SIZE];

    assert(key_is_valid(key));
    memcpy(text, key.data, KEY_SIZE);
    memcpy(text + KEY_SIZE, ACCEPT_GUID, sizeof(ACCEPT_GUID));
    if (!EVP_Digest(text, sizeof(text) - 1, digest, NULL, EVP_sha1(), NULL))
        return -EIO;
    EVP_EncodeBlock((unsigned char *)ret_accept, digest, SHA1_SIZE);
    return 0;
}
