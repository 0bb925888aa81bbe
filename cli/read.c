#include "base/alloc.h"
#include "cli/argument.h"
#include "cli/show.h"

static int read_posts(struct cli *cli, const struct sl_user_ref *reader, const uint64_t *posts,
                      size_t count)
{
    struct database database;
    struct failure failure;
    uint64_t reader_id;
    int status, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = show_find_reader(&database, reader, &reader_id, &failure);
    status = r < 0 ? cli_failed(cli, &failure)
                   : show_posts(&database, cli, reader_id, posts, count, NULL);
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct sl_user_ref reader = {0};
    bool has_reader = false;
    uint64_t *posts;
    size_t count;
    int status;

    while (cli_option(cli, argc, argv) == 'a') {
        reader = argument_user(cli, optarg);
        has_reader = true;
    }
    if (argc == optind)
        cli_usage(cli, "the ID of a post is needed");
    count = (size_t)(argc - optind);
    posts = mem_alloc(mem_array_size(count, sizeof(*posts)));
    if (!posts)
        return cli_failed_with(cli, "out of memory");
    for (size_t i = 0; i < count; i++)
        posts[i] = argument_post(cli, argv[optind + (int)i]);
    status = read_posts(cli, has_reader ? &reader : NULL, posts, count);
    mem_free(posts);
    return status;
}

static const struct cli_option options[] = {
    {"as", 'a', "USER", "Show what this user may see; the default is everything.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_read = {
    .name = "read",
    .arguments = "ID...",
    .summary = "print posts with their counts, as lines of JSON",
    .help = "Any number, read in one round trip, as in their events, with the numbers of likes and "
            "comments. Missing posts are reported on standard error; then the exit status is 1.",
    .options = options,
    .examples = "sluice read 114871006871552 114871006916608 --as bob\n",
    .run = run,
};
