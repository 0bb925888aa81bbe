/* test_pace_model.c - a random history (tests/support/history.h) of clients with a pace, and of
 * those that are sent counts: filters, named rules that change, and the home stream of a reader
 * whose relations change.
 *
 * Clients stall, leave and come back with what they have. In the end the posts of each window are
 * picked, or those of each bucket counted, a second time, in a simple way, and compared with what
 * was sent and what was reported as skipped. While rules or relations change, it is not known at
 * which moment a post was judged by a client that was not live; then it is only required that one
 * moment fits, or that the sum is between what was always and what was ever wanted. Posts that were
 * published without the log belong to no window, and are not counted.
 *
 *     SEED=7 test_pace_model         only that run
 *     RUNS=5000 test_pace_model      more runs */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stable_hash.h"
#include "gateway/delivery/deliver_parts.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_client.h"
#include "tests/support/history.h"
#include "tests/support/reader.h"
#include "tests/support/rounds.h"
#include "tests/support/unlogged.h"
#include "tests/support/wish.h"

enum {
    CLIENTS = 8,
    STEPS = 1500,
    RUNS = TEST_ROUNDS(40),
    HEARD_MAX = 8000,
    COMINGS_MAX = 1000,
    RING_BYTES = 24 << 10,
    OWED_BYTES = 512,
    WAIT_MS = 60,         /* a step is a millisecond */
    PATIENT_MS = 1000000, /* nothing is late */
    ORDER_BYTES = 64 << 10,
    WINDOW_MS = 20,
    WINDOW_MAX = WINDOW_MS, /* posts: one a millisecond */
    GROUPS = 3
};

enum heard_kind { HEARD_EVENT, HEARD_GAP, HEARD_SKIPPED, HEARD_STRAYS, HEARD_COUNTS };

struct heard {
    enum heard_kind kind;
    bool is_late;
    uint64_t id;    /* of a gap: its end */
    uint64_t from;  /* of a gap */
    uint64_t posts; /* counted, or skipped */
    uint64_t users; /* counted */
    uint64_t groups[GROUPS];
    uint64_t revision;
    uint64_t at;         /* `now` */
    uint64_t live_since; /* `now`; UINT64_MAX: it was not live */
    size_t coming;       /* the connection */
};

struct model_client {
    struct fake_client fake;
    bool is_there;
    struct wish wish;
    struct rule_set *rules;
    struct count_question question;
    uint64_t start;          /* it wants what is after this id */
    struct sl_cursor cursor; /* to resume from */
    uint64_t live_since;
    struct unlogged_taken unlogged;
    struct heard heard[HEARD_MAX];
    size_t count;
    uint64_t comings[COMINGS_MAX]; /* the ids that it came with */
    size_t coming_count;
};

static struct model_client clients[CLIENTS];
static unsigned run_seed;
static bool is_counting; /* all clients, instead of picking */
static bool are_late;    /* events, at times */
static bool are_cut;     /* clients, at times */

static void fail_for(const struct model_client *client, const char *what, uint64_t id)
{
    static const char *const kinds[] = {"filter", "rules", "home"};

    fail_msg("seed %u, %u shards, client %zu (%s, pick %d, by %d, start %" PRIu64 "): %s: %" PRIu64,
             run_seed, shards, (size_t)(client - clients), kinds[client->wish.kind],
             (int)client->question.pick.pick, (int)client->question.by, client->start, what, id);
}

/* --- clients ---------------------------------------------------------------------------------- */

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t number_behind(const char *line, const char *end, const char *name)
{
    const char *at = memmem(line, (size_t)(end - line), name, strlen(name));

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static bool says(const char *line, const char *end, const char *what)
{
    return memmem(line, (size_t)(end - line), what, strlen(what));
}

static void take_cursor(struct model_client *client, const char *json, const char *end,
                        const char *name)
{
    const char *text = memmem(json, (size_t)(end - json), name, strlen(name));

    if (!text)
        return;
    text += strlen(name);
    assert_int_equal(sl_cursor_parse(sl_slice(text, strcspn(text, "\"")), &client->cursor, NULL),
                     0);
}

/* The name of a group; NULL: there is none with this number. */
static const char *group_name(const struct model_client *client, size_t group)
{
    if (client->question.by == COUNT_BY_RULE)
        return history_words[group];
    if (client->question.by == COUNT_BY_LANG && group < 2)
        return history_langs[group];
    return NULL;
}

static void take_counts(const struct model_client *client, const char *json, const char *end,
                        struct heard *heard)
{
    heard->kind = HEARD_COUNTS;
    heard->posts = number_behind(json, end, "\"posts\":");
    heard->users = number_behind(json, end, "\"users\":");
    heard->revision = number_behind(json, end, "\"revision\":");
    for (size_t i = 0; i < GROUPS && group_name(client, i); i++) {
        char name[64];

        snprintf(name, sizeof(name), "{\"key\":\"%s\",\"posts\":", group_name(client, i));
        heard->groups[i] = number_behind(json, end, name);
    }
}

/* Nothing of this is about windows. */
static bool take_unlogged(struct model_client *client, const char *json, const char *end)
{
    if (!says(json, end, "\"reason\":\"unlogged\""))
        return false;
    if (says(json, end, "\"type\":\"gap\"")) {
        unlogged_take_gap(&client->unlogged);
        return true;
    }
    take_cursor(client, json, end, "\"id\":\"");
    client->unlogged.skipped += number_behind(json, end, "\"events\":");
    return true;
}

static void take(struct model_client *client, const char *json, const char *end)
{
    struct heard *heard = &client->heard[client->count++];

    assert_true(client->count < HEARD_MAX);
    *heard = (struct heard){.id = number_behind(json, end, "\"id\":\""),
                            .at = now,
                            .live_since = client->live_since,
                            .coming = client->coming_count};
    if (says(json, end, "\"type\":\"gap\"")) {
        heard->kind = HEARD_GAP;
        heard->from = number_behind(json, end, "\"from\":\"");
        heard->id = number_behind(json, end, "\"to\":\"");
        assert_true(heard->from < heard->id);
        return;
    }
    take_cursor(client, json, end, "\"id\":\"");
    if (says(json, end, "\"type\":\"skipped\"")) {
        heard->kind = says(json, end, "\"reason\":") ? HEARD_STRAYS : HEARD_SKIPPED;
        heard->posts = number_behind(json, end, "\"events\":");
        if (heard->kind != HEARD_SKIPPED && !are_late)
            fail_for(client, "late, but nothing is", heard->id);
    } else if (says(json, end, "\"type\":\"counts\"")) {
        take_counts(client, json, end, heard);
    } else {
        heard->is_late = says(json, end, "\"late\":");
        take_cursor(client, json, end, "\"cursor\":\"");
    }
}

/* Records complete lines; an incomplete one stays in the buffer. false: it was cut, where it was
 * told its position. */
static bool listen_to(struct model_client *client, bool may_cut)
{
    struct buffer *received = &client->fake.received;
    const char *text = buffer_str(received), *at = text, *end;

    assert_non_null(text);
    for (; (end = strstr(at, "}\r\n\r\n")); at = end + 5) {
        const char *json = strchr(at, '{');

        if (!says(json, end, "\"type\":\"warning\"") && !take_unlogged(client, json, end))
            take(client, json, end + 1);
        if (may_cut && says(json, end, "\"type\":\"skipped\"") && says(json, end, "\"reason\":") &&
            one_in(4))
            return false;
    }
    buffer_consume(received, (size_t)(at - text));
    return true;
}

static void make_room(struct model_client *client, size_t bytes)
{
    if (fake_client_make_room(&client->fake, bytes))
        deliver_client_writable(&client->fake.client);
}

static void join(struct model_client *client)
{
    fake_client_init(&client->fake, FORMAT_NDJSON, history_head);
    client->fake.cursor_of = history_cursor;
    client->is_there = true;
    client->live_since = UINT64_MAX;
    unlogged_come(&client->unlogged);
    assert_true(client->coming_count < COMINGS_MAX);
    client->comings[client->coming_count++] = client->cursor.id;
    client->fake.client.question = client->question;
    client->fake.room = one_in(2) ? FAKE_UNLIMITED : below(3000);
    wish_subscribe(&client->wish, &client->fake.client, &client->rules);
    assert_int_equal(deliver_resume(deliver, &client->fake.client, &client->cursor), 0);
    if (client->wish.kind == WISH_RULES)
        deliver_rules_ready(&client->fake.client);
}

static struct count_question draw_question(const struct wish *wish)
{
    static const enum pick picks[] = {PICK_EVEN, PICK_NEWEST, PICK_FIRST, PICK_BY_USER,
                                      PICK_BY_CELL};
    static const enum count_by bys[] = {COUNT_BY_NONE, COUNT_BY_LANG};
    struct count_question question = {.bucket_ms = WINDOW_MS};

    if (is_counting && wish->kind == WISH_RULES) {
        question.by = COUNT_BY_RULE;
    } else if (is_counting) {
        question.by = bys[below(2)];
    } else {
        question.pick =
            (struct pick_question){.posts = 1 + (uint32_t)below(5), .pick = picks[below(5)]};
        if (question.pick.pick == PICK_BY_CELL)
            question.pick.cell_millidegrees = 1000;
    }
    return question;
}

/* A new client, which starts now or some way back. */
static void begin_client(struct model_client *client)
{
    size_t back = one_in(3) ? 0 : 1 + below(one_in(4) ? 1000 : 100);
    const struct redis *redis = &redises[0];
    enum wish_kind kind = (enum wish_kind)below(is_counting ? WISH_HOME : WISH_HOME + 1);

    client->count = client->coming_count = 0;
    memset(&client->unlogged, 0, sizeof(client->unlogged));
    client->wish = wish_new(kind, kind == WISH_RULES ? (unsigned)below(1 << HISTORY_WORDS)
                                  : one_in(2)        ? 1
                                                     : (1 << HISTORY_WORDS) - 1);
    client->question = draw_question(&client->wish);
    client->start = later(newest_told(), sl_id_first_at(HISTORY_BEGINS_MS));
    if (back > 0 && back < redis->count && shards == 1 &&
        !redis->facts[redis->count - back].is_lost)
        client->start = redis->facts[redis->count - back].id;
    client->cursor = (struct sl_cursor){.id = client->start};
    join(client);
}

/* With a cursor, or without. */
static void leave(struct model_client *client, bool is_polite)
{
    struct sl_cursor cursor = fake_client_lives(&client->fake) || client->fake.client.catcher
                                  ? history_cursor(&client->fake.client)
                                  : client->fake.disconnect_cursor;

    if (is_polite) {
        deliver_suspend(&client->fake.client);
        buffer_append_slice(&client->fake.received, buffer_slice(&client->fake.held));
        listen_to(client, false);
        client->cursor = cursor;
    }
    deliver_leave(&client->fake.client);
    fake_client_done(&client->fake);
    client->is_there = false;
}

static void attend(struct model_client *client)
{
    if (!client->is_there)
        return;
    if (client->fake.client.catcher)
        client->live_since = UINT64_MAX;
    else if (client->live_since == UINT64_MAX)
        client->live_since = now + 1;
    if (fake_client_lives(&client->fake)) {
        if (listen_to(client, are_cut))
            return;
        leave(client, false);
        join(client);
        return;
    }
    assert_int_equal(client->fake.disconnect_reason, DISCONNECT_TOO_SLOW);
    leave(client, true);
    join(client);
}

/* --- checks ----------------------------------------------------------------------------------- */

static uint64_t window_of(const struct model_client *client, uint64_t id)
{
    return count_bucket_id(&client->question, id);
}

/* The posts of a window, and what is known about the client there. */
struct window {
    uint64_t id, before;
    const struct fact *facts[WINDOW_MAX];
    size_t count;
    uint64_t from, to; /* the posts were judged in this time */
    uint64_t full_at;  /* the last one passed */
    bool was_live;     /* each of them when it passed */
};

/* When the client was told the end of the window. */
static const struct heard *find_end(const struct model_client *client, uint64_t window)
{
    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (heard->kind == HEARD_EVENT && !heard->is_late && heard->id > window)
            return heard;
        if ((heard->kind == HEARD_SKIPPED || heard->kind == HEARD_COUNTS) && heard->id >= window)
            return heard;
    }
    return NULL;
}

static void look_at(const struct model_client *client, uint64_t id, struct window *ret_window)
{
    const struct heard *end = find_end(client, id);
    uint64_t live_since = end ? end->live_since : client->live_since;

    *ret_window = (struct window){.id = id,
                                  .before = count_bucket_before(&client->question, id),
                                  .from = UINT64_MAX,
                                  .to = end ? end->at : now,
                                  .was_live = live_since < UINT64_MAX};
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct redis *redis = &redises[shard];

        for (size_t i = 0; i < redis->count; i++) {
            const struct fact *fact = &redis->facts[i];
            uint64_t passed_at = fact->passed_at ? fact->passed_at : fact->published_at;

            if (fact->kind != FACT_POST || window_of(client, fact->id) != id)
                continue;
            assert_true(ret_window->count < WINDOW_MAX);
            ret_window->facts[ret_window->count++] = fact;
            if (passed_at < live_since)
                ret_window->was_live = false;
            if (passed_at < ret_window->from)
                ret_window->from = passed_at;
            ret_window->full_at = later(ret_window->full_at, passed_at);
            ret_window->to = later(ret_window->to, passed_at);
        }
    }
}

static bool is_in(const struct window *window, uint64_t id)
{
    return id > window->before && id <= window->id;
}

static size_t count_heard(const struct model_client *client, uint64_t id)
{
    size_t count = 0;

    for (size_t i = 0; i < client->count; i++)
        count += client->heard[i].kind == HEARD_EVENT && client->heard[i].id == id;
    return count;
}

static uint64_t skipped_of(const struct model_client *client, const struct window *window)
{
    uint64_t posts = 0;
    size_t times = 0;

    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (heard->kind != HEARD_SKIPPED || !is_in(window, heard->id))
            continue;
        posts = heard->posts;
        times++;
    }
    if (times > 1)
        fail_for(client, "told twice what is skipped", window->id);
    return posts;
}

static bool has_come_within(const struct model_client *client, const struct window *window)
{
    for (size_t i = 1; i < client->coming_count; i++) {
        if (client->comings[i] > window->before && client->comings[i] < window->id)
            return true;
    }
    return false;
}

static bool has_gap_in(const struct model_client *client, const struct window *window)
{
    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (heard->kind == HEARD_GAP && heard->from < window->id && heard->id > window->before)
            return true;
    }
    return false;
}

/* --- what should have been picked --- */

static bool goes_before(enum pick pick, uint64_t a, uint64_t b)
{
    if (pick == PICK_EVEN)
        return stable_hash(a) < stable_hash(b);
    return pick == PICK_FIRST ? a < b : a > b;
}

static bool is_same_key(enum pick pick, const struct fact *a, const struct fact *b)
{
    if (pick == PICK_BY_USER)
        return a->author == b->author;
    return pick == PICK_BY_CELL && a->cell == b->cell;
}

static bool is_candidate(enum pick pick, const struct window *window, const bool *is_wanted,
                         size_t i)
{
    for (size_t j = 0; j < window->count; j++) {
        if (is_wanted[j] && is_same_key(pick, window->facts[i], window->facts[j]) &&
            window->facts[j]->id > window->facts[i]->id)
            return false;
    }
    return is_wanted[i];
}

static bool is_picked(const struct pick_question *question, const struct window *window,
                      const bool *is_wanted, size_t i)
{
    size_t better = 0;

    if (!is_candidate(question->pick, window, is_wanted, i))
        return false;
    for (size_t j = 0; j < window->count; j++)
        better += is_candidate(question->pick, window, is_wanted, j) &&
                  goes_before(question->pick, window->facts[j]->id, window->facts[i]->id);
    return better < question->posts;
}

/* NULL: what was sent and skipped is right if these posts were wanted. */
static const char *compare(const struct model_client *client, const struct window *window,
                           const bool *is_wanted, uint64_t *ret_id)
{
    size_t skipped = 0;

    for (size_t i = 0; i < window->count; i++) {
        bool is_sent = is_picked(&client->question.pick, window, is_wanted, i);

        *ret_id = window->facts[i]->id;
        skipped += is_wanted[i] && !is_sent;
        if (*ret_id <= client->start)
            continue;
        if (count_heard(client, *ret_id) > 1)
            return "twice";
        if (is_sent != count_heard(client, *ret_id))
            return is_sent ? "not sent" : "sent, and not picked";
    }
    *ret_id = window->id;
    return skipped_of(client, window) == skipped ? NULL : "another number was skipped";
}

static bool is_settled(const struct model_client *client, const struct window *window)
{
    for (size_t i = 0; i < window->count; i++) {
        if (wish_ever(&client->wish, window->facts[i], window->from, window->to) !=
            wish_always(&client->wish, window->facts[i], window->from, window->to))
            return false;
    }
    return true;
}

static void judge_exactly(const struct model_client *client, const struct window *window,
                          bool is_when_passed)
{
    bool is_wanted[WINDOW_MAX];
    const char *why;
    uint64_t id;

    for (size_t i = 0; i < window->count; i++) {
        const struct fact *fact = window->facts[i];

        is_wanted[i] = is_when_passed
                           ? wish_ever(&client->wish, fact, fact->passed_at, fact->passed_at)
                           : wish_ever(&client->wish, fact, window->from, window->to);
    }
    why = compare(client, window, is_wanted, &id);
    if (why)
        fail_for(client, why, id);
}

/* All posts of the window were judged at one moment after the last one had passed. */
static void judge_at_once(const struct model_client *client, const struct window *window)
{
    const struct wish *history = wish_history(&client->wish);
    const char *why = NULL;
    uint64_t id = 0;

    for (size_t change = 0; change < history->count; change++) {
        bool is_wanted[WINDOW_MAX];

        if (!wish_was_valid(history, change, window->full_at, window->to))
            continue;
        for (size_t i = 0; i < window->count; i++)
            is_wanted[i] = wish_has(history, change, window->facts[i]);
        why = compare(client, window, is_wanted, &id);
        if (!why)
            return;
    }
    fail_for(client, why, id);
}

/* How many posts were sent and skipped is between these bounds. */
static void bound(const struct model_client *client, const struct window *window, size_t *ret_least,
                  size_t *ret_most)
{
    *ret_least = *ret_most = 0;
    for (size_t i = 0; i < window->count; i++) {
        const struct fact *fact = window->facts[i];
        uint64_t from = fact->passed_at ? fact->passed_at : fact->published_at;
        uint64_t to = fact->is_late ? now : window->to;

        *ret_least += wish_always(&client->wish, fact, from, to);
        *ret_most += wish_ever(&client->wish, fact, from, to);
    }
}

static uint64_t count_told(const struct model_client *client, const struct window *window)
{
    uint64_t told = skipped_of(client, window);

    for (size_t i = 0; i < window->count; i++) {
        const struct fact *fact = window->facts[i];
        size_t times = count_heard(client, fact->id);

        if (times > 1)
            fail_for(client, "twice", fact->id);
        if (times && !wish_ever(&client->wish, fact, window->from, now))
            fail_for(client, "foreign", fact->id);
        told += times;
    }
    return told;
}

/* It came back with a cursor in or after the window, so it may lack what was late before: markers
 * would tell it, but these logs have none. */
static bool may_lack(const struct model_client *client, const struct window *window)
{
    return are_late && client->coming_count > 1 &&
           client->comings[client->coming_count - 1] > window->before;
}

/* `*missing` grows by the posts of the window that were neither sent nor skipped. */
static void judge_sum(const struct model_client *client, const struct window *window,
                      uint64_t *missing)
{
    uint64_t told = count_told(client, window);
    size_t least, most;

    if (has_come_within(client, window) && (are_late || !is_settled(client, window)))
        return; /* what it had been sent by then is not known here */
    bound(client, window, &least, &most);
    if (told > most)
        fail_for(client, "more was sent and skipped than there is in the window", window->id);
    if (may_lack(client, window) || window->before < client->start)
        return;
    *missing += least > told ? least - told : 0;
    if (!are_late && told < least)
        fail_for(client, "something was neither sent nor skipped in the window", window->id);
}

/* Late posts are reported by themselves, without their windows. */
static void judge_strays(const struct model_client *client, uint64_t missing)
{
    uint64_t strays = 0;

    for (size_t i = 0; i < client->count; i++)
        strays += client->heard[i].kind == HEARD_STRAYS ? client->heard[i].posts : 0;
    if (missing > strays)
        fail_for(client, "so many posts were neither sent nor skipped", missing - strays);
}

static void judge_picks(const struct model_client *client, const struct window *window)
{
    const bool is_first = client->question.pick.pick == PICK_FIRST;
    uint64_t missing = 0;

    if (is_settled(client, window))
        judge_exactly(client, window, false);
    else if (has_come_within(client, window))
        judge_sum(client, window, &missing);
    else if (client->wish.kind == WISH_HOME && !is_first)
        judge_at_once(client, window);
    else if (window->was_live)
        judge_exactly(client, window, true);
    else
        judge_sum(client, window, &missing);
}

/* --- what should have been counted --- */

static bool has_counted(const struct model_client *client, const struct window *window,
                        const struct wish *history, size_t change, const struct heard *heard)
{
    uint64_t posts = 0, groups[GROUPS] = {0};
    unsigned users = 0;

    for (size_t i = 0; i < window->count; i++) {
        const struct fact *fact = window->facts[i];

        if (!wish_has(history, change, fact))
            continue;
        posts++;
        users |= 1u << fact->author;
        if (client->question.by == COUNT_BY_RULE)
            groups[fact->word]++;
        if (client->question.by == COUNT_BY_LANG)
            groups[fact->lang]++;
    }
    return posts == heard->posts && (uint64_t)__builtin_popcount(users) == heard->users &&
           memcmp(groups, heard->groups, sizeof(groups)) == 0;
}

/* The last message about the bucket; each is a revision of the one before. */
static const struct heard *find_counts(const struct model_client *client,
                                       const struct window *window)
{
    const struct heard *last = NULL;

    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];
        bool was_told;

        if (heard->kind != HEARD_COUNTS || heard->id != window->id)
            continue;
        was_told = (last && last->coming == heard->coming) ||
                   client->comings[heard->coming - 1] >= window->id;
        if (was_told != (heard->revision > 0))
            fail_for(client, was_told ? "told again without a revision" : "revised at once",
                     window->id);
        if (last && last->coming == heard->coming && heard->revision <= last->revision)
            fail_for(client, "the revision was not raised", window->id);
        last = heard;
    }
    return last;
}

/* The bucket was counted by the rules of one moment after the last of its events had passed; but
 * late events, by the rules of when they came. */
static void judge_counts(const struct model_client *client, const struct window *window)
{
    const struct wish *history = wish_history(&client->wish);
    const struct heard *heard = find_counts(client, window);
    size_t least, most;

    if (!heard)
        fail_for(client, "was not told the bucket", window->id);
    if (may_lack(client, window))
        return;
    for (size_t change = 0; change < history->count; change++) {
        if (wish_was_valid(history, change, window->full_at, later(window->full_at, heard->at)) &&
            has_counted(client, window, history, change, heard))
            return;
    }
    bound(client, window, &least, &most);
    if (!are_late || heard->posts < least || heard->posts > most)
        fail_for(client, "other numbers were counted", window->id);
}

static void judge(const struct model_client *client)
{
    const uint64_t length = WINDOW_MS * SL_ID_PER_MS, first = redises[0].facts[0].id;
    struct window window;
    uint64_t missing = 0;

    for (uint64_t id = window_of(client, later(client->start + 1, first));
         id <= deliver_closed(deliver); id += length) {
        look_at(client, id, &window);
        if (has_gap_in(client, &window))
            continue;
        if (is_counting)
            judge_counts(client, &window);
        else if (are_late)
            judge_sum(client, &window, &missing);
        else
            judge_picks(client, &window);
    }
    judge_strays(client, missing);
    if (is_counting ? client->unlogged.skipped > 0
                    : !unlogged_were_skipped(&client->unlogged, &client->wish))
        fail_for(client, "another number without the log was skipped", client->unlogged.skipped);
}

/* --- one run ---------------------------------------------------------------------------------- */

static bool all_are_live(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].is_there && clients[i].fake.client.catcher)
            return false;
    }
    return true;
}

/* Every client reads, until all are live. */
static void settle(void)
{
    bool moves = true;

    while (moves || !all_are_live()) {
        step_begins();
        if (!moves && all_has_passed())
            deliver_set_watermark(deliver, last_id);
        if (!moves)
            uv_run(&loop, UV_RUN_ONCE); /* the log will be asked again soon */
        for (int i = 0; i < 20; i++)
            turn();
        moves = answer_home();
        moves = answer_all() || moves;
        for (size_t i = 0; i < CLIENTS; i++) {
            attend(&clients[i]);
            if (clients[i].is_there)
                make_room(&clients[i], FAKE_UNLIMITED);
        }
    }
}

static void disturb(struct redis *redis)
{
    if (one_in(2))
        connect_again(redis);
    else
        lose_message(redis);
}

static void come_or_go(struct model_client *client)
{
    if (client->is_there && one_in(4))
        leave(client, one_in(2));
    else if (!client->is_there && client->count > 0)
        join(client);
    else if (!client->is_there)
        begin_client(client);
}

static void step(void)
{
    struct model_client *client = &clients[below(CLIENTS)];
    struct redis *redis = &redises[below(shards)];

    step_begins();
    if (one_in(2))
        deliver->close_work = below(100); /* other lanes have had the rest of the turn's */
    switch (below(14)) {
    case 0:
        come_or_go(client);
        break;
    case 1:
    case 2:
        for (size_t i = below(8); i > 0; i--)
            publish(redis);
        break;
    case 3:
    case 4:
    case 5:
        for (size_t i = below(10); i > 0; i--)
            hear_next(redis);
        break;
    case 6:
        answer_batches(redis);
        break;
    case 7:
        answer_order(redis);
        break;
    case 8:
        if (client->is_there)
            make_room(client, one_in(4) ? 100000 : below(6000));
        break;
    case 9:
        if (one_in(8))
            disturb(redis);
        if (one_in(8))
            look_up(redis);
        break;
    case 10:
        if (client->is_there && client->wish.kind == WISH_RULES && one_in(2))
            wish_change_rules(&client->wish, &client->fake.client, client->rules);
        break;
    case 11:
        answer_home();
        break;
    default:
        turn();
    }
    for (size_t i = 0; i < CLIENTS; i++)
        attend(&clients[i]);
}

static void run(uint32_t shard_count, unsigned seed)
{
    const struct history_settings settings = {.shards = shard_count,
                                              .seed = seed,
                                              .order_wait_ms = are_late ? WAIT_MS : PATIENT_MS,
                                              .order_bytes = are_late ? ORDER_BYTES : 1 << 30,
                                              .ring_bytes = seed % 3 ? RING_BYTES : 0,
                                              .max_owed_bytes = OWED_BYTES,
                                              .has_relations = true};

    run_seed = seed;
    history_begin(&settings);
    memset(clients, 0, sizeof(clients));
    are_cut = true;
    for (int i = 0; i < STEPS; i++)
        step();
    are_cut = false;
    end_faults();
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!clients[i].is_there && clients[i].count > 0)
            join(&clients[i]);
    }
    last_id += 2 * WINDOW_MS * SL_ID_PER_MS; /* the last windows are over */
    settle();
    deliver_flush_all(deliver);
    for (size_t i = 0; i < CLIENTS; i++) {
        attend(&clients[i]);
        if (clients[i].is_there)
            judge(&clients[i]);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].is_there)
            leave(&clients[i], false);
    }
    history_end();
}

static void run_all(uint32_t shard_count)
{
    const char *seed = getenv("SEED"), *runs = getenv("RUNS");

    if (seed) {
        run(shard_count, (unsigned)atoi(seed));
        return;
    }
    for (unsigned i = 1; i <= (runs ? (unsigned)atoi(runs) : RUNS); i++)
        run(shard_count, i);
}

static void test_sent_and_skipped_add_up_to_what_matches(void **state)
{
    (void)state;
    run_all(1);
    run_all(HISTORY_SHARDS);
}

static void test_what_comes_late_is_sent_or_skipped_too(void **state)
{
    (void)state;
    are_late = true;
    run_all(HISTORY_SHARDS);
    are_late = false;
}

static void test_counts_are_those_of_the_logs(void **state)
{
    (void)state;
    is_counting = true;
    run_all(1);
    run_all(HISTORY_SHARDS);
    is_counting = false;
}

static void test_what_comes_late_is_counted_too(void **state)
{
    (void)state;
    is_counting = are_late = true;
    run_all(HISTORY_SHARDS);
    is_counting = are_late = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sent_and_skipped_add_up_to_what_matches, history_setup,
                                        history_teardown),
        cmocka_unit_test_setup_teardown(test_what_comes_late_is_sent_or_skipped_too, history_setup,
                                        history_teardown),
        cmocka_unit_test_setup_teardown(test_counts_are_those_of_the_logs, history_setup,
                                        history_teardown),
        cmocka_unit_test_setup_teardown(test_what_comes_late_is_counted_too, history_setup,
                                        history_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
