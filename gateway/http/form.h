/* gateway/http/form.h - parses query strings and form bodies: `track=caf%C3%A9+noir&types=post`.
 *
 * Both (the latter are application/x-www-form-urlencoded) have the same syntax. Parsing is strict,
 * because a typing error must not silently widen a stream: a parameter that is unknown, repeated,
 * or not text (a broken escape, invalid UTF-8, U+0000) is refused by name. Only the first 64
 * parameters, including empty ones, are read. */
#pragma once

#include "base/slice.h"
#include "gateway/http/http.h"

struct form {
    const char *const *names; /* of all known parameters */
    unsigned count;
    struct sl_slice *values; /* one for each name; without data: not given */
    char *memory;            /* owns the bytes of the values */
};

/* Reads `texts` as if they were concatenated. 0; -EPROTO: *refusal names the first wrong parameter,
 * and `values` contains all the others (of the first 64); -ENOMEM. In any case call form_done() at
 * the end. */
int form_read(struct form *form, const struct sl_slice *texts, unsigned text_count,
              struct http_refusal *refusal);
void form_done(struct form *form);
