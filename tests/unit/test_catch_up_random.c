/* Clients that catch up, with random faults in random order. */
#include <stdlib.h>
#include <string.h>

#include "base/stable_hash.h"
#include "tests/support/catch_up_scene.h"

enum { CLIENTS = 10, STEPS = 1500 };

static const char *const tracks[] = {NULL, "tea", "coffee", "tea,milk"};

struct model_client {
    struct fake_client fake;
    bool is_there;
    size_t track;
    size_t at[SHARDS]; /* by shard: index in its log of the next event that it may get */
};

static struct model_client clients[CLIENTS];
static uint64_t random_state;
static uint32_t shards;

static size_t below(size_t n)
{
    return stable_hash(random_state++) % n;
}

static bool wants(size_t track, const struct logged *entry)
{
    static const char *const words[] = {"tea", "coffee", "milk"};
    static const bool wanted[4][3] = {
        {true, true, true}, {true, false, false}, {false, true, false}, {true, false, true}};

    if (!tracks[track])
        return true;
    for (size_t i = 0; i < 3; i++) {
        if (strstr(entry->json, words[i]))
            return wanted[track][i];
    }
    return false;
}

/* Returns the next event of the shard for this client; NULL: there is none. */
static const struct logged *next_wanted(struct model_client *client, uint32_t shard)
{
    struct fake_log *log = &logs[shard];

    while (client->at[shard] < log->count &&
           !wants(client->track, &log->entries[client->at[shard]]))
        client->at[shard]++;
    return client->at[shard] < log->count ? &log->entries[client->at[shard]] : NULL;
}

/* Returns the next event of all shards for this client; NULL: there is none. */
static const struct logged *next_of_all(struct model_client *client)
{
    const struct logged *first = NULL;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct logged *next = next_wanted(client, shard);

        if (next && (!first || next->id < first->id))
            first = next;
    }
    return first;
}

/* Expects the events that it wants, in the order of their ids, none missing. */
static void check_received(struct model_client *client)
{
    const struct logged *next;
    const char *text;
    char *end;

    assert_true(fake_client_lives(&client->fake));
    if (client->fake.held.size > 0)
        return; /* incomplete frame */
    for (text = received(&client->fake); *text; text = end + (*end == ' ')) {
        uint64_t id;

        if (*text == '{') {
            assert_memory_equal(text, "{\"type\":\"warning\"", 17);
            end = strchr(text, '}') + 1;
            continue;
        }
        id = strtoull(text, &end, 10);
        next = next_of_all(client);
        assert_non_null(next);
        assert_int_equal(next->id, id);
        client->at[sl_id_shard(id)]++;
    }
}

/* Would the client, resuming with its current cursor, get exactly what it lacks? */
static void check_cursor(struct model_client *client)
{
    const struct sl_cursor cursor = deliver_client_cursor(deliver, &client->fake.client);
    const struct logged *next = next_of_all(client);

    if (client->fake.held.size > 0)
        return; /* incomplete frame, whose rest will be sent */
    assert_true(sl_cursor_is_plain(&cursor));
    assert_true(!next ||
                next >= logs[sl_id_shard(next->id)].entries + logs[sl_id_shard(next->id)].passed ||
                cursor.id < next->id);
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fake_log *log = &logs[shard];

        for (size_t i = client->at[shard]; i > 0 && log->entries[i - 1].id > cursor.id; i--)
            assert_false(wants(client->track, &log->entries[i - 1]));
    }
}

static void model_join(struct model_client *client)
{
    uint64_t cursor = deliver_cursor(deliver).id;

    fake_client_init(&client->fake, FORMAT_NDJSON, head);
    client->is_there = true;
    client->track = below(4);
    client->fake.room = below(2) ? FAKE_UNLIMITED : below(3000);
    subscribe(&client->fake, tracks[client->track]);
    for (uint32_t shard = 0; shard < shards; shard++)
        client->at[shard] = logs[shard].passed;
    if (below(3) == 0 || cursor == 0)
        return; /* live */
    cursor -= below(4) ? below(100) * SL_ID_PER_MS : below(2000) * SL_ID_PER_MS;
    assert_int_equal(deliver_resume(deliver, &client->fake.client, CURSOR(cursor)), 0);
    for (uint32_t shard = 0; shard < shards; shard++) {
        while (client->at[shard] > 0 && logs[shard].entries[client->at[shard] - 1].id > cursor)
            client->at[shard]--;
    }
}

static void model_leave(struct model_client *client)
{
    leave(&client->fake);
    client->is_there = false;
}

/* Passes the next event of all shards, in the order of id_order.h. */
static bool pass_next(void)
{
    const struct fake_log *first = NULL;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fake_log *log = &logs[shard];

        if (log->passed < log->count &&
            (!first || log->entries[log->passed].id < first->entries[first->passed].id))
            first = log;
    }
    return first && pass_in((uint32_t)(first - logs));
}

static void model_step(void)
{
    struct model_client *client = &clients[below(CLIENTS)];
    uint32_t shard = (uint32_t)below(shards);

    switch (below(10)) {
    case 0:
        if (!client->is_there)
            model_join(client);
        else if (below(8) == 0)
            model_leave(client);
        break;
    case 1:
    case 2:
        for (size_t i = below(6); i > 0; i--)
            publish_in(shard, "ada", (const char *[]){"tea", "coffee", "milk", "water"}[below(4)]);
        break;
    case 3:
    case 4:
    case 5:
        for (size_t i = below(8); i > 0; i--)
            pass_next();
        break;
    case 6:
        answer(shard);
        break;
    case 7:
        if (client->is_there)
            make_room(&client->fake, below(4) ? below(6000) : 100000);
        break;
    default:
        turn();
    }
    if (client->is_there) {
        check_received(client);
        check_cursor(client);
    }
}

static void run_model(unsigned seed)
{
    random_state = (uint64_t)seed << 32;
    begin_again(seed % 3 ? ROOM : 4096, 4096, UINT32_MAX);
    for (uint32_t shard = 0; shard < shards; shard++)
        deliver_begin_shard(deliver, shard, 0);
    for (int i = 0; i < STEPS; i++)
        model_step();
    while (pass_next())
        continue;
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].is_there)
            make_room(&clients[i].fake, FAKE_UNLIMITED);
    }
    settle();
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!clients[i].is_there)
            continue;
        assert_true(is_live(&clients[i].fake));
        check_received(&clients[i]);
        for (uint32_t shard = 0; shard < shards; shard++)
            assert_null(next_wanted(&clients[i], shard));
        model_leave(&clients[i]);
    }
}

static void test_every_client_gets_everything_once_and_in_order(void **state)
{
    (void)state;
    shards = 1;
    for (unsigned seed = 1; seed <= 25; seed++)
        run_model(seed);
}

static void test_every_client_gets_everything_with_several_shards(void **state)
{
    (void)state;
    shards = 3;
    for (unsigned seed = 1; seed <= 25; seed++)
        run_model(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CATCH_UP_TEST(test_every_client_gets_everything_once_and_in_order),
        CATCH_UP_TEST(test_every_client_gets_everything_with_several_shards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
