/* A counter of trends: which messages each bucket has, and what is sent again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/words.h"
#include "gateway/counts/counter.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"

enum { MINUTE_MS = 60000 };

/* A slice has 25 s. The window of the bucket at 0:00 begins at -3:45, and its past at -8:45. */
static const struct count_question question = {
    .bucket_ms = MINUTE_MS,
    .trends = {.window_ms = 300000, .of = 1 << TREND_OF_HASHTAGS | 1 << TREND_OF_LINKS, .limit = 3},
};
static struct sl_words *words;

/* The ends of messages. */
static const char nothing[] = "\"terms\":[]}", nothing_again[] = "\"terms\":[],\"revision\":1}",
                  nothing_with_gap[] = "\"terms\":[],\"gap\":true}",
                  again_with_gap[] = "\"terms\":[],\"revision\":1,\"gap\":true}";

static uint64_t at(int64_t ms)
{
    return sl_id_first_at(UINT64_C(1795219200000) + (uint64_t)ms); /* 2026-11-21 */
}

static struct counter *counter_after(uint64_t had)
{
    return counter_new(&question, &(struct sl_cursor){.id = had}, 0);
}

/* As it is counted again for a client that has everything so far. */
static struct counter *again_of(const struct counter *counter)
{
    const struct sl_cursor had = counter_cursor(counter);
    uint64_t passed[SL_SHARDS_MAX];

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        passed[shard] = counter_open(counter);
    return counter_new_again(counter, &had, passed);
}

static int add(struct counter *counter, struct event event, const char *user, const char *text)
{
    struct count_keys keys = {.words = words};

    event.refs = 1;
    event.view.user = sl_slice_str(user);
    event.view.text = sl_slice_str(text);
    assert_int_equal(sl_words_read(words, &event.view), 0);
    return counter_add(counter, &event, &keys, SL_SLICE_NONE);
}

static void post(struct counter *counter, uint64_t id, const char *user, const char *text)
{
    assert_int_equal(add(counter, (struct event){.kind = EVENT_POST, .id = id}, user, text), 0);
}

static void both_post(struct counter *counter, uint64_t id, const char *text)
{
    post(counter, id, "1", text);
    post(counter, id + 1, "2", text);
}

static void assert_says(const struct event *message, const char *text)
{
    if (!memmem(message->json.data, message->json.size, text, strlen(text)))
        fail_msg("%.*s\nhas no %s", SL_SLICE_ARG(message->json), text);
}

/* The next message has this id, is of this kind, and contains the text. */
static void assert_tells(struct counter *counter, uint64_t id, const char *of, const char *text)
{
    char id_text[64], of_text[64];
    struct sl_cursor before;
    struct told told;

    snprintf(id_text, sizeof(id_text), "\"id\":\"%" PRIu64 "\"", id);
    snprintf(of_text, sizeof(of_text), "\"of\":\"%s\"", of);
    assert_int_equal(counter_next(counter, &told, &before), 1);
    assert_int_equal(told.id, id);
    assert_int_equal(told.event->id, id);
    assert_int_equal(told.event->kind, EVENT_TRENDS);
    assert_says(told.event, id_text);
    assert_says(told.event, of_text);
    assert_says(told.event, text);
    assert_int_equal(counter_cursor(counter).id, id);
    told_done(&told);
}

static void assert_tells_no_more(struct counter *counter)
{
    struct sl_cursor before;
    struct told told;

    assert_int_equal(counter_next(counter, &told, &before), 0);
}

/* Closes the bucket, whose messages contain these texts; NULL: there is none of this kind. */
static void assert_closes(struct counter *counter, const char *hashtags, const char *links)
{
    uint64_t id = counter_open(counter);
    size_t work = SIZE_MAX;

    assert_int_equal(counter_close(counter, id + 1, &work), 0);
    if (hashtags)
        assert_tells(counter, id - 1, "hashtags", hashtags);
    if (links)
        assert_tells(counter, id, "links", links);
    assert_tells_no_more(counter);
}

/* Nothing is sent before the bucket that begins then. */
static void assert_silent_until(struct counter *counter, int64_t ms)
{
    while (counter_before(counter) < at(ms) - 1)
        assert_closes(counter, NULL, NULL);
}

static struct counter *counter_silent_until_midnight(void)
{
    struct counter *counter = counter_after(at(0) - 1);

    assert_silent_until(counter, 0);
    return counter;
}

/* --- buckets --- */

static void test_each_bucket_has_a_message_for_each_kind(void **state)
{
    struct counter *counter = counter_silent_until_midnight();

    (void)state;
    both_post(counter, at(1000), "#tea https://b.org/x");
    assert_closes(counter,
                  "\"start\":\"2026-11-20T23:56:15.000Z\",\"end\":\"2026-11-21T00:01:00.000Z\","
                  "\"of\":\"hashtags\",\"complete\":true,\"error\":0,"
                  "\"terms\":[{\"term\":\"#tea\",\"posts\":2,\"users\":2,\"before\":0,",
                  "\"terms\":[{\"term\":\"b.org/x\",\"posts\":2,\"users\":2,\"before\":0,");
    assert_closes(counter, "\"start\":\"2026-11-20T23:57:05.000Z\"", "b.org");
    counter_free(counter);
}

static void test_what_was_before_is_read_first(void **state)
{
    struct counter *counter = counter_after(at(0) - 1);

    (void)state;
    assert_int_equal(counter_before(counter), at(-9 * MINUTE_MS) - 1); /* with that of -8:45 */
    assert_int_equal(counter_silent_until(counter), at(0) - 1);
    assert_int_equal(counter_cursor(counter).id, at(0) - 1);
    post(counter, at(-9 * MINUTE_MS) - 1, "1", "#tea"); /* is not needed, */
    assert_int_equal(counter_retell_from(counter), 0);  /* nor is it late */
    post(counter, at(-525000) - 1, "1", "#tea");
    post(counter, at(-525000), "2", "#tea");
    assert_silent_until(counter, -4 * MINUTE_MS);
    post(counter, at(-225000) - 1, "3", "#tea");
    both_post(counter, at(-225000), "#tea");
    post(counter, at(-225000) + 2, "3", "#tea");
    assert_silent_until(counter, 0);
    assert_closes(counter, "\"term\":\"#tea\",\"posts\":3,\"users\":3,\"before\":2,", nothing);
    counter_free(counter);
}

static void test_a_post_of_a_later_bucket_waits(void **state)
{
    struct counter *counter = counter_silent_until_midnight();
    struct event later = {.kind = EVENT_POST, .id = at(MINUTE_MS)};

    (void)state;
    assert_int_equal(add(counter, later, "1", "#tea"), -EAGAIN);
    assert_closes(counter, nothing, nothing);
    assert_int_equal(add(counter, later, "1", "#tea"), 0);
    counter_free(counter);
}

static void test_what_is_deleted_was_posted(void **state)
{
    struct counter *counter = counter_silent_until_midnight();
    struct event deletion = {.kind = EVENT_DELETE, .id = at(1500)};

    (void)state;
    post(counter, at(1000), "1", "#tea");
    assert_int_equal(add(counter, deletion, "2", "#tea"), 0); /* by no second user */
    assert_closes(counter, nothing, nothing);
    both_post(counter, at(MINUTE_MS), "#rain");
    deletion.id = at(MINUTE_MS + 5);
    assert_int_equal(add(counter, deletion, "1", "#rain"), 0);
    assert_closes(counter, "\"term\":\"#rain\",\"posts\":2,", nothing);
    counter_free(counter);
}

/* --- parts of a bucket --- */

static void test_who_has_a_part_of_a_bucket_gets_the_rest(void **state)
{
    struct counter *counter = counter_after(at(MINUTE_MS) - 2);

    (void)state;
    assert_silent_until(counter, 0);
    assert_int_equal(counter_cursor(counter).id, at(MINUTE_MS) - 2);
    assert_false(counter_is_in_step(counter, at(MINUTE_MS) - 1));
    assert_closes(counter, NULL, nothing);
    assert_false(counter_is_in_step(counter, at(MINUTE_MS) - 2));
    assert_true(counter_is_in_step(counter, at(MINUTE_MS) - 1));
    assert_closes(counter, nothing, nothing);
    counter_free(counter);
}

static void test_who_has_a_bucket_gets_the_next(void **state)
{
    struct counter *counter = counter_after(at(MINUTE_MS) - 1);

    (void)state;
    assert_silent_until(counter, MINUTE_MS);
    assert_true(counter_is_in_step(counter, at(MINUTE_MS) - 1));
    assert_closes(counter, nothing, nothing);
    counter_free(counter);
}

/* The messages of a bucket that is closed in steps. */
static void assert_closes_in_steps(struct counter *counter)
{
    uint64_t id = counter_open(counter), told_id = id - 2;
    struct sl_cursor before;
    unsigned steps = 0;
    struct told told;
    int r = 1;

    for (; r == 1; steps++) {
        size_t work = 1;

        r = counter_close(counter, id + 1, &work);
        while (counter_next(counter, &told, &before) == 1) {
            assert_int_equal(told.id, ++told_id);
            assert_says(told.event, told_id < id ? "\"term\":\"#tea\"" : "\"term\":\"b.org\"");
            told_done(&told);
        }
    }
    assert_int_equal(r, 0);
    assert_int_equal(told_id, id);
    assert_true(steps > 2);
}

static void test_a_bucket_that_is_closed_in_steps_is_told_once(void **state)
{
    struct counter *counter = counter_silent_until_midnight();

    (void)state;
    both_post(counter, at(1000), "#tea https://b.org");
    assert_closes_in_steps(counter);
    assert_closes_in_steps(counter);
    counter_free(counter);
}

/* --- again --- */

static void test_what_is_late_is_told_again_with_all_that_followed(void **state)
{
    struct counter *counter = counter_silent_until_midnight(), *again;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_closes(counter, nothing, nothing);
    assert_int_equal(counter_retell_from(counter), 0);
    both_post(counter, at(MINUTE_MS + 5), "#tea");
    assert_int_equal(counter_retell_from(counter), at(MINUTE_MS));
    again = again_of(counter);
    post(again, at(-500000), "3", "#tea"); /* is needed for the first bucket only */
    assert_silent_until(again, MINUTE_MS);
    both_post(again, at(MINUTE_MS + 5), "#tea");
    assert_closes(again, "\"posts\":2,\"users\":2,", nothing_again);
    assert_closes(again, "]}],\"revision\":1}", nothing_again);
    assert_closes(again, "]}]}", nothing);
    assert_int_equal(counter_retell_from(again), 0);
    counter_free(again);
    counter_free(counter);
}

/* The bucket is open, but its first slices are closed. */
static void test_what_is_late_in_the_open_bucket_is_counted_again(void **state)
{
    struct counter *counter = counter_silent_until_midnight(), *again;

    (void)state;
    post(counter, at(50000), "1", "#tea");
    post(counter, at(49999), "2", "#tea");
    assert_int_equal(counter_retell_from(counter), at(0));
    again = again_of(counter);
    assert_closes(counter, nothing, nothing);
    counter_free(counter);
    assert_silent_until(again, 0);
    post(again, at(49999), "2", "#tea");
    post(again, at(50000), "1", "#tea");
    assert_closes(again, "\"past\":[0,0,0,0,0,0,0,0,0,0,1,1]}]}", nothing);
    counter_free(again);
}

/* It was sent the first message of the bucket elsewhere. */
static void test_only_what_was_told_here_is_told_again(void **state)
{
    struct counter *counter = counter_after(at(MINUTE_MS) - 2), *again;

    (void)state;
    assert_silent_until(counter, 0);
    assert_closes(counter, NULL, nothing);
    assert_closes(counter, nothing, nothing);
    post(counter, at(-1000), "1", "#tea");
    assert_int_equal(counter_retell_from(counter), at(0));
    again = again_of(counter);
    assert_silent_until(again, 0);
    assert_closes(again, NULL, nothing_again);
    assert_closes(again, nothing_again, nothing_again);
    assert_closes(again, nothing, nothing);
    counter_free(again);
    counter_free(counter);
}

/* It has begun to count again, and not told all of it. */
static void test_who_counts_again_twice_forgets_no_bucket(void **state)
{
    struct counter *counter = counter_silent_until_midnight(), *again;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_closes(counter, nothing, nothing);
    post(counter, at(5), "1", "#tea");
    again = again_of(counter);
    counter_free(counter);
    assert_silent_until(again, 0);
    assert_closes(again, "\"revision\":1}", "\"revision\":1}");
    counter = again_of(again);
    counter_free(again);
    assert_silent_until(counter, MINUTE_MS);
    assert_closes(counter, "\"revision\":2}", "\"revision\":2}");
    assert_closes(counter, nothing, nothing);
    counter_free(counter);
}

/* --- gaps --- */

static void assert_gap(uint64_t from, uint64_t to, const char *complete, const char *end)
{
    struct counter *counter = counter_silent_until_midnight();
    char text[64];

    counter_gap(counter, 0, from, to, GAP_RETENTION);
    snprintf(text, sizeof(text), "\"complete\":%s,\"error\":0,\"terms\":[]%s}", complete, end);
    assert_closes(counter, text, text);
    assert_int_equal(counter_retell_from(counter), 0);
    counter_free(counter);
}

static void test_trends_are_incomplete_if_anything_is_missing(void **state)
{
    (void)state;
    assert_gap(at(-600000), at(-525000) - 1, "true", "");
    assert_gap(at(-600000), at(-525000), "false", "");
    assert_gap(at(-300000), at(-225000) - 1, "false", "");
    assert_gap(at(-300000), at(-225000), "false", ",\"gap\":true");
    assert_gap(at(MINUTE_MS) - 2, at(MINUTE_MS) - 1, "false", ",\"gap\":true");
    assert_gap(at(MINUTE_MS) - 1, at(MINUTE_MS), "true", "");
}

static void test_they_are_complete_after_two_windows(void **state)
{
    struct counter *counter = counter_silent_until_midnight();

    (void)state;
    counter_gap(counter, 0, 0, at(0), GAP_RETENTION);
    for (int minute = 1; minute <= 5; minute++) /* the window of 0:05 begins at 0:00 */
        assert_closes(counter, "\"gap\":true}", "\"complete\":false,");
    for (int minute = 6; minute <= 10; minute++)
        assert_closes(counter, "\"complete\":false,\"error\":0,\"terms\":[]}", nothing);
    assert_closes(counter, "\"complete\":true,", "\"complete\":true,");
    counter_free(counter);
}

static void test_a_rewind_is_told_again(void **state)
{
    struct counter *counter = counter_silent_until_midnight(), *again;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_closes(counter, nothing, nothing);
    counter_gap(counter, 0, at(MINUTE_MS) - 1, at(MINUTE_MS + 5), GAP_REWOUND);
    assert_int_equal(counter_retell_from(counter), at(MINUTE_MS));
    again = again_of(counter);
    counter_free(counter);
    assert_silent_until(again, MINUTE_MS);
    for (int i = 0; i < 2; i++)
        assert_closes(again, again_with_gap, again_with_gap);
    assert_closes(again, nothing_with_gap, nothing_with_gap);
    counter_free(again);
}

/* It has the first message of the second bucket, and was away when a rewind lost events of both. */
static void test_who_comes_after_a_rewind_is_told_again_what_it_has(void **state)
{
    const struct sl_cursor had = {.id = at(2 * MINUTE_MS) - 2};
    struct counter *counter = counter_new_rewound(&question, &had, 0, at(5), at(MINUTE_MS + 5));

    (void)state;
    assert_silent_until(counter, 0);
    assert_closes(counter, again_with_gap, again_with_gap);
    assert_closes(counter, again_with_gap, nothing_with_gap);
    assert_closes(counter, nothing_with_gap, nothing_with_gap);
    counter_free(counter);
}

/* Of the other shard it had only the beginning of the first bucket. */
static void test_what_is_new_changes_all_that_followed(void **state)
{
    const struct sl_cursor had = {.id = at(4 * MINUTE_MS) - 1,
                                  .group_count = 1,
                                  .groups = {{.low = at(5), .shards = 1 << 1}}};
    const uint64_t lost = at(3 * MINUTE_MS);
    struct counter *counter = counter_new_rewound(&question, &had, 0, lost, lost + 5);
    struct event event = {.kind = EVENT_POST, .id = at(MINUTE_MS), .shard = 1};

    (void)state;
    assert_silent_until(counter, MINUTE_MS);
    assert_int_equal(add(counter, event, "1", "#tea"), 0);
    assert_closes(counter, nothing_again, nothing_again);
    assert_closes(counter, nothing_again, nothing_again);
    assert_closes(counter, again_with_gap, again_with_gap);
    assert_closes(counter, nothing_with_gap, nothing_with_gap);
    counter_free(counter);
}

/* --- memory --- */

/* Whether two posts are counted and told. */
static bool tells_of_two(struct counter *counter)
{
    struct event events[] = {
        {.refs = 1, .kind = EVENT_POST, .id = at(5), .view.user = SL_SLICE("1")},
        {.refs = 1, .kind = EVENT_POST, .id = at(6), .view.user = SL_SLICE("2")}};
    struct count_keys keys = {.words = words};
    struct sl_cursor before;
    struct told told;
    int r = 0;

    while (r == 0 && counter_open(counter) < at(5)) {
        size_t work = SIZE_MAX;

        r = counter_close(counter, at(5), &work);
    }
    for (int i = 0; r == 0 && i < 2; i++)
        r = counter_add(counter, &events[i], &keys, SL_SLICE_NONE);
    if (r == 0)
        r = counter_close(counter, at(MINUTE_MS), &(size_t){SIZE_MAX});
    if (r == 0)
        r = counter_next(counter, &told, &before);
    if (r <= 0)
        return false;
    assert_says(told.event, "#tea");
    told_done(&told);
    return true;
}

static void test_without_memory_nothing_is_wrong(void **state)
{
    struct sl_event_view view = {.text = SL_SLICE("#tea https://b.org")};
    bool is_done = false;

    (void)state;
    assert_int_equal(sl_words_read(words, &view), 0);
    for (unsigned fail_at = 0; !is_done; fail_at++) {
        struct counter *counter;

        assert_true(fail_at < 1000);
        mem_fail_after(fail_at);
        counter = counter_after(at(0) - 1);
        is_done = counter && tells_of_two(counter);
        mem_fail_never();
        counter_free(counter);
    }
}

static int begin(void **state)
{
    (void)state;
    words = sl_words_new(1);
    return words ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    sl_words_free(words);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_bucket_has_a_message_for_each_kind),
        cmocka_unit_test(test_what_was_before_is_read_first),
        cmocka_unit_test(test_a_post_of_a_later_bucket_waits),
        cmocka_unit_test(test_what_is_deleted_was_posted),
        cmocka_unit_test(test_who_has_a_part_of_a_bucket_gets_the_rest),
        cmocka_unit_test(test_who_has_a_bucket_gets_the_next),
        cmocka_unit_test(test_a_bucket_that_is_closed_in_steps_is_told_once),
        cmocka_unit_test(test_what_is_late_is_told_again_with_all_that_followed),
        cmocka_unit_test(test_what_is_late_in_the_open_bucket_is_counted_again),
        cmocka_unit_test(test_only_what_was_told_here_is_told_again),
        cmocka_unit_test(test_who_counts_again_twice_forgets_no_bucket),
        cmocka_unit_test(test_trends_are_incomplete_if_anything_is_missing),
        cmocka_unit_test(test_they_are_complete_after_two_windows),
        cmocka_unit_test(test_a_rewind_is_told_again),
        cmocka_unit_test(test_who_comes_after_a_rewind_is_told_again_what_it_has),
        cmocka_unit_test(test_what_is_new_changes_all_that_followed),
        cmocka_unit_test(test_without_memory_nothing_is_wrong),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
