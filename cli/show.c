#include "cli/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/rows.h"
#include "src/id.h"
#include "src/post_rows.h"
#include "src/row_json.h"

struct sl_user_ref show_user_ref(const struct cli *cli, const char *text)
{
    uint64_t id;

    if (text[0] != '=')
        return sl_user_by_login(sl_slice_str(text));
    if (sl_id_parse(sl_slice_str(text + 1), &id) < 0)
        cli_usage(cli, "'%s' is not the id of a user", text + 1);
    return sl_user_by_id(id);
}

uint64_t show_number(const struct cli *cli, const char *name, const char *text, uint64_t max)
{
    uint64_t number;

    if (sl_id_parse(sl_slice_str(text), &number) < 0 || number > max)
        cli_usage(cli, "--%s is a number from 1 to %llu, not '%s'", name, (unsigned long long)max,
                  text);
    return number;
}

/* The object that `json` is, with its position as the first member unless NULL; empties it. */
static int print_line(const struct cli *cli, struct buffer *json, const uint64_t *position)
{
    buffer_append_char(json, '\n');
    if (json->failed)
        return cli_failed_with(cli, "out of memory");
    if (position)
        printf("{\"position\":\"%" PRIu64 "\",", *position);
    fwrite(json->data + (position != NULL), 1, json->size - (position != NULL), stdout);
    buffer_clear(json);
    return CLI_GOOD;
}

/* A row as JSON into `json`: as the parser of it says. */
typedef int (*row_fn)(const struct redisReply *reply, size_t row, struct buffer *json,
                      struct failure *reterr);

static int user_json(const struct redisReply *reply, size_t row, struct buffer *json,
                     struct failure *reterr)
{
    struct sl_user_row user;
    int r = sl_users_at(reply, row, &user, reterr);

    if (r == 0)
        sl_user_row_json(json, &user);
    return r;
}

static int post_json(const struct redisReply *reply, size_t row, struct buffer *json,
                     struct failure *reterr)
{
    struct sl_post_row post;
    int r = sl_posts_at(reply, row, &post, reterr);

    if (r == 0)
        sl_post_row_json(json, &post);
    return r;
}

/* Prints all rows that were read. */
static int show_rows(const struct rows *rows, const struct cli *cli, row_fn read,
                     const uint64_t *positions, size_t count, bool is_list)
{
    struct buffer json = BUFFER_INIT;
    int status = CLI_GOOD;

    for (size_t i = 0; i < count; i++) {
        struct failure failure;
        size_t row;
        const struct redisReply *reply = rows_find(rows, i, &row);
        int r = read(reply, row, &json, &failure);

        if (r == -ENOENT && is_list)
            continue;
        if (r < 0)
            status = cli_failed(cli, &failure);
        else if (print_line(cli, &json, positions ? &positions[i] : NULL) != CLI_GOOD)
            status = CLI_FAILED;
    }
    buffer_done(&json);
    return status == CLI_GOOD ? cli_done(cli) : status;
}

int show_users(struct database *database, const struct cli *cli, const struct sl_user_ref *users,
               const uint64_t *positions, size_t count)
{
    struct rows rows = ROWS_INIT;
    struct failure failure;
    int status;

    status =
        rows_read(&rows, database, cli,
                  sl_users_calls(&rows.calls, &database->meta, users, count, &failure), &failure);
    if (status == CLI_GOOD)
        status = show_rows(&rows, cli, user_json, positions, count, positions != NULL);
    rows_done(&rows);
    return status;
}

int show_posts(struct database *database, const struct cli *cli, uint64_t reader,
               const uint64_t *posts, size_t count, bool is_list)
{
    struct rows rows = ROWS_INIT;
    struct failure failure;
    int status;

    status = rows_read(&rows, database, cli,
                       sl_posts_calls(&rows.calls, &database->meta, reader, posts, count, &failure),
                       &failure);
    if (status == CLI_GOOD)
        status = show_rows(&rows, cli, post_json, NULL, count, is_list);
    rows_done(&rows);
    return status;
}
