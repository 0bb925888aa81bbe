/* src/redis/redis_format.h - a command as Redis wants to read it: the number of its arguments, then
 * each with its length. */
#pragma once

#include <stddef.h>

#include "base/buffer.h"

/* Appends the command to `out`. `argvlen` NULL: the arguments are strings. 0; -ENOMEM, or beyond
 * out->limit: nothing of it is in `out`, which is as good as before. */
int sl_redis_format(struct buffer *out, int argc, const char *const *argv, const size_t *argvlen);
