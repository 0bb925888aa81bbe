/* redis_commands.c - hiredis's asynchronous client under a time limit.
 *
 * hiredis keeps no time, and its libuv adapter does not report a refused TCP connection. So each
 * command stands in one of two lists, both in the order of their deadlines: sent, or paused until
 * it is tried again; and a connection has a quarter of a command's time to stand. One timer serves
 * all. When a sent command is late the whole connection is given up: what was sent on it will not
 * be answered in order any more. */
#include "gateway/redis/redis_commands.h"

#include <errno.h>
#include <hiredis/adapters/libuv.h>
#include <hiredis/async.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/list.h"
#include "src/call/reply.h"

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000, CONNECT_TRIES = 4 };

struct command {
    struct redis_commands *commands;
    struct sl_call call;
    redis_reply_fn done;
    void *owner;
    uint64_t deadline_ms;
    bool was_sent; /* on a connection that stood: it may have been done */
    struct list_node node;
};

struct redis_commands {
    uv_loop_t *loop;
    struct sl_redis_address address;
    uint32_t timeout_ms;
    redisAsyncContext *redis; /* NULL: not connected */
    bool is_open;             /* the connection stands */
    uint64_t open_until_ms;   /* when it has to */
    bool is_stopping;
    struct list sent, paused;
    uint64_t retry_at_ms; /* the paused ones are tried again */
    uint64_t pause_ms;    /* the next pause; grows until something is answered */
    uv_timer_t *timer;
    char why[128]; /* the last connection ended, or none could be made */
};

struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          uint32_t timeout_ms)
{
    struct redis_commands *commands = mem_zalloc(sizeof(*commands));

    if (!commands)
        return NULL;
    commands->timer = mem_zalloc(sizeof(*commands->timer));
    if (!commands->timer) {
        mem_free(commands);
        return NULL;
    }
    commands->loop = loop;
    commands->address = *address;
    commands->timeout_ms = timeout_ms;
    commands->pause_ms = PAUSE_MIN_MS;
    list_init(&commands->sent);
    list_init(&commands->paused);
    uv_timer_init(loop, commands->timer);
    commands->timer->data = commands;
    return commands;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

static void set_why(struct redis_commands *commands, const char *what, const char *why)
{
    snprintf(commands->why, sizeof(commands->why), "%s%s", what, why);
}

/* ---- commands ---- */

static uint64_t first_deadline_ms(const struct list *list)
{
    struct list_node *first = list_first(list);

    return first ? LIST_OWNER(first, struct command, node)->deadline_ms : UINT64_MAX;
}

/* Nearly always at the end: only what is tried again is older than what is there. */
static void insert(struct list *list, struct command *command)
{
    struct list_node *before = list->head.previous;

    while (before != &list->head &&
           LIST_OWNER(before, struct command, node)->deadline_ms > command->deadline_ms)
        before = before->previous;
    list_insert_after(list, before, &command->node);
}

static void command_free(struct command *command)
{
    sl_call_done(&command->call);
    mem_free(command);
}

/* The command is in no list. */
static void finish(struct command *command, const redisReply *reply)
{
    struct redis_commands *commands = command->commands;

    command->done(command->owner, reply,
                  reply              ? NULL
                  : commands->why[0] ? commands->why
                                     : "connection lost");
    command_free(command);
}

/* When there is something to do with the paused ones. */
static uint64_t paused_due_ms(const struct redis_commands *commands)
{
    uint64_t deadline_ms = first_deadline_ms(&commands->paused);

    return deadline_ms < commands->retry_at_ms || list_is_empty(&commands->paused)
               ? deadline_ms
               : commands->retry_at_ms;
}

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct redis_commands *commands)
{
    uint64_t now = uv_now(commands->loop);
    uint64_t at = first_deadline_ms(&commands->sent);

    if (paused_due_ms(commands) < at)
        at = paused_due_ms(commands);
    if (commands->redis && !commands->is_open && commands->open_until_ms < at)
        at = commands->open_until_ms;
    if (commands->is_stopping || at == UINT64_MAX)
        uv_timer_stop(commands->timer);
    else
        uv_timer_start(commands->timer, on_timer, at > now ? at - now : 0, 0);
}

/* When the paused ones, and one more, would be tried again. */
static uint64_t next_try_ms(const struct redis_commands *commands)
{
    return list_is_empty(&commands->paused) ? uv_now(commands->loop) + commands->pause_ms
                                            : commands->retry_at_ms;
}

static bool may_pause(const struct command *command)
{
    const struct redis_commands *commands = command->commands;

    return !commands->is_stopping && next_try_ms(commands) < command->deadline_ms;
}

static void pause_command(struct command *command)
{
    struct redis_commands *commands = command->commands;

    if (list_is_empty(&commands->paused)) {
        commands->retry_at_ms = next_try_ms(commands);
        commands->pause_ms =
            commands->pause_ms * 2 < PAUSE_MAX_MS ? commands->pause_ms * 2 : PAUSE_MAX_MS;
    }
    insert(&commands->paused, command);
    arm_timer(commands);
}

/* ---- the connection ---- */

/* hiredis answers everything under way without a reply. */
static void give_up(struct redis_commands *commands, const char *why)
{
    redisAsyncContext *redis = commands->redis;

    if (!redis)
        return;
    set_why(commands, why, "");
    commands->redis = NULL;
    redisAsyncFree(redis);
}

static void on_connect(const redisAsyncContext *redis, int status)
{
    struct redis_commands *commands = redis->data;

    if (commands->redis != redis)
        return;
    if (status != REDIS_OK) {
        set_why(commands, "cannot connect: ", redis->errstr);
        commands->redis = NULL; /* hiredis frees it */
        return;
    }
    commands->is_open = true;
    LIST_EACH(&commands->sent, node)
    {
        LIST_OWNER(node, struct command, node)->was_sent = true;
    }
}

/* Not by on_connect() alone: hiredis 1.2 first gives back the commands, then says that there is no
 * connection. */
static const char *what_failed(const struct redis_commands *commands)
{
    return commands->is_open ? "connection lost: " : "cannot connect: ";
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
    struct redis_commands *commands = redis->data;

    if (commands->redis != redis)
        return;
    set_why(commands, what_failed(commands), status == REDIS_OK ? "closed" : redis->errstr);
    commands->redis = NULL;
}

static int introduce(redisAsyncContext *redis, const struct sl_redis_address *address)
{
    const struct sl_redis_login *login = &address->login;

    if (login->password[0]) {
        const char *argv[] = {"AUTH", login->user, login->password};
        const char *short_argv[] = {"AUTH", login->password};

        if (redisAsyncCommandArgv(redis, NULL, NULL, login->user[0] ? 3 : 2,
                                  login->user[0] ? argv : short_argv, NULL) != REDIS_OK)
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
    if (!address->path[0] && !address->place.host[0]) {
        set_why(commands, "the sentinels have not said which Redis is the master", "");
        return -ENOTCONN;
    }
    redis = address->path[0] ? redisAsyncConnectUnix(address->path)
                             : redisAsyncConnect(address->place.host, address->place.port);
    if (!redis)
        return -ENOMEM;
    redis->data = commands;
    if (redis->err || redisLibuvAttach(redis, commands->loop) != REDIS_OK) {
        set_why(commands, "cannot connect: ", redis->errstr);
        redisAsyncFree(redis);
        return -ECONNREFUSED;
    }
    redisAsyncSetConnectCallback(redis, on_connect);
    redisAsyncSetDisconnectCallback(redis, on_disconnect);
    commands->redis = redis;
    commands->is_open = false;
    commands->open_until_ms = uv_now(commands->loop) + commands->timeout_ms / CONNECT_TRIES;
    return introduce(redis, address);
}

void redis_commands_set_place(struct redis_commands *commands, const struct sl_redis_place *place)
{
    static const struct sl_redis_place unknown = {.port = 0};
    bool is_other = place && (strcmp(place->host, commands->address.place.host) != 0 ||
                              place->port != commands->address.place.port);

    commands->address.place = place ? *place : unknown;
    if (is_other)
        give_up(commands, "another Redis is the master now");
}

/* ---- sending ---- */

static void on_reply(redisAsyncContext *redis, void *raw_reply, void *raw_command);

/* Into `sent`. 0; a negative errno: it is in no list, and was not sent. */
static int send_command(struct command *command)
{
    struct redis_commands *commands = command->commands;
    const struct sl_call *call = &command->call;
    int r = connect_if_needed(commands);

    if (r < 0)
        return r;
    if (redisAsyncCommandArgv(commands->redis, on_reply, command, call->argc,
                              (const char **)call->argv, call->argvlen) != REDIS_OK)
        return -ENOMEM;
    command->was_sent = commands->is_open;
    insert(&commands->sent, command);
    arm_timer(commands);
    return 0;
}

/* A reply that only asks for another try; none of these has done anything. */
static bool asks_again(const struct redis_commands *commands, const redisReply *reply)
{
    return sl_reply_is_not_yet(reply) ||
           (commands->address.sentinel_count > 0 && sl_reply_is_replica(reply));
}

static void on_reply(redisAsyncContext *redis, void *raw_reply, void *raw_command)
{
    struct command *command = raw_command;
    struct redis_commands *commands = command->commands;
    const redisReply *reply = raw_reply;
    bool may_repeat = !reply && (command->call.is_repeatable || !command->was_sent);

    if (redis->err)
        set_why(commands, what_failed(commands), redis->errstr);
    list_remove(&commands->sent, &command->node);
    arm_timer(commands);
    if (sl_reply_is_noscript(reply)) {
        sl_call_use_source(&command->call, true);
        if (!commands->is_stopping && send_command(command) == 0)
            return;
        reply = NULL;
        may_repeat = true;
    }
    if (reply && !asks_again(commands, reply))
        commands->pause_ms = PAUSE_MIN_MS;
    if ((may_repeat || asks_again(commands, reply)) && may_pause(command))
        pause_command(command);
    else
        finish(command, reply);
}

/* ---- time ---- */

static void try_again(struct redis_commands *commands)
{
    uint64_t now = uv_now(commands->loop);
    struct list due;

    list_init(&due);
    LIST_EACH(&commands->paused, node)
    {
        list_remove(&commands->paused, node);
        list_append(&due, node);
    }
    LIST_EACH(&due, node)
    {
        struct command *command = LIST_OWNER(node, struct command, node);

        list_remove(&due, node);
        if (command->deadline_ms > now && send_command(command) == 0)
            continue;
        if (may_pause(command))
            pause_command(command);
        else
            finish(command, NULL);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_commands *commands = timer->data;
    uint64_t now = uv_now(commands->loop);

    if (commands->redis && !commands->is_open && commands->open_until_ms <= now)
        give_up(commands, "cannot connect in time");
    if (first_deadline_ms(&commands->sent) <= now)
        give_up(commands,
                commands->is_open ? "Redis did not answer in time" : "cannot connect in time");
    if (paused_due_ms(commands) <= now)
        try_again(commands);
    arm_timer(commands);
}

/* ---- from outside ---- */

int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner)
{
    struct command *command = commands->is_stopping ? NULL : mem_zalloc(sizeof(*command));

    if (!command) {
        sl_call_done(call);
        return commands->is_stopping ? -ECANCELED : -ENOMEM;
    }
    *command = (struct command){.commands = commands, .call = *call, .done = done, .owner = owner};
    command->deadline_ms = uv_now(commands->loop) + commands->timeout_ms;
    *call = SL_CALL_INIT;
    if (send_command(command) < 0)
        pause_command(command);
    return 0;
}

void redis_commands_free(struct redis_commands *commands)
{
    struct list_node *first;

    if (!commands)
        return;
    commands->is_stopping = true;
    give_up(commands, "the server is stopping");
    set_why(commands, "the server is stopping", "");
    while ((first = list_first(&commands->paused)) != NULL) {
        list_remove(&commands->paused, first);
        finish(LIST_OWNER(first, struct command, node), NULL);
    }
    uv_close((uv_handle_t *)commands->timer, free_handle);
    mem_free(commands);
}
