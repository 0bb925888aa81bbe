#include <string.h>

#include "filters/filter_describe.h"
#include "tests/support/cmocka_all.h"

static void expect_cut(const struct sl_filter_text *text, size_t max_bytes, const char *words)
{
    const struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct buffer buffer = BUFFER_INIT;
    struct sl_filter_error error;
    struct sl_filter *filter;
    int r;

    r = sl_filter_new(text, &limits, &filter, &error);
    if (r < 0)
        fail_msg("refused: %s", error.message);
    sl_filter_describe(filter, max_bytes, &buffer);
    assert_string_equal(buffer_str(&buffer), words);
    buffer_done(&buffer);
    sl_filter_unref(filter);
}

static void expect(const struct sl_filter_text *text, const char *words)
{
    expect_cut(text, 1000, words);
}

static void expect_rule(const char *rule, const char *words)
{
    struct buffer whole = BUFFER_INIT;

    buffer_append_format(&whole, "posts and deletions with %s", words);
    expect(&(struct sl_filter_text){.rule = sl_slice_str(rule)}, buffer_str(&whole));
    buffer_done(&whole);
}

static void test_phrases_are_joined_as_they_are_matched(void **state)
{
    (void)state;
    expect(&(struct sl_filter_text){.track = SL_SLICE("Coffee,night  TRAIN")},
           "posts and deletions with (\"night\" and \"train\") or \"coffee\"");
    expect_rule("cat dog OR fox", "(\"cat\" and \"dog\") or \"fox\"");
    expect_rule("cat or dog", "\"or\" and \"cat\" and \"dog\"");
    expect_rule("\"night train\" -(slow late)", "not (\"late\" and \"slow\") and \"night train\"");
}

static void test_each_kind_of_condition_has_its_words(void **state)
{
    (void)state;
    expect_rule("#Tea @Ada $abc", "the hashtag #tea and a mention of @ada and the cashtag $abc");
    expect_rule("from:12 -to:@Bob repost_of:@cy",
                "not a reply to @bob and the author's id 12 and a repost of @cy");
    expect_rule(
        "url:example.org/a lang:EN country:fr sample:1",
        "a link to example.org/a and language en and country FR and being among 1 % of them");
    expect_rule("place:\"New York\" has:media -is:reply",
                "not being a reply and a place named \"new york\" and media");
    expect_rule("bounding_box:[-1 2 3 4]", "longitude -1 to 3 and latitude 2 to 4");
    expect_rule("polygon:[179 -20, -178 -20, -178.5 -15.25]",
                "the polygon 179 -20, -178 -20, -178.5 -15.25");
    expect_rule("\"Night train\"~3 \"a b c-d\"~1",
                "(\"a\", \"b\", \"c d\" near each other, at most 1 other word between) and "
                "(\"night\", \"train\" near each other, at most 3 other words between)");
    expect_rule("\"b a\"~0", "\"a\", \"b\" side by side in any order");
    expect(&(struct sl_filter_text){.track = SL_SLICE("Tea tea's"), .track_is_verbatim = true},
           "posts and deletions with the whole word \"tea\" and exactly tea's");
    expect_rule("point_radius:[2 48 5km]", "within 5 km of longitude 2, latitude 48");
}

static void test_boxes_say_which_number_is_which(void **state)
{
    (void)state;
    expect(&(struct sl_filter_text){.locations = SL_SLICE("2,48,3,49.5")},
           "posts and deletions with longitude 2 to 3 and latitude 48 to 49.5");
}

static void test_users_beyond_some_are_counted(void **state)
{
    (void)state;
    expect(&(struct sl_filter_text){.follow = SL_SLICE("12")},
           "posts and deletions with user 12 (their posts, replies to and reposts of them)");
    expect(&(struct sl_filter_text){.follow = SL_SLICE("1,2,3,4,5,6,7,8,9,10,11,12")},
           "posts and deletions with any of the users 1, 10, 11, 12, 2, 3, 4, 5, 6, 7 and 2 more "
           "(their posts, replies to and reposts of them)");
}

static void test_restrictors_follow(void **state)
{
    (void)state;
    expect(&(struct sl_filter_text){.firehose = true, .types = SL_SLICE("follow,post,unfollow")},
           "posts, follows and unfollows, all");
    expect(
        &(struct sl_filter_text){.sample = SL_SLICE("0.25"),
                                 .partition = SL_SLICE("2/4"),
                                 .language = SL_SLICE("EN,zh")},
        "posts and deletions, all; only in language en or language zh; 0.25 % of them; part 2 of "
        "4");
    expect(&(struct sl_filter_text){.partition = SL_SLICE("12,2,3/16")},
           "posts and deletions, all; part 2, 3, 12 of 16");
}

static void test_what_is_too_long_is_cut(void **state)
{
    (void)state;
    expect_cut(&(struct sl_filter_text){.track = SL_SLICE("caf\u00e9")}, 30,
               "posts and deletions with \"caf...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phrases_are_joined_as_they_are_matched),
        cmocka_unit_test(test_each_kind_of_condition_has_its_words),
        cmocka_unit_test(test_boxes_say_which_number_is_which),
        cmocka_unit_test(test_users_beyond_some_are_counted),
        cmocka_unit_test(test_restrictors_follow),
        cmocka_unit_test(test_what_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
