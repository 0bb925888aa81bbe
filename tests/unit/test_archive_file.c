/* The archive as a file: URLs without a file, files that are no archives, damage, and what a file
 * keeps. Tests of all kinds of archives are in test_archive_kinds.c. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/archive/archive.h"
#include "tests/support/cmocka_all.h"

enum { POSTS = 40, USER = 4096 };
enum {
    LARGE_POSTS = 16,
    LARGE_BYTES = 40000,
    FILLER_BYTES = 2048 * 1024,
    LOG_BYTES_MAX = LARGE_POSTS * LARGE_BYTES * 3 / 2
};

static const char OURS[] = "0123456789abcdef0123456789abcdef";
static char folder[64], path[96], url[128];
static struct failure failure;

static void forget(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[128];

    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test_archive.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/posts.db", folder);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    forget();
    return rmdir(folder);
}

static int begin(void **state)
{
    (void)state;
    forget();
    return 0;
}

static struct sl_archive *must_open(void)
{
    struct sl_archive *archive;

    if (sl_archive_open(url, OURS, SL_ARCHIVE_MAKE, &archive, &failure) < 0)
        fail_msg("%s", failure.text);
    return archive;
}

static void store(struct sl_archive *archive, uint64_t id, uint64_t user, const char *json)
{
    const struct sl_archive_post post = {id, user, sl_slice_str(json)};

    assert_int_equal(sl_archive_store(archive, &post, 1, &failure), 0);
}

static bool file_holds(const char *name, const char *needle)
{
    static char bytes[1 << 20];
    int fd = open(name, O_RDONLY);
    ssize_t size = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));

    if (fd >= 0)
        close(fd);
    return size > 0 && memmem(bytes, (size_t)size, needle, strlen(needle));
}

static void test_the_text_of_an_erased_post_leaves_the_file(void **state)
{
    const uint64_t id = 1;
    struct sl_archive *archive = must_open();

    (void)state;
    store(archive, 1, USER, "{\"text\":\"regretted\"}");
    sl_archive_close(archive);
    assert_true(file_holds(path, "regretted"));
    archive = must_open();
    assert_int_equal(sl_archive_erase(archive, &id, 1, &failure), 0);
    sl_archive_close(archive);
    assert_false(file_holds(path, "regretted"));
}

static void assert_refused(const char *bad_url, const char *database, enum sl_archive_mode mode,
                           int error, const char *text)
{
    struct sl_archive *archive = NULL;

    assert_int_equal(sl_archive_open(bad_url, database, mode, &archive, &failure), error);
    assert_null(archive);
    if (!strstr(failure.text, text))
        fail_msg("'%s' does not say '%s'", failure.text, text);
}

static void test_urls_that_name_no_archive_are_refused(void **state)
{
    static const struct {
        const char *url, *text;
    } cases[] = {
        {"", "is not the URL of an archive"},
        {"/var/lib/posts.db", "is not the URL of an archive"},
        {"oracle://localhost/posts", "no archives of the kind 'oracle'"},
        {"sqlite:", "names no file"},
        {"sqlite://", "names no file"},
        {"sqlite://host/posts.db", "names no file"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cases[i].url, OURS, SL_ARCHIVE_MAKE, -EINVAL, cases[i].text);
}

static void write_file(const char *name, off_t offset, const char *text, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0600);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, text, size, offset), (ssize_t)size);
    close(fd);
}

static void test_a_file_that_is_no_archive_is_refused(void **state)
{
    char junk[4096];

    (void)state;
    memset(junk, 'x', sizeof(junk));
    write_file(path, 0, junk, sizeof(junk));
    assert_refused(url, OURS, SL_ARCHIVE_MAKE, -EBADMSG, "not a database");
}

static void test_a_damaged_file_is_told_not_believed(void **state)
{
    struct sl_archive *archive = must_open();
    struct sl_archive_page page;
    char junk[4096];
    int r;

    (void)state;
    for (uint64_t id = 1; id <= POSTS; id++)
        store(archive, id, USER, "{\"text\":\"something\"}");
    sl_archive_close(archive);
    memset(junk, 0xff, sizeof(junk));
    for (off_t at = 4096; at < 5 * 4096; at += 4096) /* all pages but the first */
        write_file(path, at, junk, sizeof(junk));
    r = sl_archive_open(url, OURS, SL_ARCHIVE_MAKE, &archive, &failure);
    if (r == 0) {
        r = sl_archive_list(archive, USER, 0, POSTS, &page, &failure);
        sl_archive_close(archive);
    }
    assert_int_equal(r, -EBADMSG);
    assert_non_null(strstr(failure.text, "malformed"));
}

/* ---- a full disk ---- */

static int store_large(struct sl_archive *archive, uint64_t first_id)
{
    static char json[LARGE_BYTES];
    struct sl_archive_post posts[LARGE_POSTS];

    memset(json, 'x', sizeof(json));
    for (size_t i = 0; i < LARGE_POSTS; i++)
        posts[i] = (struct sl_archive_post){first_id + i, USER, sl_slice(json, sizeof(json))};
    return sl_archive_store(archive, posts, LARGE_POSTS, &failure);
}

static bool file_is_written(const char *name, size_t size)
{
    static const char block[4096];
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    bool is_good = fd >= 0;

    for (size_t at = 0; is_good && at < size; at += sizeof(block))
        is_good = write(fd, block, sizeof(block)) == sizeof(block);
    if (fd >= 0)
        close(fd);
    return is_good;
}

static off_t log_size(void)
{
    char name[128];
    struct stat log;

    snprintf(name, sizeof(name), "%s-wal", path);
    return stat(name, &log) < 0 ? 0 : log.st_size;
}

/* Stores until the disk is full, then keeps trying. Returns the error. */
static const char *fill(struct sl_archive *archive, uint64_t *id, uint64_t *ret_stored)
{
    *ret_stored = 0;
    for (size_t refused = 0; refused < 10;) {
        int r = store_large(archive, *id);

        if (r == 0) {
            *id += LARGE_POSTS;
            ++*ret_stored;
        } else if (r == -ENOSPC) {
            refused++;
        } else {
            return failure.text;
        }
        if (log_size() > LOG_BYTES_MAX)
            return "the write-ahead log holds more than what was stored last";
    }
    return "";
}

static const char *fill_twice(void)
{
    char filler[128];
    struct sl_archive *archive;
    uint64_t id = 1, before, after;
    const char *why;

    snprintf(filler, sizeof(filler), "%s/filler", folder);
    if (!file_is_written(filler, FILLER_BYTES))
        return "no filler";
    if (sl_archive_open(url, OURS, SL_ARCHIVE_MAKE, &archive, &failure) < 0)
        return failure.text;
    why = fill(archive, &id, &before);
    unlink(filler);
    if (why[0] == '\0')
        why = fill(archive, &id, &after);
    if (why[0] == '\0' && (before == 0 || after * LARGE_POSTS * LARGE_BYTES < FILLER_BYTES / 2))
        why = "there is room again, and it is not used";
    sl_archive_close(archive);
    return why;
}

/* In a child process: a folder on its own disk of 4 MiB. Exits with 77 if mounting is not
 * permitted. */
static void run_on_a_small_disk(void)
{
    const char *why;

    if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        _exit(77);
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", folder, "tmpfs", 0, "size=4m") < 0)
        _exit(77);
    why = fill_twice();
    if (why[0] != '\0')
        fprintf(stderr, "%s\n", why);
    _exit(why[0] != '\0');
}

static void test_a_disk_that_was_full_is_used_again(void **state)
{
    pid_t child = fork();
    int status;

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        run_on_a_small_disk();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_text_of_an_erased_post_leaves_the_file, begin),
        cmocka_unit_test_setup(test_urls_that_name_no_archive_are_refused, begin),
        cmocka_unit_test_setup(test_a_file_that_is_no_archive_is_refused, begin),
        cmocka_unit_test_setup(test_a_damaged_file_is_told_not_believed, begin),
        cmocka_unit_test_setup(test_a_disk_that_was_full_is_used_again, begin),
    };

    return cmocka_run_group_tests_name("archive_file", tests, make_folder, remove_folder);
}
