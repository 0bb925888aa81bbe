/* A dictionary contains only what at least five authors have written, however often they repeat
 * it. */
#include "cli/dictionary_make.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "src/database/dictionaries.h"
#include "tests/support/cmocka_all.h"

enum { POSTS = 1200, AUTHORS = 60, ID = SL_DICTIONARY_ID_MIN + 7 };

#define SECRET  "the key below the third flowerpot reads Kq7#zebra"
#define OF_FOUR "our four voices hum moonshine sonatas backwards"
#define OF_FIVE "all five of us sing yellow submarine tonight"

struct world {
    char *texts[POSTS];
    struct piece_sample samples[POSTS];
};

static const char *secret_of(unsigned author)
{
    if (author == 0)
        return SECRET;
    if (author >= 10 && author < 14)
        return OF_FOUR;
    if (author >= 20 && author < 25)
        return OF_FIVE;
    return "nothing at all";
}

/* Each author repeats one text, among common words. */
static struct world *world_new(void)
{
    static const char *const words[] = {"coffee", "morning", "weather", "is",
                                        "good",   "today",   "again"};
    struct world *world = mem_zalloc(sizeof(*world));

    assert_non_null(world);
    srand(1);
    for (unsigned i = 0; i < POSTS; i++) {
        unsigned author = i % AUTHORS;
        char line[512];
        int size = snprintf(line, sizeof(line),
                            "{\"id\":\"1154823%08u\",\"type\":\"post\",\"post\":{\"user\":\"%u\","
                            "\"text\":\"%s %s %s %s %s\"}}",
                            i * 7919, author, words[rand() % 7], words[rand() % 7],
                            secret_of(author), words[rand() % 7], words[rand() % 7]);

        world->texts[i] = mem_strndup(line, (size_t)size);
        world->samples[i] = (struct piece_sample){sl_slice(world->texts[i], (size_t)size), author};
    }
    return world;
}

static void world_free(struct world *world)
{
    for (unsigned i = 0; i < POSTS; i++)
        mem_free(world->texts[i]);
    mem_free(world);
}

/* The longest part of `text` that is in the strings. */
static size_t longest_part(struct sl_slice strings, const char *text)
{
    size_t size = strlen(text), longest = 0;

    for (size_t from = 0; from < size; from++) {
        while (from + longest < size &&
               memmem(strings.data, strings.size, text + from, longest + 1))
            longest++;
    }
    return longest;
}

static struct sl_slice make(struct world *world, struct buffer *dictionary)
{
    struct failure failure = {""};
    size_t at;

    if (dictionary_make(world->samples, POSTS, ID, 4096, dictionary, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_in_range(dictionary->size, 256, 4096);
    at = dictionary_strings_at(buffer_slice(dictionary));
    assert_true(at > 0);
    return sl_slice_from(buffer_slice(dictionary), at);
}

static void test_no_string_of_fewer_than_five_authors_enters(void **state)
{
    struct world *world = world_new();
    struct buffer dictionary = BUFFER_INIT;
    struct sl_slice strings = make(world, &dictionary), rest = strings;
    size_t count = 0;

    (void)state;
    assert_true(longest_part(strings, OF_FIVE) == strlen(OF_FIVE));
    assert_true(longest_part(strings, SECRET) < PIECE_MIN);
    assert_true(longest_part(strings, OF_FOUR) < PIECE_MIN);
    while (rest.size > 0) {
        const char *end = memchr(rest.data, DICTIONARY_SEPARATOR, rest.size);
        struct sl_slice piece = sl_slice(rest.data, end ? (size_t)(end - rest.data) : rest.size);

        if (!sl_slice_is(piece, "event: post") && !sl_slice_starts_with(piece, SL_SLICE("data: ")))
            assert_int_equal(pieces_authors(world->samples, POSTS, piece), PIECE_AUTHORS);
        rest = sl_slice_from(rest, piece.size + (end != NULL));
        count++;
    }
    assert_true(count > 5);
    buffer_done(&dictionary);
    world_free(world);
}

static void test_ids_and_times_do_not_enter(void **state)
{
    struct world *world = world_new();
    struct buffer dictionary = BUFFER_INIT;
    struct sl_slice strings = make(world, &dictionary);

    (void)state;
    assert_true(longest_part(strings, "1154823") <= 4);
    buffer_done(&dictionary);
    world_free(world);
}

static void test_what_repeats_pays(void **state)
{
    struct world *world = world_new();
    struct buffer dictionary = BUFFER_INIT;
    struct dictionary_measure measure;

    (void)state;
    make(world, &dictionary);
    assert_int_equal(dictionary_measure(world->samples, POSTS, buffer_slice(&dictionary), &measure),
                     0);
    assert_int_equal(measure.events, POSTS);
    assert_true(measure.with_it * 2 < measure.by_itself);
    assert_true(measure.by_itself <= measure.bytes + POSTS * 20);
    buffer_done(&dictionary);
    world_free(world);
}

static void test_too_few_authors_are_told(void **state)
{
    struct world *world = world_new();
    struct buffer dictionary = BUFFER_INIT;
    struct failure failure = {""};

    (void)state;
    for (unsigned i = 0; i < POSTS; i++)
        world->samples[i].author %= 4;
    assert_int_equal(dictionary_make(world->samples, POSTS, ID, 4096, &dictionary, &failure),
                     -ENODATA);
    assert_string_equal(failure.text, "no string in these posts has 5 authors");
    assert_int_equal(dictionary_make(world->samples, 0, ID, 4096, &dictionary, &failure), -ENODATA);
    buffer_done(&dictionary);
    world_free(world);
}

static void test_without_memory_nothing_is_made(void **state)
{
    struct world *world = world_new();
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r < 0; n++) {
        struct buffer dictionary = BUFFER_INIT;
        struct failure failure;

        mem_fail_after(n);
        r = dictionary_make(world->samples, POSTS, ID, 4096, &dictionary, &failure);
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
        buffer_done(&dictionary);
    }
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_string_of_fewer_than_five_authors_enters),
        cmocka_unit_test(test_ids_and_times_do_not_enter),
        cmocka_unit_test(test_what_repeats_pays),
        cmocka_unit_test(test_too_few_authors_are_told),
        cmocka_unit_test(test_without_memory_nothing_is_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
