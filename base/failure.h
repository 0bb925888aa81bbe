/* base/failure.h - a sentence for humans that travels beside a negative errno.
 *
 * A function that can fail in more ways than its errno tells takes `struct failure *reterr`
 * (NULL: the caller does not care) and returns failure_set(reterr, -EINVAL, "..."). */
#pragma once

#define FAILURE_TEXT_SIZE 512

struct failure {
    char text[FAILURE_TEXT_SIZE]; /* one sentence without a full stop; cut off when too long */
};

/* Returns `error` (a negative errno), so that a function can end with it. */
int failure_set(struct failure *reterr, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
