#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/replay_names.h"
#include "tests/support/cmocka_all.h"

static struct replay_user user(const char *id, const char *login)
{
    return (struct replay_user){sl_slice_str(id), sl_slice_str(login), SL_SLICE_NONE};
}

static struct person *person(struct replay_names *names, const char *id, const char *login)
{
    const struct replay_user named = user(id, login);

    return replay_person(names, &named);
}

static void test_person_is_known_by_id_and_by_login(void **state)
{
    struct replay_names *names = replay_names_new(10);
    struct person *ada = person(names, "7", "ada");

    (void)state;
    assert_string_equal(ada->login, "ada");
    assert_ptr_equal(person(names, "7", NULL), ada);
    assert_ptr_equal(person(names, NULL, "ada"), ada);
    assert_ptr_equal(replay_person_by_id(names, SL_SLICE("7")), ada);
    assert_null(replay_person_by_id(names, SL_SLICE("ada")));
    assert_null(replay_person_by_id(names, SL_SLICE_NONE));
    replay_names_free(names);
}

static void test_without_a_login_the_id_is_the_login(void **state)
{
    struct replay_names *names = replay_names_new(10);
    struct person *nine = person(names, "9", NULL);

    (void)state;
    assert_string_equal(nine->login, "9");
    assert_ptr_equal(person(names, "9", NULL), nine);
    assert_ptr_equal(person(names, NULL, "9"), nine);
    replay_names_free(names);
}

static void test_id_moves_with_a_login_that_is_given_later(void **state)
{
    struct replay_names *names = replay_names_new(10);
    struct person *old = person(names, "7", "ada"), *new;

    (void)state;
    new = person(names, "7", "lovelace");
    assert_ptr_not_equal(new, old);
    assert_ptr_equal(person(names, "7", NULL), new);
    assert_ptr_equal(person(names, NULL, "ada"), old);
    replay_names_free(names);
}

static void test_oldest_post_is_forgotten_first(void **state)
{
    struct replay_names *names = replay_names_new(3);
    struct person *ada = person(names, "7", "ada");
    char id[8];

    (void)state;
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "%d", i);
        replay_post_add(names, sl_slice_str(id), ada)->id = (uint64_t)i + 100;
    }
    for (int i = 0; i < 10; i++) {
        snprintf(id, sizeof(id), "%d", i);
        assert_int_equal(replay_post(names, sl_slice_str(id)) != NULL, i >= 7);
    }
    assert_int_equal(replay_post(names, SL_SLICE("9"))->id, 109);
    assert_null(replay_post(names, SL_SLICE_NONE));
    replay_names_free(names);
}

static void test_post_that_comes_again_is_on_its_way_again(void **state)
{
    struct replay_names *names = replay_names_new(1);
    struct person *ada = person(names, "7", "ada"), *bob = person(names, "8", "bob");
    struct known_post *post = replay_post_add(names, SL_SLICE("1"), ada);

    (void)state;
    post->id = 5;
    assert_ptr_equal(replay_post_add(names, SL_SLICE("1"), bob), post);
    assert_int_equal(post->id, 0);
    assert_ptr_equal(post->author, bob);
    replay_names_free(names);
}

static void test_names_survive_every_allocation_that_fails(void **state)
{
    const struct replay_user named = {SL_SLICE("7"), SL_SLICE("ada"), SL_SLICE("Ada")};
    struct known_post *post = NULL;

    (void)state;
    for (uint64_t n = 0; !post; n++) {
        struct replay_names *names;
        struct person *ada = NULL;

        assert_true(n < 40);
        mem_fail_after(n);
        names = replay_names_new(1);
        if (names)
            ada = replay_person(names, &named);
        if (ada && replay_post_add(names, SL_SLICE("1"), ada))
            post = replay_post_add(names, SL_SLICE("2"), ada);
        mem_fail_never();
        if (ada)
            assert_ptr_equal(replay_person(names, &named), ada);
        replay_names_free(names);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_person_is_known_by_id_and_by_login),
        cmocka_unit_test(test_without_a_login_the_id_is_the_login),
        cmocka_unit_test(test_id_moves_with_a_login_that_is_given_later),
        cmocka_unit_test(test_oldest_post_is_forgotten_first),
        cmocka_unit_test(test_post_that_comes_again_is_on_its_way_again),
        cmocka_unit_test(test_names_survive_every_allocation_that_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
