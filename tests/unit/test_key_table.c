/* The table of keys and its posting lists, compared with plain arrays. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "filters/postings.h"
#include "filters/rarity.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/random_filter.h"

enum { KEYS = 20000 };

static uint64_t key_of(uint64_t number)
{
    return stable_hash(number ^ 0x5EED);
}

static void test_keys_are_found_until_they_are_removed(void **state)
{
    struct random random = {1};
    uint64_t *values = calloc(KEYS, sizeof(*values)); /* 0: not present */
    struct sl_key_table table;

    (void)state;
    assert_int_equal(sl_key_table_init(&table), 0);
    for (uint64_t round = 1; round <= 20 * KEYS; round++) {
        uint32_t number = random_below(&random, KEYS);
        struct sl_key_slot *slot = sl_key_table_find(&table, key_of(number));
        bool growing =
            round / KEYS % 4 != 3; /* every fourth round removes more keys than it adds */

        assert_int_equal(slot != NULL, values[number] != 0);
        if (slot) {
            assert_true(slot->value == values[number]);
            if (!growing || random_one_in(&random, 4)) {
                sl_key_table_remove(&table, slot);
                values[number] = 0;
            }
        } else if (growing) {
            assert_int_equal(sl_key_table_add(&table, key_of(number), round), 0);
            values[number] = round;
        }
    }
    for (uint32_t number = 0; number < KEYS; number++)
        assert_int_equal(sl_key_table_find(&table, key_of(number)) != NULL, values[number] != 0);
    sl_key_table_done(&table);
    free(values);
}

static size_t false_hits(const struct sl_key_table *table)
{
    size_t hits = 0;

    for (uint64_t number = KEYS; number < 11 * KEYS; number++) {
        uint64_t key = key_of(number);

        hits += sl_key_dir_may_have(sl_key_table_dir(table, key), key);
    }
    return hits;
}

static void test_bloom_filter_rules_out_nearly_all_other_keys_also_after_removals(void **state)
{
    struct sl_key_table table;

    (void)state;
    assert_int_equal(sl_key_table_init(&table), 0);
    for (uint64_t number = 0; number < KEYS; number++)
        assert_int_equal(sl_key_table_add(&table, key_of(number), 1), 0);
    assert_true(false_hits(&table) < 10 * KEYS / 100);
    for (uint64_t number = 0; number < KEYS; number++)
        sl_key_table_remove(&table, sl_key_table_find(&table, key_of(number)));
    assert_true(false_hits(&table) < 10 * KEYS / 100);
    sl_key_table_done(&table);
}

static void test_table_without_memory_stays_as_it_was(void **state)
{
    struct sl_key_table table;
    int failures = 0;

    (void)state;
    assert_int_equal(sl_key_table_init(&table), 0);
    for (uint64_t number = 0; number < KEYS; number++) {
        int r = -ENOMEM;

        for (uint64_t allowed = 0; r == -ENOMEM; allowed++) {
            mem_fail_after(allowed);
            r = sl_key_table_add(&table, key_of(number), number + 1);
            mem_fail_never();
            if (r == 0)
                break;
            failures++;
            assert_null(sl_key_table_find(&table, key_of(number)));
            for (uint64_t other = number > 300 ? number - 300 : 0; other < number; other++)
                assert_non_null(sl_key_table_find(&table, key_of(other)));
        }
    }
    assert_true(failures > 100);
    sl_key_table_done(&table);
}

/* --- postings ----------------------------------------------------------------------------- */

enum { ENTRIES = 2000, WORDS = 50 };

/* Entry i is filed once or not at all, under one of WORDS words. */
struct filing {
    bool filed;
    uint32_t word, position;
};

static void check_postings(const struct sl_postings *postings, const struct filing *filings)
{
    uint32_t counts[WORDS] = {0};

    for (uint32_t i = 0; i < ENTRIES; i++) {
        const struct sl_key_slot *slot;
        struct sl_posting posting;

        if (!filings[i].filed)
            continue;
        counts[filings[i].word]++;
        slot = sl_key_table_find(&postings->table, key_of(filings[i].word));
        assert_non_null(slot);
        posting = sl_posting_value_is_single(slot->value)
                      ? sl_posting_single(slot->value)
                      : sl_posting_list(slot->value)->items[filings[i].position];
        assert_int_equal(posting.entry, i);
        assert_int_equal(posting.ordinal, i % 7);
    }
    for (uint32_t word = 0; word < WORDS; word++)
        assert_int_equal(sl_postings_count(postings, key_of(word)), counts[word]);
}

static void file(struct sl_postings *postings, struct filing *filings, uint32_t entry,
                 uint32_t word)
{
    filings[entry].word = word;
    filings[entry].filed = true;
    assert_int_equal(sl_postings_add(postings, key_of(word), (struct sl_posting){entry, entry % 7},
                                     &filings[entry].position),
                     0);
}

static void unfile(struct sl_postings *postings, struct filing *filings, uint32_t entry)
{
    struct sl_posting moved;

    if (sl_postings_remove(postings, key_of(filings[entry].word), filings[entry].position, &moved))
        filings[moved.entry].position = filings[entry].position;
    filings[entry].filed = false;
}

static void test_postings_know_where_they_stand(void **state)
{
    struct filing *filings = calloc(ENTRIES, sizeof(*filings));
    struct random random = {2};
    struct sl_postings postings;

    (void)state;
    assert_int_equal(sl_postings_init(&postings), 0);
    for (int round = 0; round < 40000; round++) {
        uint32_t entry = random_below(&random, ENTRIES);
        uint32_t word = random_below(&random, 1 + random_below(&random, WORDS));

        if (filings[entry].filed)
            unfile(&postings, filings, entry);
        else if (round / 10000 % 2 == 0)
            file(&postings, filings, entry, word);
        if (round % 1000 == 0)
            check_postings(&postings, filings);
    }
    for (uint32_t entry = 0; entry < ENTRIES; entry++) {
        if (filings[entry].filed)
            unfile(&postings, filings, entry);
    }
    check_postings(&postings, filings);
    assert_int_equal(postings.list_bytes, 0);
    sl_postings_done(&postings);
    free(filings);
}

/* --- rarity ------------------------------------------------------------------------------- */

static void test_frequent_keys_count_higher_and_old_ones_fade(void **state)
{
    struct sl_rarity *rarity = calloc(1, sizeof(*rarity));
    struct random random = {3};

    (void)state;
    for (int i = 0; i < 100000; i++) {
        sl_rarity_see(rarity, key_of(random_below(&random, 10)), 1);
        sl_rarity_see(rarity, key_of(100 + random_below(&random, 50000)), 1);
    }
    for (uint64_t frequent = 0; frequent < 10; frequent++)
        assert_in_range(sl_rarity_count(rarity, key_of(frequent)), 9000, 11000);
    assert_in_range(sl_rarity_count(rarity, key_of(777)), 0, 20);
    assert_in_range(sl_rarity_count(rarity, key_of(99999999)), 0, 20);
    for (int i = 0; i < 4000000; i++)
        sl_rarity_see(rarity, key_of(1000000 + random_below(&random, 100000)), 1);
    assert_in_range(sl_rarity_count(rarity, key_of(0)), 0, 1500);
    free(rarity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_are_found_until_they_are_removed),
        cmocka_unit_test(test_bloom_filter_rules_out_nearly_all_other_keys_also_after_removals),
        cmocka_unit_test(test_table_without_memory_stays_as_it_was),
        cmocka_unit_test(test_postings_know_where_they_stand),
        cmocka_unit_test(test_frequent_keys_count_higher_and_old_ones_fade),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
