/* Rules of X's filtered stream, translated to Sluice's language. */
#include "gateway/dialects/twitter2_rule_text.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "tests/support/cmocka_all.h"

static void translate(const char *theirs, const char *ours)
{
    const struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    char detail[TWITTER2_DETAIL_SIZE] = "";
    struct buffer rule = BUFFER_INIT;
    struct sl_filter *filter;

    if (twitter2_rule_translate(sl_slice_str(theirs), &rule, detail) < 0)
        fail_msg("%s: %s", theirs, detail);
    assert_string_equal(buffer_str(&rule), ours);
    buffer_done(&rule);
    if (twitter2_rule_filter(sl_slice_str(theirs), &limits, &filter, detail) < 0)
        fail_msg("%s: %s", theirs, detail);
    assert_int_equal(sl_filter_types(filter), 1u << SL_EVENT_POST);
    sl_filter_unref(filter);
}

static void refused(const char *theirs, const char *why)
{
    const struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    char detail[TWITTER2_DETAIL_SIZE] = "";
    struct sl_filter *filter;

    assert_int_equal(twitter2_rule_filter(sl_slice_str(theirs), &limits, &filter, detail), -EINVAL);
    assert_true(utf8_is_valid(sl_slice_str(detail)));
    if (!strstr(detail, why))
        fail_msg("%s: %s", theirs, detail);
}

static void test_what_means_the_same_is_the_same(void **state)
{
    (void)state;
    translate("cat", "cat");
    translate("cat has:links -grumpy", "cat has:links -grumpy");
    translate("(cat OR dog) \"big house\"~3 lang:en", "(cat OR dog) \"big house\"~3 lang:en");
    translate("#tea @ada $AAPL 茶", "#tea @ada $AAPL 茶");
    translate("from:ada -to:42 bounding_box:[8.2 46.8 8.9 47.3]",
              "from:ada -to:42 bounding_box:[8.2 46.8 8.9 47.3]");
    translate("((a b)OR(c -\"d e\")) sample:10", "((a b)OR(c -\"d e\")) sample:10");
    translate("place:\"new york\" point_radius:[8.5 47.4 25km]",
              "place:\"new york\" point_radius:[8.5 47.4 25km]");
    translate("\"and\" 12:30 Or_not", "\"and\" 12:30 Or_not");
}

static void test_what_is_called_otherwise_is_said_in_our_words(void **state)
{
    (void)state;
    translate("retweets_of:ada -is:Retweet is:reply", "repost_of:ada -is:repost is:reply");
    translate("cat place_country:CH", "cat country:CH");
    translate("\"the \\\"big\\\" house\"", "\"the  big  house\"");
}

static void test_what_we_have_not_is_refused_where_it_stands(void **state)
{
    (void)state;
    refused("cat conversation_id:12",
            "'conversation_id'. Operator is not available (at position 5)");
    refused("茶 context:12.34", "'context'. Operator is not available (at position 3)");
    refused("cat has:images", "'has:images'. Operator is not available (at position 9)");
    refused("cat -is:nullcast", "'is:nullcast'");
    refused("polygon:[1 2, 3 4, 1 4]", "'polygon'");
    refused("cat country:CH", "'country'");
    refused("has:xy茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶",
            "'has:xy茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶茶'");
    refused("repost_of:ada", "'repost_of'");
}

static void test_what_is_no_rule_there_is_none_here(void **state)
{
    char text[TWITTER2_RULE_MAX + 2];

    (void)state;
    refused("cat and dog", "Ambiguous use of and as a keyword");
    refused("cat AND dog", "(at position 5)");
    refused("cat or dog", "Ambiguous use of or as a keyword");
    refused("cat -(dog OR fox)",
            "A group cannot be negated. Negate each of its clauses (at position 6)");
    refused("cat -", "Nothing follows the minus");
    refused("cat \"dog", "The quote is not closed (at position 5)");
    refused("bounding_box:[1 2", "The bracket is not closed");
    refused("from: ada", "Nothing follows 'from:'");
    refused("", "");
    refused("-cat", "");
    refused("lang:en", "");
    refused("(a b) OR c sample:10", "sample:");
    refused("(cat", "");
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    refused(text, "at most 1024 characters, and this one 1025");
}

static void test_memory_may_run_out(void **state)
{
    const struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    char detail[TWITTER2_DETAIL_SIZE];
    struct sl_filter *filter = NULL;

    (void)state;
    for (uint64_t n = 0; !filter; n++) {
        int r;

        mem_fail_after(n);
        r = twitter2_rule_filter(SL_SLICE("cat -dog from:ada"), &limits, &filter, detail);
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
    }
    sl_filter_unref(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_means_the_same_is_the_same),
        cmocka_unit_test(test_what_is_called_otherwise_is_said_in_our_words),
        cmocka_unit_test(test_what_we_have_not_is_refused_where_it_stands),
        cmocka_unit_test(test_what_is_no_rule_there_is_none_here),
        cmocka_unit_test(test_memory_may_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
