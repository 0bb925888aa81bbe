/* show.c - prints users and posts by their ids as lines of JSON, in the requested order.
 *
 * One call goes to each shard, all in one round trip (cli/rows.h). For posts the cache is asked
 * first, if there is one, and it is given what it lacked; posts that Redis lacks are read from the
 * archive, and Redis decides whether the reader may see them. In a list, posts that neither has are
 * skipped; individually they are an error. At most a page at a time. */
#include "cli/show.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "cli/archive_posts.h"
#include "cli/cache_url.h"
#include "cli/rows.h"
#include "src/cache/cached_rows.h"
#include "src/social/post_rows.h"
#include "src/social/row_json.h"

int show_find_reader(struct database *database, const struct sl_user_ref *reader,
                     uint64_t *ret_reader, struct failure *reterr)
{
    *ret_reader = SL_READER_SYSTEM;
    return reader ? database_find_id(database, reader, ret_reader, reterr) : 0;
}

/* Prints the object in `json`, with its position as the first member unless NULL, and clears it. */
static int print_line(const struct cli *cli, struct buffer *json, const uint64_t *position)
{
    buffer_append_char(json, '\n');
    if (json->failed)
        return cli_failed_with(cli, "out of memory");
    if (position)
        printf("{\"position\":\"%" PRIu64 "\",", *position);
    cli_print(stdout, sl_slice_from(buffer_slice(json), position != NULL));
    buffer_clear(json);
    return CLI_GOOD;
}

/* Appends the JSON of item number `item` to `json`. Errors as its parser. */
typedef int (*row_fn)(void *context, size_t item, struct buffer *json, struct failure *reterr);

static int user_json(void *context, size_t item, struct buffer *json, struct failure *reterr)
{
    struct sl_user_row user;
    size_t row;
    const struct redisReply *reply = rows_find(context, item, &row);
    int r = sl_users_at(reply, row, &user, reterr);

    if (r == 0)
        sl_user_row_json(json, &user);
    return r;
}

static int read_post(const struct rows *rows, size_t item, struct sl_post_row *ret_post,
                     struct failure *reterr)
{
    size_t row;
    const struct redisReply *reply = rows_find(rows, item, &row);

    return sl_posts_at(reply, row, ret_post, reterr);
}

static int row_json(void *context, size_t item, struct buffer *json, struct failure *reterr)
{
    struct sl_post_row post;
    int r = read_post(context, item, &post, reterr);

    if (r == 0)
        sl_post_row_json(json, &post);
    return r;
}

/* Prints all rows that were read; `ret_shown` as in show_posts(). */
static int show_rows(const struct cli *cli, row_fn read, void *context, const uint64_t *positions,
                     size_t count, size_t *ret_shown)
{
    struct buffer json = BUFFER_INIT;
    int status = CLI_GOOD;
    size_t shown = 0;

    for (size_t i = 0; i < count; i++) {
        struct failure failure;
        int r = read(context, i, &json, &failure);

        if (r == -ENOENT && ret_shown)
            continue;
        if (r < 0)
            status = cli_failed(cli, &failure);
        else if (print_line(cli, &json, positions ? &positions[i] : NULL) != CLI_GOOD)
            status = CLI_FAILED;
        else
            shown++;
    }
    buffer_done(&json);
    if (ret_shown)
        *ret_shown = shown;
    return status == CLI_GOOD ? cli_done(cli) : status;
}

int show_users(struct database *database, const struct cli *cli, const struct sl_user_ref *users,
               const uint64_t *positions, size_t count)
{
    struct rows rows = ROWS_INIT;
    struct failure failure;
    size_t shown;
    int status;

    status =
        rows_read(&rows, database, cli,
                  sl_users_calls(&rows.calls, &database->meta, users, count, &failure), &failure);
    if (status == CLI_GOOD)
        status = show_rows(cli, user_json, &rows, positions, count, positions ? &shown : NULL);
    rows_done(&rows);
    return status;
}

/* ---- posts from Redis or the archive ---- */

struct asked_posts {
    const uint64_t *ids;
    size_t count;
    struct rows rows;
    struct archive_posts archived; /* posts that Redis lacks */
    struct sl_cache *cache;        /* NULL: none */
    struct sl_cache_item *known;
    uint64_t read_ms;
};

/* The row of item number `item`, from Redis or the archive. */
static int find_row(const struct asked_posts *asked, size_t item, struct sl_post_row *ret_post,
                    enum sl_cached_source *ret_source, struct failure *reterr)
{
    int r = read_post(&asked->rows, item, ret_post, reterr);

    *ret_source = SL_CACHED_FROM_REDIS;
    for (size_t i = 0; r == -ENOENT && i < asked->archived.page.count; i++) {
        if (asked->archived.page.posts[i].id == asked->ids[item]) {
            *ret_source = SL_CACHED_FROM_ARCHIVE;
            return read_post(&asked->archived.rows, i, ret_post, reterr);
        }
    }
    return r;
}

static int asked_json(void *context, size_t item, struct buffer *json, struct failure *reterr)
{
    const struct asked_posts *asked = context;
    enum sl_cached_source source;
    struct sl_post_row post;
    int r = find_row(asked, item, &post, &source, reterr);

    if (r == 0 && !sl_cached_post_json(json, &post, asked->known[item].value))
        r = failure_set(reterr, -EBADMSG, "post %" PRIu64 " lacks what is not cached", post.id);
    return r;
}

static int ask_cache(struct asked_posts *asked, const struct database *database,
                     const struct cli *cli, struct failure *reterr)
{
    int r = cache_url_open(&asked->cache, database, cli, reterr);

    if (r < 0)
        return r;
    asked->known = mem_zalloc(mem_array_size(asked->count + 1, sizeof(*asked->known)));
    if (!asked->known)
        return failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; i < asked->count; i++)
        asked->known[i] = (struct sl_cache_item){SL_CACHE_POST, asked->ids[i], SL_SLICE_NONE};
    asked->read_ms = clock_wall_ms();
    if (asked->cache)
        sl_cache_get(asked->cache, asked->known, asked->count);
    return 0;
}

/* Stores in the cache what it lacked. */
static void fill_cache(const struct asked_posts *asked)
{
    for (size_t i = 0; asked->cache && i < asked->count; i++) {
        struct sl_cache_item item = {SL_CACHE_POST, asked->ids[i], SL_SLICE_NONE};
        struct buffer value = BUFFER_INIT;
        enum sl_cached_source source;
        struct sl_post_row post;

        if (find_row(asked, i, &post, &source, NULL) == 0 &&
            sl_cached_post_value(&value, &post, source)) {
            item.value = buffer_slice(&value);
            sl_cache_put(asked->cache, &item, 1, asked->read_ms);
        }
        buffer_done(&value);
    }
}

/* Reads the posts that Redis lacks from the archive. */
static int find_archived(struct asked_posts *asked, struct database *database,
                         const struct cli *cli, uint64_t reader, size_t count)
{
    uint64_t *missing;
    size_t missing_count = 0;
    int status = CLI_GOOD;

    if (!cli->archive_url)
        return CLI_GOOD;
    missing = mem_alloc(mem_array_size(count + 1, sizeof(*missing)));
    if (!missing)
        return cli_failed_with(cli, "out of memory");
    for (size_t i = 0; i < count; i++) {
        struct sl_post_row post;

        if (read_post(&asked->rows, i, &post, NULL) == -ENOENT)
            missing[missing_count++] = asked->ids[i];
    }
    if (missing_count > 0)
        status =
            archive_posts_find(&asked->archived, database, cli, reader, missing, missing_count);
    mem_free(missing);
    return status;
}

int show_posts(struct database *database, const struct cli *cli, uint64_t reader,
               const uint64_t *posts, size_t count, size_t *ret_shown)
{
    struct asked_posts asked = {
        .ids = posts, .count = count, .rows = ROWS_INIT, .archived = ARCHIVE_POSTS_INIT};
    struct failure failure;
    int r, status;

    r = ask_cache(&asked, database, cli, &failure);
    if (r == 0)
        r = sl_cached_posts_calls(&asked.rows.calls, &database->meta, reader, asked.known, count,
                                  &failure);
    status = rows_read(&asked.rows, database, cli, r, &failure);
    if (status == CLI_GOOD)
        status = find_archived(&asked, database, cli, reader, count);
    if (status == CLI_GOOD) {
        fill_cache(&asked);
        status = show_rows(cli, asked_json, &asked, NULL, count, ret_shown);
    }
    if (asked.known)
        sl_cache_items_done(asked.known, count);
    mem_free(asked.known);
    sl_cache_close(asked.cache);
    archive_posts_done(&asked.archived);
    rows_done(&asked.rows);
    return status;
}

int show_archived_posts(struct database *database, const struct cli *cli, uint64_t reader,
                        uint64_t user, uint64_t before, size_t count)
{
    struct archive_posts archived = ARCHIVE_POSTS_INIT;
    int status = CLI_GOOD;
    size_t shown;

    while (status == CLI_GOOD && count > 0) {
        status = archive_posts_list(&archived, database, cli, reader, user, before, count);
        if (status != CLI_GOOD || archived.page.count == 0)
            break;
        status = show_rows(cli, row_json, &archived.rows, NULL, archived.page.count, &shown);
        count -= shown;
        before = archived.page.posts[archived.page.count - 1].id;
    }
    archive_posts_done(&archived);
    return status;
}
