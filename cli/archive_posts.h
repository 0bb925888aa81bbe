/* cli/archive_posts.h - reads posts from the archive, as a reader may see them. */
#pragma once

#include "cli/rows.h"
#include "src/archive/archived.h"

struct archive_posts {
    struct sl_archive *archive;
    struct sl_archive_page page;
    struct rows rows; /* a row for each post of the page, for sl_posts_at() */
};

#define ARCHIVE_POSTS_INIT ((struct archive_posts){.page = SL_ARCHIVE_PAGE_INIT, .rows = ROWS_INIT})

/* Opens the archive named on the command line. 0, or as sl_archive_open(). */
int archive_posts_open(struct sl_archive **ret_archive, const struct database *database,
                       const struct cli *cli, struct failure *reterr);

/* Fills the page again: with those of `ids` that the archive has, or with a user's posts before an
 * id (0: from the newest). CLI_GOOD, or the exit status after printing why. */
int archive_posts_find(struct archive_posts *posts, struct database *database,
                       const struct cli *cli, uint64_t reader, const uint64_t *ids, size_t count);
int archive_posts_list(struct archive_posts *posts, struct database *database,
                       const struct cli *cli, uint64_t reader, uint64_t user, uint64_t before,
                       size_t limit);
void archive_posts_done(struct archive_posts *posts);
