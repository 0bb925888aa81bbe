/* Errors in members other than `rule`: their codes, and the order of the checks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "tests/support/filter_try.h"

#define REFUSED(code, ...) assert_string_equal(TRY_REFUSED(__VA_ARGS__), code)

static void test_bad_tracks_are_refused(void **state)
{
    char phrase[200] = "", track[3000] = "";

    (void)state;
    REFUSED("empty_track", .track = SL_SLICE(""));
    REFUSED("empty_track", .track = SL_SLICE(" ，,\u3000,"));
    REFUSED("empty_keyword", .track = SL_SLICE("a !"));
    REFUSED("empty_keyword", .track = SL_SLICE("a,#"));
    REFUSED("", .track = SL_SLICE("\U0001F600"));
    for (int i = 0; i < 60; i++)
        strcat(phrase, "中");
    REFUSED("", .track = sl_slice_str(phrase));
    strcat(phrase, "  ");
    REFUSED("", .track = sl_slice_str(phrase));
    strcat(phrase, "x");
    REFUSED("phrase_too_long", .track = sl_slice_str(phrase));
    snprintf(track, sizeof(track), "!,%s", phrase);
    REFUSED("phrase_too_long",
            .track = sl_slice_str(track)); /* checked before any keyword is parsed */

    track[0] = '\0';
    for (int i = 0; i < 400; i++)
        strcat(track, "a,,");
    REFUSED("", .track = sl_slice_str(track));
    strcat(track, "b");
    REFUSED("too_many_phrases", .track = sl_slice_str(track));
}

static void test_bad_users_are_refused(void **state)
{
    struct buffer follow = BUFFER_INIT;

    (void)state;
    REFUSED("empty_follow", .follow = SL_SLICE(""));
    REFUSED("empty_follow", .follow = SL_SLICE(", ，"));
    REFUSED("bad_follow", .follow = SL_SLICE("1 2"));
    REFUSED("bad_follow", .follow = SL_SLICE("1,@a b"));
    REFUSED("bad_follow", .follow = SL_SLICE("@"));
    REFUSED("bad_follow", .follow = SL_SLICE("@@a"));
    REFUSED("bad_follow", .follow = SL_SLICE("张-三"));
    REFUSED("bad_follow", .follow = SL_SLICE("a/b"));
    REFUSED("", .follow = SL_SLICE("＠张三,a_.:-Z9,,007,张三"));
    for (int i = 0; i < 64; i++)
        buffer_append_char(&follow, '1');
    REFUSED("", .follow = buffer_slice(&follow));
    buffer_append_char(&follow, '1');
    REFUSED("bad_follow", .follow = buffer_slice(&follow));
    buffer_clear(&follow);
    for (int i = 0; i < 5000; i++)
        buffer_append_format(&follow, "%d,", i);
    REFUSED("", .follow = buffer_slice(&follow));
    buffer_append_str(&follow, "a b");
    REFUSED("too_many_users", .follow = buffer_slice(&follow));
    buffer_done(&follow);
}

static void test_bad_locations_are_refused(void **state)
{
    char locations[300] = "0,0,1,1";

    (void)state;
    REFUSED("bad_locations", .locations = SL_SLICE(""));
    REFUSED("bad_locations", .locations = SL_SLICE("1,2,3,4,5"));
    REFUSED("bad_locations", .locations = SL_SLICE("1,2,x"));
    REFUSED("bad_number", .locations = SL_SLICE("1,2,3,"));
    REFUSED("bad_number", .locations = SL_SLICE("nan,0,1,1"));
    REFUSED("bad_number", .locations = SL_SLICE("0,0,1 1,1"));
    REFUSED("bad_number", .locations = SL_SLICE("0,0,- 1,1"));
    REFUSED("bad_box", .locations = SL_SLICE("0,1,1,0"));
    REFUSED("bad_box", .locations = SL_SLICE("0,0,1,1,0,0,1,90.0001"));
    REFUSED("bad_box", .locations = SL_SLICE("0,1,1,0,x,0,1,1")); /* box by box */
    REFUSED("", .locations = SL_SLICE(" +0 ， -0.0,180.0,090.000000000000000000000000 "));
    for (int i = 1; i < 25; i++)
        strcat(locations, ",0,0,1,1");
    REFUSED("", .locations = sl_slice_str(locations));
    strcat(locations, ",x,0,1,1");
    REFUSED("too_many_boxes", .locations = sl_slice_str(locations));
}

static void test_bad_restrictors_are_refused(void **state)
{
    const char *const bad_samples[] = {"",   "0",  "0.0000", "100.1", "0.00001", "1,5", "-1",
                                       "+1", "1.", ".5",     "1 %",   "1%%",     "1000"};
    const char *const bad_partitions[] = {"",     "1",    "0/1",   "2/1",   "1/1025",  "1/0",
                                          "1/",   "/1",   "1 /2",  "1/2/3", "00001/2", "a/b",
                                          "1,/4", ",1/4", "1,5/4", "1,2",   "1;2/4"};

    (void)state;
    REFUSED("bad_language", .firehose = true, .language = SL_SLICE(""));
    REFUSED("bad_language", .firehose = true, .language = SL_SLICE("en,"));
    REFUSED("bad_language", .firehose = true, .language = SL_SLICE("e"));
    REFUSED("bad_language", .firehose = true, .language = SL_SLICE("en-"));
    REFUSED("", .firehose = true, .language = SL_SLICE("en-GB-1996 ，ZH"));
    for (size_t i = 0; i < sizeof(bad_samples) / sizeof(bad_samples[0]); i++)
        REFUSED("bad_sample", .sample = sl_slice_str(bad_samples[i]));
    REFUSED("", .sample = SL_SLICE("\t0.0001% "));
    REFUSED("", .sample = SL_SLICE("100.0000"));
    for (size_t i = 0; i < sizeof(bad_partitions) / sizeof(bad_partitions[0]); i++)
        REFUSED("bad_partition", .partition = sl_slice_str(bad_partitions[i]));
    REFUSED("", .partition = SL_SLICE(" 0001/1024 "));
    REFUSED("", .partition = SL_SLICE("1,1024,1/1024"));
    REFUSED("bad_types", .firehose = true, .types = SL_SLICE(""));
    REFUSED("bad_types", .firehose = true, .types = SL_SLICE("post,,delete"));
    REFUSED("bad_types", .firehose = true, .types = SL_SLICE("Post"));
    REFUSED("", .firehose = true, .types = SL_SLICE("post, follow"));
}

static void test_filter_must_select_something(void **state)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_text text = {.language = SL_SLICE("en"), .types = SL_SLICE("post")};
    struct sl_filter_error error;
    struct sl_filter *filter;

    (void)state;
    assert_true(sl_filter_new(&text, &limits, &filter, &error) < 0);
    assert_string_equal(error.code, "no_selector");
    assert_string_equal(error.message, "filter selects nothing; it needs one of track, follow, "
                                       "locations, rule, firehose, sample, partition");
    assert_int_equal(error.status, 400);
    assert_null(error.param);
}

/* Of each pair the first is reported, in whichever order they are written. */
static void test_members_are_checked_in_the_order_of_the_table(void **state)
{
    (void)state;
    REFUSED("empty_keyword", .track = SL_SLICE("!"), .follow = SL_SLICE(""));
    REFUSED("empty_follow", .follow = SL_SLICE(""), .locations = SL_SLICE(""));
    REFUSED("bad_locations", .locations = SL_SLICE(""), .rule = SL_SLICE(""));
    REFUSED("rule_too_broad", .rule = SL_SLICE("-x"), .language = SL_SLICE(""));
    REFUSED("bad_language", .language = SL_SLICE(""), .sample = SL_SLICE(""));
    REFUSED("bad_sample", .sample = SL_SLICE(""), .partition = SL_SLICE(""));
    REFUSED("bad_partition", .partition = SL_SLICE(""), .types = SL_SLICE(""));
    REFUSED("bad_types", .types = SL_SLICE(""));
}

static void test_limits_are_the_callers(void **state)
{
    struct sl_filter_limits limits = {.track = 1, .follow = 1, .boxes = 1};
    struct sl_filter_text text = {.track = SL_SLICE("a,b")};
    struct sl_filter_error error;
    struct sl_filter *filter;

    (void)state;
    assert_true(sl_filter_new(&text, &limits, &filter, &error) < 0);
    assert_string_equal(error.code, "too_many_phrases");
    assert_string_equal(error.param, "track");
    assert_int_equal(error.status, 413);
}

static void expect_message(struct sl_filter_text text, const char *code, const char *message)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_error error;
    struct sl_filter *filter;

    assert_int_equal(sl_filter_new(&text, &limits, &filter, &error), -EINVAL);
    assert_string_equal(error.code, code);
    assert_string_equal(error.message, message);
}

#define MESSAGE(code, message, ...)                                                                \
    expect_message((struct sl_filter_text){__VA_ARGS__}, code, message)

/* Typical mistakes of beginners, and the messages that they get. */
static void test_messages_show_what_is_wrong_and_what_would_be_right(void **state)
{
    static const char wild[] = "there are no wildcards and no fuzzy search 'ca*'; write each "
                               "word, or quote the text in a rule";

    (void)state;
    MESSAGE("wildcard", wild, .track = SL_SLICE("dog,ca*"));
    MESSAGE(
        "wildcard",
        "there are no wildcards and no fuzzy search at character 5: dog ^cat~2; write each word, "
        "or quote the text in a rule",
        .rule = SL_SLICE("dog cat~2"));
    MESSAGE("empty_keyword", "keyword has no letter, digit or emoji '*'", .track = SL_SLICE("a,*"));
    MESSAGE("syntax",
            "a term is missing at character 8: tea OR ^OR fox; OR and AND need a term on both "
            "sides; to look for such a word, quote it",
            .rule = SL_SLICE("tea OR OR fox"));
    MESSAGE("syntax",
            "a term is missing at character 2: (^) tea; a word, a \"phrase\", an operator such "
            "as from:ada, or several of these in ( ) is expected there",
            .rule = SL_SLICE("() tea"));
    MESSAGE("syntax",
            "closing parenthesis missing at the end: fox (tea^; it was opened at character 5",
            .rule = SL_SLICE("fox (tea"));
    MESSAGE("syntax", "there is no open parenthesis to close at character 4: tea^) fox",
            .rule = SL_SLICE("tea) fox"));
    MESSAGE("unknown_operator",
            "unknown operator 'form:' at character 5: tea ^form:ada; to look for such a word, "
            "quote it; did you mean from:?",
            .rule = SL_SLICE("tea form:ada"));
    MESSAGE("rule_too_broad",
            "rule needs at least one keyword, entity, user, url, place or area at character 8: tea "
            "OR ^lang:ja; lang: and country: alone are enough for counts and with max_rate",
            .rule = SL_SLICE("tea OR lang:ja"));
    MESSAGE("unknown_operator",
            "unknown operator 'colour:' at character 5: tea ^colour:red; to look for such a word, "
            "quote it",
            .rule = SL_SLICE("tea colour:red"));
    MESSAGE("bad_types",
            "unknown event type 'likes'; the types are post, delete, follow, unfollow, user",
            .firehose = true, .types = SL_SLICE("post,likes"));
    MESSAGE("bad_follow", "follow item is neither an id nor a login 'b/c'",
            .follow = SL_SLICE("a,b/c"));
    MESSAGE("bad_number", "not a decimal number 'x'", .locations = SL_SLICE("1,2,x,4"));
    MESSAGE("bad_box",
            "box out of range, or its north is below its south '37,-123,38,-122'; a box is west, "
            "south, east, north in degrees: did you mean -123,37,-122,38?",
            .locations = SL_SLICE("37,-123,38,-122"));
    MESSAGE("bad_box",
            "box out of range, or its north is below its south at character 15: bounding_box:[^37 "
            "-123 38 -122]; a box is west, south, east, north in degrees: did you mean "
            "-123,37,-122,38?",
            .rule = SL_SLICE("bounding_box:[37 -123 38 -122]"));
}

/* Characters are counted, not bytes; none is cut in two, and no control character is printed. */
static void test_the_place_in_a_rule_is_counted_in_characters(void **state)
{
    (void)state;
    MESSAGE("syntax",
            "- stands twice at character 5: 茶\xe3\x80\x80 -^-\xe3\x80\x80x; one is enough, "
            "directly before "
            "the term",
            .rule = SL_SLICE("茶\xe3\x80\x80 --\xe3\x80\x80x"));
    MESSAGE("syntax",
            "a term is missing at character 32: ...八九十一二三四五六七八九十一二三四五六七 OR ^OR "
            "一二三四五六七八九十一二三四五六七八九十一...; OR and AND need a term on both sides; "
            "to look for such a "
            "word, quote it",
            .rule = SL_SLICE("一二三四五六七八九十一二三四五六七八九十一二三四五六七 OR OR "
                             "一二三四五六七八九十一二三"
                             "四五六七八九十一二三四五六七八九十"));
    MESSAGE("unclosed_quote", "closing quote missing at character 3: a ^\"b c d e",
            .rule = SL_SLICE("a \"b\tc\x7f"
                             "d\x01"
                             "e"));
}

static size_t place(struct sl_filter_text text)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_error error;
    struct sl_filter *filter;

    assert_int_equal(sl_filter_new(&text, &limits, &filter, &error), -EINVAL);
    return error.place;
}

#define PLACE(...) place((struct sl_filter_text){__VA_ARGS__})

static void test_refusals_have_a_place(void **state)
{
    char rule[5000] = "";

    (void)state;
    assert_int_equal(PLACE(.rule = SL_SLICE("")), 1);
    assert_int_equal(PLACE(.rule = SL_SLICE("-tea")), 1);
    assert_int_equal(PLACE(.rule = SL_SLICE("tea OR")), 7);
    assert_int_equal(PLACE(.rule = SL_SLICE("\U0001F600\U0001F600 has:milk")), 8);
    assert_int_equal(PLACE(.track = SL_SLICE("茶,  ca*")), 5);
    assert_int_equal(PLACE(.follow = SL_SLICE("ada,b/c")), 5);
    assert_int_equal(PLACE(.locations = SL_SLICE("1,2,x,4")), 5);
    assert_int_equal(PLACE(.firehose = true, .language = SL_SLICE("en,12")), 4);
    assert_int_equal(PLACE(.firehose = true, .types = SL_SLICE("post,likes")), 6);
    assert_int_equal(PLACE(.track = SL_SLICE(",")), 0);
    assert_int_equal(PLACE(.types = SL_SLICE("post")), 0);
    for (int i = 0; i < 1025; i++)
        strcat(rule, "é");
    assert_int_equal(PLACE(.rule = sl_slice_str(rule)), 1025);
    strcpy(rule, "polygon:[0 0, 1 0, 0 1] ");
    for (int i = 0; i < 1100; i++)
        strcat(rule, "é");
    assert_int_equal(PLACE(.rule = sl_slice_str(rule)), 1024 + strlen("0 0, 1 0, 0 1") + 1);
}

static void test_words_with_signs_that_are_none_of_a_wildcard_are_taken(void **state)
{
    (void)state;
    REFUSED("", .rule = SL_SLICE("\"ca* ~x\" c++ 12:30 url:example.com/~ada place:\"a*\""));
    REFUSED("", .track = SL_SLICE("c++,好吃～,a-b,don't,^x"));
}

static void expect_warnings(struct sl_filter_text text, const char *messages)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_warnings warnings;
    struct buffer said = BUFFER_INIT;
    struct sl_filter_error error;
    struct sl_filter *filter, *same;

    if (sl_filter_new_warned(&text, &limits, &filter, &error, &warnings) < 0)
        fail_msg("refused: %s", error.message);
    for (size_t i = 0; i < warnings.count; i++)
        buffer_append_format(&said, "%s%s: %s: %s", i ? "\n" : "", warnings.list[i].code,
                             warnings.list[i].param, warnings.list[i].message);
    assert_string_equal(buffer_str(&said), messages);
    assert_int_equal(sl_filter_new(&text, &limits, &same, &error), 0);
    assert_true(sl_slice_equal(sl_filter_key(filter), sl_filter_key(same)));
    sl_filter_unref(same);
    sl_filter_unref(filter);
    buffer_done(&said);
}

#define WARNED(messages, ...) expect_warnings((struct sl_filter_text){__VA_ARGS__}, messages)

static void test_operators_that_are_taken_for_words_are_warned_of(void **state)
{
    (void)state;
    WARNED(
        "operator_word: rule: looked for as a word at character 3: a ^or b; the operators are OR, "
        "AND, and - for not",
        .rule = SL_SLICE("a or b"));
    WARNED(
        "operator_word: rule: looked for as a word at character 3: a ^And b NOT c; the operators "
        "are OR, AND, and - for not",
        .rule = SL_SLICE("a And b NOT c"));
    WARNED(
        "operator_word: track: looked for as a word 'OR'; phrases of track are separated by commas",
        .track = SL_SLICE("cat OR dog"));
    WARNED("", .rule = SL_SLICE("or"));
    WARNED("", .rule = SL_SLICE("(a OR b) AND \"trick or treat\" -c oregon"));
    WARNED("", .rule = SL_SLICE("or gold"));
    WARNED("", .track = SL_SLICE("trick or treat"));
}

/* Paris, London and New York with the latitude first. */
static void test_boxes_with_latitude_first_are_warned_of(void **state)
{
    static const char *const good[] = {
        "2.2,48.8,2.5,48.9", "-0.5,51.3,0.3,51.7", "-74.3,40.5,-73.7,40.9",
        "139.5,35.5,140,36", "36.7,-1.4,37,-1.1",  "-30,-20,-25,-15", /* the open sea */
        "-180,-90,180,90",   "170,-50,-170,-30",   "179,-17,180,-16",
        "151,-34,152,-33",   "180,90,180,90",      "-180,-90,-180,-90",
    };

    (void)state;
    WARNED(
        "box_at_sea: locations: there is no land in this box '48.8,2.2,48.9,2.5'; a box is west, "
        "south, east, north in degrees: did you mean 2.2,48.8,2.5,48.9?",
        .locations = SL_SLICE("48.8,2.2,48.9,2.5"));
    WARNED(
        "box_at_sea: locations: there is no land in this box '51.3,-0.5,51.7,0.3'; a box is west, "
        "south, east, north in degrees: did you mean -0.5,51.3,0.3,51.7?",
        .locations = SL_SLICE("2,48,3,49,51.3,-0.5,51.7,0.3"));
    WARNED(
        "box_at_sea: rule: there is no land in this box at character 17: x "
        "bounding_box:[^40.5 -74.3 40.9 -73.7]; a box is west, south, east, north in degrees: did "
        "you mean -74.3,40.5,-73.7,40.9?",
        .rule = SL_SLICE("x bounding_box:[40.5 -74.3 40.9 -73.7]"));
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        WARNED("", .locations = sl_slice_str(good[i]));
}

static void test_languages_that_are_none_are_warned_of(void **state)
{
    (void)state;
    WARNED("unknown_language: language: not the code of a language 'english'; did you mean en?",
           .firehose = true, .language = SL_SLICE("de,english,french"));
    WARNED("unknown_language: rule: not the code of a language at character 8: x lang:^jp; did you "
           "mean ja?",
           .rule = SL_SLICE("x lang:jp"));
    WARNED("unknown_language: language: not the code of a language 'xx'", .firehose = true,
           .language = SL_SLICE("xx"));
    WARNED("", .firehose = true,
           .language = SL_SLICE("en,zh-TW,EN-gb,und,yue,cmn,qaa,iw,no,nb,sr-Latn,ga"));
}

static void test_the_logins_of_a_filter_are_told(void **state)
{
    struct sl_filter_text text = {.follow = SL_SLICE("12,@Ada,ADA,did:plc:x,bob,c-d"),
                                  .rule = SL_SLICE("from:@42 OR to:bob OR @eve from:7")};
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    static const char *const logins[] = {"follow ada", "follow bob", "rule 42"};
    struct sl_filter_warnings warnings;
    struct sl_filter *filter;
    char said[80];

    (void)state;
    assert_int_equal(sl_filter_new_warned(&text, &limits, &filter, NULL, &warnings), 0);
    assert_int_equal(warnings.login_count, 3);
    for (size_t i = 0; i < 3; i++) {
        snprintf(said, sizeof(said), "%s %s", warnings.logins[i].param, warnings.logins[i].text);
        assert_string_equal(said, logins[i]);
    }
    sl_filter_unref(filter);
    text.follow = SL_SLICE("a,b,c,d,e,f,g,h,i,j");
    assert_int_equal(sl_filter_new_warned(&text, &limits, &filter, NULL, &warnings), 0);
    assert_int_equal(warnings.login_count, SL_FILTER_LOGINS_MAX);
    sl_filter_unref(filter);
}

static void test_each_warning_comes_once(void **state)
{
    (void)state;
    WARNED(
        "operator_word: track: looked for as a word 'OR'; phrases of track are separated by "
        "commas\nbox_at_sea: locations: there is no land in this box '48,2,49,3'; a box is west, "
        "south, east, north in degrees: did you mean 2,48,3,49?\nunknown_language: rule: not the "
        "code of a language at character 13: a or b lang:^xx lang:yy",
        .track = SL_SLICE("a OR b OR c"), .locations = SL_SLICE("48,2,49,3,48,2,49,3"),
        .rule = SL_SLICE("a or b lang:xx lang:yy"), .language = SL_SLICE("zz"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_tracks_are_refused),
        cmocka_unit_test(test_bad_users_are_refused),
        cmocka_unit_test(test_bad_locations_are_refused),
        cmocka_unit_test(test_bad_restrictors_are_refused),
        cmocka_unit_test(test_filter_must_select_something),
        cmocka_unit_test(test_members_are_checked_in_the_order_of_the_table),
        cmocka_unit_test(test_limits_are_the_callers),
        cmocka_unit_test(test_messages_show_what_is_wrong_and_what_would_be_right),
        cmocka_unit_test(test_the_place_in_a_rule_is_counted_in_characters),
        cmocka_unit_test(test_refusals_have_a_place),
        cmocka_unit_test(test_words_with_signs_that_are_none_of_a_wildcard_are_taken),
        cmocka_unit_test(test_operators_that_are_taken_for_words_are_warned_of),
        cmocka_unit_test(test_boxes_with_latitude_first_are_warned_of),
        cmocka_unit_test(test_languages_that_are_none_are_warned_of),
        cmocka_unit_test(test_the_logins_of_a_filter_are_told),
        cmocka_unit_test(test_each_warning_comes_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
