/* Clients that catch up in several shards, some of which are behind. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/intake/gap.h"
#include "gateway/delivery/home.h"
#include "tests/support/catch_up_scene.h"
#include "tests/support/events.h"

/* The end of the log of shard 2 is requested later than that of shard 1, which has an event in
 * between. */
static void test_who_comes_to_shards_that_began_at_different_times_misses_nothing(void **state)
{
    uint64_t ids[3];
    char expected[2 * SL_ID_TEXT_SIZE];

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    for (uint32_t shard = 0; shard < 3; shard++)
        ids[shard] = publish_in(shard, "ada", "tea");
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        deliver_begin_shard(deliver, shard, shard == 0 || shard == 2 ? ids[shard] : 0);
    logs[0].passed = logs[2].passed = 1;
    pass_in(1);
    deliver_turn_end(deliver);
    deliver_begin(deliver);
    resume(&a, NULL, ids[0]);
    settle();
    snprintf(expected, sizeof(expected), "%" PRIu64 " %" PRIu64, ids[1], ids[2]);
    assert_string_equal(received(&a), expected);
}

static void test_quiet_shards_do_not_hold_back_the_cursor_of_who_falls_behind(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(1 << 20);

    (void)state;
    subscribe(&a, NULL);
    a.room = 8000;
    post_to_busy_shards(busy);
    settle();
    assert_true(a.client.catcher && a.client.sent_events > 10);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[a.client.sent_events - 1]);
    make_room(&a, 30000); /* it continues for a while */
    settle();
    assert_true(a.client.catcher && a.client.sent_events > 100);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     busy[a.client.sent_events - 2]); /* one of them was a warning */
}

/* The ring no longer has the next event that it is owed. */
static void test_they_miss_nothing_when_only_the_log_has_the_rest(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(ROOM);

    (void)state;
    subscribe(&a, NULL);
    a.room = 8000;
    post_to_busy_shards(busy);
    assert_true(a.client.catcher && a.client.sent_events > 10);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[a.client.sent_events - 1]);
    make_room(&a, 20000);
    settle();
    assert_true(reads > 0 && a.client.catcher && a.client.sent_events > 50);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     busy[a.client.sent_events - 2]); /* one of them was a warning */
}

static void test_the_cursor_of_who_came_with_one_follows_what_was_sent(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(ROOM);

    (void)state;
    post_to_busy_shards(busy);
    a.room = 20000;
    resume(&a, NULL, busy[9]);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[9]);
    settle();
    assert_true(a.client.catcher && a.client.sent_events > 50);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[9 + a.client.sent_events]);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[TAKES - 1]);
}

static const char *cursor_text(const struct sl_cursor *cursor)
{
    static char text[SL_CURSOR_TEXT_SIZE];

    return sl_cursor_print(cursor, text);
}

/* A cursor `id`, with only `low` of the quiet shard. */
static struct sl_cursor behind(uint64_t id, uint64_t low)
{
    struct sl_cursor cursor = {.id = id};

    sl_cursor_lower(&cursor, QUIET_SHARD, low);
    return cursor;
}

static void assert_cursor(const struct fake_client *client, uint64_t id, uint64_t low)
{
    const struct sl_cursor cursor = deliver_client_cursor(deliver, &client->client);
    const struct sl_cursor expected = behind(id, low);
    char text[SL_CURSOR_TEXT_SIZE];

    assert_string_equal(cursor_text(&cursor), sl_cursor_print(&expected, text));
}

/* Expects the event that is late for a client at this position. */
static void assert_late(const struct fake_client *client, uint64_t id, uint64_t newest)
{
    char text[128];

    if (newest == id)
        return;
    snprintf(text, sizeof(text),
             "\"text\":\"late\"},\"late\":true,\"cursor\":\"%" PRIu64 "~%" PRIu64 ":4\"}", newest,
             id);
    if (!strstr(buffer_str((struct buffer *)&client->received), text))
        fail_msg("%s is not in %s", text, buffer_str((struct buffer *)&client->received));
}

/* Expects these, then all of the busy shards. */
static void check_follow(struct fake_client *client, const uint64_t *first, size_t count)
{
    struct buffer text = BUFFER_INIT;

    for (size_t i = 0; i < count; i++)
        buffer_append_format(&text, "%" PRIu64 " ", first[i]);
    for (size_t i = 0; i < TAKES; i++)
        buffer_append_format(&text, i + 1 < TAKES ? "%" PRIu64 " " : "%" PRIu64, busy_ids[i]);
    check_all_but_warning(client, buffer_str(&text));
    buffer_done(&text);
}

/* The other shards continue without this one: *late is logged in it before the last of `ids`, and
 * passes after it. Returns the shard's previous event. */
static uint64_t leave_behind(uint64_t *ret_late, uint64_t ids[static 2])
{
    uint64_t low = logs[QUIET_SHARD].entries[0].id;

    ids[0] = publish_in(0, "ada", "first");
    pass_in(0);
    *ret_late = publish_in(QUIET_SHARD, "ada", "late");
    deliver_shard_behind(deliver, QUIET_SHARD, ids[0]);
    ids[1] = publish_in(0, "ada", "second");
    pass_in(0);
    deliver_turn_end(deliver);
    return low;
}

static void come_late(void)
{
    pass_in(QUIET_SHARD);
    deliver_shard_behind(deliver, QUIET_SHARD, logs[QUIET_SHARD].entries[1].id);
    deliver_turn_end(deliver);
}

static void test_a_late_event_is_told_with_a_cursor_of_its_own(void **state)
{
    uint64_t late, ids[2];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    subscribe(&a, NULL);
    leave_behind(&late, ids);
    assert_cursor(&a, ids[1], ids[0]);
    come_late();
    assert_late(&a, late, ids[1]);
    assert_cursor(&a, ids[1], late);
    deliver_shard_whole(deliver, QUIET_SHARD);
    assert_cursor(&a, ids[1], ids[1]);
}

/* The gap passes after events of the other shards within its range, which have left the ring. */
static void test_nobody_is_given_a_cursor_beyond_a_gap_before_it_is_told(void **state)
{
    uint64_t late, ids[2], low;
    struct sl_cursor cursor;
    struct gap gap;

    (void)state;
    begin_with_quiet_shards(ROOM);
    low = leave_behind(&late, ids);
    post_to_busy_shards(begin_busy());
    gap = (struct gap){QUIET_SHARD, low, late, GAP_REDIS};
    deliver_gap(deliver, &gap);
    deliver_shard_behind(deliver, QUIET_SHARD, late);
    deliver_shard_whole(deliver, QUIET_SHARD);
    a.room = 20000;
    resume(&a, NULL, low);
    settle();
    cursor = deliver_client_cursor(deliver, &a.client);
    assert_true(a.client.catcher && cursor.id > busy_ids[40] && cursor.id < busy_ids[TAKES - 1]);
    assert_int_equal(sl_cursor_of_shard(&cursor, QUIET_SHARD), low);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_non_null(strstr(buffer_str(&a.received), "\"reason\":\"redis\",\"shard\":2"));
}

/* Wherever the connection breaks, the cursor describes what the client has, and it gets the
 * rest. */
static void test_who_is_cut_around_a_late_event_misses_nothing(void **state)
{
    static const size_t rings[] = {1 << 20, ROOM, 0};
    uint64_t late, ids[2];
    struct sl_cursor cursors[3];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin_with_quiet_shards(rings[i]);
        cursors[0] = (struct sl_cursor){.id = leave_behind(&late, ids)};
        cursors[1] = deliver_cursor(deliver);
        come_late();
        cursors[2] = deliver_cursor(deliver);
        deliver_shard_whole(deliver, QUIET_SHARD);
        post_to_busy_shards(begin_busy());
        subscribe(&a, NULL);
        assert_int_equal(deliver_resume(deliver, &a.client, &cursors[0]), 0);
        subscribe(&b, NULL);
        assert_int_equal(deliver_resume(deliver, &b.client, &cursors[1]), 0);
        subscribe(&c, NULL);
        assert_int_equal(deliver_resume(deliver, &c.client, &cursors[2]), 0);
        settle();
        assert_true(is_live(&a) && is_live(&b) && is_live(&c));
        if (i > 0) /* merged from the logs */
            assert_late(&a, late, late);
        assert_late(&b, late, ids[1]);
        check_follow(&a,
                     rings[i] == 1 << 20 ? (uint64_t[]){ids[0], ids[1], late}
                                         : (uint64_t[]){ids[0], late, ids[1]},
                     3);
        check_follow(&b, (uint64_t[]){late}, 1);
        check_follow(&c, NULL, 0);
    }
}

static void mark_late_in(uint32_t shard, uint64_t from, uint64_t to)
{
    struct fake_log *log = &logs[shard];

    publish_in(shard, "ada", "mark");
    snprintf(log->entries[log->count - 1].json, JSON_SIZE,
             "{\"id\":\"%" PRIu64 "\",\"type\":\"late\",\"shard\":%" PRIu32 ",\"from\":\"%" PRIu64
             "\",\"to\":\"%" PRIu64 "\"}",
             last_id, shard, from, to);
    pass_in(shard);
    deliver_turn_end(deliver);
}

static void mark_late(uint64_t from, uint64_t to)
{
    mark_late_in(QUIET_SHARD, from, to);
}

static const char *late_gap(uint64_t from, uint64_t to)
{
    static char text[128];

    snprintf(text, sizeof(text),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"late\",\"shard\":%d}",
             from, to, QUIET_SHARD);
    return text;
}

/* A plain cursor claims late events with lower ids: while the shard is behind, when it has caught
 * up, and when a marker in its log says so, here or in the ring. */
static void test_a_plain_cursor_is_told_what_came_late(void **state)
{
    static const size_t rings[] = {1 << 20, ROOM, 0};
    uint64_t late, ids[2], from;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin_with_quiet_shards(rings[i]);
        leave_behind(&late, ids);
        resume(&a, NULL, ids[1]);
        settle();
        assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
        come_late();
        deliver_shard_whole(deliver, QUIET_SHARD);
        resume(&b, NULL, ids[1]);
        settle();
        assert_string_equal(received(&b), late_gap(ids[0], ids[1]));
        from = ids[0] - 1;
        mark_late(from, ids[1]);
        deliver_leave(&b.client);
        post_to_busy_shards(begin_busy());
        buffer_clear(&b.received);
        resume(&b, NULL, ids[1]);
        resume(&c, NULL, ids[0] - 1);
        settle();
        assert_true(is_live(&b) && is_live(&c));
        check_follow(&c,
                     rings[i] == 1 << 20 ? (uint64_t[]){ids[0], ids[1], late}
                                         : (uint64_t[]){ids[0], late, ids[1]},
                     3);
        assert_memory_equal(buffer_str(&b.received) + 4, late_gap(from, ids[1]),
                            strlen(late_gap(from, ids[1])));
    }
}

static void post_in(uint32_t shard, uint64_t *ret_id, const char *text)
{
    *ret_id = publish_in(shard, "ada", text);
    pass_in(shard);
    deliver_turn_end(deliver);
    settle();
}

static void assert_received(struct fake_client *client, uint64_t id)
{
    char text[SL_ID_TEXT_SIZE];

    assert_string_equal(received(client), id ? sl_id_print(id, text) : "");
}

/* At their previous gateway the shard was not behind, or not as far: they have the first late
 * event, and lack what comes after their cursors. */
static void test_who_has_more_of_a_shard_that_is_behind_is_not_sent_it_again(void **state)
{
    static const size_t rings[] = {1 << 20, 0};
    uint64_t late, later, third, last, ids[2];
    struct sl_cursor cursor;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_with_quiet_shards(rings[i]);
        leave_behind(&late, ids);
        resume(&a, NULL, ids[1]);
        subscribe(&b, NULL);
        cursor = behind(ids[1], late);
        assert_int_equal(deliver_resume(deliver, &b.client, &cursor), 0);
        subscribe(&c, NULL);
        settle();
        assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
        assert_cursor(&a, ids[1], ids[1]);
        assert_cursor(&b, ids[1], late);
        come_late();
        settle();
        assert_received(&a, 0);
        assert_received(&b, 0);
        assert_received(&c, late);
        later = publish_in(QUIET_SHARD, "ada", "late");
        post_in(0, &third, "third");
        assert_received(&a, third);
        assert_received(&b, third);
        assert_received(&c, third);
        assert_cursor(&a, third, ids[1]);
        assert_cursor(&b, third, late);
        pass_in(QUIET_SHARD);
        deliver_turn_end(deliver);
        settle();
        assert_late(&a, later, third);
        assert_received(&a, later);
        assert_received(&b, later);
        assert_received(&c, later);
        assert_cursor(&a, third, later);
        deliver_shard_whole(deliver, QUIET_SHARD);
        post_in(0, &last, "last");
        assert_received(&a, last);
        assert_received(&b, last);
        assert_true(is_live(&a) && is_live(&b));
    }
}

/* Its id is the producer's. */
static void test_an_event_without_a_log_says_the_cursor_of_each_client(void **state)
{
    struct event *event = event_post(0, "bob", "from elsewhere");
    struct sl_cursor cursor;
    uint64_t late, ids[2];
    char said[64];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    leave_behind(&late, ids);
    subscribe(&a, NULL);
    subscribe(&b, NULL);
    cursor = behind(ids[1], late);
    assert_int_equal(deliver_resume(deliver, &b.client, &cursor), 0);
    settle();
    deliver_event(deliver, event);
    event_unref(event);
    deliver_turn_end(deliver);
    settle();
    snprintf(said, sizeof(said), "\"cursor\":\"%" PRIu64 "~%" PRIu64 ":4\"}\r\n", ids[1], ids[0]);
    assert_non_null(strstr(buffer_str(&a.received), said));
    snprintf(said, sizeof(said), "\"cursor\":\"%" PRIu64 "~%" PRIu64 ":4\"}\r\n", ids[1], late);
    assert_non_null(strstr(buffer_str(&b.received), said));
    assert_cursor(&b, ids[1], late);
}

/* It waits for the event of its cursor, and meanwhile the shard falls behind. */
static void test_who_is_ahead_is_told_when_a_shard_falls_behind(void **state)
{
    uint64_t late, ids[2];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    post_in(0, &ids[0], "first");
    late = publish_in(QUIET_SHARD, "ada", "late");
    ids[1] = publish_in(0, "ada", "second");
    resume(&a, NULL, ids[1]);
    subscribe(&b, NULL);
    settle();
    assert_false(is_live(&a));
    deliver_shard_behind(deliver, QUIET_SHARD, ids[0]);
    pass_in(0);
    deliver_turn_end(deliver);
    settle();
    assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
    assert_received(&b, ids[1]);
    come_late();
    settle();
    assert_received(&a, 0);
    assert_received(&b, late);
    assert_cursor(&a, ids[1], ids[1]);
}

/* Ids that a shard mints below what has passed, because its clock was set back, are new to all. */
static void test_what_a_clock_that_steps_back_mints_is_new_to_all(void **state)
{
    uint64_t late, stepped, again, ids[2];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    leave_behind(&late, ids);
    for (size_t i = 0; i < 4; i++)
        post_in(0, &ids[1], "more");
    resume(&a, NULL, ids[1]);
    settle();
    assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
    last_id = ids[0];
    post_in(1, &stepped, "late");
    assert_true(stepped < ids[1]);
    assert_received(&a, stepped);
    last_id = stepped;
    post_in(1, &again, "late");
    assert_true(again < ids[1]);
    assert_received(&a, again);
    come_late();
    settle();
    assert_received(&a, 0);
}

/* Nothing was late here: another gateway passed the shard by, gave out the cursor, and writes a
 * marker when the client is live here. */
static void test_who_is_live_is_told_of_a_mark_that_its_cursor_claims(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(1 << 20);
    char expected[512];

    (void)state;
    post_to_busy_shards(busy);
    resume(&a, NULL, busy[TAKES - 5]);
    resume(&b, NULL, busy[TAKES - 20]); /* has less */
    subscribe(&c, NULL);
    settle();
    assert_true(is_live(&a) && is_live(&b));
    buffer_clear(&a.received);
    buffer_clear(&b.received);
    mark_late(busy[TAKES - 10], busy[TAKES - 2]);
    assert_true(is_live(&b) && is_live(&c));
    settle();
    publish_in(0, "ada", "behind it");
    pass_in(0);
    deliver_turn_end(deliver);
    settle();
    assert_true(is_live(&a));
    snprintf(expected, sizeof(expected), "%s %" PRIu64, late_gap(busy[TAKES - 10], busy[TAKES - 5]),
             last_id);
    assert_string_equal(received(&a), expected);
    snprintf(expected, sizeof(expected), "%" PRIu64, last_id);
    assert_string_equal(received(&b), expected);
    assert_string_equal(received(&c), expected);
    mark_late(busy[TAKES - 10], busy[TAKES - 2]); /* by another gateway: one is enough */
    settle();
    assert_string_equal(received(&a), "");
    mark_late_in(EMPTY_SHARD, busy[TAKES - 10], busy[TAKES - 2]); /* in each shard */
    settle();
    assert_true(is_live(&a) && is_live(&b));
    assert_non_null(strstr(received(&a), "\"reason\":\"late\",\"shard\":3"));
    assert_string_equal(received(&b), "");
}

/* It came with a plain cursor to a gateway that passed the shard by later, and got a longer cursor
 * there before it was told what the plain one had wrongly claimed: of the shard it claims an id of
 * another. A client that has got events of the shard has an id of that shard. */
static void test_who_was_given_a_longer_cursor_is_told_what_the_plain_one_claimed(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(1 << 20);
    struct sl_cursor claims, knows;
    uint64_t late, last;

    (void)state;
    post_in(0, &last, "before");
    post_in(QUIET_SHARD, &late, "late elsewhere");
    post_to_busy_shards(busy);
    claims = behind(busy[TAKES - 1], busy[10]);
    knows = behind(busy[TAKES - 1], late);
    mark_late(late - 1, busy[20]);
    subscribe(&a, NULL);
    assert_int_equal(deliver_resume(deliver, &a.client, &claims), 0);
    subscribe(&b, NULL);
    assert_int_equal(deliver_resume(deliver, &b.client, &knows), 0);
    settle();
    assert_string_equal(received(&a), late_gap(late - 1, busy[10]));
    assert_string_equal(received(&b), "");
}

/* It has fallen out of the ring before it reached the late event. */
static void test_who_is_slow_gets_a_late_event_from_the_log(void **state)
{
    uint64_t late, ids[2];

    (void)state;
    begin_with_quiet_shards(ROOM);
    subscribe(&a, NULL);
    publish_in(0, "ada", "before");
    pass_in(0);
    deliver_turn_end(deliver);
    buffer_clear(&a.received);
    a.room = 0;
    leave_behind(&late, ids);
    come_late();
    deliver_shard_whole(deliver, QUIET_SHARD);
    post_to_busy_shards(begin_busy());
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    check_follow(&a, (uint64_t[]){ids[0], late, ids[1]}, 3);
}

/* A gap of the quiet shard has left the ring, but not all events of the others within its range.
 * Returns the id of its end, of an event that the log has nevertheless. */
static uint64_t begin_with_gap_over_the_ring(void)
{
    struct gap gap = {.shard = QUIET_SHARD, .reason = GAP_REDIS};
    uint64_t here;

    begin_with_quiet_shards(ROOM);
    gap.from = here = last_id;
    last_id += 10000 * SL_ID_PER_MS;
    gap.to = publish_in(QUIET_SHARD, "ada", "missed");
    logs[QUIET_SHARD].passed++;
    last_id = here;
    deliver_gap(deliver, &gap);
    post_to_busy_shards(begin_busy());
    return gap.to;
}

static void check_has_once(const char *text, uint64_t id)
{
    char room[SL_ID_TEXT_SIZE];
    const char *printed = sl_id_print(id, room), *first = strstr(text, printed);

    if (!first || strstr(first + 1, printed))
        fail_msg("%s is not there once: %s", printed, text);
}

/* What its log has of the gap comes before what the ring has of the others. Wherever the connection
 * breaks, the cursor describes what the client has. */
static void test_who_is_cut_within_a_gap_goes_on_with_the_others(void **state)
{
    enum { BEFORE = TAKES - 20 };
    size_t cuts_behind_missed = 0;

    (void)state;
    for (size_t room = 0; room < 5000; room += 200) {
        struct buffer all = BUFFER_INIT;
        uint64_t missed = begin_with_gap_over_the_ring();
        struct sl_cursor cursor;

        a.room = room;
        resume(&a, NULL, busy_ids[BEFORE]);
        settle();
        cursor = deliver_client_cursor(deliver, &a.client);
        cuts_behind_missed += !sl_cursor_is_plain(&cursor);
        fake_client_make_room(&a, a.held.size); /* the rest of an incomplete event */
        subscribe(&b, NULL);
        assert_int_equal(deliver_resume(deliver, &b.client, &cursor), 0);
        settle();
        buffer_append_format(&all, "%s", received(&a));
        buffer_append_format(&all, all.size ? " %s" : "%s", received(&b));
        for (size_t i = BEFORE + 1; i < TAKES; i++)
            check_has_once(buffer_str(&all), busy_ids[i]);
        check_has_once(buffer_str(&all), missed);
        buffer_done(&all);
    }
    assert_true(cuts_behind_missed > 0);
}

/* --- until an id ------------------------------------------------------------------------------ */

/* Resumes from `since` and wants nothing after `until`, which is long past. */
static void resume_until(struct fake_client *client, uint64_t since, uint64_t until)
{
    client->client.until = until;
    resume(client, NULL, since);
    settle();
}

static void assert_complete_with(struct fake_client *client, const uint64_t *ids, size_t count)
{
    struct buffer text = BUFFER_INIT;

    for (size_t i = 0; i < count; i++)
        buffer_append_format(&text, i ? " %" PRIu64 : "%" PRIu64, ids[i]);
    check_all_but_warning(client, buffer_str(&text));
    buffer_done(&text);
    assert_int_equal(client->evictions, 1);
    assert_int_equal(client->disconnect_reason, DISCONNECT_COMPLETE);
}

/* The log of that shard continues after `until` while the ring still has something before it. */
static void test_who_wants_no_more_than_lies_in_a_gap_gets_all_of_that(void **state)
{
    uint64_t low;

    (void)state;
    begin_with_gap_over_the_ring();
    low = logs[QUIET_SHARD].entries[0].id;
    resume_until(&a, low, busy_ids[TAKES - 3]);
    assert_complete_with(&a, busy_ids, TAKES - 2);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy_ids[TAKES - 3]);
    assert_true(reads > 0); /* not everything is in the ring */
    resume_until(&b, low, busy_ids[10]);
    assert_complete_with(&b, busy_ids, 11);
}

/* In the ring it is after events beyond `until`. */
static void test_who_wants_no_more_than_lies_before_a_late_event_gets_that(void **state)
{
    static const size_t rings[] = {1 << 20, ROOM, 0};
    uint64_t late, ids[2], low;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin_with_quiet_shards(rings[i]);
        low = leave_behind(&late, ids);
        post_to_busy_shards(begin_busy());
        come_late();
        deliver_shard_whole(deliver, QUIET_SHARD);
        resume_until(&a, low, ids[1]);
        assert_complete_with(&a,
                             rings[i] == 0 ? (uint64_t[]){ids[0], late, ids[1]}
                                           : (uint64_t[]){ids[0], ids[1], late},
                             3);
        resume_until(&b, low, late - 1); /* before it */
        assert_complete_with(&b, ids, 1);
    }
}

static uint64_t last_load;

static void on_load(void *owner, const char *user, uint64_t load)
{
    (void)owner;
    (void)user;
    last_load = load;
}

/* It was logged before what has passed since, when a shard was behind. */
static void test_what_waits_for_a_home_feed_is_not_taken_as_sent(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};
    struct sl_cursor cursor;
    uint64_t first;

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    deliver_begin_shard(deliver, 0, 0);
    deliver_begin_shard(deliver, 1, 0);
    home_on_load(deliver_home(deliver), on_load, NULL);
    publish_in(1, "ada", "late");
    deliver_shard_behind(deliver, 1, 0);
    post("before");
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    first = post("x");
    post("x");
    a.room = 0;
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    deliver_turn_end(deliver);
    cursor = deliver_client_cursor(deliver, &a.client);
    assert_int_equal(sl_cursor_of_shard(&cursor, 0), id_at(0));
    make_room(&a, 40); /* a part of the first one */
    cursor = deliver_client_cursor(deliver, &a.client);
    assert_true(sl_cursor_of_shard(&cursor, 0) <= first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CATCH_UP_TEST(test_who_comes_to_shards_that_began_at_different_times_misses_nothing),
        CATCH_UP_TEST(test_quiet_shards_do_not_hold_back_the_cursor_of_who_falls_behind),
        CATCH_UP_TEST(test_they_miss_nothing_when_only_the_log_has_the_rest),
        CATCH_UP_TEST(test_the_cursor_of_who_came_with_one_follows_what_was_sent),
        CATCH_UP_TEST(test_a_late_event_is_told_with_a_cursor_of_its_own),
        CATCH_UP_TEST(test_nobody_is_given_a_cursor_beyond_a_gap_before_it_is_told),
        CATCH_UP_TEST(test_who_is_cut_around_a_late_event_misses_nothing),
        CATCH_UP_TEST(test_a_plain_cursor_is_told_what_came_late),
        CATCH_UP_TEST(test_who_has_more_of_a_shard_that_is_behind_is_not_sent_it_again),
        CATCH_UP_TEST(test_an_event_without_a_log_says_the_cursor_of_each_client),
        CATCH_UP_TEST(test_who_is_ahead_is_told_when_a_shard_falls_behind),
        CATCH_UP_TEST(test_what_a_clock_that_steps_back_mints_is_new_to_all),
        CATCH_UP_TEST(test_who_is_live_is_told_of_a_mark_that_its_cursor_claims),
        CATCH_UP_TEST(test_who_was_given_a_longer_cursor_is_told_what_the_plain_one_claimed),
        CATCH_UP_TEST(test_who_is_slow_gets_a_late_event_from_the_log),
        CATCH_UP_TEST(test_who_is_cut_within_a_gap_goes_on_with_the_others),
        CATCH_UP_TEST(test_who_wants_no_more_than_lies_in_a_gap_gets_all_of_that),
        CATCH_UP_TEST(test_who_wants_no_more_than_lies_before_a_late_event_gets_that),
        CATCH_UP_TEST(test_what_waits_for_a_home_feed_is_not_taken_as_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
