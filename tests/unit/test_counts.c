/* Counts of buckets, compared with a second implementation. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/counts/count_bucket.h"
#include "gateway/counts/counter.h"
#include "gateway/counts/distinct.h"
#include "tests/support/cmocka_all.h"

static int close_bucket(struct counter *counter, uint64_t id)
{
    size_t work = SIZE_MAX;

    return counter_close(counter, id, &work);
}

static const uint64_t minute_ms = 60000, day_ms = UINT64_C(1795219200000); /* 2026-11-21 */

static struct sl_slice numbered(const char *prefix, unsigned number, char room[static 32])
{
    return sl_slice(room, (size_t)snprintf(room, 32, "%s%u", prefix, number));
}

/* --- distinct --- */

static uint64_t estimate_of(unsigned count, bool backwards)
{
    struct distinct distinct = {0};
    char room[32];
    uint64_t estimate;

    for (unsigned round = 0; round < 2; round++) { /* nobody is counted twice */
        for (unsigned i = 0; i < count; i++)
            assert_int_equal(
                distinct_add(&distinct, numbered("user", backwards ? count - 1 - i : i, room)), 0);
    }
    estimate = distinct_estimate(&distinct);
    distinct_done(&distinct);
    return estimate;
}

static void test_few_are_counted_exactly(void **state)
{
    (void)state;
    for (unsigned count = 0; count <= DISTINCT_EXACT; count++)
        assert_int_equal(estimate_of(count, false), count);
}

static void test_many_are_estimated_within_the_stated_error(void **state)
{
    double sum = 0;
    unsigned count = 0;

    (void)state;
    for (unsigned size = DISTINCT_EXACT + 1; size < 300000; size += size / 7, count++) {
        uint64_t estimate = estimate_of(size, false);
        double error = ((double)estimate - size) / size;

        assert_true(fabs(error) < 4 * 1.04 / sqrt(DISTINCT_REGISTERS));
        assert_int_equal(estimate_of(size, true), estimate); /* in any order */
        sum += error * error;
    }
    assert_true(sqrt(sum / count) < 1.5 * 1.04 / sqrt(DISTINCT_REGISTERS));
}

/* When a sketch grows depends on its address; these do with different strings. */
static void test_the_estimate_does_not_depend_on_when_a_sketch_grows(void **state)
{
    enum { SKETCHES = 128, APART = 32 << 10 };
    char *memory = mem_zalloc(SKETCHES * APART);
    unsigned estimated_first = 0, estimated_last = 0;
    char room[32];

    (void)state;
    assert_non_null(memory);
    for (unsigned size = 1; size < 2 * DISTINCT_EXACT; size++) {
        struct distinct *first = (struct distinct *)memory;

        for (unsigned i = 0; i < SKETCHES; i++) {
            struct distinct *sketch = (struct distinct *)(memory + i * APART);

            assert_int_equal(distinct_add(sketch, numbered("user", size, room)), 0);
            assert_int_equal(distinct_estimate(sketch), distinct_estimate(first));
            estimated_first += sketch->is_estimated && estimated_first == 0 ? size : 0;
            estimated_last = sketch->is_estimated ? estimated_last : size;
        }
    }
    assert_true(estimated_first > DISTINCT_EXACT && estimated_last >= estimated_first + 100);
    for (unsigned i = 0; i < SKETCHES; i++)
        distinct_done((struct distinct *)(memory + i * APART));
    mem_free(memory);
}

static void test_cleared_is_as_new(void **state)
{
    struct distinct distinct = {0};
    char room[32];

    (void)state;
    for (unsigned size = 100; size <= 10000; size *= 10) {
        for (unsigned i = 0; i < size; i++)
            assert_int_equal(distinct_add(&distinct, numbered("a", i, room)), 0);
        distinct_clear(&distinct);
        assert_int_equal(distinct_estimate(&distinct), 0);
        assert_int_equal(distinct_add(&distinct, SL_SLICE("a")), 0);
        assert_int_equal(distinct_estimate(&distinct), 1);
    }
    distinct_done(&distinct);
}

/* --- counter --- */

static struct event post(uint64_t id, const char *user, const char *lang)
{
    return (struct event){.refs = 1,
                          .kind = EVENT_POST,
                          .id = id,
                          .view = {.user = sl_slice_str(user), .lang = sl_slice_str(lang)}};
}

static uint64_t at(uint64_t ms)
{
    return sl_id_first_at(day_ms + ms);
}

static bool says(const struct event *message, const char *text)
{
    return memmem(message->json.data, message->json.size, text, strlen(text)) != NULL;
}

static struct counter *counter_from(const struct count_question *question, uint64_t id)
{
    return counter_new(question, &(struct sl_cursor){.id = id - 1}, 0);
}

static struct counter *again_of(const struct counter *counter)
{
    const struct sl_cursor told = counter_cursor(counter);

    return counter_new_again(counter, &told, (uint64_t[SL_SHARDS_MAX]){0});
}

static void assert_closes(struct counter *counter, const char *expected)
{
    struct sl_cursor before;
    struct told told;

    assert_int_equal(close_bucket(counter, counter_open(counter) + 1), 0);
    assert_int_equal(counter_next(counter, &told, &before), expected != NULL);
    if (!expected)
        return;
    if (!says(told.event, expected))
        fail_msg("%.*s\nhas no %s", SL_SLICE_ARG(told.event->json), expected);
    told_done(&told);
    assert_int_equal(counter_next(counter, &told, &before), 0);
}

static const struct count_question by_lang = {.bucket_ms = 60000, .by = COUNT_BY_LANG};

static void add(struct counter *counter, uint64_t id, const char *user, const char *lang)
{
    struct event event = post(id, user, lang);

    assert_int_equal(counter_add(counter, &event, NULL, SL_SLICE_NONE), 0);
}

static void add_in(uint32_t shard, struct counter *counter, uint64_t id)
{
    struct event event = post(id, "1", "en");

    event.shard = shard;
    assert_int_equal(counter_add(counter, &event, NULL, SL_SLICE_NONE), 0);
}

static void test_a_bucket_has_its_milliseconds_and_no_other(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(30000));
    struct event early = post(at(0) - 1, "1", "en"), later = post(at(minute_ms), "1", "en");

    (void)state;
    assert_int_equal(counter_before(counter), at(0) - 1);
    assert_int_equal(counter_open(counter), at(minute_ms) - 1);
    assert_int_equal(counter_add(counter, &early, NULL, SL_SLICE_NONE), 0); /* not of this bucket */
    add(counter, at(0), "1", "en");
    add(counter, at(minute_ms) - 1, "2", "");
    assert_int_equal(counter_add(counter, &later, NULL, SL_SLICE_NONE), -EAGAIN);
    assert_closes(counter,
                  "\"start\":\"2026-11-21T00:00:00.000Z\",\"end\":\"2026-11-21T00:01:00.000Z\","
                  "\"posts\":2,\"deletes\":0,\"users\":2,"
                  "\"groups\":[{\"key\":\"en\",\"posts\":1},{\"key\":\"und\",\"posts\":1}],"
                  "\"other\":0}");
    assert_int_equal(counter_add(counter, &later, NULL, SL_SLICE_NONE), 0);
    assert_closes(counter, "\"posts\":1,");
    assert_closes(counter, "\"posts\":0,");
    assert_int_equal(counter_retell_from(counter), 0);
    counter_free(counter);
}

static void test_the_rest_of_the_groups_is_other(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(0));
    struct event *partial;
    char room[32];

    (void)state;
    for (unsigned i = 0; i < 1500; i++) {
        numbered("l", i, room);
        add(counter, at(i), "1", room);
    }
    for (unsigned i = 0; i < 10; i++)
        add(counter, at(1500), "1", "l1400");
    add(counter, at(1501), "1", "l999");
    partial = counter_partial(counter);
    assert_false(says(partial, "\"id\""));
    assert_true(says(partial, "\"groups\":[{\"key\":\"l999\",\"posts\":2}"));
    assert_true(says(partial, "\"other\":510,\"partial\":true}"));
    assert_false(says(partial, "l1000"));
    event_unref(partial);
    counter_free(counter);
}

static void test_what_came_late_is_counted_again_from_there(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(0)), *again;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_closes(counter, "\"posts\":0,");
    add(counter, at(minute_ms + 5), "1", "en");
    assert_int_equal(counter_retell_from(counter), at(minute_ms));
    again = again_of(counter);
    assert_int_equal(counter_before(again), at(minute_ms) - 1);
    add(again, at(minute_ms + 5), "1", "en");
    assert_closes(again, "\"posts\":1,\"deletes\":0,\"users\":1,"
                         "\"groups\":[{\"key\":\"en\",\"posts\":1}],\"other\":0,\"revision\":1}");
    assert_closes(again, NULL); /* as it was sent */
    assert_closes(again, NULL);
    assert_int_equal(counter_before(again), counter_before(counter));
    assert_closes(again, "\"other\":0}");
    counter_free(again);
    counter_free(counter);
}

/* It came while the client was counting again because of something else. */
static void test_what_is_new_to_who_counts_again_is_told(void **state)
{
    const uint64_t passed[SL_SHARDS_MAX] = {at(6), at(2 * minute_ms)};
    struct counter *counter = counter_from(&by_lang, at(0)), *again;
    struct sl_cursor told;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_closes(counter, "\"posts\":0,");
    add(counter, at(6), "1", "en");
    told = counter_cursor(counter);
    again = counter_new_again(counter, &told, passed);
    add(again, at(6), "1", "en");
    assert_closes(again, "\"other\":0,\"revision\":1}");
    add_in(1, again, at(minute_ms + 5)); /* was not wanted then */
    assert_closes(again, NULL);
    add_in(1, again, at(2 * minute_ms)); /* the last one that it knows */
    add_in(1, again, at(2 * minute_ms) + 1);
    assert_closes(again, "\"posts\":2,\"deletes\":0,\"users\":1,"
                         "\"groups\":[{\"key\":\"en\",\"posts\":2}],\"other\":0,\"revision\":1}");
    assert_closes(again, "\"other\":0}");
    counter_free(again);
    counter_free(counter);
}

/* Which groups are named depends on the order. */
static void test_a_late_event_is_counted_again_if_there_are_too_many_groups(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(0));
    struct event late = post(at(1), "1", "en");
    char room[32];

    (void)state;
    late.is_late = true;
    assert_int_equal(counter_add(counter, &late, NULL, SL_SLICE_NONE), 0);
    assert_int_equal(counter_retell_from(counter), 0);
    for (unsigned i = 0; i < COUNT_GROUPS_MAX - 1; i++) {
        numbered("l", i, room);
        add(counter, at(2 + i), "1", room);
    }
    assert_int_equal(counter_retell_from(counter), 0);
    assert_int_equal(counter_add(counter, &late, NULL, SL_SLICE_NONE), 0);
    assert_int_equal(counter_retell_from(counter), at(0));
    counter_free(counter);
}

static void test_a_rewind_is_counted_again_as_far_as_it_was_counted(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(minute_ms)), *again;

    (void)state;
    assert_closes(counter, "\"posts\":0,");
    counter_gap(counter, 0, at(0), at(minute_ms) - 1, GAP_REWOUND);
    assert_int_equal(counter_retell_from(counter), 0);
    counter_gap(counter, 0, at(2 * minute_ms) - 1, at(9 * minute_ms), GAP_REWOUND);
    assert_int_equal(counter_retell_from(counter), at(2 * minute_ms));
    again = again_of(counter);
    counter_free(counter);
    for (int i = 0; i < 5; i++)
        assert_closes(again, "\"gap\":true}"); /* for the first time */
    add(again, at(3 * minute_ms), "1", "en");
    counter = again_of(again);
    assert_closes(counter, "\"revision\":2,\"gap\":true}");
    assert_closes(counter, NULL);
    counter_free(again);
    counter_free(counter);
}

/* It has begun to count again because of two buckets, and not reached the second one. */
static void test_who_counts_again_twice_forgets_no_bucket(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(0)), *again;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_closes(counter, "\"posts\":0,");
    add(counter, at(5), "1", "en");
    add(counter, at(2 * minute_ms + 5), "1", "en");
    again = again_of(counter);
    counter_free(counter);
    assert_closes(again, "\"revision\":1}");
    counter = again_of(again);
    counter_free(again);
    assert_closes(counter, NULL);
    assert_closes(counter, "\"revision\":2}");
    counter_free(counter);
}

static void test_the_last_id_of_a_bucket_may_be_missing(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(0));

    (void)state;
    counter_gap(counter, 0, at(minute_ms) - 2, at(minute_ms) - 1, GAP_RETENTION);
    assert_closes(counter, "\"gap\":true}");
    assert_closes(counter, "\"other\":0}");
    counter_free(counter);
}

static void test_the_bucket_of_until_is_counted_whole(void **state)
{
    struct counter *counter = counter_new(&by_lang, &(struct sl_cursor){.id = at(0) - 1}, at(5));

    (void)state;
    assert_int_equal(counter_open(counter), at(minute_ms) - 1);
    counter_free(counter);
}

static void test_who_is_ahead_is_not_in_step(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(minute_ms));

    (void)state;
    assert_false(counter_is_in_step(counter, at(minute_ms) - 2));
    assert_true(counter_is_in_step(counter, at(minute_ms) - 1));
    counter_free(counter);
}

/* A client that has counted by itself comes to a lane that counts already. */
static void test_what_a_client_must_count_again_its_lane_counts_again(void **state)
{
    struct counter *lane = counter_from(&by_lang, at(2 * minute_ms)), *counter, *again;

    (void)state;
    assert_closes(lane, "\"posts\":0,");
    counter = counter_from(&by_lang, at(0));
    for (int i = 0; i < 3; i++)
        assert_closes(counter, "\"posts\":0,");
    add(counter, at(5), "1", "en");
    again = again_of(counter);
    add(again, at(5), "1", "en");
    assert_closes(again, "\"revision\":1}");
    assert_closes(again, NULL);
    assert_closes(again, NULL);
    add(again, at(minute_ms + 5), "1", "en");
    counter_join(lane, again);
    counter_free(counter);
    counter_free(again);
    assert_int_equal(counter_retell_from(lane), at(minute_ms));
    again = again_of(lane);
    add(again, at(minute_ms + 5), "1", "en");
    assert_closes(again, "\"revision\":2}");
    counter_free(again);
    counter_free(lane);
}

static void test_a_gap_is_told_of_each_bucket_that_it_touches(void **state)
{
    struct counter *counter = counter_from(&by_lang, at(0)), *again;

    (void)state;
    assert_closes(counter, "\"other\":0}");
    counter_gap(counter, 0, at(2 * minute_ms) - 1, at(4 * minute_ms) - 1, GAP_RETENTION);
    counter_gap(counter, 0, at(0), at(9 * minute_ms), GAP_LATE);
    assert_closes(counter, "\"other\":0}");
    assert_closes(counter, "\"gap\":true}");
    assert_closes(counter, "\"gap\":true}");
    assert_closes(counter, "\"other\":0}");
    add(counter, at(5 * minute_ms), "1", "en");
    assert_int_equal(counter_retell_from(counter), 0);
    counter_gap(counter, 0, at(4 * minute_ms + 7), at(5 * minute_ms), GAP_REWOUND);
    assert_int_equal(counter_retell_from(counter), at(4 * minute_ms));
    again = again_of(counter);
    assert_closes(again, "\"posts\":0,\"deletes\":0,\"users\":0,\"groups\":[],\"other\":0,"
                         "\"revision\":1,\"gap\":true}");
    assert_closes(again, "\"posts\":0,\"deletes\":0,\"users\":0,\"groups\":[],\"other\":0,"
                         "\"gap\":true}"); /* for the first time */
    assert_closes(again, "\"other\":0}");
    counter_free(again);
    counter_free(counter);
}

/* --- keys --- */

static void assert_cell(double lon, double lat, uint32_t side, const char *key)
{
    const struct count_question question = {
        .bucket_ms = 1000, .by = COUNT_BY_CELL, .cell_millidegrees = side};
    struct counter *counter = counter_from(&question, at(0));
    struct event event = post(at(0), "1", "");
    char expected[64];

    event.view.has_point = true;
    event.view.point = (struct sl_point){lon, lat};
    assert_int_equal(counter_add(counter, &event, NULL, SL_SLICE_NONE), 0);
    snprintf(expected, sizeof(expected), "[{\"key\":\"%s\",", key);
    assert_closes(counter, expected);
    counter_free(counter);
}

static void test_a_cell_is_named_by_its_corner(void **state)
{
    (void)state;
    assert_cell(2.35, 48.86, 500, "2,48.5");
    assert_cell(-0.01, -0.01, 1000, "-1,-1");
    assert_cell(0, 0, 1000, "0,0");
    assert_cell(-0.1, -0.1, 250, "-0.25,-0.25");
    assert_cell(-180, -90, 90000, "-180,-90");
    assert_cell(180, 90, 90000, "90,0");  /* the last edge belongs to the last cell */
    assert_cell(180, 90, 7000, "177,85"); /* which may be smaller */
    assert_cell(1.005, 1.01, 10, "1,1.01");
    assert_cell(12.3456, 1, 125, "12.25,1");
}

/* --- memory --- */

static void test_without_memory_nothing_is_wrong(void **state)
{
    (void)state;
    for (unsigned fail_at = 0;; fail_at++) {
        struct counter *counter = counter_from(&by_lang, at(0));
        struct event event = post(at(1), "1", "en");
        struct sl_cursor before;
        struct told told = {0};
        bool is_done;

        mem_fail_after(fail_at);
        is_done = counter_add(counter, &event, NULL, SL_SLICE_NONE) == 0 &&
                  close_bucket(counter, counter_open(counter) + 1) == 0 &&
                  counter_next(counter, &told, &before) == 1;
        mem_fail_never();
        told_done(&told);
        counter_free(counter);
        if (is_done)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_are_counted_exactly),
        cmocka_unit_test(test_many_are_estimated_within_the_stated_error),
        cmocka_unit_test(test_the_estimate_does_not_depend_on_when_a_sketch_grows),
        cmocka_unit_test(test_cleared_is_as_new),
        cmocka_unit_test(test_a_bucket_has_its_milliseconds_and_no_other),
        cmocka_unit_test(test_the_rest_of_the_groups_is_other),
        cmocka_unit_test(test_what_came_late_is_counted_again_from_there),
        cmocka_unit_test(test_what_is_new_to_who_counts_again_is_told),
        cmocka_unit_test(test_a_late_event_is_counted_again_if_there_are_too_many_groups),
        cmocka_unit_test(test_a_rewind_is_counted_again_as_far_as_it_was_counted),
        cmocka_unit_test(test_who_counts_again_twice_forgets_no_bucket),
        cmocka_unit_test(test_the_last_id_of_a_bucket_may_be_missing),
        cmocka_unit_test(test_the_bucket_of_until_is_counted_whole),
        cmocka_unit_test(test_who_is_ahead_is_not_in_step),
        cmocka_unit_test(test_what_a_client_must_count_again_its_lane_counts_again),
        cmocka_unit_test(test_a_gap_is_told_of_each_bucket_that_it_touches),
        cmocka_unit_test(test_a_cell_is_named_by_its_corner),
        cmocka_unit_test(test_without_memory_nothing_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
