/* Normal form and character classes compared with ICU, for all of Unicode and for random
 * strings. */
#include <stdio.h>
#include <string.h>

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "base/stable_hash.h"
#include "filters/tables/unicode_table.h"
#include "filters/words_private.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/words_reference.h"

#define NORMALIZATION_TEST "/usr/share/unicode/NormalizationTest.txt"

enum { LAST_CODE_POINT = 0x10FFFF, RANDOM_STRINGS = 150000, RANDOM_LENGTH = 12 };

struct pair {
    struct buffer ours, reference;
};

static struct pair pair;

static void clear_pair(void)
{
    buffer_clear(&pair.ours);
    buffer_clear(&pair.reference);
}

static int free_pair(void **state)
{
    (void)state;
    buffer_done(&pair.ours);
    buffer_done(&pair.reference);
    return 0;
}

static void fail_with(const char *what, struct sl_slice text)
{
    for (size_t i = 0; i < text.size;) {
        UChar32 c;

        U8_NEXT_UNSAFE(text.data, i, c);
        print_error(" %04x", (unsigned)c);
    }
    fail_msg(": %s differs: '%s', not '%s'", what, buffer_str(&pair.ours),
             buffer_str(&pair.reference));
}

static void check_normal_form(struct sl_slice text)
{
    clear_pair();
    assert_int_equal(sl_normalise(text, &pair.ours), 0);
    reference_normalise(text, &pair.reference);
    if (!sl_slice_equal(buffer_slice(&pair.ours), buffer_slice(&pair.reference)))
        fail_with("normal form", text);
}

/* `count` code points, without those that are 0. */
static void check_points(const uint32_t *points, size_t count)
{
    char text[4 * RANDOM_LENGTH];
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        if (points[i] != 0)
            U8_APPEND_UNSAFE(text, size, points[i]);
    check_normal_form(sl_slice(text, size));
}

static bool is_scalar(uint32_t c)
{
    return c > 0 && c <= LAST_CODE_POINT && !U_IS_SURROGATE(c);
}

static void test_every_code_point_alone_has_icu_s_normal_form(void **state)
{
    (void)state;
    for (uint32_t c = 1; c <= LAST_CODE_POINT; c++)
        if (is_scalar(c))
            check_points(&c, 1);
}

/* Next to characters that may change it, or that it may change: a mark of each kind, jamo, a dotted
 * i. */
static void test_every_assigned_code_point_has_icu_s_normal_form_among_others(void **state)
{
    static const uint32_t before[] = {'e', 'i', 0x1100, 0x0323, 0x0130, 0x0378, 0xAC00};
    static const uint32_t behind[] = {0x0301, 0x0323, 0x0307, 0x3099, 0x1161,
                                      0x11A8, 0x094D, 0x0345, 0x200D};

    (void)state;
    for (uint32_t c = 1; c <= LAST_CODE_POINT; c++) {
        if (!is_scalar(c) || !u_isdefined((UChar32)c) ||
            u_charType((UChar32)c) == U_PRIVATE_USE_CHAR)
            continue;
        if (c >= 0x3400 && c <= 0x9FFF && c % 16 != 0)
            continue; /* all of Han behaves alike, and there is much of it */
        check_points((uint32_t[]){before[c % 7], c, behind[c % 9]}, 3);
        check_points((uint32_t[]){c, 0x0301, c, 0x0323}, 4);
        if (u_getCombiningClass((UChar32)c) != 0 || sl_unicode_value(c) >= SL_UNICODE_MARK) {
            for (size_t i = 0; i < 7; i++)
                for (size_t k = 0; k < 9; k++)
                    check_points((uint32_t[]){before[i], c, behind[k]}, 3);
        }
    }
}

static void test_every_code_point_has_the_class_of_section_4(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= LAST_CODE_POINT; c++) {
        bool letter;
        char class = reference_class(c, &letter);
        unsigned info = sl_unicode_info(c);

        if ("-WUE"[info & SL_UNICODE_CLASS_MASK] != class ||
            letter != ((info & SL_UNICODE_LETTER) != 0))
            fail_msg("U+%04X is not %c", c, class);
    }
}

static uint64_t next_random(void)
{
    static uint64_t count;

    return stable_hash(++count);
}

/* A code point, usually one that interacts with its neighbours. */
static uint32_t random_point(void)
{
    static const char signs[] = "#@$&_ ,.:/-'iIaeZ019";
    static const uint16_t starts[] = {0x00A0, 0x0300, 0x0340, 0x0590, 0x0900, 0x0E00, 0x0F40,
                                      0x1000, 0x1100, 0x1160, 0x1DC0, 0x1E00, 0x1F00, 0x2000,
                                      0x2100, 0x3040, 0x3130, 0x4E00, 0xAC00, 0xF900, 0xFB00,
                                      0xFE00, 0xFE20, 0xFF00, 0xFF60, 0x0120};
    uint64_t random = next_random();
    uint32_t c = (uint32_t)(random >> 32);

    switch (random % 8) {
    case 0:
        return (uint32_t)signs[c % (sizeof(signs) - 1)];
    case 1:
        return 0x0300 + c % 0x70;
    case 2:
        return 0x10000 + c % 0x10000;
    case 3: /* a code point with an entry in the table */
        for (int i = 0; i < 1000; i++, c = (uint32_t)(next_random() >> 32)) {
            uint16_t value = sl_unicode_value(c % 0x20000);

            if (is_scalar(c % 0x20000) && value >= SL_UNICODE_UNASSIGNED &&
                (value < SL_UNICODE_RECORDS) == (c >> 31))
                return c % 0x20000;
        }
        return 'x';
    default:
        return starts[c % (sizeof(starts) / sizeof(starts[0]))] + (c >> 16) % 0x60;
    }
}

static size_t random_text(char text[static 4 * RANDOM_LENGTH])
{
    size_t length = 1 + next_random() % RANDOM_LENGTH;
    size_t size = 0;

    while (length > 0) {
        uint32_t c = random_point();

        if (!is_scalar(c))
            continue;
        U8_APPEND_UNSAFE(text, size, c);
        length--;
    }
    return size;
}

static void test_random_strings_have_icu_s_normal_form(void **state)
{
    char text[4 * RANDOM_LENGTH];

    (void)state;
    for (int i = 0; i < RANDOM_STRINGS; i++)
        check_normal_form(sl_slice(text, random_text(text)));
}

static void test_random_texts_are_read_as_the_reference_reads_them(void **state)
{
    struct sl_words *words = sl_words_new(5);
    char text[4 * RANDOM_LENGTH];

    (void)state;
    for (int i = 0; i < RANDOM_STRINGS / 4; i++) {
        struct sl_event_view event = {.text = sl_slice(text, random_text(text))};

        clear_pair();
        assert_int_equal(sl_words_read(words, &event), 0);
        words_dump(words, &pair.ours);
        reference_dump(&event, &pair.reference);
        if (!sl_slice_equal(buffer_slice(&pair.ours), buffer_slice(&pair.reference)))
            fail_with("reading", event.text);
    }
    sl_words_free(words);
}

/* The columns of a line of NormalizationTest.txt: source, NFC, NFD, NFKC, NFKD. false: another
 * line, or about a code point added after Unicode 15.0. */
static bool parse_columns(const char *line, char columns[5][128], size_t sizes[5])
{
    for (int i = 0; i < 5; i++) {
        unsigned c;
        int used;

        sizes[i] = 0;
        while (sscanf(line, " %x%n", &c, &used) == 1) {
            if (sl_unicode_value(c) < SL_UNICODE_RECORDS &&
                (sl_unicode_value(c) & SL_UNICODE_KIND_MASK) == SL_UNICODE_UNASSIGNED)
                return false;
            U8_APPEND_UNSAFE(columns[i], sizes[i], c);
            line += used;
        }
        if (*line++ != ';')
            return false;
    }
    return true;
}

/* Normal forms of canonically equivalent strings are equal, except where U+0345, a mark, becomes a
 * letter: then marks before it stay in the given order. */
static void check_line(char columns[5][128], const size_t sizes[5])
{
    struct buffer first = BUFFER_INIT;

    for (int i = 0; i < 5; i++)
        check_normal_form(sl_slice(columns[i], sizes[i]));
    if (memmem(columns[2], sizes[2], "\u0345", 2))
        return;
    assert_int_equal(sl_normalise(sl_slice(columns[0], sizes[0]), &first), 0);
    for (int i = 1; i < 5; i++) {
        clear_pair();
        buffer_append_slice(&pair.reference, buffer_slice(&first));
        assert_int_equal(sl_normalise(sl_slice(columns[i], sizes[i]), &pair.ours), 0);
        if (!sl_slice_equal(buffer_slice(&pair.ours), buffer_slice(&first)))
            fail_with("normal form", sl_slice(columns[i], sizes[i]));
    }
    buffer_done(&first);
}

static void test_unicode_s_normalization_test_agrees(void **state)
{
    FILE *file = popen("cat " NORMALIZATION_TEST " 2>/dev/null || "
                       "bzcat " NORMALIZATION_TEST ".bz2 2>/dev/null",
                       "r");
    char line[1024], columns[5][128];
    size_t sizes[5];
    unsigned lines = 0;

    (void)state;
    assert_non_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (!parse_columns(line, columns, sizes))
            continue;
        check_line(columns, sizes);
        lines++;
    }
    pclose(file);
    if (lines == 0) {
        print_message(NORMALIZATION_TEST " is not here (package unicode-data): skipped\n");
        skip();
    }
    assert_true(lines > 18000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point_alone_has_icu_s_normal_form),
        cmocka_unit_test(test_every_assigned_code_point_has_icu_s_normal_form_among_others),
        cmocka_unit_test(test_every_code_point_has_the_class_of_section_4),
        cmocka_unit_test(test_random_strings_have_icu_s_normal_form),
        cmocka_unit_test(test_random_texts_are_read_as_the_reference_reads_them),
        cmocka_unit_test(test_unicode_s_normalization_test_agrees),
    };

    return cmocka_run_group_tests(tests, NULL, free_pair);
}
