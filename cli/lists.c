/* lists.c - followers, following, likes, posts, comments: prints a page of a list, newest first.
 *
 * The list is read first; a second round trip reads its users or posts. If the reader may not see
 * all of them, this is repeated until the page is full or the list has ended. */
#include <errno.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "cli/archive_posts.h"
#include "cli/argument.h"
#include "cli/show.h"
#include "src/call/reply.h"
#include "src/model/id.h"
#include "src/social/follows.h"
#include "src/social/likes.h"
#include "src/social/post_rows.h"

enum { LIMIT_DEFAULT = 20, KEY_AS = 'a' };

/* The request of the command line. */
struct request {
    struct sl_user_ref reader;
    bool has_reader; /* otherwise the site itself reads */
    uint64_t reader_id;
    struct sl_page page;                    /* still to be shown */
    struct sl_user_ref user;                /* the owner of the list, */
    uint64_t post;                          /* or its post; */
    const struct sl_archive_post *archived; /* from the archive; NULL: Redis has it */
};

typedef int (*build_fn)(struct sl_call *call, const struct sl_meta *meta,
                        const struct request *request, struct failure *reterr);

/* Prints the items of a reply, and advances the page; limit 0 when nothing is left to be shown. */
typedef int (*show_fn)(struct database *database, const struct cli *cli, struct request *request,
                       const redisReply *reply);

static int show_user_page(struct database *database, const struct cli *cli, struct request *request,
                          const redisReply *reply)
{
    struct sl_user_ref users[SL_PAGE_MAX];
    uint64_t positions[SL_PAGE_MAX];
    struct sl_listed_user listed;
    struct failure failure;
    size_t count;
    int r;

    r = sl_user_list_reply(reply, &count, &failure);
    if (r == 0 && count > request->page.limit)
        count = request->page.limit;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_user_list_at(reply, i, &listed, &failure);
        if (r == 0) {
            users[i] = sl_user_by_id(listed.row.user.id);
            positions[i] = listed.position;
        }
    }
    request->page.limit = 0; /* everybody may see all of them */
    return r < 0 ? cli_failed(cli, &failure) : show_users(database, cli, users, positions, count);
}

static int read_post_ids(const struct request *request, const redisReply *reply,
                         uint64_t ret_posts[SL_PAGE_MAX], size_t *ret_count, struct failure *reterr)
{
    struct sl_post_row row;
    int r;

    r = sl_post_list_reply(reply, ret_count, reterr);
    if (r == 0 && *ret_count > request->page.limit)
        *ret_count = request->page.limit;
    for (size_t i = 0; r == 0 && i < *ret_count; i++) {
        r = sl_post_list_at(reply, i, &row, reterr);
        if (r == 0)
            ret_posts[i] = row.id;
    }
    return r;
}

/* Prints the posts of a reply. *ret_has_ended: there are no more on the list. */
static int show_post_rows(struct database *database, const struct cli *cli, struct request *request,
                          const redisReply *reply, bool *ret_has_ended)
{
    uint64_t posts[SL_PAGE_MAX];
    struct failure failure;
    size_t count, shown = 0;
    int status;

    if (read_post_ids(request, reply, posts, &count, &failure) < 0)
        return cli_failed(cli, &failure);
    status = show_posts(database, cli, request->reader_id, posts, count, &shown);
    *ret_has_ended = count < request->page.limit;
    if (count > 0)
        request->page.before = posts[count - 1];
    request->page.limit -= shown;
    return status;
}

static int show_post_page(struct database *database, const struct cli *cli, struct request *request,
                          const redisReply *reply)
{
    bool has_ended;
    int status = show_post_rows(database, cli, request, reply, &has_ended);

    if (status == CLI_GOOD && has_ended)
        request->page.limit = 0;
    return status;
}

/* Prints what Redis has, and after its last post what the archive has. */
static int show_profile_page(struct database *database, const struct cli *cli,
                             struct request *request, const redisReply *reply)
{
    size_t left;
    uint64_t owner = 0;
    struct failure failure;
    bool has_ended;
    int status = show_post_rows(database, cli, request, reply, &has_ended);

    left = request->page.limit;
    if (status != CLI_GOOD || !has_ended)
        return status;
    request->page.limit = 0;
    if (!cli->archive_url || left == 0)
        return CLI_GOOD;
    if (database_find_id(database, &request->user, &owner, &failure) < 0)
        return cli_failed(cli, &failure);
    return show_archived_posts(database, cli, request->reader_id, owner, request->page.before,
                               left);
}

static int ask(struct database *database, const struct request *request, build_fn build,
               redisReply **ret_reply, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;

    return database_run(database, &call, build(&call, &database->meta, request, reterr), ret_reply,
                        reterr);
}

/* Redis has no such post: the archive may. 0 and another reply, or the same one. */
static int ask_about_archived(struct database *database, const struct cli *cli,
                              struct request *request, build_fn build, redisReply **reply,
                              struct failure *reterr)
{
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT;
    struct sl_archive *archive = NULL;
    int r;

    r = archive_posts_open(&archive, database, cli, reterr);
    if (r == 0)
        r = sl_archive_find(archive, &request->post, 1, &page, reterr);
    if (r == 0 && page.count == 1) {
        freeReplyObject(*reply);
        *reply = NULL;
        request->archived = &page.posts[0];
        r = ask(database, request, build, reply, reterr);
        request->archived = NULL;
    }
    sl_archive_page_done(&page);
    sl_archive_close(archive);
    return r;
}

static int show_next(struct database *database, const struct cli *cli, struct request *request,
                     build_fn build, show_fn show)
{
    redisReply *reply = NULL;
    struct failure failure;
    int status, r;

    r = ask(database, request, build, &reply, &failure);
    if (r == 0 && request->post && cli->archive_url && sl_reply_check(reply, NULL) == -ENOENT)
        r = ask_about_archived(database, cli, request, build, &reply, &failure);
    status = r == 0 ? show(database, cli, request, reply) : cli_failed(cli, &failure);
    freeReplyObject(reply);
    return status;
}

static int show_list(struct cli *cli, struct request *request, build_fn build, show_fn show)
{
    struct database database;
    struct failure failure;
    int status;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    if (show_find_reader(&database, request->has_reader ? &request->reader : NULL,
                         &request->reader_id, &failure) < 0)
        status = cli_failed(cli, &failure);
    while (status == CLI_GOOD && request->page.limit > 0)
        status = show_next(&database, cli, request, build, show);
    database_close(&database);
    return status;
}

/* ---- the command line ---- */

/* Parses all options; one argument must remain. */
static const char *read_options(struct cli *cli, int argc, char **argv, const char *what,
                                struct request *ret_request)
{
    struct request request = {.page.limit = LIMIT_DEFAULT};
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case ARGUMENT_KEY_BEFORE:
            request.page.before = argument_number(cli, "before", optarg, SL_ID_MAX);
            break;
        case ARGUMENT_KEY_LIMIT:
            request.page.limit = argument_number(cli, "limit", optarg, SL_PAGE_MAX);
            break;
        case KEY_AS:
            request.reader = argument_user(cli, optarg);
            request.has_reader = true;
            break;
        }
    }
    if (argc - optind != 1)
        cli_usage(cli, "one %s is needed", what);
    *ret_request = request;
    return argv[optind];
}

static int list_of_user(struct cli *cli, int argc, char **argv, build_fn build, show_fn show)
{
    struct request request;
    const char *user = read_options(cli, argc, argv, "USER", &request);

    request.user = argument_user(cli, user);
    return show_list(cli, &request, build, show);
}

static int list_of_post(struct cli *cli, int argc, char **argv, build_fn build, show_fn show)
{
    struct request request;
    const char *post = read_options(cli, argc, argv, "ID", &request);

    request.post = argument_post(cli, post);
    return show_list(cli, &request, build, show);
}

/* ---- the commands ---- */

static int build_followers(struct sl_call *call, const struct sl_meta *meta,
                           const struct request *request, struct failure *reterr)
{
    return sl_follower_list_call(call, meta, &request->user, &request->page, reterr);
}

static int build_following(struct sl_call *call, const struct sl_meta *meta,
                           const struct request *request, struct failure *reterr)
{
    return sl_following_list_call(call, meta, &request->user, &request->page, reterr);
}

static int build_posts(struct sl_call *call, const struct sl_meta *meta,
                       const struct request *request, struct failure *reterr)
{
    return sl_post_list_call(call, meta, request->reader_id, &request->user, &request->page,
                             reterr);
}

static int build_comments(struct sl_call *call, const struct sl_meta *meta,
                          const struct request *request, struct failure *reterr)
{
    return request->archived
               ? sl_archived_comment_list_call(call, meta, request->reader_id, request->archived,
                                               &request->page, reterr)
               : sl_comment_list_call(call, meta, request->reader_id, request->post, &request->page,
                                      reterr);
}

static int build_likes(struct sl_call *call, const struct sl_meta *meta,
                       const struct request *request, struct failure *reterr)
{
    return request->archived ? sl_archived_like_list_call(call, meta, request->reader_id,
                                                          request->archived, &request->page, reterr)
                             : sl_like_list_call(call, meta, request->reader_id, request->post,
                                                 &request->page, reterr);
}

static int run_followers(struct cli *cli, int argc, char **argv)
{
    return list_of_user(cli, argc, argv, build_followers, show_user_page);
}

static int run_following(struct cli *cli, int argc, char **argv)
{
    return list_of_user(cli, argc, argv, build_following, show_user_page);
}

static int run_posts(struct cli *cli, int argc, char **argv)
{
    return list_of_user(cli, argc, argv, build_posts, show_profile_page);
}

static int run_comments(struct cli *cli, int argc, char **argv)
{
    return list_of_post(cli, argc, argv, build_comments, show_post_page);
}

static int run_likes(struct cli *cli, int argc, char **argv)
{
    return list_of_post(cli, argc, argv, build_likes, show_user_page);
}

/* Lists of users are the same for all readers. */
static const struct cli_option user_options[] = {
    ARGUMENT_OPTION_LIMIT("1000"),
    ARGUMENT_OPTION_BEFORE,
    CLI_OPTIONS_END,
};

static const struct cli_option post_options[] = {
    ARGUMENT_OPTION_LIMIT("1000"),
    ARGUMENT_OPTION_BEFORE,
    {"as", KEY_AS, "USER", "Show what this user may see; the default is everything.", NULL,
     CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_followers = {
    .name = "followers",
    .arguments = "USER",
    .summary = "list followers of a user, newest first, as lines of JSON",
    .help = ARGUMENT_USER_HELP,
    .options = user_options,
    .examples = "sluice followers ada --limit 100\n",
    .run = run_followers,
};

const struct command command_following = {
    .name = "following",
    .arguments = "USER",
    .summary = "list followed users, newest first, as lines of JSON",
    .help = ARGUMENT_USER_HELP,
    .options = user_options,
    .examples = "sluice following ada\n",
    .run = run_following,
};

const struct command command_posts = {
    .name = "posts",
    .arguments = "USER",
    .summary = "list the posts of a user, newest first, as lines of JSON",
    .help = ARGUMENT_USER_HELP,
    .options = post_options,
    .examples = "sluice posts ada --as bob\n",
    .run = run_posts,
};

const struct command command_comments = {
    .name = "comments",
    .arguments = "ID",
    .summary = "list the replies to a post, newest first, as lines of JSON",
    .help = "The ID is that of the post.",
    .options = post_options,
    .examples = "sluice comments 114871006871552\n",
    .run = run_comments,
};

const struct command command_likes = {
    .name = "likes",
    .arguments = "ID",
    .summary = "list who likes a post, newest first, as lines of JSON",
    .help = "The ID is that of the post.",
    .options = post_options,
    .examples = "sluice likes 114871006871552\n",
    .run = run_likes,
};
