/* src/call/read_build.h - the common part of the builders of reads. */
#pragma once

#include "src/call/call_build.h"
#include "src/call/read.h"

/* Begins a read in `shard`. The reader is its first argument. */
void sl_read_begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                   const struct sl_meta *meta, uint64_t reader);

/* 0; -EINVAL: neither a user's id nor one of the constants in read.h. */
int sl_read_check_reader(uint64_t reader, const struct sl_meta *meta, struct failure *reterr);

/* Builds a call of a script about one post. 0; -EINVAL: invalid reader, or not an id of this
 * database; -ENOMEM. */
int sl_read_post_build(struct sl_call *call, const struct sl_script *script,
                       const struct sl_meta *meta, uint64_t reader, uint64_t post,
                       struct failure *reterr);

/* 0; -EINVAL: the limit is out of range, or the position is not possible. */
int sl_read_check_page(const struct sl_page *page, struct failure *reterr);
/* Adds `before`, or '+inf' if there is none, and the limit. */
void sl_read_add_page(struct sl_call *call, const struct sl_page *page);
