/* Jetstream's messages and parameters: names, times, commits. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/dialects/dag_cbor.h"
#include "gateway/dialects/jetstream_form.h"
#include "gateway/dialects/jetstream_ids.h"
#include "gateway/dialects/jetstream_selection.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"

#define BASE UINT64_C(114677036875776) /* the first id of a millisecond */

enum { ALL = (1 << JETSTREAM_COLLECTIONS) - 1 };

/* ---- names ---- */

static void expect_did(const char *user, const char *did)
{
    struct buffer text = BUFFER_INIT, back = BUFFER_INIT;

    jetstream_append_did(sl_slice_str(user), &text);
    assert_string_equal(buffer_str(&text), did);
    assert_true(jetstream_append_user(sl_slice_str(did), &back));
    assert_string_equal(buffer_str(&back), user);
    buffer_done(&text);
    buffer_done(&back);
}

static void test_users_have_dids(void **state)
{
    (void)state;
    expect_did("42", "did:sluice:42");
    expect_did("so.me_one-7", "did:sluice:so.me_one-7");
    expect_did("a:b", "did:sluice:a%3Ab");
    expect_did("Zo\xc3\xab %", "did:sluice:Zo%C3%AB%20%25");
    expect_did("did:plc:r2zybk6op3ymzpz6jhqpkoy5", "did:plc:r2zybk6op3ymzpz6jhqpkoy5");
    expect_did("did:web:a.example%3A80", "did:web:a.example%3A80");
    expect_did("did:sluice:42", "did:sluice:did%3Asluice%3A42");
    expect_did("did:plc:", "did:sluice:did%3Aplc%3A");
}

static void test_logins_are_handles(void **state)
{
    static const char *const pairs[][2] = {
        {"ada", "ada.sluice.invalid"},
        {"Ada_L_2", "ada-l-2.sluice.invalid"},
        {"7", "7.sluice.invalid"},
        {"alice.bsky.social", "alice.bsky.social"},
        {"A-B.Example", "a-b.example"},
        {"_ada", "handle.invalid"},
        {"ada_", "handle.invalid"},
        {"a-b", "handle.invalid"}, /* would be the same as a_b */
        {"Zo\xc3\xab", "handle.invalid"},
        {"a..b", "handle.invalid"},
        {"a.", "handle.invalid"},
        {".a", "handle.invalid"},
        {"a.7b", "handle.invalid"},
        {"a_b.example", "handle.invalid"},
        {"", "handle.invalid"},
        {"a123456789012345678901234567890123456789012345678901234567890123", "handle.invalid"}};
    struct buffer none = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct buffer text = BUFFER_INIT;

        jetstream_append_handle(sl_slice_str(pairs[i][0]), &text);
        assert_string_equal(buffer_str(&text), pairs[i][1]);
        buffer_done(&text);
    }
    jetstream_append_handle(SL_SLICE_NONE, &none);
    assert_string_equal(buffer_str(&none), "handle.invalid");
    buffer_done(&none);
}

static void test_an_invalid_did_is_refused(void **state)
{
    static const char *const texts[] = {"",           "42",         "did:",        "did:plc",
                                        "did:plc:",   "did:PLC:a",  "did:plc:a b", "did:plc:a/b",
                                        "did:plc:a:", "did:plc:a%", "did::a"};
    struct buffer user = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(jetstream_append_user(sl_slice_str(texts[i]), &user));
    assert_int_equal(user.size, 0);
}

static void test_keys_are_those_of_users(void **state)
{
    static const char *const pairs[][2] = {{"42", "42"},         {"did:plc:a", "did:plc:a"},
                                           {"a b~", "a~20b~7E"}, {".", "~2E"},
                                           {"..", "~2E~2E"},     {"...", "..."}};

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct buffer text = BUFFER_INIT;

        jetstream_append_key(sl_slice_str(pairs[i][0]), &text);
        assert_string_equal(buffer_str(&text), pairs[i][1]);
        buffer_done(&text);
    }
}

/* ---- times ---- */

static void expect_tid(uint64_t id, const char *expected)
{
    char tid[JETSTREAM_TID_SIZE];

    jetstream_tid(id, tid);
    assert_string_equal(tid, expected);
}

/* https://atproto.com/specs/tid, as computed by a Python implementation of it. */
static void test_tids(void **state)
{
    (void)state;
    expect_tid(BASE, "3n2rvoeefk222");
    expect_tid(BASE + 1, "3n2rvoeefk223");
    expect_tid(1, "3mbd3542k2223");
}

static void test_tids_are_in_the_order_of_ids(void **state)
{
    char tid[JETSTREAM_TID_SIZE], last[JETSTREAM_TID_SIZE] = "";

    (void)state;
    for (uint64_t id = BASE - 5000; id < BASE + 5000; id++) {
        jetstream_tid(id, tid);
        assert_true(strcmp(last, tid) < 0);
        memcpy(last, tid, sizeof(last));
    }
}

static uint64_t id_of(uint64_t ms, uint32_t shard, uint32_t number)
{
    return ms * SL_ID_PER_MS + shard * SL_ID_PER_SHARD + number;
}

/* For all ids of three milliseconds, in order: a client that resumes from the cursor of one gets
 * none at or below it, if no other id has this cursor; and none above is lost. */
static void check_cursors(uint32_t shards)
{
    uint32_t exact = shards <= 15 ? SL_ID_PER_SHARD : 1000 / shards - 1;
    uint64_t first_ms = BASE / SL_ID_PER_MS, last_us = 0;

    for (uint64_t ms = first_ms; ms < first_ms + 3; ms++) {
        for (uint32_t shard = 0; shard < shards; shard++) {
            for (uint32_t number = 0; number < SL_ID_PER_SHARD; number++) {
                uint64_t id = id_of(ms, shard, number), us = jetstream_time_us(id, shards);

                assert_int_equal(us / 1000, sl_id_time_ms(id));
                assert_true(us >= last_us);
                if (number < exact)
                    assert_true(jetstream_id_at(us, shards) == id && us > last_us);
                else
                    assert_true(jetstream_id_at(us, shards) == id_of(ms, shard, exact - 1));
                last_us = us;
            }
        }
    }
}

static void test_a_cursor_goes_on_where_it_was(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards <= SL_SHARDS_MAX; shards++)
        check_cursors(shards);
}

static void test_a_cursor_may_be_any_time(void **state)
{
    (void)state;
    assert_int_equal(jetstream_id_at(0, 1), 0);
    assert_int_equal(jetstream_id_at(SL_ID_EPOCH_MS * 1000 - 1, 8), 0);
    assert_int_equal(jetstream_id_at(INT64_MAX, 64), SL_ID_MAX);
    /* After everything that the shard has in this millisecond. */
    assert_int_equal(jetstream_id_at(sl_id_time_ms(BASE) * 1000 + 999, 1), BASE + 63);
    for (uint32_t shards = 1; shards <= SL_SHARDS_MAX; shards++) {
        for (uint64_t us = sl_id_time_ms(BASE) * 1000, last = 0, i = 0; i < 2000; i++) {
            uint64_t id = jetstream_id_at(us + i, shards);

            assert_true(id >= last && sl_id_time_ms(id) == (us + i) / 1000);
            last = id;
        }
    }
}

/* ---- commits ---- */

static json_t *render(struct event *event, uint64_t options)
{
    struct buffer text = BUFFER_INIT;
    json_t *json = NULL;

    assert_int_equal(jetstream_render(event, options, &text), 0);
    if (text.size > 0) {
        json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
    }
    buffer_done(&text);
    return json;
}

/* Frees both. `expected` has ' instead of ". */
static void expect(struct event *event, const char *expected)
{
    struct buffer text = BUFFER_INIT, bytes = BUFFER_INIT;
    json_t *json = render(event, jetstream_options(ALL, 0, 1)), *wanted, *commit, *record;
    char cid[CID_TEXT_SIZE];

    for (const char *c = expected; *c; c++)
        buffer_append_char(&text, *c == '\'' ? '"' : *c);
    wanted = json_loadb(text.data, text.size, 0, NULL);
    assert_non_null(wanted);
    commit = json_object_get(json, "commit");
    record = json_object_get(commit, "record");
    if (record) {
        assert_int_equal(dag_cbor_append(record, &bytes), 0);
        cid_of(CID_DAG_CBOR, buffer_slice(&bytes), cid);
        assert_string_equal(json_string_value(json_object_get(commit, "cid")), cid);
        json_object_del(commit, "cid");
    }
    if (!json_equal(json, wanted))
        fail_msg("it is %s", json_dumps(json, JSON_SORT_KEYS));
    json_decref(json);
    json_decref(wanted);
    buffer_done(&text);
    buffer_done(&bytes);
    event_unref(event);
}

static void test_a_post_is_a_record(void **state)
{
    (void)state;
    expect(event_of(BASE, "{\"id\":\"114677036875776\",\"type\":\"post\",\"post\":{\"id\":"
                          "\"114677036875776\",\"user\":{\"id\":\"42\",\"login\":\"ada\"},"
                          "\"text\":\"Tee f\xc3\xbcr @bob #Kr\xc3\xa4uter http://a.example/?b\","
                          "\"lang\":\"de\",\"created_at\":\"2026-11-21T01:02:03+01:00\"}}"),
           "{'did':'did:sluice:42','time_us':1795222923456000,'kind':'commit','commit':{"
           "'rev':'3n2rvoeefk222','operation':'create','collection':'app.bsky.feed.post',"
           "'rkey':'114677036875776','record':{'$type':'app.bsky.feed.post',"
           "'createdAt':'2026-11-21T00:02:03.000Z','facets':[{'features':[{"
           "'$type':'app.bsky.richtext.facet#tag','tag':'Kr\xc3\xa4uter'}],"
           "'index':{'byteStart':14,'byteEnd':23}},{'features':[{"
           "'$type':'app.bsky.richtext.facet#link','uri':'http://a.example/?b'}],"
           "'index':{'byteStart':24,'byteEnd':43}}],'langs':['de'],"
           "'text':'Tee f\xc3\xbcr @bob #Kr\xc3\xa4uter http://a.example/?b'}}}");
}

#define REFERENCE "{'cid':'%s','uri':'at://did:sluice:7/app.bsky.feed.post/114677036740608'}"

static void expect_reference(struct event *event, const char *record)
{
    struct buffer text = BUFFER_INIT;
    char cid[CID_TEXT_SIZE];

    cid_of(CID_RAW, SL_SLICE("at://did:sluice:7/app.bsky.feed.post/114677036740608"), cid);
    buffer_append_str(&text, "{'did':'did:sluice:42','time_us':1795222923456000,'kind':'commit',"
                             "'commit':{'rev':'3n2rvoeefk222','operation':'create',"
                             "'rkey':'114677036875776',");
    while (*record) {
        if (*record == '@')
            buffer_append_format(&text, REFERENCE, cid);
        else
            buffer_append_char(&text, *record);
        record++;
    }
    buffer_append_str(&text, "}}");
    expect(event, buffer_str(&text));
    buffer_done(&text);
}

#define POST(members)                                                                              \
    event_of(BASE, "{\"id\":\"114677036875776\",\"type\":\"post\",\"post\":{\"id\":"               \
                   "114677036875776,\"user\":{\"id\":42}," members "}}")

static void test_references_are_uris(void **state)
{
    (void)state;
    expect_reference(POST("\"text\":\"yes\",\"reply_to\":{\"post\":\"114677036740608\",\"user\":"
                          "\"7\"}"),
                     "'collection':'app.bsky.feed.post','record':{'$type':'app.bsky.feed.post',"
                     "'createdAt':'2026-11-21T01:02:03.456Z','reply':{'parent':@,'root':@},"
                     "'text':'yes'}");
    expect_reference(POST("\"text\":\"see\",\"quote_of\":{\"post\":114677036740608,\"user\":7}"),
                     "'collection':'app.bsky.feed.post','record':{'$type':'app.bsky.feed.post',"
                     "'createdAt':'2026-11-21T01:02:03.456Z','embed':{"
                     "'$type':'app.bsky.embed.record','record':@},'text':'see'}");
    expect_reference(POST("\"text\":\"\",\"repost_of\":{\"post\":\"114677036740608\",\"user\":"
                          "\"7\"}"),
                     "'collection':'app.bsky.feed.repost','record':{'$type':"
                     "'app.bsky.feed.repost','createdAt':'2026-11-21T01:02:03.456Z',"
                     "'subject':@}");
    /* The author of a post that is not public is not revealed. */
    expect_reference(POST("\"text\":\"no\",\"reply_to\":{\"post\":\"114677036740608\"}"),
                     "'collection':'app.bsky.feed.post','record':{'$type':'app.bsky.feed.post',"
                     "'createdAt':'2026-11-21T01:02:03.456Z','text':'no'}");
}

static void test_what_is_deleted_has_its_names(void **state)
{
    (void)state;
    expect(event_of(BASE + 1, "{\"id\":\"114677036875777\",\"type\":\"delete\",\"post\":{\"id\":"
                              "\"114677036875776\",\"user\":{\"id\":\"42\"},\"text\":\"\","
                              "\"repost_of\":{\"post\":\"5\",\"user\":\"7\"}}}"),
           "{'did':'did:sluice:42','time_us':1795222923456001,'kind':'commit','commit':{"
           "'rev':'3n2rvoeefk223','operation':'delete','collection':'app.bsky.feed.repost',"
           "'rkey':'114677036875776'}}");
    expect(event_graph(BASE, "follow", "42", "did:plc:a"),
           "{'did':'did:sluice:42','time_us':1795222923456000,'kind':'commit','commit':{"
           "'rev':'3n2rvoeefk222','operation':'create','collection':'app.bsky.graph.follow',"
           "'rkey':'did:plc:a','record':{'$type':'app.bsky.graph.follow',"
           "'createdAt':'2026-11-21T01:02:03.456Z','subject':'did:plc:a'}}}");
    expect(event_graph(BASE, "unfollow", "42", "did:plc:a"),
           "{'did':'did:sluice:42','time_us':1795222923456000,'kind':'commit','commit':{"
           "'rev':'3n2rvoeefk222','operation':'delete','collection':'app.bsky.graph.follow',"
           "'rkey':'did:plc:a'}}");
}

#define USER(members)                                                                              \
    "{\"id\":\"114677036875776\",\"type\":\"user\",\"user\":{\"id\":\"42\",\"login\":"             \
    "\"Ada\",\"name\":\"A\"}" members "}"

/* NULL: not sent. In any collections. */
static void expect_user(const char *members, const char *identity, const char *account)
{
    const char *const wanted[] = {identity, account};
    char text[256];
    struct event *event;

    snprintf(text, sizeof(text), USER("%s"), members);
    event = event_of(BASE, text);
    for (int is_account = 0; is_account < 2; is_account++) {
        uint64_t options = jetstream_options(0, 0, 1);
        json_t *json;

        if (is_account)
            options = jetstream_second(event, options);
        json = render(event, options);
        if (wanted[is_account]) {
            json_t *expected = json_loads(wanted[is_account], 0, NULL);

            assert_non_null(expected);
            assert_true(json_equal(json, expected));
            json_decref(expected);
        } else {
            assert_null(json);
        }
        json_decref(json);
    }
    event_unref(event);
}

static void test_a_new_user_is_an_identity_and_an_account(void **state)
{
    static const char identity[] =
        "{\"did\":\"did:sluice:42\",\"time_us\":1795222923456000,\"kind\":\"identity\","
        "\"identity\":{\"did\":\"did:sluice:42\",\"handle\":\"ada.sluice.invalid\","
        "\"seq\":114677036875776,\"time\":\"2026-11-21T01:02:03.456Z\"}}";
    static const char first[] =
        "{\"did\":\"did:sluice:42\",\"time_us\":1795222923455999,\"kind\":\"identity\","
        "\"identity\":{\"did\":\"did:sluice:42\",\"handle\":\"ada.sluice.invalid\","
        "\"seq\":114677036875776,\"time\":\"2026-11-21T01:02:03.456Z\"}}";
    static const char account[] =
        "{\"did\":\"did:sluice:42\",\"time_us\":1795222923456000,\"kind\":\"account\","
        "\"account\":{\"active\":true,\"did\":\"did:sluice:42\",\"seq\":114677036875776,"
        "\"time\":\"2026-11-21T01:02:03.456Z\"}}";

    (void)state;
    expect_user(",\"change\":\"created\"", first, account);
    expect_user(",\"change\":\"updated\",\"members\":[\"name\",\"login\"]", identity, NULL);
    expect_user(",\"change\":\"updated\",\"members\":[\"name\",\"bio\",7]", NULL, NULL);
    expect_user("", identity, NULL); /* in the form of another producer */
}

static void test_only_users_are_said_twice(void **state)
{
    struct event *post = event_post(BASE, "42", "x"),
                 *follow = event_graph(BASE, "follow", "42", "7");

    (void)state;
    assert_int_equal(jetstream_second(post, jetstream_options(ALL, 0, 1)), 0);
    assert_int_equal(jetstream_second(follow, jetstream_options(ALL, 0, 1)), 0);
    event_unref(post);
    event_unref(follow);
}

/* A client that is disconnected between the two gets both. */
static void test_the_first_of_two_is_not_yet_the_event(void **state)
{
    static const uint32_t counts[] = {1, 8, 15, 64};

    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (uint32_t shard = 0; shard < counts[i]; shard++) {
            uint64_t id = BASE + 64 * shard;

            assert_true(jetstream_id_at(jetstream_time_us(id - 1, counts[i]), counts[i]) < id);
            assert_true(jetstream_time_us(id - 1, counts[i]) <= jetstream_time_us(id, counts[i]));
        }
    }
}

static void expect_options(struct event *event, uint64_t options, bool is_told)
{
    json_t *json = render(event, options);

    assert_int_equal(json != NULL, is_told);
    json_decref(json);
}

static void test_collections_and_sizes_are_heeded(void **state)
{
    struct event *event = event_post(BASE, "42", "hello");
    struct buffer text = BUFFER_INIT;

    (void)state;
    assert_int_equal(jetstream_render(event, jetstream_options(ALL, 0, 1), &text), 0);
    expect_options(event, jetstream_options(1 << JETSTREAM_POST, (uint32_t)text.size, 64), true);
    expect_options(event, jetstream_options(ALL, (uint32_t)text.size - 1, 1), false);
    expect_options(event, jetstream_options(ALL, UINT32_MAX, 1), true);
    expect_options(event, jetstream_options(ALL & ~(1u << JETSTREAM_POST), 0, 1), false);
    assert_true(jetstream_options(ALL, UINT32_MAX, 64) < UINT64_C(1) << 48);
    buffer_done(&text);
    event_unref(event);
}

static void expect_time(struct event *event, uint64_t us)
{
    json_t *json = render(event, jetstream_options(ALL, 0, 8));

    assert_int_equal(json_integer_value(json_object_get(json, "time_us")), us);
    json_decref(json);
}

/* A client keeps the greatest time that it has read. */
static void test_times_say_how_far_one_has_come(void **state)
{
    struct event *event = event_post(id_of(BASE / SL_ID_PER_MS, 3, 1), "42", "hello");
    const uint64_t us = sl_id_time_ms(BASE) * 1000;
    struct sl_cursor cursor = {.id = event->id};

    (void)state;
    expect_time(event, us + 3 * 64 + 1);
    sl_cursor_lower(&cursor, 5, BASE - 4096);
    sl_cursor_lower(&cursor, 6, BASE - 1);
    assert_int_equal(event_set_cursor(event, &cursor), 0);
    expect_time(event, us - 1000);
    event_unref(event);
}

static void test_messages_of_ours_are_not_told(void **state)
{
    struct event *event = event_new_control(EVENT_GAP, SL_SLICE("{\"type\":\"gap\"}"));

    (void)state;
    expect_options(event, jetstream_options(ALL, 0, 1), false);
    event_unref(event);
}

/* ---- parameters ---- */

static void read_query(const char *query, int expected_r, struct jetstream_selection *selection,
                       struct http_refusal *refusal)
{
    assert_int_equal(jetstream_selection_read_query(sl_slice_str(query), selection, refusal),
                     expected_r);
}

static void test_a_query_says_what_is_wanted(void **state)
{
    struct http_refusal refusal;
    struct jetstream_selection selection;

    (void)state;
    read_query("", 0, &selection, &refusal);
    assert_false(selection.has_collections || selection.has_dids || selection.has_cursor ||
                 selection.waits);
    jetstream_selection_done(&selection);
    read_query("wantedCollections=app.bsky.feed.post&wantedCollections=app.bsky.graph.*"
               "&wantedCollections=com.example.a&wantedDids=did:sluice:42&wantedDids=did%3Aplc%3Ab"
               "&cursor=1795222923456001&maxMessageSizeBytes=1000&requireHello=true&x=1"
               "&access_token=a&compress=false",
               0, &selection, &refusal);
    assert_int_equal(selection.collections, 1 << JETSTREAM_POST | 1 << JETSTREAM_FOLLOW);
    assert_string_equal(buffer_str(&selection.users), "42,did:plc:b");
    assert_true(selection.has_collections && selection.has_dids && selection.has_cursor &&
                selection.waits);
    assert_int_equal(selection.cursor_us, 1795222923456001);
    assert_int_equal(selection.max_bytes, 1000);
    jetstream_selection_done(&selection);
    read_query("wantedCollections=app.bsky.feed.like&maxMessageSizeBytes=-1&requireHello=1&cursor=",
               0, &selection, &refusal);
    assert_true(selection.has_collections && selection.collections == 0 && !selection.waits &&
                !selection.has_cursor);
    assert_int_equal(selection.max_bytes, 0);
    jetstream_selection_done(&selection);
    read_query("wantedCollections=app.*", 0, &selection, &refusal);
    assert_int_equal(selection.collections, ALL);
    jetstream_selection_done(&selection);
}

/* A DID that no filter can contain belongs to nobody. */
static void test_dids_that_nobody_has_are_taken(void **state)
{
    struct http_refusal refusal;
    struct jetstream_selection selection;

    (void)state;
    read_query("wantedDids=did:sluice:a%252Cb&wantedDids=did:sluice:7", 0, &selection, &refusal);
    assert_int_equal(selection.users.size, 65 + 2);
    assert_memory_equal(selection.users.data + 65, ",7", 2);
    jetstream_selection_done(&selection);
    read_query("wantedDids=did:sluice:Zo%25C3%25AB&wantedDids=did:sluice:%25EF%25BC%258C", 0,
               &selection, &refusal);
    assert_int_equal(selection.users.size, 4 + 1 + 65);
    assert_memory_equal(selection.users.data, "Zo\xc3\xab,-", 6);
    jetstream_selection_done(&selection);
}

static void test_what_is_wrong_is_said(void **state)
{
    static const struct {
        const char *query, *message;
    } rows[] = {
        {"wantedCollections=app.bsky", "invalid collection: app.bsky"},
        {"wantedCollections=app.bsky.fo*", "invalid collection: app.bsky.fo*"},
        {"wantedCollections=", "invalid collection: "},
        {"wantedCollections=a..b", "invalid collection: a..b"},
        {"wantedCollections=1a.b.c", "invalid collection: 1a.b.c"},
        {"wantedCollections=a.b.c-d", "invalid collection: a.b.c-d"},
        {"wantedDids=42", "invalid DID: 42"},
        {"cursor=-1", "invalid cursor: -1"},
        {"cursor=99999999999999999999", "invalid cursor: 99999999999999999999"},
        {"cursor=now", "invalid cursor: now"},
        {"compress=true", "compress: this server has no dictionary of Jetstream's; leave it out"},
        {"cursor=%zz", "a % must be followed by two hexadecimal digits"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct http_refusal refusal;
        struct jetstream_selection selection;

        read_query(rows[i].query, -EPROTO, &selection, &refusal);
        assert_string_equal(refusal.message, rows[i].message);
        assert_int_equal(refusal.status, 400);
        jetstream_selection_done(&selection);
    }
}

static void test_there_are_bounds(void **state)
{
    struct buffer collections = BUFFER_INIT, dids = BUFFER_INIT;
    struct http_refusal refusal;
    struct jetstream_selection selection;

    (void)state;
    for (size_t i = 0; i <= JETSTREAM_WANTED_COLLECTIONS_MAX; i++)
        buffer_append_str(&collections, "wantedCollections=a.b.c&");
    for (size_t i = 0; i <= JETSTREAM_WANTED_DIDS_MAX; i++)
        buffer_append_str(&dids, "wantedDids=did:a:b&");
    read_query(buffer_str(&collections), -EPROTO, &selection, &refusal);
    assert_string_equal(refusal.message, "too many wanted collections: > 100");
    jetstream_selection_done(&selection);
    read_query(buffer_str(&dids), -EPROTO, &selection, &refusal);
    assert_string_equal(refusal.message, "too many wanted DIDs: > 10000");
    jetstream_selection_done(&selection);
    buffer_done(&collections);
    buffer_done(&dids);
}

static void test_a_message_replaces_the_options(void **state)
{
    struct http_refusal refusal;
    struct jetstream_selection selection;
    bool is_known;

    (void)state;
    assert_int_equal(
        jetstream_selection_read_message(SL_SLICE("{\"type\":\"options_update\",\"payload\":{"
                                                  "\"wantedCollections\":[\"app.bsky.feed.*\"],"
                                                  "\"wantedDids\":[\"did:plc:a\",\"did:sluice:7\"],"
                                                  "\"maxMessageSizeBytes\":500}}"),
                                         &selection, &is_known, &refusal),
        0);
    assert_true(is_known && selection.has_collections && selection.has_dids);
    assert_int_equal(selection.collections, 1 << JETSTREAM_POST | 1 << JETSTREAM_REPOST);
    assert_string_equal(buffer_str(&selection.users), "did:plc:a,7");
    assert_int_equal(selection.max_bytes, 500);
    jetstream_selection_done(&selection);
    assert_int_equal(
        jetstream_selection_read_message(SL_SLICE("{\"type\":\"options_update\",\"payload\":{"
                                                  "\"wantedDids\":null,\"wantedCollections\":[]}}"),
                                         &selection, &is_known, &refusal),
        0);
    assert_true(is_known && !selection.has_collections && !selection.has_dids &&
                selection.max_bytes == 0);
    jetstream_selection_done(&selection);
    assert_int_equal(jetstream_selection_read_message(SL_SLICE("{\"type\":\"hello\"}"), &selection,
                                                      &is_known, &refusal),
                     0);
    assert_false(is_known);
    jetstream_selection_done(&selection);
}

static void test_bad_messages_are_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{",
        "{\"type\":\"options_update\"}",
        "{\"type\":\"options_update\",\"payload\":[]}",
        "{\"type\":\"options_update\",\"payload\":{\"wantedDids\":\"did:plc:a\"}}",
        "{\"type\":\"options_update\",\"payload\":{\"wantedDids\":[1]}}",
        "{\"type\":\"options_update\",\"payload\":{\"wantedDids\":[\"a\"]}}",
        "{\"type\":\"options_update\",\"payload\":{\"wantedCollections\":[\"a\"]}}",
        "{\"type\":\"options_update\",\"payload\":{\"maxMessageSizeBytes\":\"1\"}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct http_refusal refusal;
        struct jetstream_selection selection;
        bool is_known;

        assert_int_equal(jetstream_selection_read_message(sl_slice_str(texts[i]), &selection,
                                                          &is_known, &refusal),
                         -EPROTO);
        jetstream_selection_done(&selection);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_users_have_dids),
        cmocka_unit_test(test_logins_are_handles),
        cmocka_unit_test(test_an_invalid_did_is_refused),
        cmocka_unit_test(test_keys_are_those_of_users),
        cmocka_unit_test(test_tids),
        cmocka_unit_test(test_tids_are_in_the_order_of_ids),
        cmocka_unit_test(test_a_cursor_goes_on_where_it_was),
        cmocka_unit_test(test_a_cursor_may_be_any_time),
        cmocka_unit_test(test_a_post_is_a_record),
        cmocka_unit_test(test_references_are_uris),
        cmocka_unit_test(test_what_is_deleted_has_its_names),
        cmocka_unit_test(test_a_new_user_is_an_identity_and_an_account),
        cmocka_unit_test(test_only_users_are_said_twice),
        cmocka_unit_test(test_the_first_of_two_is_not_yet_the_event),
        cmocka_unit_test(test_collections_and_sizes_are_heeded),
        cmocka_unit_test(test_times_say_how_far_one_has_come),
        cmocka_unit_test(test_messages_of_ours_are_not_told),
        cmocka_unit_test(test_a_query_says_what_is_wanted),
        cmocka_unit_test(test_dids_that_nobody_has_are_taken),
        cmocka_unit_test(test_what_is_wrong_is_said),
        cmocka_unit_test(test_there_are_bounds),
        cmocka_unit_test(test_a_message_replaces_the_options),
        cmocka_unit_test(test_bad_messages_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
