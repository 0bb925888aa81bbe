/* Selectors and restrictors, section by section of docs/filters.md. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
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
    assert_true(try_track("iphone手机", "iPhone手机"));
    assert_false(try_track("iphone手机", "iPhone 手机"));
    assert_true(try_track("c++", "c"));
    assert_true(try_track("strasse", "Die Straße"));
    assert_true(try_track("👍", "👍🏽"));
    assert_false(try_track("👍🏽", "👍"));
}

static void test_keyword_does_not_reach_across_a_url_nor_into_it(void **state)
{
    (void)state;
    assert_false(try_track("a-b", "a http://t.cn/x b"));
    assert_true(try_track("a-b", "a b http://t.cn/x"));
    assert_false(try_track("cn", "http://t.cn/x"));
}

static void test_keyword_is_found_anywhere_in_a_long_text_of_repeated_words(void **state)
{
    struct buffer text = BUFFER_INIT;

    (void)state;
    for (int i = 0; i < 3000; i++)
        buffer_append_format(&text, "word%d again ", i % 700);
    buffer_append_str(&text, "again end");
    assert_true(try_track("again-end", buffer_str(&text)));
    assert_true(try_track("word699-again-word0", buffer_str(&text)));
    assert_false(try_track("word0-again-word2", buffer_str(&text)));
    assert_true(try_track("word0", buffer_str(&text)));
    assert_false(try_track("word700", buffer_str(&text)));
    buffer_done(&text);
}

static void test_entity_matches_exactly_and_is_part_of_the_text(void **state)
{
    (void)state;
    assert_false(try_track("#北京", "#北京天气#"));
    assert_true(try_track("#北京", "你好#北京#天气"));
    assert_true(try_track("#北京#", "你好#北京"));
    assert_true(try_track("北京", "#北京#"));
    assert_false(try_track("#天气", "你好#北京#天气"));
    assert_true(try_track("@alice", "@Alice你好"));
    assert_true(try_track("@alice你好", "@Alice你好"));
    assert_false(try_track("@b", "me@b.c"));
    assert_true(try_track("$aapl", "buy $AAPL"));
    assert_false(try_track("$aapl", "aapl"));
    assert_true(try_track("#1", "1"));
    assert_true(try_track("$100", "100 euro"));
    assert_true(try_track("＃话题", "#话题"));
}

static void test_phrase_matches_when_all_its_terms_do_in_any_order(void **state)
{
    (void)state;
    assert_true(try_track("重庆 火锅,hotpot", "火锅在重庆"));
    assert_false(try_track("重庆 火锅,hotpot", "火锅"));
    assert_true(try_track("重庆 火锅，hotpot", "HotPot"));
    assert_true(try_track(" , ,a\t\r\n\u3000b,,", "b a"));
    assert_false(try_track(" , ,a\t\r\n\u3000b,,", "b"));
}

static void test_follow_matches_author_answered_and_repeated_but_no_mention_of_an_id(void **state)
{
    struct sl_filter *filter = TRY_FILTER(.follow = SL_SLICE("12,did:plc:x,@alice"));
    struct sl_event_view event = try_post("@12 hello");

    (void)state;
    assert_false(try_match(filter, &event));
    event.user = SL_SLICE("12");
    assert_true(try_match(filter, &event));
    event.user = SL_SLICE("012");
    assert_false(try_match(filter, &event));
    event.reply_to.user = SL_SLICE("did:plc:x");
    assert_true(try_match(filter, &event));
    event.reply_to.user = SL_SLICE("DID:plc:x");
    assert_false(try_match(filter, &event));
    event.repost_of.user = SL_SLICE("12");
    assert_true(try_match(filter, &event));
    event.repost_of.user = SL_SLICE_NONE;
    event.quote_of.user = SL_SLICE("12");
    assert_false(try_match(filter, &event));
    event.text = SL_SLICE("hi @Alice!");
    assert_true(try_match(filter, &event));
    event.text = SL_SLICE("hi");
    event.login = SL_SLICE("ALICE");
    assert_true(try_match(filter, &event));
    event.login = SL_SLICE_NONE;
    event.reply_to.login = SL_SLICE("alice");
    assert_false(try_match(filter, &event));
    sl_filter_unref(filter);
}

static void test_many_users_are_all_found(void **state)
{
    char list[3000], *end = list;
    struct sl_filter *filter;
    struct sl_event_view event = try_post("x");

    (void)state;
    for (int id = 1; id <= 1000; id += 2)
        end += sprintf(end, "%d,", id);
    filter = TRY_FILTER(.follow = sl_slice_str(list));
    for (int id = 1; id <= 1000; id++) {
        char text[8];

        sprintf(text, "%d", id);
        event.user = sl_slice_str(text);
        assert_int_equal(try_match(filter, &event), id % 2 == 1);
    }
    sl_filter_unref(filter);
}

static bool in_box(const char *locations, double lon, double lat)
{
    struct sl_event_view event = try_post("x");

    event.has_point = true;
    event.point = (struct sl_point){lon, lat};
    return try_match_once(TRY_FILTER(.locations = sl_slice_str(locations)), &event);
}

static void test_box_matches_at_its_edges_and_across_the_antimeridian(void **state)
{
    const double inside[] = {175, 180, -180, -175, 170, -170};

    (void)state;
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++)
        assert_true(in_box("170,-20,-170,-10", inside[i], -10));
    assert_false(in_box("170,-20,-170,-10", 169.999, -15));
    assert_false(in_box("170,-20,-170,-10", -169.999, -15));
    assert_true(in_box("170,0,180,1", -180, 1));
    assert_true(in_box("-180,80,-170,90", 0, 90));
    assert_false(in_box("-180,80,-170,90", 0, 89.999));
    assert_true(in_box("0,-90,0,-90", 123, -90));
    assert_true(in_box("5,5,6,6,0,0,1,1", 0.5, 0.5));
}

static void test_shape_of_a_post_is_its_point_or_else_its_box(void **state)
{
    struct sl_filter *filter = TRY_FILTER(.locations = SL_SLICE("0,0,10,10"));
    struct sl_event_view event = try_post("x");

    (void)state;
    assert_false(try_match(filter, &event));
    event.has_box = true;
    event.box = (struct sl_box){10, 10, 20, 20};
    assert_true(try_match(filter, &event));
    event.box = (struct sl_box){-180, -90, 180, 90};
    assert_true(try_match(filter, &event));
    event.box = (struct sl_box){11, 0, -1, 10}; /* everything but this place */
    assert_false(try_match(filter, &event));
    event.has_point = true;
    event.point = (struct sl_point){1, 1};
    assert_true(try_match(filter, &event));
    sl_filter_unref(filter);
}

static void test_selectors_are_alternatives(void **state)
{
    struct sl_filter *filter =
        TRY_FILTER(.track = SL_SLICE("cat"), .follow = SL_SLICE("5"), .rule = SL_SLICE("dog fox"),
                   .locations = SL_SLICE("0,0,1,1"));
    struct sl_event_view event = try_post("dog");

    (void)state;
    assert_false(try_match(filter, &event));
    event.text = SL_SLICE("dog fox");
    assert_true(try_match(filter, &event));
    event.text = SL_SLICE("cat");
    assert_true(try_match(filter, &event));
    event.text = SL_SLICE("");
    event.has_point = true;
    assert_true(try_match(filter, &event));
    event.point.lat = 2;
    assert_false(try_match(filter, &event));
    event.user = SL_SLICE("5");
    assert_true(try_match(filter, &event));
    sl_filter_unref(filter);
}

static bool in_language(const char *ranges, const char *lang)
{
    struct sl_event_view event = try_post("x");
    bool tracked, all;

    event.lang = sl_slice_str(lang);
    tracked = try_match_once(TRY_FILTER(.track = SL_SLICE("x"), .language = sl_slice_str(ranges)),
                             &event);
    all = try_match_once(TRY_FILTER(.firehose = true, .language = sl_slice_str(ranges)), &event);
    assert_int_equal(tracked, all);
    return all;
}

static void test_language_range_matches_itself_and_what_is_within(void **state)
{
    (void)state;
    assert_true(in_language("zh", "zh-TW"));
    assert_true(in_language("ZH", "zh"));
    assert_true(in_language("zh-tw", "ZH-TW-x"));
    assert_false(in_language("zh-TW", "zh"));
    assert_false(in_language("zh", "zho"));
    assert_true(in_language("de , en", "en"));
    assert_true(in_language("und", ""));
    assert_true(in_language("und", NULL));
    assert_false(in_language("en", NULL));
}

static void test_sample_and_partition_alone_select_from_everything(void **state)
{
    struct sl_event_view event = try_post("x"); /* sample 325164 ppm, part 8 of 8 */

    (void)state;
    assert_true(try_match_once(TRY_FILTER(.sample = SL_SLICE(" 32.5165% ")), &event));
    assert_false(try_match_once(TRY_FILTER(.sample = SL_SLICE("32.5164")), &event));
    assert_true(try_match_once(TRY_FILTER(.sample = SL_SLICE("100")), &event));
    assert_true(try_match_once(TRY_FILTER(.partition = SL_SLICE(" 8/8 ")), &event));
    assert_false(try_match_once(TRY_FILTER(.partition = SL_SLICE("7/8")), &event));
    assert_true(try_match_once(TRY_FILTER(.partition = SL_SLICE("1/1")), &event));
    assert_true(try_match_once(TRY_FILTER(.partition = SL_SLICE("1,8,3/8")), &event));
    assert_false(try_match_once(TRY_FILTER(.partition = SL_SLICE("1,2,3,4,5,6,7/8")), &event));
    assert_true(try_match_once(TRY_FILTER(.partition = SL_SLICE("2,1/2")), &event));
    assert_false(
        try_match_once(TRY_FILTER(.track = SL_SLICE("y"), .sample = SL_SLICE("100")), &event));
    assert_false(
        try_match_once(TRY_FILTER(.sample = SL_SLICE("50"), .partition = SL_SLICE("1/8")), &event));
}

static void test_delete_goes_where_its_post_went(void **state)
{
    struct sl_filter *cat = TRY_FILTER(.track = SL_SLICE("cat"));
    struct sl_filter *dog = TRY_FILTER(.track = SL_SLICE("dog"));
    struct sl_event_view event = try_post("cat");

    (void)state;
    event.type = SL_EVENT_DELETE;
    assert_true(try_match(cat, &event));
    assert_false(try_match(dog, &event));
    event.text = SL_SLICE(""); /* an empty text is a text, too */
    assert_false(try_match(cat, &event));
    sl_filter_unref(cat);
    sl_filter_unref(dog);
}

static void test_bare_delete_goes_to_all_who_take_deletes_and_have_it_in_their_sample(void **state)
{
    struct sl_event_view event = try_post(NULL);

    (void)state;
    event.type = SL_EVENT_DELETE;
    assert_true(try_match_once(TRY_FILTER(.track = SL_SLICE("x")), &event));
    assert_true(
        try_match_once(TRY_FILTER(.track = SL_SLICE("x"), .language = SL_SLICE("en")), &event));
    assert_true(try_match_once(TRY_FILTER(.rule = SL_SLICE("x sample:0.0001")), &event));
    assert_true(try_match_once(TRY_FILTER(.firehose = true, .types = SL_SLICE("delete")), &event));
    assert_false(
        try_match_once(TRY_FILTER(.track = SL_SLICE("x"), .types = SL_SLICE("post")), &event));
    assert_false(
        try_match_once(TRY_FILTER(.track = SL_SLICE("x"), .sample = SL_SLICE("1")), &event));
    assert_false(
        try_match_once(TRY_FILTER(.track = SL_SLICE("x"), .partition = SL_SLICE("1/8")), &event));
    event.restricted = true;
    assert_false(try_match_once(TRY_FILTER(.track = SL_SLICE("x")), &event));
}

static void test_restricted_event_matches_no_filter_at_all(void **state)
{
    struct sl_event_view event = try_post("x");

    (void)state;
    event.restricted = true;
    assert_false(try_match_once(TRY_FILTER(.firehose = true), &event));
    assert_false(try_match_once(TRY_FILTER(.track = SL_SLICE("x")), &event));
}

static bool user_matches(struct sl_filter_text text, const char *id, const char *login,
                         const char *words)
{
    struct sl_event_view event = try_post(words);

    event.user = sl_slice_str(id);
    event.login = sl_slice_str(login);
    return try_match_once(try_filter(text), &event);
}

/* Authors may be any bytes, which are not interpreted. */
static void test_authors_only_are_ids(void **state)
{
    struct sl_filter *filter =
        TRY_FILTER(.follow = SL_SLICE("12,ada,\xc3\xa9/%,@bob"), .authors_only = true,
                   .types = SL_SLICE("post,delete,follow,unfollow"));
    struct sl_event_view event = try_post("@12 @bob hello");

    (void)state;
    event.reply_to.user = event.repost_of.user = SL_SLICE("12");
    event.login = SL_SLICE("ada");
    assert_false(try_match(filter, &event));
    event.user = SL_SLICE("12");
    assert_true(try_match(filter, &event));
    event.user = SL_SLICE("\xc3\xa9/%");
    assert_true(try_match(filter, &event));
    event.user = SL_SLICE("@bob");
    assert_true(try_match(filter, &event));
    event.user = SL_SLICE("bob");
    assert_false(try_match(filter, &event));
    event = (struct sl_event_view){.type = SL_EVENT_FOLLOW, .target = SL_SLICE("12")};
    event.user = SL_SLICE("1");
    assert_false(try_match(filter, &event));
    event.user = SL_SLICE("ada");
    assert_true(try_match(filter, &event));
    sl_filter_unref(filter);
}

/* Digits are an id, @x is a login, anything else is whichever is possible: in follow and in
 * rules. */
static void test_a_user_is_named_by_the_same_rule_everywhere(void **state)
{
    static const struct {
        const char *name, *id, *login;
        bool matches;
    } cases[] = {
        {"12", "12", "ada", true},       {"12", "7", "12", false},
        {"@12", "7", "12", true},        {"@12", "12", "ada", false},
        {"ada", "12", "Ada", true},      {"ada", "ada", NULL, true},
        {"ada", "ADA", NULL, false},     {"@ada", "12", "ada", true},
        {"@ada", "ada", NULL, false},    {"did:plc:x", "did:plc:x", NULL, true},
        {"did:plc:x", "12", "x", false}, {"张三", "12", "张三", true},
        {"＠张三", "12", "张三", true},  {"007", "007", NULL, true},
        {"007", "7", "007", false},      {"a.b", "a.b", "c", true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sl_filter_text follow = {.follow = sl_slice_str(cases[i].name)};
        char rule[64];

        snprintf(rule, sizeof(rule), "from:%s", cases[i].name);
        if (user_matches(follow, cases[i].id, cases[i].login, "x") != cases[i].matches)
            fail_msg("follow=%s, user %s, login %s", cases[i].name, cases[i].id, cases[i].login);
        if (user_matches((struct sl_filter_text){.rule = sl_slice_str(rule)}, cases[i].id,
                         cases[i].login, "x") != cases[i].matches)
            fail_msg("%s, user %s, login %s", rule, cases[i].id, cases[i].login);
    }
    assert_true(
        user_matches((struct sl_filter_text){.follow = SL_SLICE("ada")}, "7", "bob", "ask @ada"));
    assert_false(
        user_matches((struct sl_filter_text){.rule = SL_SLICE("-from:ada x")}, "12", "ada", "x"));
}

static struct sl_event_view follow_event(enum sl_event_type type)
{
    return (struct sl_event_view){.type = type,
                                  .sample_id = 1001,
                                  .user = SL_SLICE("1"),
                                  .target = SL_SLICE("2"),
                                  .login = SL_SLICE("alice")};
}

static bool follow_matches(struct sl_filter_text text)
{
    struct sl_event_view event = follow_event(SL_EVENT_FOLLOW);

    text.types = SL_SLICE("post,delete,follow,unfollow");
    return try_match_once(try_filter(text), &event);
}

static void test_follow_events_match_by_ids_only(void **state)
{
    (void)state;
    assert_true(follow_matches((struct sl_filter_text){.firehose = true}));
    assert_true(follow_matches((struct sl_filter_text){.follow = SL_SLICE("1")}));
    assert_true(follow_matches((struct sl_filter_text){.follow = SL_SLICE("2,9")}));
    assert_false(follow_matches((struct sl_filter_text){.follow = SL_SLICE("3,@alice")}));
    assert_true(follow_matches((struct sl_filter_text){.rule = SL_SLICE("from:1")}));
    assert_true(follow_matches((struct sl_filter_text){.rule = SL_SLICE("to:2 -lang:en -x")}));
    assert_true(follow_matches((struct sl_filter_text){.rule = SL_SLICE("x OR (from:1 to:2)")}));
    assert_false(follow_matches((struct sl_filter_text){.rule = SL_SLICE("from:2")}));
    assert_false(follow_matches((struct sl_filter_text){.rule = SL_SLICE("to:1")}));
    assert_false(follow_matches((struct sl_filter_text){.rule = SL_SLICE("from:alice")}));
    assert_false(follow_matches((struct sl_filter_text){.rule = SL_SLICE("repost_of:1")}));
    assert_false(follow_matches((struct sl_filter_text){.rule = SL_SLICE("from:1 lang:und")}));
    assert_false(follow_matches((struct sl_filter_text){.rule = SL_SLICE("from:1 sample:100")}));
    assert_true(
        follow_matches((struct sl_filter_text){.firehose = true, .language = SL_SLICE("en")}));
    assert_false(
        follow_matches((struct sl_filter_text){.firehose = true, .partition = SL_SLICE("1/8")}));
}

static bool user_event_matches(struct sl_filter_text text)
{
    struct sl_event_view event = {.type = SL_EVENT_USER, .sample_id = 1001, .user = SL_SLICE("1")};

    if (!text.types.data)
        text.types = SL_SLICE("post,delete,follow,unfollow,user");
    return try_match_once(try_filter(text), &event);
}

static void test_what_changes_of_a_user_is_found_by_id(void **state)
{
    (void)state;
    assert_true(user_event_matches((struct sl_filter_text){.firehose = true}));
    assert_true(
        user_event_matches((struct sl_filter_text){.firehose = true, .types = SL_SLICE("user")}));
    assert_true(user_event_matches((struct sl_filter_text){.follow = SL_SLICE("9,1")}));
    assert_true(user_event_matches(
        (struct sl_filter_text){.follow = SL_SLICE("1"), .types = SL_SLICE("user")}));
    assert_true(
        user_event_matches((struct sl_filter_text){.follow = SL_SLICE("1"), .authors_only = true}));
    assert_true(user_event_matches((struct sl_filter_text){.rule = SL_SLICE("from:1 -x")}));
    assert_true(
        user_event_matches((struct sl_filter_text){.firehose = true, .language = SL_SLICE("en")}));
    assert_false(user_event_matches(
        (struct sl_filter_text){.firehose = true, .types = SL_SLICE("post,follow")}));
    assert_false(user_event_matches((struct sl_filter_text){.follow = SL_SLICE("2,@alice")}));
    assert_false(user_event_matches((struct sl_filter_text){.rule = SL_SLICE("to:1")}));
    assert_false(user_event_matches((struct sl_filter_text){.rule = SL_SLICE("from:@alice")}));
    assert_false(user_event_matches((struct sl_filter_text){.track = SL_SLICE("alice")}));
    assert_false(user_event_matches(
        (struct sl_filter_text){.firehose = true, .partition = SL_SLICE("1/8")}));
}

static void test_types_choose_events_and_are_posts_and_deletes_by_default(void **state)
{
    struct sl_event_view post = try_post("x"), follow = follow_event(SL_EVENT_FOLLOW),
                         unfollow = follow_event(SL_EVENT_UNFOLLOW),
                         user = {.type = SL_EVENT_USER, .user = SL_SLICE("1")};
    struct sl_filter *filter = TRY_FILTER(.firehose = true);

    (void)state;
    assert_int_equal(sl_filter_types(filter), 1u << SL_EVENT_POST | 1u << SL_EVENT_DELETE);
    assert_true(try_match(filter, &post));
    assert_false(try_match(filter, &follow));
    assert_false(try_match(filter, &user));
    sl_filter_unref(filter);
    filter = TRY_FILTER(.firehose = true, .types = SL_SLICE(" unfollow ，unfollow"));
    assert_int_equal(sl_filter_types(filter), 1u << SL_EVENT_UNFOLLOW);
    assert_false(try_match(filter, &post));
    assert_false(try_match(filter, &follow));
    assert_true(try_match(filter, &unfollow));
    sl_filter_unref(filter);
}

static unsigned kinds_of(struct sl_filter_text text)
{
    struct sl_filter *filter = try_filter(text);
    unsigned kinds = sl_filter_kinds(filter);

    sl_filter_unref(filter);
    return kinds;
}

static void test_kinds_tell_which_permissions_a_filter_takes(void **state)
{
    struct sl_filter *filter = TRY_FILTER(.sample = SL_SLICE("12.5"));

    (void)state;
    assert_int_equal(sl_filter_sample_ppm(filter), 125000);
    sl_filter_unref(filter);
    assert_int_equal(kinds_of((struct sl_filter_text){.firehose = true}), SL_FILTER_FIREHOSE);
    assert_int_equal(kinds_of((struct sl_filter_text){.sample = SL_SLICE("100")}),
                     SL_FILTER_SAMPLE);
    assert_int_equal(
        kinds_of((struct sl_filter_text){.rule = SL_SLICE("x"), .partition = SL_SLICE("1/2")}),
        SL_FILTER_SELECTIVE | SL_FILTER_SAMPLE);
}

static void assert_same_key(struct sl_filter_text a, struct sl_filter_text b, bool same)
{
    struct sl_filter *left = try_filter(a), *right = try_filter(b);

    assert_int_equal(sl_slice_equal(sl_filter_key(left), sl_filter_key(right)), same);
    sl_filter_unref(left);
    sl_filter_unref(right);
}

#define TEXT(...) ((struct sl_filter_text){__VA_ARGS__})

static void test_filters_of_equal_meaning_have_equal_keys(void **state)
{
    (void)state;
    assert_same_key(TEXT(.track = SL_SLICE("Cat dog,fox")),
                    TEXT(.track = SL_SLICE("FOX,dog cat,fox")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a,b")), TEXT(.rule = SL_SLICE("b OR a")), true);
    assert_same_key(TEXT(.rule = SL_SLICE("(a b) c")), TEXT(.rule = SL_SLICE("c AND (b a)")), true);
    assert_same_key(TEXT(.rule = SL_SLICE("\"Cat dog a-b\"~3")),
                    TEXT(.rule = SL_SLICE("\"A-B & CAT\tdog\"~3")), true);
    assert_same_key(TEXT(.rule = SL_SLICE("\"a a b\"~3")), TEXT(.rule = SL_SLICE("\"a b\"~3")),
                    false);
    assert_same_key(TEXT(.rule = SL_SLICE("\"a b\"~3")), TEXT(.rule = SL_SLICE("\"a b\"~2")),
                    false);
    assert_same_key(TEXT(.rule = SL_SLICE("polygon:[0 0, 1 0, 0 1]")),
                    TEXT(.rule = SL_SLICE("polygon:[ 0.0\t+0，1 -0,0 1.0 ,0 0]")), true);
    assert_same_key(TEXT(.follow = SL_SLICE("1,2,1")), TEXT(.follow = SL_SLICE("2,1")), true);
    assert_same_key(TEXT(.locations = SL_SLICE("-0,0,1.50,1")),
                    TEXT(.locations = SL_SLICE("+0,0,1.5,1.0")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .firehose = true), TEXT(.firehose = true), true);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .sample = SL_SLICE("100")),
                    TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("1/1")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("2,1/4")),
                    TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("1,2,1/4")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("2,1/2")),
                    TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("1/1")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("2/4")),
                    TEXT(.track = SL_SLICE("a"), .partition = SL_SLICE("1,2/4")), false);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .types = SL_SLICE("delete,post")),
                    TEXT(.track = SL_SLICE("a")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a"), .language = SL_SLICE("en,ZH")),
                    TEXT(.track = SL_SLICE("a"), .language = SL_SLICE("zh,EN,en")), true);
    assert_same_key(TEXT(.track = SL_SLICE("a b")), TEXT(.track = SL_SLICE("a,b")), false);
    assert_same_key(TEXT(.track = SL_SLICE("#a")), TEXT(.track = SL_SLICE("a")), false);
    assert_same_key(TEXT(.rule = SL_SLICE("from:a")), TEXT(.rule = SL_SLICE("to:a")), false);
    assert_same_key(TEXT(.rule = SL_SLICE("a -b")), TEXT(.rule = SL_SLICE("a b")), false);
    assert_same_key(TEXT(.rule = SL_SLICE("url:A.com/x")), TEXT(.rule = SL_SLICE("url:a.com/X")),
                    false);
    assert_same_key(TEXT(.rule = SL_SLICE("\"iphone手机\"")),
                    TEXT(.rule = SL_SLICE("\"iphone 手机\"")), false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keyword_matches_by_whole_word_or_by_substring_of_unspaced_script),
        cmocka_unit_test(test_keyword_does_not_reach_across_a_url_nor_into_it),
        cmocka_unit_test(test_keyword_is_found_anywhere_in_a_long_text_of_repeated_words),
        cmocka_unit_test(test_entity_matches_exactly_and_is_part_of_the_text),
        cmocka_unit_test(test_phrase_matches_when_all_its_terms_do_in_any_order),
        cmocka_unit_test(test_follow_matches_author_answered_and_repeated_but_no_mention_of_an_id),
        cmocka_unit_test(test_many_users_are_all_found),
        cmocka_unit_test(test_box_matches_at_its_edges_and_across_the_antimeridian),
        cmocka_unit_test(test_shape_of_a_post_is_its_point_or_else_its_box),
        cmocka_unit_test(test_selectors_are_alternatives),
        cmocka_unit_test(test_language_range_matches_itself_and_what_is_within),
        cmocka_unit_test(test_sample_and_partition_alone_select_from_everything),
        cmocka_unit_test(test_delete_goes_where_its_post_went),
        cmocka_unit_test(test_bare_delete_goes_to_all_who_take_deletes_and_have_it_in_their_sample),
        cmocka_unit_test(test_restricted_event_matches_no_filter_at_all),
        cmocka_unit_test(test_authors_only_are_ids),
        cmocka_unit_test(test_a_user_is_named_by_the_same_rule_everywhere),
        cmocka_unit_test(test_follow_events_match_by_ids_only),
        cmocka_unit_test(test_what_changes_of_a_user_is_found_by_id),
        cmocka_unit_test(test_types_choose_events_and_are_posts_and_deletes_by_default),
        cmocka_unit_test(test_kinds_tell_which_permissions_a_filter_takes),
        cmocka_unit_test(test_filters_of_equal_meaning_have_equal_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
