/* src/model/audience.h - the audience of a post: parsing, checking, and the part of the visibility
 * rule that depends on it.
 *
 * An audience is a text that is stored with the post and carried by its events:
 *
 *     public                      everybody; only public posts reach the public streams
 *     followers                   users who follow the author
 *     only:ID,ID,...              these users
 *     except:ID,ID,...            everybody but these users
 *     followers-except:ID,ID,...  followers of the author, but not these
 *
 * The author always belongs to the audience. Whether a user may see a post depends on the audience,
 * on whom the author hides from, and on whom the reader has muted. may_see() in
 * src/scripts/common.lua decides this for all reads and pushes. The functions here implement the
 * part that concerns the audience, for callers that have a post but no Redis, such as a gateway. */
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

/* Checks that the text is an audience. 0; -EINVAL: it has none of the forms above, or its list is
 * empty, too long, or contains something that is not an id of this database. */
SL_EXPORT int sl_audience_check(struct sl_slice audience, const struct sl_meta *meta,
                                struct failure *reterr);

/* Finds the logins in an audience written by a person, such as "only:@ada,12". Once they have been
 * looked up, sl_audience_with_ids() replaces them.
 *
 * Fills `ret_logins` with the logins of the list in order, without their @. 0; *ret_count may be 0;
 * -EINVAL: too many. */
SL_EXPORT int sl_audience_logins(struct sl_slice audience,
                                 struct sl_slice ret_logins[static SL_AUDIENCE_USERS_MAX],
                                 size_t *ret_count, struct failure *reterr);
/* Appends the audience to `text`, with each login replaced by the next id of `ids`. */
void sl_audience_with_ids(struct buffer *text, struct sl_slice audience, const uint64_t *ids);

/* Whether `reader`, who is not the author, may see a post with this audience (absent: public).
 * `follows`: the reader follows the author. A reader without an id is anonymous. An audience that
 * is not valid allows nobody. */
SL_EXPORT bool sl_audience_allows(struct sl_slice audience, struct sl_slice reader, bool follows);
