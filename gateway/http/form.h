/* gateway/http/form.h - `track=caf%C3%A9+noir&types=post` -> the values of the parameters.
 *
 * For query strings and for form bodies (application/x-www-form-urlencoded), which share their
 * syntax. Strict, for a typo must not silently widen a stream: a parameter that is not known, is
 * there twice, or is not text (a broken escape, invalid UTF-8, U+0000) is refused by its name. Of
 * more than 64 parameters, empty ones included, the others are not looked at. */
#pragma once

#include "base/slice.h"
#include "gateway/http/http.h"

struct form {
    const char *const *names; /* of all parameters that are known */
    unsigned count;
    struct sl_slice *values; /* one for each name; without data: not given */
    char *memory;            /* what the values point to */
};

/* Reads `texts` as if they were one. 0; -EPROTO: *refusal names the first parameter at fault, and
 * `values` has all the others (of the first 64); -ENOMEM. Whatever is returned, end with
 * form_done(). */
int form_read(struct form *form, const struct sl_slice *texts, unsigned text_count,
              struct http_refusal *refusal);
void form_done(struct form *form);
