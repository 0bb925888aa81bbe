#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/front/issuer_keys.h"
#include "gateway/metrics/metrics.h"
#include "gateway/serve/key_watch.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/folder.h"
#include "tests/support/jwt.h"

enum { THREADS = 4 /* in libuv's pool */, LONGER_THAN_A_REST_MS = 800, DEADLINE_MS = 10000 };

static char folder[] = "/tmp/sluice-test-key-watch-XXXXXX";
static EVP_PKEY *keys[2];
static struct metrics_board *board;
static uv_loop_t loop;
static struct key_watch *watch;
static sem_t gate;
static uv_work_t blockers[THREADS];

/* --- key files --- */

static void write_set(const char *name, unsigned count, char *path, size_t room)
{
    struct buffer json = BUFFER_INIT;
    FILE *file;

    buffer_append_str(&json, "{\"keys\":[");
    for (unsigned i = 0; i < count; i++) {
        buffer_append_str(&json, i > 0 ? "," : "");
        jwt_append_jwk(&json, keys[i], i > 0 ? ",\"kid\":\"1\"" : ",\"kid\":\"0\"");
    }
    buffer_append_str(&json, "]}");
    snprintf(path, room, "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(json.data, 1, json.size, file), json.size);
    assert_int_equal(fclose(file), 0);
    buffer_done(&json);
}

static struct token_policy *policy_of(const char *name)
{
    char path[300];
    const char *paths[] = {path};
    struct token_policy *policy = NULL;
    struct failure failure = {""};

    write_set(name, 1, path, sizeof(path));
    if (token_policy_new(&(struct token_policy_settings){.jwks_files = paths, .jwks_file_count = 1},
                         &policy, &failure) < 0)
        fail_msg("%s", failure.text);
    return policy;
}

static unsigned keys_of(struct token_policy *policy)
{
    return jwk_set_count(token_policy_file(policy, 0)->set);
}

/* --- the loop, and the threads of its pool --- */

static void wait_at_gate(uv_work_t *work)
{
    (void)work;
    sem_wait(&gate);
}

static void block_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(uv_queue_work(&loop, &blockers[i], wait_at_gate, NULL), 0);
}

static void release_threads(void)
{
    for (int i = 0; i < THREADS; i++)
        sem_post(&gate);
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* Until the policy has this many keys, or for at most this long. */
static void run(uint64_t most_ms, struct token_policy *policy, unsigned count)
{
    uv_timer_t tick;
    uint64_t end;

    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 10, 10);
    uv_update_time(&loop);
    end = uv_now(&loop) + most_ms;
    while (uv_now(&loop) < end && !(policy && keys_of(policy) == count))
        uv_run(&loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT);
}

static int begin(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(sem_init(&gate, 0, 0), 0);
    board = metrics_board_new(1);
    watch = key_watch_new(
        &(struct key_watch_settings){.loop = &loop, .metrics = metrics_slot(board, 0)});
    return watch ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    key_watch_free(watch);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    sem_destroy(&gate);
    return 0;
}

/* --- */

static void test_a_file_is_read_aside(void **state)
{
    struct token_policy *policy = policy_of("a.json");
    char path[300];

    (void)state;
    assert_int_equal(key_watch_set(watch, policy), 0);
    run(LONGER_THAN_A_REST_MS, NULL, 0);
    write_set("a.json", 2, path, sizeof(path));
    block_threads();
    run(LONGER_THAN_A_REST_MS, policy, 2);
    assert_int_equal(keys_of(policy), 1); /* it is read neither by a thread nor by the loop */
    release_threads();
    run(DEADLINE_MS, policy, 2);
    assert_int_equal(keys_of(policy), 2);
    assert_int_equal(key_watch_set(watch, NULL), 0);
    token_policy_free(policy);
}

static void test_a_slow_question_of_the_past_disturbs_none_of_now(void **state)
{
    struct token_policy *past = policy_of("a.json"), *now = policy_of("b.json");
    char path[300];

    (void)state;
    block_threads();
    assert_int_equal(key_watch_set(watch, past), 0);
    run(LONGER_THAN_A_REST_MS, NULL, 0); /* the provider is asked */
    assert_int_equal(key_watch_set(watch, now), 0);
    token_policy_free(past);
    run(LONGER_THAN_A_REST_MS, NULL, 0); /* the current sources are asked */
    release_threads();
    write_set("b.json", 2, path, sizeof(path));
    run(DEADLINE_MS, now, 2);
    assert_int_equal(keys_of(now), 2);
    assert_int_equal(key_watch_set(watch, NULL), 0);
    token_policy_free(now);
}

static void test_it_ends_while_a_file_is_read(void **state)
{
    struct token_policy *policy = policy_of("a.json");

    (void)state;
    assert_int_equal(key_watch_set(watch, policy), 0);
    block_threads();
    run(LONGER_THAN_A_REST_MS, NULL, 0);
    key_watch_free(watch);
    watch = NULL;
    token_policy_free(policy);
    run(LONGER_THAN_A_REST_MS, NULL, 0);
    release_threads();
}

static int begin_all(void **state)
{
    (void)state;
    keys[0] = jwt_key_new("ED25519");
    keys[1] = jwt_key_new("P-256");
    return mkdtemp(folder) ? 0 : -1;
}

static int end_all(void **state)
{
    (void)state;
    EVP_PKEY_free(keys[0]);
    EVP_PKEY_free(keys[1]);
    folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_file_is_read_aside, begin, end),
        cmocka_unit_test_setup_teardown(test_a_slow_question_of_the_past_disturbs_none_of_now,
                                        begin, end),
        cmocka_unit_test_setup_teardown(test_it_ends_while_a_file_is_read, begin, end),
    };

    setenv("UV_THREADPOOL_SIZE", "4", 1);
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
