#include "gateway/http/http_bodies.h"
#include "tests/support/cmocka_all.h"

enum { MAX_BYTES = 4000, SHARE = MAX_BYTES / HTTP_BODIES_SHARE, LATER = HTTP_BODIES_GRACE_MS };

#define HERE      SL_SLICE("\x7f\0\0\1")
#define THERE     SL_SLICE("\x7f\0\0\2")
#define ELSEWHERE SL_SLICE("\x7f\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0")

static struct http_bodies bodies;
static struct http_body_share shares[8];

static int begin(void **state)
{
    (void)state;
    http_bodies_init(&bodies, MAX_BYTES);
    for (size_t i = 0; i < 8; i++)
        shares[i] = (struct http_body_share){.bytes = 0};
    return 0;
}

static struct http_body_share *grow(size_t i, size_t size, uint64_t now_ms)
{
    return http_bodies_grow(&bodies, &shares[i], size, now_ms);
}

static void test_small_bodies_are_not_counted(void **state)
{
    (void)state;
    assert_null(grow(0, 100 * MAX_BYTES, 0));
    assert_int_equal(bodies.bytes, 0);
    http_bodies_remove(&bodies, &shares[0]); /* it was never added */
}

static void test_an_address_gets_a_share(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], HERE, 0);
    http_bodies_add(&bodies, &shares[1], HERE, 0);
    assert_null(grow(0, SHARE / 2, 0));
    assert_null(grow(1, SHARE / 2, 0));
    assert_ptr_equal(grow(1, 1, 0), &shares[1]); /* nobody is slow yet */
}

static void test_other_addresses_are_not_counted_with_it(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], HERE, 0);
    http_bodies_add(&bodies, &shares[1], THERE, 0);
    http_bodies_add(&bodies, &shares[2], ELSEWHERE, 0); /* begins with the same bytes */
    for (size_t i = 0; i < 3; i++)
        assert_null(grow(i, SHARE, 0));
    assert_int_equal(bodies.bytes, 3 * SHARE);
}

static void test_without_an_address_there_is_no_share(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], SL_SLICE_NONE, 0);
    http_bodies_add(&bodies, &shares[1], SL_SLICE_NONE, 0);
    assert_null(grow(0, MAX_BYTES / 2, 0));
    assert_null(grow(1, MAX_BYTES / 2, 0));
    assert_ptr_equal(grow(1, 1, 0), &shares[1]);
}

static void test_what_shrinks_makes_room(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], HERE, 0);
    http_bodies_add(&bodies, &shares[1], HERE, 0);
    assert_null(grow(0, SHARE, 0));
    http_bodies_shrink(&bodies, &shares[0], 10);
    assert_int_equal(bodies.bytes, 10);
    assert_null(grow(1, SHARE - 10, 0));
    assert_ptr_equal(grow(0, 1, 0), &shares[0]);
    http_bodies_remove(&bodies, &shares[0]);
    assert_int_equal(bodies.bytes, SHARE - 10);
}

static void test_the_slowest_of_the_address_gives_way(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], HERE, 0);
    http_bodies_add(&bodies, &shares[1], HERE, 0);
    http_bodies_add(&bodies, &shares[2], THERE, 0); /* slower still, but from elsewhere */
    assert_null(grow(0, 10, 0));
    assert_null(grow(2, 1, 0));
    assert_ptr_equal(grow(1, SHARE, LATER), &shares[0]);
    http_bodies_remove(&bodies, &shares[0]);
    assert_null(grow(1, 0, LATER));
}

static void test_the_slowest_of_all_gives_way_once_all_is_full(void **state)
{
    (void)state;
    for (size_t i = 0; i < 5; i++)
        http_bodies_add(&bodies, &shares[i], SL_SLICE_NONE, 0);
    for (size_t i = 0; i < 4; i++)
        assert_null(grow(i, MAX_BYTES / 8 * (i + 1) / 2, 0));
    assert_ptr_equal(grow(4, MAX_BYTES, LATER), &shares[0]);
    http_bodies_remove(&bodies, &shares[0]);
    assert_ptr_equal(grow(4, 0, LATER), &shares[1]);
    for (size_t i = 1; i < 4; i++)
        http_bodies_remove(&bodies, &shares[i]);
    assert_null(grow(4, 0, LATER));
}

static void test_who_has_just_begun_is_not_slow(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], SL_SLICE_NONE, 0);
    http_bodies_add(&bodies, &shares[1], SL_SLICE_NONE, 1); /* nothing of it has come */
    assert_null(grow(0, MAX_BYTES, LATER));
    assert_ptr_equal(grow(0, 1, LATER), &shares[0]);
    assert_ptr_equal(grow(0, 1, LATER + 1), &shares[1]);
}

/* However much it sent before. */
static void test_who_stopped_is_slower_than_who_goes_on(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], HERE, 0);
    http_bodies_add(&bodies, &shares[1], HERE, 0);
    assert_null(grow(0, SHARE - 100, 0));
    for (uint64_t i = 1; i <= 10; i++)
        assert_null(grow(1, 10, i * 1000));
    assert_ptr_equal(grow(1, 10, 11000), &shares[0]);
}

static void test_what_is_removed_makes_room_once(void **state)
{
    (void)state;
    http_bodies_add(&bodies, &shares[0], HERE, 0);
    assert_null(grow(0, SHARE, 0));
    http_bodies_remove(&bodies, &shares[0]);
    http_bodies_remove(&bodies, &shares[0]);
    assert_int_equal(bodies.bytes, 0);
    assert_true(list_is_empty(&bodies.large));
}

#define BODIES_TEST(test) cmocka_unit_test_setup(test, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BODIES_TEST(test_small_bodies_are_not_counted),
        BODIES_TEST(test_an_address_gets_a_share),
        BODIES_TEST(test_other_addresses_are_not_counted_with_it),
        BODIES_TEST(test_without_an_address_there_is_no_share),
        BODIES_TEST(test_what_shrinks_makes_room),
        BODIES_TEST(test_the_slowest_of_the_address_gives_way),
        BODIES_TEST(test_the_slowest_of_all_gives_way_once_all_is_full),
        BODIES_TEST(test_who_has_just_begun_is_not_slow),
        BODIES_TEST(test_who_stopped_is_slower_than_who_goes_on),
        BODIES_TEST(test_what_is_removed_makes_room_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
