/* The terms of `track` as Twitter's Streaming API 1.1 read them: docs/dialects/twitter1.md. */
#include "tests/support/filter_try.h"

static bool finds(const char *track, const char *text)
{
    struct sl_event_view event = try_post(text);

    return try_match_once(TRY_FILTER(.track = sl_slice_str(track), .track_is_verbatim = true),
                          &event);
}

static bool finds_link(const char *track, const char *link)
{
    struct sl_event_view event = try_post("look");
    struct sl_slice url = sl_slice_str(link);

    event.urls = &url;
    event.url_count = 1;
    return try_match_once(TRY_FILTER(.track = sl_slice_str(track), .track_is_verbatim = true),
                          &event);
}

struct table {
    const char *track, *texts[8];
};

static void expect(const struct table *rows, size_t count, bool is_found)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; rows[i].texts[k]; k++) {
            if (finds(rows[i].track, rows[i].texts[k]) != is_found)
                fail_msg("'%s' %s '%s'", rows[i].track, is_found ? "misses" : "finds",
                         rows[i].texts[k]);
        }
    }
}

#define EXPECT(rows, is_found) expect(rows, sizeof(rows) / sizeof((rows)[0]), is_found)

/* The examples in Twitter's own documentation. */
static const struct table found[] = {
    {"Twitter",
     {"TWITTER", "twitter", "\"Twitter\"", "twitter.", "#twitter", "@twitter",
      "http://twitter.com"}},
    {"Twitter's", {"I like Twitter's new design"}},
    {"twitter api,twitter streaming",
     {"The Twitter API is awesome", "The twitter streaming service is fast",
      "Twitter has a streaming API"}},
    {"example.com", {"Someday I will visit example.com"}},
    {"example.com/foobarbaz", {"example.com/foobarbaz", "www.example.com/foobarbaz"}},
    {"example com",
     {"example.com", "www.example.com", "foo.example.com", "foo.example.com/bar",
      "I hope my startup isn't merely another example of a dot com boom!"}},
    {"helm's-alee", {"helm's-alee"}},
    {"touché", {"touché", "TOUCHÉ"}},
    {"hello", {"hello world", "my brother says hello."}},
    {"hello.", {"my brother says hello."}},
};

static const struct table missed[] = {
    {"Twitter", {"TwitterTracker", "#newtwitter"}},
    {"Twitter's", {"Someday I'd like to visit @Twitter's office"}},
    {"twitter api,twitter streaming", {"I'm new to Twitter"}},
    {"example.com", {"There is no example.com/foobarbaz"}},
    {"example.com/foobarbaz", {"example.com"}},
    {"www.example.com/foobarbaz", {"www.example.com/foobarbaz", "example.com/foobarbaz"}},
    {"helm's-alee", {"#helm's-alee"}},
    {"touché", {"touche"}},
    {"hello.", {"hello world"}},
};

static void test_the_examples_of_its_description(void **state)
{
    (void)state;
    EXPECT(found, true);
    EXPECT(missed, false);
}

static void test_links_are_one_word_and_many(void **state)
{
    (void)state;
    assert_true(finds("example.com", "see http://www.Example.com/ now"));
    assert_true(finds("example.com/Foo", "(https://example.com/fOO?q=1)"));
    assert_true(finds("http://example.com/foo", "https://example.com/foo"));
    assert_true(finds("foo", "http://example.com/a/Foo.html"));
    assert_false(finds("example.com", "http://example.com/foo"));
    assert_false(finds("www.example.com", "http://www.example.com"));
    assert_false(finds("exam", "http://example.com"));
    assert_true(finds_link("sluice", "http://t.example/sluice"));
    assert_true(finds_link("t.example/sluice", "http://t.example/sluice"));
    assert_false(finds_link("look.t", "http://look.t/me"));
    assert_true(finds("tea's b.example", "http://a.example tea's http://b.example"));
    assert_false(finds("tea's", "http://a.example/tea's"));
}

static void test_words_are_whole(void **state)
{
    (void)state;
    assert_true(finds("twitter", "Twitter's"));
    assert_false(finds("中国", "在中国人"));
    assert_true(finds("中国", "在,中国。人"));
    assert_false(finds("iphone", "iphone手机"));
    assert_true(finds("iphone手机", "an iPhone手机!"));
    assert_true(finds("alice", "@Alice你好"));
    assert_true(finds("tea", "tea\u2615"));
    assert_true(finds("\u2615", "tea\u2615tea"));
    assert_false(finds("tea", "tea_cup"));
}

static void test_signs_and_punctuation_are_part_of_a_term(void **state)
{
    (void)state;
    assert_true(finds("#tea", "#tea"));
    assert_false(finds("#tea", "tea"));
    assert_false(finds("@tea", "#tea"));
    assert_true(finds("$tea", "buy $TEA"));
    assert_true(finds("$100", "for $100, no more"));
    assert_true(finds("c++", "write C++."));
    assert_false(finds("c++", "write C"));
    assert_true(finds(":)", "yes :)"));
    assert_true(finds("a，b", "what a,b is"));
    assert_true(finds("OR", "this or that"));
    assert_true(finds("ca*", "ca*"));
    assert_false(finds("ca*", "cats"));
}

static void test_what_is_refused(void **state)
{
    (void)state;
    assert_string_equal(TRY_REFUSED(.track = SL_SLICE(" , "), .track_is_verbatim = true),
                        "empty_track");
    assert_string_equal(TRY_REFUSED(.track = SL_SLICE("a,\u200B"), .track_is_verbatim = true),
                        "empty_keyword");
    assert_string_equal(
        TRY_REFUSED(.track = SL_SLICE("0123456789012345678901234567890123456789012345678901234567"
                                      "891"),
                    .track_is_verbatim = true),
        "phrase_too_long");
}

/* Events are only looked up by verbatim terms while a filter uses them. */
static void test_others_are_not_touched(void **state)
{
    struct sl_filter_index *index = sl_filter_index_new(TRY_SEED);
    struct sl_filter *plain = TRY_FILTER(.track = SL_SLICE("example"));
    struct sl_filter *verbatim =
        TRY_FILTER(.track = SL_SLICE("example,tea's"), .track_is_verbatim = true);
    struct sl_event_view event = try_post("http://example.com tea's");
    struct sl_words *words = sl_words_new(TRY_SEED);
    struct sl_match_set *matches = sl_match_set_new();
    uint32_t one, other;

    (void)state;
    assert_int_equal(sl_words_read(words, &event), 0);
    assert_int_equal(sl_filter_index_add(index, plain, &one), 0);
    assert_int_equal(sl_filter_index_add(index, verbatim, &other), 0);
    assert_int_equal(sl_filter_index_match(index, &event, words, matches), 0);
    assert_int_equal(sl_match_set_count(matches), 1);
    sl_filter_index_remove(index, other);
    assert_int_equal(sl_filter_index_match(index, &event, words, matches), 0);
    assert_int_equal(sl_match_set_count(matches), 0);
    sl_match_set_free(matches);
    sl_words_free(words);
    sl_filter_unref(plain);
    sl_filter_unref(verbatim);
    sl_filter_index_free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_examples_of_its_description),
        cmocka_unit_test(test_links_are_one_word_and_many),
        cmocka_unit_test(test_words_are_whole),
        cmocka_unit_test(test_signs_and_punctuation_are_part_of_a_term),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_others_are_not_touched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
