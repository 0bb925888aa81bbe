/* test_closing.c - buckets of many lanes that end at the same moment are closed a few per turn, and
 * clients receive the same as if all had been closed at once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stable_hash.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/intake/gap.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"
#include "tests/support/fake_client.h"

enum { LANES = 300, A_TURN = 64, WORDS = 20, STEPS = 6000 };

static const uint64_t day_ms = UINT64_C(1795219200000); /* 2026-11-21 */

static uint32_t refresh_ms;

struct world {
    uv_loop_t loop;
    struct metrics_board *board;
    struct deliver *deliver;
    struct fake_client clients[LANES];
    uint64_t now_ms, last; /* id of the last event */
};

static struct sl_cursor no_head(void)
{
    return (struct sl_cursor){0};
}

/* Counts, also by type; picked posts; and one lane with all trends. */
static struct count_question question_of(size_t i)
{
    struct count_question question = {.bucket_ms = 1000, .refresh_ms = refresh_ms};

    if (i == 0)
        question.trends = (struct trend_question){
            .window_ms = 60000, .of = (1 << TREND_OF_COUNT) - 1, .limit = 5};
    else if (i % 10 == 1)
        question.by = COUNT_BY_TYPE;
    else if (i % 10 == 2)
        question.pick = (struct pick_question){.posts = 2, .pick = PICK_EVEN};
    else if (i % 10 == 3)
        question.pick = (struct pick_question){.posts = 1, .pick = PICK_FIRST};
    return question;
}

static void subscribe(struct world *world, size_t i)
{
    const struct sl_cursor before = {.id = deliver_closed(world->deliver)};
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct client *client = &world->clients[i].client;
    struct sl_filter_text text = {0};
    struct sl_filter *filter;
    char rule[64];

    fake_client_init(&world->clients[i], FORMAT_NDJSON, no_head);
    client->question = question_of(i);
    snprintf(rule, sizeof(rule), "word%zu -other%zu", i % WORDS, i);
    text.rule = sl_slice_str(rule);
    text.firehose = i == 0;
    if (i == 0)
        text.rule = SL_SLICE_NONE;
    assert_int_equal(sl_filter_new(&text, &limits, &filter, NULL), 0);
    assert_int_equal(deliver_subscribe(world->deliver, client, filter, -1), 0);
    if (i > 0)
        assert_int_equal(deliver_resume(world->deliver, client, &before), 0);
    sl_filter_unref(filter);
}

static struct world *begin(void)
{
    struct world *world = mem_zalloc(sizeof(*world));

    assert_non_null(world);
    uv_loop_init(&world->loop);
    world->board = metrics_board_new(1);
    world->now_ms = day_ms;
    world->last = sl_id_first_at(day_ms) - 1;
    world->deliver =
        deliver_new(&(struct deliver_settings){.loop = &world->loop,
                                               .metrics = metrics_slot(world->board, 0),
                                               .max_owed_bytes = 16 << 20,
                                               .max_event_bytes = 1 << 30,
                                               .max_home_bytes = 1 << 30,
                                               .ring_bytes = 16 << 20,
                                               .max_lag_ms = 3600000});
    assert_non_null(world->deliver);
    deliver_begin_shard(world->deliver, 0, world->last);
    for (size_t i = 0; i < LANES; i++)
        subscribe(world, i);
    for (size_t i = 0; i < 2 * LANES; i++)
        uv_run(&world->loop, UV_RUN_NOWAIT); /* until all are live */
    return world;
}

static void end(struct world *world)
{
    for (size_t i = 0; i < LANES; i++) {
        assert_true(fake_client_lives(&world->clients[i]));
        deliver_leave(&world->clients[i].client);
        fake_client_done(&world->clients[i]);
    }
    deliver_free(world->deliver);
    uv_run(&world->loop, UV_RUN_DEFAULT);
    uv_loop_close(&world->loop);
    metrics_board_free(world->board);
    mem_free(world);
}

static void post(struct world *world, unsigned word, unsigned user)
{
    char text[128], name[16];
    struct event *event;
    uint64_t id = sl_id_first_at(world->now_ms);

    id = id > world->last ? id : world->last + 1;
    snprintf(name, sizeof(name), "%u", user);
    snprintf(text, sizeof(text), "word%u #tag%u @user%u of some words%u", word, word % 7, user % 5,
             user % 11);
    event = event_post(id, name, text);
    event->previous = world->last;
    world->last = id;
    deliver_event(world->deliver, event);
    event_unref(event);
}

static void lose_some(struct world *world)
{
    const struct gap gap = {.from = world->last, .to = world->last + 5, .reason = GAP_RETENTION};

    world->last += 5;
    deliver_gap(world->deliver, &gap);
}

static void pass_time(struct world *world, uint64_t ms)
{
    world->now_ms += ms;
    deliver_set_watermark(world->deliver, sl_id_first_at(world->now_ms) - 1);
}

static size_t told(const struct world *world)
{
    size_t count = 0;

    for (size_t i = 1; i < LANES; i++)
        count += world->clients[i].received.size > 0;
    return count;
}

static void forget_what_was_told(struct world *world)
{
    for (size_t i = 0; i < LANES; i++)
        buffer_clear(&world->clients[i].received);
}

/* Except for trends, at most 64 are closed per turn, whatever else arrives. */
static void test_a_turn_closes_a_few(void **state)
{
    struct world *world = begin();
    size_t turns = 0, before = 0, counting = 0;

    (void)state;
    for (size_t i = 1; i < LANES; i++)
        counting += question_of(i).pick.posts == 0;
    for (unsigned i = 0; i < 4 * WORDS; i++)
        post(world, i % WORDS, i);
    deliver_turn_end(world->deliver);
    forget_what_was_told(world);
    pass_time(world, 1000);
    for (before = 0; before < counting; turns++) {
        post(world, (unsigned)turns % WORDS, 1);
        deliver_turn_end(world->deliver);
        uv_run(&world->loop, UV_RUN_NOWAIT);
        assert_true(told(world) <= before + 2 * A_TURN); /* one before the loop, one in it */
        before = told(world);
        assert_true(turns < 2 * LANES);
    }
    assert_true(turns > 1);
    end(world);
}

/* Lanes that refresh the open bucket have nothing to send for one that is over. */
static void test_who_is_refreshed_waits_for_the_bucket(void **state)
{
    struct world *world;
    size_t turns = 0;

    (void)state;
    refresh_ms = 1;
    world = begin();
    forget_what_was_told(world);
    pass_time(world, 1000);
    assert_true(told(world) <= A_TURN);
    while (told(world) < LANES / 2) {
        uint64_t until = uv_hrtime() + 2000000;

        while (uv_hrtime() < until) /* the timer is due before anything is closed */
            continue;
        uv_run(&world->loop, UV_RUN_NOWAIT);
        assert_true(++turns < 100 * LANES);
    }
    refresh_ms = 0;
    end(world);
}

static void step(struct world *world, uint64_t what)
{
    unsigned word = (unsigned)(what >> 8) % WORDS, user = (unsigned)(what >> 16) % 50;

    if (what % 100 < 90)
        post(world, word, user);
    else if (what % 100 < 98)
        pass_time(world, (what >> 32) % 400);
    else if (what % 100 == 98)
        pass_time(world, (what >> 32) % 3000);
    else
        lose_some(world);
}

static void test_all_are_told_the_same_as_at_once(void **state)
{
    struct world *slow = begin(), *whole = begin();

    (void)state;
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t what = stable_hash(2 * i), turns = stable_hash(2 * i + 1);

        step(slow, what);
        step(whole, what);
        deliver_flush_all(whole->deliver);
        if (turns % 4 == 0)
            deliver_turn_end(slow->deliver);
        if (turns % 32 == 0)
            uv_run(&slow->loop, UV_RUN_NOWAIT);
    }
    deliver_flush_all(slow->deliver);
    for (size_t i = 0; i < LANES; i++) {
        const struct buffer *a = &slow->clients[i].received, *b = &whole->clients[i].received;

        assert_true(b->size > 0);
        assert_int_equal(a->size, b->size);
        assert_memory_equal(a->data, b->data, b->size);
    }
    end(slow);
    end(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_turn_closes_a_few),
        cmocka_unit_test(test_who_is_refreshed_waits_for_the_bucket),
        cmocka_unit_test(test_all_are_told_the_same_as_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
