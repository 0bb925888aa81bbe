/* archive_sqlite.c - the archive as an SQLite file.
 *
 * There is one row for each post. A row whose `json` is NULL is an erased post; it stays to keep
 * out a late store. Erasing overwrites the text (secure_delete). With the write-ahead log others
 * can read while one writes. A store is durable when it returns (synchronous=FULL), because Redis
 * then forgets the posts. The log is copied into the file before each write, so that it never holds
 * more than the last write: on a full disk a long log could not be copied, and would keep the disk
 * full. `user_version` is the version of the schema. The first row of the table `archive` contains
 * the database's id, the second the identity (sl_archive_identity()); earlier versions read only
 * the first.
 *
 * SQLite does not notice if a file is removed or replaced while it is open. Therefore each read
 * first checks that the path still leads to it, and so does sl_archive_verify() after a write. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/alloc.h"
#include "src/archive/archive_backend.h"

enum {
    VERSION = 1,
    BUSY_MS = 10000,
    PAUSE_MS = 20,
    VERSION_SQL_SIZE = 64,
    IDENTITY_SQL_SIZE = 128
};

enum statement { BEGIN, COMMIT, ROLLBACK, STORE, ERASE, LIST, FIND, STATEMENTS };

static const char *const texts[STATEMENTS] = {
    [BEGIN] = "BEGIN IMMEDIATE",
    [COMMIT] = "COMMIT",
    [ROLLBACK] = "ROLLBACK",
    [STORE] = "INSERT INTO posts (id, user, json) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING",
    [ERASE] = "INSERT INTO posts (id) VALUES (?1) "
              "ON CONFLICT (id) DO UPDATE SET user = NULL, json = NULL",
    [LIST] = "SELECT id, user, json FROM posts WHERE user = ?1 AND id < ?2 AND json IS NOT NULL "
             "ORDER BY id DESC LIMIT ?3",
    [FIND] = "SELECT id, user, json FROM posts WHERE id = ?1 AND json IS NOT NULL",
};

static const char SCHEMA[] =
    "CREATE TABLE posts (id INTEGER PRIMARY KEY, user INTEGER, json TEXT);"
    "CREATE INDEX posts_of_user ON posts (user, id) WHERE json IS NOT NULL;"
    "CREATE TABLE archive (database TEXT NOT NULL);";

struct archive {
    struct sl_archive base;
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENTS];
};

static int error_of(int code)
{
    static const struct {
        int code, error;
    } rows[] = {
        {SQLITE_BUSY, -EAGAIN},    {SQLITE_LOCKED, -EAGAIN},   {SQLITE_FULL, -ENOSPC},
        {SQLITE_NOMEM, -ENOMEM},   {SQLITE_CORRUPT, -EBADMSG}, {SQLITE_NOTADB, -EBADMSG},
        {SQLITE_READONLY, -EROFS}, {SQLITE_CANTOPEN, -ENOENT}, {SQLITE_PERM, -EACCES},
        {SQLITE_ERROR, -EBADMSG}, /* from SQL that works elsewhere: the tables are not ours */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((code & 0xff) == rows[i].code)
            return rows[i].error;
    }
    return -EIO;
}

static int failed(const struct archive *archive, int code, struct failure *reterr)
{
    const char *path = sqlite3_db_filename(archive->db, "main");

    return failure_set(reterr, error_of(code), "the archive '%s': %s", path ? path : "",
                       sqlite3_errmsg(archive->db));
}

/* ---- statements ---- */

/* Runs a statement that returns no rows. */
static int run(struct archive *archive, enum statement statement, struct failure *reterr)
{
    int code = sqlite3_step(archive->statements[statement]);
    int r = code == SQLITE_DONE ? 0 : failed(archive, code, reterr);

    sqlite3_reset(archive->statements[statement]);
    sqlite3_clear_bindings(archive->statements[statement]);
    return r;
}

static int begin(struct archive *archive, struct failure *reterr)
{
    return run(archive, BEGIN, reterr);
}

/* Ends a transaction with the result `r`. Some failures have already rolled it back. */
static int end(struct archive *archive, int r, struct failure *reterr)
{
    if (r == 0)
        r = run(archive, COMMIT, reterr);
    if (r < 0 && !sqlite3_get_autocommit(archive->db))
        run(archive, ROLLBACK, NULL);
    return r;
}

static int read_rows(struct archive *archive, enum statement which, struct sl_archive_page *page,
                     struct failure *reterr)
{
    sqlite3_stmt *statement = archive->statements[which];
    int code, r = 0;

    while (r == 0 && (code = sqlite3_step(statement)) != SQLITE_DONE) {
        struct sl_archive_post post;

        if (code != SQLITE_ROW) {
            r = failed(archive, code, reterr);
            break;
        }
        post.id = (uint64_t)sqlite3_column_int64(statement, 0);
        post.user = (uint64_t)sqlite3_column_int64(statement, 1);
        post.json.data = (const char *)sqlite3_column_text(statement, 2);
        post.json.size = (size_t)sqlite3_column_bytes(statement, 2);
        r = post.json.data ? sl_archive_page_add(page, &post, reterr)
                           : failure_set(reterr, -ENOMEM, "out of memory");
    }
    sqlite3_reset(statement);
    return r;
}

/* ---- open ---- */

static int execute(struct archive *archive, const char *sql, struct failure *reterr)
{
    int code = sqlite3_exec(archive->db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? 0 : failed(archive, code, reterr);
}

/* The single value of a query; `room` is "" if there is none. */
static int ask(struct archive *archive, const char *sql, char *room, size_t size,
               struct failure *reterr)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(archive->db, sql, -1, &statement, NULL);
    const unsigned char *text = NULL;

    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        text = sqlite3_column_text(statement, 0);
    snprintf(room, size, "%s", text ? (const char *)text : "");
    if (code == SQLITE_ROW || code == SQLITE_DONE)
        code = SQLITE_OK;
    else
        failed(archive, code, reterr);
    sqlite3_finalize(statement);
    return code == SQLITE_OK ? 0 : error_of(code);
}

/* In a new file. */
static int make(struct archive *archive, const char *database_id, struct failure *reterr)
{
    char sql[VERSION_SQL_SIZE];
    sqlite3_stmt *statement = NULL;
    int code, r;

    snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", VERSION);
    r = execute(archive, SCHEMA, reterr);
    if (r == 0)
        r = execute(archive, sql, reterr);
    if (r < 0)
        return r;
    code = sqlite3_prepare_v2(archive->db, "INSERT INTO archive (database) VALUES (?1)", -1,
                              &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_bind_text(statement, 1, database_id, -1, SQLITE_STATIC);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code != SQLITE_DONE)
        r = failed(archive, code, reterr);
    sqlite3_finalize(statement);
    return r;
}

static int is_empty(struct archive *archive, bool *ret_is_empty, struct failure *reterr)
{
    char tables[16];
    int r;

    r = ask(archive, "SELECT count(*) FROM sqlite_schema", tables, sizeof(tables), reterr);
    *ret_is_empty = r == 0 && strcmp(tables, "0") == 0;
    return r;
}

/* SQLite does not wait by itself if several processes do this at once. */
static int use_write_ahead_log(struct archive *archive, struct failure *reterr)
{
    int r = -EAGAIN;

    for (int waited_ms = 0; r == -EAGAIN && waited_ms < BUSY_MS; waited_ms += PAUSE_MS) {
        if (waited_ms > 0)
            sqlite3_sleep(PAUSE_MS);
        r = execute(archive, "PRAGMA journal_mode = WAL", reterr);
    }
    return r;
}

/* Reads the identity. With `may_make`, creates one if there is none. */
static int identify(struct archive *archive, bool may_make, struct failure *reterr)
{
    static const char read[] = "SELECT database FROM archive WHERE rowid = 2";
    char *identity = archive->base.identity;
    char sql[IDENTITY_SQL_SIZE];
    int r = ask(archive, read, identity, SL_ARCHIVE_IDENTITY_SIZE, reterr);

    if (r < 0 || identity[0] != '\0' || !may_make)
        return r;
    sl_archive_make_identity(identity);
    snprintf(sql, sizeof(sql), "INSERT OR IGNORE INTO archive (rowid, database) VALUES (2, '%s')",
             identity);
    r = execute(archive, sql, reterr);
    return r < 0 ? r : ask(archive, read, identity, SL_ARCHIVE_IDENTITY_SIZE, reterr);
}

/* The first to find the file empty creates the tables; others wait meanwhile. */
static int make_where_none(struct archive *archive, const char *database_id, struct failure *reterr)
{
    bool is_new;
    int r;

    r = is_empty(archive, &is_new, reterr);
    if (r < 0 || !is_new)
        return r;
    r = use_write_ahead_log(archive, reterr);
    if (r == 0)
        r = execute(archive, "BEGIN IMMEDIATE", reterr);
    if (r < 0)
        return r;
    r = is_empty(archive, &is_new, reterr);
    if (r == 0 && is_new)
        r = make(archive, database_id, reterr);
    if (r == 0)
        r = execute(archive, "COMMIT", reterr);
    return r;
}

static int check(struct archive *archive, const char *database_id, struct failure *reterr)
{
    char version[16], database[64] = "", expected[16];
    const char *path = sqlite3_db_filename(archive->db, "main");
    int r;

    snprintf(expected, sizeof(expected), "%d", VERSION);
    r = ask(archive, "PRAGMA user_version", version, sizeof(version), reterr);
    if (r == 0 && strcmp(version, "0") == 0)
        return failure_set(reterr, -EBADMSG, "'%s' is no archive of Sluice", path);
    if (r == 0 && strcmp(version, expected) != 0)
        return failure_set(reterr, -ESTALE, "the archive '%s' has version %s, not %d", path,
                           version, VERSION);
    if (r == 0)
        r = ask(archive, "SELECT database FROM archive WHERE rowid = 1", database, sizeof(database),
                reterr);
    if (r == 0 && database_id && strcmp(database, database_id) != 0)
        return failure_set(reterr, -ESTALE, "the archive '%s' belongs to another database", path);
    return r;
}

static int prepare(struct archive *archive, struct failure *reterr)
{
    for (size_t i = 0; i < STATEMENTS; i++) {
        int code = sqlite3_prepare_v3(archive->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
                                      &archive->statements[i], NULL);

        if (code != SQLITE_OK)
            return failed(archive, code, reterr);
    }
    return 0;
}

static void sqlite_close(struct sl_archive *base)
{
    struct archive *archive = (struct archive *)base;

    for (size_t i = 0; i < STATEMENTS; i++)
        sqlite3_finalize(archive->statements[i]);
    sqlite3_close(archive->db);
    mem_free(archive);
}

static const char *path_of(const char *rest)
{
    return strncmp(rest, "//", 2) == 0 ? rest + 2 : rest;
}

static int sqlite_check(const char *rest, struct failure *reterr)
{
    const char *path = path_of(rest);

    if (path[0] != '\0' && (path == rest || path[0] == '/'))
        return 0;
    return failure_set(reterr, -EINVAL, "sqlite:%s names no file, as sqlite:/path/to/file does",
                       rest);
}

static int sqlite_open(const char *rest, const char *database_id, enum sl_archive_mode mode,
                       struct sl_archive **ret_archive, struct failure *reterr)
{
    const bool may_make = mode == SL_ARCHIVE_MAKE;
    const char *path = path_of(rest);
    struct archive *archive;
    int code, r;

    archive = mem_zalloc(sizeof(*archive));
    if (!archive)
        return failure_set(reterr, -ENOMEM, "out of memory");
    archive->base.backend = &sl_archive_sqlite;
    code = sqlite3_open_v2(
        path, &archive->db,
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (may_make ? SQLITE_OPEN_CREATE : 0), NULL);
    if (code != SQLITE_OK) {
        r = failure_set(reterr, error_of(code), "the archive '%s': %s", path,
                        sqlite3_errmsg(archive->db));
        goto fail;
    }
    sqlite3_busy_timeout(archive->db, BUSY_MS);
    r = execute(archive,
                "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; "
                "PRAGMA wal_autocheckpoint = 0",
                reterr);
    if (r == 0 && may_make)
        r = make_where_none(archive, database_id, reterr);
    if (r == 0)
        r = check(archive, database_id, reterr);
    if (r == 0)
        r = identify(archive, mode != SL_ARCHIVE_READ, reterr);
    if (r == 0)
        r = prepare(archive, reterr);
    if (r < 0)
        goto fail;
    *ret_archive = &archive->base;
    return 0;
fail:
    sqlite_close(&archive->base);
    return r;
}

/* ---- verifying ---- */

static int check_file(const struct archive *archive, struct failure *reterr)
{
    const char *path = sqlite3_db_filename(archive->db, "main");
    int has_moved = 0;

    sqlite3_file_control(archive->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    if (has_moved)
        return failure_set(reterr, -ESTALE,
                           "the archive '%s' has been removed or replaced while it was in use",
                           path);
    return 0;
}

static int sqlite_verify(struct sl_archive *base, struct failure *reterr)
{
    struct archive *archive = (struct archive *)base;
    const char *path = sqlite3_db_filename(archive->db, "main");
    char identity[SL_ARCHIVE_IDENTITY_SIZE];
    int r = check_file(archive, reterr);

    if (r == 0 && access(sqlite3_filename_wal(path), F_OK) < 0)
        r = failure_set(reterr, -ESTALE, "the write-ahead log of the archive '%s' has been removed",
                        path);
    if (r == 0)
        r = ask(archive, "SELECT database FROM archive WHERE rowid = 2", identity, sizeof(identity),
                reterr);
    if (r == 0 && strcmp(identity, base->identity) != 0)
        r = failure_set(reterr, -ESTALE, "the archive '%s' is another one than before", path);
    return r;
}

/* ---- writing ---- */

typedef int (*write_fn)(struct archive *archive, const void *posts, size_t count,
                        struct failure *reterr);

/* Copies the log into the file, except what others are reading or copying at the moment. */
static int empty_log(struct archive *archive, int mode, struct failure *reterr)
{
    int code = sqlite3_wal_checkpoint_v2(archive->db, NULL, mode, NULL, NULL);

    return code == SQLITE_OK || code == SQLITE_BUSY ? 0 : failed(archive, code, reterr);
}

static int write_once(struct archive *archive, write_fn write, const void *posts, size_t count,
                      struct failure *reterr)
{
    int r = empty_log(archive, SQLITE_CHECKPOINT_PASSIVE, reterr);

    if (r == 0)
        r = begin(archive, reterr);
    if (r == 0)
        r = end(archive, write(archive, posts, count, reterr), reterr);
    return r;
}

/* A write that found the disk full has left a log of its size behind, none of which is committed.
 * It is truncated; if that frees enough space, the write is repeated. */
static int write_all(struct archive *archive, write_fn write, const void *posts, size_t count,
                     struct failure *reterr)
{
    int r = write_once(archive, write, posts, count, reterr);

    if (r == -ENOSPC && empty_log(archive, SQLITE_CHECKPOINT_TRUNCATE, NULL) == 0)
        r = write_once(archive, write, posts, count, reterr);
    if (r == -ENOSPC)
        empty_log(archive, SQLITE_CHECKPOINT_TRUNCATE, NULL);
    return r;
}

static int write_posts(struct archive *archive, const void *data, size_t count,
                       struct failure *reterr)
{
    const struct sl_archive_post *posts = data;
    sqlite3_stmt *statement = archive->statements[STORE];
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        int code;

        sqlite3_bind_int64(statement, 1, (sqlite3_int64)posts[i].id);
        sqlite3_bind_int64(statement, 2, (sqlite3_int64)posts[i].user);
        code = sqlite3_bind_text64(statement, 3, posts[i].json.data, posts[i].json.size,
                                   SQLITE_STATIC, SQLITE_UTF8);
        r = code == SQLITE_OK ? run(archive, STORE, reterr) : failed(archive, code, reterr);
    }
    return r;
}

static int write_erased(struct archive *archive, const void *data, size_t count,
                        struct failure *reterr)
{
    const uint64_t *posts = data;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        sqlite3_bind_int64(archive->statements[ERASE], 1, (sqlite3_int64)posts[i]);
        r = run(archive, ERASE, reterr);
    }
    return r;
}

static int sqlite_store(struct sl_archive *base, const struct sl_archive_post *posts, size_t count,
                        struct failure *reterr)
{
    return write_all((struct archive *)base, write_posts, posts, count, reterr);
}

static int sqlite_erase(struct sl_archive *base, const uint64_t *posts, size_t count,
                        struct failure *reterr)
{
    return write_all((struct archive *)base, write_erased, posts, count, reterr);
}

/* ---- reading ---- */

static int sqlite_list(struct sl_archive *base, uint64_t user, uint64_t before, size_t limit,
                       struct sl_archive_page *page, struct failure *reterr)
{
    struct archive *archive = (struct archive *)base;
    sqlite3_stmt *statement = archive->statements[LIST];
    int r = check_file(archive, reterr);

    if (r < 0)
        return r;
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)user);
    sqlite3_bind_int64(statement, 2, before ? (sqlite3_int64)before : INT64_MAX);
    sqlite3_bind_int64(statement, 3, (sqlite3_int64)limit);
    return read_rows(archive, LIST, page, reterr);
}

static int sqlite_find(struct sl_archive *base, const uint64_t *posts, size_t count,
                       struct sl_archive_page *page, struct failure *reterr)
{
    struct archive *archive = (struct archive *)base;
    int r = check_file(archive, reterr);

    for (size_t i = 0; r == 0 && i < count; i++) {
        sqlite3_bind_int64(archive->statements[FIND], 1, (sqlite3_int64)posts[i]);
        r = read_rows(archive, FIND, page, reterr);
    }
    return r;
}

const struct sl_archive_backend sl_archive_sqlite = {
    .check = sqlite_check,
    .open = sqlite_open,
    .close = sqlite_close,
    .verify = sqlite_verify,
    .store = sqlite_store,
    .erase = sqlite_erase,
    .list = sqlite_list,
    .find = sqlite_find,
};
