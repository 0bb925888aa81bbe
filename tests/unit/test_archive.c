/* Posts beyond profile-max go to the archive and nowhere else: whichever process is killed, and
 * whatever is deleted meanwhile, each post is in Redis or in the archive, and a deleted post in
 * neither.
 *
 *     test_archive [SHARDS [sqlite|mysql]] */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mysql.h>

#include "src/archive/archived.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/post_rows.h"
#include "src/tasks/worker.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fault.h"

enum { POSTS = 9, PROFILE_MAX = 3, MOST_COMMANDS = 200 };

static struct core core;
static uint32_t shards;
static const char *kind;
static struct archive_fixture fixture;
static uint64_t ada, posts[POSTS]; /* oldest first */

static int begin(void **state)
{
    char name[16], max[8];

    (void)state;
    archive_fixture_empty(&fixture);
    core_reset(&core, shards);
    snprintf(max, sizeof(max), "%d", PROFILE_MAX);
    core_set(&core, "profile-max", max);
    core_set(&core, "archive", "1");
    ada = core_must_create(&core, "ada");
    core_must_create(&core, "bob");
    for (int i = 0; i < POSTS; i++) {
        snprintf(name, sizeof(name), "post %d", i);
        posts[i] = core_must_post(&core, "ada", name);
    }
    return 0;
}

static void work_with(struct core *child, const char *archive, uint32_t lease_ms)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .lease_ms = lease_ms, .until_empty = true, .archive = archive};
    struct sl_redis_address address;
    struct sl_worker *worker;

    if (sl_redis_address_parse(sl_slice_str(child->url), &address, NULL) < 0 ||
        sl_worker_new(&address, &child->meta, &options, &worker, &child->failure) < 0 ||
        sl_worker_run(worker, &child->failure) < 0) {
        fprintf(stderr, "work: %s\n", child->failure.text);
        _exit(EXIT_FAILURE);
    }
    sl_worker_free(worker);
}

static void work_with_long_lease(struct core *child)
{
    work_with(child, fixture.url, 30000);
}

/* Takes over at once the tasks of dead workers. */
static void work(void)
{
    work_with(&core, fixture.url, 1);
}

static struct sl_archive *open_archive(void)
{
    struct sl_archive *archive;

    if (sl_archive_open(fixture.url, core.meta.database_id, SL_ARCHIVE_MAKE, &archive,
                        &core.failure) < 0)
        fail_msg("%s", core.failure.text);
    return archive;
}

/* Returns the archived post, to be freed; NULL: it is not in the archive. */
static char *archived(uint64_t post)
{
    struct sl_archive *archive = open_archive();
    struct sl_archive_page page;
    char *json = NULL;

    assert_int_equal(sl_archive_find(archive, &post, 1, &page, &core.failure), 0);
    if (page.count == 1)
        json = strndup(page.posts[0].json.data, page.posts[0].json.size);
    sl_archive_page_done(&page);
    sl_archive_close(archive);
    return json;
}

static bool is_archived(uint64_t post)
{
    char *json = archived(post);
    bool is = json != NULL;

    free(json);
    return is;
}

static bool is_in_redis(uint64_t post)
{
    char key[SL_KEY_SIZE], room[65536], id[SL_ID_TEXT_SIZE];
    bool exists = core_number(&core, "EXISTS %s", sl_key_of("post", post, key)) == 1;
    bool listed = core_text(&core, room, "ZSCORE %s %s", sl_key_of("profile", ada, key),
                            sl_id_print(post, id))[0];

    assert_int_equal(exists, listed);
    return exists;
}

static int send(struct sl_call *call, int built)
{
    redisReply *reply = NULL;
    int r = built;

    if (r == 0)
        r = sl_redis_link_run(core.link, call, &reply, &core.failure);
    if (r == 0)
        r = sl_write_reply(reply, &core.written, &core.failure);
    freeReplyObject(reply);
    sl_call_done(call);
    return r;
}

static int delete_with(const char *login, uint64_t post, const char *json, const char *request)
{
    const struct sl_user_ref user = sl_user_by_login(sl_slice_str(login));
    struct sl_call call = SL_CALL_INIT;

    return send(&call, sl_delete_archived_call(&call, &core.meta, sl_slice_str(request), &user,
                                               post, sl_slice_str(json), &core.failure));
}

/* Like the command line does. */
static int delete_post(const char *login, uint64_t post)
{
    int r = core_delete(&core, login, post, NULL);
    char *json = r == -ENOENT ? archived(post) : NULL;

    if (json)
        r = delete_with(login, post, json, NULL);
    free(json);
    return r;
}

/* May the reader see this post from the archive? 0 or -ENOENT; *ret_row is only valid briefly. */
static int judge(uint64_t post, uint64_t reader, char room[4096])
{
    struct sl_archive *archive = open_archive();
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_archive_page page;
    redisReply *reply = NULL;
    struct sl_post_row row;
    int r;

    assert_int_equal(sl_archive_find(archive, &post, 1, &page, &core.failure), 0);
    assert_int_equal(page.count, 1);
    assert_int_equal(
        sl_archived_posts_calls(&calls, &core.meta, reader, page.posts, page.count, &core.failure),
        0);
    assert_int_equal(calls.count, 1);
    assert_int_equal(sl_redis_link_run(core.link, &calls.calls[0], &reply, &core.failure), 0);
    assert_int_equal(sl_posts_reply(reply, 1, &core.failure), 0);
    r = sl_posts_at(reply, 0, &row, &core.failure);
    if (r == 0)
        snprintf(room, 4096, "%.*s %" PRIu64, SL_SLICE_ARG(row.json), row.likes);
    freeReplyObject(reply);
    sl_shard_calls_done(&calls);
    sl_archive_page_done(&page);
    sl_archive_close(archive);
    return r;
}

/* Each post that is not deleted is in one of the two, each deleted one in neither; the newest ones
 * are in Redis, and the counter counts all. */
static void check(const char *what, const bool is_deleted[POSTS])
{
    char key[SL_KEY_SIZE], room[65536];
    int left = 0, in_redis = 0;

    for (int i = 0; i < POSTS; i++) {
        bool here = is_in_redis(posts[i]), there = is_archived(posts[i]);

        if (is_deleted[i] ? here || there : here == there)
            fail_msg("%s: post %d, %s, is %s Redis, %s the archive", what, i,
                     is_deleted[i] ? "deleted" : "not deleted", here ? "in" : "not in",
                     there ? "in" : "not in");
        left += !is_deleted[i];
        in_redis += here;
    }
    assert_in_range(in_redis, 0, PROFILE_MAX);
    core_text(&core, room, "HGET %s posts", sl_key_of("user", ada, key));
    assert_int_equal(atoi(room), left);
    for (uint32_t shard = 0; shard < shards; shard++) {
        assert_int_equal(core_number(&core, "XLEN sluice:{%u}:tasks", (unsigned)shard), 0);
        assert_int_equal(core_number(&core, "XLEN sluice:{%u}:dead", (unsigned)shard), 0);
    }
}

static const bool none[POSTS];

static void test_what_outgrows_the_profile_goes_to_the_archive(void **state)
{
    (void)state;
    work();
    check("moved", none);
    assert_true(is_archived(posts[0]));
    assert_true(is_archived(posts[POSTS - PROFILE_MAX - 1]));
    assert_true(is_in_redis(posts[POSTS - PROFILE_MAX]));
}

static void test_without_the_setting_nothing_moves(void **state)
{
    (void)state;
    core_set(&core, "archive", "0");
    work();
    for (int i = 0; i < POSTS; i++)
        assert_true(is_in_redis(posts[i]));
}

static void test_a_worker_without_an_archive_leaves_everything_in_redis(void **state)
{
    (void)state;
    core_set(&core, "task-tries", "1");
    work_with(&core, NULL, 30000);
    for (int i = 0; i < POSTS; i++)
        assert_true(is_in_redis(posts[i]));
    assert_int_equal(core_number(&core, "XLEN sluice:{%u}:dead", (unsigned)sl_id_shard(ada)),
                     POSTS - PROFILE_MAX);
}

static void test_an_archived_post_is_read_as_one_in_redis(void **state)
{
    const struct sl_post secret = {.text = SL_SLICE("secret"), .audience = SL_SLICE("followers")};
    uint64_t bob = core_must_create(&core, "ben"), hidden;
    char room[4096];

    (void)state;
    assert_int_equal(core_post(&core, "ada", &secret, NULL), 0);
    hidden = core.written.id;
    for (int i = 0; i < PROFILE_MAX; i++)
        core_must_post(&core, "ada", "more");
    work();
    assert_int_equal(judge(posts[0], SL_READER_NOBODY, room), 0);
    assert_non_null(strstr(room, "\"user\":{\"id\":"));
    assert_non_null(strstr(room, "\"login\":\"ada\""));
    assert_non_null(strstr(room, "\"text\":\"post 0\""));
    assert_non_null(strstr(room, "} 0"));
    assert_int_equal(judge(hidden, ada, room), 0);
    assert_int_equal(judge(hidden, SL_READER_SYSTEM, room), 0);
    assert_int_equal(judge(hidden, SL_READER_NOBODY, room), -ENOENT);
    assert_int_equal(judge(hidden, bob, room), -ENOENT);
    assert_int_equal(core_follow(&core, "ben", "ada", NULL), 0);
    work();
    assert_int_equal(judge(hidden, bob, room), 0);
}

static void test_a_deleted_post_leaves_the_archive_with_its_event(void **state)
{
    bool is_deleted[POSTS] = {[1] = true};
    char room[4096], *json;
    redisReply *last;

    (void)state;
    work();
    json = archived(posts[1]);
    assert_int_equal(delete_with("bob", posts[1], json, NULL), -EPERM);
    assert_int_equal(delete_with("ada", posts[1], json, "request"), 0);
    assert_int_equal(judge(posts[1], SL_READER_SYSTEM, room), -ENOENT); /* immediately */
    assert_int_equal(delete_with("ada", posts[1], json, "request"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(core_delete(&core, "ada", posts[1], "request"), 0);
    assert_true(core.written.is_repeated);
    assert_int_equal(delete_with("ada", posts[1], json, NULL), -ENOENT);
    last = core_command(&core, "XREVRANGE sluice:{%u}:log + - COUNT 1", (unsigned)sl_id_shard(ada));
    assert_non_null(strstr(last->element[0]->element[1]->element[3]->str, "\"type\":\"delete\""));
    assert_non_null(strstr(last->element[0]->element[1]->element[3]->str, "\"text\":\"post 1\""));
    freeReplyObject(last);
    work();
    check("deleted", is_deleted);
    assert_int_equal(delete_with("ada", posts[1], json, NULL), -ENOENT); /* had been read before */
    free(json);
}

static void test_a_post_that_the_archive_never_had_cannot_be_slipped_in(void **state)
{
    char json[256];
    uint64_t digest;

    (void)state;
    snprintf(json, sizeof(json), "{\"id\":\"%" PRIu64 "\",\"user\":\"%" PRIu64 "\",\"text\":\"x\"}",
             posts[POSTS - 1] + 1, ada);
    work();
    digest = core_digest(&core);
    assert_int_equal(delete_with("ada", posts[POSTS - 1] + 1, json, NULL), -ENOENT);
    assert_int_equal(delete_with("ada", posts[0], "{\"id\":1", NULL), -EBADMSG);
    assert_int_equal(delete_with("ada", posts[0], "[]", NULL), -EBADMSG);
    assert_int_equal(core_digest(&core), digest);
}

/* The first half of a worker's task: `count` posts are sent and stored, and stay in Redis. */
static void take_and_store(struct sl_archive *archive, uint64_t count)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;

    sl_call_begin_script(&call, &sl_script_archive_take, sl_id_shard(ada), core.meta.shards,
                         SL_SLICE_NONE);
    sl_call_add_id(&call, ada);
    sl_call_add_id(&call, count);
    sl_call_add_str(&call, sl_archive_identity(archive));
    assert_int_equal(sl_call_finish(&call, NULL), 0);
    assert_int_equal(sl_redis_link_run(core.link, &call, &reply, &core.failure), 0);
    assert_int_equal(sl_reply_check(reply, NULL), 0);
    assert_int_equal(reply->elements, count);
    for (size_t i = 0; i < count; i++) {
        const redisReply *json = reply->element[i]->element[1];
        const struct sl_archive_post post = {posts[i], ada, sl_slice(json->str, json->len)};

        assert_int_equal(sl_archive_store(archive, &post, 1, &core.failure), 0);
    }
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* A worker died after storing, before Redis deleted it: the author deletes the post, then another
 * worker continues. */
static void test_a_post_that_is_in_both_is_deleted_in_both(void **state)
{
    bool is_deleted[POSTS] = {[1] = true};
    struct sl_archive *archive = open_archive();
    struct sl_archive_post late = {posts[1], ada, {NULL, 0}};
    char *json;

    (void)state;
    take_and_store(archive, 3);
    assert_true(is_in_redis(posts[1]) && is_archived(posts[1]));
    json = archived(posts[1]);
    assert_int_equal(delete_post("ada", posts[1]), 0);
    work();
    check("in both", is_deleted);
    late.json = sl_slice_str(json);
    assert_int_equal(sl_archive_store(archive, &late, 1, &core.failure),
                     0); /* another worker, late */
    sl_archive_close(archive);
    check("in both, stored again", is_deleted);
    free(json);
}

/* At any time a post is in one of the two: a reader that looks in Redis first finds it. */
static void test_posts_are_deleted_while_they_are_moved(void **state)
{
    for (int round = 0; round < 6; round++) {
        bool is_deleted[POSTS] = {false};
        int status;
        pid_t pid;

        begin(state);
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            work_with(&core, fixture.url, 30000);
            _exit(EXIT_SUCCESS);
        }
        for (int i = 0; i < POSTS; i++) {
            is_deleted[i] = i % 3 == round % 3;
            if (is_deleted[i])
                assert_int_equal(delete_post("ada", posts[i]), 0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
        work();
        check("deleted while moved", is_deleted);
    }
}

static void test_worker_is_killed_behind_each_command(void **state)
{
    bool is_deleted[POSTS] = {[0] = true, [2] = true, [POSTS - 1] = true};
    enum fault_end end = FAULT_KILLED;
    char what[64];
    uint64_t n;

    for (n = 1; n < MOST_COMMANDS && end == FAULT_KILLED; n++) {
        begin(state);
        snprintf(what, sizeof(what), "worker killed behind command %" PRIu64, n);
        assert_int_equal(delete_post("ada", posts[0]), 0);
        end = fault_run(&core, n, work_with_long_lease);
        assert_int_not_equal(end, FAULT_FAILED);
        fault_settle(&core);
        assert_int_equal(delete_post("ada", posts[2]), 0);
        assert_int_equal(delete_post("ada", posts[POSTS - 1]), 0);
        work();
        check(what, is_deleted);
    }
    assert_int_equal(end, FAULT_ENDED);
    assert_in_range(n, 8, MOST_COMMANDS - 1);
}

/* Opens its archive, reports that, and works when told to. */
static void work_when_told(struct core *child, int told, int said)
{
    const struct sl_worker_options options = {
        .concurrency = 1, .lease_ms = 1, .until_empty = true, .archive = fixture.url};
    struct sl_redis_address address;
    struct sl_worker *worker;
    char word;

    if (sl_redis_address_parse(sl_slice_str(child->url), &address, NULL) < 0 ||
        sl_worker_new(&address, &child->meta, &options, &worker, &child->failure) < 0 ||
        write(said, "r", 1) != 1 || read(told, &word, 1) != 1 ||
        sl_worker_run(worker, &child->failure) < 0) {
        fprintf(stderr, "work: %s\n", child->failure.text);
        _exit(EXIT_FAILURE);
    }
    sl_worker_free(worker);
    _exit(EXIT_SUCCESS);
}

/* With one try for each task: an unavailable archive does not count as a failed try. */
static void test_an_archive_that_is_away_is_waited_for(void **state)
{
    int told[2], said[2], status;
    bool has_failed = false;
    char word;
    pid_t pid;

    (void)state;
    if (fixture.kind != ARCHIVE_KIND_MYSQL)
        skip();
    core_set(&core, "task-tries", "1");
    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(said), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        work_when_told(&core, told[0], said[1]);
    close(said[1]);
    assert_int_equal(read(said[0], &word, 1), 1);
    mysql_close(fixture.mysql);
    mariadb_server_kill(&fixture.server);
    assert_int_equal(write(told[1], "g", 1), 1);
    while (!has_failed) {
        redisReply *states = core_command(&core, "KEYS sluice:*:task:*");

        has_failed = states->elements > 0;
        freeReplyObject(states);
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    }
    mariadb_server_restart(&fixture.server, NULL);
    fixture.mysql = mariadb_server_connect(&fixture.server);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
    check("away for a while", none);
    close(told[0]);
    close(told[1]);
    close(said[0]);
}

static int start(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    archive_fixture_init(&fixture, kind);
    core_init(&core);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    core_done(&core);
    archive_fixture_done(&fixture);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_outgrows_the_profile_goes_to_the_archive, begin),
        cmocka_unit_test_setup(test_without_the_setting_nothing_moves, begin),
        cmocka_unit_test_setup(test_a_worker_without_an_archive_leaves_everything_in_redis, begin),
        cmocka_unit_test_setup(test_an_archived_post_is_read_as_one_in_redis, begin),
        cmocka_unit_test_setup(test_a_deleted_post_leaves_the_archive_with_its_event, begin),
        cmocka_unit_test_setup(test_a_post_that_the_archive_never_had_cannot_be_slipped_in, begin),
        cmocka_unit_test_setup(test_a_post_that_is_in_both_is_deleted_in_both, begin),
        cmocka_unit_test_setup(test_posts_are_deleted_while_they_are_moved, begin),
        cmocka_unit_test_setup(test_worker_is_killed_behind_each_command, begin),
        cmocka_unit_test_setup(test_an_archive_that_is_away_is_waited_for, begin),
    };

    shards = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
    kind = argc > 2 ? argv[2] : "sqlite";
    if (!archive_fixture_is_there(kind))
        return ARCHIVE_PLACE_SKIPPED;
    return cmocka_run_group_tests_name("archive", tests, start, stop);
}
