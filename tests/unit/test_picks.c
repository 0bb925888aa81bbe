/* Which posts of a bucket are sent, compared with a simple way of choosing them; and whether the
 * numbers of sent and skipped posts add up. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stable_hash.h"
#include "gateway/counts/counter.h"
#include "tests/support/cmocka_all.h"

static int close_bucket(struct counter *counter, uint64_t id)
{
    size_t work = SIZE_MAX;

    return counter_close(counter, id, &work);
}

enum { POSTS_MAX = 200, USERS = 7 };

static const uint64_t day_ms = UINT64_C(1795219200000); /* 2026-11-21 */

static struct event *new_event(enum event_kind kind, uint64_t id, unsigned user)
{
    static char users[USERS + 1][8];
    struct event *event = event_new_control(EVENT_WARNING, SL_SLICE("{\"text\":\"as it was\"}"));

    assert_non_null(event);
    snprintf(users[user], sizeof(users[user]), "%u", user);
    event->kind = kind;
    event->id = id;
    event->view.sample_id = id;
    event->view.user = sl_slice_str(users[user]);
    return event;
}

static uint64_t at(uint64_t ms)
{
    return sl_id_first_at(day_ms + ms);
}

static struct count_question question_of(enum pick pick, uint32_t posts)
{
    return (struct count_question){.bucket_ms = 1000, .pick = {.posts = posts, .pick = pick}};
}

/* --- a simple implementation --- */

struct post {
    uint64_t id;
    unsigned user;
    bool is_sent, is_deleted;
};

static bool is_better(enum pick pick, const struct post *a, const struct post *b)
{
    if (pick == PICK_EVEN)
        return stable_hash(a->id) < stable_hash(b->id);
    return pick == PICK_FIRST ? a->id < b->id : a->id > b->id;
}

static bool has_newer_of_user(const struct post *posts, size_t count, const struct post *post)
{
    for (size_t i = 0; i < count; i++) {
        if (posts[i].user == post->user && posts[i].id > post->id)
            return true;
    }
    return false;
}

/* Equivalent to counting for each post how many rank before it. */
static size_t choose(enum pick pick, uint32_t most, struct post *posts, size_t count)
{
    size_t sent = 0;

    for (size_t i = 0; i < count; i++) {
        size_t better = 0;

        posts[i].is_sent = false;
        if (pick == PICK_BY_USER && has_newer_of_user(posts, count, &posts[i]))
            continue;
        for (size_t j = 0; j < count; j++) {
            if (pick == PICK_BY_USER && has_newer_of_user(posts, count, &posts[j]))
                continue;
            better += is_better(pick, &posts[j], &posts[i]);
        }
        posts[i].is_sent = better < most;
        sent += posts[i].is_sent;
    }
    return sent;
}

/* --- the same with a counter --- */

struct heard {
    uint64_t ids[POSTS_MAX * 2], skipped, skipped_id;
    size_t count;
};

static void hear(struct counter *counter, struct heard *heard)
{
    struct sl_cursor before;
    struct told told;
    int r;

    while ((r = counter_next(counter, &told, &before)) > 0) {
        const struct sl_cursor after = counter_cursor(counter);

        assert_in_range(told.id, before.id, after.id);
        if (told.event->kind == EVENT_SKIPPED) {
            assert_int_equal(told.event->id, told.id);
            heard->skipped = told.skipped;
            heard->skipped_id = told.id;
        } else {
            assert_true(heard->count == 0 || heard->ids[heard->count - 1] < told.id);
            heard->ids[heard->count++] = told.id;
        }
        told_done(&told);
    }
    assert_int_equal(r, 0);
}

static void give(struct counter *counter, enum event_kind kind, uint64_t id, unsigned user,
                 struct heard *heard)
{
    struct event *event = new_event(kind, id, user);

    assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
    event_unref(event);
    hear(counter, heard);
}

static void assert_picks(enum pick pick, uint32_t most, size_t count, bool is_shuffled)
{
    const struct count_question question = question_of(pick, most);
    const uint64_t had = at(0) + (uint64_t)rand() % (at(1000) - at(0));
    struct counter *whole = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, 0);
    struct counter *resumed = counter_new(&question, &(struct sl_cursor){.id = had}, 0);
    struct heard all = {0}, rest = {0};
    struct post posts[POSTS_MAX];
    size_t sent, seen = 0, behind = 0;

    for (size_t i = 0; i < count; i++)
        posts[i] = (struct post){
            .id = at(0) + i * (at(1000) - at(0)) / count + (uint64_t)rand() % 1000,
            .user = (unsigned)rand() % USERS,
        };
    sent = choose(pick, most, posts, count);
    for (size_t i = 0; i < count; i++) {
        size_t n = is_shuffled ? i * 101 % count : i; /* each once: 101 is prime */

        give(whole, EVENT_POST, posts[n].id, posts[n].user, &all);
        give(resumed, EVENT_POST, posts[n].id, posts[n].user, &rest);
    }
    assert_int_equal(close_bucket(whole, at(1000)), 0);
    assert_int_equal(close_bucket(resumed, at(1000)), 0);
    hear(whole, &all);
    hear(resumed, &rest);
    assert_int_equal(all.count, sent);
    assert_int_equal(all.skipped, count - sent);
    assert_int_equal(rest.skipped, all.skipped);
    for (size_t i = 0; i < count; i++) {
        if (!posts[i].is_sent)
            continue;
        assert_int_equal(all.ids[seen++], posts[i].id);
        if (posts[i].id > had)
            assert_int_equal(rest.ids[behind++], posts[i].id);
    }
    assert_int_equal(rest.count, behind);
    if (all.skipped)
        assert_int_equal(all.skipped_id, at(1000) - 1);
    assert_int_equal(counter_cursor(whole).id, at(1000) - 1);
    counter_free(whole);
    counter_free(resumed);
}

static void test_picks_are_those_of_a_plain_choice(void **state)
{
    (void)state;
    srand(1);
    for (enum pick pick = PICK_EVEN; pick <= PICK_BY_USER; pick++) {
        for (uint32_t most = 1; most < 40; most += 3) {
            for (size_t count = 1; count < POSTS_MAX; count += 23) {
                assert_picks(pick, most, count, false);
                if (pick != PICK_FIRST)
                    assert_picks(pick, most, count, true);
            }
        }
    }
}

static void test_what_is_no_post_stays_in_its_place(void **state)
{
    const struct count_question question = question_of(PICK_NEWEST, 1);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, 0);
    struct heard heard = {0};

    (void)state;
    give(counter, EVENT_POST, at(1), 1, &heard);
    give(counter, EVENT_DELETE, at(2), 1, &heard);
    give(counter, EVENT_POST, at(3), 1, &heard);
    give(counter, EVENT_DELETE, at(4), 1, &heard);
    assert_int_equal(heard.count, 0);
    assert_int_equal(counter_cursor(counter).id, at(0) - 1);
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    hear(counter, &heard);
    assert_int_equal(heard.count, 3);
    assert_int_equal(heard.ids[0], at(2));
    assert_int_equal(heard.ids[1], at(3));
    assert_int_equal(heard.ids[2], at(4));
    assert_int_equal(heard.skipped, 1);
    counter_free(counter);
}

static void test_what_comes_late_is_told_by_itself(void **state)
{
    const struct count_question question = question_of(PICK_EVEN, 1);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, 0);
    static const enum event_kind kinds[] = {EVENT_POST, EVENT_DELETE, EVENT_POST, EVENT_DELETE};
    const uint64_t ids[] = {at(5), at(6), 0, 0};
    char cursor[SL_ID_TEXT_SIZE + 16];
    const char *says[] = {"\"events\":1,\"reason\":\"late\"}",
                          "\"late\":true,\"cursor\":", "\"events\":1,\"reason\":\"unlogged\"}",
                          cursor};

    (void)state;
    assert_int_equal(close_bucket(counter, at(7000)), 0); /* nothing is sent for empty ones */
    assert_int_equal(counter_cursor(counter).id, at(7000) - 1);
    snprintf(cursor, sizeof(cursor), ",\"cursor\":\"%" PRIu64 "\"}", at(7000) - 1);
    for (size_t i = 0; i < 4; i++) {
        struct event *event = new_event(kinds[i], ids[i], 1);
        struct sl_cursor before;
        struct told told;

        assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
        assert_int_equal(counter_next(counter, &told, &before), 1);
        assert_non_null(
            memmem(told.event->json.data, told.event->json.size, says[i], strlen(says[i])));
        assert_int_equal(told.event->id, 0);
        assert_int_equal(counter_cursor(counter).id, at(7000) - 1);
        told_done(&told);
        event_unref(event);
    }
    counter_free(counter);
}

/* Otherwise it would be sent again what it has of the open bucket. */
static void test_what_has_no_bucket_takes_nobody_back(void **state)
{
    const struct count_question question = question_of(PICK_FIRST, 2);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(500)}, 0);
    static const enum event_kind kinds[] = {EVENT_POST, EVENT_DELETE};
    char says[SL_ID_TEXT_SIZE + 4];

    (void)state;
    snprintf(says, sizeof(says), ":\"%" PRIu64 "\"", at(500));
    for (size_t i = 0; i < 2; i++) {
        struct event *event = new_event(kinds[i], 0, 1);
        struct sl_cursor before;
        struct told told;

        assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
        assert_int_equal(counter_next(counter, &told, &before), 1);
        assert_non_null(memmem(told.event->json.data, told.event->json.size, says, strlen(says)));
        assert_int_equal(counter_cursor(counter).id, at(500));
        told_done(&told);
        event_unref(event);
    }
    counter_free(counter);
}

/* The counter of the first of them has sent less of the open bucket; they have the same. */
static void test_what_has_no_bucket_takes_nobody_back_who_joins(void **state)
{
    const struct count_question question = question_of(PICK_FIRST, 2);
    struct counter *first = counter_new(&question, &(struct sl_cursor){.id = at(500)}, 0);
    struct counter *second = counter_new(&question, &(struct sl_cursor){.id = at(500)}, 0);
    struct event *post = new_event(EVENT_POST, at(700), 1);
    struct sl_cursor before;
    struct told told;

    (void)state;
    assert_int_equal(counter_add(second, post, NULL, SL_SLICE_NONE), 0);
    assert_int_equal(counter_next(second, &told, &before), 1);
    assert_int_equal(counter_cursor(second).id, at(700));
    counter_join(first, second);
    assert_int_equal(counter_cursor(first).id, at(700));
    told_done(&told);
    event_unref(post);
    counter_free(first);
    counter_free(second);
}

/* It came with a cursor of a shard that was behind, and is now sent what lies after that. */
static void test_what_comes_late_is_in_a_compound_cursor(void **state)
{
    const struct count_question question = question_of(PICK_FIRST, 2);
    struct sl_cursor had = {.id = at(2500)}, before;
    struct counter *counter;
    struct event *event = new_event(EVENT_DELETE, at(700), 1);
    struct told told;
    char says[SL_CURSOR_TEXT_SIZE];

    (void)state;
    sl_cursor_lower(&had, event->shard, at(500));
    counter = counter_new(&question, &had, 0);
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    assert_int_equal(close_bucket(counter, at(2000)), 0);
    event->is_late = true;
    assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
    assert_int_equal(counter_next(counter, &told, &before), 1);
    snprintf(says, sizeof(says), "\"cursor\":\"%" PRIu64 "~%" PRIu64 ":", at(2500), at(700));
    assert_non_null(memmem(told.event->json.data, told.event->json.size, says, strlen(says)));
    told_done(&told);
    event_unref(event);
    counter_free(counter);
}

static void add_late(struct counter *counter, enum event_kind kind, uint64_t id, const char *tail)
{
    struct event *event = new_event(kind, id, 1);

    event->is_late = true;
    assert_int_equal(counter_add(counter, event, NULL, sl_slice_str(tail)), 0);
    event_unref(event);
}

/* The tail has the names of the rules that it matches. */
static void test_what_comes_late_keeps_its_tail(void **state)
{
    const struct count_question question = question_of(PICK_EVEN, 1);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, 0);
    struct sl_cursor before;
    struct told told;

    (void)state;
    assert_int_equal(close_bucket(counter, at(7000)), 0);
    add_late(counter, EVENT_DELETE, at(6), ",\"rules\":1");
    assert_int_equal(counter_next(counter, &told, &before), 1);
    assert_string_equal(told.tail, ",\"rules\":1");
    assert_int_equal(told.event->late_to, at(6));
    told_done(&told);
    counter_free(counter);
}

/* Its id is not a cursor: the client has what comes after it. */
static void test_what_comes_late_for_the_first_says_so(void **state)
{
    const struct count_question question = question_of(PICK_FIRST, 2);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, 0);
    struct heard heard = {0};
    char cursor[64];
    struct sl_cursor before;
    struct told told;

    (void)state;
    give(counter, EVENT_POST, at(500), 1, &heard);
    add_late(counter, EVENT_POST, at(100), "");
    assert_int_equal(counter_next(counter, &told, &before), 1);
    assert_int_equal(told.id, 0);
    assert_int_equal(told.event->id, 0);
    snprintf(cursor, sizeof(cursor), "\"late\":true,\"cursor\":\"%llu\"",
             (unsigned long long)at(500));
    assert_non_null(memmem(told.event->json.data, told.event->json.size, cursor, strlen(cursor)));
    assert_int_equal(counter_cursor(counter).id, at(500));
    told_done(&told);
    give(counter, EVENT_POST, at(600), 1, &heard);
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    hear(counter, &heard);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.skipped, 1);
    counter_free(counter);
}

/* Events that had not passed when the client was told about everything up to there. */
static void test_who_goes_on_by_himself_is_told_what_comes_late(void **state)
{
    const struct count_question question = question_of(PICK_NEWEST, 1);
    const struct sl_cursor had = {.id = at(1000) - 1};
    const uint64_t passed[SL_SHARDS_MAX] = {at(400)};
    struct counter *lane = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, 0);
    struct counter *counter = counter_new_again(lane, &had, passed);
    struct sl_cursor before;
    struct told told;

    (void)state;
    add_late(counter, EVENT_POST, at(300), ""); /* as the other clients of the lane were told */
    assert_int_equal(counter_next(counter, &told, &before), 0);
    add_late(counter, EVENT_POST, at(450), "");
    assert_int_equal(counter_next(counter, &told, &before), 1);
    assert_int_equal(told.skipped, 1);
    assert_int_equal(counter_cursor(counter).id, had.id);
    told_done(&told);
    counter_free(counter);
    counter_free(lane);
}

/* The client's cursor is ahead of what has passed here. */
static void test_who_is_ahead_is_not_told_that_what_he_has_is_late(void **state)
{
    (void)state;
    for (enum pick pick = PICK_EVEN; pick <= PICK_BY_CELL; pick++) {
        const struct count_question question = question_of(pick, 1);
        struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(1500)}, 0);
        struct heard heard = {0};

        give(counter, EVENT_POST, at(999), 1, &heard);
        give(counter, EVENT_DELETE, at(999) + 1, 1, &heard);
        give(counter, EVENT_POST, at(1400), 1, &heard);
        assert_int_equal(heard.count, 0);
        assert_int_equal(heard.skipped, 0);
        assert_int_equal(counter_cursor(counter).id, at(1500));
        counter_free(counter);
    }
}

/* He comes from another stream, whose long cursor covers more of some shards than of others. */
static void test_whose_cursor_is_long_is_told_of_a_window_where_he_stands(void **state)
{
    const struct count_question question = question_of(PICK_NEWEST, 1);
    struct sl_cursor had = {.id = at(2500)};
    struct counter *counter;
    char text[SL_CURSOR_TEXT_SIZE + 16];
    struct sl_cursor before;
    struct told told;

    (void)state;
    sl_cursor_lower(&had, 1, at(500));
    counter = counter_new(&question, &had, 0);
    for (unsigned i = 1; i < 5; i++) {
        struct event *event = new_event(EVENT_POST, at(200 * i), 1);

        event->shard = i % 2;
        assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
        event_unref(event);
    }
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    assert_int_equal(counter_next(counter, &told, &before), 1);
    assert_int_equal(told.skipped, 3);
    had.groups[0].low = at(1000) - 1;
    snprintf(text, sizeof(text), "\"id\":\"%s\"",
             sl_cursor_print(&had, (char[SL_CURSOR_TEXT_SIZE]){0}));
    assert_non_null(memmem(told.event->json.data, told.event->json.size, text, strlen(text)));
    told_done(&told);
    assert_int_equal(counter_next(counter, &told, &before), 0);
    before = counter_cursor(counter);
    assert_string_equal(sl_cursor_print(&before, (char[SL_CURSOR_TEXT_SIZE]){0}),
                        sl_cursor_print(&had, (char[SL_CURSOR_TEXT_SIZE]){0}));
    counter_free(counter);
}

/* What he lacks of one shard is behind what he has of others. */
static void test_whose_cursor_is_long_is_sent_what_he_lacks_as_late(void **state)
{
    const struct count_question question = question_of(PICK_NEWEST, 4);
    struct sl_cursor had = {.id = at(2500)};
    struct counter *counter;
    struct told told;

    (void)state;
    sl_cursor_lower(&had, 1, at(500));
    counter = counter_new(&question, &had, 0);
    for (unsigned i = 1; i < 5; i++) {
        struct event *event = new_event(EVENT_POST, at(200 * i), 1);

        event->shard = i % 2;
        assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
        event_unref(event);
    }
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    assert_int_equal(counter_next(counter, &told, &had), 1);
    assert_int_equal(told.event->late_to, at(600));
    told_done(&told);
    assert_int_equal(counter_next(counter, &told, &had), 0);
    had = counter_cursor(counter);
    assert_int_equal(had.id, at(2500));
    assert_int_equal(sl_cursor_of_shard(&had, 1), at(600));
    counter_free(counter);
}

/* Within a window that he has a part of, the others are sent something else. */
static void test_who_has_a_part_of_a_window_is_not_in_step(void **state)
{
    const struct count_question question = question_of(PICK_NEWEST, 1);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(500)}, 0);

    (void)state;
    assert_false(counter_is_in_step(counter, at(0) - 1));
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    assert_true(counter_is_in_step(counter, at(1000) - 1));
    counter_free(counter);
}

static void test_a_bucket_ends_with_until(void **state)
{
    const struct count_question question = question_of(PICK_NEWEST, 1);
    struct counter *counter = counter_new(&question, &(struct sl_cursor){.id = at(0) - 1}, at(500));
    struct heard heard = {0};

    (void)state;
    give(counter, EVENT_POST, at(499), 1, &heard);
    give(counter, EVENT_POST, at(500), 1, &heard);
    assert_int_equal(counter_open(counter), at(500));
    assert_int_equal(close_bucket(counter, at(500) + 1), 0);
    hear(counter, &heard);
    assert_int_equal(heard.ids[0], at(500));
    assert_int_equal(heard.skipped_id, at(500));
    assert_int_equal(counter_cursor(counter).id, at(500));
    counter_free(counter);
}

static void delete_post(struct counter *counter, uint64_t id, struct post *post,
                        struct heard *heard)
{
    struct event *event = new_event(EVENT_DELETE, id, 1);

    event->view.sample_id = post->id;
    post->is_deleted = true;
    assert_int_equal(counter_add(counter, event, NULL, SL_SLICE_NONE), 0);
    event_unref(event);
    hear(counter, heard);
}

/* The posts of a past bucket: deleted ones are picked as if they were there, and then left out. */
static void assert_nobody_takes_the_place_of_what_was_deleted(enum pick pick)
{
    struct count_question question = question_of(pick, 5);
    struct counter *counter;
    struct post posts[40];
    struct heard heard = {0};
    size_t sent = 0;

    question.pick.behind = at(0);
    counter = counter_new(&question, &(struct sl_cursor){.id = at(0)}, 0);
    for (size_t i = 0; i < 40; i++) {
        posts[i] = (struct post){.id = at(10 + 20 * i), .user = 1 + (unsigned)rand() % USERS};
        give(counter, EVENT_POST, posts[i].id, posts[i].user, &heard);
        if (i % 4 == 3)
            delete_post(counter, at(15 + 20 * i), &posts[i - (unsigned)rand() % 4], &heard);
    }
    choose(pick, 5, posts, 40);
    assert_int_equal(close_bucket(counter, at(1000)), 0);
    hear(counter, &heard);
    for (size_t i = 0; i < 40; i++) {
        if (posts[i].is_sent && !posts[i].is_deleted)
            assert_int_equal(heard.ids[sent++], posts[i].id);
    }
    assert_int_equal(heard.count, sent);
    assert_int_equal(heard.skipped, 40 - sent);
    counter_free(counter);
}

static void test_nobody_takes_the_place_of_what_was_deleted(void **state)
{
    (void)state;
    srand(1);
    for (int round = 0; round < 100; round++) {
        for (enum pick pick = PICK_EVEN; pick <= PICK_BY_USER; pick++)
            assert_nobody_takes_the_place_of_what_was_deleted(pick);
    }
}

static void test_what_is_rewound_is_picked_again(void **state)
{
    const struct sl_cursor before = {.id = at(0) - 1};

    (void)state;
    for (enum pick pick = PICK_EVEN; pick <= PICK_FIRST; pick++) {
        const struct count_question question = question_of(pick, 1);
        struct counter *counter = counter_new(&question, &before, 0);

        counter_gap(counter, 0, at(0) - 9, at(0) - 1, GAP_REWOUND); /* was told already */
        assert_int_equal(counter_retell_from(counter), 0);
        counter_gap(counter, 0, at(0) - 9, at(7), GAP_REWOUND);
        assert_int_equal(counter_retell_from(counter), pick == PICK_FIRST ? 0 : at(0));
        counter_free(counter);
        counter = counter_new(&question, &before, 0);
        assert_int_equal(close_bucket(counter, at(1000)), 0);
        counter_gap(counter, 0, at(7), at(1007), GAP_REWOUND); /* partly */
        assert_int_equal(counter_retell_from(counter), pick == PICK_FIRST ? 0 : at(1000));
        counter_free(counter);
    }
}

static void test_without_memory_nothing_is_wrong(void **state)
{
    const struct count_question question = question_of(PICK_EVEN, 9);
    const struct sl_cursor had = {.id = at(0) - 1};
    struct event *events[12];
    bool is_done = false;

    (void)state;
    for (size_t i = 0; i < 12; i++)
        events[i] = new_event(i % 4 ? EVENT_POST : EVENT_DELETE, at(i), 1);
    for (unsigned fail_at = 0; !is_done; fail_at++) {
        struct counter *counter = counter_new(&question, &had, 0);
        struct sl_cursor before;
        struct told told = {0};

        mem_fail_after(fail_at);
        is_done = true;
        for (size_t i = 0; is_done && i < 12; i++)
            is_done = counter_add(counter, events[i], NULL, SL_SLICE("tail")) == 0;
        is_done = is_done && close_bucket(counter, at(1000)) == 0;
        while (is_done && counter_next(counter, &told, &before) > 0)
            told_done(&told);
        mem_fail_never();
        counter_free(counter);
    }
    for (size_t i = 0; i < 12; i++)
        event_unref(events[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_picks_are_those_of_a_plain_choice),
        cmocka_unit_test(test_what_is_no_post_stays_in_its_place),
        cmocka_unit_test(test_what_comes_late_keeps_its_tail),
        cmocka_unit_test(test_what_comes_late_for_the_first_says_so),
        cmocka_unit_test(test_who_goes_on_by_himself_is_told_what_comes_late),
        cmocka_unit_test(test_what_comes_late_is_told_by_itself),
        cmocka_unit_test(test_what_has_no_bucket_takes_nobody_back),
        cmocka_unit_test(test_what_has_no_bucket_takes_nobody_back_who_joins),
        cmocka_unit_test(test_what_comes_late_is_in_a_compound_cursor),
        cmocka_unit_test(test_who_is_ahead_is_not_told_that_what_he_has_is_late),
        cmocka_unit_test(test_whose_cursor_is_long_is_told_of_a_window_where_he_stands),
        cmocka_unit_test(test_whose_cursor_is_long_is_sent_what_he_lacks_as_late),
        cmocka_unit_test(test_who_has_a_part_of_a_window_is_not_in_step),
        cmocka_unit_test(test_a_bucket_ends_with_until),
        cmocka_unit_test(test_nobody_takes_the_place_of_what_was_deleted),
        cmocka_unit_test(test_what_is_rewound_is_picked_again),
        cmocka_unit_test(test_without_memory_nothing_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
