#include "cli/argument.h"

#include <inttypes.h>

#include "src/model/id.h"

struct sl_user_ref argument_user(const struct cli *cli, const char *text)
{
    uint64_t id;

    if (text[0] != '=')
        return sl_user_by_login(sl_slice_str(text));
    if (sl_id_parse(sl_slice_str(text + 1), &id) < 0)
        cli_usage(cli, "'%s' is not the id of a user", text + 1);
    return sl_user_by_id(id);
}

uint64_t argument_post(const struct cli *cli, const char *text)
{
    uint64_t id;

    if (sl_id_parse(sl_slice_str(text), &id) < 0)
        cli_usage(cli, "'%s' is not the id of a post", text);
    return id;
}

uint64_t argument_number(const struct cli *cli, const char *name, const char *text, uint64_t max)
{
    uint64_t number;

    if (sl_id_parse(sl_slice_str(text), &number) < 0 || number > max)
        cli_usage(cli, "--%s is a number from 1 to %" PRIu64 ", not '%s'", name, max, text);
    return number;
}

const char *argument_user_and_post(struct cli *cli, int argc, char **argv, uint64_t *ret_post)
{
    static const struct option options[] = {{"user", required_argument, NULL, 'u'}, {0}};
    const char *user = NULL;

    while (cli_option(cli, argc, argv, options) == 'u')
        user = optarg;
    if (!user)
        cli_usage(cli, "--user LOGIN is needed");
    if (argc - optind != 1)
        cli_usage(cli, "the ID of one post is needed");
    *ret_post = argument_post(cli, argv[optind]);
    return user;
}
