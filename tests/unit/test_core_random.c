/* Thousands of random operations, compared with a simple model: does Redis hold exactly what the
 * model says, and do log and channel agree with the state?
 *
 * SLUICE_TEST_SEED=N repeats a run; each run prints its seed. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "src/model/id.h"
#include "src/model/keys.h"
#include "tests/support/core_group.h"
#include "tests/support/draw.h"

enum { USERS = 12, POSTS = 4000, OPERATIONS = 4000 };

struct model_post {
    uint64_t id;
    int author;
    bool is_deleted;
};

/* The model. */
static uint64_t user_ids[USERS]; /* 0: does not exist yet */
static struct model_post posts[POSTS];
static size_t post_count;
static bool follows[USERS][USERS];
static size_t event_count;
static uint64_t newest_id; /* of operations in one shard; another shard may have smaller ids */

static redisContext *listeners[SL_SHARDS_MAX];

static const char *login_of(int user)
{
    static char logins[2][16];
    static int which;

    which = !which;
    /* in any spelling */
    snprintf(logins[which], sizeof(logins[which]), draw(2) ? "user%d" : "USER%d", user);
    return logins[which];
}

static void expect(int r, int expected, const char *operation)
{
    if (r != expected)
        fail_msg("seed %" PRIu64 ": %s gave %d (%s), not %d", draw_seed, operation, r,
                 r < 0 ? core.failure.text : "", expected);
}

/* After a success: the id is new, or (changed false) 0. */
static void expect_written(bool changed, const char *operation)
{
    if (changed != (core.written.id != 0) || core.written.is_repeated)
        fail_msg("seed %" PRIu64 ": %s wrote %" PRIu64, draw_seed, operation, core.written.id);
    if (changed && core.meta.shards == 1) {
        if (core.written.id <= newest_id)
            fail_msg("seed %" PRIu64 ": %s: ids do not grow", draw_seed, operation);
        newest_id = core.written.id;
    }
}

/* Sends it again with the same request id: the same answer, and no second effect. */
#define AGAIN(call)                                                                                \
    do {                                                                                           \
        uint64_t id_before = core.written.id;                                                      \
        expect(call, 0, "repeated " #call);                                                        \
        if (!core.written.is_repeated || core.written.id != id_before)                             \
            fail_msg("seed %" PRIu64 ": repeated %s wrote %" PRIu64, draw_seed, #call,             \
                     core.written.id);                                                             \
    } while (0)

static void do_create(const char *request)
{
    int user = (int)draw(USERS);
    const char *login = login_of(user);

    if (user_ids[user]) {
        expect(core_create(&core, login, NULL, request), -EEXIST, "create");
        return;
    }
    expect(core_create(&core, login, "N", request), 0, "create");
    expect_written(true, "create");
    user_ids[user] = core.written.id;
    event_count++;
    if (request)
        AGAIN(core_create(&core, login, "N", request));
}

static void do_post(const char *request)
{
    int user = (int)draw(USERS);
    char text[32], reply_to[SL_ID_TEXT_SIZE];
    struct sl_post post = {.has_point = draw(2), .lon = draw(360) - 180.0, .lat = 0.1 * draw(900)};
    const struct model_post *other = post_count > 0 ? &posts[draw((uint32_t)post_count)] : NULL;
    bool replies = other && draw(4) == 0 && user_ids[user] &&
                   sl_id_shard(other->id) == sl_id_shard(user_ids[user]);

    snprintf(text, sizeof(text), "text %" PRIu32, draw(1000000));
    post.text = sl_slice_str(text);
    if (replies)
        post.reply_to.post = sl_slice_str(sl_id_print(other->id, reply_to));
    if (!user_ids[user] || (replies && other->is_deleted)) {
        expect(core_post(&core, login_of(user), &post, request), -ENOENT, "post");
        return;
    }
    expect(core_post(&core, login_of(user), &post, request), 0, "post");
    expect_written(true, "post");
    posts[post_count++] = (struct model_post){core.written.id, user, false};
    event_count++;
    if (request)
        AGAIN(core_post(&core, login_of(user), &post, request));
}

static void do_delete(const char *request)
{
    struct model_post *post;
    int user = (int)draw(USERS);
    bool is_near;

    if (post_count == 0)
        return;
    post = &posts[draw((uint32_t)post_count)];
    if (draw(3) > 0)
        user = post->author;
    is_near = user_ids[user] && sl_id_shard(user_ids[user]) == sl_id_shard(post->id);
    if (post->is_deleted || (!user_ids[user] && core.meta.shards == 1)) {
        expect(core_delete(&core, login_of(user), post->id, request), -ENOENT, "delete");
        return;
    }
    if (user != post->author) {
        int r = core_delete(&core, login_of(user), post->id, request);

        if (r != -EPERM && (is_near || r != -ENOENT)) /* somebody else's shard may be the post's */
            expect(r, -EPERM, "delete of another's post");
        return;
    }
    expect(core_delete(&core, login_of(user), post->id, request), 0, "delete");
    expect_written(true, "delete");
    post->is_deleted = true;
    event_count++;
    if (request)
        AGAIN(core_delete(&core, login_of(user), post->id, request));
}

static void do_follow(bool on, const char *request)
{
    int (*change)(struct core *, const char *, const char *, const char *) =
        on ? core_follow : core_unfollow;
    int user = (int)draw(USERS), target = (int)draw(USERS);

    if (!user_ids[user] || !user_ids[target]) {
        expect(change(&core, login_of(user), login_of(target), request), -ENOENT, "follow");
        return;
    }
    if (user == target) {
        expect(change(&core, login_of(user), login_of(target), request), -EINVAL, "follow oneself");
        return;
    }
    expect(change(&core, login_of(user), login_of(target), request), 0, on ? "follow" : "unfollow");
    expect_written(follows[user][target] != on, on ? "follow" : "unfollow");
    event_count += follows[user][target] != on;
    follows[user][target] = on;
}

static void do_something(int number)
{
    char name[32];
    const char *request = draw(3) == 0 ? name : NULL;

    snprintf(name, sizeof(name), "request-%d", number);
    switch (draw(10)) {
    case 0:
        do_create(request);
        break;
    case 1:
    case 2:
    case 3:
    case 4:
        do_post(request);
        break;
    case 5:
        do_delete(request);
        break;
    case 6:
    case 7:
    case 8:
        do_follow(true, request);
        break;
    default:
        do_follow(false, request);
        break;
    }
}

/* ---- state = model ---- */

static void check_counter(int user, const char *counter, long long expected)
{
    char room[65536], key[SL_KEY_SIZE];

    core_text(&core, room, "HGET %s %s", sl_key_of("user", user_ids[user], key), counter);
    if (strtoll(room, NULL, 10) != expected)
        fail_msg("seed %" PRIu64 ": user %d has %s %s, not %lld", draw_seed, user, room, counter,
                 expected);
}

static bool is_member(const char *set, uint64_t owner, uint64_t id)
{
    char room[65536], key[SL_KEY_SIZE];

    return core_text(&core, room, "ZSCORE %s %" PRIu64, sl_key_of(set, owner, key), id)[0];
}

static void check_user(int user)
{
    long long following = 0, followers = 0, alive = 0;
    char key[SL_KEY_SIZE];

    for (int other = 0; other < USERS; other++) {
        if (!user_ids[other])
            continue;
        assert_int_equal(is_member("following", user_ids[user], user_ids[other]),
                         follows[user][other]);
        following += follows[user][other];
        assert_int_equal(is_member("followers", user_ids[user], user_ids[other]),
                         follows[other][user]);
        followers += follows[other][user];
    }
    for (size_t i = 0; i < post_count; i++) {
        if (posts[i].author != user)
            continue;
        assert_int_equal(is_member("profile", user_ids[user], posts[i].id), !posts[i].is_deleted);
        assert_int_equal(core_number(&core, "EXISTS %s", sl_key_of("post", posts[i].id, key)),
                         !posts[i].is_deleted);
        alive += !posts[i].is_deleted;
    }
    check_counter(user, "following", following);
    check_counter(user, "followers", followers);
    check_counter(user, "posts", alive);
    assert_int_equal(core_number(&core, "ZCARD %s", sl_key_of("following", user_ids[user], key)),
                     following);
    assert_int_equal(core_number(&core, "ZCARD %s", sl_key_of("followers", user_ids[user], key)),
                     followers);
    assert_int_equal(core_number(&core, "ZCARD %s", sl_key_of("profile", user_ids[user], key)),
                     alive);
}

/* ---- log = channel = model ---- */

static int user_of(const json_t *object)
{
    const char *id = json_string_value(json_object_get(object, "id"));
    uint64_t number = strtoull(id, NULL, 10);

    for (int user = 0; user < USERS; user++) {
        if (user_ids[user] == number)
            return user;
    }
    fail_msg("seed %" PRIu64 ": user %s is nobody's id", draw_seed, id);
    return -1;
}

/* What the log says, applied to an empty model. */
struct story {
    bool exists[USERS], follows[USERS][USERS];
    json_t *posts; /* id -> post, of existing posts */
    size_t events, tasks;
};

static void tell(struct story *story, const char *text, uint64_t id)
{
    json_t *event = json_loads(text, 0, NULL);
    const char *type = json_string_value(json_object_get(event, "type"));
    json_t *post = json_object_get(event, "post");
    const char *post_id = json_string_value(json_object_get(post, "id"));

    assert_int_equal(strtoull(json_string_value(json_object_get(event, "id")), NULL, 10), id);
    if (strcmp(type, "post") == 0) {
        assert_int_equal(strtoull(post_id, NULL, 10), id);
        json_object_set(story->posts, post_id, post);
    } else if (strcmp(type, "delete") == 0) {
        assert_true(json_equal(json_object_get(story->posts, post_id), post));
        json_object_del(story->posts, post_id);
    } else if (strcmp(type, "user") == 0) {
        int user = user_of(json_object_get(event, "user"));

        assert_false(story->exists[user]);
        assert_int_equal(user_ids[user], id);
        story->exists[user] = true;
    } else {
        int user = user_of(json_object_get(event, "user"));
        int target = user_of(json_object_get(event, "target"));
        bool on = strcmp(type, "follow") == 0;

        assert_true(story->exists[user]);
        assert_int_not_equal(story->follows[user][target], on);
        story->follows[user][target] = on;
        story->tasks += sl_id_shard(user_ids[user]) != sl_id_shard(user_ids[target]);
    }
    story->events++;
    json_decref(event);
}

/* Reads a shard's log from the beginning, and as many messages from the channel. */
static void read_shard(struct story *story, uint32_t shard, redisReply *const *messages,
                       size_t message_count)
{
    redisReply *log = core_command(&core, "XRANGE sluice:{%u}:log - +", (unsigned)shard);
    uint64_t previous = 0;

    assert_int_equal(log->elements, message_count);
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *fields = log->element[i]->element[1];
        uint64_t id = strtoull(log->element[i]->element[0]->str, NULL, 10);
        char *message;

        assert_int_equal(strtoull(fields->element[1]->str, NULL, 10), previous);
        assert_int_equal(sl_id_shard(id), shard);
        assert_true(asprintf(&message, "%" PRIu64 " %s %s", id, fields->element[1]->str,
                             fields->element[3]->str) > 0);
        assert_string_equal(messages[i]->element[2]->str, message);
        free(message);
        tell(story, fields->element[3]->str, id);
        previous = id;
    }
    freeReplyObject(log);
}

/* Collects all messages by shard. A last message in each shard ends them. */
static void collect_messages(redisReply **ret_messages, size_t *ret_begin)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < core.meta.shards; shard++) {
        bool is_over = false;

        ret_begin[shard] = count;
        core_publish(&core, shard, "end");
        while (!is_over) {
            redisReply *reply = NULL;

            assert_int_equal(redisGetReply(listeners[shard], (void **)&reply), REDIS_OK);
            is_over = strcmp(reply->element[2]->str, "end") == 0;
            if (is_over)
                freeReplyObject(reply);
            else
                ret_messages[count++] = reply;
        }
    }
    ret_begin[core.meta.shards] = count;
}

static void check_story(void)
{
    static redisReply *messages[POSTS * 2];
    size_t begin[SL_SHARDS_MAX + 1], alive = 0, tasks = 0;
    struct story story = {.posts = json_object()};

    collect_messages(messages, begin);
    for (uint32_t shard = 0; shard < core.meta.shards; shard++) {
        read_shard(&story, shard, messages + begin[shard], begin[shard + 1] - begin[shard]);
        tasks += (size_t)core_number(&core, "XLEN sluice:{%u}:tasks", (unsigned)shard);
    }
    assert_int_equal(story.events, event_count);
    assert_int_equal(tasks, story.tasks);
    assert_memory_equal(story.follows, follows, sizeof(follows));
    for (size_t i = 0; i < post_count; i++) {
        char id[SL_ID_TEXT_SIZE], room[65536], key[SL_KEY_SIZE];
        const json_t *post = json_object_get(story.posts, sl_id_print(posts[i].id, id));

        assert_int_equal(post != NULL, !posts[i].is_deleted);
        if (!post)
            continue;
        alive++;
        assert_string_equal(
            core_text(&core, room, "HGET %s text", sl_key_of("post", posts[i].id, key)),
            json_string_value(json_object_get(post, "text")));
    }
    assert_int_equal(json_object_size(story.posts), alive);
    json_decref(story.posts);
    for (size_t i = 0; i < begin[core.meta.shards]; i++)
        freeReplyObject(messages[i]);
}

static void test_random_operations_agree_with_the_model(void **state)
{
    (void)state;
    memset(user_ids, 0, sizeof(user_ids));
    memset(follows, 0, sizeof(follows));
    post_count = event_count = 0;
    newest_id = 0;
    for (uint32_t shard = 0; shard < shards; shard++)
        listeners[shard] = core_listen(&core, shard);

    for (int i = 0; i < OPERATIONS; i++)
        do_something(i);
    assert_true(post_count > OPERATIONS / 5 && event_count > post_count);
    check_story();
    core_work(&core);
    for (int user = 0; user < USERS; user++) {
        if (user_ids[user])
            check_user(user);
    }
    for (uint32_t shard = 0; shard < shards; shard++)
        redisFree(listeners[shard]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CORE_TEST(test_random_operations_agree_with_the_model),
    };

    draw_begin();
    return core_group_run(tests);
}
