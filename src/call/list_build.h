/* src/call/list_build.h - the common part of the builders of lists (src/scripts/read_list.lua). */
#pragma once

#include "src/call/read_build.h"
#include "src/call/write_build.h"

/* Builds the call for a page of the list `list` of a user, or of a post. `archived`: the post as
 * stored in the archive; absent if Redis has it. 0; -EINVAL; -ENOMEM. */
int sl_list_of_user_build(struct sl_call *call, const char *list, const struct sl_meta *meta,
                          uint64_t reader, const struct sl_user_ref *user,
                          const struct sl_page *page, struct failure *reterr);
int sl_list_of_post_build(struct sl_call *call, const char *list, const struct sl_meta *meta,
                          uint64_t reader, uint64_t post, const struct sl_page *page,
                          struct sl_slice archived, struct failure *reterr);
