/* src/redis/redis_format.h - formats commands in the Redis protocol: the number of arguments, then
 * each argument with its length. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"

/* Appends the command to `out`. `argvlen` NULL: the arguments are strings. 0; -ENOMEM, or more than
 * out->limit: `out` is unchanged. */
int sl_redis_format(struct buffer *out, int argc, const char *const *argv, const size_t *argvlen);
