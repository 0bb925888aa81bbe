#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/home.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"

enum { MAX_WAITING = 8000, MAX_LOADS = 8, POSTS = 1u << SL_EVENT_POST | 1u << SL_EVENT_DELETE };

struct load {
    char user[16];
    uint64_t number;
};

struct watcher {
    struct home_watch watch;
    char seen[200]; /* ids, each followed by a space; "loaded ", "failed " and "full " */
};

static struct home *home;
static struct load loads[MAX_LOADS]; /* requested, in order */
static size_t load_count;
static enum { ANSWER_LATER, ANSWER_AT_ONCE, FAIL_AT_ONCE } answer;
static struct watcher a, b;

static void on_load(void *owner, const char *user, uint64_t number)
{
    struct sl_slice bob = SL_SLICE("bob");

    assert_ptr_equal(owner, &loads);
    assert_true(load_count < MAX_LOADS);
    snprintf(loads[load_count].user, sizeof(loads[0].user), "%s", user);
    loads[load_count++].number = number;
    if (answer == ANSWER_AT_ONCE)
        home_loaded(home, user, number, &(struct home_sets){.followed = {&bob, 1}});
    else if (answer == FAIL_AT_ONCE)
        home_load_failed(home, user, number);
}

static void note(struct watcher *watcher, const char *what)
{
    assert_true(strlen(watcher->seen) + strlen(what) + 1 < sizeof(watcher->seen));
    strcat(strcat(watcher->seen, what), " ");
}

static void on_match(void *watcher, struct event *event)
{
    char id[24];

    snprintf(id, sizeof(id), "%" PRIu64, event->id);
    note(watcher, id);
}

static void on_loading(void *watcher)
{
    note(watcher, "loading");
}

static void on_loaded(void *watcher)
{
    note(watcher, "loaded");
}

static void on_failed(void *watcher, int why)
{
    note(watcher, why == -EDQUOT ? "full" : "failed");
}

static int begin(void **state)
{
    (void)state;
    load_count = 0;
    answer = ANSWER_LATER;
    home = home_new(MAX_WAITING, 1 << 30);
    home_on_load(home, on_load, &loads);
    a = b = (struct watcher){0};
    return home ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    home_unwatch(home, &a.watch);
    home_unwatch(home, &b.watch);
    home_free(home);
    return 0;
}

static int try_watch(struct watcher *watcher, const char *user, unsigned types)
{
    watcher->watch = (struct home_watch){.types = types,
                                         .on_match = on_match,
                                         .on_loading = on_loading,
                                         .on_loaded = on_loaded,
                                         .on_failed = on_failed,
                                         .watcher = watcher};
    return home_watch(home, sl_slice_str(user), &watcher->watch);
}

static void watch(struct watcher *watcher, const char *user)
{
    assert_int_equal(try_watch(watcher, user, POSTS), 0);
}

/* Answers the `place`-th requested load with up to three followed users. */
static void loaded(size_t place, const char *one, const char *two, const char *three)
{
    struct sl_slice followed[] = {sl_slice_str(one), sl_slice_str(two), sl_slice_str(three)};
    size_t count = one ? two ? three ? 3 : 2 : 1 : 0;

    assert_true(place < load_count);
    home_loaded(home, loads[place].user, loads[place].number,
                &(struct home_sets){.followed = {followed, count}});
}

/* The same with one user in each set. */
static void loaded_sets(size_t place, const char *followed, const char *hidden_by,
                        const char *muted)
{
    const struct sl_slice users[] = {sl_slice_str(followed), sl_slice_str(hidden_by),
                                     sl_slice_str(muted)};

    assert_true(place < load_count);
    home_loaded(home, loads[place].user, loads[place].number,
                &(struct home_sets){{&users[0], followed != NULL},
                                    {&users[1], hidden_by != NULL},
                                    {&users[2], muted != NULL}});
}

static void pass_take(struct event *event)
{
    home_event(home, event);
    event_unref(event);
}

static void post(uint64_t id, const char *user)
{
    pass_take(event_post(id, user, "hello"));
}

static void graph(uint64_t id, const char *kind, const char *user, const char *target)
{
    pass_take(event_graph(id, kind, user, target));
}

static void expect_seen(struct watcher *watcher, const char *seen)
{
    assert_string_equal(watcher->seen, seen);
    watcher->seen[0] = '\0';
}

static void test_a_feed_holds_own_posts_and_those_of_everyone_followed(void **state)
{
    (void)state;
    watch(&a, "ada");
    assert_false(home_is_loaded(&a.watch));
    loaded(0, "bob", "cyd", NULL);
    assert_true(home_is_loaded(&a.watch));
    expect_seen(&a, "loaded ");
    post(1, "bob");
    post(2, "eve");
    post(3, "ada");
    post(4, "cyd");
    post(5, "bo");
    post(6, "bobb");
    expect_seen(&a, "1 3 4 ");
}

static void test_what_happens_while_the_set_is_read_is_judged_in_order(void **state)
{
    (void)state;
    watch(&a, "ada");
    post(1, "bob"); /* was followed before */
    graph(2, "follow", "ada", "cyd");
    post(3, "cyd");
    graph(4, "unfollow", "ada", "bob");
    post(5, "bob");
    post(6, "ada");
    graph(7, "unfollow", "ada", "cyd");
    post(8, "cyd");
    expect_seen(&a, "");
    loaded(0, "bob", NULL, NULL);
    expect_seen(&a, "1 3 6 loaded ");
    post(9, "bob");
    post(10, "cyd");
    post(11, "ada");
    expect_seen(&a, "11 ");
}

/* The set was read after these events, so it includes them already. */
static void test_events_that_the_set_contains_do_no_harm(void **state)
{
    (void)state;
    watch(&a, "ada");
    graph(1, "follow", "ada", "bob");
    graph(2, "follow", "ada", "cyd");
    graph(3, "unfollow", "ada", "cyd");
    loaded(0, "bob", NULL, NULL);
    post(4, "bob");
    post(5, "cyd");
    expect_seen(&a, "loaded 4 ");
}

static void test_follow_and_unfollow_change_a_loaded_feed(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "bob", "bob", NULL);
    graph(1, "follow", "ada", "cyd");
    graph(2, "follow", "ada", "cyd");
    graph(3, "unfollow", "ada", "bob");
    graph(4, "follow", "eve", "bob");
    graph(5, "follow", "cyd", "ada");
    graph(6, "unfollow", "ada", "nobody");
    post(7, "bob");
    post(8, "cyd");
    post(9, "eve");
    graph(10, "unfollow", "ada", "cyd");
    post(11, "cyd");
    expect_seen(&a, "loaded 8 ");
}

static void test_own_posts_stay_whoever_is_unfollowed(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "ada", NULL, NULL);
    graph(1, "follow", "ada", "ada");
    graph(2, "unfollow", "ada", "ada");
    post(3, "ada");
    expect_seen(&a, "loaded 3 ");
}

static void test_watchers_get_the_types_they_ask_for(void **state)
{
    (void)state;
    assert_int_equal(try_watch(&a, "ada", 1u << SL_EVENT_FOLLOW | 1u << SL_EVENT_UNFOLLOW), 0);
    assert_int_equal(try_watch(&b, "ada", 1u << SL_EVENT_DELETE), 0);
    assert_int_equal(load_count, 1);
    graph(1, "follow", "ada", "bob"); /* as an actor, while it loads */
    loaded(0, NULL, NULL, NULL);
    graph(2, "follow", "cyd", "ada"); /* as a target */
    graph(3, "unfollow", "ada", "bob");
    graph(4, "follow", "cyd", "bob");
    graph(5, "follow", "ada", "ada");
    post(6, "ada");
    pass_take(event_of(7, "{\"id\":\"7\",\"type\":\"delete\",\"post\":{\"id\":\"6\","
                          "\"user\":{\"id\":\"ada\"},\"text\":\"x\"}}"));
    expect_seen(&a, "1 loaded 2 3 5 ");
    expect_seen(&b, "loaded 7 ");
}

static void test_what_changes_of_a_user_goes_where_the_posts_go(void **state)
{
    static const char *const users[] = {"ada", "bob", "cyd", "dan"};
    char json[128];

    (void)state;
    assert_int_equal(try_watch(&a, "ada", 1u << SL_EVENT_USER), 0);
    watch(&b, "ada");
    loaded(0, "bob", "cyd", NULL);
    graph(5, "mute", "ada", "cyd");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) {
            struct event *event;

            snprintf(json, sizeof(json),
                     "{\"id\":\"%d\",\"type\":\"user\",\"user\":{\"id\":\"%s\"}}",
                     10 * round + 10 + i, users[i]);
            event = event_of((uint64_t)(10 * round + 10 + i), json);
            assert_int_equal(home_wants(&a.watch, event), i == 0 || (i == 1 && round == 0));
            assert_false(home_wants(&b.watch, event));
            pass_take(event);
        }
        graph((uint64_t)(16 + 10 * round), "unfollow", "ada", "bob");
    }
    expect_seen(&a, "loaded 10 11 20 ");
    expect_seen(&b, "loaded ");
}

static void audience(uint64_t id, const char *kind, uint64_t post_id, const char *user,
                     const char *audience)
{
    char json[256];

    snprintf(json, sizeof(json),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"%s\",\"post\":{\"id\":\"%" PRIu64
             "\",\"user\":{\"id\":\"%s\"},\"text\":\"x\",\"audience\":\"%s\"}}",
             id, kind, post_id, user, audience);
    pass_take(event_of(id, json));
}

static void test_restricted_posts_reach_those_they_are_for(void **state)
{
    (void)state;
    watch(&a, "ada");
    watch(&b, "bob");
    audience(1, "post", 1, "bob", "followers");
    audience(2, "post", 2, "bob", "only:cyd");
    loaded(0, "bob", NULL, NULL);
    loaded(1, NULL, NULL, NULL);
    audience(3, "post", 3, "bob", "followers");
    audience(4, "post", 4, "bob", "only:cyd,ada");
    audience(5, "post", 5, "bob", "only:cyd,adam");
    audience(6, "post", 6, "bob", "except:ada");
    audience(7, "post", 7, "bob", "except:cyd");
    audience(8, "post", 8, "bob", "friends");
    audience(9, "post", 9, "bob", "public");
    audience(10, "post", 10, "ada", "followers");
    expect_seen(&a, "1 loaded 3 4 7 9 10 ");
    expect_seen(&b, "1 2 loaded 3 4 5 6 7 8 9 ");
}

static void test_deletions_of_restricted_posts_reach_whom_the_posts_did(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "bob", NULL, NULL);
    audience(11, "delete", 1, "bob", "only:cyd");
    audience(12, "delete", 2, "bob", "only:ada");
    audience(13, "delete", 3, "bob", "friends");
    audience(14, "delete", 4, "cyd", "only:ada");
    expect_seen(&a, "loaded 12 ");
}

static void test_who_hides_or_is_muted_is_not_shown(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded_sets(0, "bob", "bob", NULL);
    post(1, "bob");
    graph(2, "unhide", "bob", "ada");
    post(3, "bob");
    graph(4, "mute", "ada", "bob");
    post(5, "bob");
    graph(6, "hide", "bob", "ada");
    graph(7, "unmute", "ada", "bob");
    post(8, "bob");
    graph(9, "unhide", "bob", "ada");
    post(10, "bob");
    expect_seen(&a, "loaded 3 10 ");

    watch(&b, "bob");
    loaded_sets(1, "ada", NULL, "ada");
    post(11, "ada");
    graph(12, "unmute", "bob", "ada");
    post(13, "ada");
    expect_seen(&a, "11 13 ");
    expect_seen(&b, "loaded 13 ");
}

static void test_hiding_and_muting_concern_two_users_only(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "bob", "cyd", NULL);
    graph(1, "hide", "ada", "bob"); /* the other way round */
    graph(2, "mute", "bob", "ada");
    graph(3, "hide", "bob", "cyd");
    graph(4, "mute", "eve", "bob");
    graph(5, "mute", "ada", "ada");
    graph(6, "hide", "ada", "ada");
    post(7, "bob");
    post(8, "ada");
    expect_seen(&a, "loaded 7 8 ");
}

static void test_whom_one_follows_while_they_hide_stays_hidden(void **state)
{
    (void)state;
    watch(&a, "ada");
    graph(1, "hide", "bob", "ada");
    loaded_sets(0, NULL, "bob", "cyd");
    graph(2, "follow", "ada", "bob");
    graph(3, "follow", "ada", "cyd");
    post(4, "bob");
    post(5, "cyd");
    graph(6, "unfollow", "ada", "cyd");
    graph(7, "unmute", "ada", "cyd");
    post(8, "cyd");
    expect_seen(&a, "loaded ");
}

static void test_events_of_privacy_are_not_delivered(void **state)
{
    (void)state;
    assert_int_equal(try_watch(&a, "ada", ~0u), 0);
    graph(1, "hide", "ada", "bob");
    loaded(0, "bob", NULL, NULL);
    graph(2, "mute", "ada", "eve");
    graph(3, "hide", "eve", "ada");
    expect_seen(&a, "loaded ");
}

static void erase(uint64_t id, uint64_t post_id, const char *user)
{
    audience(id, "delete", post_id, user, "public");
}

static void test_deletions_reach_whom_the_post_reached(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "bob", NULL, NULL);
    post(10, "bob");
    graph(20, "hide", "bob", "ada");
    post(30, "bob");
    erase(31, 10, "bob");
    erase(32, 30, "bob");
    graph(40, "unhide", "bob", "ada");
    post(50, "bob");
    graph(60, "unfollow", "ada", "bob");
    post(70, "bob");
    erase(71, 50, "bob");
    erase(72, 70, "bob");
    audience(73, "delete", 51, "bob", "only:cyd");
    expect_seen(&a, "loaded 10 31 50 71 ");
}

static void test_not_all_who_were_shown_once_are_remembered(void **state)
{
    char user[16];

    (void)state;
    watch(&a, "ada");
    loaded(0, NULL, NULL, NULL);
    for (uint64_t i = 1; i <= 1001; i++) {
        snprintf(user, sizeof(user), "user%" PRIu64, i);
        graph(10 * i, "follow", "ada", user);
        graph(10 * i + 5, "unfollow", "ada", user);
    }
    erase(20001, 11, "user1");
    erase(20002, 21, "user2");
    erase(20003, 10011, "user1001");
    expect_seen(&a, "loaded 20002 20003 ");
}

static void test_after_a_loss_the_sets_are_read_again(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "bob", "cyd", NULL);
    post(10, "bob");
    post(11, "cyd");
    home_reload(home, 12);
    assert_false(home_is_loaded(&a.watch));
    assert_int_equal(load_count, 2);
    post(20, "bob");
    post(21, "eve");
    graph(22, "unfollow", "ada", "cyd"); /* after what the sets contain */
    expect_seen(&a, "loaded 10 11 loading ");
    loaded_sets(1, "cyd", "bob", NULL);
    expect_seen(&a, "loaded ");
    post(30, "bob");
    post(31, "cyd");
    post(32, "ada");
    erase(33, 10, "bob"); /* was shown then */
    erase(34, 20, "bob");
    expect_seen(&a, "32 33 ");
    graph(35, "follow", "ada", "bob");
    post(36, "bob");
    graph(37, "unhide", "bob", "ada");
    post(38, "bob");
    expect_seen(&a, "38 ");
}

static void test_a_loss_while_the_sets_are_read_asks_for_them_anew(void **state)
{
    (void)state;
    watch(&a, "ada");
    home_reload(home, 5);
    assert_int_equal(load_count, 2);
    loaded(0, "bob", NULL, NULL); /* from before the loss */
    assert_false(home_is_loaded(&a.watch));
    loaded(1, "cyd", NULL, NULL);
    home_reload(home, 6);
    home_reload(home, 7);
    assert_int_equal(load_count, 4);
    loaded(2, "bob", NULL, NULL);
    loaded(3, "eve", NULL, NULL);
    post(8, "bob");
    post(9, "cyd");
    post(10, "eve");
    expect_seen(&a, "loaded loading loaded 10 ");
}

/* Its watchers were told of the gap before. */
static void test_what_was_rewound_while_the_sets_are_read_is_not_sent(void **state)
{
    (void)state;
    watch(&a, "ada");
    for (uint64_t id = 3; id < 7; id++)
        post(id, "bob");
    home_rewind(home, 1, 1);
    home_rewind(home, 0, 4);
    home_reload(home, 4);
    post(8, "bob");
    loaded(1, "bob", NULL, NULL);
    expect_seen(&a, "3 4 8 loaded ");
}

static void test_all_watchers_of_a_user_share_one_load(void **state)
{
    (void)state;
    watch(&a, "ada");
    watch(&b, "ada");
    assert_int_equal(load_count, 1);
    assert_string_equal(loads[0].user, "ada");
    loaded(0, "bob", NULL, NULL);
    loaded(0, "cyd", NULL, NULL); /* once is enough */
    post(1, "bob");
    post(2, "cyd");
    home_unwatch(home, &a.watch);
    post(3, "bob");
    expect_seen(&a, "loaded 1 ");
    expect_seen(&b, "loaded 1 3 ");
}

static void test_a_late_watcher_of_a_loaded_feed_begins_at_once(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded(0, "bob", NULL, NULL);
    post(1, "bob");
    watch(&b, "ada");
    assert_true(home_is_loaded(&b.watch));
    post(2, "bob");
    expect_seen(&b, "2 ");
}

static void test_the_last_watcher_may_leave_while_the_set_is_read(void **state)
{
    (void)state;
    watch(&a, "ada");
    post(1, "bob");
    home_unwatch(home, &a.watch);
    loaded(0, "bob", NULL, NULL);
    post(2, "bob");
    expect_seen(&a, "");
}

/* Otherwise changes between the two would be lost. */
static void test_the_answer_to_an_earlier_load_does_not_fill_a_later_feed(void **state)
{
    (void)state;
    watch(&a, "ada");
    home_unwatch(home, &a.watch);
    graph(1, "follow", "ada", "cyd");
    watch(&a, "ada");
    assert_int_equal(load_count, 2);
    loaded(0, "bob", NULL, NULL);
    home_load_failed(home, "ada", loads[0].number);
    expect_seen(&a, "");
    loaded(1, "bob", "cyd", NULL);
    post(2, "cyd");
    expect_seen(&a, "loaded 2 ");
}

static void test_a_failed_load_fails_everyone_and_the_next_one_begins_anew(void **state)
{
    (void)state;
    watch(&a, "ada");
    post(1, "ada");
    home_load_failed(home, "ada", loads[0].number);
    expect_seen(&a, "failed ");
    loaded(0, "bob", NULL, NULL);
    watch(&b, "ada"); /* before the failed one has left */
    assert_int_equal(load_count, 2);
    post(2, "ada");
    home_unwatch(home, &a.watch);
    loaded(1, "bob", NULL, NULL);
    post(3, "bob");
    expect_seen(&a, "");
    expect_seen(&b, "2 loaded 3 ");
    home_load_failed(home, "ada", loads[1].number);
    home_load_failed(home, "nobody", 1);
    expect_seen(&b, "");
}

static void test_a_feed_that_must_keep_too_much_fails(void **state)
{
    struct event *event = event_post(1, "eve", "it is the same for every event");
    size_t passes = MAX_WAITING / event->bytes;

    (void)state;
    watch(&a, "ada");
    for (size_t i = 0; i < passes; i++)
        home_event(home, event);
    expect_seen(&a, "");
    assert_int_equal(event->refs, 1 + passes);
    watch(&b, "bob");
    home_event(home, event);
    expect_seen(&a, "failed ");
    expect_seen(&b, "");
    assert_int_equal(event->refs, 2);
    loaded(0, "eve", NULL, NULL);
    loaded(1, NULL, NULL, NULL);
    assert_int_equal(event->refs, 1);
    home_event(home, event);
    expect_seen(&a, "");
    expect_seen(&b, "loaded ");
    event_unref(event);
}

/* Answers the load with `count` followed users, f0, f1, ... */
static void loaded_many(size_t place, size_t count)
{
    struct sl_slice followed[64];
    char names[64][24];

    assert_true(place < load_count && count <= 64);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "f%zu", i);
        followed[i] = sl_slice_str(names[i]);
    }
    home_loaded(home, loads[place].user, loads[place].number,
                &(struct home_sets){.followed = {followed, count}});
}

static void test_what_feeds_take_is_counted_and_given_back(void **state)
{
    size_t empty, one, both;

    (void)state;
    assert_int_equal(home_bytes(home), 0);
    watch(&a, "ada");
    empty = home_bytes(home);
    loaded_many(0, 50);
    one = home_bytes(home);
    assert_true(empty > 0 && one > empty + 50 * 200);
    watch(&b, "bob");
    loaded_many(1, 50);
    both = home_bytes(home);
    assert_true(both > one && both - one < one); /* the authors are shared */
    graph(1, "mute", "bob", "eve");
    assert_true(home_bytes(home) > both);
    home_unwatch(home, &b.watch);
    assert_int_equal(home_bytes(home), one);
    home_reload(home, 5);
    post(6, "cyd");
    assert_true(home_bytes(home) > one); /* room for queued events */
    loaded_many(2, 0);
    graph(40, "unfollow", "ada", "f0");
    home_unwatch(home, &a.watch);
    assert_int_equal(home_bytes(home), 0);
}

static void test_a_user_has_a_quarter_of_what_feeds_may_take(void **state)
{
    (void)state;
    home_set_max_bytes(home, 40000);
    watch(&a, "ada");
    loaded_many(0, 64);
    expect_seen(&a, "full ");
    assert_true(home_has_room(home, SL_SLICE("ada")));
    watch(&b, "bob");
    loaded_many(1, 20);
    expect_seen(&b, "loaded ");
    for (uint64_t id = 1; id < 20; id++) { /* everybody who is muted while the stream is open */
        char name[8];

        snprintf(name, sizeof(name), "m%d", (int)id);
        graph(id, "mute", "bob", name);
    }
    expect_seen(&b, "full ");
}

static void test_all_feeds_together_have_a_bound(void **state)
{
    (void)state;
    watch(&a, "ada");
    loaded_many(0, 10);
    home_set_max_bytes(home, 4 * home_bytes(home));
    watch(&b, "bob");
    loaded_many(1, 10);
    expect_seen(&b, "loaded ");
    home_set_max_bytes(home, 1);
    expect_seen(&a, "loaded "); /* existing users stay */
    assert_false(home_has_room(home, SL_SLICE("cyd")));
    assert_true(home_has_room(home, SL_SLICE("bob")));
    graph(1, "follow", "ada", "cyd");
    expect_seen(&a, "full ");
    post(2, "f0");
    expect_seen(&b, "2 ");
    graph(3, "unfollow", "bob", "f0"); /* takes no more memory */
    expect_seen(&b, "");
    home_unwatch(home, &a.watch);
    home_unwatch(home, &b.watch);
    assert_true(home_has_room(home, SL_SLICE("cyd")));
}

static void test_room_for_what_waits_is_within_the_bound(void **state)
{
    (void)state;
    watch(&a, "ada");
    home_set_max_bytes(home, home_bytes(home));
    post(1, "eve");
    expect_seen(&a, "full ");
}

static void test_the_owner_may_answer_at_once(void **state)
{
    (void)state;
    answer = ANSWER_AT_ONCE;
    watch(&a, "ada");
    assert_true(home_is_loaded(&a.watch));
    post(1, "bob");
    expect_seen(&a, "1 ");
    answer = FAIL_AT_ONCE;
    assert_int_equal(try_watch(&b, "bob", POSTS), -EIO);
    post(2, "bob");
    expect_seen(&a, "2 ");
    expect_seen(&b, "");
}

static void test_without_memory_a_watch_changes_nothing(void **state)
{
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = try_watch(&a, "ada", POSTS);
        mem_fail_never();
        assert_int_equal(r, r < 0 ? -ENOMEM : 0);
        assert_int_equal(load_count, r == 0);
    }
    loaded(0, "bob", NULL, NULL);
    expect_seen(&a, "loaded ");
}

static void test_without_memory_to_wait_in_the_feed_fails(void **state)
{
    struct event *event = event_post(1, "bob", "hello");

    (void)state;
    watch(&a, "ada");
    mem_fail_after(0);
    home_event(home, event);
    mem_fail_never();
    expect_seen(&a, "failed ");
    loaded(0, "bob", NULL, NULL);
    home_event(home, event);
    expect_seen(&a, "");
    assert_int_equal(event->refs, 1);
    event_unref(event);
}

/* Otherwise the feed would lack a user. */
static void test_without_memory_for_the_set_the_feed_fails(void **state)
{
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        load_count = 0;
        watch(&a, "ada");
        graph(1, "follow", "ada",
              "cyd"); /* it is judged when the set has arrived, which takes memory */
        post(2, "cyd");
        mem_fail_after(n);
        loaded(0, "bob", NULL, NULL);
        mem_fail_never();
        has_failed = strcmp(a.seen, "2 loaded ") != 0;
        expect_seen(&a, has_failed ? "failed " : "2 loaded ");
        post(3, "bob");
        post(4, "cyd");
        expect_seen(&a, has_failed ? "" : "3 4 ");
        home_unwatch(home, &a.watch);
    }
}

static void test_without_memory_a_follow_fails_the_feed(void **state)
{
    struct event *follow = event_graph(1, "follow", "ada", "cyd");
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        load_count = 0;
        watch(&a, "ada");
        loaded(0, "bob", NULL, NULL);
        expect_seen(&a, "loaded ");
        mem_fail_after(n);
        home_event(home, follow);
        mem_fail_never();
        has_failed = a.seen[0] != '\0';
        expect_seen(&a, has_failed ? "failed " : "");
        post(2, "bob");
        post(3, "cyd");
        expect_seen(&a, has_failed ? "" : "2 3 ");
        home_unwatch(home, &a.watch);
    }
    event_unref(follow);
}

static void test_without_memory_there_is_no_home(void **state)
{
    struct home *made = NULL;

    (void)state;
    for (uint64_t n = 0; !made; n++) {
        mem_fail_after(n);
        made = home_new(1, 1);
        mem_fail_never();
    }
    home_free(made);
    home_free(NULL);
}

#define HOME_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOME_TEST(test_a_feed_holds_own_posts_and_those_of_everyone_followed),
        HOME_TEST(test_what_happens_while_the_set_is_read_is_judged_in_order),
        HOME_TEST(test_events_that_the_set_contains_do_no_harm),
        HOME_TEST(test_follow_and_unfollow_change_a_loaded_feed),
        HOME_TEST(test_own_posts_stay_whoever_is_unfollowed),
        HOME_TEST(test_watchers_get_the_types_they_ask_for),
        HOME_TEST(test_what_changes_of_a_user_goes_where_the_posts_go),
        HOME_TEST(test_restricted_posts_reach_those_they_are_for),
        HOME_TEST(test_deletions_of_restricted_posts_reach_whom_the_posts_did),
        HOME_TEST(test_who_hides_or_is_muted_is_not_shown),
        HOME_TEST(test_hiding_and_muting_concern_two_users_only),
        HOME_TEST(test_whom_one_follows_while_they_hide_stays_hidden),
        HOME_TEST(test_events_of_privacy_are_not_delivered),
        HOME_TEST(test_deletions_reach_whom_the_post_reached),
        HOME_TEST(test_not_all_who_were_shown_once_are_remembered),
        HOME_TEST(test_after_a_loss_the_sets_are_read_again),
        HOME_TEST(test_a_loss_while_the_sets_are_read_asks_for_them_anew),
        HOME_TEST(test_what_was_rewound_while_the_sets_are_read_is_not_sent),
        HOME_TEST(test_all_watchers_of_a_user_share_one_load),
        HOME_TEST(test_a_late_watcher_of_a_loaded_feed_begins_at_once),
        HOME_TEST(test_the_last_watcher_may_leave_while_the_set_is_read),
        HOME_TEST(test_the_answer_to_an_earlier_load_does_not_fill_a_later_feed),
        HOME_TEST(test_a_failed_load_fails_everyone_and_the_next_one_begins_anew),
        HOME_TEST(test_a_feed_that_must_keep_too_much_fails),
        HOME_TEST(test_what_feeds_take_is_counted_and_given_back),
        HOME_TEST(test_a_user_has_a_quarter_of_what_feeds_may_take),
        HOME_TEST(test_all_feeds_together_have_a_bound),
        HOME_TEST(test_room_for_what_waits_is_within_the_bound),
        HOME_TEST(test_the_owner_may_answer_at_once),
        HOME_TEST(test_without_memory_a_watch_changes_nothing),
        HOME_TEST(test_without_memory_to_wait_in_the_feed_fails),
        HOME_TEST(test_without_memory_for_the_set_the_feed_fails),
        HOME_TEST(test_without_memory_a_follow_fails_the_feed),
        cmocka_unit_test(test_without_memory_there_is_no_home),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
