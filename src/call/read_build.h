/* src/call/read_build.h - how the builders of reads begin. */
#pragma once

#include "src/call/call_build.h"
#include "src/call/read.h"

/* Begins a read in `shard`; the reader is its first argument. */
void sl_read_begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                   const struct sl_meta *meta, uint64_t reader);

/* 0; -EINVAL: neither a user's id nor one of the two above. */
int sl_read_check_reader(uint64_t reader, const struct sl_meta *meta, struct failure *reterr);

/* A script about one post. 0; -EINVAL: as above, or no id of this database; -ENOMEM. */
int sl_read_post_build(struct sl_call *call, const struct sl_script *script,
                       const struct sl_meta *meta, uint64_t reader, uint64_t post,
                       struct failure *reterr);

/* 0; -EINVAL: a limit out of range, a position that there cannot be. */
int sl_read_check_page(const struct sl_page *page, struct failure *reterr);
/* `before`, '+inf' for none, and the limit. */
void sl_read_add_page(struct sl_call *call, const struct sl_page *page);
