/* src/model/text.h - is this text fit to be kept and sent to clients? */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/slice.h"

/* 0; -EINVAL with "<what> ...": fewer than 1 or more than `max_size` bytes, not UTF-8, or with a
 * NUL in it. */
int sl_text_check(struct sl_slice text, const char *what, size_t max_size, struct failure *reterr);

enum { SL_LINK_MAX = 2048 }; /* bytes */

/* A link that pages may lead to: http:// or https://, something behind it, no space, control
 * character or backslash; up to SL_LINK_MAX bytes. Nobody here follows it. 0; -EINVAL. */
int sl_text_check_link(struct sl_slice text, const char *what, struct failure *reterr);

/* As sl_text_check(), and without control characters: for what is shown in one line. */
int sl_text_check_line(struct sl_slice text, const char *what, size_t max_size,
                       struct failure *reterr);
