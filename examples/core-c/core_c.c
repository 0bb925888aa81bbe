/* core_c.c - a program with an event loop writes through the social core without blocking.
 *
 *     core-c SOCKET LOGIN TEXT
 *
 * Connects to the Redis at the unix socket, creates the user LOGIN if there is none, posts TEXT,
 * and prints the post's id. Each step builds a call, passes its arguments to hiredis, and continues
 * when the answer arrives: the library has no loop of its own and does no I/O here. This works for
 * a single Redis; README.md says what a cluster needs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>
#include <sluice/meta.h>
#include <sluice/posts.h>
#include <sluice/reply.h>
#include <sluice/users.h>
#include <uv.h>

struct program;

/* Handles an answer: the next call has been sent afterwards, or the program is over. */
typedef void (*answer_fn)(struct program *program, const redisReply *reply);

struct program {
    redisAsyncContext *redis;
    const char *login, *text;
    struct sl_meta meta;
    struct sl_call call; /* one at a time, rebuilt for each step */
    answer_fn answered;
    struct failure failure;
    int status;
};

static void stop(struct program *program, int status)
{
    program->status = status;
    redisAsyncDisconnect(program->redis);
}

static void fail(struct program *program)
{
    fprintf(stderr, "core-c: %s\n", program->failure.text);
    stop(program, 1);
}

static void on_reply(redisAsyncContext *redis, void *reply, void *context);

/* Sends the call. */
static void transmit(struct program *program)
{
    redisAsyncCommandArgv(program->redis, on_reply, program, program->call.argc, program->call.argv,
                          program->call.argvlen);
}

/* Sends the call of a builder, `r` being its result; `answered` handles the answer. */
static void ask(struct program *program, int r, answer_fn answered)
{
    program->answered = answered;
    if (r < 0)
        fail(program);
    else
        transmit(program);
}

static void on_reply(redisAsyncContext *redis, void *reply, void *context)
{
    struct program *program = context;

    (void)redis;
    if (sl_reply_is_noscript(reply)) { /* a new server: send the script's text once */
        sl_call_use_source(&program->call, true);
        transmit(program);
        return;
    }
    program->answered(program, reply);
}

/* ---- the steps, the last one first ---- */

static void on_posted(struct program *program, const redisReply *reply)
{
    struct sl_written written;

    if (sl_write_reply(reply, &written, &program->failure) < 0) {
        fail(program);
        return;
    }
    printf("%" PRIu64 "\n", written.id);
    stop(program, 0);
}

static void on_user(struct program *program, const redisReply *reply)
{
    const struct sl_user_ref author = sl_user_by_login(sl_slice_str(program->login));
    const struct sl_post post = {.text = sl_slice_str(program->text), .source = SL_SLICE("core-c")};
    struct sl_written written;
    int r;

    r = sl_write_reply(reply, &written, &program->failure);
    if (r < 0 && r != -EEXIST) {
        fail(program);
        return;
    }
    r = sl_post_call(&program->call, &program->meta, SL_SLICE_NONE, &author, &post,
                     &program->failure);
    ask(program, r, on_posted);
}

static void on_meta(struct program *program, const redisReply *reply)
{
    int r;

    r = sl_meta_reply(reply, &program->meta, &program->failure);
    if (r == 0)
        r = sl_user_create_call(&program->call, &program->meta, SL_SLICE_NONE,
                                sl_slice_str(program->login), SL_SLICE_NONE, &program->failure);
    ask(program, r, on_user);
}

static void on_connect(const redisAsyncContext *redis, int status)
{
    struct program *program = redis->data;
    const struct sl_meta wanted = sl_meta_wanted(1);
    int r;

    if (status != REDIS_OK) {
        fprintf(stderr, "core-c: %s\n", redis->errstr);
        program->status = 1;
        return;
    }
    r = sl_meta_call(&program->call, 0, &wanted, &program->failure);
    ask(program, r, on_meta);
}

int main(int argc, char **argv)
{
    struct program program = {.status = 1, .call = SL_CALL_INIT};

    if (argc != 4) {
        fprintf(stderr, "usage: core-c SOCKET LOGIN TEXT\n");
        return 2;
    }
    program.login = argv[2];
    program.text = argv[3];
    program.redis = redisAsyncConnectUnix(argv[1]);
    if (!program.redis) {
        fprintf(stderr, "core-c: out of memory\n");
        return 1;
    }
    if (program.redis->err) {
        fprintf(stderr, "core-c: cannot connect to %s: %s\n", argv[1], program.redis->errstr);
        redisAsyncFree(program.redis);
        return 1;
    }
    program.redis->data = &program;
    redisLibuvAttach(program.redis, uv_default_loop());
    redisAsyncSetConnectCallback(program.redis, on_connect);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    sl_call_done(&program.call);
    return program.status;
}
