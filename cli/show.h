/* cli/show.h - prints users and posts as lines of JSON. */
#pragma once

#include "cli/database.h"

/* The id of the reader; NULL: the site itself. 0, or a negative errno. */
int show_find_reader(struct database *database, const struct sl_user_ref *reader,
                     uint64_t *ret_reader, struct failure *reterr);

/* Prints `count` users in order. `positions`: their positions in a list, which are printed, too;
 * NULL: they were named individually, and a missing one is a failure. */
int show_users(struct database *database, const struct cli *cli, const struct sl_user_ref *users,
               const uint64_t *positions, size_t count);

/* Prints `count` posts in order; *ret_shown is the number printed. NULL: they were named
 * individually, and a missing one is a failure; otherwise posts that the reader may not see, or
 * that were deleted, are skipped. */
int show_posts(struct database *database, const struct cli *cli, uint64_t reader,
               const uint64_t *posts, size_t count, size_t *ret_shown);

/* Prints up to `count` posts of a user from the archive, from before the post `before` on (0: the
 * newest), as far as `reader` may see them. */
int show_archived_posts(struct database *database, const struct cli *cli, uint64_t reader,
                        uint64_t user, uint64_t before, size_t count);
