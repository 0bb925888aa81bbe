/* post.c - sluice post: one post, whose id is printed.
 *
 * Options are checked here as far as they have a form (degrees, ids); all else is the builder's to
 * refuse. An answer to a post of another shard needs that post's author, whom the shard of the
 * writer does not know: the builder says so, and the author is looked up as the reader who answers
 * may see it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "cli/database.h"
#include "src/model/id.h"
#include "src/social/posts.h"

/* A post of another shard: the author's own shard cannot look its author up, we can, for the user
 * who answers it. The slices put into *post are those of *ret_reply. */
static int look_up(struct database *database, const char *login, struct sl_post *post,
                   redisReply **ret_reply, struct failure *reterr)
{
    struct sl_post_reference *parent = &post->reply_to;
    struct sl_call call = SL_CALL_INIT;
    redisReply *found = NULL;
    struct sl_user user;
    uint64_t id = 0;
    int r;

    sl_id_parse(parent->post, &id);
    r = database_find_user(database, login, &user, &found, reterr);
    if (r == 0)
        r = sl_post_author_call(&call, &database->meta, user.id, id, reterr);
    r = database_run(database, &call, r, ret_reply, reterr);
    if (r == 0)
        r = sl_post_author_reply(*ret_reply, parent, reterr);
    if (r == 0)
        post->is_comment = true;
    freeReplyObject(found);
    return r;
}

static int send_post(struct cli *cli, const char *user, struct sl_post *post)
{
    const struct sl_user_ref author = sl_user_by_login(sl_slice_str(user));
    struct sl_call call = SL_CALL_INIT;
    redisReply *looked_up = NULL;
    struct database database;
    struct sl_written written;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 1);
    if (status != CLI_GOOD)
        return status;
    r = sl_post_call(&call, &database.meta, sl_slice_str(database.request_id), &author, post,
                     &failure);
    if (r == -EXDEV) {
        r = look_up(&database, user, post, &looked_up, &failure);
        if (r == 0)
            r = sl_post_call(&call, &database.meta, sl_slice_str(database.request_id), &author,
                             post, &failure);
    }
    status = database_write(&database, cli, &call, r, &failure, &written);
    if (status == CLI_GOOD) {
        printf("%" PRIu64 "\n", written.id);
        status = cli_done(cli);
    }
    freeReplyObject(looked_up);
    database_close(&database);
    return status;
}

/* A number of degrees up to `limit`, and `end` behind it. */
static bool read_degrees(const char *text, double limit, char end, double *ret_degrees,
                         const char **ret_rest)
{
    char *rest;

    *ret_degrees = strtod(text, &rest);
    *ret_rest = rest + 1;
    return rest != text && *rest == end && *ret_degrees >= -limit && *ret_degrees <= limit;
}

static void read_geo(const struct cli *cli, const char *text, struct sl_post *post)
{
    const char *lat, *end;

    post->has_point = read_degrees(text, 180, ',', &post->lon, &lat) &&
                      read_degrees(lat, 90, '\0', &post->lat, &end);
    if (!post->has_point)
        cli_usage(cli, "--geo is LON,LAT, in degrees from -180 to 180 and -90 to 90, not '%s'",
                  text);
}

static void read_reply_to(const struct cli *cli, const char *text, struct sl_post *post)
{
    uint64_t id;

    post->reply_to.post = sl_slice_str(text);
    if (sl_id_parse(post->reply_to.post, &id) < 0)
        cli_usage(cli, "--reply-to is the id of a post, not '%s'", text);
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {
        {"user", required_argument, NULL, 'u'},     {"lang", required_argument, NULL, 'l'},
        {"geo", required_argument, NULL, 'g'},      {"reply-to", required_argument, NULL, 'r'},
        {"audience", required_argument, NULL, 'a'}, {0},
    };
    struct sl_post post = {.source = SL_SLICE("sluice")};
    const char *user = NULL;
    int option;

    while ((option = cli_option(cli, argc, argv, options)) >= 0) {
        switch (option) {
        case 'u':
            user = optarg;
            break;
        case 'l':
            post.lang = sl_slice_str(optarg);
            break;
        case 'g':
            read_geo(cli, optarg, &post);
            break;
        case 'r':
            read_reply_to(cli, optarg, &post);
            break;
        case 'a':
            post.audience = sl_slice_str(optarg);
            break;
        }
    }
    if (!user)
        cli_usage(cli, "--user LOGIN is needed");
    if (argc - optind != 1)
        cli_usage(cli, "one TEXT is needed; put it in quotes");
    post.text = sl_slice_str(argv[optind]);
    return send_post(cli, user, &post);
}

const struct command command_post = {
    .name = "post",
    .arguments = "--user LOGIN [--lang LANG] [--geo LON,LAT] [--reply-to ID] [--audience WHO] TEXT",
    .summary = "post as a user; prints the post's id",
    .help = "--user LOGIN    who posts\n"
            "--lang LANG     the language, a BCP 47 tag such as en or zh-TW\n"
            "--geo LON,LAT   the place in degrees, east and north\n"
            "--reply-to ID   the post that this one answers\n"
            "--audience WHO  who may see it: public (the default), followers, only:ID,ID or\n"
            "                except:ID,ID, with the ids of users\n"
            "TEXT            1 to 20000 bytes of UTF-8; write -- before one that begins with -\n",
    .run = run,
};
