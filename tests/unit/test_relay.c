/* How a worker processes entries: with a real broadcast, which the test writes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "gateway/intake/relay.h"
#include "tests/support/cmocka_all.h"

enum { RING_BYTES = 1 << 16, MANY = 2500, TURN_ENTRIES = 1000 /* of relay.c */ };

static struct {
    uv_loop_t loop;
    struct metrics_board *board;
    struct broadcast *broadcast;
    struct relay *relay;
    struct buffer told; /* a word for each callback */
    unsigned messages, turns, most_in_turn, in_turn;
    unsigned log_end_fails; /* this many calls fail */
    bool frees_itself;      /* when a message arrives */
} scene;

/* ---- callbacks ---- */

static void free_relay(void)
{
    relay_free(scene.relay);
    scene.relay = NULL;
}

static void on_master(void *context, const struct sl_redis_endpoint *endpoint)
{
    (void)context;
    buffer_append_format(&scene.told, "master=%s:%u ", endpoint->host, endpoint->port);
}

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    (void)context;
    if (scene.log_end_fails > 0) {
        scene.log_end_fails--;
        return -ENOMEM;
    }
    buffer_append_format(&scene.told, "end=%u:%" PRIu64 " ", shard, id);
    return 0;
}

static void on_message(void *context, const struct live_message *message)
{
    static const char forms[] = {[LIVE_JSON] = 'j', [LIVE_EVENT] = 'e', [LIVE_REFUSED] = 'r'};

    (void)context;
    assert_non_null(scene.relay);
    assert_non_null(message->body.data);
    if (scene.messages++ < 10)
        buffer_append_format(&scene.told, "%c=%u:%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%.*s ",
                             forms[message->form], message->shard, message->id, message->previous,
                             message->received_us, SL_SLICE_ARG(message->body));
    scene.in_turn++;
    if (scene.frees_itself)
        free_relay();
}

static void on_turn_end(void *context)
{
    (void)context;
    assert_non_null(scene.relay);
    scene.turns++;
    if (scene.in_turn > scene.most_in_turn)
        scene.most_in_turn = scene.in_turn;
    scene.in_turn = 0;
}

static void on_subscribed(void *context, uint32_t shards)
{
    (void)context;
    buffer_append_format(&scene.told, "subscribed=%u ", shards);
}

static void on_lost(void *context, const char *reason)
{
    (void)context;
    buffer_append_format(&scene.told, "lost=%s ", reason);
}

static void on_away(void *context, const char *reason)
{
    (void)context;
    buffer_append_format(&scene.told, "away=%s ", reason);
}

static void on_database(void *context, const struct sl_meta *meta)
{
    (void)context;
    buffer_append_format(&scene.told, "database=%s ", meta->database_id);
}

static void on_heard_again(void *context, uint32_t shard)
{
    (void)context;
    buffer_append_format(&scene.told, "again=%u ", shard);
}

static void on_time(void *context, uint64_t shards, uint64_t redis_ms)
{
    (void)context;
    buffer_append_format(&scene.told, "time=%" PRIu64 ":%" PRIu64 " ", shards, redis_ms);
}

static void on_round_over(void *context, uint64_t id, uint64_t shards)
{
    (void)context;
    buffer_append_format(&scene.told, "round=%" PRIu64 ":%" PRIu64 " ", id, shards);
}

static void expect(const char *told)
{
    assert_string_equal(buffer_str(&scene.told), told);
    buffer_clear(&scene.told);
}

/* ---- the fixture ---- */

static void begin(void)
{
    static const struct relay_callbacks callbacks = {
        .heard = {.log_end = on_log_end,
                  .message = on_message,
                  .turn_end = on_turn_end,
                  .subscribed = on_subscribed,
                  .lost = on_lost,
                  .heard_again = on_heard_again},
        .time = on_time,
        .round_over = on_round_over,
    };
    const struct relay_settings settings = {
        .loop = &scene.loop,
        .broadcast = scene.broadcast,
        .metrics = metrics_slot(scene.board, 0),
        .news = {.master = on_master, .away = on_away, .database = on_database},
    };

    scene.relay = relay_new(&settings, &callbacks, NULL);
    assert_non_null(scene.relay);
}

/* Runs until there is nothing left to read. */
static void run(void)
{
    size_t before;

    broadcast_wake(scene.broadcast);
    do {
        before = scene.told.size + scene.turns;
        uv_run(&scene.loop, UV_RUN_NOWAIT);
    } while (scene.told.size + scene.turns != before);
}

/* Runs until this callback, however long that takes. */
static void run_until(const char *told)
{
    while (!memmem(buffer_str(&scene.told), scene.told.size, told, strlen(told)))
        uv_run(&scene.loop, UV_RUN_ONCE);
}

static int set_up(void **state)
{
    (void)state;
    memset(&scene, 0, sizeof(scene));
    uv_loop_init(&scene.loop);
    scene.board = metrics_board_new(1);
    scene.broadcast = broadcast_new(1, RING_BYTES);
    return scene.board && scene.broadcast ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free_relay();
    uv_run(&scene.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&scene.loop), 0);
    broadcast_free(scene.broadcast);
    metrics_board_free(scene.board);
    buffer_done(&scene.told);
    return 0;
}

static uint64_t metric(enum metric metric)
{
    return metric_get(metrics_slot(scene.board, 0), metric);
}

/* ---- the writer ---- */

static void write_entry(struct broadcast_entry entry)
{
    assert_int_equal(broadcast_write(scene.broadcast, &entry), 0);
}

static void write_log_end(uint32_t shard, uint64_t id, uint64_t until_ms)
{
    write_entry((struct broadcast_entry){
        .kind = BROADCAST_LOG_END, .shard = shard, .id = id, .clock_until_ms = until_ms});
}

static void write_subscribed(uint32_t shards, bool is_clustered)
{
    const struct sl_meta meta = {
        .database_id = "0123", .shards = shards, .is_clustered = is_clustered};

    write_entry((struct broadcast_entry){.kind = BROADCAST_SUBSCRIBED,
                                         .data = sl_slice((const char *)&meta, sizeof(meta))});
}

static void write_reason(enum broadcast_kind kind, const char *reason)
{
    write_entry((struct broadcast_entry){.kind = kind, .data = sl_slice_str(reason)});
}

static void write_message(enum broadcast_kind kind, uint64_t id, const char *body)
{
    write_entry((struct broadcast_entry){.kind = kind,
                                         .shard = 1,
                                         .id = id,
                                         .previous = id - 1,
                                         .received_us = 5,
                                         .is_end = true,
                                         .data = sl_slice_str(body)});
}

static void write_hearing(void)
{
    write_log_end(0, 100, 7);
    write_log_end(1, 200, 8);
    write_subscribed(2, false);
}

/* ---- tests ---- */

static void test_what_is_written_is_told_in_order(void **state)
{
    const struct sl_redis_endpoint master = {"10.0.0.7", 6379};

    (void)state;
    begin();
    run();
    expect("");
    assert_false(relay_is_subscribed(scene.relay));
    write_entry((struct broadcast_entry){.kind = BROADCAST_MASTER,
                                         .data = sl_slice((const char *)&master, sizeof(master))});
    write_reason(BROADCAST_AWAY, "no route");
    write_hearing();
    run();
    expect("master=10.0.0.7:6379 away=no route end=0:100 end=1:200 subscribed=2 ");
    assert_true(relay_is_subscribed(scene.relay));
    assert_string_equal(relay_meta(scene.relay)->database_id, "0123");
    assert_int_equal(relay_clock_until_ms(scene.relay, 0), 7);
    assert_int_equal(relay_clock_until_ms(scene.relay, 1), 8);
    assert_int_equal(metric(METRIC_SUBSCRIBED), 1);

    scene.turns = 0;
    write_message(BROADCAST_EVENT, 201, "bytes");
    write_message(BROADCAST_JSON, 202, "{}");
    write_message(BROADCAST_REFUSED, 203, "");
    write_entry((struct broadcast_entry){.kind = BROADCAST_TIME, .shards = 3, .redis_ms = 66});
    write_entry((struct broadcast_entry){
        .kind = BROADCAST_ROUND, .id = 203, .shards = 3, .clock_skew_us = 55});
    run();
    expect("e=1:201:200:5:bytes j=1:202:201:5:{} r=1:203:202:5: time=3:66 round=203:3 ");
    assert_int_equal(scene.turns, 1);
    assert_int_equal(metric(METRIC_REDIS_CLOCK_SKEW), 55);

    write_reason(BROADCAST_LOST, "gone");
    write_hearing();
    run();
    expect("lost=gone end=0:100 end=1:200 subscribed=2 ");
}

static void test_who_begins_later_is_told_as_if_hearing_had_just_begun(void **state)
{
    const struct sl_redis_endpoint master = {"10.0.0.7", 6379};

    (void)state;
    write_entry((struct broadcast_entry){.kind = BROADCAST_MASTER,
                                         .data = sl_slice((const char *)&master, sizeof(master))});
    write_hearing();
    write_message(BROADCAST_EVENT, 205, "before");
    begin();
    run();
    expect("master=10.0.0.7:6379 end=0:100 end=1:205 subscribed=2 ");
    write_message(BROADCAST_REFUSED, 206, "");
    write_message(BROADCAST_EVENT, 207, "behind");
    run();
    expect("r=1:206:205:5: e=1:207:206:5:behind ");
}

static void test_who_begins_while_nothing_is_heard_is_told_why(void **state)
{
    (void)state;
    write_hearing();
    write_reason(BROADCAST_AWAY, "no route");
    write_reason(BROADCAST_LOST, "no route");
    begin();
    run();
    expect("away=no route ");
    assert_false(relay_is_subscribed(scene.relay));
    write_log_end(0, 100, 7); /* of the other shard it has the end from when it joined */
    write_subscribed(2, false);
    run();
    expect("end=0:100 end=1:200 subscribed=2 ");
}

static void write_again(uint32_t shard, uint64_t id)
{
    write_log_end(shard, id, 9);
    write_entry((struct broadcast_entry){.kind = BROADCAST_HEARD_AGAIN, .shard = shard});
}

static void test_a_shard_that_is_heard_again_is_told_of_while_the_others_go_on(void **state)
{
    (void)state;
    write_log_end(0, 100, 7);
    write_log_end(1, 200, 8);
    write_subscribed(2, true);
    begin();
    run();
    expect("end=0:100 end=1:200 database=0123 subscribed=2 ");
    write_again(1, 250);
    run();
    expect("end=1:250 again=1 ");
    assert_int_equal(relay_clock_until_ms(scene.relay, 1), 9);
    write_reason(BROADCAST_LOST, "gone");
    write_again(1, 260); /* not yet: it reports all when the subscription begins */
    run();
    expect("lost=gone ");
    write_subscribed(2, true);
    run();
    expect("end=0:100 end=1:260 database=0123 subscribed=2 ");
}

static void test_a_worker_that_was_overtaken_begins_again(void **state)
{
    (void)state;
    write_hearing();
    begin();
    run();
    buffer_clear(&scene.told);
    for (uint64_t id = 201; id <= 201 + RING_BYTES / 40; id++)
        write_message(BROADCAST_EVENT, id, "x");
    broadcast_wake(scene.broadcast);
    run_until("subscribed");
    assert_int_equal(scene.messages, 0);
    assert_int_equal(metric(METRIC_INTAKE_OVERRUNS), 1);
    buffer_append_char(&scene.told, '\n');
    expect("lost=the worker was too slow for the intake process end=0:100 end=1:1839 "
           "subscribed=2 \n");
}

static void test_the_end_of_the_intake_process_is_told_and_its_successor_is_heard(void **state)
{
    (void)state;
    write_hearing();
    begin();
    run();
    buffer_clear(&scene.told);
    write_message(BROADCAST_EVENT, 201, "never read");
    broadcast_reset(scene.broadcast);
    write_hearing();
    broadcast_wake(scene.broadcast);
    run_until("subscribed");
    expect("away=the intake process has ended lost=the intake process has ended "
           "end=0:100 end=1:200 subscribed=2 ");
    assert_int_equal(scene.messages, 0);
}

/* Clients are served in between. */
static void test_a_turn_has_an_end_however_much_there_is_to_read(void **state)
{
    (void)state;
    scene.relay = NULL;
    broadcast_free(scene.broadcast);
    scene.broadcast = broadcast_new(1, 64 * RING_BYTES);
    assert_non_null(scene.broadcast);
    write_hearing();
    begin();
    run();
    scene.turns = 0;
    for (uint64_t id = 201; id < 201 + MANY; id++)
        write_message(BROADCAST_EVENT, id, "x");
    run();
    assert_int_equal(scene.messages, MANY);
    assert_int_equal(scene.turns, MANY / TURN_ENTRIES + 1);
    assert_int_equal(scene.most_in_turn, TURN_ENTRIES);
}

static void test_without_memory_hearing_begins_again(void **state)
{
    (void)state;
    scene.log_end_fails = 1;
    write_hearing();
    begin();
    run_until("subscribed"); /* joined twice */
    expect("end=0:100 end=1:200 subscribed=2 ");
    write_reason(BROADCAST_LOST, "gone");
    write_hearing();
    scene.log_end_fails = 2;
    broadcast_wake(scene.broadcast);
    run_until("subscribed");
    expect("lost=gone end=0:100 end=1:200 subscribed=2 ");
    assert_int_equal(scene.log_end_fails, 0);
}

static void test_it_may_be_freed_from_within_a_callback(void **state)
{
    (void)state;
    write_hearing();
    begin();
    run();
    scene.frees_itself = true;
    scene.turns = 0;
    write_message(BROADCAST_EVENT, 201, "x");
    write_message(BROADCAST_EVENT, 202, "x");
    run();
    assert_null(scene.relay);
    assert_int_equal(scene.messages, 1);
    assert_int_equal(scene.turns, 0);
}

static void test_clocks_that_the_worker_finds_are_known_to_the_writer_and_who_joins(void **state)
{
    (void)state;
    write_hearing();
    begin();
    run();
    assert_int_equal(broadcast_clock_ms(scene.broadcast, 1), 0);
    relay_set_clock(scene.relay, 1, 90);
    assert_int_equal(broadcast_clock_ms(scene.broadcast, 1), 90);
    relay_set_clock(scene.relay, 1, 80);
    assert_int_equal(broadcast_clock_ms(scene.broadcast, 1), 90);
    free_relay();
    begin();
    run();
    assert_int_equal(relay_clock_until_ms(scene.relay, 0), 7);
    assert_int_equal(relay_clock_until_ms(scene.relay, 1), 90);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(test_what_is_written_is_told_in_order),
        TEST(test_who_begins_later_is_told_as_if_hearing_had_just_begun),
        TEST(test_who_begins_while_nothing_is_heard_is_told_why),
        TEST(test_a_shard_that_is_heard_again_is_told_of_while_the_others_go_on),
        TEST(test_a_worker_that_was_overtaken_begins_again),
        TEST(test_the_end_of_the_intake_process_is_told_and_its_successor_is_heard),
        TEST(test_a_turn_has_an_end_however_much_there_is_to_read),
        TEST(test_without_memory_hearing_begins_again),
        TEST(test_it_may_be_freed_from_within_a_callback),
        TEST(test_clocks_that_the_worker_finds_are_known_to_the_writer_and_who_joins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
