/* cli/show.h - users and posts as lines of JSON. */
#pragma once

#include "cli/database.h"

/* The id of who reads; NULL: the site itself does. 0, or a negative errno. */
int show_find_reader(struct database *database, const struct sl_user_ref *reader,
                     uint64_t *ret_reader, struct failure *reterr);

/* Prints `count` users in their order. `positions`: where they stand in their list, printed with
 * them; NULL: they were named one by one, and one that is missing is a failure. */
int show_users(struct database *database, const struct cli *cli, const struct sl_user_ref *users,
               const uint64_t *positions, size_t count);

/* Prints `count` posts in their order; *ret_shown is how many of them. NULL: they were named one by
 * one, and one that is missing is a failure; otherwise one that the reader may not see, or that has
 * gone since, is passed over. */
int show_posts(struct database *database, const struct cli *cli, uint64_t reader,
               const uint64_t *posts, size_t count, size_t *ret_shown);

/* Prints up to `count` posts of a user that the archive has, from before the post `before` on (0:
 * the newest), as far as `reader` may see them. */
int show_archived_posts(struct database *database, const struct cli *cli, uint64_t reader,
                        uint64_t user, uint64_t before, size_t count);
