#include <errno.h>
#include <stdio.h>

#include "base/buffer.h"
#include "gateway/http/form.h"
#include "tests/support/cmocka_all.h"

static const char *const names[] = {"track", "since"};
static struct sl_slice values[2];
static struct http_refusal refusal;

static int read_form(const char *text, struct form *form)
{
    struct sl_slice texts[] = {sl_slice_str(text)};

    *form = (struct form){names, 2, values, NULL};
    return form_read(form, texts, 1, &refusal);
}

static void test_values_are_decoded(void **state)
{
    struct form form;

    (void)state;
    assert_int_equal(read_form("track=caf%C3%A9+noir%2B&&since=", &form), 0);
    assert_true(sl_slice_is(values[0], "caf\xc3\xa9 noir+"));
    assert_true(values[1].data && values[1].size == 0);
    form_done(&form);
}

static void test_the_first_fault_is_named_and_the_rest_is_read(void **state)
{
    struct form form;

    (void)state;
    assert_int_equal(read_form("trakc=a&since=%zz&track=b", &form), -EPROTO);
    assert_string_equal(refusal.code, "unknown_parameter");
    assert_string_equal(refusal.param, "trakc");
    assert_true(sl_slice_is(values[0], "b"));
    form_done(&form);
}

/* `count` parameters, the last one with a known name; all others are `filler`. */
static int read_many(const char *filler, unsigned count, struct form *form)
{
    struct buffer text = BUFFER_INIT;
    int r;

    for (unsigned i = 1; i < count; i++)
        buffer_append_format(&text, "%s&", filler);
    buffer_append_str(&text, "track=a");
    r = read_form(buffer_str(&text), form);
    buffer_done(&text);
    return r;
}

static void test_the_sixty_fifth_parameter_is_not_looked_at(void **state)
{
    struct form form;

    (void)state;
    assert_int_equal(read_many("", 64, &form), 0);
    assert_true(sl_slice_is(values[0], "a"));
    form_done(&form);
    assert_int_equal(read_many("", 65, &form), -EPROTO);
    assert_string_equal(refusal.message, "there are more than 64 parameters");
    assert_string_equal(refusal.code, "bad_request");
    assert_null(values[0].data);
    form_done(&form);
    assert_int_equal(read_many("x", 65, &form), -EPROTO);
    assert_string_equal(refusal.code, "unknown_parameter");
    assert_null(values[0].data);
    form_done(&form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_decoded),
        cmocka_unit_test(test_the_first_fault_is_named_and_the_rest_is_read),
        cmocka_unit_test(test_the_sixty_fifth_parameter_is_not_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
