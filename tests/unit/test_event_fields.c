#include <errno.h>
#include <string.h>

#include "gateway/front/event_fields.h"
#include "tests/support/cmocka_all.h"

static uint64_t parsed(const char *text)
{
    struct failure failure = {""};
    uint64_t fields = 0;

    if (event_fields_parse(sl_slice_str(text), &fields, &failure) < 0)
        fail_msg("%s: %s", text, failure.text);
    return fields;
}

static const char *refused(const char *text)
{
    static struct failure failure;
    uint64_t fields = 77;

    assert_int_equal(event_fields_parse(sl_slice_str(text), &fields, &failure), -EINVAL);
    assert_int_equal(fields, 77);
    return failure.text;
}

static void expect_printed(uint64_t fields, const char *text)
{
    struct buffer printed = BUFFER_INIT;

    event_fields_print(fields, &printed);
    assert_string_equal(buffer_str(&printed), text);
    buffer_done(&printed);
}

static void test_the_order_of_the_names_does_not_matter(void **state)
{
    (void)state;
    assert_true(parsed("text,user.login") == parsed("user.login,text"));
    assert_true(parsed("text,user.login") != parsed("text,user.id"));
    expect_printed(parsed(" user.login , text"), "id,type,text,user.login");
}

static void test_what_every_event_has_may_be_named_or_not(void **state)
{
    (void)state;
    assert_true(parsed("id,type,text") == parsed("text"));
    assert_true(parsed("id") == parsed("type"));
    expect_printed(parsed("id"), "id,type");
}

static void test_sets_have_names(void **state)
{
    (void)state;
    assert_true(parsed("full") == EVENT_FIELDS_FULL);
    assert_true(parsed("short") == EVENT_FIELDS_SHORT);
    assert_true(parsed("ids") == parsed("user.id,target.id,reply_to.post,reply_to.user,"
                                        "repost_of.post,repost_of.user,quote_of.post,"
                                        "quote_of.user"));
    expect_printed(EVENT_FIELDS_FULL, "full");
    expect_printed(EVENT_FIELDS_SHORT, "short");
    expect_printed(parsed("ids"), "ids");
}

static void test_each_name_is_read_as_it_is_printed(void **state)
{
    uint64_t all = 0;

    (void)state;
    for (int field = 0; field < FIELD_COUNT; field++) {
        uint64_t fields = event_field_bit(FIELD_ID) | event_field_bit(FIELD_TYPE) |
                          event_field_bit((enum event_field)field);
        struct buffer printed = BUFFER_INIT;

        event_fields_print(fields, &printed);
        assert_true(parsed(buffer_str(&printed)) == fields);
        buffer_done(&printed);
        assert_false(all & event_field_bit((enum event_field)field));
        all |= event_field_bit((enum event_field)field);
    }
    assert_false(all & EVENT_FIELDS_SHORT);
}

static void test_refusals_name_what_is_wrong(void **state)
{
    (void)state;
    assert_string_equal(refused("text,texts"), "there is no field 'texts'");
    assert_string_equal(refused("Text"), "there is no field 'Text'");
    assert_string_equal(refused("user."), "there is no field 'user.'");
    assert_string_equal(refused("post"), "there is no field 'post'");
    assert_string_equal(refused("post.text"), "there is no field 'post.text'; it is called text");
    assert_string_equal(refused("post.user.id"),
                        "there is no field 'post.user.id'; it is called user.id");
    assert_string_equal(refused(""), "a name is empty");
    assert_string_equal(refused("text,"), "a name is empty");
    assert_string_equal(refused("text,,lang"), "a name is empty");
    assert_string_equal(refused("text,lang,text"), "'text' is given twice");
    assert_string_equal(refused("id,id"), "'id' is given twice");
    assert_string_equal(refused("user,user.login"),
                        "'user.login' is part of user, which is also given");
    assert_string_equal(refused("user.login,user"),
                        "'user.login' is part of user, which is also given");
    assert_string_equal(refused("short,geo"), "'short' stands alone");
    assert_string_equal(refused("geo,full"), "'full' stands alone");
}

static void test_a_long_name_is_cut_within_the_refusal(void **state)
{
    char name[4096];

    (void)state;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(strlen(refused(name)), strlen("there is no field ''") + 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_order_of_the_names_does_not_matter),
        cmocka_unit_test(test_what_every_event_has_may_be_named_or_not),
        cmocka_unit_test(test_sets_have_names),
        cmocka_unit_test(test_each_name_is_read_as_it_is_printed),
        cmocka_unit_test(test_refusals_name_what_is_wrong),
        cmocka_unit_test(test_a_long_name_is_cut_within_the_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
