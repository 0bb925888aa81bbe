/* Hashtags, mentions and cashtags of the conformance suite of twitter-text (Apache-2.0), which is
 * not part of this source: ../shared/data/twitter-text-extract.yml, or the folder `data` in
 * $SLUICE_SHARED. Skipped if it is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <unicode/utf8.h>

#include "filters/words_private.h"
#include "tests/support/cmocka_all.h"

/* Where our rules differ deliberately: what we find instead, joined by spaces. */
static const struct {
    const char *description, *found;
} differences[] = {
    /* any run of word characters is a name; Twitter's are ASCII, and not alone between signs */
    {"DO NOT extract username ending in @", "_ username"},
    {"DO NOT extract username followed by accented latin characters", "alice"},
    /* '@' counts after everything except a word, and never after a word */
    {"Extract lone metion but not @user@user (too close to an email)", "username test"},
    {"Extract mentions after 'RT'", "mention test"},
    {"Extract mentions after 'rt'", "mention test"},
    {"Extract mentions after 'Rt'", "mention test"},
    {"Extract mentions after 'rT'", "mention test"},
    {"DO NOT extract username preceded by !", "kn"},
    {"DO NOT extract username preceded by @", "kn"},
    {"DO NOT extract username preceded by #", "kn"},
    {"DO NOT extract username preceded by $", "kn"},
    {"DO NOT extract username preceded by %", "kn"},
    {"DO NOT extract username preceded by &", "kn"},
    {"DO NOT extract username preceded by *", "kn"},
    /* a tag may follow a script without spaces, and '/' */
    {"DO NOT extract a hashtag without a preceding space", "日本語ハッシュタグ"},
    {"DO NOT extract hashtag if it's a part of URL", "hashtag"},
    /* a tag contains only letters, marks, digits and '_' */
    {"Hashtag with ideographic iteration mark", "云々 学問のすゝめ いすゞ 各〻 各"},
    {"Extract hashtag with fullwidth tilde", "メ"},
    {"Extract hashtag with wave dash", "メ"},
    {"Extract Hebrew hashtags", "עַל וכו מ"},
    {"Extract Tibetan hashtags", "བོད བོད"},
    {"Extract hashtag with middle dot", "il"},
    /* a cashtag contains only a-z, and may follow a sign */
    {"Extract cashtags with . or _", "test test"},
    {"Do not include trailing . or _", "test"},
    {"Do not extract cashtags if there is no space before $", "ok ng"},
};

static FILE *open_suite(void)
{
    const char *shared = getenv("SLUICE_SHARED");
    char path[4096];

    snprintf(path, sizeof(path), "%s/data/twitter-text-extract.yml",
             shared ? shared : SOURCE_DIR "/../shared");
    return fopen(path, "r");
}

/* The value after `member`: JSON, except for YAML's \UXXXXXXXX; NULL: the line has no such
 * member. */
static json_t *member_value(const char *line, const char *member)
{
    char json[4096];
    size_t size = 0;

    if (strncmp(line, member, strlen(member)) != 0)
        return NULL;
    for (line += strlen(member); *line; line++) {
        unsigned code_point;

        assert_true(size + U8_MAX_LENGTH < sizeof(json));
        if (sscanf(line, "\\U%8x", &code_point) == 1) {
            U8_APPEND_UNSAFE(json, size, code_point);
            line += 9;
        } else {
            json[size++] = *line;
        }
    }
    return json_loadb(json, size, JSON_DECODE_ANY, NULL);
}

/* The names, joined by spaces; of the two of a mention, the shorter one. */
static void join_found(const struct sl_words *words, const struct sl_name_list *names,
                       struct buffer *joined)
{
    for (size_t i = 0; i < names->count; i++) {
        if (i + 1 < names->count && names->items[i + 1].offset == names->items[i].offset)
            continue;
        buffer_append_str(joined, joined->size > 0 ? " " : "");
        buffer_append_slice(joined, sl_words_name(words, &names->items[i]));
    }
}

static void join_expected(const char *description, const json_t *expected, struct buffer *joined)
{
    const json_t *name;
    size_t i;

    for (i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
        if (strcmp(differences[i].description, description) == 0) {
            buffer_append_str(joined, differences[i].found);
            return;
        }
    }
    json_array_foreach(expected, i, name)
    {
        buffer_append_str(joined, joined->size > 0 ? " " : "");
        assert_int_equal(sl_normalise(sl_slice_str(json_string_value(name)), joined), 0);
    }
}

static const struct sl_name_list *list_of(const struct sl_words *words, const char *section)
{
    if (strcmp(section, "mentions") == 0)
        return &words->mentions;
    if (strcmp(section, "hashtags") == 0 || strcmp(section, "hashtags_from_astral") == 0)
        return &words->hashtags;
    return strcmp(section, "cashtags") == 0 ? &words->cashtags : NULL;
}

static bool case_agrees(struct sl_words *words, const struct sl_name_list *names,
                        const char *description, const char *text, const json_t *expected)
{
    struct sl_event_view event = {.text = sl_slice_str(text)};
    struct buffer found = BUFFER_INIT, wanted = BUFFER_INIT;
    bool agrees;

    assert_int_equal(sl_words_read(words, &event), 0);
    join_found(words, names, &found);
    join_expected(description, expected, &wanted);
    agrees = strcmp(buffer_str(&found), buffer_str(&wanted)) == 0;
    if (!agrees)
        print_error("%s: '%s' gives '%s', not '%s'\n", description, text, buffer_str(&found),
                    buffer_str(&wanted));
    buffer_done(&found);
    buffer_done(&wanted);
    return agrees;
}

static void test_conformance_suite_agrees_but_for_known_differences(void **state)
{
    FILE *suite = open_suite();
    char line[2048], section[64] = "", description[256] = "";
    struct sl_words *words;
    json_t *text = NULL, *value;
    unsigned cases = 0, disagreeing = 0;

    (void)state;
    if (!suite) {
        print_message("twitter-text-extract.yml is not here: skipped\n");
        skip();
    }
    words = sl_words_new(1);
    while (fgets(line, sizeof(line), suite)) {
        const struct sl_name_list *names = list_of(words, section);

        if (line[2] != ' ' && sscanf(line, " %63[a-z_]:", section) == 1)
            continue;
        if (sscanf(line, "    - description: \"%255[^\"\n]", description) == 1 || !names)
            continue;
        value = member_value(line, "      text:");
        if (value) {
            json_decref(text);
            text = value;
        }
        value = member_value(line, "      expected:");
        if (value) {
            cases++;
            if (!case_agrees(words, names, description, json_string_value(text), value))
                disagreeing++;
            json_decref(value);
        }
    }
    json_decref(text);
    fclose(suite);
    sl_words_free(words);
    assert_int_equal(disagreeing, 0);
    assert_int_equal(cases, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conformance_suite_agrees_but_for_known_differences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
