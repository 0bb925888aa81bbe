/* Selectors and restrictors, section by section of docs/filters.md. */
#include "tests/support/filter_try.h"

static void test_keyword_matches_by_whole_word_or_by_substring_of_unspaced_script(void **state)
{
    (void)state;
    assert_true(try_track("coca-cola", "Coca Cola!"));
    assert_false(try_track("coca-cola", "coca"));
    assert_true(try_track("中国", "在中国人"));
    assert_false(try_track("中国", "其中。国家"));
    assert_true(try_track("5g", "5G网络"));
    assert_false(try_track("phone", "iPhone"));
    assert_true(try_track("c++", "c"));
    assert_true(try_track("strasse", "Die Straße"));
}

static void test_phrase_matches_when_all_its_terms_do_in_any_order(void **state)
{
    (void)state;
    assert_true(try_track("重庆 火锅,hotpot", "火锅在重庆"));
    assert_false(try_track("重庆 火锅,hotpot", "火锅"));
    assert_true(try_track("重庆 火锅，hotpot", "HotPot"));
    assert_true(try_track(" , ,a\t\r\n\u3000b,,", "b a"));
}

static void test_follow_matches_author_answered_and_repeated_but_no_mention_of_an_id(void **state)
{
    struct sl_filter *filter = TRY_FILTER(.follow = SL_SLICE("12,did:plc:x,@alice"));
    struct sl_subject subject = try_post("@12 hello");

    (void)state;
    assert_false(try_match(filter, &subject));
    subject.user = SL_SLICE("12");
    assert_true(try_match(filter, &subject));
    subject.user = SL_SLICE("012");
    assert_false(try_match(filter, &subject));
    subject.reply_to.user = SL_SLICE("did:plc:x");
    assert_true(try_match(filter, &subject));
    subject.reply_to.user = SL_SLICE_NONE;
    subject.repost_of.user = SL_SLICE("12");
    assert_true(try_match(filter, &subject));
    subject.repost_of.user = SL_SLICE_NONE;
    subject.text = SL_SLICE("hi @Alice!");
    assert_true(try_match(filter, &subject));
    subject.text = SL_SLICE("hi");
    subject.login = SL_SLICE("ALICE");
    assert_true(try_match(filter, &subject));
    subject.login = SL_SLICE_NONE;
    subject.reply_to.login = SL_SLICE("alice");
    assert_false(try_match(filter, &subject));
    sl_filter_unref(filter);
}

static void test_box_matches_across_the_antimeridian_and_at_its_edges(void **state)
{
    struct sl_filter *filter = TRY_FILTER(.locations = SL_SLICE("170,-20,-170,-10"));
    struct sl_subject subject = try_post("x");
    const double inside[] = {175, 180, -180, -175, 170, -170};

    (void)state;
    assert_false(try_match(filter, &subject));
    subject.has_point = true;
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
        subject.point = (struct sl_point){inside[i], -10};
        assert_true(try_match(filter, &subject));
    }
    subject.point = (struct sl_point){169.999, -15};
    assert_false(try_match(filter, &subject));
    sl_filter_unref(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keyword_matches_by_whole_word_or_by_substring_of_unspaced_script),
        cmocka_unit_test(test_phrase_matches_when_all_its_terms_do_in_any_order),
        cmocka_unit_test(test_follow_matches_author_answered_and_repeated_but_no_mention_of_an_id),
        cmocka_unit_test(test_box_matches_across_the_antimeridian_and_at_its_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
