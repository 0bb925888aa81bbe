#include "cli/archive_posts.h"

#include <assert.h>

int archive_posts_open(struct sl_archive **ret_archive, const struct database *database,
                       const struct cli *cli, struct failure *reterr)
{
    assert(cli->archive_url);
    return sl_archive_open(cli->archive_url, database->meta.database_id, SL_ARCHIVE_READ,
                           ret_archive, reterr);
}

static int begin(struct archive_posts *posts, const struct database *database,
                 const struct cli *cli, struct failure *failure)
{
    rows_done(&posts->rows);
    sl_archive_page_done(&posts->page);
    return posts->archive ? 0 : archive_posts_open(&posts->archive, database, cli, failure);
}

/* Redis says what of the page the reader may see; `r` and `failure`: how reading it ended. */
static int judge(struct archive_posts *posts, struct database *database, const struct cli *cli,
                 uint64_t reader, int r, struct failure *failure)
{
    if (r < 0)
        return cli_failed(cli, failure);
    if (posts->page.count == 0)
        return CLI_GOOD;
    r = sl_archived_posts_calls(&posts->rows.calls, &database->meta, reader, posts->page.posts,
                                posts->page.count, failure);
    return rows_read(&posts->rows, database, cli, r, failure);
}

int archive_posts_find(struct archive_posts *posts, struct database *database,
                       const struct cli *cli, uint64_t reader, const uint64_t *ids, size_t count)
{
    struct failure failure;
    int r = begin(posts, database, cli, &failure);

    if (r == 0)
        r = sl_archive_find(posts->archive, ids, count, &posts->page, &failure);
    return judge(posts, database, cli, reader, r, &failure);
}

int archive_posts_list(struct archive_posts *posts, struct database *database,
                       const struct cli *cli, uint64_t reader, uint64_t user, uint64_t before,
                       size_t limit)
{
    struct failure failure;
    int r = begin(posts, database, cli, &failure);

    if (r == 0)
        r = sl_archive_list(posts->archive, user, before, limit, &posts->page, &failure);
    return judge(posts, database, cli, reader, r, &failure);
}

void archive_posts_done(struct archive_posts *posts)
{
    rows_done(&posts->rows);
    sl_archive_page_done(&posts->page);
    sl_archive_close(posts->archive);
    *posts = ARCHIVE_POSTS_INIT;
}
