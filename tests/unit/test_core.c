/* The operations of the social core on a real redis-server, with one shard and with eight. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/clock.h"
#include "src/database/meta.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/model/login.h"
#include "tests/support/core_group.h"

/* ---- events ---- */

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);

    if (!json)
        fail_msg("not JSON (%s): %s", error.text, text);
    return json;
}

/* Returns e.g. "post.user.id" of an event, as text. */
static const char *member(const json_t *json, const char *path)
{
    char step[64];

    while (*path) {
        size_t length = strcspn(path, ".");

        memcpy(step, path, length);
        step[length] = '\0';
        json = json_object_get(json, step);
        path += length + (path[length] == '.');
    }
    return json_is_string(json) ? json_string_value(json) : NULL;
}

struct logged {
    uint64_t id, previous;
    char json[65536];
};

/* The newest entry of a shard's log. */
static void read_newest(uint32_t shard, struct logged *ret_logged)
{
    redisReply *reply =
        core_command(&core, "XREVRANGE sluice:{%u}:log + - COUNT 1", (unsigned)shard);
    const redisReply *fields;
    char *end;

    assert_int_equal(reply->elements, 1);
    fields = reply->element[0]->element[1];
    ret_logged->id = strtoull(reply->element[0]->element[0]->str, &end, 10);
    assert_string_equal(end, "-0");
    assert_int_equal(fields->elements, 4);
    assert_string_equal(fields->element[0]->str, "p");
    ret_logged->previous = strtoull(fields->element[1]->str, NULL, 10);
    assert_string_equal(fields->element[2]->str, "e");
    snprintf(ret_logged->json, sizeof(ret_logged->json), "%s", fields->element[3]->str);
    freeReplyObject(reply);
}

static void assert_time(const char *text, uint64_t id)
{
    char expected[CLOCK_RFC3339_SIZE];

    clock_format_rfc3339(sl_id_time_ms(id), expected);
    assert_string_equal(text, expected);
}

/* ---- users ---- */

static void test_user_is_kept_and_found_by_any_spelling(void **state)
{
    char room[65536], folded[SL_LOGIN_SIZE];
    struct sl_slice slice;
    uint64_t id;

    (void)state;
    assert_int_equal(core_create(&core, "Straße", "Die Straße \"1\"", NULL), 0);
    id = core.written.id;
    assert_int_equal(sl_login_fold(SL_SLICE("Straße"), folded, &slice, NULL), 0);
    assert_int_equal(sl_id_shard(id), sl_login_shard(slice, shards));
    assert_string_equal(
        core_text(&core, room, "HGET %s login", sl_key_of("user", id, (char[64]){0})), "Straße");
    core_text(&core, room, "HGET %s signup", sl_key_of("user", id, (char[64]){0}));
    assert_time(room, id);
    for (const char *const *name = (const char *const[]){"followers", "following", "posts", NULL};
         *name; name++)
        assert_string_equal(
            core_text(&core, room, "HGET %s %s", sl_key_of("user", id, (char[64]){0}), *name), "0");

    for (const char *const *login = (const char *const[]){"STRASSE", "straße", "sTrasse", NULL};
         *login; login++) {
        const struct sl_user_ref ref = sl_user_by_login(sl_slice_str(*login));
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply = NULL;
        struct sl_user user;

        assert_int_equal(sl_user_find_call(&call, &core.meta, &ref, NULL), 0);
        assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
        assert_int_equal(sl_user_find_reply(reply, &user, NULL), 0);
        assert_int_equal(user.id, id);
        assert_true(sl_slice_is(user.login, "Straße"));
        assert_true(sl_slice_is(user.name, "Die Straße \"1\""));
        freeReplyObject(reply);
        sl_call_done(&call);
    }
}

static void test_login_is_taken_in_every_spelling(void **state)
{
    uint64_t digest;

    (void)state;
    core_must_create(&core, "Ada");
    digest = core_digest(&core);
    assert_int_equal(core_create(&core, "ADA", NULL, NULL), -EEXIST);
    assert_non_null(strstr(core.failure.text, "@ada is taken"));
    assert_int_equal(core_digest(&core), digest);
}

struct racer {
    pthread_t thread;
    struct sl_redis_link *link;
    int won;
};

static void *race(void *context)
{
    struct racer *racer = context;
    char login[32];

    for (int i = 0; i < 200; i++) {
        struct sl_call call = SL_CALL_INIT;
        struct sl_written written;
        redisReply *reply = NULL;
        int r;

        snprintf(login, sizeof(login), "racer%d", i);
        r = sl_user_create_call(&call, &core.meta, SL_SLICE_NONE, sl_slice_str(login),
                                SL_SLICE_NONE, NULL);
        if (r == 0)
            r = sl_redis_link_run(racer->link, &call, &reply, NULL);
        if (r == 0)
            r = sl_write_reply(reply, &written, NULL);
        racer->won += r == 0;
        if (r != 0 && r != -EEXIST)
            racer->won = -1000;
        freeReplyObject(reply);
        sl_call_done(&call);
    }
    return NULL;
}

static void test_of_two_creations_at_once_one_wins(void **state)
{
    const struct sl_redis_link_options options = {.retry_ms = 0};
    struct sl_redis_address address;
    struct racer racers[3] = {0};
    int won = 0;

    (void)state;
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sl_redis_link_open(&address, &options, &racers[i].link, NULL), 0);
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    for (size_t i = 0; i < 3; i++) {
        pthread_join(racers[i].thread, NULL);
        sl_redis_link_close(racers[i].link);
        won += racers[i].won;
    }
    assert_int_equal(won, 200);
}

/* ---- posts ---- */

static void test_post_becomes_state_log_entry_and_message_alike(void **state)
{
    const struct sl_slice url = SL_SLICE("http://x.example/a/b");
    const struct sl_post post = {
        .text = SL_SLICE("quote \" slash / back \\ tab \t 你好 👩‍🚀 \x7f \xE2\x80\xA8"),
        .lang = SL_SLICE("zh-CN"),
        .has_point = true,
        .lon = -4.35545969,
        .lat = 55.83835676,
        .place = {SL_SLICE("Suva"), SL_SLICE("FJ"), true, 178, -19, -179, -16},
        .reply_to = {SL_SLICE("1000369"), SL_SLICE("360"), SL_SLICE("u360")},
        .repost_of = {SL_SLICE("5"), SL_SLICE("6"), SL_SLICE_NONE},
        .quote_of = {SL_SLICE("7"), SL_SLICE("8"), SL_SLICE_NONE},
        .urls = &url,
        .url_count = 1,
        .media = SL_SLICE("[\"photo\"]"),
        .source = SL_SLICE("web"),
    };
    redisContext *listener;
    char expected[4096], message[8192], at[CLOCK_RFC3339_SIZE], room[65536];
    struct logged logged;
    redisReply *reply = NULL;
    uint64_t ada, id;
    uint32_t shard;

    (void)state;
    assert_int_equal(core_create(&core, "Ada", "A/\"B\"", NULL), 0);
    ada = core.written.id;
    shard = sl_id_shard(ada);
    listener = core_listen(&core, shard);
    assert_int_equal(core_post(&core, "ada", &post, NULL), 0);
    id = core.written.id;
    assert_int_equal(sl_id_shard(id), shard);

    clock_format_rfc3339(sl_id_time_ms(id), at);
    snprintf(
        expected, sizeof(expected),
        "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"at\":\"%s\",\"post\":{\"id\":\"%" PRIu64
        "\",\"user\":{\"id\":\"%" PRIu64 "\",\"login\":\"Ada\",\"name\":\"A/\\\"B\\\"\"},"
        "\"text\":\"quote \\\" slash / back \\\\ tab \\t 你好 👩‍🚀 \\u007f \xE2\x80\xA8\","
        "\"lang\":\"zh-CN\",\"created_at\":\"%s\",\"geo\":{\"lon\":-4.35545969,"
        "\"lat\":55.83835676},\"place\":{\"name\":\"Suva\",\"country\":\"FJ\","
        "\"bbox\":[178,-19,-179,-16]},\"reply_to\":{\"post\":\"1000369\",\"user\":\"360\","
        "\"login\":\"u360\"},\"repost_of\":{\"post\":\"5\",\"user\":\"6\"},"
        "\"quote_of\":{\"post\":\"7\",\"user\":\"8\"},\"urls\":[\"http://x.example/a/b\"],"
        "\"media\":[\"photo\"],\"source\":\"web\",\"audience\":\"public\"}}",
        id, at, id, ada, at);
    read_newest(shard, &logged);
    assert_int_equal(logged.id, id);
    assert_int_equal(logged.previous, ada);
    assert_string_equal(logged.json, expected);

    assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
    snprintf(message, sizeof(message), "%" PRIu64 " %" PRIu64 " %s", id, ada, expected);
    assert_string_equal(reply->element[2]->str, message);
    freeReplyObject(reply);
    redisFree(listener);

    assert_string_equal(
        core_text(&core, room, "HGET %s text", sl_key_of("post", id, (char[64]){0})),
        post.text.data);
    assert_string_equal(
        core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("profile", ada, (char[64]){0}), id),
        sl_id_print(id, (char[SL_ID_TEXT_SIZE]){0}));
    assert_string_equal(
        core_text(&core, room, "HGET %s posts", sl_key_of("user", ada, (char[64]){0})), "1");
}

static void test_every_text_comes_back_as_it_was_given(void **state)
{
    struct logged logged;
    uint64_t ada = core_must_create(&core, "ada");

    (void)state;
    for (uint32_t c = 1; c < 0x11000; c++) {
        char text[16];
        json_t *event;

        if (c == 0x300)
            c = 0xD7F0; /* before and after the surrogates */
        if (c == 0xD800)
            c = 0xE000;
        if (c == 0xE010)
            c = 0xFFF0;
        if (c < 0x80)
            snprintf(text, sizeof(text), "a%c/", (int)c);
        else if (c < 0x800)
            snprintf(text, sizeof(text), "%c%c", 0xC0 | (c >> 6), 0x80 | (c & 63));
        else if (c < 0x10000)
            snprintf(text, sizeof(text), "%c%c%c", 0xE0 | (c >> 12), 0x80 | (c >> 6 & 63),
                     0x80 | (c & 63));
        else
            snprintf(text, sizeof(text), "%c%c%c%c", 0xF0 | (c >> 18), 0x80 | (c >> 12 & 63),
                     0x80 | (c >> 6 & 63), 0x80 | (c & 63));
        if (c > 0x10010)
            break;
        core_must_post(&core, "ada", text);
        read_newest(sl_id_shard(ada), &logged);
        event = parse(logged.json);
        assert_string_equal(member(event, "post.text"), text);
        json_decref(event);
    }
}

static void test_reply_finds_the_author_of_its_post(void **state)
{
    struct sl_post reply = {.text = SL_SLICE("re")};
    struct logged logged;
    char first[SL_ID_TEXT_SIZE], author[SL_ID_TEXT_SIZE];
    uint64_t ada, digest;
    json_t *event;

    (void)state;
    ada = core_must_create(&core, "Ada");
    sl_id_print(core_must_post(&core, "ada", "first"), first);
    reply.reply_to.post = sl_slice_str(first);
    assert_int_equal(core_post(&core, "ada", &reply, NULL), 0);
    read_newest(sl_id_shard(ada), &logged);
    event = parse(logged.json);
    assert_string_equal(member(event, "post.reply_to.post"), first);
    assert_string_equal(member(event, "post.reply_to.user"), sl_id_print(ada, author));
    assert_string_equal(member(event, "post.reply_to.login"), "Ada");
    json_decref(event);

    reply.reply_to.post =
        sl_slice_str(sl_id_print(ada, author)); /* there is no post with this id */
    digest = core_digest(&core);
    assert_int_equal(core_post(&core, "ada", &reply, NULL), -ENOENT);
    assert_non_null(strstr(core.failure.text, "there is no post"));
    assert_int_equal(core_digest(&core), digest);
}

static void test_delete_publishes_the_post_as_it_was(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("mine"),
                                 .lang = SL_SLICE("en"),
                                 .has_point = true,
                                 .lon = 0.1,
                                 .lat = -0.30000000000000004};
    struct logged posted, deleted;
    char room[65536];
    json_t *before, *after;
    uint64_t ada, id;

    (void)state;
    ada = core_must_create(&core, "ada");
    assert_int_equal(core_post(&core, "ada", &post, NULL), 0);
    id = core.written.id;
    read_newest(sl_id_shard(ada), &posted);
    assert_int_equal(core_delete(&core, "ADA", id, NULL), 0);
    assert_true(core.written.id > id);
    read_newest(sl_id_shard(ada), &deleted);
    assert_int_equal(deleted.id, core.written.id);
    assert_int_equal(deleted.previous, id);
    assert_string_equal(strstr(deleted.json, "\"post\":"), strstr(posted.json, "\"post\":"));

    before = parse(posted.json);
    after = parse(deleted.json);
    assert_true(json_equal(json_object_get(before, "post"), json_object_get(after, "post")));
    assert_string_equal(member(after, "type"), "delete");
    assert_string_equal(member(after, "id"), sl_id_print(deleted.id, room));
    assert_time(member(after, "at"), deleted.id);
    json_decref(before);
    json_decref(after);

    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("post", id, room)), 0);
    assert_int_equal(core_number(&core, "ZCARD %s", sl_key_of("profile", ada, room)), 0);
    assert_string_equal(
        core_text(&core, room, "HGET %s posts", sl_key_of("user", ada, (char[64]){0})), "0");
}

static void test_only_the_author_deletes(void **state)
{
    uint64_t id, digest;
    char login[16];

    (void)state;
    core_must_create(&core, "ada");
    id = core_must_post(&core, "ada", "mine");
    for (int i = 0; i < 8; i++) { /* some of them are in other shards */
        snprintf(login, sizeof(login), "other%d", i);
        core_must_create(&core, login);
        digest = core_digest(&core);
        assert_int_equal(core_delete(&core, login, id, NULL), -EPERM);
        assert_int_equal(core_digest(&core), digest);
    }
    assert_int_equal(core_delete(&core, "ada", id, NULL), 0);
    assert_int_equal(core_delete(&core, "ada", id, NULL), -ENOENT);
}

static void test_unknown_users_change_nothing(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("t")};
    uint64_t id, digest;

    (void)state;
    core_must_create(&core, "ada");
    id = core_must_post(&core, "ada", "mine");
    digest = core_digest(&core);
    assert_int_equal(core_post(&core, "nobody", &post, "r1"), -ENOENT);
    assert_string_equal(core.failure.text, "there is no user @nobody");
    assert_true(core_delete(&core, "nobody", id, "r2") < 0);
    assert_int_equal(core_follow(&core, "nobody", "ada", "r3"), -ENOENT);
    assert_int_equal(core_follow(&core, "ada", "nobody", "r4"), -ENOENT);
    assert_int_equal(core_unfollow(&core, "ada", "nobody", "r5"), -ENOENT);
    assert_int_equal(core_digest(&core), digest);
}

/* ---- follows ---- */

/* Creates two users in one shard, or in two if there are several. */
static void make_pair(bool in_one_shard, uint64_t ret_ids[2], char ret_login[16])
{
    ret_ids[0] = core_must_create(&core, "ada");
    for (int i = 0;; i++) {
        snprintf(ret_login, 16, "Bob%d", i);
        ret_ids[1] = core_must_create(&core, ret_login);
        if ((sl_id_shard(ret_ids[0]) == sl_id_shard(ret_ids[1])) == in_one_shard)
            break;
    }
}

static void assert_follow_event(const char *type, const uint64_t ids[2], const char *login)
{
    char text[SL_ID_TEXT_SIZE];
    struct logged logged;
    json_t *event;

    read_newest(sl_id_shard(ids[0]), &logged);
    event = parse(logged.json);
    assert_int_equal(logged.id, core.written.id);
    assert_string_equal(member(event, "type"), type);
    assert_string_equal(member(event, "id"), sl_id_print(logged.id, text));
    assert_string_equal(member(event, "user.id"), sl_id_print(ids[0], text));
    assert_string_equal(member(event, "user.login"), "ada");
    assert_string_equal(member(event, "user.name"), "ada");
    assert_string_equal(member(event, "target.id"), sl_id_print(ids[1], text));
    assert_string_equal(member(event, "target.login"), login);
    assert_string_equal(member(event, "target.name"), login);
    json_decref(event);
}

static void assert_counters(uint64_t user, const char *followers, const char *following)
{
    char room[65536], key[SL_KEY_SIZE];

    sl_key_of("user", user, key);
    assert_string_equal(core_text(&core, room, "HGET %s followers", key), followers);
    assert_string_equal(core_text(&core, room, "HGET %s following", key), following);
}

static void test_follow_in_one_shard_changes_both_sides(void **state)
{
    char login[16], key[SL_KEY_SIZE], room[65536], event_id[SL_ID_TEXT_SIZE];
    uint64_t ids[2], digest;

    (void)state;
    make_pair(true, ids, login);
    assert_int_equal(core_follow(&core, "ada", login, NULL), 0);
    assert_follow_event("follow", ids, login);
    assert_counters(ids[0], "0", "1");
    assert_counters(ids[1], "1", "0");
    sl_id_print(core.written.id, event_id);
    assert_string_equal(
        core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("following", ids[0], key), ids[1]),
        event_id);
    assert_string_equal(
        core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of("followers", ids[1], key), ids[0]),
        event_id);

    digest = core_digest(&core);
    assert_int_equal(core_follow(&core, "ada", login, NULL), 0);
    assert_int_equal(core.written.id, 0);
    assert_int_equal(core_digest(&core), digest);

    assert_int_equal(core_unfollow(&core, "ada", login, NULL), 0);
    assert_follow_event("unfollow", ids, login);
    assert_counters(ids[0], "0", "0");
    assert_counters(ids[1], "0", "0");
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("following", ids[0], key)), 0);
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("followers", ids[1], key)), 0);
    digest = core_digest(&core);
    assert_int_equal(core_unfollow(&core, "ada", login, NULL), 0);
    assert_int_equal(core.written.id, 0);
    assert_int_equal(core_digest(&core), digest);
}

static void test_follow_across_shards_leaves_a_task(void **state)
{
    char login[16], key[SL_KEY_SIZE], text[SL_ID_TEXT_SIZE];
    const redisReply *fields;
    redisReply *tasks;
    uint64_t ids[2];

    (void)state;
    if (shards == 1)
        return;
    make_pair(false, ids, login);
    assert_int_equal(core_follow(&core, "ada", login, NULL), 0);
    assert_follow_event("follow", ids, login);
    assert_counters(ids[0], "0", "1");
    assert_counters(ids[1], "0", "0"); /* until a worker runs */
    assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("followers", ids[1], key)), 0);
    tasks = core_command(&core, "XRANGE %s - +", sl_key(sl_id_shard(ids[0]), "tasks", key));
    assert_int_equal(tasks->elements, 1);
    fields = tasks->element[0]->element[1];
    assert_int_equal(fields->elements, 8);
    assert_string_equal(fields->element[1]->str, "follow");
    assert_string_equal(fields->element[3]->str, sl_id_print(core.written.id, text));
    assert_string_equal(fields->element[5]->str, sl_id_print(ids[0], text));
    assert_string_equal(fields->element[7]->str, sl_id_print(ids[1], text));
    freeReplyObject(tasks);

    assert_int_equal(core_unfollow(&core, "ada", login, NULL), 0);
    assert_follow_event("unfollow", ids, login);
    assert_counters(ids[0], "0", "0");
    assert_int_equal(core_number(&core, "XLEN %s", sl_key(sl_id_shard(ids[0]), "tasks", key)), 2);
}

static void test_follow_across_shards_needs_its_task(void **state)
{
    char login[16];
    uint64_t ids[2], digest;

    (void)state;
    if (shards == 1)
        return;
    make_pair(false, ids, login);
    freeReplyObject(core_command(&core, "SET sluice:{%u}:tasks x", (unsigned)sl_id_shard(ids[0])));
    digest = core_digest(&core);
    assert_int_equal(core_follow(&core, "ada", login, "r"), -EBADMSG);
    assert_int_equal(core_digest(&core), digest);
}

static void test_nobody_follows_themselves(void **state)
{
    uint64_t digest;

    (void)state;
    core_must_create(&core, "ada");
    digest = core_digest(&core);
    assert_int_equal(core_follow(&core, "ada", "ADA", NULL), -EINVAL);
    assert_string_equal(core.failure.text, "nobody can follow themselves");
    assert_int_equal(core_digest(&core), digest);
}

static void test_following_is_read_oldest_first(void **state)
{
    struct sl_call call = SL_CALL_INIT;
    char login[16], text[SL_ID_TEXT_SIZE];
    uint64_t ada = core_must_create(&core, "ada"), ids[20];
    redisReply *reply = NULL;
    size_t count;

    (void)state;
    for (int i = 0; i < 20; i++) {
        snprintf(login, sizeof(login), "user%d", i);
        ids[i] = core_must_create(&core, login);
    }
    for (int i = 19; i >= 0; i--) {
        snprintf(login, sizeof(login), "user%d", i);
        assert_int_equal(core_follow(&core, "ada", login, NULL), 0);
    }
    assert_int_equal(sl_following_call(&call, ada, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
    assert_int_equal(sl_following_reply(reply, &count, NULL), 0);
    assert_int_equal(count, 20);
    for (size_t i = 0; i < 20; i++)
        assert_true(sl_slice_is(sl_following_at(reply, i), sl_id_print(ids[19 - i], text)));
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* ---- request ids ---- */

static void test_repeated_request_is_done_once(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("once")};
    char login[16], key[SL_KEY_SIZE];
    uint64_t ids[2], first, digest;

    (void)state;
    make_pair(true, ids, login);
    assert_int_equal(core_create(&core, "carl", "Carl", "create"), 0);
    assert_false(core.written.is_repeated);
    first = core.written.id;
    digest = core_digest(&core);
    assert_int_equal(core_create(&core, "carl", "Carl", "create"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(core.written.id, first);
    assert_int_equal(core_digest(&core), digest);

    assert_int_equal(core_post(&core, "ada", &post, "post"), 0);
    first = core.written.id;
    assert_int_equal(core_follow(&core, "ada", login, "follow"), 0);
    assert_int_equal(core_follow(&core, "ada", login, "follow-nothing"), 0);
    assert_int_equal(core_unfollow(&core, "ada", login, "unfollow"), 0);
    assert_int_equal(core_delete(&core, "ada", first, "delete"), 0);
    digest = core_digest(&core);
    assert_int_equal(core_post(&core, "ada", &post, "post"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(core.written.id, first);
    assert_int_equal(core_follow(&core, "ada", login, "follow"), 0);
    assert_true(core.written.is_repeated && core.written.id > first);
    assert_int_equal(core_follow(&core, "ada", login, "follow-nothing"), 0);
    assert_true(core.written.is_repeated && core.written.id == 0);
    assert_int_equal(core_unfollow(&core, "ada", login, "unfollow"), 0);
    assert_true(core.written.is_repeated && core.written.id > first);
    assert_int_equal(core_delete(&core, "ada", first, "delete"), 0);
    assert_true(core.written.is_repeated && core.written.id > first);
    assert_int_equal(core_digest(&core), digest);

    snprintf(key, sizeof(key), "sluice:{%u}:done:post", (unsigned)sl_id_shard(ids[0]));
    assert_in_range(core_number(&core, "PTTL %s", key), 3500000, 3600000);
}

static void test_request_id_serves_one_request_only(void **state)
{
    const struct sl_post one = {.text = SL_SLICE("one")}, two = {.text = SL_SLICE("two")};
    uint64_t digest;

    (void)state;
    core_must_create(&core, "ada");
    assert_int_equal(core_post(&core, "ada", &one, "r"), 0);
    digest = core_digest(&core);
    assert_int_equal(core_post(&core, "ada", &two, "r"), -EALREADY);
    assert_int_equal(core_delete(&core, "ada", core.written.id, "r"), -EALREADY);
    assert_int_equal(core_digest(&core), digest);
}

static void test_refused_request_may_be_sent_again(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("t")};

    (void)state;
    assert_int_equal(core_post(&core, "ada", &post, "r"), -ENOENT);
    core_must_create(&core, "ada");
    assert_int_equal(core_post(&core, "ada", &post, "r"), 0);
    assert_false(core.written.is_repeated);
}

/* ---- the clock ---- */

static void test_ids_grow_when_the_clock_has_stepped_back(void **state)
{
    uint64_t ada = core_must_create(&core, "ada");
    uint64_t ahead = sl_id_first_at(clock_wall_ms() + 3600000) + sl_id_shard(ada) * 64 + 61;
    struct logged logged;

    (void)state;
    freeReplyObject(
        core_command(&core, "SET sluice:{%u}:clock %" PRIu64, (unsigned)sl_id_shard(ada), ahead));
    assert_int_equal(core_must_post(&core, "ada", "1"), ahead + 1);
    assert_int_equal(core_must_post(&core, "ada", "2"), ahead + 2);
    /* 64 ids of this millisecond are used up: the first one of the next */
    assert_int_equal(core_must_post(&core, "ada", "3"), ahead - 61 + 4096);
    assert_int_equal(core_must_post(&core, "ada", "4"), ahead - 61 + 4097);
    read_newest(sl_id_shard(ada), &logged);
    assert_int_equal(logged.previous, ahead - 61 + 4096);
}

static void test_ids_stay_above_the_log_when_the_clock_is_lost(void **state)
{
    uint64_t ada = core_must_create(&core, "ada");
    uint64_t ahead = sl_id_first_at(clock_wall_ms() + 3600000) + sl_id_shard(ada) * 64 + 5;

    (void)state;
    freeReplyObject(core_command(&core, "XADD sluice:{%u}:log %" PRIu64 "-0 p 0 e {}",
                                 (unsigned)sl_id_shard(ada), ahead));
    freeReplyObject(core_command(&core, "DEL sluice:{%u}:clock", (unsigned)sl_id_shard(ada)));
    assert_int_equal(core_must_post(&core, "ada", "1"), ahead + 1);
    /* an entry that Sluice did not write, between the ids of this shard */
    freeReplyObject(core_command(&core, "XADD sluice:{%u}:log %" PRIu64 "-7 p 0 e {}",
                                 (unsigned)sl_id_shard(ada), ahead - 5 + 4096 - 1));
    assert_int_equal(core_must_post(&core, "ada", "2") % 4096, sl_id_shard(ada) * 64);
    assert_true(core.written.id > ahead - 5 + 4096 - 1);
}

static void test_hundreds_of_ids_in_a_millisecond_are_unique_and_growing(void **state)
{
    enum { COUNT = 500 };
    static struct sl_call calls[COUNT];
    static redisReply *replies[COUNT];
    const struct sl_post post = {.text = SL_SLICE("t")};
    uint64_t ada = core_must_create(&core, "ada"), last = ada;
    const struct sl_user_ref author = sl_user_by_id(ada);
    struct sl_written written;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(sl_post_call(&calls[i], &core.meta, SL_SLICE_NONE, &author, &post, NULL),
                         0);
    assert_int_equal(sl_redis_link_run_many(core.link, calls, COUNT, replies, NULL), 0);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(sl_write_reply(replies[i], &written, NULL), 0);
        assert_true(written.id > last);
        assert_int_equal(sl_id_shard(written.id), sl_id_shard(ada));
        last = written.id;
        freeReplyObject(replies[i]);
        sl_call_done(&calls[i]);
    }
}

static void test_times_are_right_on_every_kind_of_day(void **state)
{
    static const char *const days[] = {"2027-01-01T00:00:00.000Z", "2028-02-28T23:59:59.999Z",
                                       "2028-02-29T12:34:56.789Z", "2028-03-01T00:00:00.000Z",
                                       "2030-12-31T23:59:59.999Z", "2064-02-29T00:00:00.001Z",
                                       "2095-08-31T09:08:07.006Z"};
    uint64_t ada = core_must_create(&core, "ada");
    uint32_t shard = sl_id_shard(ada);
    struct logged logged;

    (void)state;
    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
        uint64_t unix_ms;
        json_t *event;

        assert_int_equal(clock_parse_rfc3339(sl_slice_str(days[i]), &unix_ms), 0);
        freeReplyObject(core_command(&core, "SET sluice:{%u}:clock %" PRIu64, (unsigned)shard,
                                     sl_id_first_at(unix_ms) + shard * 64));
        core_must_post(&core, "ada", "t");
        read_newest(shard, &logged);
        event = parse(logged.json);
        assert_string_equal(member(event, "at"), days[i]);
        assert_string_equal(member(event, "post.created_at"), days[i]);
        json_decref(event);
    }
}

static void test_clock_without_ids_left_refuses(void **state)
{
    static const char *const clocks[] = {
        "9007199254740991", "1e300", "nan", "inf", "-5", "1.5", "soon"};
    uint64_t ada = core_must_create(&core, "ada"), digest;
    const struct sl_post post = {.text = SL_SLICE("t")};

    (void)state;
    for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
        freeReplyObject(
            core_command(&core, "SET sluice:{%u}:clock %s", (unsigned)sl_id_shard(ada), clocks[i]));
        digest = core_digest(&core);
        assert_int_equal(core_post(&core, "ada", &post, "r"), -EBADMSG);
        assert_int_equal(core_digest(&core), digest);
    }
}

/* ---- corrupt data ---- */

/* Stores a wrong value at `key`; every operation that needs it must fail and change nothing. */
static void assert_nothing_half_done(const char *key, const char *other, uint64_t post)
{
    const struct sl_post text = {.text = SL_SLICE("t")};
    struct sl_post reply = {.text = SL_SLICE("t")};
    char id[SL_ID_TEXT_SIZE];
    int failed = 0;

    freeReplyObject(core_command(&core, "DEL %s", key));
    if (strcmp(other, "string") == 0)
        freeReplyObject(core_command(&core, "SET %s words", key));
    else
        freeReplyObject(core_command(&core, "RPUSH %s words", key));
    reply.reply_to.post = sl_slice_str(sl_id_print(post, id));

    for (int operation = 0; operation < 6; operation++) {
        uint64_t digest = core_digest(&core);
        int r = 0;

        switch (operation) {
        case 0:
            r = core_create(&core, "new", NULL, "r0");
            break;
        case 1:
            r = core_post(&core, "ada", &text, "r1");
            break;
        case 2:
            r = core_post(&core, "ada", &reply, "r2");
            break;
        case 3:
            r = core_delete(&core, "ada", post, "r3");
            break;
        case 4:
            r = core_follow(&core, "ada", "bob", "r4");
            break;
        case 5:
            r = core_unfollow(&core, "ada", "carl", "r5");
            break;
        }
        if (r < 0) {
            failed++;
            if (core_digest(&core) != digest)
                fail_msg("operation %d with a %s at %s changed something: %s", operation, other,
                         key, core.failure.text);
        }
    }
    if (failed == 0)
        fail_msg("no operation minded a %s at %s", other, key);
}

static void test_other_types_at_any_key_leave_nothing_half_done(void **state)
{
    static const char *const shard_keys[] = {"meta", "clock", "log", "logins", "done:r1"};
    static const char *const user_keys[] = {"user", "profile", "following", "followers"};
    static const char *const others[] = {"string", "list"};
    char key[SL_KEY_SIZE];

    (void)state;
    for (int i = 0; i < 2 * (5 + 2 * 4 + 1); i++) {
        uint64_t ada, bob, post;
        int k = i / 2;

        core_reset(&core, shards);
        ada = core_must_create(&core, "ada");
        bob = core_must_create(&core, "bob");
        core_must_create(&core, "carl");
        post = core_must_post(&core, "ada", "first");
        assert_int_equal(core_follow(&core, "ada", "carl", NULL), 0);
        if (k < 5)
            sl_key(sl_id_shard(ada), shard_keys[k], key);
        else if (k < 9)
            sl_key_of(user_keys[k - 5], ada, key);
        else if (k < 13)
            sl_key_of(user_keys[k - 9], bob, key);
        else
            sl_key_of("post", post, key);
        /* operations that do not read the key: bob's profile and follows, ada's followers; and a
         * string is the right type for clock and done */
        if ((k >= 9 && (k == 10 || k == 11)) || k == 8 || (i % 2 == 0 && (k == 1 || k == 4)) ||
            (k >= 9 && k < 13 && sl_id_shard(bob) != sl_id_shard(ada)))
            continue;
        assert_nothing_half_done(key, others[i % 2], post);
    }
}

static void test_damaged_counters_and_limits_refuse(void **state)
{
    static const char *const counters[] = {"followers", "following", "posts"};
    static const char *const limits[][2] = {{"log_count", "0"},    {"log_count", "many"},
                                            {"log_count", "nan"},  {"log_age_ms", "-1"},
                                            {"log_age_ms", "inf"}, {"log_count", "1e300"}};
    const struct sl_post post = {.text = SL_SLICE("t")};
    uint64_t ada, digest;

    (void)state;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        core_reset(&core, shards);
        ada = core_must_create(&core, "ada");
        freeReplyObject(core_command(&core, "HSET %s %s x", sl_key_of("user", ada, (char[64]){0}),
                                     counters[i]));
        digest = core_digest(&core);
        assert_int_equal(core_post(&core, "ada", &post, NULL), -EBADMSG);
        assert_int_equal(core_digest(&core), digest);
    }
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        core_reset(&core, shards);
        ada = core_must_create(&core, "ada");
        freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta %s %s",
                                     (unsigned)sl_id_shard(ada), limits[i][0], limits[i][1]));
        digest = core_digest(&core);
        assert_int_equal(core_post(&core, "ada", &post, NULL), -EBADMSG);
        assert_int_equal(core_digest(&core), digest);
    }
}

static void test_delete_works_when_the_profile_lacks_the_post(void **state)
{
    uint64_t ada = core_must_create(&core, "ada"), id = core_must_post(&core, "ada", "t");
    char room[65536];

    (void)state;
    freeReplyObject(core_command(&core, "DEL %s", sl_key_of("profile", ada, (char[64]){0})));
    assert_int_equal(core_delete(&core, "ada", id, NULL), 0);
    assert_string_equal(
        core_text(&core, room, "HGET %s posts", sl_key_of("user", ada, (char[64]){0})), "1");
}

/* ---- metadata and the log ---- */

static void test_nothing_works_before_init_or_with_other_shards(void **state)
{
    const struct sl_post post = {.text = SL_SLICE("t")};
    char has_shards[32];

    (void)state;
    snprintf(has_shards, sizeof(has_shards), "has %u shards", (unsigned)shards);
    core_must_create(&core, "ada");
    core.meta.shards = shards == 1 ? 2 : 1;
    assert_int_equal(core_post(&core, "ada", &post, NULL), -ESTALE);
    assert_non_null(strstr(core.failure.text, has_shards));
    core.meta.shards = shards;
    freeReplyObject(core_command(&core, "FLUSHALL"));
    assert_int_equal(core_post(&core, "ada", &post, NULL), -ENODATA);
    assert_int_equal(core_number(&core, "DBSIZE"), 0);
}

static void test_database_is_made_once_and_completed_when_broken_off(void **state)
{
    struct sl_meta wanted = sl_meta_wanted(shards == 1 ? 2 : 1), found;

    (void)state;
    assert_int_equal(sl_redis_link_meta(core.link, &wanted, &found, NULL), 0);
    assert_false(found.is_new);
    assert_int_equal(found.shards, shards);
    assert_string_equal(found.database_id, core.meta.database_id);
    assert_int_equal(core_number(&core, "DBSIZE"), 2 * shards); /* meta and tasks */

    if (shards == 1)
        return;
    freeReplyObject(core_command(&core, "DEL sluice:{5}:meta"));
    assert_int_equal(sl_redis_link_meta(core.link, &wanted, &found, NULL), 0);
    assert_int_equal(core_number(&core, "EXISTS sluice:{5}:meta"), 1);
    freeReplyObject(core_command(&core, "HSET sluice:{5}:meta database %s", wanted.database_id));
    assert_int_equal(sl_redis_link_meta(core.link, &wanted, &found, &core.failure), -EBADMSG);
}

/* ---- in a cluster ---- */

static struct sl_meta found_as(bool is_clustered)
{
    struct sl_meta wanted = core.meta, found;

    wanted.is_clustered = is_clustered;
    for (uint32_t shard = 0; shard < shards; shard++) {
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply = NULL;

        assert_int_equal(sl_meta_call(&call, shard, &wanted, NULL), 0);
        assert_int_equal(sl_redis_link_run(core.link, &call, &reply, NULL), 0);
        assert_int_equal(sl_meta_reply(reply, &found, NULL), 0);
        freeReplyObject(reply);
        sl_call_done(&call);
    }
    return found;
}

static void test_database_in_a_cluster_stays_one(void **state)
{
    (void)state;
    assert_int_equal(found_as(false).is_clustered, core.is_clustered);
    assert_true(found_as(true).is_clustered);
    assert_true(found_as(false).is_clustered); /* for a connection that does not say */
    assert_string_equal(found_as(true).database_id, core.meta.database_id);
}

static void test_database_in_a_cluster_publishes_by_shard(void **state)
{
    uint64_t ada = core_must_create(&core, "ada"), id;
    unsigned shard = sl_id_shard(ada);
    redisContext *plain = core_connect(&core, shard), *sharded = core_connect(&core, shard);
    char id_text[SL_ID_TEXT_SIZE];
    redisReply *reply = NULL;

    (void)state;
    found_as(true);
    redis_server_run(plain, "SUBSCRIBE sluice:{%u}:live", shard);
    redis_server_run(sharded, "SSUBSCRIBE sluice:{%u}:live", shard);
    id = core_must_post(&core, "ada", "t");
    assert_int_equal(redisGetReply(sharded, (void **)&reply), REDIS_OK);
    assert_string_equal(reply->element[0]->str, "smessage");
    sl_id_print(id, id_text);
    assert_memory_equal(reply->element[2]->str, id_text, strlen(id_text));
    freeReplyObject(reply);
    reply = redisCommand(plain, "PING"); /* its answer comes next: there was no message */
    assert_string_equal(reply->element[0]->str, "pong");
    freeReplyObject(reply);
    freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta pubsub other", shard));
    assert_int_equal(core_post(&core, "ada", &(struct sl_post){.text = SL_SLICE("t")}, NULL),
                     -EBADMSG);
    redisFree(plain);
    redisFree(sharded);
}

/* For a slot that is being moved EXISTS returns an error, as it does for a user without the
 * permission. */
static void test_shard_that_is_being_moved_is_left_alone(void **state)
{
    const struct sl_redis_link_options options = {.retry_ms = 0};
    const struct sl_post post = {.text = SL_SLICE("t")};
    struct sl_redis_link *link = core.link;
    struct sl_redis_address address;
    uint64_t digest, id;

    (void)state;
    core_must_create(&core, "ada");
    core_must_create(&core, "bob");
    id = core_must_post(&core, "ada", "t");
    found_as(true);
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core.url), &address, NULL), 0);
    assert_int_equal(sl_redis_link_open(&address, &options, &core.link, NULL), 0);
    digest = core_digest(&core);
    freeReplyObject(core_command(&core, "ACL SETUSER default -exists"));
    assert_int_equal(core_post(&core, "ada", &post, NULL), -EAGAIN);
    assert_non_null(strstr(core.failure.text, "being moved"));
    assert_int_equal(core_create(&core, "eve", "Eve", NULL), -EAGAIN);
    assert_int_equal(core_delete(&core, "ada", id, NULL), -EAGAIN);
    assert_int_equal(core_follow(&core, "ada", "bob", NULL), -EAGAIN);
    assert_int_equal(core_mute(&core, "ada", "bob", NULL), -EAGAIN);
    freeReplyObject(core_command(&core, "ACL SETUSER default +exists"));
    assert_int_equal(core_digest(&core), digest);
    assert_int_equal(core_post(&core, "ada", &post, NULL), 0);
    sl_redis_link_close(core.link);
    core.link = link;
}

static void test_log_is_trimmed_by_count(void **state)
{
    uint64_t ada = core_must_create(&core, "ada");
    unsigned shard = sl_id_shard(ada);
    long long length;

    (void)state;
    freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta log_count 300", shard));
    for (int i = 0; i < 1000; i++)
        core_must_post(&core, "ada", "t");
    length = core_number(&core, "XLEN sluice:{%u}:log", shard);
    assert_in_range(length, 300, 300 + 100); /* only whole nodes of 100 entries are removed */
}

static void test_log_is_trimmed_by_age(void **state)
{
    uint64_t ada = core_must_create(&core, "ada");
    unsigned shard = sl_id_shard(ada);

    (void)state;
    core_number(&core, "DEL sluice:{%u}:log", shard); /* no further entries will follow */
    for (int i = 0; i < 250; i++)
        freeReplyObject(core_command(&core, "XADD sluice:{%u}:log %" PRIu64 "-0 p 0 e {}", shard,
                                     sl_id_first_at(clock_wall_ms() - 90000000) + (uint64_t)i));
    core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "XLEN sluice:{%u}:log", shard),
                     51); /* a whole node stays */
    freeReplyObject(core_command(&core, "HSET sluice:{%u}:meta log_age_ms 200000000", shard));
    for (int i = 0; i < 60; i++)
        core_must_post(&core, "ada", "t");
    assert_int_equal(core_number(&core, "XLEN sluice:{%u}:log", shard), 111);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_user_is_kept_and_found_by_any_spelling),
        CORE_TEST(test_login_is_taken_in_every_spelling),
        CORE_TEST(test_of_two_creations_at_once_one_wins),
        CORE_TEST(test_post_becomes_state_log_entry_and_message_alike),
        CORE_TEST(test_every_text_comes_back_as_it_was_given),
        CORE_TEST(test_reply_finds_the_author_of_its_post),
        CORE_TEST(test_delete_publishes_the_post_as_it_was),
        CORE_TEST(test_only_the_author_deletes),
        CORE_TEST(test_unknown_users_change_nothing),
        CORE_TEST(test_follow_in_one_shard_changes_both_sides),
        CORE_TEST(test_follow_across_shards_leaves_a_task),
        CORE_TEST(test_follow_across_shards_needs_its_task),
        CORE_TEST(test_nobody_follows_themselves),
        CORE_TEST(test_following_is_read_oldest_first),
        CORE_TEST(test_repeated_request_is_done_once),
        CORE_TEST(test_request_id_serves_one_request_only),
        CORE_TEST(test_refused_request_may_be_sent_again),
        CORE_TEST(test_ids_grow_when_the_clock_has_stepped_back),
        CORE_TEST(test_ids_stay_above_the_log_when_the_clock_is_lost),
        CORE_TEST(test_hundreds_of_ids_in_a_millisecond_are_unique_and_growing),
        CORE_TEST(test_times_are_right_on_every_kind_of_day),
        CORE_TEST(test_clock_without_ids_left_refuses),
        CORE_TEST(test_other_types_at_any_key_leave_nothing_half_done),
        CORE_TEST(test_damaged_counters_and_limits_refuse),
        CORE_TEST(test_delete_works_when_the_profile_lacks_the_post),
        CORE_TEST(test_nothing_works_before_init_or_with_other_shards),
        CORE_TEST(test_database_is_made_once_and_completed_when_broken_off),
        CORE_TEST(test_database_in_a_cluster_stays_one),
        CORE_TEST(test_database_in_a_cluster_publishes_by_shard),
        CORE_TEST(test_shard_that_is_being_moved_is_left_alone),
        CORE_TEST(test_log_is_trimmed_by_count),
        CORE_TEST(test_log_is_trimmed_by_age),
    };

    return core_group_run(tests);
}
