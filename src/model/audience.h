/* src/model/audience.h - for whom is a post?
 *
 * An audience is a word that is kept with the post and carried by its events:
 *
 *     public            everybody; such a post alone reaches the public streams
 *     followers         those who follow the author
 *     only:ID,ID,...    these users
 *     except:ID,ID,...  every user but these
 *
 * The author is always among them. Who may see a post depends on its audience, on whom the author
 * hides from, and on whom the reader has muted: may_see() in src/scripts/common.lua decides for all
 * that reads or pushes posts. This is the audience's part of that rule for whoever has a post and
 * no Redis, such as a gateway. */
#pragma once

#include <stdbool.h>

#include "base/export.h"
#include "base/failure.h"
#include "base/slice.h"
#include "src/model/database.h"

enum { SL_AUDIENCE_USERS_MAX = 500 };

/* 0; -EINVAL: none of the above, or a list that is empty, too long, or holds something else than
 * ids of this database. */
SL_EXPORT int sl_audience_check(struct sl_slice audience, const struct sl_meta *meta,
                                struct failure *reterr);

/* May `reader`, who is not the author, see a post with this audience (absent: public)? `follows`:
 * the reader follows the author. A reader without an id is somebody unknown. An audience of any
 * other form allows nobody. */
SL_EXPORT bool sl_audience_allows(struct sl_slice audience, struct sl_slice reader, bool follows);
