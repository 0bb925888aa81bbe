/* gateway/front/stream_pass.h - a pass: a token that was checked before, for one request. Tickets
 * and sessions refer to passes.
 *
 * Whoever has the secret of a pass may request the stream for which it was made, with the
 * permissions of the token with which it was made. A secret is 128 random bits as text; the pass is
 * stored in Redis under the hash of its secret. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "gateway/front/token.h"
#include "gateway/metrics/stream_kind.h"

enum {
    STREAM_PASS_SECRET_SIZE = 23, /* including the NUL */
    STREAM_PASS_NAME_SIZE = 44    /* including the NUL */
};

/* A hash of the path of a stream and all of its parameters except the token and the beginning
 * (`since`, `last`): two requests for the same stream have the same print. */
struct stream_print {
    char text[STREAM_PASS_NAME_SIZE];
};

struct stream_pass {
    struct token token; /* its scopes, limits and times are those of the pass */
    struct stream_print print;
};

/* 0; -errno: the kernel has no random bytes; -ENOMEM. */
int stream_pass_secret(char ret_secret[static STREAM_PASS_SECRET_SIZE]);
/* Whether the text has the form of a secret. */
bool stream_pass_is_secret(struct sl_slice text);
/* The name under which it is stored: base64url(SHA-256(secret)). -ENOMEM. */
int stream_pass_name(struct sl_slice secret, char ret_name[static STREAM_PASS_NAME_SIZE]);
/* base64url(SHA-256(bytes)). -ENOMEM. */
int stream_pass_hash(struct sl_slice bytes, char ret_name[static STREAM_PASS_NAME_SIZE]);

/* Converts to and from JSON, for Redis. Unknown members are ignored, so that programs of two
 * versions may share passes. 0; -ENOMEM; -EBADMSG: not a pass. */
int stream_pass_write(const struct stream_pass *pass, struct buffer *ret_json);
int stream_pass_read(struct sl_slice json, struct stream_pass *ret_pass);
