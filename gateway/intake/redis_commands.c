/* redis_commands.c - hiredis's asynchronous client under a time limit.
 *
 * hiredis keeps no time, and its libuv adapter may never report a failed connect. So each command
 * stands in a list by its deadline, one timer looks at the first, and when one is late the whole
 * connection is given up: what was sent on it will not be answered in order any more. */
#include "gateway/intake/redis_commands.h"

#include <errno.h>
#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "src/reply.h"

struct command {
    struct redis_commands *commands;
    struct sl_call call;
    redis_reply_fn done;
    void *owner;
    uint64_t deadline_ms;
    struct list_node node;
};

struct redis_commands {
    uv_loop_t *loop;
    struct sl_redis_address address;
    uint32_t timeout_ms;
    redisAsyncContext *redis; /* NULL: not connected */
    struct list waiting;      /* for their replies, in the order of sending */
    struct list unsent;       /* without a connection: answered in the next turn */
    uv_timer_t *timer, *unsent_timer;
    char why[128]; /* the last connection ended */
};

struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          uint32_t timeout_ms)
{
    struct redis_commands *commands = mem_zalloc(sizeof(*commands));

    if (!commands)
        return NULL;
    commands->timer = mem_zalloc(sizeof(*commands->timer));
    commands->unsent_timer = mem_zalloc(sizeof(*commands->unsent_timer));
    if (!commands->timer || !commands->unsent_timer) {
        mem_free(commands->timer);
        mem_free(commands->unsent_timer);
        mem_free(commands);
        return NULL;
    }
    commands->loop = loop;
    commands->address = *address;
    commands->timeout_ms = timeout_ms;
    list_init(&commands->waiting);
    list_init(&commands->unsent);
    uv_timer_init(loop, commands->timer);
    uv_timer_init(loop, commands->unsent_timer);
    commands->timer->data = commands->unsent_timer->data = commands;
    return commands;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

/* hiredis answers everything under way without a reply. */
static void give_up(struct redis_commands *commands, const char *why)
{
    redisAsyncContext *redis = commands->redis;

    if (!redis)
        return;
    snprintf(commands->why, sizeof(commands->why), "%s", why);
    commands->redis = NULL;
    redisAsyncFree(redis);
}

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct redis_commands *commands)
{
    struct list_node *first = list_first(&commands->waiting);
    uint64_t now = uv_now(commands->loop);
    uint64_t deadline;

    if (!first) {
        uv_timer_stop(commands->timer);
        return;
    }
    deadline = LIST_OWNER(first, struct command, node)->deadline_ms;
    uv_timer_start(commands->timer, on_timer, deadline > now ? deadline - now : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_commands *commands = timer->data;
    struct list_node *first = list_first(&commands->waiting);

    if (first && LIST_OWNER(first, struct command, node)->deadline_ms <= uv_now(commands->loop))
        give_up(commands, "Redis did not answer in time");
    arm_timer(commands);
}

static void on_connect(const redisAsyncContext *redis, int status)
{
    struct redis_commands *commands = redis->data;

    if (status == REDIS_OK || commands->redis != redis)
        return;
    snprintf(commands->why, sizeof(commands->why), "cannot connect: %s", redis->errstr);
    commands->redis = NULL; /* hiredis frees it */
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
    struct redis_commands *commands = redis->data;

    if (commands->redis != redis)
        return;
    snprintf(commands->why, sizeof(commands->why), "connection lost: %s",
             status == REDIS_OK ? "closed" : redis->errstr);
    commands->redis = NULL;
}

static int introduce(redisAsyncContext *redis, const struct sl_redis_address *address)
{
    if (address->password[0]) {
        const char *argv[] = {"AUTH", address->user, address->password};
        const char *short_argv[] = {"AUTH", address->password};

        if (redisAsyncCommandArgv(redis, NULL, NULL, address->user[0] ? 3 : 2,
                                  address->user[0] ? argv : short_argv, NULL) != REDIS_OK)
            return -ENOMEM;
    }
    if (address->db && redisAsyncCommand(redis, NULL, NULL, "SELECT %u", address->db) != REDIS_OK)
        return -ENOMEM;
    return 0;
}

static int connect_if_needed(struct redis_commands *commands)
{
    const struct sl_redis_address *address = &commands->address;
    redisAsyncContext *redis;

    if (commands->redis)
        return 0;
    redis = address->path[0] ? redisAsyncConnectUnix(address->path)
                             : redisAsyncConnect(address->host, address->port);
    if (!redis)
        return -ENOMEM;
    redis->data = commands;
    if (redis->err || redisLibuvAttach(redis, commands->loop) != REDIS_OK) {
        snprintf(commands->why, sizeof(commands->why), "cannot connect: %s", redis->errstr);
        redisAsyncFree(redis);
        return -ECONNREFUSED;
    }
    redisAsyncSetConnectCallback(redis, on_connect);
    redisAsyncSetDisconnectCallback(redis, on_disconnect);
    commands->redis = redis;
    return introduce(redis, address);
}

static void command_free(struct command *command)
{
    sl_call_done(&command->call);
    mem_free(command);
}

static void on_reply(redisAsyncContext *redis, void *raw_reply, void *raw_command);

static int send_command(struct command *command)
{
    struct redis_commands *commands = command->commands;
    const struct sl_call *call = &command->call;

    if (redisAsyncCommandArgv(commands->redis, on_reply, command, call->argc,
                              (const char **)call->argv, call->argvlen) != REDIS_OK)
        return -ENOMEM;
    command->deadline_ms = uv_now(commands->loop) + commands->timeout_ms;
    list_append(&commands->waiting, &command->node);
    return 0;
}

static void finish(struct command *command, const redisReply *reply)
{
    struct redis_commands *commands = command->commands;

    command->done(command->owner, reply,
                  reply              ? NULL
                  : commands->why[0] ? commands->why
                                     : "connection lost");
    command_free(command);
}

static void on_reply(redisAsyncContext *redis, void *raw_reply, void *raw_command)
{
    struct command *command = raw_command;
    struct redis_commands *commands = command->commands;
    redisReply *reply = raw_reply;

    if (redis->err)
        snprintf(commands->why, sizeof(commands->why), "connection lost: %s", redis->errstr);
    list_remove(&commands->waiting, &command->node);
    arm_timer(commands);
    if (reply && sl_reply_is_noscript(reply) && commands->redis == redis) {
        sl_call_use_source(&command->call, true);
        if (send_command(command) == 0)
            return;
        reply = NULL;
    }
    finish(command, reply);
}

/* A command that could not even be sent is answered from the loop like any other. */
static void answer_unsent(struct redis_commands *commands)
{
    struct list_node *first;

    while ((first = list_first(&commands->unsent))) {
        struct command *command = LIST_OWNER(first, struct command, node);

        list_remove(&commands->unsent, first);
        finish(command, NULL);
    }
}

static void on_unsent(uv_timer_t *timer)
{
    answer_unsent(timer->data);
}

static void answer_later(struct command *command)
{
    list_append(&command->commands->unsent, &command->node);
    uv_timer_start(command->commands->unsent_timer, on_unsent, 0, 0);
}

void redis_commands_free(struct redis_commands *commands)
{
    if (!commands)
        return;
    give_up(commands, "the server is stopping");
    answer_unsent(commands);
    uv_close((uv_handle_t *)commands->timer, free_handle);
    uv_close((uv_handle_t *)commands->unsent_timer, free_handle);
    mem_free(commands);
}

int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner)
{
    struct command *command = mem_zalloc(sizeof(*command));
    int r;

    if (!command) {
        sl_call_done(call);
        return -ENOMEM;
    }
    *command = (struct command){.commands = commands, .call = *call, .done = done, .owner = owner};
    *call = SL_CALL_INIT;
    r = connect_if_needed(commands);
    if (r < 0) {
        answer_later(command);
        return 0;
    }
    r = send_command(command);
    if (r < 0) {
        command_free(command);
        return -ENOMEM;
    }
    arm_timer(commands);
    return 0;
}
