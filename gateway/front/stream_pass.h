/* gateway/front/stream_pass.h - a token that was shown before, for one request: what a ticket and a
 * session stand for.
 *
 * Whoever holds the secret of a pass may ask for the stream that it was made for, as the token
 * might that it was made with. A secret is 128 random bits as text; what is kept, in Redis, is the
 * pass, by the hash of its secret. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "gateway/front/token.h"
#include "gateway/metrics/stream_kind.h"

enum {
    STREAM_PASS_SECRET_SIZE = 23, /* with the NUL */
    STREAM_PASS_NAME_SIZE = 44    /* the same */
};

/* The path of a stream and all of its parameters but those that say who asks and where to begin
 * (`since`, `last`), as a hash: two requests for one thing have one. */
struct stream_print {
    char text[STREAM_PASS_NAME_SIZE];
};

struct stream_pass {
    struct token token; /* its scopes, limits and times are the pass's */
    struct stream_print print;
};

/* 0; -errno: the kernel has no random bytes; -ENOMEM. */
int stream_pass_secret(char ret_secret[static STREAM_PASS_SECRET_SIZE]);
/* Has it the form of one? */
bool stream_pass_is_secret(struct sl_slice text);
/* What it is kept by: base64url(SHA-256(secret)). -ENOMEM. */
int stream_pass_name(struct sl_slice secret, char ret_name[static STREAM_PASS_NAME_SIZE]);
/* base64url(SHA-256(bytes)). -ENOMEM. */
int stream_pass_hash(struct sl_slice bytes, char ret_name[static STREAM_PASS_NAME_SIZE]);

/* JSON, for Redis. Members that are not known are passed over, so that programs of two versions may
 * share them. 0; -ENOMEM; -EBADMSG: that is none. */
int stream_pass_write(const struct stream_pass *pass, struct buffer *ret_json);
int stream_pass_read(struct sl_slice json, struct stream_pass *ret_pass);
