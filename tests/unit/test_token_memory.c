#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/front/token_memory.h"
#include "tests/support/cmocka_all.h"

static struct token_hash hash_of(unsigned n)
{
    return token_memory_hash(sl_slice((char *)&n, sizeof(n)));
}

static void put(struct token_memory *memory, unsigned n, uint64_t begins_ms, uint64_t expires_ms)
{
    struct token token = {.begins_ms = begins_ms, .expires_ms = expires_ms, .scopes = n};
    struct token_hash hash = hash_of(n);

    token_memory_put(memory, &hash, begins_ms, &token);
}

static bool has(struct token_memory *memory, unsigned n, uint64_t now_ms)
{
    struct token_hash hash = hash_of(n);
    struct token token;

    if (!token_memory_find(memory, &hash, now_ms, &token))
        return false;
    assert_int_equal(token.scopes, n);
    return true;
}

static void test_a_token_is_known_between_its_beginning_and_its_end(void **state)
{
    struct token_memory *memory = token_memory_new(8);

    (void)state;
    put(memory, 1, 100, 200);
    assert_false(has(memory, 1, 99));
    assert_true(has(memory, 1, 100));
    assert_true(has(memory, 1, 199));
    assert_false(has(memory, 1, 200));
    assert_false(has(memory, 2, 100));
    token_memory_forget(memory);
    assert_false(has(memory, 1, 100));
    token_memory_free(memory);
}

static void test_the_least_recently_used_is_replaced(void **state)
{
    struct token_memory *memory = token_memory_new(4); /* one set */

    (void)state;
    for (unsigned n = 1; n <= 4; n++)
        put(memory, n, 0, 1000);
    assert_true(has(memory, 1, 1));
    put(memory, 5, 0, 1000);
    assert_false(has(memory, 2, 1));
    for (unsigned n = 1; n <= 5; n++)
        assert_int_equal(has(memory, n, 1), n != 2);
    put(memory, 6, 0, 10);
    put(memory, 7, 20, 1000); /* instead of 6, which has expired */
    assert_false(has(memory, 1, 20));
    for (unsigned n = 3; n <= 5; n++)
        assert_true(has(memory, n, 20));
    assert_true(has(memory, 7, 20));
    token_memory_free(memory);
}

static void test_its_room_is_bounded_and_may_be_none(void **state)
{
    struct token_memory *memory = token_memory_new(64);
    unsigned known = 0;

    (void)state;
    for (unsigned n = 1; n <= 10000; n++)
        put(memory, n, 0, 1000);
    for (unsigned n = 1; n <= 10000; n++)
        known += has(memory, n, 1);
    assert_in_range(known, 32, 64);
    token_memory_free(memory);
    memory = token_memory_new(0);
    put(memory, 1, 0, 1000);
    assert_false(has(memory, 1, 1));
    token_memory_forget(memory);
    token_memory_free(memory);
    for (uint64_t n = 0; n < 2; n++) {
        mem_fail_after(n);
        assert_null(token_memory_new(64));
        mem_fail_never();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_is_known_between_its_beginning_and_its_end),
        cmocka_unit_test(test_the_least_recently_used_is_replaced),
        cmocka_unit_test(test_its_room_is_bounded_and_may_be_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
