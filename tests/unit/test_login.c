#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "src/model/id.h"
#include "src/model/login.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/words_reference.h"

static void assert_folds(const char *login, const char *expected)
{
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded;
    struct failure failure;

    if (sl_login_fold(sl_slice_str(login), room, &folded, &failure) < 0)
        fail_msg("'%s': %s", login, failure.text);
    if (!sl_slice_is(folded, expected))
        fail_msg("'%s' folds to '%.*s'", login, SL_SLICE_ARG(folded));
}

static void assert_refused(struct sl_slice login, const char *message)
{
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded = SL_SLICE("untouched");
    struct failure failure = {""};

    assert_int_equal(sl_login_fold(login, room, &folded, &failure), -EINVAL);
    if (!strstr(failure.text, message))
        fail_msg("'%.*s': said '%s'", SL_SLICE_ARG(login), failure.text);
    assert_true(sl_slice_is(folded, "untouched"));
}

static void test_spellings_of_one_login_fold_to_one(void **state)
{
    (void)state;
    assert_folds("ada", "ada");
    assert_folds("ADA_99", "ada_99");
    assert_folds("Straße", "strasse");
    assert_folds("ＡＢＣ１２", "abc12");
    assert_folds("Touché", "touché");
    assert_folds("Touche\xCC\x81", "touché");
    assert_folds("İstanbul", "istanbul");
    assert_folds("ısparta", "ısparta");
    assert_folds("張三", "張三");
    assert_folds("ｶﾞ", "ガ");
    assert_folds("1007", "1007");
}

static void test_dot_goes_only_where_it_follows_an_i(void **state)
{
    (void)state;
    assert_folds("ai\xCC\x87z", "aiz");
    assert_folds("x\xCC\x87", "ẋ");
    assert_folds("i\xCC\x87\xCC\x87n", "i\xCC\x87n");
}

static void test_other_characters_are_refused_by_number(void **state)
{
    (void)state;
    assert_refused(SL_SLICE("a b"), "holds U+0020; a login is made of letters, digits and _");
    assert_refused(SL_SLICE("@ada"), "U+0040");
    assert_refused(SL_SLICE("a-b"), "U+002D");
    assert_refused(SL_SLICE("a.b"), "U+002E");
    assert_refused(SL_SLICE("a\xE2\x80\x8D"
                            "b"),
                   "U+200D");
    assert_refused(SL_SLICE("a☕"), "U+2615");
    assert_refused(SL_SLICE("½"), "U+2044");
    assert_refused(SL_SLICE("\xEF\xB7\xBA"), "U+0020");
}

static void test_empty_broken_and_invisible_logins_are_refused(void **state)
{
    (void)state;
    assert_refused(SL_SLICE(""), "the login is empty");
    assert_refused(SL_SLICE_NONE, "the login is empty");
    assert_refused(SL_SLICE("a\xFF"), "not valid UTF-8");
    assert_refused(SL_SLICE("a\0b"), "NUL");
    assert_refused(SL_SLICE("a\nb"), "control character");
    assert_refused(SL_SLICE("\xEF\xB8\x8F"), "invisible"); /* a variation selector is a mark */
}

static void test_longest_login_fits_and_one_more_byte_does_not(void **state)
{
    static const char longest[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const char grows[] = "ŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉŉ"; /* 2 bytes each, 3 folded */

    (void)state;
    assert_int_equal(strlen(longest), 64);
    assert_folds(longest, longest);
    assert_refused(
        sl_slice_str("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        "longer than 64 bytes");
    assert_refused(sl_slice_str(grows), "longer than 64 bytes when folded");
}

/* The filter @login and the uniqueness of logins must refer to the same users. */
static void test_folding_is_the_normal_form_of_filters(void **state)
{
    uint32_t random = 1;
    int compared = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct buffer login = BUFFER_INIT, normal = BUFFER_INIT;
        char room[SL_LOGIN_SIZE];
        struct sl_slice folded;

        for (int i = 0; i < 3; i++) {
            uint32_t c;

            random = random * 1664525 + 1013904223;
            c = (random >> 8) % (random >> 31 ? 0x250 : 0x3000);
            if (c < 0x80)
                buffer_append_char(&login, (char)(c ? c : 'i'));
            else if (c < 0x800)
                buffer_append_format(&login, "%c%c", 0xC0 | (c >> 6), 0x80 | (c & 63));
            else
                buffer_append_format(&login, "%c%c%c", 0xE0 | (c >> 12), 0x80 | (c >> 6 & 63),
                                     0x80 | (c & 63));
        }
        if (sl_login_fold(buffer_slice(&login), room, &folded, NULL) == 0) {
            compared++;
            reference_normalise(buffer_slice(&login), &normal);
            if (!sl_slice_equal(folded, buffer_slice(&normal)))
                fail_msg("round %d: '%.*s' folds to '%.*s'", round,
                         SL_SLICE_ARG(buffer_slice(&login)), SL_SLICE_ARG(folded));
        }
        buffer_done(&login);
        buffer_done(&normal);
    }
    assert_true(compared > 2000);
}

static void test_shard_is_the_crc32_of_the_folded_login(void **state)
{
    (void)state;
    /* The check value of CRC-32: 0xCBF43926. */
    assert_int_equal(sl_login_shard(SL_SLICE("123456789"), 64), 0xCBF43926u % 64);
    assert_int_equal(sl_login_shard(SL_SLICE("123456789"), 7), 0xCBF43926u % 7);
    assert_int_equal(sl_login_shard(SL_SLICE("ada"), 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings_of_one_login_fold_to_one),
        cmocka_unit_test(test_dot_goes_only_where_it_follows_an_i),
        cmocka_unit_test(test_other_characters_are_refused_by_number),
        cmocka_unit_test(test_empty_broken_and_invisible_logins_are_refused),
        cmocka_unit_test(test_longest_login_fits_and_one_more_byte_does_not),
        cmocka_unit_test(test_folding_is_the_normal_form_of_filters),
        cmocka_unit_test(test_shard_is_the_crc32_of_the_folded_login),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
