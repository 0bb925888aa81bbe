/* Which terms rise, its sketches compared with exact numbers, and the terms of a text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/terms.h"
#include "gateway/counts/counter.h"
#include "gateway/counts/distinct.h"
#include "gateway/counts/people.h"
#include "gateway/counts/trend_slice.h"
#include "gateway/counts/trends.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"

static const uint64_t begin_ms = UINT64_C(1795219200000); /* 2026-11-21 */

/* --- terms --- */

static void assert_terms(const char *text, enum sl_term_kind kind, const char *expected)
{
    struct sl_event_view view = {.text = sl_slice_str(text)};
    struct sl_words *words = sl_words_new(1);
    struct buffer found = BUFFER_INIT;
    struct sl_term term;

    assert_int_equal(sl_words_read(words, &view), 0);
    for (size_t at = 0; sl_words_next_term(words, kind, &at, &term);) {
        buffer_append_slice(&found, term.text);
        buffer_append_slice(&found, term.path);
        buffer_append_char(&found, ' ');
    }
    assert_string_equal(buffer_str(&found), expected);
    buffer_done(&found);
    sl_words_free(words);
}

static void test_terms_are_those_that_filters_find(void **state)
{
    const char *text =
        "The #Rain in 東京都, @Mei火锅 @tom: $ABC https://www.Example.org/a/ http://b.org?x ☔ 茶!";

    (void)state;
    assert_terms(text, SL_TERM_HASHTAG, "rain ");
    assert_terms(text, SL_TERM_USER, "mei tom ");
    assert_terms(text, SL_TERM_CASHTAG, "abc ");
    assert_terms(text, SL_TERM_LINK, "example.org/a b.org ");
    assert_terms(text, SL_TERM_WORD, "the rain in 東京 京都 mei 火锅 tom abc ☔ 茶 ");
    assert_terms("", SL_TERM_WORD, "");
    assert_terms("北 京", SL_TERM_WORD, "北 京 ");
    assert_terms("北https://a.org京", SL_TERM_WORD, "北 京 ");
}

/* --- people --- */

static uint64_t user_hash(unsigned user)
{
    char name[16];

    return distinct_hash(sl_slice(name, (size_t)snprintf(name, sizeof(name), "%u", user)));
}

static void test_few_people_are_exact_and_many_within_the_stated_error(void **state)
{
    double sum = 0;
    unsigned sizes = 0;

    (void)state;
    for (unsigned size = 0; size < 200000; size += 1 + size / 5) {
        struct people people = {0};
        struct pool pool = {0};
        double error;

        for (unsigned round = 0; round < 2; round++)
            for (unsigned i = 0; i < size; i++)
                assert_int_equal(people_add(&people, &pool, user_hash(i)), 0);
        error = size ? ((double)people_count(&people) - size) / size : 0;
        if (size <= PEOPLE_EXACT)
            assert_int_equal(people_count(&people), size);
        assert_true(fabs(error) < 4 * PEOPLE_ERROR);
        sum += size > PEOPLE_EXACT ? error * error : 0;
        sizes += size > PEOPLE_EXACT;
        people_done(&people, &pool);
        pool_done(&pool);
    }
    assert_true(sqrt(sum / sizes) < 1.5 * PEOPLE_ERROR);
}

static uint64_t union_of(unsigned each, unsigned shared, bool *ret_is_estimated)
{
    struct people sets[PEOPLE_SETS_MAX] = {{.count = 0}};
    struct pool pool = {0};
    struct people_union all;
    uint64_t count;

    people_union_begin(&all);
    for (unsigned set = 0; set < PEOPLE_SETS_MAX; set++) {
        for (unsigned i = 0; i < each; i++)
            assert_int_equal(people_add(&sets[set], &pool, user_hash(set * (each - shared) + i)),
                             0);
        people_union_add(&all, &sets[set]);
    }
    pool_done(&pool);
    *ret_is_estimated = all.is_estimated;
    count = people_union_count(&all);
    return count;
}

static void test_a_union_is_exact_if_all_of_it_is(void **state)
{
    bool is_estimated;
    uint64_t count;

    (void)state;
    assert_int_equal(union_of(64, 10, &is_estimated), 12 * 54 + 10);
    assert_false(is_estimated);
    count = union_of(1000, 500, &is_estimated);
    assert_true(is_estimated && fabs((double)count - 6500) < 4 * PEOPLE_ERROR * 6500);
}

/* --- slices --- */

enum { WORDS = 30000, POSTS = 300000 };

/* Zipf's distribution: the word of rank n is about 1/n as frequent as the first. */
static unsigned draw(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)pow(WORDS, (double)(*random >> 11) / (double)(UINT64_C(1) << 53)) - 1;
}

static void add_term(struct trend_slice *slice, unsigned word, uint64_t post)
{
    char text[16];
    struct sl_slice term = sl_slice(text, (size_t)snprintf(text, sizeof(text), "w%u", word));

    assert_int_equal(trend_slice_add(slice, term, word * UINT64_C(0x9E3779B97F4A7C15), post,
                                     post * UINT64_C(0x9E3779B97F4A7C15)),
                     0);
}

/* As add_term() names it. */
static unsigned number_of(const struct trend_cell *cell)
{
    char text[16] = "";

    assert_true(cell->size < sizeof(text));
    memcpy(text, cell->text, cell->size);
    return (unsigned)atoi(text + 1);
}

static void close_slice(struct trend_slice *slice, size_t step_work)
{
    int r = 1;

    for (size_t work = step_work; r == 1; work = step_work)
        r = trend_slice_close(slice, &work);
    assert_int_equal(r, 0);
}

static void test_a_sketch_is_exact_up_to_its_stated_error(void **state)
{
    unsigned *exact = mem_zalloc(WORDS * sizeof(*exact)), missing = 0;
    bool *is_there = mem_zalloc(WORDS);

    (void)state;
    for (int is_closed = 0; is_closed < 2; is_closed++) {
        struct trend_slice slice = {0};
        uint64_t random = 1;

        memset(exact, 0, WORDS * sizeof(*exact));
        memset(is_there, 0, WORDS);
        for (uint64_t post = 1; post <= POSTS; post++) {
            unsigned word = draw(&random);

            add_term(&slice, word, post);
            add_term(&slice, word, post); /* a term counts once per post */
            exact[word]++;
        }
        assert_int_equal(slice.count, TREND_TERMS);
        assert_true(slice.error > 0 && slice.error <= POSTS / TREND_TERMS);
        if (is_closed) {
            close_slice(&slice, SIZE_MAX);
            assert_int_equal(slice.count, TREND_KEPT);
        }
        for (size_t i = 0; i < slice.count; i++) {
            const struct trend_cell *cell = &slice.cells[i];
            unsigned word = number_of(cell);

            is_there[word] = true;
            assert_in_range(exact[word], cell->posts - cell->error, cell->posts);
            assert_true(cell->error <= POSTS / TREND_TERMS);
            assert_true(cell->unseen <= cell->error);
            assert_true(people_count(&cell->people) + cell->unseen >= exact[word] * 3 / 4);
        }
        for (unsigned word = 0; word < WORDS; word++) {
            missing += !is_there[word];
            assert_true(is_there[word] || exact[word] <= slice.error);
            assert_true(is_there[word] || exact[word] <= slice.unseen); /* one post per user */
        }
        trend_slice_done(&slice);
    }
    assert_true(missing > WORDS);
    mem_free(exact);
    mem_free(is_there);
}

static int compare_texts(const void *left, const void *right)
{
    return trend_compare_terms(trend_cell_term(left), trend_cell_term(right));
}

static void assert_same(struct trend_slice *a, struct trend_slice *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->error, b->error);
    assert_int_equal(a->unseen, b->unseen);
    qsort(a->cells, a->count, sizeof(*a->cells), compare_texts);
    qsort(b->cells, b->count, sizeof(*b->cells), compare_texts);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(compare_texts(&a->cells[i], &b->cells[i]), 0);
        assert_int_equal(a->cells[i].posts, b->cells[i].posts);
        assert_int_equal(a->cells[i].users, b->cells[i].users);
        assert_int_equal(people_count(&a->cells[i].people), a->cells[i].users);
    }
}

static void test_nothing_depends_on_the_order_until_it_is_full(void **state)
{
    (void)state;
    for (unsigned terms = TREND_TERMS; terms <= TREND_TERMS; terms++) {
        struct trend_slice slices[2] = {{.count = 0}, {.count = 0}};

        for (unsigned i = 0; i < terms - 1; i++) {
            add_term(&slices[0], i, i + 1);
            add_term(&slices[0], i % 7, i + 1);
            add_term(&slices[1], terms - 2 - i, terms - 1 - i);
            add_term(&slices[1], (terms - 2 - i) % 7, terms - 1 - i);
        }
        assert_false(trend_slice_is_full(&slices[0]));
        close_slice(&slices[0], SIZE_MAX);
        close_slice(&slices[1], 1);
        assert_same(&slices[0], &slices[1]);
        trend_slice_done(&slices[0]);
        trend_slice_done(&slices[1]);
    }
}

/* --- trends --- */

static const struct trend_question question = {
    .window_ms = 300000, .of = 1 << TREND_OF_HASHTAGS, .limit = 3};

static int post(struct trends *trends, struct sl_words *words, uint64_t ms, const char *user,
                const char *text)
{
    static uint64_t n;
    struct event event = {.kind = EVENT_POST,
                          .id = sl_id_first_at(begin_ms + ms) + n++ % SL_ID_PER_MS,
                          .view = {.user = sl_slice_str(user), .text = sl_slice_str(text)}};
    int r = sl_words_read(words, &event.view);

    return r < 0 ? r : trends_add(trends, &event, words);
}

static const char *numbered(const char *before, unsigned number, char room[static 32])
{
    snprintf(room, 32, "%s%u", before, number);
    return room;
}

static void assert_told(struct trends *trends, uint64_t ms, const char *expected)
{
    struct buffer json = BUFFER_INIT;

    trends_print(trends, begin_ms + ms, &json);
    if (!strstr(buffer_str(&json), expected))
        fail_msg("%s\nhas no %s", json.data, expected);
    buffer_done(&json);
}

/* One user posts more different terms, more often, than there are counters. */
static void test_a_flood_of_terms_hides_no_trend_and_makes_none(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);
    char text[32], user[32];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        assert_int_equal(post(trends, words, i, "1", numbered("#flood", i % 9000, text)), 0);
        if (i % 500 == 0)
            assert_int_equal(post(trends, words, i, numbered("u", i, user), "#rain"), 0);
    }
    assert_told(trends, 30000, "\"terms\":[{\"term\":\"#rain\",");
    assert_told(trends, 30000, "}]"); /* and no other */
    sl_words_free(words);
    trends_free(trends);
}

/* --- what rises --- */

static void crowd(struct trends *trends, struct sl_words *words, uint64_t ms, unsigned users,
                  const char *text)
{
    char user[32];

    for (unsigned i = 0; i < users; i++)
        assert_int_equal(post(trends, words, ms, numbered("", i, user), text), 0);
}

/* The terms in their order, each followed by a space. */
static void assert_rising(struct trends *trends, uint64_t ms, const char *expected)
{
    struct buffer json = BUFFER_INIT, found = BUFFER_INIT;

    trends_print(trends, begin_ms + ms, &json);
    for (const char *at = buffer_str(&json); (at = strstr(at, "\"term\":\""));) {
        at += strlen("\"term\":\"");
        buffer_append_slice(&found, sl_slice(at, strcspn(at, "\"")));
        buffer_append_char(&found, ' ');
    }
    assert_string_equal(buffer_str(&found), expected);
    buffer_done(&json);
    buffer_done(&found);
}

static void test_those_with_the_most_users_are_told_in_order(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);

    (void)state;
    crowd(trends, words, 1, 2, "#d");
    crowd(trends, words, 1, 2, "#b");
    crowd(trends, words, 1, 3, "#c");
    crowd(trends, words, 1, 2, "#a");
    assert_rising(trends, 30000, "#c #a #b ");
    sl_words_free(words);
    trends_free(trends);
}

static void test_who_says_it_in_two_slices_is_one_user(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);

    (void)state;
    crowd(trends, words, 1, 1, "#one");
    crowd(trends, words, 1, 2, "#two");
    crowd(trends, words, 30000, 1, "#one");
    assert_rising(trends, 60000, "#two ");
    sl_words_free(words);
    trends_free(trends);
}

static void test_a_word_of_more_than_one_in_fifty_posts_before_is_left_out(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_WORDS);
    struct sl_words *words = sl_words_new(1);

    (void)state;
    crowd(trends, words, 1, 2, "the tea");
    crowd(trends, words, 1, 1, "the");
    crowd(trends, words, 1, TREND_STOP_POSTS - 3, "it");
    crowd(trends, words, 300000, 10, "the tea");
    assert_rising(trends, 600000, "tea ");
    sl_words_free(words);
    trends_free(trends);
}

/* Half of all posts are in the last slice before the window. */
static void test_what_is_expected_follows_from_all_that_was_before(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);

    (void)state;
    crowd(trends, words, 299999, 4, "#tea");
    crowd(trends, words, 299999, 96, "nothing");
    crowd(trends, words, 300000, 10, "#tea");
    crowd(trends, words, 300000, 90, "nothing");
    assert_told(trends, 600000, "\"users\":10,\"before\":4,\"score\":1.4,"); /* 5.5 / sqrt(14.5) */
    sl_words_free(words);
    trends_free(trends);
}

/* More terms than counters, each by three users. */
static void flood(struct trends *trends, struct sl_words *words, uint64_t ms)
{
    char text[64];

    for (unsigned i = 0; i < 2 * TREND_TERMS; i += 4) {
        snprintf(text, sizeof(text), "#f%u #f%u #f%u #f%u", i, i + 1, i + 2, i + 3);
        crowd(trends, words, ms, 3, text);
    }
}

static void test_what_the_past_may_have_had_does_not_rise(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);

    (void)state;
    crowd(trends, words, 1, 2, "#tea"); /* its counter is taken over */
    flood(trends, words, 1);
    crowd(trends, words, 300000, 3 * TREND_TERMS / 2, "nothing");
    crowd(trends, words, 300000, 2, "#tea");
    assert_rising(trends, 600000, "");
    assert_told(trends, 600000, "\"error\":6,"); /* each counter had two terms of three posts */
    sl_words_free(words);
    trends_free(trends);
}

static bool can_add(struct trends *trends, uint64_t ms, bool is_late)
{
    struct event event = {
        .kind = EVENT_POST, .id = sl_id_first_at(begin_ms + ms), .is_late = is_late};

    return trends_can_add(trends, &event);
}

static void test_a_late_post_can_be_added_while_the_order_does_not_matter(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);

    (void)state;
    crowd(trends, words, 30000, 1, "#tea");
    assert_true(can_add(trends, 25000, true));
    assert_false(can_add(trends, 24999, true)); /* the slice is closed */
    flood(trends, words, 30000);
    assert_false(can_add(trends, 30000, true));
    assert_true(can_add(trends, 30000, false));
    sl_words_free(words);
    trends_free(trends);
}

/* --- more terms than counters, compared with exact numbers --- */

enum { CORPUS_POSTS = 60000, CORPUS_WORDS = 10, RISING = 3, HALF = CORPUS_POSTS / 2 };

static unsigned corpus_before[WORDS], corpus_now[WORDS];

static unsigned draw_of_corpus(unsigned post, unsigned word, uint64_t *random)
{
    bool is_planted = post >= HALF && word == 0 && post % 50 < RISING;

    return is_planted ? WORDS - 1 - post % 50 : draw(random);
}

/* Ten minutes in which every post has a different author, so the number of users is that of posts.
 * The words have Zipf's frequencies; only three that are planted in the second half rise. */
static void add_corpus(struct trends *trends)
{
    struct sl_words *words = sl_words_new(1);
    uint64_t random = 1;

    memset(corpus_before, 0, sizeof(corpus_before));
    memset(corpus_now, 0, sizeof(corpus_now));
    for (unsigned i = 0; i < CORPUS_POSTS; i++) {
        unsigned *counts = i < HALF ? corpus_before : corpus_now, drawn[CORPUS_WORDS];
        char text[CORPUS_WORDS * 8], user[32];
        size_t size = 0;

        for (unsigned word = 0; word < CORPUS_WORDS; word++) {
            unsigned again = 0;

            drawn[word] = draw_of_corpus(i, word, &random);
            while (drawn[again] != drawn[word])
                again++;
            counts[drawn[word]] += again == word;
            size += (size_t)snprintf(text + size, sizeof(text) - size, "w%u ", drawn[word]);
        }
        assert_int_equal(post(trends, words, i * 10, numbered("u", i, user), text), 0);
    }
    sl_words_free(words);
}

static unsigned number_behind(const char *json, const char *name)
{
    const char *found = strstr(json, name);

    assert_non_null(found);
    return (unsigned)strtoul(found + strlen(name), NULL, 10);
}

/* Sets with more than 64 users in a slice are estimated: the tolerance is four times 6.5 %. */
static void assert_users(unsigned told, unsigned exact, unsigned error)
{
    assert_true(told <= exact + exact * 26 / 100);
    assert_true(told + error + exact * 26 / 100 >= exact);
}

static void test_beyond_its_counters_nothing_rises_that_does_not(void **state)
{
    struct trend_question twenty = {
        .window_ms = 300000, .of = 1 << TREND_OF_WORDS, .limit = TREND_LIMIT_DEFAULT};
    struct trends *trends = trends_new(&twenty, TREND_OF_WORDS);
    struct buffer json = BUFFER_INIT;
    unsigned count = 0, error;

    (void)state;
    add_corpus(trends);
    trends_print(trends, begin_ms + 600000, &json);
    error = number_behind(buffer_str(&json), "\"error\":");
    assert_true(error > 0);
    for (const char *at = buffer_str(&json); (at = strstr(at, "\"term\":\"w")); at++, count++) {
        unsigned word = number_behind(at, "\"term\":\"w"), posts = number_behind(at, "\"posts\":");
        unsigned now = corpus_now[word], before = corpus_before[word];
        double exact = ((double)now - before - 0.5) / sqrt((double)now + before + 0.5);

        assert_true(posts <= now + error && posts + error >= now);
        assert_users(number_behind(at, "\"users\":"), now, error);
        assert_users(number_behind(at, "\"before\":"), before, error);
        assert_true(strtod(strstr(at, "\"score\":") + 8, NULL) <= fmax(exact, 0) + 1.5);
        if (count < RISING)
            assert_true(word >= WORDS - RISING);
    }
    assert_true(count >= RISING);
    buffer_done(&json);
    trends_free(trends);
}

static void test_what_was_always_said_is_no_trend(void **state)
{
    struct trends *trends = trends_new(&question, TREND_OF_HASHTAGS);
    struct sl_words *words = sl_words_new(1);
    char user[32];

    (void)state;
    for (unsigned i = 0; i < 6000; i++) { /* twice as many posts in the second window */
        uint64_t ms = i < 2000 ? i * 150 : 300000 + (i - 2000) * 75;

        assert_int_equal(post(trends, words, ms, numbered("", i, user),
                              i % 10 == 0   ? "#always"
                              : i > 5950    ? "#new"
                              : i % 10 == 1 ? "#rare and #always"
                                            : "nothing"),
                         0);
    }
    assert_told(trends, 600000,
                "\"terms\":[{\"term\":\"#new\",\"posts\":45,\"users\":45,\"before\":0,");
    sl_words_free(words);
    trends_free(trends);
}

static void test_without_memory_nothing_is_wrong(void **state)
{
    struct sl_words *words = sl_words_new(1);

    (void)state;
    for (unsigned fail_at = 0;; fail_at++) {
        struct buffer json = BUFFER_INIT;
        struct trends *trends;
        bool is_done;

        mem_fail_after(fail_at);
        trends = trends_new(&question, TREND_OF_HASHTAGS);
        is_done = trends && post(trends, words, 1, "1", "#a #b") == 0 &&
                  post(trends, words, 30000, "2", "#a") == 0;
        if (is_done)
            trends_print(trends, begin_ms + 60000, &json);
        mem_fail_never();
        is_done = is_done && !json.failed;
        if (is_done)
            assert_non_null(strstr(buffer_str(&json), "\"#a\""));
        buffer_done(&json);
        trends_free(trends);
        if (is_done)
            break;
    }
    sl_words_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_terms_are_those_that_filters_find),
        cmocka_unit_test(test_few_people_are_exact_and_many_within_the_stated_error),
        cmocka_unit_test(test_a_union_is_exact_if_all_of_it_is),
        cmocka_unit_test(test_a_sketch_is_exact_up_to_its_stated_error),
        cmocka_unit_test(test_nothing_depends_on_the_order_until_it_is_full),
        cmocka_unit_test(test_a_flood_of_terms_hides_no_trend_and_makes_none),
        cmocka_unit_test(test_those_with_the_most_users_are_told_in_order),
        cmocka_unit_test(test_who_says_it_in_two_slices_is_one_user),
        cmocka_unit_test(test_a_word_of_more_than_one_in_fifty_posts_before_is_left_out),
        cmocka_unit_test(test_what_is_expected_follows_from_all_that_was_before),
        cmocka_unit_test(test_what_the_past_may_have_had_does_not_rise),
        cmocka_unit_test(test_a_late_post_can_be_added_while_the_order_does_not_matter),
        cmocka_unit_test(test_beyond_its_counters_nothing_rises_that_does_not),
        cmocka_unit_test(test_what_was_always_said_is_no_trend),
        cmocka_unit_test(test_without_memory_nothing_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
