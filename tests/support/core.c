#include "tests/support/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "src/call/reply.h"
#include "src/database/meta.h"
#include "src/database/forms.h"
#include "src/database/settings.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/tasks/worker.h"
#include "tests/support/cmocka_all.h"

bool core_is_clustered(void)
{
    const char *kind = getenv("SLUICE_TEST_REDIS");

    return kind && strcmp(kind, "cluster") == 0;
}

static const struct redis_server *server_at(const struct core *core, size_t i)
{
    return core->is_clustered ? &core->cluster.nodes[i].server : &core->server;
}

static size_t owner_of(const struct core *core, uint32_t shard)
{
    return core->is_clustered ? redis_cluster_owner(shard) : 0;
}

void core_init(struct core *core)
{
    const struct sl_redis_link_options options = {.retry_ms = 5000};
    struct sl_redis_address address;

    *core = (struct core){.is_clustered = core_is_clustered()};
    if (core->is_clustered) {
        redis_cluster_init(&core->cluster);
        core->url = core->cluster.url;
        core->redis_count = REDIS_CLUSTER_MASTERS;
    } else {
        redis_server_init(&core->server, false);
        core->url = core->server.url;
        core->redis_count = 1;
    }
    for (size_t i = 0; i < core->redis_count; i++)
        core->redis[i] = redis_server_connect(server_at(core, i));
    assert_int_equal(sl_redis_address_parse(sl_slice_str(core->url), &address, NULL), 0);
    assert_int_equal(sl_redis_link_open(&address, &options, &core->link, NULL), 0);
}

void core_done(struct core *core)
{
    sl_redis_link_close(core->link);
    for (size_t i = 0; i < core->redis_count; i++)
        redisFree(core->redis[i]);
    if (core->is_clustered)
        redis_cluster_done(&core->cluster);
    else
        redis_server_done(&core->server);
}

void core_reset(struct core *core, uint32_t shards)
{
    const struct sl_meta wanted = sl_meta_wanted(shards);

    freeReplyObject(core_command(core, "FLUSHALL"));
    assert_int_equal(sl_redis_link_meta(core->link, &wanted, &core->meta, NULL), 0);
    assert_true(core->meta.is_new);
}

/* Sends what a builder built with result `r`. */
static int run(struct core *core, struct sl_call *call, int r)
{
    redisReply *reply = NULL;

    if (r == 0)
        r = sl_redis_link_run(core->link, call, &reply, &core->failure);
    if (r == 0)
        r = sl_write_reply(reply, &core->written, &core->failure);
    freeReplyObject(reply);
    sl_call_done(call);
    return r;
}

int core_create(struct core *core, const char *login, const char *name, const char *request_id)
{
    struct sl_call call = SL_CALL_INIT;

    return run(core, &call,
               sl_user_create_call(&call, &core->meta, sl_slice_str(request_id),
                                   sl_slice_str(login), sl_slice_str(name), &core->failure));
}

static int post_as_it_is(struct core *core, const struct sl_user_ref *author,
                         const struct sl_post *post, const char *request_id)
{
    struct sl_call call = SL_CALL_INIT;

    return run(
        core, &call,
        sl_post_call(&call, &core->meta, sl_slice_str(request_id), author, post, &core->failure));
}

static int ask(struct core *core, struct sl_call *call, int r, redisReply **ret_reply)
{
    if (r == 0)
        r = sl_redis_link_run(core->link, call, ret_reply, &core->failure);
    sl_call_done(call);
    return r;
}

static int find_user(struct core *core, const struct sl_user_ref *who, struct sl_user *ret_user)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = ask(core, &call, sl_user_find_call(&call, &core->meta, who, &core->failure), &reply);
    if (r == 0)
        r = sl_user_find_reply(reply, ret_user, &core->failure);
    ret_user->login = ret_user->name = SL_SLICE_NONE; /* they point into the reply */
    freeReplyObject(reply);
    return r;
}

/* Looks up the posts of other shards to which the post refers. `ret_found` owns what the references
 * borrow. */
static int look_up_references(struct core *core, const struct sl_user_ref *author,
                              struct sl_post *post, redisReply *ret_found[static 3])
{
    struct sl_post_reference *const references[] = {&post->reply_to, &post->repost_of,
                                                    &post->quote_of};
    struct sl_user writer;
    int r = find_user(core, author, &writer);

    for (size_t i = 0; r == 0 && i < 3; i++) {
        struct sl_call call = SL_CALL_INIT;
        uint64_t id;

        if (references[i]->user.data || sl_id_parse(references[i]->post, &id) < 0 ||
            sl_id_shard(id) == sl_id_shard(writer.id))
            continue;
        r = ask(core, &call, sl_post_author_call(&call, &core->meta, writer.id, id, &core->failure),
                &ret_found[i]);
        if (r == 0)
            r = sl_post_author_reply(ret_found[i], references[i], &core->failure);
        post->is_comment = post->is_comment || i == 0;
    }
    return r;
}

int core_post(struct core *core, const char *login, const struct sl_post *post,
              const char *request_id)
{
    const struct sl_user_ref author = sl_user_by_login(sl_slice_str(login));
    redisReply *found[3] = {0};
    struct sl_post whole = *post;
    int r;

    r = post_as_it_is(core, &author, post, request_id);
    if (r == -EXDEV) {
        r = look_up_references(core, &author, &whole, found);
        if (r == 0)
            r = post_as_it_is(core, &author, &whole, request_id);
    }
    for (size_t i = 0; i < 3; i++)
        freeReplyObject(found[i]);
    return r;
}

int core_delete(struct core *core, const char *login, uint64_t post, const char *request_id)
{
    const struct sl_user_ref user = sl_user_by_login(sl_slice_str(login));
    struct sl_call call = SL_CALL_INIT;

    return run(
        core, &call,
        sl_delete_call(&call, &core->meta, sl_slice_str(request_id), &user, post, &core->failure));
}

static int change(struct core *core, const char *login, const char *target, const char *request_id,
                  int (*build)(struct sl_call *, const struct sl_meta *, struct sl_slice,
                               const struct sl_user_ref *, const struct sl_user *,
                               struct failure *))
{
    const struct sl_user_ref user = sl_user_by_login(sl_slice_str(login));
    const struct sl_user_ref target_ref = sl_user_by_login(sl_slice_str(target));
    struct sl_user whom = {.login = sl_slice_str(target)};
    struct sl_call call = SL_CALL_INIT, find = SL_CALL_INIT;
    redisReply *found = NULL;
    int r;

    r = build(&call, &core->meta, sl_slice_str(request_id), &user, &whom, &core->failure);
    if (r == -EXDEV) {
        r = sl_user_find_call(&find, &core->meta, &target_ref, &core->failure);
        if (r == 0)
            r = sl_redis_link_run(core->link, &find, &found, &core->failure);
        if (r == 0)
            r = sl_user_find_reply(found, &whom, &core->failure);
        if (r == 0)
            r = build(&call, &core->meta, sl_slice_str(request_id), &user, &whom, &core->failure);
    }
    r = run(core, &call, r);
    freeReplyObject(found);
    sl_call_done(&find);
    return r;
}

int core_follow(struct core *core, const char *login, const char *target, const char *request_id)
{
    return change(core, login, target, request_id, sl_follow_call);
}

int core_unfollow(struct core *core, const char *login, const char *target, const char *request_id)
{
    return change(core, login, target, request_id, sl_unfollow_call);
}

int core_hide(struct core *core, const char *login, const char *target, const char *request_id)
{
    return change(core, login, target, request_id, sl_hide_call);
}

int core_unhide(struct core *core, const char *login, const char *target, const char *request_id)
{
    return change(core, login, target, request_id, sl_unhide_call);
}

int core_mute(struct core *core, const char *login, const char *target, const char *request_id)
{
    return change(core, login, target, request_id, sl_mute_call);
}

int core_unmute(struct core *core, const char *login, const char *target, const char *request_id)
{
    return change(core, login, target, request_id, sl_unmute_call);
}

uint64_t core_must_create(struct core *core, const char *login)
{
    if (core_create(core, login, NULL, NULL) < 0)
        fail_msg("create %s: %s", login, core->failure.text);
    return core->written.id;
}

uint64_t core_must_post(struct core *core, const char *login, const char *text)
{
    const struct sl_post post = {.text = sl_slice_str(text)};

    if (core_post(core, login, &post, NULL) < 0)
        fail_msg("post by %s: %s", login, core->failure.text);
    return core->written.id;
}

static void work(struct core *core, uint32_t lease_ms)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .lease_ms = lease_ms, .until_empty = true};
    struct sl_redis_address address;
    struct sl_worker *worker;

    assert_int_equal(sl_redis_address_parse(sl_slice_str(core->url), &address, NULL), 0);
    assert_int_equal(sl_worker_new(&address, &core->meta, &options, &worker, NULL), 0);
    assert_int_equal(sl_worker_run(worker, NULL), 0);
    sl_worker_free(worker);
}

void core_work(struct core *core)
{
    work(core, 1);
}

void core_work_fast(struct core *core)
{
    work(core, 0);
}

void core_set(struct core *core, const char *name, const char *value)
{
    const struct sl_setting *setting;
    uint64_t number;
    size_t i;

    assert_int_equal(sl_setting_find(sl_slice_str(name), &i, NULL), 0);
    setting = sl_setting_at(i);
    assert_int_equal(sl_setting_parse(setting, sl_slice_str(value), &number, NULL), 0);
    for (uint32_t k = 0; k < core->meta.shards * sl_setting_rounds(setting); k++) {
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply = NULL;

        assert_int_equal(sl_setting_change_call(&call, &core->meta, k % core->meta.shards, setting,
                                                &number, NULL),
                         0);
        assert_int_equal(sl_redis_link_run(core->link, &call, &reply, NULL), 0);
        assert_int_equal(sl_reply_check(reply, NULL), 0);
        freeReplyObject(reply);
        sl_call_done(&call);
    }
}

void core_upgrade(struct core *core, uint32_t shard)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;

    assert_int_equal(sl_upgrade_call(&call, &core->meta, shard, (1U << SL_FORMS) - 1, NULL), 0);
    assert_int_equal(sl_redis_link_run(core->link, &call, &reply, NULL), 0);
    assert_int_equal(sl_reply_check(reply, NULL), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
}

redisReply *core_home(struct core *core, uint64_t reader)
{
    char key[SL_KEY_SIZE];

    return core_command(core, "EVAL %s 1 %s",
                        "local is_list = redis.call('TYPE', KEYS[1]).ok == 'list' "
                        "return redis.call(is_list and 'LRANGE' or 'ZREVRANGE', KEYS[1], 0, -1)",
                        sl_key_of("home", reader, key));
}

redisContext *core_connect(const struct core *core, uint32_t shard)
{
    return redis_server_connect(server_at(core, owner_of(core, shard)));
}

redisContext *core_listen(const struct core *core, uint32_t shard)
{
    redisContext *listener = core_connect(core, shard);

    redis_server_run(listener, "%s sluice:{%u}:live",
                     core->is_clustered ? "SSUBSCRIBE" : "SUBSCRIBE", (unsigned)shard);
    return listener;
}

void core_publish(struct core *core, uint32_t shard, const char *message)
{
    freeReplyObject(core_command(core, "%s sluice:{%u}:live %s",
                                 core->is_clustered ? "SPUBLISH" : "PUBLISH", (unsigned)shard,
                                 message));
}

/* Returns the shard of the first key in a formatted command; -ENOENT: it names none. */
static int named_shard(const char *bytes, size_t size)
{
    static const char prefix[] = "sluice:{";
    const char *found = memmem(bytes, size, prefix, sizeof(prefix) - 1);

    if (!found || found[sizeof(prefix) - 1] < '0' || found[sizeof(prefix) - 1] > '9')
        return -ENOENT;
    return (int)strtoul(found + sizeof(prefix) - 1, NULL, 10);
}

static redisReply *ask_one(redisContext *redis, const char *bytes, size_t size, const char *format)
{
    redisReply *reply = NULL;

    redisAppendFormattedCommand(redis, bytes, size);
    redisGetReply(redis, (void **)&reply);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", format, reply ? reply->str : redis->errstr);
    return reply;
}

/* Adds the reply of another master to `all`, and frees it. */
static void merge(redisReply *all, redisReply *other)
{
    if (all->type == REDIS_REPLY_ARRAY) {
        const size_t count = all->elements + other->elements;

        all->element = realloc(all->element, (count + 1) * sizeof(*all->element));
        assert_non_null(all->element);
        memcpy(all->element + all->elements, other->element,
               other->elements * sizeof(*all->element));
        all->elements = count;
        other->elements = 0;
    } else if (all->type == REDIS_REPLY_INTEGER) {
        all->integer += other->integer;
    } else if (all->type == REDIS_REPLY_STRING) {
        all->str = realloc(all->str, all->len + other->len + 1);
        assert_non_null(all->str);
        memcpy(all->str + all->len, other->str, other->len + 1);
        all->len += other->len;
    }
    freeReplyObject(other);
}

static redisReply *ask_all(struct core *core, const char *format, va_list args)
{
    char *bytes;
    int size = redisvFormatCommand(&bytes, format, args), shard;
    redisReply *reply;

    assert_true(size > 0);
    shard = named_shard(bytes, (size_t)size);
    if (shard >= 0) {
        reply = ask_one(core->redis[owner_of(core, (uint32_t)shard)], bytes, (size_t)size, format);
    } else {
        reply = ask_one(core->redis[0], bytes, (size_t)size, format);
        for (size_t i = 1; i < core->redis_count; i++)
            merge(reply, ask_one(core->redis[i], bytes, (size_t)size, format));
    }
    redisFreeCommand(bytes);
    return reply;
}

redisReply *core_command(struct core *core, const char *format, ...)
{
    redisReply *reply;
    va_list args;

    va_start(args, format);
    reply = ask_all(core, format, args);
    va_end(args);
    return reply;
}

long long core_number(struct core *core, const char *format, ...)
{
    redisReply *reply;
    long long number;
    va_list args;

    va_start(args, format);
    reply = ask_all(core, format, args);
    va_end(args);
    assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
    number = reply->integer;
    freeReplyObject(reply);
    return number;
}

const char *core_text(struct core *core, char room[static 65536], const char *format, ...)
{
    redisReply *reply;
    va_list args;

    va_start(args, format);
    reply = ask_all(core, format, args);
    va_end(args);
    room[0] = '\0';
    if (reply->type != REDIS_REPLY_NIL) {
        assert_true(reply->len < 65536);
        memcpy(room, reply->str, reply->len + 1);
    }
    freeReplyObject(reply);
    return room;
}

/* A sum over all keys, so that their order does not matter; DUMP returns the content of a key. */
uint64_t core_digest(struct core *core)
{
    const struct hash_key key = {1, 2};
    redisReply *keys = core_command(core, "KEYS *");
    uint64_t sum = 0;

    for (size_t i = 0; i < keys->elements; i++) {
        const redisReply *name = keys->element[i];
        redisReply *dump = core_command(core, "DUMP %b", name->str, name->len);

        sum += hash_bytes(key, name->str, name->len) * 31 + hash_bytes(key, dump->str, dump->len);
        freeReplyObject(dump);
    }
    freeReplyObject(keys);
    return sum;
}
