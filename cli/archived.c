#include "cli/archived.h"

#include <assert.h>

int archived_open(struct sl_archive **ret_archive, const struct database *database,
                  const struct cli *cli, struct failure *reterr)
{
    assert(cli->archive_url);
    return sl_archive_open(cli->archive_url, database->meta.database_id, SL_ARCHIVE_READ,
                           ret_archive, reterr);
}

static int begin(struct archived *archived, const struct database *database, const struct cli *cli,
                 struct failure *failure)
{
    rows_done(&archived->rows);
    sl_archive_page_done(&archived->page);
    return archived->archive ? 0 : archived_open(&archived->archive, database, cli, failure);
}

/* Redis says what of the page the reader may see; `r` and `failure`: how reading it ended. */
static int judge(struct archived *archived, struct database *database, const struct cli *cli,
                 uint64_t reader, int r, struct failure *failure)
{
    if (r < 0)
        return cli_failed(cli, failure);
    if (archived->page.count == 0)
        return CLI_GOOD;
    r = sl_archived_posts_calls(&archived->rows.calls, &database->meta, reader,
                                archived->page.posts, archived->page.count, failure);
    return rows_read(&archived->rows, database, cli, r, failure);
}

int archived_find(struct archived *archived, struct database *database, const struct cli *cli,
                  uint64_t reader, const uint64_t *ids, size_t count)
{
    struct failure failure;
    int r = begin(archived, database, cli, &failure);

    if (r == 0)
        r = sl_archive_find(archived->archive, ids, count, &archived->page, &failure);
    return judge(archived, database, cli, reader, r, &failure);
}

int archived_list(struct archived *archived, struct database *database, const struct cli *cli,
                  uint64_t reader, uint64_t user, uint64_t before, size_t limit)
{
    struct failure failure;
    int r = begin(archived, database, cli, &failure);

    if (r == 0)
        r = sl_archive_list(archived->archive, user, before, limit, &archived->page, &failure);
    return judge(archived, database, cli, reader, r, &failure);
}

void archived_done(struct archived *archived)
{
    rows_done(&archived->rows);
    sl_archive_page_done(&archived->page);
    sl_archive_close(archived->archive);
    *archived = ARCHIVED_INIT;
}
