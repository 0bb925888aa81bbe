/* base/failure.h - an error message for humans that accompanies a negative errno.
 *
 * A function whose errno does not say enough takes `struct failure *reterr` (NULL: the message is
 * not wanted) and returns failure_set(reterr, -EINVAL, "..."). */
#pragma once

#define FAILURE_TEXT_SIZE 512

struct failure {
    char text[FAILURE_TEXT_SIZE]; /* one sentence without a full stop; truncated if too long */
};

/* Sets the message and returns `error` (a negative errno), so that a function can end with it. */
int failure_set(struct failure *reterr, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
