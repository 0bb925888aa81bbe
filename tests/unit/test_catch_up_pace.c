/* Clients with a pace that connect with a cursor, or fall behind: the posts that they are sent and
 * those reported as skipped add up to what matches. And clients that count. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/delivery/deliver_parts.h"
#include "tests/support/catch_up_scene.h"

enum { WINDOW_MS = 1000, OWED_BYTES = 2048 };

static uint64_t last_load;

static void on_load(void *owner, const char *user, uint64_t load)
{
    (void)owner;
    (void)user;
    last_load = load;
}

static struct count_question pace(enum pick pick, uint32_t posts)
{
    return (struct count_question){.bucket_ms = WINDOW_MS, .pick = {.posts = posts, .pick = pick}};
}

static void begin_window(void)
{
    last_id = (last_id / SL_ID_PER_MS / WINDOW_MS + 1) * WINDOW_MS * SL_ID_PER_MS;
}

/* Afterwards everything posted so far is in closed windows. */
static void end_window(void)
{
    begin_window();
    deliver_set_watermark(deliver, last_id - 1);
    settle();
}

/* Within the current turn. */
static void publish_and_pass(uint32_t shard, const char *user, const char *text)
{
    publish_in(shard, user, text);
    pass_in(shard);
}

/* How many posts the client was sent, and how many were reported as skipped: in their windows, and
 * because they were late. */
struct sum {
    size_t sent, skipped, late;
};

static struct sum sum_of(struct fake_client *client)
{
    const char *text = received(client);
    struct sum sum = {0};

    while (*text) {
        const char *end = *text == '{' ? strchr(text, '}') + 1 : strchrnul(text, ' ');
        const char *events = memmem(text, (size_t)(end - text), "\"events\":", 9);
        size_t *count = memmem(text, (size_t)(end - text), "late", 4) ? &sum.late : &sum.skipped;

        if (*text != '{')
            sum.sent++;
        else if (memmem(text, (size_t)(end - text), "skipped", 7))
            *count += strtoull(events + 9, NULL, 10);
        text = *end == ' ' ? end + 1 : end;
    }
    return sum;
}

static void assert_sum(struct fake_client *client, size_t sent, size_t skipped, size_t late)
{
    const struct sum sum = sum_of(client);

    assert_int_equal(sum.sent, sent);
    assert_int_equal(sum.skipped, skipped);
    assert_int_equal(sum.late, late);
}

static void
test_a_home_stream_with_a_pace_picks_from_all_that_passed_while_it_was_loaded(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};
    struct gap gap = {.reason = GAP_RETENTION};
    struct sum sum;

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    post("before");
    last_id += 40 * SL_ID_PER_MS; /* its window is over */
    deliver_set_watermark(deliver, last_id);
    a.client.question =
        (struct count_question){.bucket_ms = 20, .pick = {.posts = 2, .pick = PICK_NEWEST}};
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    assert_true(is_live(&a));
    gap.from = id_at(0);
    gap.to = id_at(0) + 1;
    deliver_gap(deliver, &gap); /* afterwards it is loaded again */
    for (int i = 0; i < 100; i++) {
        publish_in(0, "ada", "x");
        pass_in(0);
        deliver_set_watermark(deliver, last_id);
        deliver_turn_end(deliver);
    }
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    deliver_set_watermark(deliver, last_id + 40 * SL_ID_PER_MS);
    settle();
    sum = sum_of(&a);
    assert_int_equal(sum.sent + sum.skipped, 100);
}

static void publish_follow(const char *user, const char *target)
{
    uint64_t id = publish_in(0, user, "");

    snprintf(logs[0].entries[logs[0].count - 1].json, JSON_SIZE,
             "{\"id\":\"%" PRIu64 "\",\"type\":\"follow\",\"user\":{\"id\":\"%s\"},"
             "\"target\":{\"id\":\"%s\"}}",
             id, user, target);
    pass_in(0);
}

static void test_a_home_stream_with_a_pace_picks_again_when_its_user_follows_somebody(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    post("before");
    a.client.question =
        (struct count_question){.bucket_ms = 1000, .pick = {.posts = 2, .pick = PICK_NEWEST}};
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    last_id += 2000 * SL_ID_PER_MS;
    deliver_set_watermark(deliver, last_id);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    assert_true(is_live(&a));
    begin_window();
    for (int i = 0; i < 40; i++) {
        if (i == 20)
            publish_follow("bob", "eve");
        else
            publish_and_pass(0, i % 2 ? "ada" : "eve", "x");
        deliver_turn_end(deliver);
    }
    settle();
    end_window();
    assert_sum(&a, 2, 37, 0);
}

static void publish_some(size_t count)
{
    for (size_t i = 0; i < count; i++)
        publish_and_pass(0, "ada", "x");
}

/* A live client of two shards falls behind while its lane holds the first post of the next window,
 * and a late one of the second shard for a window that was closed long before. */
static void fall_behind_while_the_lane_holds_something(enum pick pick)
{
    const struct lane *lane;

    begin_again(1 << 20, OWED_BYTES, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    begin_window();
    publish_some(1);
    publish_in(1, "ada", "late");
    deliver_shard_behind(deliver, 1, 0);
    end_window();
    a.client.question = pace(pick, 20);
    resume(&a, NULL, deliver_closed(deliver));
    settle();
    assert_true(is_live(&a));
    lane = LIST_OWNER(a.client.outbox, struct lane, outbox);
    a.room = 0;
    publish_some(12);
    deliver_turn_end(deliver);
    publish_some(28);
    begin_window();
    deliver->close_work = 0; /* other clients have used up this turn's */
    publish_some(1);
    pass_in(1);
    assert_true(is_live(&a));
    assert_int_equal(lane->held.count, 2);
    deliver->close_work = pick != PICK_FIRST;
    deliver_turn_end(deliver);
    assert_false(is_live(&a));
    assert_true(lane->held.count > lane->held.first);
}

static void test_what_the_lane_holds_is_told_to_who_falls_behind(void **state)
{
    static const enum pick picks[] = {PICK_FIRST, PICK_NEWEST};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fall_behind_while_the_lane_holds_something(picks[i]);
        make_room(&a, FAKE_UNLIMITED);
        settle();
        end_window();
        assert_sum(&a, 21, 20, 1);
    }
}

/* Then it is read from the log. */
static void test_what_the_lane_held_may_have_left_the_ring(void **state)
{
    (void)state;
    fall_behind_while_the_lane_holds_something(PICK_FIRST);
    while (deliver->ring.oldest <= 42) {
        publish_some(100);
        deliver_turn_end(deliver);
        end_window();
    }
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_int_equal(sum_of(&a).late, 1);
}

static void test_what_the_lane_held_unlogged_may_have_left_the_ring(void **state)
{
    const struct lane *lane;

    (void)state;
    begin_again(0, OWED_BYTES, LAG_MS);
    begin_window();
    post("tea");
    a.client.question = pace(PICK_NEWEST, 20);
    resume(&a, NULL, id_at(0));
    end_window();
    assert_true(is_live(&a));
    lane = LIST_OWNER(a.client.outbox, struct lane, outbox);
    a.room = 0;
    publish_some(40);
    begin_window();
    deliver->close_work = 0; /* other clients have used up this turn's */
    publish_some(1);
    post_unlogged("ada");
    assert_true(is_live(&a));
    assert_int_equal(lane->held.count, 2);
    deliver->close_work = 1;
    deliver_turn_end(deliver);
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_non_null(strstr(received(&a), "\"reason\":\"unlogged\"}"));
}

static void fall_behind_with_a_pace(size_t ring_bytes)
{
    begin_again(ring_bytes, OWED_BYTES, LAG_MS);
    begin_window();
    post("tea");
    a.client.question = pace(PICK_NEWEST, 1);
    resume(&a, NULL, id_at(0));
    end_window();
    assert_true(is_live(&a));
    received(&a);
    a.room = 0;
    publish_some(2);
    end_window();
    post_unlogged("ada");
    while (is_live(&a)) {
        publish_some(2);
        end_window();
    }
}

/* It says the position of the lane, with which the client may resume. */
static void test_what_is_unlogged_comes_after_what_its_cursor_includes(void **state)
{
    const char *text, *picked, *unlogged;
    char id[SL_ID_TEXT_SIZE];

    (void)state;
    fall_behind_with_a_pace(1 << 20);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    text = received(&a);
    snprintf(id, sizeof(id), "%" PRIu64, id_at(2));
    picked = strstr(text, id);
    unlogged = strstr(text, "\"reason\":\"unlogged\"");
    assert_non_null(picked);
    assert_non_null(unlogged);
    assert_true(picked < unlogged);
    assert_null(strstr(picked + 1, id));
    assert_null(strstr(unlogged + 1, "\"reason\""));
}

/* Unlike what is logged, it cannot be read again. */
static void test_what_is_unlogged_and_has_left_the_ring_is_told_as_a_gap(void **state)
{
    const char *gap;

    (void)state;
    fall_behind_with_a_pace(ROOM);
    post_unlogged("ada");
    for (uint64_t sequence = deliver->ring.next; deliver->ring.oldest < sequence;)
        posts(100);
    end_window();
    make_room(&a, FAKE_UNLIMITED);
    settle();
    end_window();
    assert_true(is_live(&a));
    gap = strstr(received(&a), "{\"type\":\"gap\"");
    assert_non_null(gap);
    assert_non_null(strstr(gap, "\"reason\":\"unlogged\"}"));
    assert_null(strstr(gap + 1, "{\"type\":\"gap\""));
}

/* The client has not reached it when it starts again with the current window. */
static void test_what_comes_late_is_told_to_who_counts_again(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};

    (void)state;
    begin_again(1 << 20, OWED_BYTES, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    home_on_load(deliver_home(deliver), on_load, NULL);
    begin_window();
    publish_some(1);
    publish_in(1, "ada", "late");
    deliver_shard_behind(deliver, 1, 0);
    end_window();
    a.client.question = pace(PICK_NEWEST, 30);
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(deliver_closed(deliver))), 0);
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    assert_true(is_live(&a));
    a.room = 0;
    publish_some(40);
    end_window();
    assert_false(is_live(&a));
    publish_some(1);
    pass_in(1);
    publish_follow("bob", "eve");
    make_room(&a, FAKE_UNLIMITED);
    settle();
    end_window();
    assert_sum(&a, 31, 10, 1);
}

/* That something came late is owed to a client with a full socket, which then falls behind. */
static void test_what_came_late_is_told_to_who_falls_behind_before_it_was_sent(void **state)
{
    (void)state;
    begin_again(1 << 20, OWED_BYTES, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    begin_window();
    publish_some(1);
    publish_in(1, "ada", "late");
    deliver_shard_behind(deliver, 1, 0);
    end_window();
    a.client.question = pace(PICK_FIRST, 50);
    resume(&a, NULL, deliver_closed(deliver));
    settle();
    received(&a);
    a.room = 0;
    publish_some(3);
    pass_in(1);
    deliver_turn_end(deliver);
    assert_true(is_live(&a));
    publish_some(40);
    settle();
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    end_window();
    assert_sum(&a, 43, 0, 1);
}

/* The first client of the lane comes from a server where no shard was behind: it has what is still
 * to come here, and the others have not. */
static void test_what_comes_late_is_told_to_all_clients_of_a_lane(void **state)
{
    const struct sl_cursor here = {0};
    struct sl_cursor ahead;

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    begin_window();
    publish_some(1);
    publish_in(1, "ada", "late");
    deliver_shard_behind(deliver, 1, 0);
    end_window();
    ahead = (struct sl_cursor){.id = deliver_closed(deliver)};
    a.client.question = b.client.question = pace(PICK_NEWEST, 20);
    resume(&a, NULL, ahead.id);
    settle();
    assert_true(is_live(&a));
    sl_cursor_lower(&ahead, 1, here.id);
    subscribe(&b, NULL);
    assert_int_equal(deliver_resume(deliver, &b.client, &ahead), 0);
    settle();
    assert_true(is_live(&b));
    pass_in(1);
    settle();
    end_window();
    assert_sum(&b, 0, 0, 1);
}

static void put(struct rule_set *rules, const char *track)
{
    struct sl_filter *filter = filter_of(track);

    assert_int_equal(rule_set_put(rules, SL_SLICE("r"), SL_SLICE_NONE, filter), 0);
    sl_filter_unref(filter);
    deliver_rules_changed(&a.client);
}

/* Each post of the window is matched by the rules at the time when it arrived. */
static void test_rules_may_change_within_a_window_of_who_falls_behind(void **state)
{
    struct rule_set *rules;

    (void)state;
    begin_again(1 << 20, 400, LAG_MS);
    begin_window();
    post("x");
    a.client.question = pace(PICK_FIRST, 5);
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, -1, &rules), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    put(rules, "tea");
    deliver_rules_ready(&a.client);
    settle();
    end_window();
    assert_true(is_live(&a));
    post("tea");
    post("tea");
    post("coffee");
    put(rules, "coffee");
    a.room = 0;
    for (int i = 0; i < 6; i++)
        publish_and_pass(0, "ada", i % 3 ? "coffee" : "tea");
    deliver_turn_end(deliver);
    assert_false(is_live(&a));
    post("coffee");
    make_room(&a, FAKE_UNLIMITED);
    settle();
    end_window();
    assert_sum(&a, 5, 2, 0);
}

/* How often this is in what the client received. */
static size_t times_of(const char *text, struct fake_client *client)
{
    size_t times = 0;

    for (const char *at = buffer_str(&client->received); (at = strstr(at, text)); at++)
        times++;
    return times;
}

/* A post that the lane holds while it closes a window is matched by the rules of its time, too. */
static void test_rules_may_change_while_the_lane_holds_something(void **state)
{
    struct rule_set *rules;

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    begin_window();
    post("x");
    a.client.question = pace(PICK_NEWEST, 1);
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, -1, &rules), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    put(rules, "tea");
    deliver_rules_ready(&a.client);
    settle();
    end_window();
    assert_true(is_live(&a));
    publish_and_pass(0, "ada", "tea");
    begin_window();
    deliver->close_work = 0; /* other clients have used up this turn's */
    publish_and_pass(0, "ada", "tea and milk");
    publish_and_pass(0, "ada", "tea");
    put(rules, "milk");
    settle();
    end_window();
    assert_int_equal(times_of("\"matching_rules\":[{\"id\":\"r\"}]", &a), 2);
    assert_sum(&a, 2, 1, 0);
}

/* A client that was sent posts of a window of a home stream, and resumes within it, may not have
 * been sent posts by users who are followed only now. */
static void test_the_first_of_a_home_stream_are_those_of_whom_the_user_follows_now(void **state)
{
    const struct sl_slice people[] = {SL_SLICE("ada"), SL_SLICE("eve")};
    struct home_sets sets = {.followed = {people, 2}};

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    begin_window();
    post("before");
    end_window();
    publish_and_pass(0, "eve", "not followed yet");
    publish_and_pass(0, "ada", "sent");
    a.client.question = pace(PICK_FIRST, 2);
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(last_id)), 0);
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    publish_and_pass(0, "ada", "the third");
    publish_and_pass(0, "eve", "the fourth");
    settle();
    end_window();
    assert_sum(&a, 0, 2, 0);
    for (int i = 0; i < 5; i++)
        publish_and_pass(0, i % 2 ? "ada" : "eve", "x");
    settle();
    end_window();
    assert_sum(&a, 2, 3, 0);
}

/* What passed beside what the lane holds was not wanted then. */
static void test_whom_the_user_follows_while_the_lane_holds_something_is_counted_once(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    home_on_load(deliver_home(deliver), on_load, NULL);
    begin_window();
    publish_and_pass(0, "ada", "before");
    publish_and_pass(1, "eve", "before");
    end_window();
    a.client.question = pace(PICK_NEWEST, 20);
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(deliver_closed(deliver))), 0);
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    assert_true(is_live(&a));
    publish_some(1);
    begin_window();
    deliver->close_work = 0; /* other clients have used up this turn's */
    publish_some(1);
    publish_and_pass(1, "eve", "x");
    publish_some(1);
    publish_follow("bob", "eve");
    deliver_turn_end(deliver);
    assert_false(is_live(&a));
    settle();
    end_window();
    assert_sum(&a, 4, 0, 0);
}

/* It has not read the window again when it starts again with it. */
static void test_who_resumes_within_a_window_is_sent_nothing_twice(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    begin_window();
    post("before");
    end_window();
    publish_some(2);
    a.client.question = pace(PICK_NEWEST, 5);
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(last_id)), 0);
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    publish_follow("bob", "eve");
    publish_some(1);
    settle();
    end_window();
    assert_sum(&a, 1, 0, 0);
}

/* Also the bucket for which it comes when another one is known to be wrong. */
static void test_what_comes_late_is_counted_in_each_bucket(void **state)
{
    const char *text;

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    begin_window();
    publish_some(1);
    deliver_shard_behind(deliver, 1, 0);
    end_window();
    a.client.question = (struct count_question){.bucket_ms = WINDOW_MS};
    resume(&a, NULL, deliver_closed(deliver));
    settle();
    for (int i = 0; i < 2; i++) {
        publish_some(1);
        publish_in(1, "ada", "late");
        end_window();
    }
    assert_true(is_live(&a));
    received(&a);
    pass_in(1);
    pass_in(1);
    settle();
    text = received(&a);
    for (int i = 0; i < 2; i++) {
        text = strstr(text, "\"posts\":2,");
        assert_non_null(text);
        text = strstr(text, "\"revision\":1}");
        assert_non_null(text);
    }
}

/* The lane holds it meanwhile, and nothing else comes. */
static void test_what_comes_late_while_a_bucket_is_closed_is_counted(void **state)
{
    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    begin_window();
    publish_some(1);
    deliver_shard_behind(deliver, 1, 0);
    end_window();
    a.client.question = (struct count_question){.bucket_ms = WINDOW_MS};
    resume(&a, NULL, deliver_closed(deliver));
    settle();
    publish_some(1);
    publish_in(1, "ada", "late");
    end_window();
    assert_true(is_live(&a));
    publish_some(1);
    begin_window();
    deliver->close_work = 0; /* other clients have used up this turn's */
    deliver_set_watermark(deliver, last_id - 1);
    received(&a);
    pass_in(1);
    settle();
    assert_non_null(strstr(received(&a), "\"revision\":1}"));
}

/* A bucket is counted by the rules of one moment. */
static void test_rules_may_change_while_a_bucket_is_closed(void **state)
{
    struct rule_set *rules;
    const char *text;

    (void)state;
    begin_again(1 << 20, 200, LAG_MS); /* a message is sent at once */
    begin_window();
    post("x");
    a.client.question = (struct count_question){.bucket_ms = WINDOW_MS, .by = COUNT_BY_RULE};
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, -1, &rules), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    put(rules, "milk");
    deliver_rules_ready(&a.client);
    settle();
    end_window();
    publish_and_pass(0, "ada", "milk");
    settle();
    assert_true(is_live(&a));
    begin_window();
    deliver->close_work = 0; /* other clients have used up this turn's */
    publish_and_pass(0, "ada", "milk");
    publish_and_pass(0, "ada", "milk");
    publish_and_pass(0, "ada", "tea");
    publish_and_pass(0, "ada", "tea");
    deliver->close_work = 65; /* for closing the bucket, and counting the first post */
    deliver_turn_end(deliver);
    put(rules, "tea");
    received(&a);
    begin_window();
    deliver_set_watermark(deliver, last_id - 1);
    uv_run(&loop, UV_RUN_NOWAIT); /* the turn goes on */
    settle();
    text = received(&a);
    assert_non_null(strstr(text, "\"posts\":2,"));
    assert_null(strstr(text, "\"posts\":1,"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CATCH_UP_TEST(
            test_a_home_stream_with_a_pace_picks_from_all_that_passed_while_it_was_loaded),
        CATCH_UP_TEST(test_a_home_stream_with_a_pace_picks_again_when_its_user_follows_somebody),
        CATCH_UP_TEST(test_what_the_lane_holds_is_told_to_who_falls_behind),
        CATCH_UP_TEST(test_what_the_lane_held_may_have_left_the_ring),
        CATCH_UP_TEST(test_what_the_lane_held_unlogged_may_have_left_the_ring),
        CATCH_UP_TEST(test_what_is_unlogged_comes_after_what_its_cursor_includes),
        CATCH_UP_TEST(test_what_is_unlogged_and_has_left_the_ring_is_told_as_a_gap),
        CATCH_UP_TEST(test_what_comes_late_is_told_to_who_counts_again),
        CATCH_UP_TEST(test_what_came_late_is_told_to_who_falls_behind_before_it_was_sent),
        CATCH_UP_TEST(test_what_comes_late_is_told_to_all_clients_of_a_lane),
        CATCH_UP_TEST(test_rules_may_change_within_a_window_of_who_falls_behind),
        CATCH_UP_TEST(test_rules_may_change_while_the_lane_holds_something),
        CATCH_UP_TEST(test_whom_the_user_follows_while_the_lane_holds_something_is_counted_once),
        CATCH_UP_TEST(test_who_resumes_within_a_window_is_sent_nothing_twice),
        CATCH_UP_TEST(test_what_comes_late_is_counted_in_each_bucket),
        CATCH_UP_TEST(test_what_comes_late_while_a_bucket_is_closed_is_counted),
        CATCH_UP_TEST(test_rules_may_change_while_a_bucket_is_closed),
        CATCH_UP_TEST(test_the_first_of_a_home_stream_are_those_of_whom_the_user_follows_now),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
