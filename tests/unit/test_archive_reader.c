/* The archive, read outside of the event loop. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gateway/api/archive_reader.h"
#include "tests/support/cmocka_all.h"

enum { USER = 4096 };

static char folder[64], path[96], url[128];
static uv_loop_t loop;
static struct archive_reader *reader;

struct asker {
    unsigned answers;
    int r;
    size_t count; /* number of posts */
    uint64_t first;
};

static int make_archive(void **state)
{
    const struct sl_archive_post posts[] = {{1, USER, SL_SLICE("{}")}, {2, USER, SL_SLICE("{}")}};
    struct sl_archive *archive;

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test_archive_reader.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/posts.db", folder);
    snprintf(url, sizeof(url), "sqlite:%s", path);
    assert_int_equal(sl_archive_open(url, "database", SL_ARCHIVE_MAKE, &archive, NULL), 0);
    assert_int_equal(sl_archive_store(archive, posts, 2, NULL), 0);
    sl_archive_close(archive);
    return 0;
}

static int remove_archive(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static int begin(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    reader = archive_reader_new(&loop, url, 60000);
    return reader ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    archive_reader_free(reader);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static void on_page(void *owner, int r, struct sl_archive_page *page, const struct failure *failure)
{
    struct asker *asker = owner;

    asker->answers++;
    asker->r = r;
    if (r < 0) {
        assert_true(failure->text[0]);
        return;
    }
    asker->count = page->count;
    asker->first = page->count > 0 ? page->posts[0].id : 0;
}

static void wait_for(const struct asker *asker)
{
    while (asker->answers == 0)
        uv_run(&loop, UV_RUN_ONCE);
}

static void test_answers_come_from_the_loop(void **state)
{
    struct asker list = {0}, find = {0};
    const uint64_t post = 1;

    (void)state;
    assert_int_equal(archive_reader_list(reader, USER, 0, 5, on_page, &list), 0);
    assert_int_equal(archive_reader_find(reader, &post, 1, on_page, &find), 0);
    assert_int_equal(list.answers + find.answers, 0);
    wait_for(&list);
    wait_for(&find);
    assert_int_equal(list.r, 0);
    assert_int_equal(list.count, 2);
    assert_int_equal(list.first, 2);
    assert_int_equal(find.r, 0);
    assert_int_equal(find.count, 1);
    assert_int_equal(find.first, 1);
}

static void test_whoever_waits_at_the_end_is_told_once(void **state)
{
    struct asker askers[3] = {{0}};

    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(archive_reader_list(reader, USER, 0, 5, on_page, &askers[i]), 0);
    archive_reader_free(reader);
    reader = NULL;
    uv_run(&loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(askers[i].answers, 1);
        assert_int_equal(askers[i].r, -ECANCELED);
    }
}

static void test_an_archive_that_comes_later_is_read_then(void **state)
{
    struct asker before = {0}, after = {0};
    char elsewhere[128];

    (void)state;
    snprintf(elsewhere, sizeof(elsewhere), "%s/away.db", folder);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(archive_reader_list(reader, USER, 0, 5, on_page, &before), 0);
    wait_for(&before);
    assert_int_equal(before.r, -ENOENT);
    assert_int_equal(rename(elsewhere, path), 0);
    assert_int_equal(archive_reader_list(reader, USER, 0, 5, on_page, &after), 0);
    wait_for(&after);
    assert_int_equal(after.r, 0);
    assert_int_equal(after.count, 2);
}

static void test_when_it_is_away_whoever_waits_is_told_so_at_once(void **state)
{
    struct asker askers[3] = {{0}};
    struct archive_reader *away;

    (void)state;
    away = archive_reader_new(&loop, "mysql://ada@/posts?socket=/nowhere/mysqld.sock", 60000);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(archive_reader_list(away, USER, 0, 5, on_page, &askers[i]), 0);
    wait_for(&askers[0]);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(askers[i].answers, 1);
        assert_int_equal(askers[i].r, -EAGAIN);
    }
    archive_reader_free(away);
}

static void test_a_request_that_waited_too_long_is_not_sent_to_the_archive(void **state)
{
    struct asker first = {0}, late = {0};
    struct archive_reader *hasty = archive_reader_new(&loop, url, 0);

    (void)state;
    assert_int_equal(archive_reader_list(hasty, USER, 0, 5, on_page, &first), 0);
    assert_int_equal(archive_reader_list(hasty, USER, 0, 5, on_page, &late), 0);
    wait_for(&late);
    assert_int_equal(first.r, 0);
    assert_int_equal(first.count, 2);
    assert_int_equal(late.r, -EAGAIN);
    archive_reader_free(hasty);
}

static void test_no_more_than_some_may_wait(void **state)
{
    enum { MANY = 1000 };
    static struct asker askers[MANY];
    unsigned accepted = 0, refused = 0;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        int r = archive_reader_list(reader, USER, 0, 5, on_page, &askers[i]);

        assert_true(r == 0 || r == -EAGAIN);
        accepted += r == 0;
        refused += r == -EAGAIN;
    }
    assert_in_range(accepted, 100, 500);
    assert_int_equal(accepted + refused, MANY);
    for (size_t i = 0; i < MANY; i++) {
        if (i < accepted)
            wait_for(&askers[i]);
        assert_int_equal(askers[i].answers, i < accepted ? 1 : 0);
    }
}

static void test_memory_that_runs_out_is_told(void **state)
{
    struct archive_reader *made = NULL;
    struct asker asker = {0};
    const uint64_t post = 1;

    (void)state;
    for (uint64_t n = 0; !made; n++) {
        mem_fail_after(n);
        made = archive_reader_new(&loop, url, 60000);
        mem_fail_never();
    }
    for (uint64_t n = 0; n < 2; n++) {
        mem_fail_after(n);
        assert_int_equal(archive_reader_find(made, &post, 1, on_page, &asker), -ENOMEM);
        mem_fail_never();
    }
    mem_fail_after(0);
    assert_int_equal(archive_reader_list(made, USER, 0, 5, on_page, &asker), -ENOMEM);
    mem_fail_never();
    archive_reader_free(made);
    assert_int_equal(asker.answers, 0);
}

#define READER_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        READER_TEST(test_answers_come_from_the_loop),
        READER_TEST(test_whoever_waits_at_the_end_is_told_once),
        READER_TEST(test_an_archive_that_comes_later_is_read_then),
        READER_TEST(test_when_it_is_away_whoever_waits_is_told_so_at_once),
        READER_TEST(test_a_request_that_waited_too_long_is_not_sent_to_the_archive),
        READER_TEST(test_no_more_than_some_may_wait),
        READER_TEST(test_memory_that_runs_out_is_told),
    };

    return cmocka_run_group_tests_name("archive_reader", tests, make_archive, remove_archive);
}
