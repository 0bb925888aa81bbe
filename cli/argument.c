#include "cli/argument.h"

#include <inttypes.h>

#include "src/model/duration.h"
#include "src/model/id.h"
#include "src/model/user_name.h"

struct sl_user_ref argument_user(const struct cli *cli, const char *text)
{
    struct sl_user_ref user;

    if (sl_user_name_parse(sl_slice_str(text), &user.id, &user.login) < 0)
        cli_usage(cli, "'%s' is not the id of a user; a login of digits is written @%s", text,
                  text);
    return user;
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
        cli_usage(cli, "--%s must be a number from 1 to %" PRIu64 ", not '%s'", name, max, text);
    return number;
}

uint64_t argument_duration_ms(const struct cli *cli, const char *name, const char *text,
                              uint64_t unit_ms, uint64_t max_ms)
{
    char room[SL_DURATION_TEXT_SIZE];
    struct failure failure;
    uint64_t number, ms;
    bool is_number = sl_id_parse(sl_slice_str(text), &number) == 0 &&
                     !__builtin_mul_overflow(number, unit_ms, &ms);

    if (!is_number && sl_duration_parse(sl_slice_str(text), &ms, &failure) < 0)
        cli_usage(cli, "--%s: %s", name, failure.text);
    if (ms < 1 || ms > max_ms)
        cli_usage(cli, "--%s must be greater than 0 and at most %s", name,
                  sl_duration_print(max_ms, room));
    return ms;
}

struct sl_user_ref argument_user_and_post(struct cli *cli, int argc, char **argv,
                                          uint64_t *ret_post)
{
    struct sl_user_ref user = {0};

    while (cli_option(cli, argc, argv) == ARGUMENT_KEY_USER)
        user = argument_user(cli, optarg);
    if (argc - optind != 1)
        cli_usage(cli, "the ID of one post is needed");
    *ret_post = argument_post(cli, argv[optind]);
    return user;
}
