/* redis_commands.c - commands wait for a connection, then for their replies, and all have a time.
 *
 * A command stands in one of two lists: `waiting`, for a connection or for its next try, or `sent`,
 * in the order of the replies to come. All stand in `deadlines` as well; one timer serves that and
 * the next try. Nothing is sent before the session is ready: so a command without an answer was
 * either certainly not done (it waits) or may have been (it was sent).
 *
 * When a sent command is late the connection is given up: what was sent on it will not be answered
 * in order any more. While there is none, waiting commands have one made, with pauses from 20 ms to
 * a second; as soon as it stands all of them are sent, and whoever knows that Redis is back
 * (redis_commands_try_now()) cuts a pause short.
 *
 * What bounds it: the callers, who are as many as the server lets in, and the time of each. */
#include "gateway/redis/redis_commands.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/deadline_list.h"
#include "base/failure.h"
#include "gateway/redis/redis_session.h"
#include "src/call/reply.h"

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000, CONNECT_TRIES = 4 };

/* Of all callers together, while Redis does not read; who comes then is sent away. */
enum { UNSENT_MAX_BYTES = 64 * 1024 * 1024 };

struct command {
    struct redis_commands *commands;
    struct sl_call call;
    redis_reply_fn done;
    void *owner;
    struct deadline deadline; /* in no list: its time is over */
    struct list_node node;    /* of `waiting`, `sent` or `lost` */
    bool is_sent;
};

struct redis_commands {
    uv_loop_t *loop;
    struct sl_redis_address address;
    bool is_endpoint_known; /* always, without sentinels */
    struct redis_session *session;
    bool was_ready; /* the session, since it was opened */
    bool is_stopping;
    struct deadline_list deadlines;
    struct list waiting, sent;
    struct list lost;       /* were sent on a connection that has just ended */
    uint64_t try_ms;        /* when the waiting ones are tried next */
    struct backoff backoff; /* until something is answered */
    uv_timer_t timer;
    struct failure why; /* the last connection ended, or none could be made */
};

/* ---- a command's end ---- */

/* The command is in none of the lists that `node` is for. */
static void command_free(struct command *command)
{
    deadline_list_remove(&command->commands->deadlines, &command->deadline);
    sl_call_done(&command->call);
    mem_free(command);
}

static void finish(struct command *command, const redisReply *reply)
{
    command->done(command->owner, reply, NULL);
    command_free(command);
}

static void fail(struct command *command, const char *why)
{
    command->done(command->owner, NULL, why);
    command_free(command);
}

/* As the connection did, or the tries to make one. */
static void fail_with_connection(struct command *command)
{
    const struct failure *why = &command->commands->why;

    fail(command, why->text[0] ? why->text : "no connection");
}

/* ---- time ---- */

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct redis_commands *commands)
{
    uint64_t now_ms = uv_now(commands->loop);
    uint64_t at_ms = deadline_list_next_due_ms(&commands->deadlines);

    if (commands->is_stopping)
        return;
    if (!list_is_empty(&commands->waiting) && commands->try_ms < at_ms)
        at_ms = commands->try_ms;
    if (at_ms == UINT64_MAX)
        uv_timer_stop(&commands->timer);
    else
        uv_timer_start(&commands->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

/* The next try, unless one is arranged already. */
static void try_later(struct redis_commands *commands)
{
    uint64_t now_ms = uv_now(commands->loop);

    if (commands->try_ms <= now_ms || commands->try_ms == UINT64_MAX)
        commands->try_ms = now_ms + backoff_next_ms(&commands->backoff, PAUSE_MIN_MS, PAUSE_MAX_MS);
}

static void wait(struct command *command)
{
    command->is_sent = false;
    list_append(&command->commands->waiting, &command->node);
}

/* ---- the connection ---- */

/* Those that were sent are not answered any more: each is tried again if it may be. */
static void settle_lost(struct redis_commands *commands)
{
    struct list_node *first;

    while ((first = list_first(&commands->lost)) != NULL) {
        struct command *command = LIST_OWNER(first, struct command, node);

        list_remove(&commands->lost, first);
        if (command->call.is_repeatable && deadline_is_listed(&command->deadline) &&
            !commands->is_stopping)
            wait(command);
        else
            fail_with_connection(command);
    }
}

static void lose_sent(struct redis_commands *commands)
{
    struct list_node *first;

    while ((first = list_first(&commands->sent)) != NULL) {
        list_remove(&commands->sent, first);
        list_append(&commands->lost, first);
    }
    settle_lost(commands);
}

static void disconnect(struct redis_commands *commands, const char *why)
{
    failure_set(&commands->why, 0, "%s", why);
    redis_session_close(commands->session);
    commands->was_ready = false;
}

static void give_up(struct redis_commands *commands, const char *why)
{
    disconnect(commands, why);
    lose_sent(commands);
}

static void on_lost(void *context, const char *reason)
{
    struct redis_commands *commands = context;

    failure_set(&commands->why, 0, "%s: %s",
                commands->was_ready ? "connection lost" : "cannot connect", reason);
    commands->was_ready = false;
    try_later(commands);
    lose_sent(commands);
    arm_timer(commands);
}

/* ---- sending ---- */

static int send_command(struct command *command)
{
    int r = redis_session_send_call(command->commands->session, &command->call);

    if (r < 0)
        return r;
    command->is_sent = true;
    list_append(&command->commands->sent, &command->node);
    return 0;
}

static void send_or_fail(struct command *command)
{
    if (send_command(command) < 0)
        fail(command, "out of memory");
}

/* Who is told that there is no memory may ask again: that is sent on the spot, and waits not. */
static void send_waiting(struct redis_commands *commands)
{
    struct list_node *first;

    while (redis_session_is_ready(commands->session) &&
           (first = list_first(&commands->waiting)) != NULL) {
        list_remove(&commands->waiting, first);
        send_or_fail(LIST_OWNER(first, struct command, node));
    }
}

static void on_ready(void *context)
{
    struct redis_commands *commands = context;

    redis_session_settle(commands->session, 0);
    commands->was_ready = true;
    commands->try_ms = UINT64_MAX;
    send_waiting(commands);
    arm_timer(commands);
}

/* What waits is sent now, or as soon as there is a connection. */
static void try_waiting(struct redis_commands *commands)
{
    commands->try_ms = UINT64_MAX;
    if (redis_session_is_ready(commands->session)) {
        send_waiting(commands);
    } else if (redis_session_is_open(commands->session)) {
        return; /* on_ready, or on_lost */
    } else if (commands->is_endpoint_known) {
        redis_session_open(commands->session);
    } else {
        failure_set(&commands->why, 0, "the sentinels have not said which Redis is the master");
    }
}

/* ---- replies ---- */

/* A reply that only asks for another try; none of these has done anything. */
static bool asks_again(const struct redis_commands *commands, const redisReply *reply)
{
    return sl_reply_is_not_yet(reply) ||
           (commands->address.sentinel_count > 0 && sl_reply_is_replica(reply));
}

/* Nobody is kept waiting for a try that would come too late. */
static bool send_later(struct command *command)
{
    struct redis_commands *commands = command->commands;

    try_later(commands);
    if (commands->try_ms >= command->deadline.due_ms)
        return false;
    wait(command);
    return true;
}

static void on_reply(void *context, const redisReply *reply)
{
    struct redis_commands *commands = context;
    struct list_node *first = list_first(&commands->sent);
    struct command *command;

    if (!first) {
        try_later(commands);
        give_up(commands, "Redis answers what it was not asked");
        return;
    }
    command = LIST_OWNER(first, struct command, node);
    list_remove(&commands->sent, first);
    if (sl_reply_is_noscript(reply)) {
        sl_call_use_source(&command->call, true);
        send_or_fail(command);
        return;
    }
    if (!asks_again(commands, reply))
        backoff_reset(&commands->backoff);
    else if (send_later(command))
        return;
    finish(command, reply);
}

static void on_turn_end(void *context)
{
    arm_timer(context);
}

/* ---- time, again ---- */

static void time_out(struct command *command)
{
    struct redis_commands *commands = command->commands;

    if (command->is_sent) {
        try_later(commands);
        give_up(commands, "Redis did not answer in time");
    } else {
        list_remove(&commands->waiting, &command->node);
        fail_with_connection(command);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_commands *commands = timer->data;
    uint64_t now_ms = uv_now(commands->loop);
    struct deadline *due;

    while ((due = deadline_list_take_due(&commands->deadlines, now_ms)) != NULL)
        time_out(DEADLINE_OWNER(due, struct command, deadline));
    if (!commands->is_stopping && commands->try_ms <= now_ms)
        try_waiting(commands);
    arm_timer(commands);
}

/* ---- from outside ---- */

struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          const char *name, uint32_t timeout_ms)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    const struct redis_session_settings settings = {
        .loop = loop,
        .address = address,
        .name = name,
        .connect_ms = timeout_ms / CONNECT_TRIES,
        .timeout_ms = timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct redis_commands *commands = mem_zalloc(sizeof(*commands));

    if (!commands)
        return NULL;
    commands->session = redis_session_new(&settings, &callbacks, commands);
    if (!commands->session) {
        mem_free(commands);
        return NULL;
    }
    commands->loop = loop;
    commands->address = *address;
    commands->is_endpoint_known = address->sentinel_count == 0;
    commands->try_ms = UINT64_MAX;
    deadline_list_init(&commands->deadlines, timeout_ms);
    list_init(&commands->waiting);
    list_init(&commands->sent);
    list_init(&commands->lost);
    uv_timer_init(loop, &commands->timer);
    commands->timer.data = commands;
    return commands;
}

void redis_commands_set_endpoint(struct redis_commands *commands,
                                 const struct sl_redis_endpoint *endpoint)
{
    commands->is_endpoint_known = endpoint != NULL;
    if (!endpoint)
        return;
    if (!sl_redis_endpoint_equals(endpoint, &commands->address.endpoint)) {
        commands->address.endpoint = *endpoint;
        disconnect(commands, "another Redis is the master now");
        redis_session_set_endpoint(commands->session, endpoint);
        lose_sent(commands);
    }
    redis_commands_try_now(commands);
}

void redis_commands_try_now(struct redis_commands *commands)
{
    if (commands->is_stopping || list_is_empty(&commands->waiting))
        return;
    backoff_reset(&commands->backoff);
    try_waiting(commands);
    arm_timer(commands);
}

int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner)
{
    struct command *command = commands->is_stopping ? NULL : mem_zalloc(sizeof(*command));

    if (!command) {
        sl_call_done(call);
        return commands->is_stopping ? -ECANCELED : -ENOMEM;
    }
    *command = (struct command){.commands = commands, .call = *call, .done = done, .owner = owner};
    *call = SL_CALL_INIT;
    deadline_list_add(&commands->deadlines, &command->deadline, uv_now(commands->loop));
    if (!redis_session_is_ready(commands->session)) {
        wait(command);
        if (commands->try_ms == UINT64_MAX)
            try_waiting(commands);
    } else if (send_command(command) < 0) {
        command_free(command);
        return -ENOMEM;
    }
    arm_timer(commands);
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

/* Whoever calls may be one who has just been answered: what is on the stack below stays until the
 * loop comes round. */
void redis_commands_free(struct redis_commands *commands)
{
    struct list_node *first;

    if (!commands)
        return;
    commands->is_stopping = true;
    give_up(commands, "the server is stopping");
    while ((first = list_first(&commands->waiting)) != NULL) {
        list_remove(&commands->waiting, first);
        fail_with_connection(LIST_OWNER(first, struct command, node));
    }
    redis_session_free(commands->session);
    uv_close((uv_handle_t *)&commands->timer, on_timer_closed);
}
