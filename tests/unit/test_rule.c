/* Rules: what they match, and what is refused (tests/data/rules/refused). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "tests/support/cases.h"
#include "tests/support/filter_try.h"

static bool rule_matches_text(const char *rule, const char *text)
{
    struct sl_event_view event = try_post(text);

    return try_rule(rule, &event);
}

static void test_and_binds_tighter_than_or(void **state)
{
    (void)state;
    assert_true(rule_matches_text("a b OR c", "c"));
    assert_true(rule_matches_text("a b OR c", "a b"));
    assert_false(rule_matches_text("a b OR c", "a"));
    assert_true(rule_matches_text("c OR a AND b", "b a"));
    assert_false(rule_matches_text("c OR a AND b", "b"));
    assert_false(rule_matches_text("a (b OR c)", "a"));
    assert_true(rule_matches_text("a (b OR c)", "a c"));
}

static void test_operators_of_logic_are_capitals_and_bare(void **state)
{
    (void)state;
    assert_true(rule_matches_text("a or b", "b or a"));
    assert_false(rule_matches_text("a or b", "a"));
    assert_true(rule_matches_text("\"OR\"", "or"));
    assert_true(rule_matches_text("ORDER", "order"));
    assert_true(rule_matches_text("a OR-b", "a or b"));
}

static void test_nothing_is_needed_between_items(void **state)
{
    const char *rule = "cat(dog OR fox)\"a b\"-x";

    (void)state;
    assert_true(rule_matches_text(rule, "a b fox cat"));
    assert_false(rule_matches_text(rule, "a b fox cat x"));
    assert_false(rule_matches_text(rule, "b a fox cat"));
    assert_true(rule_matches_text("from:\"99\"cat", "cat"));
    assert_false(rule_matches_text("from:\"99\"cat", "dog"));
    assert_true(rule_matches_text("a\u3000\t\r\nb", "b a"));
}

static void test_negation_is_for_the_item_it_touches(void **state)
{
    (void)state;
    assert_false(rule_matches_text("cat -dog fox", "cat dog fox"));
    assert_true(rule_matches_text("cat -dog fox", "fox cat"));
    assert_true(rule_matches_text("cat -(dog fox)", "cat dog"));
    assert_false(rule_matches_text("cat -(dog fox)", "cat dog fox"));
    assert_true(rule_matches_text("cat -(-(dog))", "cat dog"));
    assert_false(rule_matches_text("cat -(-(dog))", "cat"));
    assert_true(rule_matches_text("coca-cola", "coca cola"));
    assert_false(rule_matches_text("cat -\"a b\"", "cat a b"));
}

static void test_phrase_knows_no_signs(void **state)
{
    (void)state;
    assert_true(rule_matches_text("\"#cat (OR) from:x\"", "cat or from x"));
    assert_true(rule_matches_text("\"iphone 手机\"", "iPhone, 手机"));
    assert_false(rule_matches_text("#cat", "cat"));
    assert_true(rule_matches_text("\"#cat\"", "cat"));
}

static void test_words_near_each_other_need_nothing_around_them(void **state)
{
    const char *rule = "cat\"a b\"~1(dog)-\"x y\"~0\"c d\"";

    (void)state;
    assert_true(rule_matches_text(rule, "b 1 a cat dog c d"));
    assert_false(rule_matches_text(rule, "b 1 2 a cat dog c d"));
    assert_false(rule_matches_text(rule, "b 1 a cat dog c d y x"));
    assert_true(rule_matches_text(rule, "b 1 a cat dog c d y z x"));
    assert_false(rule_matches_text(rule, "b 1 a cat dog d c"));
}

static void test_word_with_a_colon_is_a_keyword_unless_letters_stand_before_it(void **state)
{
    (void)state;
    assert_true(rule_matches_text("12:30", "at 12:30"));
    assert_true(rule_matches_text("\"form:alice\"", "form alice"));
    assert_true(rule_matches_text("#a:b", "a b"));
}

static void test_users_are_ids_by_digits_and_logins_otherwise(void **state)
{
    struct sl_event_view event = try_post("x");

    (void)state;
    event.user = SL_SLICE("12");
    event.login = SL_SLICE("Alice");
    event.reply_to.user = SL_SLICE("34");
    event.reply_to.login = SL_SLICE("张三");
    event.repost_of.user = SL_SLICE("56");
    event.repost_of.login = SL_SLICE("78");
    assert_true(try_rule("from:12", &event));
    assert_true(try_rule("FROM:@aLICE", &event));
    assert_true(try_rule("from:\" alice \"", &event));
    assert_false(try_rule("from:34", &event));
    assert_true(try_rule("to:34", &event));
    assert_true(try_rule("to:张三", &event));
    assert_true(try_rule("repost_of:56", &event));
    assert_true(try_rule("Retweets_Of:56", &event));
    assert_false(try_rule("repost_of:78", &event));
    assert_true(try_rule("repost_of:@78", &event));
    assert_true(try_rule("repost_of:７８", &event));
    assert_false(try_rule("repost_of:@7", &event));
}

static bool url_matches(const char *operand, const char *url)
{
    struct sl_event_view event = try_post("x");
    struct sl_slice link = sl_slice_str(url);
    char rule[256], text[256];
    bool linked, written;

    snprintf(rule, sizeof(rule), "url:%s", operand);
    snprintf(text, sizeof(text), "see %s here", url);
    event.urls = &link;
    event.url_count = 1;
    linked = try_rule(rule, &event);
    event = try_post(text);
    written = try_rule(rule, &event);
    assert_int_equal(linked, written);
    return linked;
}

static void test_url_is_a_host_with_all_below_it_and_a_path_with_all_below_it(void **state)
{
    (void)state;
    assert_true(url_matches("example.com", "http://example.com"));
    assert_true(url_matches("example.com", "https://a.Example.COM:80/x?y"));
    assert_false(url_matches("example.com", "http://notexample.com"));
    assert_true(url_matches("http://www.Example.com/", "http://example.com/b"));
    assert_true(url_matches("com", "http://www.example.com."));
    assert_true(url_matches("example.com/a", "http://example.com/a"));
    assert_true(url_matches("example.com/a/", "http://example.com/a/b"));
    assert_true(url_matches("example.com/a/b", "http://x.example.com/a/b?c"));
    assert_false(url_matches("example.com/a", "http://example.com/ab"));
    assert_false(url_matches("example.com/a", "http://example.com/A"));
    assert_false(url_matches("example.com/a/b", "http://example.com/a"));
    assert_false(url_matches("example.com/a", "http://example.com"));
    assert_true(url_matches("127.0.0.1:8080", "http://127.0.0.1/x"));
    assert_true(url_matches("example.com", "http://u:p@example.com/"));
}

static void test_place_is_its_tokens_with_gaps_ignored(void **state)
{
    struct sl_event_view event = try_post("New York");

    (void)state;
    assert_false(try_rule("place:\"new york\"", &event));
    event.place = SL_SLICE("New York");
    assert_true(try_rule("place:\"NEW-york\"", &event));
    assert_false(try_rule("place:york", &event));
    assert_false(try_rule("place:\"new york city\"", &event));
    event.place = SL_SLICE("北 京");
    assert_true(try_rule("place:北京", &event));
}

static void test_areas_take_spaces_and_commas(void **state)
{
    struct sl_event_view event = try_post("x");

    (void)state;
    event.has_point = true;
    event.point = (struct sl_point){121.5, 31.2};
    assert_true(try_rule("bounding_box:[121 31, 122,32]", &event));
    assert_true(try_rule("bounding_box:[ 121，31\u3000122 32 ]", &event));
    assert_false(try_rule("bounding_box:[121.6 31 122 32]", &event));
    assert_true(try_rule("point_radius:[121.5,31.3,11.2KM]", &event));
    assert_false(try_rule("point_radius:[121.5 31.3 11.1km]", &event));
    assert_true(try_rule("point_radius:[121.5 31.3 7Mi]", &event));
    event.has_point = false;
    event.has_box = true;
    event.box = (struct sl_box){121.5, 31.2, 121.5, 31.2};
    assert_true(try_rule("bounding_box:[121 31 122 32]", &event));
    assert_false(try_rule("point_radius:[121.5 31.3 100km]", &event));
}

static void test_language_and_country_narrow(void **state)
{
    struct sl_event_view event = try_post("x");

    (void)state;
    assert_true(try_rule("x lang:und", &event));
    assert_false(try_rule("x country:CN", &event));
    event.lang = SL_SLICE("zh-TW");
    event.country = SL_SLICE("cn");
    assert_true(try_rule("x lang:ZH", &event));
    assert_false(try_rule("x -lang:zh-tw", &event));
    assert_true(try_rule("x country:Cn", &event));
    assert_false(try_rule("x country:us", &event));
}

static bool has(const char *trait, const struct sl_event_view *event)
{
    char rule[64];
    bool is, is_not;

    snprintf(rule, sizeof(rule), "x %s", trait);
    is = try_rule(rule, event);
    snprintf(rule, sizeof(rule), "x -%s", trait);
    is_not = try_rule(rule, event);
    assert_int_equal(is, !is_not);
    return is;
}

static void test_traits_are_what_the_event_has(void **state)
{
    const char *const traits[] = {"has:hashtags", "HAS:Mentions", "has:cashtags",
                                  "has:links",    "has:media",    "has:geo",
                                  "is:reply",     "Is:RePost",    "is:quote"};
    struct sl_event_view none = try_post("x #1 @ $2");
    struct sl_event_view all = try_post("x #a @b $c http://d.e");

    (void)state;
    all.has_media = true;
    all.has_box = true;
    all.reply_to.has_post = all.repost_of.has_post = all.quote_of.has_post = true;
    for (size_t i = 0; i < sizeof(traits) / sizeof(traits[0]); i++) {
        assert_false(has(traits[i], &none));
        assert_true(has(traits[i], &all));
    }
    none.reply_to.user = SL_SLICE("1"); /* of a post without an id */
    assert_false(has("is:reply", &none));
    none.urls = &(struct sl_slice){"not a link", 10};
    none.url_count = 1;
    assert_false(has("has:links", &none));
    none.urls = &(struct sl_slice){"https://a.b/", 12};
    assert_true(has("has:links", &none));
}

static void test_sample_narrows_its_rule_alone(void **state)
{
    struct sl_event_view event = try_post("x"); /* 325164 ppm */
    struct sl_filter *filter =
        TRY_FILTER(.track = SL_SLICE("y"), .rule = SL_SLICE("x sample:32.5164"));

    (void)state;
    assert_false(try_match(filter, &event));
    event.text = SL_SLICE("x y");
    assert_true(try_match(filter, &event));
    assert_true(try_rule("x sample:32.5165%", &event));
    assert_int_equal(sl_filter_sample_ppm(filter), 1000000);
    sl_filter_unref(filter);
}

static const char *rule_refused(const char *rule)
{
    return TRY_REFUSED(.rule = sl_slice_str(rule));
}

static void test_anchors_make_a_rule_narrow_enough(void **state)
{
    const char *const good[] = {"cat -dog lang:en",
                                "(a OR lang:en) b",
                                "from:1 OR to:2",
                                "place:x",
                                "url:x",
                                "\"x\" -(y OR z)",
                                "#x OR @y OR $z",
                                "point_radius:[0 0 1km]",
                                "a sample:5",
                                "sample:5 a",
                                "bounding_box:[0 0 0 0]",
                                "polygon:[0 0, 1 0, 0 1]",
                                "\"a b\"~3 -c"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_string_equal(rule_refused(good[i]), "");
}

static bool try_wide(const char *rule, const struct sl_event_view *event)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_text text = {.rule = sl_slice_str(rule)};
    struct sl_filter *filter;

    limits.allows_wide = true;
    assert_int_equal(sl_filter_new(&text, &limits, &filter, NULL), 0);
    return try_match_once(filter, event);
}

static void test_language_and_country_are_enough_where_that_is_allowed(void **state)
{
    const char *const broad[] = {"-cat", "-lang:ja", "has:media", "sample:5", "cat OR -lang:ja"};
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_event_view event = try_post("tea");
    struct sl_filter *filter;

    (void)state;
    event.lang = SL_SLICE("zh-TW");
    event.country = SL_SLICE("tw");
    assert_true(try_wide("lang:zh", &event));
    assert_true(try_wide("lang:ZH-tw", &event));
    assert_false(try_wide("lang:zh-cn", &event));
    assert_false(try_wide("lang:und", &event));
    assert_true(try_wide("country:TW", &event));
    assert_true(try_wide("country:JP OR (lang:zh -coffee)", &event));
    assert_false(try_wide("country:TW -tea", &event));
    assert_true(try_wide("(lang:zh OR coffee) (country:TW OR from:1)", &event));
    event.lang = SL_SLICE_NONE;
    assert_true(try_wide("lang:und", &event));
    event.type = SL_EVENT_FOLLOW;
    assert_false(try_wide("lang:und", &event));
    assert_string_equal(rule_refused("lang:zh"), "rule_too_broad");
    assert_string_equal(rule_refused("tea OR country:TW"), "rule_too_broad");
    limits.allows_wide = true;
    for (size_t i = 0; i < sizeof(broad) / sizeof(broad[0]); i++) {
        struct sl_filter_text text = {.rule = sl_slice_str(broad[i])};
        struct sl_filter_error error;

        assert_int_equal(sl_filter_new(&text, &limits, &filter, &error), -EINVAL);
        assert_string_equal(error.code, "rule_too_broad");
    }
}

static void test_limits_can_be_reached(void **state)
{
    char rule[4200] = "";

    (void)state;
    for (int i = 0; i < 64; i++)
        strcat(rule, "a ");
    assert_string_equal(rule_refused(rule), "");
    strcpy(rule, "((((((((((((((((a))))))))))))))))");
    assert_string_equal(rule_refused(rule), "");
    rule[0] = '\0';
    for (int i = 0; i < 1024; i++)
        strcat(rule, "é");
    assert_string_equal(rule_refused(rule), "");
    strcpy(rule, "polygon:[0.");
    while (strlen(rule) < 4096 - 13)
        strcat(rule, "0");
    strcat(rule, " 0, 1 0, 0 1]");
    assert_int_equal(strlen(rule), 4096);
    assert_string_equal(rule_refused(rule), "");
}

static void refuse_case(const struct test_case *test_case)
{
    struct buffer input = BUFFER_INIT, error = BUFFER_INIT, got = BUFFER_INIT;
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_text text = {0};
    struct sl_filter_error reason = {0};
    struct sl_filter *filter;

    case_read(test_case, "input", false, &input);
    case_read(test_case, "error", false, &error);
    text.rule = sl_slice(input.data, input.size - 1); /* without the newline */
    if (sl_filter_new(&text, &limits, &filter, &reason) == 0)
        fail_msg("case %s: not refused", test_case->name);
    assert_string_equal(reason.param, "rule");
    buffer_append_format(&got, "%s %d %zu %s\n", reason.code, reason.status, reason.place,
                         reason.message);
    case_expect(test_case, buffer_slice(&got), buffer_slice(&error));
    buffer_done(&input);
    buffer_done(&error);
    buffer_done(&got);
}

static void test_refused_rules_say_why(void **state)
{
    (void)state;
    cases_run("rules/refused", refuse_case);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_and_binds_tighter_than_or),
        cmocka_unit_test(test_operators_of_logic_are_capitals_and_bare),
        cmocka_unit_test(test_nothing_is_needed_between_items),
        cmocka_unit_test(test_negation_is_for_the_item_it_touches),
        cmocka_unit_test(test_phrase_knows_no_signs),
        cmocka_unit_test(test_words_near_each_other_need_nothing_around_them),
        cmocka_unit_test(test_word_with_a_colon_is_a_keyword_unless_letters_stand_before_it),
        cmocka_unit_test(test_users_are_ids_by_digits_and_logins_otherwise),
        cmocka_unit_test(test_url_is_a_host_with_all_below_it_and_a_path_with_all_below_it),
        cmocka_unit_test(test_place_is_its_tokens_with_gaps_ignored),
        cmocka_unit_test(test_areas_take_spaces_and_commas),
        cmocka_unit_test(test_language_and_country_narrow),
        cmocka_unit_test(test_traits_are_what_the_event_has),
        cmocka_unit_test(test_sample_narrows_its_rule_alone),
        cmocka_unit_test(test_anchors_make_a_rule_narrow_enough),
        cmocka_unit_test(test_language_and_country_are_enough_where_that_is_allowed),
        cmocka_unit_test(test_limits_can_be_reached),
        cmocka_unit_test(test_refused_rules_say_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
