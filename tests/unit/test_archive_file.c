/* The archive by itself: what it keeps, what it refuses, files that are none, memory that runs out.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "src/archive.h"
#include "tests/support/cmocka_all.h"

enum { POSTS = 40, USER = 4096, OTHER = 8192 };

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

/* The ids of a page, "3 2 1"; empties it. */
static const char *ids_of(struct sl_archive_page *page)
{
    static char text[1024];
    size_t size = 0;

    text[0] = '\0';
    for (size_t i = 0; i < page->count; i++)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%" PRIu64, i ? " " : "",
                                 page->posts[i].id);
    sl_archive_page_done(page);
    return text;
}

static const char *list(struct sl_archive *archive, uint64_t user, uint64_t before, size_t limit)
{
    struct sl_archive_page page;

    assert_int_equal(sl_archive_list(archive, user, before, limit, &page, &failure), 0);
    return ids_of(&page);
}

static const char *find(struct sl_archive *archive, const uint64_t *ids, size_t count)
{
    struct sl_archive_page page;

    assert_int_equal(sl_archive_find(archive, ids, count, &page, &failure), 0);
    return ids_of(&page);
}

static void test_posts_of_a_user_come_newest_first_and_in_pages(void **state)
{
    struct sl_archive *archive = must_open();

    (void)state;
    for (uint64_t id = 1; id <= 5; id++)
        store(archive, id, id == 4 ? OTHER : USER, "{}");
    assert_string_equal(list(archive, USER, 0, 2), "5 3");
    assert_string_equal(list(archive, USER, 3, 2), "2 1");
    assert_string_equal(list(archive, USER, 1, 2), "");
    assert_string_equal(list(archive, OTHER, 0, 9), "4");
    sl_archive_close(archive);
}

static void test_a_post_comes_back_byte_for_byte_when_opened_again(void **state)
{
    static const char json[] = "{\"text\":\"na\xc3\xafve \\u0001 '); DROP TABLE posts; --\"}";
    const uint64_t ids[] = {7, 8};
    struct sl_archive *archive = must_open();
    struct sl_archive_page page;

    (void)state;
    store(archive, 7, USER, json);
    sl_archive_close(archive);
    assert_int_equal(sl_archive_open(url, OURS, SL_ARCHIVE_READ, &archive, &failure), 0);
    assert_int_equal(sl_archive_find(archive, ids, 2, &page, &failure), 0);
    assert_int_equal(page.count, 1);
    assert_int_equal(page.posts[0].id, 7);
    assert_int_equal(page.posts[0].user, USER);
    assert_int_equal(page.posts[0].json.size, sizeof(json) - 1);
    assert_memory_equal(page.posts[0].json.data, json, sizeof(json) - 1);
    sl_archive_page_done(&page);
    sl_archive_close(archive);
}

static void test_storing_again_changes_nothing(void **state)
{
    const uint64_t id = 7;
    struct sl_archive *archive = must_open();
    struct sl_archive_page page;

    (void)state;
    store(archive, 7, USER, "{\"text\":\"first\"}");
    store(archive, 7, USER, "{\"text\":\"again\"}");
    assert_string_equal(list(archive, USER, 0, 9), "7");
    assert_int_equal(sl_archive_find(archive, &id, 1, &page, &failure), 0);
    assert_memory_equal(page.posts[0].json.data, "{\"text\":\"first\"}", 16);
    sl_archive_page_done(&page);
    sl_archive_close(archive);
}

static void test_what_was_erased_stays_so_whoever_comes_first(void **state)
{
    const uint64_t ids[] = {1, 2, 3};
    struct sl_archive *archive = must_open();

    (void)state;
    store(archive, 1, USER, "{}");
    store(archive, 2, USER, "{}");
    assert_int_equal(sl_archive_erase(archive, &ids[1], 2, &failure), 0);
    store(archive, 2, USER, "{}");
    store(archive, 3, USER, "{}"); /* erased before it came */
    assert_string_equal(list(archive, USER, 0, 9), "1");
    assert_string_equal(find(archive, ids, 3), "1");
    sl_archive_close(archive);
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

static void test_two_open_archives_see_each_others_posts(void **state)
{
    struct sl_archive *one = must_open(), *other = must_open();

    (void)state;
    store(one, 1, USER, "{}");
    store(other, 2, USER, "{}");
    assert_string_equal(list(one, USER, 0, 9), "2 1");
    sl_archive_close(one);
    sl_archive_close(other);
}

static void test_many_may_make_it_at_once(void **state)
{
    enum { PROCESSES = 6 };
    pid_t pids[PROCESSES];
    int status;

    for (int round = 0; round < 5; round++) {
        begin(state);
        fflush(NULL);
        for (int i = 0; i < PROCESSES; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                struct sl_archive *archive;
                int r = sl_archive_open(url, OURS, SL_ARCHIVE_MAKE, &archive, &failure);

                if (r < 0)
                    fprintf(stderr, "%s\n", failure.text);
                else
                    sl_archive_close(archive);
                _exit(r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
            }
        }
        for (int i = 0; i < PROCESSES; i++) {
            assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
        }
    }
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
        {"mysql://localhost/posts", "no archives of the kind 'mysql'"},
        {"sqlite:", "names no file"},
        {"sqlite://", "names no file"},
        {"sqlite://host/posts.db", "names no file"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cases[i].url, OURS, SL_ARCHIVE_MAKE, -EINVAL, cases[i].text);
}

static void test_readers_make_no_archive(void **state)
{
    (void)state;
    assert_refused(url, OURS, SL_ARCHIVE_READ, -ENOENT, "unable to open");
    assert_int_equal(access(path, F_OK), -1);
}

static void test_the_archive_of_another_database_is_refused(void **state)
{
    (void)state;
    sl_archive_close(must_open());
    assert_refused(url, "fedcba9876543210fedcba9876543210", SL_ARCHIVE_MAKE, -ESTALE,
                   "belongs to another database");
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

static void test_an_archive_of_a_later_version_is_refused(void **state)
{
    (void)state;
    sl_archive_close(must_open());
    write_file(path, 60, "\0\0\0\2", 4); /* user_version in the header of the file */
    assert_refused(url, OURS, SL_ARCHIVE_MAKE, -ESTALE, "has version 2");
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

/* Everything once; -ENOMEM, or 0. */
static int try_all(void)
{
    struct sl_archive_post posts[POSTS];
    const uint64_t first = 1;
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT, found = SL_ARCHIVE_PAGE_INIT;
    struct sl_archive *archive = NULL;
    int r;

    for (uint64_t i = 0; i < POSTS; i++)
        posts[i] = (struct sl_archive_post){i + 1, USER, SL_SLICE("{}")};
    r = sl_archive_open(url, OURS, SL_ARCHIVE_MAKE, &archive, &failure);
    if (r == 0)
        r = sl_archive_store(archive, posts, POSTS, &failure);
    if (r == 0)
        r = sl_archive_list(archive, USER, 0, POSTS, &page, &failure);
    if (r == 0)
        r = sl_archive_find(archive, &first, 1, &found, &failure);
    sl_archive_page_done(&page);
    sl_archive_page_done(&found);
    sl_archive_close(archive);
    return r;
}

static void test_memory_that_runs_out_is_told_and_nothing_leaks(void **state)
{
    uint64_t n = 0;
    int r;

    (void)state;
    do {
        mem_fail_after(n++);
        r = try_all();
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
    } while (r < 0);
    assert_in_range(n, POSTS, 10 * POSTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_posts_of_a_user_come_newest_first_and_in_pages, begin),
        cmocka_unit_test_setup(test_a_post_comes_back_byte_for_byte_when_opened_again, begin),
        cmocka_unit_test_setup(test_storing_again_changes_nothing, begin),
        cmocka_unit_test_setup(test_what_was_erased_stays_so_whoever_comes_first, begin),
        cmocka_unit_test_setup(test_the_text_of_an_erased_post_leaves_the_file, begin),
        cmocka_unit_test_setup(test_two_open_archives_see_each_others_posts, begin),
        cmocka_unit_test_setup(test_many_may_make_it_at_once, begin),
        cmocka_unit_test_setup(test_urls_that_name_no_archive_are_refused, begin),
        cmocka_unit_test_setup(test_readers_make_no_archive, begin),
        cmocka_unit_test_setup(test_the_archive_of_another_database_is_refused, begin),
        cmocka_unit_test_setup(test_a_file_that_is_no_archive_is_refused, begin),
        cmocka_unit_test_setup(test_an_archive_of_a_later_version_is_refused, begin),
        cmocka_unit_test_setup(test_a_damaged_file_is_told_not_believed, begin),
        cmocka_unit_test_setup(test_memory_that_runs_out_is_told_and_nothing_leaks, begin),
    };

    return cmocka_run_group_tests_name("archive_file", tests, make_folder, remove_folder);
}
