/* src/post_check.h - is that the id of a post? */
#pragma once

#include "base/failure.h"
#include "src/meta.h"

/* 0; -EINVAL: no id of this database. */
int sl_post_check_id(uint64_t post, const struct sl_meta *meta, struct failure *reterr);
