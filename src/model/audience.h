/* src/model/audience.h - for whom is a post?
 *
 * An audience is a word that is kept with the post and carried by its events:
 *
 *     public            everybody; such a post alone reaches the public streams
 *     followers         those who follow the author
 *     only:ID,ID,...    these users
 *     except:ID,ID,...  every user but these
 *     followers-except:ID,ID,...  those who follow the author, but these
 *
 * The author is always among them. Who may see a post depends on its audience, on whom the author
 * hides from, and on whom the reader has muted: may_see() in src/scripts/common.lua decides for all
 * that reads or pushes posts. This is the audience's part of that rule for whoever has a post and
 * no Redis, such as a gateway. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/model/database.h"

struct buffer;

enum { SL_AUDIENCE_USERS_MAX = 500 };

/* 0; -EINVAL: none of the above, or a list that is empty, too long, or holds something else than
 * ids of this database. */
SL_EXPORT int sl_audience_check(struct sl_slice audience, const struct sl_meta *meta,
                                struct failure *reterr);

/* People write logins: "only:@ada,12" is an audience of ids once those have been looked up.
 *
 * The logins of a list, without their @, in order. 0, *ret_count may be 0; -EINVAL: too many. */
SL_EXPORT int sl_audience_logins(struct sl_slice audience,
                                 struct sl_slice ret_logins[static SL_AUDIENCE_USERS_MAX],
                                 size_t *ret_count, struct failure *reterr);
/* Appends the audience with an id of `ids` in the place of each of its logins. */
void sl_audience_with_ids(struct buffer *text, struct sl_slice audience, const uint64_t *ids);

/* May `reader`, who is not the author, see a post with this audience (absent: public)? `follows`:
 * the reader follows the author. A reader without an id is somebody unknown. An audience of any
 * other form allows nobody. */
SL_EXPORT bool sl_audience_allows(struct sl_slice audience, struct sl_slice reader, bool follows);
