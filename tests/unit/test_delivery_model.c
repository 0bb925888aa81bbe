/* test_delivery_model.c - a random history (tests/support/history.h), from the log and the live
 * channel to what each client was sent: by a filter, by named rules that change, or on the home
 * stream of a reader whose relations change.
 *
 * Another gateway is modelled, too, which is up to date in all shards. Clients stall, leave and
 * come back with what they have. In the end each fact that a client wants has reached it once, in
 * order, or is in a gap that it was told about; each rewound fact is in a gap that it was told
 * about before it was sent the replacement. A post that was wanted only for a while may be missing
 * or not, unless it was wanted all the time from when it passed until something newer was sent.
 * What is published without the log is judged by tests/support/unlogged.h; clients are also cut
 * right after it, and come back with the cursor that it said.
 *
 *     SEED=7 test_delivery_model         only that run
 *     RUNS=5000 test_delivery_model      more runs */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/sample.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/front/event_fields.h"
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
    HEARD_MAX = 8000,
    RUNS = TEST_ROUNDS(40),
    RING_BYTES = 24 << 10,
    OWED_BYTES = 4096,
    WAIT_MS = 60, /* a step is a millisecond */
    ORDER_BYTES = 64 << 10
};

struct heard {
    uint64_t id;       /* 0: a gap */
    uint64_t from, to; /* of the gap */
    bool is_redis;     /* its reason: the log may still have some of what it covers */
    bool is_first;     /* the first one of its connection */
    bool is_late;
    uint64_t at; /* `now` */
};

struct client_model {
    struct fake_client fake;
    bool is_there;
    struct wish wish;
    struct rule_set *rules;
    uint64_t start;          /* it wants what is after this id */
    struct sl_cursor begun;  /* it may be sent what is after this cursor, and on a home stream, what
                                waited for the relations when it came */
    struct sl_cursor cursor; /* to resume from */
    struct heard heard[HEARD_MAX];
    size_t count;
    bool is_connecting;
    bool is_vague; /* a shard was behind while it was connected: ids are not cursors */
    bool is_exact; /* its last message said the cursor */
    struct unlogged_taken unlogged;
    bool is_whole; /* posts may not be thinned out: it was told about a gap on this connection, or
                      came while its home feed was read */
    uint32_t percent; /* share of its posts that it is sent, as it was told */
    /* It was sent it, or told that it was skipped, or about a gap. */
    bool has_had[HISTORY_SHARDS][HISTORY_FACTS];
    bool is_left_out[HISTORY_SHARDS][HISTORY_FACTS];
};

static struct client_model clients[CLIENTS];
static unsigned run_seed;
static bool is_short_of_memory; /* at times */
static bool are_sampled;        /* all clients, at times */
static bool are_cut;            /* clients, at times */

/* --- clients ---------------------------------------------------------------------------------- */

static uint64_t number_behind(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 10);
}

/* A late or unlogged event says what its client's cursor is; for any other it is the id. While a
 * shard is behind, the id alone would claim too much: then the client asks for its cursor when it
 * leaves. */
static void take_cursor(struct client_model *client, const char *json, size_t size, uint64_t id)
{
    static const char name[] = "\"cursor\":\"";
    const char *text = memmem(json, size, name, sizeof(name) - 1);
    const char *end;

    client->is_exact = text;
    if (!text) {
        assert_true(id < HISTORY_UNLOGGED_FIRST);
        client->cursor = (struct sl_cursor){.id = id};
        return;
    }
    text += sizeof(name) - 1;
    end = strchr(text, '"');
    assert_int_equal(sl_cursor_parse(sl_slice(text, (size_t)(end - text)), &client->cursor, NULL),
                     0);
}

static bool was_told(const struct client_model *client, const struct fact *fact);

static bool is_in_part(const struct client_model *client, uint64_t id)
{
    return client->percent == 100 || sl_sample_has(client->percent * 10000, id);
}

static void fail_for(const struct client_model *client, const char *what, uint64_t id)
{
    static const char *const kinds[] = {"filter", "rules", "home"};

    fail_msg("seed %u, %u shards, client %zu (%s, start %" PRIu64 "): %s: %" PRIu64, run_seed,
             shards, (size_t)(client - clients), kinds[client->wish.kind], client->start, what, id);
}

static void take_sent(struct client_model *client, const struct heard *heard)
{
    const struct fact *fact = fact_of(heard->id);
    uint32_t shard = sl_id_shard(heard->id);
    size_t i = (size_t)(fact - redises[shard].facts);

    if (!heard->is_late && client->is_there && !client->fake.client.catcher)
        unlogged_pass_by(&client->unlogged, fact);
    if (!heard->is_late && !client->is_whole && !is_in_part(client, heard->id))
        fail_for(client, "none of what it should be sent", heard->id);
    if (client->is_left_out[shard][i])
        fail_for(client, "sent, and told to be left out", heard->id);
    client->has_had[shard][i] = true;
}

/* When it was judged at the earliest. */
static uint64_t judged_from(const struct fact *fact)
{
    return fact->passed_at ? fact->passed_at : fact->published_at;
}

static bool wants_ever(const struct client_model *client, const struct fact *fact, uint64_t to)
{
    return wish_ever(&client->wish, fact, judged_from(fact), to);
}

static bool wants_always(const struct client_model *client, const struct fact *fact, uint64_t to)
{
    return wish_always(&client->wish, fact, judged_from(fact), to);
}

/* Skipped posts: those of which it had nothing, up to this cursor, outside of its share. Lost or
 * deleted ones may be among them, or not. */
static void take_skipped(struct client_model *client, const char *json)
{
    const char *text = strstr(json, "\"id\":\"") + 6;
    uint64_t said = number_behind(json, "\"events\":"), least = 0, most = 0;

    assert_int_equal(sl_cursor_parse(sl_slice(text, strcspn(text, "\"")), &client->cursor, NULL),
                     0);
    for (uint32_t shard = 0; shard < shards; shard++) {
        uint64_t to = sl_cursor_of_shard(&client->cursor, shard);
        const struct redis *redis = &redises[shard];

        for (size_t i = 0; i < redis->count && redis->facts[i].id <= to; i++) {
            const struct fact *fact = &redis->facts[i];

            if (client->has_had[shard][i] || !wants_ever(client, fact, now) ||
                (client->wish.kind != WISH_HOME &&
                 fact->id <= sl_cursor_of_shard(&client->begun, shard)) ||
                is_in_part(client, fact->id))
                continue;
            client->has_had[shard][i] = client->is_left_out[shard][i] = true;
            most++;
            least += wants_always(client, fact, now) && fact->id > client->start &&
                     !fact->is_lost && !fact->is_gone && !fact->is_unreadable &&
                     !was_told(client, fact);
        }
    }
    if (said < least || said > most)
        fail_msg("seed %u, %u shards, client %zu: %" PRIu64 " left out, and not %" PRIu64
                 " to %" PRIu64 ": %.80s",
                 run_seed, shards, (size_t)(client - clients), said, least, most, json);
}

static void take_unlogged(struct client_model *client, const char *json, size_t size)
{
    uint64_t id = number_behind(json, "{\"id\":\"");
    const char *why = unlogged_take(&client->unlogged, &client->wish, fact_of(id));

    take_cursor(client, json, size, id);
    if (why)
        fail_for(client, why, id);
}

/* Records complete lines; an incomplete one stays in the buffer. false: it was cut. */
static bool listen_to(struct client_model *client, bool may_cut)
{
    struct buffer *received = &client->fake.received;
    const char *text = buffer_str(received), *at = text, *end;

    assert_non_null(text);
    for (; (end = strstr(at, "}\r\n\r\n")); at = end + 5) {
        const char *json = strchr(at, '{');
        struct heard *heard = &client->heard[client->count];

        assert_true(client->count < HEARD_MAX);
        if (strncmp(json, "{\"type\":\"warning\"", 17) == 0)
            continue;
        if (strncmp(json, "{\"type\":\"sampling\"", 18) == 0) {
            client->percent = (uint32_t)number_behind(json, "\"percent\":");
            continue;
        }
        if (strncmp(json, "{\"type\":\"skipped\"", 17) == 0) {
            take_skipped(client, json);
            continue;
        }
        if (memmem(json, (size_t)(end - json), "unlogged", 8)) {
            client->is_whole = true;
            unlogged_take_gap(&client->unlogged);
            continue;
        }
        if (strncmp(json, "{\"type\":\"gap\"", 13) != 0 &&
            number_behind(json, "{\"id\":\"") >= HISTORY_UNLOGGED_FIRST) {
            take_unlogged(client, json, (size_t)(end - json));
            if (may_cut && one_in(4))
                return false;
            continue;
        }
        *heard = (struct heard){.is_first = client->is_connecting, .at = now};
        client->is_connecting = false;
        if (strncmp(json, "{\"type\":\"gap\"", 13) == 0) {
            client->is_whole = true;
            heard->from = number_behind(json, "\"from\":\"");
            heard->to = number_behind(json, "\"to\":\"");
            heard->is_redis = memmem(json, (size_t)(end - json), "redis", 5);
            assert_true(heard->from < heard->to);
        } else {
            heard->id = number_behind(json, "{\"id\":\"");
            heard->is_late = memmem(json, (size_t)(end - json), "late", 4);
            take_cursor(client, json, (size_t)(end - json), heard->id);
            take_sent(client, heard);
        }
        client->count++;
    }
    buffer_consume(received, (size_t)(at - text));
    return true;
}

static void make_room(struct client_model *client, size_t bytes)
{
    if (fake_client_make_room(&client->fake, bytes))
        deliver_client_writable(&client->fake.client);
}

static void join(struct client_model *client)
{
    fake_client_init(&client->fake, FORMAT_NDJSON, history_head);
    client->fake.cursor_of = history_cursor;
    assert_non_null(buffer_reserve(&client->fake.received,
                                   1 << 20)); /* otherwise the test's own allocation could fail */
    assert_non_null(buffer_reserve(&client->fake.held, 1 << 12));
    client->is_there = client->is_connecting = true;
    client->is_vague = false;
    unlogged_come(&client->unlogged);
    client->percent = 100;
    client->fake.client.sampling.is_wanted = are_sampled;
    if (one_in(3)) /* then it gets its other events in the same order */
        client->fake.client.fields = one_in(2)
                                         ? EVENT_FIELDS_SHORT
                                         : event_field_bit(FIELD_ID) | event_field_bit(FIELD_TEXT);
    client->fake.room = one_in(2) ? FAKE_UNLIMITED : below(3000);
    wish_subscribe(&client->wish, &client->fake.client, &client->rules);
    client->is_whole = client->wish.kind == WISH_HOME && reader_is_awaited();
}

static void resume(struct client_model *client)
{
    assert_int_equal(deliver_resume(deliver, &client->fake.client, &client->cursor), 0);
    if (client->wish.kind == WISH_RULES)
        deliver_rules_ready(&client->fake.client);
}

static struct wish draw_wish(void)
{
    enum wish_kind kind = (enum wish_kind)(is_short_of_memory ? 0 : below(WISH_HOME + 1));
    unsigned all = (1 << HISTORY_WORDS) - 1;

    if (kind == WISH_RULES)
        return wish_new(kind, (unsigned)below(all + 1));
    return wish_new(kind, one_in(2) ? 1 : all);
}

/* A new client, which starts now or some way back. */
static void begin_client(struct client_model *client)
{
    size_t back = one_in(3) ? 0 : 1 + below(one_in(4) ? 1000 : 100);
    struct redis *redis = &redises[0];

    client->count = 0;
    memset(client->has_had, 0, sizeof(client->has_had));
    memset(client->is_left_out, 0, sizeof(client->is_left_out));
    memset(&client->unlogged, 0, sizeof(client->unlogged));
    client->wish = draw_wish();
    client->start = newest_told();
    client->begun = history_head();
    join(client);
    client->cursor = (struct sl_cursor){.id = client->start};
    if (back == 0 || back >= redis->count || shards > 1 ||
        redis->facts[redis->count - back].is_lost)
        return;
    client->start = redis->facts[redis->count - back].id;
    client->begun = client->cursor = (struct sl_cursor){.id = client->start};
    resume(client);
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = (*(const struct fact *const *)a)->id,
             right = (*(const struct fact *const *)b)->id;

    return left < right ? -1 : left > right;
}

/* At a gateway that is up to date in all shards: what is new to the client. false: this includes a
 * gap, about which the client would have to be told. */
static bool find_news(const struct client_model *client, const struct fact **news,
                      size_t *ret_count)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct redis *redis = &redises[shard];
        uint64_t had = sl_cursor_of_shard(&client->cursor, shard);

        for (size_t i = 0; i < redis->count; i++) {
            const struct fact *fact = &redis->facts[i];

            if (fact->is_lost && i > 0 && had > redis->facts[i - 1].id)
                return false;
            if (fact->id <= had)
                continue;
            if (fact->is_lost || fact->is_gone || fact->is_unreadable)
                return false;
            if (wants_ever(client, fact, now))
                news[count++] = fact;
        }
    }
    qsort(news, count, sizeof(*news), by_id);
    *ret_count = count;
    return true;
}

/* It comes back with a plain id that claims all shards, from a gateway where that is true. */
static void visit_another(struct client_model *client)
{
    static const struct fact *news[HISTORY_SHARDS * HISTORY_FACTS];
    size_t count;

    if (last_id <= client->cursor.id || !find_news(client, news, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        assert_true(client->count < HEARD_MAX);
        client->heard[client->count++] = (struct heard){.id = news[i]->id,
                                                        .is_first = i == 0,
                                                        .is_late = news[i]->id < client->cursor.id,
                                                        .at = now};
        client->percent = 100;
        take_sent(client, &client->heard[client->count - 1]);
    }
    client->cursor = (struct sl_cursor){.id = last_id};
    redises[sl_id_shard(last_id)].facts[redises[sl_id_shard(last_id)].count - 1].is_claimed = true;
}

static void come_back(struct client_model *client)
{
    join(client);
    resume(client);
}

/* With a cursor, or without. */
static void leave(struct client_model *client, bool is_polite)
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

static void attend(struct client_model *client)
{
    struct sl_cursor cursor;

    if (!client->is_there)
        return;
    cursor = deliver_cursor(deliver);
    client->is_vague = client->is_vague || !sl_cursor_is_plain(&cursor);
    if (fake_client_lives(&client->fake))
        cursor = deliver_client_cursor(deliver, &client->fake.client);
    client->is_vague = client->is_vague || !sl_cursor_is_plain(&cursor);
    if (fake_client_lives(&client->fake)) {
        if (listen_to(client, are_cut))
            return;
        leave(client, false);
        come_back(client);
        return;
    }
    if (!is_short_of_memory)
        assert_int_equal(client->fake.disconnect_reason, DISCONNECT_TOO_SLOW);
    leave(client, true);
    come_back(client);
}

/* --- checks ----------------------------------------------------------------------------------- */

static bool is_in_gap(const struct heard *heard, uint64_t id)
{
    return heard->id == 0 && id > heard->from && id <= heard->to;
}

static bool was_told(const struct client_model *client, const struct fact *fact)
{
    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (is_in_gap(heard, fact->id) && (fact->is_gone || heard->is_redis))
            return true;
    }
    return false;
}

/* The first event that replaced it; NULL: there is none. */
static const struct fact *survivor_behind(const struct fact *fact)
{
    const struct redis *redis = &redises[sl_id_shard(fact->id)];

    while (fact < redis->facts + redis->count && fact->is_lost)
        fact++;
    return fact < redis->facts + redis->count ? fact : NULL;
}

/* There must be a gap before the next event of the shard on the same connection that was not
 * rewound. This is only checked for the first lost event: once told about a gap, a client cannot
 * know that more is missing. */
static void check_lost(const struct client_model *client, size_t at)
{
    uint64_t id = client->heard[at].id;
    const struct fact *survivor = survivor_behind(fact_of(id));

    for (size_t i = at + 1; survivor && i < client->count && !client->heard[i].is_first; i++) {
        const struct heard *heard = &client->heard[i];

        if (is_in_gap(heard, id) || is_in_gap(heard, survivor->id))
            return;
        if (heard->id && sl_id_shard(heard->id) == sl_id_shard(id) && !fact_of(heard->id)->is_lost)
            fail_for(client, "was not told that it is lost", id);
    }
}

/* Something newer was sent; it was not before a late event. */
static uint64_t passed_by(const struct client_model *client, const struct fact *fact)
{
    if (fact->is_late || !fact->passed_at)
        return now;
    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (heard->id > fact->id && !heard->is_late && heard->at >= judged_from(fact))
            return heard->at;
    }
    return now;
}

static void judge(const struct client_model *client)
{
    const struct fact *missing = unlogged_missing(&client->unlogged, &client->wish);
    uint64_t newest[HISTORY_SHARDS] = {0}, newest_of_all = 0;

    for (size_t i = 0; i < client->count; i++) {
        uint64_t id = client->heard[i].id;
        const struct fact *fact;

        if (id == 0)
            continue;
        fact = fact_of(id);
        if (!wants_ever(client, fact, client->heard[i].at))
            fail_for(client, "foreign", id);
        if (fact->is_lost) {
            check_lost(client, i);
            continue;
        }
        if (id <= newest[sl_id_shard(id)])
            fail_for(client, "twice, or out of order", id);
        newest[sl_id_shard(id)] = id;
        if (id < newest_of_all && !client->heard[i].is_late)
            fail_for(client, "in no order over the shards, and not late", id);
        newest_of_all = id > newest_of_all ? id : newest_of_all;
    }
    if (missing)
        fail_for(client, "unlogged, and missing", missing->id);
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct redis *redis = &redises[shard];
        size_t at = 0;

        for (size_t i = 0; i < redis->count; i++) {
            const struct fact *fact = &redis->facts[i];

            if (fact->is_lost || !wants_ever(client, fact, now) || fact->id <= client->start)
                continue;
            while (at < client->count && client->heard[at].id != fact->id)
                at++;
            if (at < client->count)
                continue;
            if (wants_always(client, fact, passed_by(client, fact)) &&
                !client->is_left_out[shard][i] && !was_told(client, fact))
                fail_for(client, "missing", fact->id);
            at = 0;
        }
    }
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
    switch (below(10)) {
    case 0:
        trim(redis);
        break;
    case 1:
        take_out(redis);
        break;
    case 2:
        if (one_in(4))
            spoil(redis);
        break;
    case 3:
        mend(redis);
        break;
    case 4:
        rewind_log(redis);
        break;
    case 5:
        connect_again(redis);
        break;
    case 6:
    case 7:
        swallow(redis);
        break;
    default:
        lose_message(redis);
    }
}

static void step(void)
{
    struct client_model *client = &clients[below(CLIENTS)];
    struct redis *redis = &redises[below(shards)];

    step_begins();
    if (are_sampled && client->is_there && one_in(20))
        sampling_move(deliver, &client->fake.client, one_in(2) ? 1 : -1);
    if (are_sampled && one_in(20))
        sampling_tell(deliver);
    switch (below(14)) {
    case 0:
        if (client->is_there && one_in(4))
            leave(client, (client->is_vague && !client->is_exact) || one_in(2));
        else if (!client->is_there && client->count > 0) {
            if (shards > 1 && client->wish.kind == WISH_FILTER && one_in(2))
                visit_another(client);
            come_back(client);
        } else if (!client->is_there)
            begin_client(client);
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

static void step_short_of_memory(void)
{
    struct redis *redis = &redises[below(shards)];

    mem_fail_after(below(20));
    switch (below(4)) {
    case 0:
        hear_next(redis);
        break;
    case 1:
        answer_order(redis);
        break;
    case 2:
        answer_batches(redis);
        break;
    default:
        turn();
    }
    mem_fail_never();
    for (size_t i = 0; i < CLIENTS; i++)
        attend(&clients[i]);
}

static void run(uint32_t shard_count, unsigned seed)
{
    const struct history_settings settings = {.shards = shard_count,
                                              .seed = seed,
                                              .order_wait_ms = WAIT_MS,
                                              .order_bytes = ORDER_BYTES,
                                              .ring_bytes = seed % 3 ? RING_BYTES : 0,
                                              .max_owed_bytes = OWED_BYTES,
                                              .has_relations = true};

    run_seed = seed;
    history_begin(&settings);
    memset(clients, 0, sizeof(clients));
    are_cut = true;
    for (int i = 0; i < STEPS; i++) {
        step();
        if (is_short_of_memory && one_in(20))
            step_short_of_memory();
    }
    are_cut = false;
    end_faults();
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!clients[i].is_there && clients[i].count > 0)
            come_back(&clients[i]);
    }
    settle();
    sampling_tell(deliver); /* what is still pending */
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

static void test_whatever_happens_to_redis_nobody_misses_anything_untold(void **state)
{
    (void)state;
    run_all(1);
}

static void test_neither_when_memory_is_short(void **state)
{
    (void)state;
    is_short_of_memory = true;
    run_all(1);
    is_short_of_memory = false;
}

static void test_who_is_sent_a_part_is_told_of_all_the_rest(void **state)
{
    (void)state;
    are_sampled = true;
    run_all(1);
    run_all(HISTORY_SHARDS);
    is_short_of_memory = true;
    run_all(1);
    are_sampled = is_short_of_memory = false;
}

static void test_with_more_shards_it_is_the_same(void **state)
{
    (void)state;
    run_all(HISTORY_SHARDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_whatever_happens_to_redis_nobody_misses_anything_untold, history_setup,
            history_teardown),
        cmocka_unit_test_setup_teardown(test_neither_when_memory_is_short, history_setup,
                                        history_teardown),
        cmocka_unit_test_setup_teardown(test_with_more_shards_it_is_the_same, history_setup,
                                        history_teardown),
        cmocka_unit_test_setup_teardown(test_who_is_sent_a_part_is_told_of_all_the_rest,
                                        history_setup, history_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
