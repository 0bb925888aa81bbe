/* post.c - sluice post: creates a post and prints its id.
 *
 * Options are checked here as far as they have a form (degrees, ids, JSON); everything else is
 * checked by the builder. A reference to a post in another shard needs that post's author, which
 * the writer's shard does not know: the builder reports that, and the author is looked up on behalf
 * of the user who refers to the post. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/argument.h"
#include "cli/database.h"
#include "src/model/id.h"
#include "src/social/posts.h"

/* The request of the command line. */
struct arguments {
    struct sl_user_ref author;
    struct sl_post post;
    struct sl_slice urls[SL_POST_URLS_MAX];
    struct buffer audience; /* with ids; empty: as it was given */
    json_t *media;          /* an array; NULL: none */
    char *media_text;       /* serialized */
    char *standard_in;      /* the text, if it was read from there */
};

enum { REFERENCES = 3 };

/* For a post in another shard: the writer's shard cannot look up its author, so it is done here for
 * the user who refers to it. The slices in the references belong to `replies`. */
static int look_up(struct database *database, const struct arguments *arguments,
                   struct sl_post *post, redisReply *replies[REFERENCES], struct failure *reterr)
{
    struct sl_post_reference *const references[REFERENCES] = {&post->reply_to, &post->repost_of,
                                                              &post->quote_of};
    uint64_t author = 0;
    int r;

    r = database_find_id(database, &arguments->author, &author, reterr);
    for (int i = 0; r == 0 && i < REFERENCES; i++) {
        struct sl_call call = SL_CALL_INIT;
        uint64_t id = 0;

        if (!references[i]->post.data)
            continue;
        sl_id_parse(references[i]->post, &id);
        r = sl_post_author_call(&call, &database->meta, author, id, reterr);
        r = database_run(database, &call, r, &replies[i], reterr);
        if (r == 0)
            r = sl_post_author_reply(replies[i], references[i], reterr);
    }
    if (r == 0 && post->reply_to.post.data)
        post->is_comment = true;
    return r;
}

/* Looks up the logins of the audience, which the post stores as ids. */
static int name_audience(struct database *database, struct arguments *arguments,
                         struct failure *reterr)
{
    struct sl_slice logins[SL_AUDIENCE_USERS_MAX];
    uint64_t ids[SL_AUDIENCE_USERS_MAX];
    size_t count = 0;
    int r;

    r = sl_audience_logins(arguments->post.audience, logins, &count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct sl_user_ref user = sl_user_by_login(logins[i]);

        r = database_find_id(database, &user, &ids[i], reterr);
    }
    if (r < 0 || count == 0)
        return r;
    sl_audience_with_ids(&arguments->audience, arguments->post.audience, ids);
    arguments->post.audience = buffer_slice(&arguments->audience);
    return arguments->audience.failed ? failure_set(reterr, -ENOMEM, "out of memory") : 0;
}

static int send_post(struct cli *cli, struct arguments *arguments)
{
    redisReply *looked_up[REFERENCES] = {NULL};
    struct sl_call call = SL_CALL_INIT;
    struct sl_post *post = &arguments->post;
    struct database database;
    struct sl_written written;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = name_audience(&database, arguments, &failure);
    if (r == 0)
        r = sl_post_call(&call, &database.meta, sl_slice_str(database.request_id),
                         &arguments->author, post, &failure);
    if (r == -EXDEV) {
        r = look_up(&database, arguments, post, looked_up, &failure);
        if (r == 0)
            r = sl_post_call(&call, &database.meta, sl_slice_str(database.request_id),
                             &arguments->author, post, &failure);
    }
    status = database_write(&database, cli, &call, r, &failure, &written);
    if (status == CLI_GOOD) {
        printf("%" PRIu64 "\n", written.id);
        status = cli_done(cli);
    }
    for (int i = 0; i < REFERENCES; i++)
        freeReplyObject(looked_up[i]);
    database_close(&database);
    return status;
}

/* ---- the command line ---- */

/* Parses a number of degrees up to `limit`, followed by `end`. */
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
        cli_usage(cli, "--geo must be LON,LAT, in degrees from -180 to 180 and -90 to 90, not '%s'",
                  text);
}

static void read_reference(const struct cli *cli, const char *name, const char *text,
                           struct sl_post_reference *ret_reference)
{
    uint64_t id;

    ret_reference->post = sl_slice_str(text);
    if (sl_id_parse(ret_reference->post, &id) < 0)
        cli_usage(cli, "--%s must be the id of a post, not '%s'", name, text);
}

static void add_url(const struct cli *cli, const char *url, struct arguments *arguments)
{
    if (arguments->post.url_count == SL_POST_URLS_MAX)
        cli_usage(cli, "a post has up to %d links", SL_POST_URLS_MAX);
    arguments->post.urls = arguments->urls;
    arguments->urls[arguments->post.url_count++] = sl_slice_str(url);
}

/* Parses a JSON value, or an array of them. */
static void add_media(const struct cli *cli, const char *text, struct arguments *arguments)
{
    json_error_t error;
    json_t *media = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    if (!media)
        cli_usage(cli, "--media must be a JSON object or an array of them: %s at byte %d",
                  error.text, error.position);
    if (!arguments->media)
        arguments->media = json_array();
    if (json_is_array(media))
        json_array_extend(arguments->media, media);
    else
        json_array_append(arguments->media, media);
    json_decref(media);
}

/* Reads all of standard input, without its last line end. */
static void read_standard_input(const struct cli *cli, struct arguments *arguments)
{
    const size_t room = SL_POST_TEXT_MAX + 2; /* for a line end, and one byte too many */
    size_t size;

    arguments->standard_in = mem_alloc(room);
    if (!arguments->standard_in)
        exit(cli_failed_with(cli, "out of memory"));
    size = fread(arguments->standard_in, 1, room, stdin);
    if (ferror(stdin))
        exit(cli_failed_with(cli, "cannot read standard input: %s", strerror(errno)));
    if (size > 0 && size < room && arguments->standard_in[size - 1] == '\n')
        size--;
    arguments->post.text = sl_slice(arguments->standard_in, size);
}

static void read_options(struct cli *cli, int argc, char **argv, struct arguments *arguments)
{
    struct sl_post *post = &arguments->post;
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case 'u':
            arguments->author = argument_user(cli, optarg);
            break;
        case 'l':
            post->lang = sl_slice_str(optarg);
            break;
        case 'g':
            read_geo(cli, optarg, post);
            break;
        case 'r':
            read_reference(cli, "reply-to", optarg, &post->reply_to);
            break;
        case 'p':
            read_reference(cli, "repost", optarg, &post->repost_of);
            break;
        case 'q':
            read_reference(cli, "quote", optarg, &post->quote_of);
            break;
        case 'L':
            add_url(cli, optarg, arguments);
            break;
        case 'm':
            add_media(cli, optarg, arguments);
            break;
        case 'a':
            post->audience = sl_slice_str(optarg);
            break;
        }
    }
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.post.source = SL_SLICE("sluice")};
    int status;

    read_options(cli, argc, argv, &arguments);
    if (argc - optind != 1)
        cli_usage(cli, "one TEXT is needed; put it in quotes, or write - for standard input");
    if (strcmp(argv[optind], "-") == 0)
        read_standard_input(cli, &arguments);
    else
        arguments.post.text = sl_slice_str(argv[optind]);
    if (arguments.media) {
        arguments.media_text = json_dumps(arguments.media, JSON_COMPACT);
        if (!arguments.media_text)
            exit(cli_failed_with(cli, "out of memory"));
        arguments.post.media = sl_slice_str(arguments.media_text);
    }
    status = send_post(cli, &arguments);
    buffer_done(&arguments.audience);
    json_decref(arguments.media);
    free(arguments.media_text); /* from json_dumps() */
    mem_free(arguments.standard_in);
    return status;
}

static const struct cli_option options[] = {
    {"user", 'u', "USER", "Who posts.", NULL, CLI_NEEDED},
    {"lang", 'l', "LANG", "The language, a BCP 47 tag such as en or zh-TW.", NULL, CLI_ONCE},
    {"geo", 'g', "LON,LAT", "Where it was written, in degrees east and north.", NULL, CLI_ONCE},
    {"reply-to", 'r', "ID", "The post that this one replies to; it must exist.", NULL, CLI_ONCE},
    {"repost", 'p', "ID", "The post that this one repeats; it must be public.", NULL, CLI_ONCE},
    {"quote", 'q', "ID", "The post that this one quotes.", NULL, CLI_ONCE},
    {"url", 'L', "URL", "A link, http or https, up to 2,048 bytes; up to 16 of them.", NULL,
     CLI_MANY},
    {"media", 'm', "JSON",
     "A JSON object that describes media of the post, or an array of them, with members as the "
     "application needs them, up to 16,384 bytes in all.",
     NULL, CLI_MANY},
    {"audience", 'a', "WHO",
     "Who may see it: public (the default), everybody; followers; only:ID,ID, these users; "
     "except:ID,ID, every user except these; or followers-except:ID,ID, the followers except "
     "these. Give up to 500 users, each by id or by @ and a login. Only public posts are on the "
     "public streams.",
     "public followers only: except: followers-except:", CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_post = {
    .name = "post",
    .arguments = "TEXT",
    .summary = "post as a user; prints the post's id",
    .help =
        "The TEXT is 1 to 20,000 bytes of UTF-8; - reads it from standard input. Write -- before "
        "one that begins with a hyphen. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice post --user ada --lang en --geo=-0.15,51.52 'Tea at five'\n"
                "sluice post --user bob --reply-to 114871006871552 'On my way'\n"
                "sluice post --user ada --quote 114871006871552 --url https://example.org/ 'This'\n"
                "fortune | sluice post --user ada -\n",
    .run = run,
};
