/* Words near each other: "night train"~3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "filters/condition.h"
#include "tests/support/filter_try.h"
#include "tests/support/random_filter.h"
#include "tests/support/rounds.h"

static bool near_matches(const char *terms, int between, const char *text)
{
    struct sl_event_view event = try_post(text);
    char rule[512];

    snprintf(rule, sizeof(rule), "\"%s\"~%d", terms, between);
    return try_rule(rule, &event);
}

static void test_at_most_so_many_words_are_between_in_any_order(void **state)
{
    (void)state;
    for (int between = 0; between <= 6; between++) {
        char text[64] = "";

        for (int words = 0; words <= 8; words++) {
            char behind[128], before[128];

            snprintf(behind, sizeof(behind), "1 2 Night %sTRAIN 3", text);
            snprintf(before, sizeof(before), "train, %snight!", text);
            assert_int_equal(near_matches("night train", between, behind), words <= between);
            assert_int_equal(near_matches("night train", between, before), words <= between);
            strcat(text, "x ");
        }
    }
}

static void test_words_between_any_two_of_several_terms_are_counted_together(void **state)
{
    (void)state;
    assert_true(near_matches("tea milk sugar", 1, "milk and sugar, tea"));
    assert_false(near_matches("tea milk sugar", 1, "milk and sugar and tea"));
    assert_true(near_matches("tea milk sugar", 2, "milk and sugar and tea"));
    assert_true(near_matches("a b c d e f g h", 0, "x h g f e d c b a x"));
    assert_false(near_matches("a b c d e f g h", 0, "x h g f e d c b x a"));
    assert_true(near_matches("a b c d e f g h", 6, "a 1 b c 2 d 3 e f 4 g 5 6 h"));
    assert_false(near_matches("a b c d e f g h", 6, "a 1 b c 2 d 3 e f 4 g 5 6 7 h"));
}

static void test_each_term_has_words_of_its_own(void **state)
{
    (void)state;
    assert_false(near_matches("new new york", 6, "new york"));
    assert_true(near_matches("new new york", 1, "new york is new"));
    assert_false(near_matches("new new york", 0, "new york is new"));
    assert_false(near_matches("row row row", 6, "row row"));
    assert_true(near_matches("row row row", 0, "row row row"));
    assert_false(near_matches("北京 京都", 6, "北京都"));
    assert_true(near_matches("北京 京都", 1, "京都和北京"));
    assert_false(near_matches("a-b b-a", 6, "a b a"));
    assert_true(near_matches("a-b b-a", 0, "a b b a"));
    /* the longer term must get the first "a", although the shorter one could take it */
    assert_true(near_matches("a a-b", 0, "a b a"));
    assert_true(near_matches("a a-b", 0, "a a b"));
}

static void test_terms_are_keywords(void **state)
{
    (void)state;
    assert_true(near_matches("北京 火锅", 2, "北京的老火锅"));
    assert_false(near_matches("北京 火锅", 1, "北京的老火锅"));
    assert_false(near_matches("北京 火锅", 6, "京北火锅"));
    assert_true(near_matches("北京\u3000火锅", 0, "火锅北京"));
    assert_false(near_matches("北京 火锅", 6, "北 京火锅"));
    assert_true(near_matches("coca-cola light", 0, "light Coca Cola"));
    assert_false(near_matches("coca-cola light", 6, "light cola coca"));
    assert_true(near_matches("iPhone手机 5g", 1, "5G的iphone手机"));
    assert_false(near_matches("iPhone手机 5g", 6, "5G的iphone 手机"));
    assert_true(near_matches("STRASSE caf\u00e9", 3, "Straße im Cafe\u0301"));
}

static void test_all_terms_together_may_have_64_words(void **state)
{
    char terms[256] = "茶 ", text[256] = "";

    (void)state;
    for (int i = 0; i < 63; i++)
        strcat(terms, "奶");
    strcat(text, terms);
    assert_true(near_matches(terms, 0, text));
    strcpy(text + strlen(text) - strlen("奶"), "x");
    assert_false(near_matches(terms, 6, text));
}

static void test_signs_mean_nothing_and_emoji_are_words(void **state)
{
    (void)state;
    assert_true(near_matches("#tea @ada $abc", 0, "abc ada tea"));
    assert_true(near_matches("tea & - milk", 0, "tea milk"));
    assert_true(near_matches("tea ☕", 0, "☕tea"));
    assert_false(near_matches("tea milk", 1, "tea 👍🏽 milk"));
    assert_true(near_matches("tea milk", 2, "tea 👍🏽 milk"));
}

static void test_links_that_stand_together_are_one_word(void **state)
{
    (void)state;
    assert_true(near_matches("tea milk", 1, "tea http://a.b milk"));
    assert_false(near_matches("tea milk", 0, "tea http://a.b milk"));
    assert_true(near_matches("tea milk", 1, "tea http://a.b, https://c.d milk"));
    assert_true(near_matches("tea milk", 0, "http://a.b tea milk http://a.b"));
    assert_false(near_matches("example com", 6, "http://example.com"));
}

static void test_follows_and_places_have_no_words(void **state)
{
    struct sl_event_view event = try_post("x");

    (void)state;
    event.place = SL_SLICE("a b");
    assert_false(try_rule("\"a b\"~3", &event));
    event.type = SL_EVENT_FOLLOW;
    event.text = SL_SLICE_NONE;
    event.target = SL_SLICE("1");
    assert_false(try_match_once(
        TRY_FILTER(.rule = SL_SLICE("\"a b\"~3"), .types = SL_SLICE("follow")), &event));
}

/* --- compared with trying all ways to place the terms -------------------------------------- */

enum { TERMS_MAX = 8, TERM_MAX = 3, TEXT_MAX = 14 };

/* Words are letters. */
struct puzzle {
    char terms[TERMS_MAX][TERM_MAX + 1];
    unsigned count, between;
    char text[TEXT_MAX + 1];
};

static struct puzzle some_puzzle(struct random *random)
{
    struct puzzle puzzle = {.count = 2 + random_below(random, random_one_in(random, 4) ? 7 : 3),
                            .between = random_below(random, 7)};
    uint32_t size = random_below(random, TEXT_MAX + 1);

    for (unsigned i = 0; i < puzzle.count; i++) {
        uint32_t letters = random_one_in(random, 3) ? 1 + random_below(random, TERM_MAX) : 1;

        for (uint32_t j = 0; j < letters; j++)
            puzzle.terms[i][j] = (char)('a' + random_below(random, 3));
    }
    for (uint32_t i = 0; i < size; i++)
        puzzle.text[i] = (char)('a' + random_below(random, 4));
    return puzzle;
}

/* Puts term number `at` and the following ones at every free place. */
static bool can_be_placed(const struct puzzle *puzzle, unsigned at, unsigned taken)
{
    size_t size, text_size = strlen(puzzle->text);

    if (at == puzzle->count) {
        unsigned stretch = 32 - (unsigned)__builtin_clz(taken) - (unsigned)__builtin_ctz(taken);

        return stretch - (unsigned)__builtin_popcount(taken) <= puzzle->between;
    }
    size = strlen(puzzle->terms[at]);
    for (size_t i = 0; i + size <= text_size; i++) {
        unsigned place = ((1u << size) - 1) << i;

        if (!(taken & place) && memcmp(puzzle->text + i, puzzle->terms[at], size) == 0 &&
            can_be_placed(puzzle, at + 1, taken | place))
            return true;
    }
    return false;
}

static void append_spaced(char *line, const char *letters, char separator)
{
    size_t size = strlen(line);

    for (; *letters; letters++) {
        line[size++] = *letters;
        line[size++] = separator;
    }
    line[size] = '\0';
}

/* SLUICE_TEST_SEED repeats a run that failed. */
static void test_agrees_with_trying_every_way_to_place_the_terms(void **state)
{
    const char *given = getenv("SLUICE_TEST_SEED");
    struct random random = {given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)};
    unsigned matched = 0;

    (void)state;
    print_message("SLUICE_TEST_SEED=%llu\n", (unsigned long long)random.state);
    for (int round = 0; round < TEST_ROUNDS(20000); round++) {
        struct puzzle puzzle = some_puzzle(&random);
        bool wanted = can_be_placed(&puzzle, 0, 0);
        char terms[128] = "", text[128] = "";

        for (unsigned i = 0; i < puzzle.count; i++) {
            append_spaced(terms, puzzle.terms[i], '-');
            strcat(terms, " ");
        }
        append_spaced(text, puzzle.text, ' ');
        if (near_matches(terms, (int)puzzle.between, text) != wanted)
            fail_msg("\"%s\"~%u of %s: should be %d", terms, puzzle.between, text, wanted);
        matched += wanted;
    }
    assert_in_range(matched, TEST_ROUNDS(1000),
                    TEST_ROUNDS(19000)); /* otherwise this would prove nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_most_so_many_words_are_between_in_any_order),
        cmocka_unit_test(test_words_between_any_two_of_several_terms_are_counted_together),
        cmocka_unit_test(test_each_term_has_words_of_its_own),
        cmocka_unit_test(test_terms_are_keywords),
        cmocka_unit_test(test_all_terms_together_may_have_64_words),
        cmocka_unit_test(test_signs_mean_nothing_and_emoji_are_words),
        cmocka_unit_test(test_links_that_stand_together_are_one_word),
        cmocka_unit_test(test_follows_and_places_have_no_words),
        cmocka_unit_test(test_agrees_with_trying_every_way_to_place_the_terms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
