/* The index finds exactly what direct evaluation finds, whichever filters are added and removed. */
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "filters/filter_index_private.h"
#include "tests/support/filter_try.h"
#include "tests/support/random_filter.h"
#include "tests/support/rounds.h"

enum { SUBSCRIPTIONS_MAX = 400, ROUNDS = TEST_ROUNDS(4000) };

/* What the index should contain, in the simplest form. */
struct model {
    struct sl_filter_index *index;
    struct sl_words *words;
    struct sl_match_set *matches;
    struct sl_filter *filters[SUBSCRIPTIONS_MAX]; /* by subscription; NULL: none */
    size_t count, matched;
};

static struct model *model_new(void)
{
    struct model *model = calloc(1, sizeof(*model));

    model->index = sl_filter_index_new(TRY_SEED);
    model->words = sl_words_new(TRY_SEED);
    model->matches = sl_match_set_new();
    return model;
}

static void model_free(struct model *model)
{
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++)
        sl_filter_unref(model->filters[i]);
    sl_filter_index_free(model->index);
    sl_words_free(model->words);
    sl_match_set_free(model->matches);
    free(model);
}

/* Afterwards only the index and the model have a reference. */
static void model_add_take(struct model *model, struct sl_filter *filter)
{
    uint32_t subscription;

    assert_int_equal(sl_filter_index_add(model->index, filter, &subscription), 0);
    assert_true(subscription < SUBSCRIPTIONS_MAX);
    assert_null(model->filters[subscription]);
    model->filters[subscription] = filter;
    model->count++;
}

static void model_remove(struct model *model, uint32_t subscription)
{
    sl_filter_index_remove(model->index, subscription);
    sl_filter_unref(model->filters[subscription]);
    model->filters[subscription] = NULL;
    model->count--;
}

static void model_remove_one(struct model *model, struct random *random)
{
    uint32_t subscription = random_below(random, SUBSCRIPTIONS_MAX);

    while (!model->filters[subscription])
        subscription = (subscription + 1) % SUBSCRIPTIONS_MAX;
    model_remove(model, subscription);
}

/* Compares the index with evaluating each filter separately. */
static void model_check(struct model *model, const struct sl_event_view *event)
{
    bool found[SUBSCRIPTIONS_MAX] = {false};
    const uint32_t *subscriptions;
    size_t count;

    assert_int_equal(sl_words_read(model->words, event), 0);
    assert_int_equal(sl_filter_index_match(model->index, event, model->words, model->matches), 0);
    count = sl_match_set_count(model->matches);
    subscriptions = sl_match_set_subscriptions(model->matches);
    for (size_t i = 0; i < count; i++) {
        assert_false(found[subscriptions[i]]); /* each once */
        found[subscriptions[i]] = true;
    }
    for (size_t i = 0; i < SUBSCRIPTIONS_MAX; i++) {
        bool expected =
            model->filters[i] && sl_filter_matches(model->filters[i], event, model->words);

        assert_int_equal(found[i], expected);
    }
    model->matched += count;
}

static void run_rounds(struct random random)
{
    struct model *model = model_new();
    struct random_room *room = malloc(sizeof(*room));

    for (size_t round = 0; round < ROUNDS; round++) {
        struct sl_event_view event;
        bool grow = round / 500 % 2 == 0; /* the index grows and shrinks in turns */

        if (model->count < SUBSCRIPTIONS_MAX && random_below(&random, 4) < (grow ? 3 : 1))
            model_add_take(model, random_filter(&random, room));
        if (model->count > 0 && random_below(&random, 4) < (grow ? 1 : 3))
            model_remove_one(model, &random);
        event = random_event(&random, room);
        model_check(model, &event);
    }
    assert_true(model->matched > ROUNDS); /* otherwise this would prove nothing */
    free(room);
    model_free(model);
}

/* SLUICE_TEST_SEED repeats a run that failed. */
static void test_index_agrees_with_direct_evaluation_while_filters_come_and_go(void **state)
{
    const char *given = getenv("SLUICE_TEST_SEED");
    struct random random = {given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)};

    (void)state;
    print_message("SLUICE_TEST_SEED=%" PRIu64 "\n", random.state);
    run_rounds(random);
}

static void test_equal_filters_share_an_entry_and_each_subscription_is_found(void **state)
{
    const char *const tracks[] = {"cat dog,FOX", " fox , dog  cat", "fox,cat dog,dog cat", "fox"};
    struct model *model = model_new();
    struct sl_filter_index_stats stats;
    struct sl_event_view event = try_post("Fox!");

    (void)state;
    for (size_t i = 0; i < 4; i++)
        model_add_take(model, TRY_FILTER(.track = sl_slice_str(tracks[i])));
    sl_filter_index_stats(model->index, &stats);
    assert_int_equal(stats.subscriptions, 4);
    assert_int_equal(stats.entries, 2);
    model_check(model, &event);
    assert_int_equal(sl_match_set_count(model->matches), 4);
    model_remove(model, 0);
    model_check(model, &event);
    model_remove(model, 2);
    model_remove(model, 1);
    sl_filter_index_stats(model->index, &stats);
    assert_int_equal(stats.entries, 1);
    model_check(model, &event);
    assert_int_equal(sl_match_set_count(model->matches), 1);
    model_free(model);
}

static void test_numbers_are_dense_and_used_again(void **state)
{
    struct model *model = model_new();

    (void)state;
    assert_true(sl_filter_index_is_empty(model->index));
    for (uint32_t i = 0; i < 300; i++)
        model_add_take(model, TRY_FILTER(.track = SL_SLICE("x")));
    assert_non_null(model->filters[299]);
    assert_false(sl_filter_index_is_empty(model->index));
    model_remove(model, 7);
    model_add_take(model, TRY_FILTER(.track = SL_SLICE("y")));
    assert_non_null(model->filters[7]);
    for (uint32_t i = 0; i < 300; i++)
        model_remove(model, i);
    assert_true(sl_filter_index_is_empty(model->index));
    model_free(model);
}

static uint64_t candidates_of_match(struct model *model, const struct sl_event_view *event)
{
    struct sl_filter_index_stats before, after;

    sl_filter_index_stats(model->index, &before);
    model_check(model, event);
    sl_filter_index_stats(model->index, &after);
    return after.candidates - before.candidates;
}

/* Before the first event nothing is known about rarity, and each of these is filed under its longer
 * word, which is the wrong one. */
static void test_entries_that_are_looked_at_in_vain_move_to_a_rarer_word(void **state)
{
    struct model *model = model_new();
    struct buffer text = BUFFER_INIT;
    struct sl_event_view event;

    (void)state;
    for (int i = 0; i < 50; i++) {
        char track[64];

        snprintf(track, sizeof(track), "everyday%d rare%d", i, i);
        model_add_take(model, TRY_FILTER(.track = sl_slice_str(track)));
        buffer_append_format(&text, "everyday%d ", i);
    }
    event = try_post(buffer_str(&text));
    assert_int_equal(candidates_of_match(model, &event), 50);
    for (int i = 0; i < 100; i++)
        candidates_of_match(model, &event);
    assert_int_equal(candidates_of_match(model, &event), 0);

    buffer_append_str(&text, "rare7");
    event = try_post(buffer_str(&text));
    assert_int_equal(candidates_of_match(model, &event), 1);
    assert_int_equal(sl_match_set_count(model->matches), 1);
    buffer_done(&text);
    model_free(model);
}

static void test_what_shares_nothing_with_an_event_is_not_looked_at(void **state)
{
    struct model *model = model_new();
    struct sl_event_view event = try_post("nothing of this is asked for");

    (void)state;
    for (int i = 0; i < 300; i++) {
        char track[64];

        snprintf(track, sizeof(track), "word%d", i);
        model_add_take(model, TRY_FILTER(.track = sl_slice_str(track)));
    }
    assert_int_equal(candidates_of_match(model, &event), 0);
    event = try_post("word7 and word8");
    assert_int_equal(candidates_of_match(model, &event), 2);
    model_free(model);
}

/* A rule with a word is found by that word, however rare its language is. */
static void test_rules_of_a_language_alone_are_looked_at_by_language(void **state)
{
    const char *const rules[] = {"lang:ja", "lang:ja country:JP", "word lang:ga", "country:FR"};
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_index *index = sl_filter_index_new(TRY_SEED);
    struct sl_words *words = sl_words_new(TRY_SEED);
    struct sl_match_set *matches = sl_match_set_new();
    struct sl_filter_index_stats stats;
    struct sl_event_view event = try_post("something else");

    (void)state;
    limits.allows_wide = true;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        struct sl_filter_text text = {.rule = sl_slice_str(rules[i])};
        struct sl_filter *filter;
        uint32_t subscription;

        assert_int_equal(sl_filter_new(&text, &limits, &filter, NULL), 0);
        assert_int_equal(sl_filter_index_add(index, filter, &subscription), 0);
        sl_filter_unref(filter);
    }
    event.lang = SL_SLICE("ga");
    event.country = SL_SLICE("IE");
    assert_int_equal(sl_words_read(words, &event), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(sl_filter_index_match(index, &event, words, matches), 0);
    sl_filter_index_stats(index, &stats);
    assert_int_equal(stats.candidates, 0);
    event.lang = SL_SLICE("ja");
    event.country = SL_SLICE("FR");
    assert_int_equal(sl_filter_index_match(index, &event, words, matches), 0);
    assert_int_equal(sl_match_set_count(matches), 2);
    sl_match_set_free(matches);
    sl_words_free(words);
    sl_filter_index_free(index);
}

static void test_matches_are_right_when_their_count_wraps(void **state)
{
    struct model *model = model_new();
    struct sl_event_view event = try_post("cat");

    (void)state;
    model_add_take(model, TRY_FILTER(.track = SL_SLICE("cat,dog")));
    model->index->epoch = UINT32_MAX - 2;
    for (int i = 0; i < 6; i++) {
        model_check(model, &event);
        assert_int_equal(sl_match_set_count(model->matches), 1);
    }
    model_free(model);
}

/* What two runs of the same index must have in common after a failed addition. */
struct picture {
    struct sl_filter_index_stats stats;
    size_t matches;
};

static struct picture picture_of(struct sl_filter_index *index, struct sl_words *words,
                                 struct sl_match_set *matches, const struct sl_event_view *event)
{
    struct picture picture;

    assert_int_equal(sl_words_read(words, event), 0);
    assert_int_equal(sl_filter_index_match(index, event, words, matches), 0);
    sl_filter_index_stats(index, &picture.stats);
    picture.matches = sl_match_set_count(matches);
    return picture;
}

static struct sl_filter *filter_of_all_kinds(int variant)
{
    char track[64], follow[64];

    snprintf(track, sizeof(track), "cat dog%d,fox,a b c", variant);
    snprintf(follow, sizeof(follow), "1,%d,@alice", variant);
    return TRY_FILTER(.track = sl_slice_str(track), .follow = sl_slice_str(follow),
                      .locations = SL_SLICE("170,80,-170,90,0,0,0.01,0.01"),
                      .rule = SL_SLICE("url:example.com/a (x OR place:y) OR lang:en -z from:3 OR "
                                       "polygon:[170 9, -170 9, 180 20] OR \"x y\"~2"));
}

static void test_addition_without_memory_leaves_the_index_as_it_was(void **state)
{
    struct model *model = model_new();
    struct sl_event_view event = try_post("cat dog1 fox http://example.com/a x");
    uint32_t subscription;

    (void)state;
    for (int variant = 0; variant < 200; variant++) {
        struct sl_filter *filter = filter_of_all_kinds(variant);
        int r = -ENOMEM;

        for (uint64_t allowed = 0; r == -ENOMEM; allowed++) {
            struct picture before = picture_of(model->index, model->words, model->matches, &event);
            struct picture after;

            mem_fail_after(allowed);
            r = sl_filter_index_add(model->index, filter, &subscription);
            mem_fail_never();
            after = picture_of(model->index, model->words, model->matches, &event);
            if (r == 0)
                break;
            assert_int_equal(r, -ENOMEM);
            assert_int_equal(after.matches, before.matches);
            assert_int_equal(after.stats.entries, before.stats.entries);
            assert_int_equal(after.stats.subscriptions, before.stats.subscriptions);
        }
        assert_int_equal(r, 0);
        model->filters[subscription] = filter;
        model_check(model, &event);
    }
    for (uint32_t i = 0; i < 200; i++)
        model_remove(model, i);
    model_check(model, &event);
    model_free(model);
}

static void test_match_without_memory_says_so_and_finds_all_the_next_time(void **state)
{
    struct sl_filter_index *index = sl_filter_index_new(TRY_SEED);
    struct sl_words *words = sl_words_new(TRY_SEED);
    struct sl_match_set *matches = sl_match_set_new();
    struct sl_event_view event = try_post("cat dog fox");
    struct sl_filter *filter = TRY_FILTER(.track = SL_SLICE("cat,dog"));
    uint32_t subscription;
    int r = -ENOMEM;

    (void)state;
    assert_int_equal(sl_words_read(words, &event), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(sl_filter_index_add(index, filter, &subscription), 0);
    for (uint64_t allowed = 0; r == -ENOMEM; allowed++) {
        mem_fail_after(allowed);
        r = sl_filter_index_match(index, &event, words, matches);
        mem_fail_never();
        assert_int_equal(sl_match_set_count(matches), r == 0 ? 100 : 0);
    }
    assert_int_equal(r, 0);
    sl_filter_unref(filter);
    sl_match_set_free(matches);
    sl_words_free(words);
    sl_filter_index_free(index);
}

static void test_constructors_without_memory_give_nothing_and_leak_nothing(void **state)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_text text = {.track = SL_SLICE("Straße,#cat @b"),
                                  .follow = SL_SLICE("1,2,@x"),
                                  .locations = SL_SLICE("0,0,1.00000000000000000001,1"),
                                  .rule = SL_SLICE("(url:a.b/c OR from:@x) lang:en place:x OR "
                                                   "polygon:[0 0, 1 0, 0 1] \"b a c\"~1"),
                                  .language = SL_SLICE("zh,en")};
    struct sl_filter_index *index = NULL;
    struct sl_match_set *matches = NULL;
    struct sl_filter *filter = NULL;
    int r = -ENOMEM;

    (void)state;
    for (uint64_t allowed = 0; !index; allowed++) {
        mem_fail_after(allowed);
        index = sl_filter_index_new(1);
        mem_fail_never();
    }
    sl_filter_index_free(index);
    for (uint64_t allowed = 0; !matches; allowed++) {
        mem_fail_after(allowed);
        matches = sl_match_set_new();
        mem_fail_never();
    }
    sl_match_set_free(matches);
    for (uint64_t allowed = 0; r == -ENOMEM; allowed++) {
        struct sl_filter_error error = {0};

        mem_fail_after(allowed);
        r = sl_filter_new(&text, &limits, &filter, &error);
        mem_fail_never();
        assert_null(error.code);
    }
    assert_int_equal(r, 0);
    sl_filter_unref(filter);
}

/* --- memory of filters ------------------------------------------------------------------------ */

static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* As large as allowed, or as small; no two are the same. */
static struct sl_filter *users_filter(unsigned number, unsigned users)
{
    struct buffer text = BUFFER_INIT;
    struct sl_filter *filter;

    for (unsigned i = 0; i < users; i++)
        buffer_append_format(&text, "%s%u-%058u", i > 0 ? "," : "", number, i);
    filter = TRY_FILTER(.follow = buffer_slice(&text));
    buffer_done(&text);
    return filter;
}

static struct sl_filter *logins_filter(unsigned number, unsigned users)
{
    struct buffer text = BUFFER_INIT;
    struct sl_filter *filter;

    for (unsigned i = 0; i < users; i++)
        buffer_append_format(&text, ",@a%u_%u", number, i);
    filter = TRY_FILTER(.follow = buffer_slice(&text));
    buffer_done(&text);
    return filter;
}

static struct sl_filter *phrases_filter(unsigned number, unsigned phrases)
{
    struct buffer text = BUFFER_INIT;
    struct sl_filter *filter;

    for (unsigned i = 0; i < phrases; i++)
        buffer_append_format(&text, ",w%ux%u a%ux%u,", number, i, i, number);
    filter = TRY_FILTER(.track = buffer_slice(&text));
    buffer_done(&text);
    return filter;
}

static struct sl_filter *boxes_filter(unsigned number, unsigned boxes)
{
    struct buffer text = BUFFER_INIT;
    struct sl_filter *filter;

    for (unsigned i = 0; i < boxes; i++) {
        double west = -170.0 + (number * 25 + i) * 7 % 330, south = -80.0 + (number + i * 13) % 150;

        buffer_append_format(&text, "%s%.4f,%.4f,%.4f,%.4f", i > 0 ? "," : "", west, south,
                             west + 0.02 * (1 + i), south + 0.03 * (1 + i));
    }
    filter = TRY_FILTER(.locations = buffer_slice(&text));
    buffer_done(&text);
    return filter;
}

static struct sl_filter *polygon_filter(unsigned number, unsigned points)
{
    struct buffer text = BUFFER_INIT;
    struct sl_filter *filter;

    buffer_append_str(&text, "polygon:[");
    for (unsigned i = 0; i < points; i++) {
        double angle = 2 * M_PI * i / points;

        buffer_append_format(&text, "%s%.4f %.4f", i > 0 ? ", " : "",
                             -170.0 + number * 7 % 330 + (3 + number * 1e-4) * cos(angle),
                             -80.0 + number * 13 % 150 + sin(angle));
    }
    buffer_append_str(&text, "]");
    filter = TRY_FILTER(.rule = buffer_slice(&text));
    buffer_done(&text);
    return filter;
}

/* The sum of the reported sizes is at least what all of them take, and less than ten times as
 * much. */
static void test_a_filter_costs_no_more_than_is_told(void **state)
{
    static const struct {
        struct sl_filter *(*make)(unsigned number, unsigned size);
        unsigned count, size;
    } shapes[] = {
        {users_filter, 100, 5000}, {logins_filter, 60, 5000},   {phrases_filter, 800, 400},
        {boxes_filter, 1600, 25},  {phrases_filter, 100000, 1}, {polygon_filter, 2000, 100},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct sl_filter_index *index = sl_filter_index_new(TRY_SEED);
        size_t told = 0, before = resident_bytes(), grown;
        struct sl_filter_index_stats stats;

        for (unsigned number = 0; number < shapes[i].count; number++) {
            struct sl_filter *filter = shapes[i].make(number, shapes[i].size);
            uint32_t subscription;
            size_t cost;

            assert_int_equal(sl_filter_index_cost(index, filter, &cost), 0);
            assert_int_equal(sl_filter_index_add(index, filter, &subscription), 0);
            assert_int_equal(sl_filter_index_removal_bytes(index, subscription), cost);
            told += cost;
            sl_filter_unref(filter);
        }
        grown = resident_bytes() - before;
        sl_filter_index_stats(index, &stats);
        print_message("%zu: told %zu kB, index %zu kB, resident %zu kB\n", i, told / 1000,
                      (size_t)stats.bytes / 1000, grown / 1000);
        assert_int_equal(stats.cost, told);
        assert_true(told >= stats.bytes);
#ifndef __SANITIZE_ADDRESS__
        assert_true(told >= grown);
#endif
        assert_true(told < 10 * stats.bytes);
        while (stats.subscriptions > 0)
            sl_filter_index_remove(index, (uint32_t)--stats.subscriptions);
        sl_filter_index_stats(index, &stats);
        assert_int_equal(stats.cost, 0);
        sl_filter_index_free(index);
        malloc_trim(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_agrees_with_direct_evaluation_while_filters_come_and_go),
        cmocka_unit_test(test_equal_filters_share_an_entry_and_each_subscription_is_found),
        cmocka_unit_test(test_numbers_are_dense_and_used_again),
        cmocka_unit_test(test_entries_that_are_looked_at_in_vain_move_to_a_rarer_word),
        cmocka_unit_test(test_what_shares_nothing_with_an_event_is_not_looked_at),
        cmocka_unit_test(test_rules_of_a_language_alone_are_looked_at_by_language),
        cmocka_unit_test(test_matches_are_right_when_their_count_wraps),
        cmocka_unit_test(test_addition_without_memory_leaves_the_index_as_it_was),
        cmocka_unit_test(test_match_without_memory_says_so_and_finds_all_the_next_time),
        cmocka_unit_test(test_a_filter_costs_no_more_than_is_told),
        cmocka_unit_test(test_constructors_without_memory_give_nothing_and_leak_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
