/* What every kind of archive must do: the contracts of src/archive/archive.h, for each backend.
 *
 *     test_archive_kinds [sqlite|mysql] */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "src/archive/archive.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka_all.h"

enum { POSTS = 40, MANY = 3000, USER = 4096, OTHER = 8192 };

static const char OURS[] = "0123456789abcdef0123456789abcdef";
static const char *kind;
static struct archive_fixture fixture;
static struct failure failure;

static int start(void **state)
{
    (void)state;
    archive_fixture_init(&fixture, kind);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    archive_fixture_done(&fixture);
    return 0;
}

static int begin(void **state)
{
    (void)state;
    archive_fixture_empty(&fixture);
    return 0;
}

static struct sl_archive *must_open(void)
{
    struct sl_archive *archive;

    if (sl_archive_open(fixture.url, OURS, SL_ARCHIVE_MAKE, &archive, &failure) < 0)
        fail_msg("%s", failure.text);
    return archive;
}

static void store(struct sl_archive *archive, uint64_t id, uint64_t user, const char *json)
{
    const struct sl_archive_post post = {id, user, sl_slice_str(json)};

    assert_int_equal(sl_archive_store(archive, &post, 1, &failure), 0);
}

/* Returns the ids of a page, "3 2 1", and empties it. */
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
    static const char json[] =
        "{\"text\":\"na\xc3\xafve \xf0\x9f\x98\x80 \xff \\u0001 '); DROP TABLE posts; --\"}";
    const uint64_t ids[] = {7, 8};
    struct sl_archive *archive = must_open();
    struct sl_archive_page page;

    (void)state;
    store(archive, 7, USER, json);
    sl_archive_close(archive);
    assert_int_equal(sl_archive_open(fixture.url, OURS, SL_ARCHIVE_READ, &archive, &failure), 0);
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

static void test_an_erased_post_stays_erased_in_any_order(void **state)
{
    const uint64_t ids[] = {1, 2, 3};
    struct sl_archive *archive = must_open();

    (void)state;
    store(archive, 1, USER, "{}");
    store(archive, 2, USER, "{}");
    assert_int_equal(sl_archive_erase(archive, &ids[1], 2, &failure), 0);
    store(archive, 2, USER, "{}");
    store(archive, 3, USER, "{}"); /* erased before it was stored */
    assert_string_equal(list(archive, USER, 0, 9), "1");
    assert_string_equal(find(archive, ids, 3), "1");
    sl_archive_close(archive);
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

/* More than fits into a statement or a page, of all sizes. */
static void test_many_and_large_posts_are_stored_found_and_erased_at_once(void **state)
{
    static struct sl_archive_post posts[MANY];
    static uint64_t ids[MANY];
    static char text[60000];
    struct sl_archive *archive = must_open();
    struct sl_archive_page page;

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < MANY; i++) {
        ids[i] = MANY - i;
        posts[i] = (struct sl_archive_post){i + 1, USER,
                                            sl_slice(text, i % 100 == 7 ? sizeof(text) : i % 100)};
    }
    assert_int_equal(sl_archive_store(archive, posts, MANY, &failure), 0);
    assert_int_equal(sl_archive_find(archive, ids, MANY, &page, &failure), 0);
    assert_int_equal(page.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const struct sl_archive_post *post = &posts[ids[i] - 1];

        assert_int_equal(page.posts[i].id, ids[i]);
        assert_int_equal(page.posts[i].json.size, post->json.size);
        assert_memory_equal(page.posts[i].json.data, text, post->json.size);
    }
    sl_archive_page_done(&page);
    assert_int_equal(sl_archive_erase(archive, ids + 1, MANY - 2, &failure), 0);
    assert_int_equal(sl_archive_store(archive, posts, MANY, &failure), 0);
    assert_string_equal(list(archive, USER, 0, MANY), "3000 1");
    sl_archive_close(archive);
}

static void test_none_at_all_is_no_trouble(void **state)
{
    struct sl_archive *archive = must_open();

    (void)state;
    assert_int_equal(sl_archive_store(archive, NULL, 0, &failure), 0);
    assert_int_equal(sl_archive_erase(archive, NULL, 0, &failure), 0);
    assert_string_equal(find(archive, NULL, 0), "");
    assert_string_equal(list(archive, USER, 0, 9), "");
    sl_archive_close(archive);
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
                int r = sl_archive_open(fixture.url, OURS, SL_ARCHIVE_MAKE, &archive, &failure);

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

static void assert_refused(const char *database, enum sl_archive_mode mode, int error,
                           const char *text)
{
    struct sl_archive *archive = NULL;

    assert_int_equal(sl_archive_open(fixture.url, database, mode, &archive, &failure), error);
    assert_null(archive);
    if (!strstr(failure.text, text))
        fail_msg("'%s' does not say '%s'", failure.text, text);
}

static void test_readers_make_no_archive(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) /* nor was it created the first time */
        assert_refused(OURS, SL_ARCHIVE_READ, -ENOENT, "posts");
}

static void test_whoever_names_no_database_reads_any(void **state)
{
    struct sl_archive *archive = must_open();

    (void)state;
    store(archive, 1, USER, "{}");
    sl_archive_close(archive);
    assert_int_equal(sl_archive_open(fixture.url, NULL, SL_ARCHIVE_READ, &archive, &failure), 0);
    assert_string_equal(list(archive, USER, 0, 9), "1");
    sl_archive_close(archive);
}

static void test_the_archive_of_another_database_is_refused(void **state)
{
    (void)state;
    sl_archive_close(must_open());
    assert_refused("fedcba9876543210fedcba9876543210", SL_ARCHIVE_MAKE, -ESTALE,
                   "belongs to another database");
}

static void test_an_archive_of_a_later_version_is_refused(void **state)
{
    (void)state;
    sl_archive_close(must_open());
    archive_fixture_set_version(&fixture, 2);
    assert_refused(OURS, SL_ARCHIVE_MAKE, -ESTALE, "has version 2");
}

/* Does everything once; -ENOMEM, or 0. */
static int try_all(void)
{
    struct sl_archive_post posts[POSTS];
    const uint64_t first = 1;
    struct sl_archive_page page = SL_ARCHIVE_PAGE_INIT, found = SL_ARCHIVE_PAGE_INIT;
    struct sl_archive *archive = NULL;
    int r;

    for (uint64_t i = 0; i < POSTS; i++)
        posts[i] = (struct sl_archive_post){i + 1, USER, SL_SLICE("{}")};
    r = sl_archive_open(fixture.url, OURS, SL_ARCHIVE_MAKE, &archive, &failure);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_posts_of_a_user_come_newest_first_and_in_pages, begin),
        cmocka_unit_test_setup(test_a_post_comes_back_byte_for_byte_when_opened_again, begin),
        cmocka_unit_test_setup(test_storing_again_changes_nothing, begin),
        cmocka_unit_test_setup(test_an_erased_post_stays_erased_in_any_order, begin),
        cmocka_unit_test_setup(test_two_open_archives_see_each_others_posts, begin),
        cmocka_unit_test_setup(test_many_and_large_posts_are_stored_found_and_erased_at_once,
                               begin),
        cmocka_unit_test_setup(test_none_at_all_is_no_trouble, begin),
        cmocka_unit_test_setup(test_many_may_make_it_at_once, begin),
        cmocka_unit_test_setup(test_readers_make_no_archive, begin),
        cmocka_unit_test_setup(test_whoever_names_no_database_reads_any, begin),
        cmocka_unit_test_setup(test_the_archive_of_another_database_is_refused, begin),
        cmocka_unit_test_setup(test_an_archive_of_a_later_version_is_refused, begin),
        cmocka_unit_test_setup(test_memory_that_runs_out_is_told_and_nothing_leaks, begin),
    };

    kind = argc > 1 ? argv[1] : "sqlite";
    if (!archive_fixture_is_there(kind))
        return ARCHIVE_PLACE_SKIPPED;
    return cmocka_run_group_tests_name(kind, tests, start, stop);
}
