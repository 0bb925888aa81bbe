/* src/model/text.h - checks of texts that are stored and sent to clients. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/slice.h"

/* 0; -EINVAL with "<what> ...": fewer than 1 or more than `max_size` bytes, not UTF-8, or a NUL in
 * it. */
int sl_text_check(struct sl_slice text, const char *what, size_t max_size, struct failure *reterr);

enum { SL_LINK_MAX = 2048 }; /* bytes */

/* Checks a link that web pages may contain: http:// or https:// followed by something; no space,
 * control character or backslash; up to SL_LINK_MAX bytes. Sluice never opens the link. 0;
 * -EINVAL. */
int sl_text_check_link(struct sl_slice text, const char *what, struct failure *reterr);

/* Like sl_text_check(), but also refuses control characters: for texts shown on one line. */
int sl_text_check_line(struct sl_slice text, const char *what, size_t max_size,
                       struct failure *reterr);
