#include <inttypes.h>

#include "base/alloc.h"
#include "gateway/delivery/ring.h"
#include "gateway/intake/gap.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"

enum { ROOM = 64 << 10 };

static struct ring ring;

static int begin(void **state)
{
    (void)state;
    ring_init(&ring, ROOM);
    return 0;
}

static int end(void **state)
{
    (void)state;
    ring_done(&ring);
    return 0;
}

static void append(uint64_t id)
{
    struct event *event = event_post(id, "ada", "tea");

    ring_append(&ring, event);
    ring_pass(&ring, 0, id);
    event_unref(event);
}

/* Each stored sequence finds its event. */
static void check_positions(uint64_t first_id)
{
    for (uint64_t sequence = ring.oldest; sequence < ring.next; sequence++) {
        size_t index;
        struct segment *segment = ring_find(&ring, sequence, &index);

        assert_true(index < segment->count);
        assert_int_equal(segment->entries[index].event->sequence, sequence);
        assert_int_equal(segment->entries[index].id, first_id + sequence - 1);
    }
}

static void test_every_sequence_leads_to_its_event(void **state)
{
    (void)state;
    for (uint64_t id = 100; id < 600; id++) {
        append(id);
        assert_int_equal(ring.next, id - 100 + 2);
        if (id % 50 == 0)
            check_positions(100);
    }
    assert_int_equal(ring.head[0], 599);
}

static void test_the_oldest_go_and_what_was_lost_is_known(void **state)
{
    (void)state;
    for (uint64_t id = 100; id < 3000; id++) {
        append(id);
        assert_true(ring.bytes <= ROOM);
        if (ring.oldest > 1)
            assert_int_equal(ring.lost[0], 100 + ring.oldest - 2); /* the one before the oldest */
    }
    assert_true(ring.oldest > 1);
    assert_true(ring.bytes > ROOM / 2);
    assert_int_equal(ring.lost_unlogged, 0);
    check_positions(100);
}

static void test_events_without_a_log_are_lost_by_sequence(void **state)
{
    (void)state;
    append(100);
    append(0);
    for (uint64_t id = 101; id < 3000; id++)
        append(id);
    assert_int_equal(ring.lost_unlogged, 3); /* that with the sequence 2, and none after it */
}

/* A client that has everything before the gap, and nothing of it, does not find it here any
 * more. */
static void test_a_gap_that_goes_is_lost_up_to_its_end(void **state)
{
    const struct gap gap = {0, 100, 200, GAP_REDIS};
    struct event *event = gap_event(&gap, false);

    (void)state;
    append(100);
    ring_append(&ring, event);
    event_unref(event);
    assert_int_equal(ring.head[0], 200);
    assert_int_equal(ring.lost[0], 0);
    for (uint64_t id = 201; ring.oldest <= 2; id++)
        append(id);
    assert_true(ring.lost[0] >= 200);
    assert_int_equal(ring.lost_unlogged, 0);
    ring_lose(&ring, 1, 300);
    assert_int_equal(ring.head[1], 300);
    assert_int_equal(ring.lost[1], 300);
}

/* It is at its beginning: the others have not reached its end. */
static void test_a_gap_of_one_shard_is_none_of_the_others(void **state)
{
    const struct gap gap = {1, 90, 200, GAP_REDIS};
    struct event *event = gap_event(&gap, true);

    (void)state;
    append(100);
    ring_append(&ring, event);
    event_unref(event);
    assert_int_equal(ring.head[1], 200);
    assert_int_equal(ring.newest, 100);
    ring_clear(&ring);
    assert_int_equal(ring.lost[0], 100);
    assert_int_equal(ring.lost[1], 200);
    assert_int_equal(ring.lost_of_all, 100);
}

static void test_what_could_not_be_kept_after_a_rewind_stays_lost(void **state)
{
    const struct gap gap = {0, 50, 100, GAP_REWOUND};
    struct event *event = gap_event(&gap, false);

    (void)state;
    append(100);
    ring_append(&ring, event);
    event_unref(event);
    ring_lose(&ring, 0, 100000);
    for (uint64_t id = 51; ring.oldest <= 2; id++)
        append(id);
    assert_int_equal(ring.lost[0], 100000);
}

static void test_a_ring_without_room_keeps_nothing(void **state)
{
    (void)state;
    ring_init(&ring, 0);
    append(100);
    append(0);
    append(101);
    assert_int_equal(ring.bytes, 0);
    assert_int_equal(ring.oldest, 4);
    assert_int_equal(ring.next, 4);
    assert_int_equal(ring.lost[0], 101);
    assert_int_equal(ring.lost_unlogged, 3);
}

static void test_a_shard_begins_where_its_log_ended(void **state)
{
    (void)state;
    ring_begin_shard(&ring, 3, 1000);
    assert_int_equal(ring.shards, 4);
    assert_int_equal(ring.lost[3], 1000);
    assert_int_equal(ring.head[3], 1000);
    assert_int_equal(ring.lost[0], 0);
}

/* Whichever allocation fails: what is not stored counts as lost, and everything stored is found. */
static void test_without_memory_it_begins_anew(void **state)
{
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        struct event *event = event_post(101, "ada", "tea");

        ring_done(&ring);
        ring_init(&ring, 64 * ROOM);
        for (int i = 0; i < SEGMENT_EVENTS; i++)
            append(100); /* the page is full */
        mem_fail_after(n);
        ring_append(&ring, event);
        has_failed = mem_failed();
        mem_fail_never();
        assert_int_equal(ring.next, SEGMENT_EVENTS + 2);
        assert_int_equal(ring.oldest, has_failed ? SEGMENT_EVENTS + 2 : 1);
        assert_int_equal(ring.lost[0], has_failed ? 101 : 0);
        event_unref(event);
    }
}

/* --- pages ------------------------------------------------------------------------------------ */

static void test_verdicts_of_many_lanes_keep_apart(void **state)
{
    struct segment *segment = segment_new();

    (void)state;
    assert_null(segment_verdict(segment, 1));
    for (uint64_t lane = 1; lane <= 1000; lane++) {
        struct verdict *verdict = segment_add_verdict(segment, lane);

        verdict->count = SEGMENT_EVENTS;
        verdict_want(verdict, lane % SEGMENT_EVENTS);
        assert_ptr_equal(segment_add_verdict(segment, lane), verdict);
    }
    assert_null(segment_verdict(segment, 1001));
    for (uint64_t lane = 1; lane <= 1000; lane++) {
        for (size_t index = 0; index < SEGMENT_EVENTS; index++)
            assert_int_equal(verdict_wants(segment_verdict(segment, lane), index),
                             index == lane % SEGMENT_EVENTS);
    }
    segment_free(segment);
}

static void test_without_memory_no_verdict_is_lost(void **state)
{
    struct segment *segment = segment_new();

    (void)state;
    for (uint64_t lane = 1; lane <= 100; lane++) {
        mem_fail_after(0);
        if (!segment_add_verdict(segment, lane)) {
            mem_fail_never();
            assert_non_null(segment_add_verdict(segment, lane));
        }
        mem_fail_never();
        for (uint64_t before = 1; before <= lane; before++)
            assert_int_equal(segment_verdict(segment, before)->lane, before);
    }
    segment_free(segment);
    mem_fail_after(0);
    assert_null(segment_new());
    mem_fail_never();
}

static void test_the_first_entry_above_an_id_is_found(void **state)
{
    struct segment *segment = segment_new();

    (void)state;
    assert_int_equal(segment_find_above(segment, 7), 0);
    for (uint64_t id = 10; id < 50; id += 10) {
        struct segment_entry entry = {.id = id};

        segment_append(segment, &entry);
    }
    assert_int_equal(segment_find_above(segment, 0), 0);
    assert_int_equal(segment_find_above(segment, 9), 0);
    assert_int_equal(segment_find_above(segment, 10), 1);
    assert_int_equal(segment_find_above(segment, 25), 2);
    assert_int_equal(segment_find_above(segment, 40), 4);
    segment_free(segment);
}

#define RING_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RING_TEST(test_every_sequence_leads_to_its_event),
        RING_TEST(test_the_oldest_go_and_what_was_lost_is_known),
        RING_TEST(test_events_without_a_log_are_lost_by_sequence),
        RING_TEST(test_a_gap_that_goes_is_lost_up_to_its_end),
        RING_TEST(test_a_gap_of_one_shard_is_none_of_the_others),
        RING_TEST(test_what_could_not_be_kept_after_a_rewind_stays_lost),
        RING_TEST(test_a_ring_without_room_keeps_nothing),
        RING_TEST(test_a_shard_begins_where_its_log_ended),
        RING_TEST(test_without_memory_it_begins_anew),
        cmocka_unit_test(test_verdicts_of_many_lanes_keep_apart),
        cmocka_unit_test(test_without_memory_no_verdict_is_lost),
        cmocka_unit_test(test_the_first_entry_above_an_id_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
