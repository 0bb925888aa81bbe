#include <errno.h>
#include <inttypes.h>

#include <hiredis/hiredis.h>

#include "cli/archive_posts.h"
#include "cli/argument.h"
#include "cli/cache_url.h"
#include "src/social/posts.h"

static int send(struct database *database, struct sl_call *call, int built, struct failure *reterr)
{
    struct sl_written written;
    redisReply *reply = NULL;
    int r;

    r = database_run(database, call, built, &reply, reterr);
    if (r == 0)
        r = sl_write_reply(reply, &written, reterr);
    freeReplyObject(reply);
    return r;
}

/* Redis has no such post: the archive may have it. */
static int delete_archived(struct database *database, const struct cli *cli,
                           const struct sl_user_ref *author, uint64_t post, struct failure *reterr)
{
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    struct sl_call call = SL_CALL_INIT;
    struct sl_archive *archive = NULL;
    int r;

    r = archive_posts_open(&archive, database, cli, reterr);
    if (r == 0)
        r = sl_archive_find(archive, &post, 1, &page, reterr);
    if (r == 0 && page.count == 0)
        r = failure_set(reterr, -ENOENT, "there is no post %" PRIu64, post);
    if (r == 0)
        r = send(database, &call,
                 sl_delete_archived_call(&call, &database->meta, sl_slice_str(database->request_id),
                                         author, post, page.posts[0].json, reterr),
                 reterr);
    sl_archive_page_done(&page);
    sl_archive_close(archive);
    return r;
}

static int delete_post(struct cli *cli, const struct sl_user_ref *author, uint64_t post)
{
    struct sl_call call = SL_CALL_INIT;
    struct database database;
    struct failure failure;
    int status, built, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    built = sl_delete_call(&call, &database.meta, sl_slice_str(database.request_id), author, post,
                           &failure);
    r = send(&database, &call, built, &failure);
    if (r == -ENOENT && cli->archive_url)
        r = delete_archived(&database, cli, author, post, &failure);
    if (r == 0)
        cache_url_forget_post(&database, cli, post);
    database_close(&database);
    if (r < 0)
        cli_failed(cli, &failure);
    return r == 0 ? CLI_GOOD : built == -EINVAL ? CLI_USAGE : CLI_FAILED;
}

static int run(struct cli *cli, int argc, char **argv)
{
    uint64_t post;
    const struct sl_user_ref author = argument_user_and_post(cli, argc, argv, &post);

    return delete_post(cli, &author, post);
}

static const struct cli_option options[] = {
    {"user", ARGUMENT_KEY_USER, "USER", "The author of the post; nobody else may delete it.", NULL,
     CLI_NEEDED},
    CLI_OPTIONS_END,
};

const struct command command_delete = {
    .name = "delete",
    .arguments = "ID",
    .summary = "take a post back",
    .help = "The ID is the one printed by 'sluice post'. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice delete --user ada 114871006871552\n",
    .run = run,
};
