#include "base/alloc.h"
#include "cli/argument.h"
#include "cli/show.h"

static int read_posts(struct cli *cli, const char *reader, const uint64_t *posts, size_t count)
{
    struct database database;
    struct failure failure;
    uint64_t reader_id;
    int status, r;

    status = database_open(&database, cli, 1);
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
    static const struct option options[] = {{"as", required_argument, NULL, 'a'}, {0}};
    const char *reader = NULL;
    uint64_t *posts;
    size_t count;
    int status;

    while (cli_option(cli, argc, argv, options) == 'a')
        reader = optarg;
    if (argc == optind)
        cli_usage(cli, "the ID of a post is needed");
    count = (size_t)(argc - optind);
    posts = mem_alloc(mem_array_size(count, sizeof(*posts)));
    if (!posts)
        return cli_failed_with(cli, "out of memory");
    for (size_t i = 0; i < count; i++)
        posts[i] = argument_post(cli, argv[optind + (int)i]);
    status = read_posts(cli, reader, posts, count);
    mem_free(posts);
    return status;
}

const struct command command_read = {
    .name = "read",
    .arguments = "ID... [--as LOGIN]",
    .summary = "print posts with their counts, a line of JSON each",
    .help = "ID           of a post; as many as you like, read in one round trip\n"
            "--as LOGIN   what this user may see (default: everything)\n",
    .run = run,
};
