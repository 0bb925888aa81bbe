/* archive_mysql.c - the archive in a database of MySQL or MariaDB.
 *
 * There is one row for each post, in the order of (user, id): a user's page is one range of the
 * table and is contiguous on disk. An erased post becomes a row of user 0 without a text, which
 * stays to keep out a late store, since `id` is unique. Row 1 of the table `sluice_archive`
 * contains the database's id and the version, and is written last. Row 2 contains the identity
 * (sl_archive_identity()), and is added by the first writer that finds none; earlier versions know
 * only row 1.
 *
 * Statements are text with numbers, and with bytes as hexadecimal literals, which mean the same in
 * every character set and sql_mode. So nothing must be escaped, and nothing must be prepared again
 * on a new connection. Posts are bytes to the server and come back unchanged. A call is one
 * statement, or a transaction if that would be a large packet.
 *
 * Storing and erasing are idempotent. A call whose connection is lost, because the server was
 * restarted or has closed an idle connection, is repeated once on a new connection, after a check
 * that it is still the same archive. So is a call that was the victim of a deadlock. If a
 * connection that was opened for the call is lost during it, the call fails with -EAGAIN, as if the
 * server were not available; the next call connects again. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mysql.h>
#include <mysqld_error.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "src/archive/archive_backend.h"
#include "src/archive/mysql_link.h"

enum {
    VERSION = 1,
    STATEMENT_BYTES = 512 * 1024, /* approximately; far below any default of max_allowed_packet */
    DEADLOCK_TRIES = 8,
    PAUSE_FIRST_MS = 2, /* after a deadlock */
    PAUSE_MOST_MS = 256,
    DATABASE_ID_SIZE = 65,
};

/* Created by the first that finds none. Two may do it at once; then the first row of the second
 * table counts. */
static const char *const schema[] = {
    "CREATE TABLE IF NOT EXISTS sluice_posts ("
    "user BIGINT UNSIGNED NOT NULL, id BIGINT UNSIGNED NOT NULL, json MEDIUMBLOB, "
    "PRIMARY KEY (user, id), UNIQUE KEY (id)) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4",
    "CREATE TABLE IF NOT EXISTS sluice_archive ("
    "only_row TINYINT UNSIGNED NOT NULL PRIMARY KEY, version INT UNSIGNED NOT NULL, "
    "database_id VARBINARY(64) NOT NULL) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4",
};

struct archive {
    struct sl_archive base;
    struct sl_mysql_address address;
    struct sl_mysql_link link;
    bool may_write;
    bool is_anyones; /* otherwise: */
    char database_id[DATABASE_ID_SIZE];
    struct buffer sql; /* the statement being built */
};

/* ---- statements ---- */

/* Prefixes the error message with the archive's name. */
static int told(const struct archive *archive, int r, const struct failure *why,
                struct failure *reterr)
{
    char name[SL_MYSQL_ADDRESS_TEXT_SIZE];

    if (r == 0)
        return 0;
    if (r == -EBADMSG && archive->link.code == ER_NO_SUCH_TABLE)
        r = -ESTALE; /* it existed when it was opened */
    sl_mysql_address_print(&archive->address, name);
    return failure_set(reterr, r, "the archive %.200s: %.300s", name, why->text);
}

static int no_memory(struct failure *reterr)
{
    return failure_set(reterr, -ENOMEM, "out of memory");
}

static void append_hex(struct buffer *sql, struct sl_slice bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *at;

    buffer_append_str(sql, "x'");
    at = buffer_reserve(sql, 2 * bytes.size);
    if (!at)
        return;
    for (size_t i = 0; i < bytes.size; i++) {
        *at++ = digits[(unsigned char)bytes.data[i] >> 4];
        *at++ = digits[(unsigned char)bytes.data[i] & 15];
    }
    sql->size += 2 * bytes.size;
    buffer_append_char(sql, '\'');
}

static int run_text(struct archive *archive, const char *sql, MYSQL_RES **ret_rows,
                    struct failure *reterr)
{
    return sl_mysql_link_run(&archive->link, sl_slice_str(sql), ret_rows, reterr);
}

/* Runs the statement in archive->sql. */
static int run_made(struct archive *archive, MYSQL_RES **ret_rows, struct failure *reterr)
{
    if (archive->sql.failed)
        return no_memory(reterr);
    return sl_mysql_link_run(&archive->link, buffer_slice(&archive->sql), ret_rows, reterr);
}

static uint64_t read_number(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* The next row, of this many columns, none of which is NULL: a table made by others, or something
 * that is not MySQL, may answer differently. NULL: there is no such row. */
static MYSQL_ROW fetch_row(MYSQL_RES *rows, unsigned columns)
{
    MYSQL_ROW row = mysql_num_fields(rows) == columns ? mysql_fetch_row(rows) : NULL;

    for (unsigned i = 0; row && i < columns; i++) {
        if (!row[i])
            return NULL;
    }
    return row;
}

/* ---- identity ---- */

static int make(struct archive *archive, struct failure *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(schema) / sizeof(schema[0]); i++)
        r = run_text(archive, schema[i], NULL, reterr);
    if (r < 0)
        return r;
    buffer_clear(&archive->sql);
    buffer_append_format(&archive->sql, "INSERT INTO sluice_archive VALUES (1, %d, ", VERSION);
    append_hex(&archive->sql, sl_slice_str(archive->database_id));
    buffer_append_str(&archive->sql, ") ON DUPLICATE KEY UPDATE only_row = only_row");
    return run_made(archive, NULL, reterr);
}

static int check_row(const struct archive *archive, MYSQL_ROW row, struct failure *reterr)
{
    if (read_number(row[0]) != VERSION)
        return failure_set(reterr, -ESTALE, "it has version %s, not %d", row[0], VERSION);
    if (!archive->is_anyones && strcmp(row[1], archive->database_id) != 0)
        return failure_set(reterr, -ESTALE, "it belongs to another database");
    return 0;
}

/* 0; -ENOENT: there is none; -EBADMSG: the table is not ours. */
static int check_identity(struct archive *archive, struct failure *reterr)
{
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    int r;

    r = run_text(archive, "SELECT version, database_id FROM sluice_archive WHERE only_row = 1",
                 &rows, reterr);
    if (r < 0 && archive->link.code == ER_NO_SUCH_TABLE)
        r = failure_set(reterr, -ENOENT, "there is none");
    if (r < 0)
        return r;
    row = fetch_row(rows, 2);
    if (mysql_num_rows(rows) == 0)
        r = failure_set(reterr, -ENOENT, "there is none");
    else if (!row)
        r = failure_set(reterr, -EBADMSG, "whose it is cannot be read");
    else
        r = check_row(archive, row, reterr);
    mysql_free_result(rows);
    return r;
}

/* *ret_is_there: there is an identity, which has been written to `room`. */
static int read_identity(struct archive *archive, char room[static SL_ARCHIVE_IDENTITY_SIZE],
                         bool *ret_is_there, struct failure *reterr)
{
    MYSQL_RES *rows = NULL;
    MYSQL_ROW row;
    int r;

    r = run_text(archive, "SELECT database_id FROM sluice_archive WHERE only_row = 2", &rows,
                 reterr);
    if (r < 0 && archive->link.code == ER_NO_SUCH_TABLE)
        r = failure_set(reterr, -ESTALE, "it has been removed");
    if (r < 0)
        return r;
    row = fetch_row(rows, 1);
    *ret_is_there = row != NULL;
    if (row)
        snprintf(room, SL_ARCHIVE_IDENTITY_SIZE, "%s", row[0]);
    mysql_free_result(rows);
    return 0;
}

static int make_identity(struct archive *archive, struct failure *reterr)
{
    char identity[SL_ARCHIVE_IDENTITY_SIZE];

    sl_archive_make_identity(identity);
    buffer_clear(&archive->sql);
    buffer_append_format(&archive->sql, "INSERT INTO sluice_archive VALUES (2, %d, ", VERSION);
    append_hex(&archive->sql, sl_slice_str(identity));
    buffer_append_str(&archive->sql, ") ON DUPLICATE KEY UPDATE only_row = only_row");
    return run_made(archive, NULL, reterr);
}

/* Reads the identity. On a new connection it must be the same as before. */
static int identify(struct archive *archive, struct failure *reterr)
{
    char identity[SL_ARCHIVE_IDENTITY_SIZE] = "";
    char *known = archive->base.identity;
    bool is_there;
    int r = read_identity(archive, identity, &is_there, reterr);

    if (r == 0 && !is_there && archive->may_write && known[0] == '\0') {
        r = make_identity(archive, reterr);
        if (r == 0)
            r = read_identity(archive, identity, &is_there, reterr);
    }
    if (r == 0 && known[0] != '\0' && strcmp(known, identity) != 0)
        r = failure_set(reterr, -ESTALE, "it is another one than before");
    if (r == 0)
        memcpy(known, identity, sizeof(identity));
    return r;
}

static int connect_to(struct archive *archive, enum sl_archive_mode mode, struct failure *reterr)
{
    int r = sl_mysql_link_connect(&archive->link, &archive->address, reterr);

    if (r < 0)
        return r;
    r = check_identity(archive, reterr);
    if (r == -ENOENT && mode == SL_ARCHIVE_MAKE) {
        r = make(archive, reterr);
        if (r == 0)
            r = check_identity(archive, reterr);
    }
    if (r == 0)
        r = identify(archive, reterr);
    if (r < 0)
        sl_mysql_link_close(&archive->link);
    return r;
}

/* ---- calls, and lost connections ---- */

typedef int (*call_fn)(struct archive *archive, void *arguments, struct failure *reterr);

static void pause_after_deadlock(struct backoff *backoff)
{
    uint32_t wait_ms = backoff_next_ms(backoff, PAUSE_FIRST_MS, PAUSE_MOST_MS);
    struct timespec pause = {0, wait_ms * 1000000L};

    nanosleep(&pause, NULL);
}

static int make_call(struct archive *archive, call_fn call, void *arguments, struct failure *reterr)
{
    int r = 0;

    archive->link.trouble = SL_MYSQL_TROUBLE_NONE;
    archive->link.code = 0;
    if (!archive->link.mysql)
        r = connect_to(archive, SL_ARCHIVE_READ, reterr);
    return r < 0 ? r : call(archive, arguments, reterr);
}

/* Makes a call and repeats it as described at the top of this file. A server that did not answer in
 * time is not asked again, because the caller has waited long enough. */
static int call_with_retries(struct archive *archive, call_fn call, void *arguments,
                             struct failure *reterr)
{
    const uint64_t late_ms = clock_monotonic_ms() + archive->address.timeout_s * 1000 / 2;
    bool may_be_stale = archive->link.mysql != NULL;
    struct backoff backoff = {0};
    struct failure why;

    for (int deadlocks = 0;;) {
        int r = make_call(archive, call, arguments, &why);

        if (r < 0 && archive->link.trouble == SL_MYSQL_TROUBLE_LOST) {
            sl_mysql_link_close(&archive->link);
            if (!may_be_stale || clock_monotonic_ms() >= late_ms)
                return told(archive, r, &why, reterr);
            may_be_stale = false;
        } else if (r < 0 && archive->link.trouble == SL_MYSQL_TROUBLE_DEADLOCK &&
                   deadlocks++ < DEADLOCK_TRIES) {
            pause_after_deadlock(&backoff);
        } else {
            return told(archive, r, &why, reterr);
        }
    }
}

/* ---- verifying ---- */

static int verify(struct archive *archive, void *arguments, struct failure *reterr)
{
    (void)arguments;
    return identify(archive, reterr);
}

static int mysql_verify(struct sl_archive *base, struct failure *reterr)
{
    return call_with_retries((struct archive *)base, verify, NULL, reterr);
}

/* ---- writing ---- */

/* An INSERT of many rows. */
struct writing {
    const char *on_duplicate;
    const struct sl_archive_post *posts; /* posts to store; NULL: posts to erase */
    const uint64_t *erased;
    size_t count;
};

static void append_row(struct buffer *sql, const struct writing *writing, size_t i)
{
    if (!writing->posts) {
        buffer_append_format(sql, "(0,%" PRIu64 ",NULL)", writing->erased[i]);
        return;
    }
    assert(writing->posts[i].user > 0);
    buffer_append_format(sql, "(%" PRIu64 ",%" PRIu64 ",", writing->posts[i].user,
                         writing->posts[i].id);
    append_hex(sql, writing->posts[i].json);
    buffer_append_char(sql, ')');
}

/* Builds the statement for as many rows from *at on as fit, and advances *at. */
static void make_insert(struct archive *archive, const struct writing *writing, size_t *at)
{
    struct buffer *sql = &archive->sql;

    buffer_clear(sql);
    buffer_append_str(sql, "INSERT INTO sluice_posts (user, id, json) VALUES ");
    append_row(sql, writing, (*at)++);
    while (*at < writing->count && sql->size < STATEMENT_BYTES && !sql->failed) {
        buffer_append_char(sql, ',');
        append_row(sql, writing, (*at)++);
    }
    buffer_append_str(sql, writing->on_duplicate);
}

/* The first statement, for the rows up to `at`, has been built, and there are more. */
static int write_in_transaction(struct archive *archive, const struct writing *writing, size_t at,
                                struct failure *reterr)
{
    int r;

    r = run_text(archive, "START TRANSACTION", NULL, reterr);
    if (r == 0)
        r = run_made(archive, NULL, reterr);
    while (r == 0 && at < writing->count) {
        make_insert(archive, writing, &at);
        r = run_made(archive, NULL, reterr);
    }
    if (r == 0)
        r = run_text(archive, "COMMIT", NULL, reterr);
    if (r < 0 && archive->link.trouble != SL_MYSQL_TROUBLE_LOST)
        run_text(archive, "ROLLBACK", NULL, NULL); /* also if the server has already rolled back */
    return r;
}

static int write_rows(struct archive *archive, void *arguments, struct failure *reterr)
{
    const struct writing *writing = arguments;
    size_t at = 0;

    if (writing->count == 0)
        return 0;
    make_insert(archive, writing, &at);
    if (at == writing->count)
        return run_made(archive, NULL, reterr);
    return write_in_transaction(archive, writing, at, reterr);
}

static int mysql_store(struct sl_archive *base, const struct sl_archive_post *posts, size_t count,
                       struct failure *reterr)
{
    struct writing writing = {" ON DUPLICATE KEY UPDATE id = id", posts, NULL, count};

    return call_with_retries((struct archive *)base, write_rows, &writing, reterr);
}

static int mysql_erase(struct sl_archive *base, const uint64_t *posts, size_t count,
                       struct failure *reterr)
{
    struct writing writing = {" ON DUPLICATE KEY UPDATE user = 0, json = NULL", NULL, posts, count};

    return call_with_retries((struct archive *)base, write_rows, &writing, reterr);
}

/* ---- reading ---- */

struct reading {
    uint64_t user, before;
    size_t limit;
    const uint64_t *posts; /* ids to find */
    size_t count;
    struct sl_archive_page *page;
};

/* The strings of the post belong to the result. */
static int read_row(MYSQL_RES *rows, struct sl_archive_post *ret_post, struct failure *reterr)
{
    MYSQL_ROW row = fetch_row(rows, 3);
    const unsigned long *sizes = mysql_fetch_lengths(rows);

    if (!row || !sizes)
        return failure_set(reterr, -EBADMSG, "a post that cannot be read");
    ret_post->user = read_number(row[0]);
    ret_post->id = read_number(row[1]);
    ret_post->json = sl_slice(row[2], sizes[2]);
    return 0;
}

static int list_posts(struct archive *archive, void *arguments, struct failure *reterr)
{
    const struct reading *reading = arguments;
    MYSQL_RES *rows = NULL;
    int r;

    buffer_clear(&archive->sql);
    buffer_append_format(&archive->sql,
                         "SELECT user, id, json FROM sluice_posts WHERE user = %" PRIu64
                         " AND id < %" PRIu64 " ORDER BY id DESC LIMIT %zu",
                         reading->user, reading->before ? reading->before : UINT64_MAX,
                         reading->limit);
    r = run_made(archive, &rows, reterr);
    for (uint64_t left = rows ? mysql_num_rows(rows) : 0; r == 0 && left > 0; left--) {
        struct sl_archive_post post;

        r = read_row(rows, &post, reterr);
        if (r == 0)
            r = sl_archive_page_add(reading->page, &post, reterr);
    }
    mysql_free_result(rows);
    return r;
}

static int mysql_list(struct sl_archive *base, uint64_t user, uint64_t before, size_t limit,
                      struct sl_archive_page *page, struct failure *reterr)
{
    struct reading reading = {.user = user, .before = before, .limit = limit, .page = page};

    return call_with_retries((struct archive *)base, list_posts, &reading, reterr);
}

static int by_id(const void *a, const void *b)
{
    const struct sl_archive_post *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

/* The rows come in the order of ids; the page has them in the requested order. */
static int add_found(const struct reading *reading, MYSQL_RES *rows, struct failure *reterr)
{
    const size_t count = mysql_num_rows(rows);
    struct sl_archive_post *posts = mem_alloc(mem_array_size(count + 1, sizeof(*posts)));
    int r = posts ? 0 : no_memory(reterr);

    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_row(rows, &posts[i], reterr);
    for (size_t i = 0; r == 0 && i < reading->count; i++) {
        const struct sl_archive_post wanted = {.id = reading->posts[i]}, *found;

        found = bsearch(&wanted, posts, count, sizeof(*posts), by_id);
        if (found)
            r = sl_archive_page_add(reading->page, found, reterr);
    }
    mem_free(posts);
    return r;
}

static int find_posts(struct archive *archive, void *arguments, struct failure *reterr)
{
    const struct reading *reading = arguments;
    struct buffer *sql = &archive->sql;
    MYSQL_RES *rows = NULL;
    int r;

    if (reading->count == 0)
        return 0;
    buffer_clear(sql);
    buffer_append_format(
        sql, "SELECT user, id, json FROM sluice_posts WHERE user > 0 AND id IN (%" PRIu64,
        reading->posts[0]);
    for (size_t i = 1; i < reading->count; i++)
        buffer_append_format(sql, ",%" PRIu64, reading->posts[i]);
    buffer_append_str(sql, ") ORDER BY id");
    r = run_made(archive, &rows, reterr);
    if (r == 0)
        r = add_found(reading, rows, reterr);
    mysql_free_result(rows);
    return r;
}

static int mysql_find(struct sl_archive *base, const uint64_t *posts, size_t count,
                      struct sl_archive_page *page, struct failure *reterr)
{
    struct reading reading = {.posts = posts, .count = count, .page = page};

    return call_with_retries((struct archive *)base, find_posts, &reading, reterr);
}

/* ---- opening and closing ---- */

static int mysql_check(const char *rest, struct failure *reterr)
{
    struct sl_mysql_address address;
    int r = sl_mysql_address_parse(sl_slice_str(rest), &address, reterr);

    explicit_bzero(&address, sizeof(address));
    return r;
}

static void close_archive(struct sl_archive *base)
{
    struct archive *archive = (struct archive *)base;

    sl_mysql_link_close(&archive->link);
    buffer_done(&archive->sql);
    explicit_bzero(&archive->address, sizeof(archive->address));
    mem_free(archive);
}

static int open_archive(const char *rest, const char *database_id, enum sl_archive_mode mode,
                        struct sl_archive **ret_archive, struct failure *reterr)
{
    struct archive *archive = mem_zalloc(sizeof(*archive));
    struct failure why;
    int r;

    if (!archive)
        return no_memory(reterr);
    archive->base.backend = &sl_archive_mysql;
    archive->link = SL_MYSQL_LINK_INIT;
    archive->sql = BUFFER_INIT;
    archive->may_write = mode != SL_ARCHIVE_READ;
    archive->is_anyones = !database_id;
    snprintf(archive->database_id, sizeof(archive->database_id), "%s",
             database_id ? database_id : "");
    r = sl_mysql_address_parse(sl_slice_str(rest), &archive->address, reterr);
    if (r == 0) {
        r = connect_to(archive, mode, &why);
        r = told(archive, r, &why, reterr);
    }
    if (r < 0)
        close_archive(&archive->base);
    else
        *ret_archive = &archive->base;
    return r;
}

const struct sl_archive_backend sl_archive_mysql = {
    .check = mysql_check,
    .open = open_archive,
    .close = close_archive,
    .verify = mysql_verify,
    .store = mysql_store,
    .erase = mysql_erase,
    .list = mysql_list,
    .find = mysql_find,
};
