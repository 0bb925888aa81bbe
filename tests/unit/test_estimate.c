/* Estimates: their parts and warnings, and whether the interval contains the actual rate. The
 * corpus is not part of this source: ../shared/data, or the folder `data` in $SLUICE_SHARED;
 * without it that test is skipped. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stable_hash.h"
#include "filters/filter_index.h"
#include "filters/filter_pieces.h"
#include "filters/words.h"
#include "gateway/counts/estimate.h"
#include "gateway/intake/event_decode.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"

enum { SEED = 20261121, POSTS_MAX = 8000, FILTERS = 100 };

static struct event_decoder *decoder;

static struct event *decode(struct sl_slice json)
{
    struct event_origin origin = {.id = sl_id_first_at(1790000000000)};
    struct event *event;

    assert_int_equal(event_decode(decoder, json, &origin, &event, NULL), 0);
    return event;
}

static struct event *post(const char *text, const char *lang)
{
    char json[512];
    int size = snprintf(json, sizeof(json),
                        "{\"id\":\"1\",\"type\":\"post\",\"post\":{\"id\":\"1\",\"user\":{\"id\":"
                        "\"7\"},\"text\":\"%s\",\"lang\":\"%s\"}}",
                        text, lang);

    return decode(sl_slice(json, (size_t)size));
}

static struct estimate *make(const struct sl_filter_text *text)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct estimate *estimate;
    struct sl_filter *filter;

    limits.allows_wide = true;
    assert_int_equal(sl_filter_new(text, &limits, &filter, NULL), 0);
    estimate = estimate_new(text, &limits, filter, SEED);
    assert_non_null(estimate);
    sl_filter_unref(filter);
    return estimate;
}

static void look(struct estimate *estimate, unsigned slot, struct event *event, unsigned times)
{
    bool is_match;

    while (times-- > 0)
        assert_int_equal(estimate_look(estimate, slot, event, &is_match), 0);
}

/* --- pieces ------------------------------------------------------------------------------- */

static void expect_pieces(struct sl_filter_text text, const char *expected)
{
    struct sl_filter_piece pieces[SL_FILTER_PIECES_MAX];
    size_t count = sl_filter_pieces(&text, pieces);
    struct buffer got = BUFFER_INIT;

    for (size_t i = 0; i < count && i < SL_FILTER_PIECES_MAX; i++) {
        buffer_append_format(&got, "%s%s:%.*s", i ? " | " : "", pieces[i].param,
                             SL_SLICE_ARG(pieces[i].value));
        if (pieces[i].rest_before.data)
            buffer_append_format(&got, " (%.*s~%.*s)", SL_SLICE_ARG(pieces[i].rest_before),
                                 SL_SLICE_ARG(pieces[i].rest_behind));
    }
    assert_string_equal(got.data ? buffer_str(&got) : "", expected);
    buffer_done(&got);
}

#define PIECES(expected, ...) expect_pieces((struct sl_filter_text){__VA_ARGS__}, expected)

static void test_a_filter_is_taken_apart_where_its_owner_wrote_side_by_side(void **state)
{
    (void)state;
    PIECES("track:coffee | track:green tea", .track = SL_SLICE("coffee,, green tea "));
    PIECES("follow:1 | follow:@ada", .follow = SL_SLICE("1,@ada"));
    PIECES("locations:1,2,3,4 | locations:5, 6,7,8", .locations = SL_SLICE("1,2,3,4,5, 6,7,8"));
    PIECES("rule:a | rule:b (c OR d) | rule:-(x y) e",
           .rule = SL_SLICE("a OR b (c OR d) OR -(x y) e"));
    PIECES("rule:a (~ -b (c OR d)) | rule:-b (a ~ (c OR d)) | rule:(c OR d) (a -b ~)",
           .rule = SL_SLICE("a -b (c OR d)"));
    PIECES("rule:\"a b\"~3", .rule = SL_SLICE(" \"a b\"~3 "));
    PIECES("track:x | rule:lang:ja", .track = SL_SLICE("x"), .rule = SL_SLICE("lang:ja"));
    PIECES("", .firehose = true);
}

/* --- the answer --------------------------------------------------------------------------- */

static void expect_answer(struct estimate *estimate, const char *part)
{
    struct buffer json = BUFFER_INIT;

    estimate_print(estimate, NULL, &json);
    if (!strstr(buffer_str(&json), part))
        fail_msg("not in %s: %s", buffer_str(&json), part);
    buffer_done(&json);
    estimate_free(estimate);
}

static void test_parts_are_counted_beside_the_whole(void **state)
{
    struct sl_filter_text text = {.rule = SL_SLICE("tea (milk OR sugar) -lang:en lang:fr")};
    struct event *milk = post("tea with milk", "fr"), *tea = post("tea", "fr");
    struct estimate *estimate = make(&text);

    (void)state;
    look(estimate, 0, milk, 3);
    look(estimate, 1, tea, 2);
    for (unsigned slot = 0; slot < ESTIMATE_SLOTS; slot++)
        estimate_set_slot(estimate, slot, 10, 1);
    estimate_set_span(estimate, 160);
    expect_answer(estimate,
                  "\"parts\":[{\"param\":\"rule\",\"value\":\"tea\",\"events\":5,\"without\":3},"
                  "{\"param\":\"rule\",\"value\":\"(milk OR sugar)\",\"events\":3,\"without\":5},"
                  "{\"param\":\"rule\",\"value\":\"lang:fr\",\"events\":5,\"without\":3}]");
    event_unref(milk);
    event_unref(tea);
}

static void test_what_is_not_for_all_is_not_looked_at(void **state)
{
    static const char json[] = "{\"id\":\"1\",\"type\":\"post\",\"post\":{\"id\":\"1\","
                               "\"user\":{\"id\":\"7\"},\"text\":\"tea\","
                               "\"audience\":\"followers\"}}";
    struct sl_filter_text text = {.track = SL_SLICE("tea")};
    struct event *restricted = decode(sl_slice(json, sizeof(json) - 1));
    struct estimate *estimate = make(&text);
    bool is_match;

    (void)state;
    look(estimate, 0, restricted, 1);
    assert_int_equal(estimate_wants(estimate, restricted, &is_match), 0);
    assert_false(is_match);
    estimate_set_slot(estimate, 0, 10, 1);
    estimate_set_span(estimate, 10);
    expect_answer(estimate, "{\"events\":0,\"looked_at\":0,");
    event_unref(restricted);
}

/* --- the interval ------------------------------------------------------------------------- */

static struct estimate_rate rate_of(const unsigned *counts, unsigned slots, double share)
{
    struct sl_filter_text text = {.track = SL_SLICE("tea")};
    struct event *event = post("tea", "en");
    struct estimate *estimate = make(&text);
    struct estimate_rate rate;

    for (unsigned slot = 0; slot < slots; slot++) {
        look(estimate, slot, event, counts[slot]);
        estimate_set_slot(estimate, slot, 600.0 / slots, share);
    }
    estimate_set_span(estimate, 600);
    rate = estimate_rate(estimate);
    estimate_free(estimate);
    event_unref(event);
    return rate;
}

static void test_the_interval_is_as_wide_as_what_is_known(void **state)
{
    const unsigned none[16] = {0}, even[16] = {6, 7, 6, 5, 6, 6, 7, 6, 5, 6, 7, 6, 6, 5, 7, 6};
    const unsigned burst[16] = {0, 0, 0, 0, 0, 0, 0, 97, 0, 0, 0, 0, 0, 0, 0, 0};
    struct estimate_rate nothing = rate_of(none, 16, 1), steady = rate_of(even, 16, 1);
    struct estimate_rate drawn = rate_of(even, 16, 0.1), odd = rate_of(burst, 16, 1);

    (void)state;
    assert_true(nothing.per_second == 0 && nothing.low == 0);
    assert_true(nothing.high > 2.0 / 600 && nothing.high < 8.0 / 600);
    assert_true(fabs(steady.per_second - 97.0 / 600) < 1e-9);
    assert_true(steady.low > 60.0 / 600 && steady.high < 135.0 / 600); /* 97 -+ 2 sqrt(2 * 97) */
    assert_true(fabs(drawn.per_second - 970.0 / 600) < 1e-9);
    assert_true(drawn.high - drawn.low > 10 * sqrt(10.0) * (steady.high - steady.low) / 10 * 0.9);
    assert_true(odd.high - odd.low > 3 * (steady.high - steady.low));
}

/* --- a corpus ----------------------------------------------------------------------------- */

static struct event *posts[POSTS_MAX];
static size_t post_count;
static bool wanted[POSTS_MAX][FILTERS];
static struct {
    size_t begin, end; /* of its posts */
} files[4];

static bool load(unsigned number, const char *name)
{
    const char *shared = getenv("SLUICE_SHARED");
    char path[600], line[16384];
    FILE *file;

    snprintf(path, sizeof(path), "%s/data/%s", shared ? shared : SOURCE_DIR "/../shared", name);
    file = fopen(path, "r");
    if (!file)
        return false;
    files[number].begin = post_count;
    while (fgets(line, sizeof(line), file) && post_count < POSTS_MAX)
        posts[post_count++] = decode(sl_slice(line, strcspn(line, "\n")));
    files[number].end = post_count;
    fclose(file);
    return true;
}

static char rules[FILTERS][64];

/* Words of the corpus, frequent and rare ones, and other kinds of filters. */
static void choose_rules(void)
{
    static const char *const others[] = {
        "lang:ja",
        "lang:ga",
        "lang:en -the",
        "has:links the OR new",
        "from:5100 OR from:5107",
        "#gaeilge",
        "tea OR coffee",
        "日本",
        "的 -是",
        "happy OR love OR good",
    };
    const size_t other_count = sizeof(others) / sizeof(others[0]);
    uint64_t random = SEED;

    for (size_t i = 0; i < other_count; i++)
        snprintf(rules[i], sizeof(rules[i]), "%s", others[i]);
    for (size_t i = other_count; i < FILTERS;) {
        struct sl_slice text = posts[stable_hash(random++) % files[1].end]->view.text;
        size_t at = stable_hash(random++) % (text.size + 1), size = 0;

        while (at > 0 && isalpha((unsigned char)text.data[at - 1]))
            at--;
        while (at + size < text.size && isalpha((unsigned char)text.data[at + size]))
            size++;
        if (size < 3 || size > 20)
            continue;
        snprintf(rules[i], sizeof(rules[i]), "\"%.*s\"", (int)size, text.data + at);
        i++;
    }
}

static void match_all(void)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_words *words = sl_words_new(SEED);
    struct sl_filter *filters[FILTERS];

    limits.allows_wide = true;
    for (size_t k = 0; k < FILTERS; k++) {
        struct sl_filter_text text = {.rule = sl_slice_str(rules[k])};

        assert_int_equal(sl_filter_new(&text, &limits, &filters[k], NULL), 0);
    }
    for (size_t i = 0; i < post_count; i++) {
        assert_int_equal(sl_words_read(words, &posts[i]->view), 0);
        for (size_t k = 0; k < FILTERS; k++)
            wanted[i][k] = sl_filter_matches(filters[k], &posts[i]->view, words);
    }
    for (size_t k = 0; k < FILTERS; k++)
        sl_filter_unref(filters[k]);
    sl_words_free(words);
}

/* Twenty minutes: how many posts arrive each second. A file is read in its own order, repeatedly,
 * so that what its authors wrote about at the same time stays together; the share of each language
 * and the total rate change over time. */
enum { SECONDS = 1200, EVENTS_MAX = 200000 };

static struct {
    size_t second, post;
} replay[EVENTS_MAX];
static size_t replay_count;

static double uniform(uint64_t *random)
{
    return ((double)(stable_hash((*random)++) >> 11) + 0.5) * 0x1p-53;
}

static void make_replay(uint64_t random)
{
    static const double rates[] = {20, 12, 8, 8};
    double level[4] = {0};
    size_t at[4];

    for (unsigned i = 0; i < 4; i++)
        at[i] = stable_hash(random++) % (files[i].end - files[i].begin);
    replay_count = 0;
    for (size_t second = 0; second < SECONDS; second++) {
        for (unsigned i = 0; i < 4; i++) {
            double normal = sqrt(-2 * log(uniform(&random))) * cos(2 * M_PI * uniform(&random));
            double left;

            level[i] = level[i] * 0.99 + normal * 0.2 * sqrt(1 - 0.99 * 0.99);
            left = rates[i] * exp(level[i]);
            for (double due = -log(uniform(&random)); due < left; due -= log(uniform(&random))) {
                replay[replay_count].second = second;
                replay[replay_count++].post = files[i].begin + at[i];
                at[i] = (at[i] + 1) % (files[i].end - files[i].begin);
            }
        }
    }
}

/* Returns 1 if the interval contains the actual rate. */
static int try_filter_number(size_t number, double *ret_width)
{
    struct sl_filter_text text = {.rule = sl_slice_str(rules[number])};
    struct estimate *estimate = make(&text);
    size_t passed = 0, stride, came = 0;
    struct estimate_rate rate;
    double mean;
    bool is_match;

    while (replay[passed].second < SECONDS / 2)
        passed++;
    stride = (passed + ESTIMATE_EVENTS - 1) / ESTIMATE_EVENTS;
    for (size_t i = 0; i < passed; i += stride)
        assert_int_equal(estimate_look(estimate,
                                       (unsigned)(replay[i].second * ESTIMATE_SLOTS * 2 / SECONDS),
                                       posts[replay[i].post], &is_match),
                         0);
    for (unsigned slot = 0; slot < ESTIMATE_SLOTS; slot++)
        estimate_set_slot(estimate, slot, (double)SECONDS / 2 / ESTIMATE_SLOTS,
                          1.0 / (double)stride);
    estimate_set_span(estimate, SECONDS / 2);
    rate = estimate_rate(estimate);
    estimate_free(estimate);
    for (size_t i = passed; i < replay_count; i++)
        came += wanted[replay[i].post][number];
    mean = (double)came / (SECONDS / 2);
    *ret_width = rate.per_second > 0 ? (rate.high - rate.low) / rate.per_second : 0;
    return mean >= rate.low && mean <= rate.high;
}

static void test_the_interval_holds_the_next_ten_minutes_of_a_corpus(void **state)
{
    static const char *const names[] = {"posts-tweets.jsonl", "posts-irish.jsonl",
                                        "posts-chinese.jsonl", "posts-japanese.jsonl"};
    enum { ROUNDS = 3 };

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        if (!load(i, names[i])) {
            print_message("skipped: there is no ../shared/data/%s\n", names[i]);
            skip();
        }
    }
    choose_rules();
    match_all();
    for (uint64_t round = 0; round < ROUNDS; round++) {
        int held = 0, narrow = 0;

        make_replay(SEED + round * 1000000);
        for (size_t i = 0; i < FILTERS; i++) {
            double width;

            held += try_filter_number(i, &width);
            narrow += width > 0 && width < 1.5;
        }
        print_message("%d of %d intervals hold the next ten minutes, %d are narrow\n", held,
                      (int)FILTERS, narrow);
        assert_true(held >= 95);
        assert_true(narrow >= 10); /* they are meaningful */
    }
    for (size_t i = 0; i < post_count; i++)
        event_unref(posts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_filter_is_taken_apart_where_its_owner_wrote_side_by_side),
        cmocka_unit_test(test_parts_are_counted_beside_the_whole),
        cmocka_unit_test(test_what_is_not_for_all_is_not_looked_at),
        cmocka_unit_test(test_the_interval_is_as_wide_as_what_is_known),
        cmocka_unit_test(test_the_interval_holds_the_next_ten_minutes_of_a_corpus),
    };
    int failed;

    decoder = event_decoder_new(1 << 20);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    event_decoder_free(decoder);
    return failed;
}
