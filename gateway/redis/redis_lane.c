/* redis_lane.c - the connection to one Redis, and its commands.
 *
 * A command is in one of two lists: `waiting`, for a connection or for its next try, or `sent`, in
 * the order of the replies. All commands are also in `deadlines`; one timer serves these and the
 * next try. Nothing is sent before the session is ready. So a command without an answer was either
 * certainly not executed (waiting) or may have been (sent).
 *
 * If a sent command times out the connection is closed, because the replies would no longer be in
 * order. Without a connection, waiting commands cause attempts to make one, with pauses from 20 ms
 * to a second. When it is ready all of them are sent, and redis_commands_try_now() ends a pause.
 *
 * A single Redis is a lane for all shards. In a cluster there is one for each master of the map; a
 * command for a shard without a known node waits in `homeless`. A command that a node answers with
 * MOVED goes to the lane of the node named. A lane that has lost its shards stays until its sent
 * commands are answered. */
#include "gateway/redis/redis_commands_parts.h"

#include "base/alloc.h"
#include "src/call/reply.h"

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000 };
enum { HOPS_MAX = 5 }; /* redirections of a command in a row; after that it waits */

/* Of all callers together, while Redis does not read; more are refused. */
enum { UNSENT_MAX_BYTES = 64 * 1024 * 1024 };

/* ---- the end of a command ---- */

void redis_command_free(struct redis_command *command)
{
    deadline_list_remove(&command->commands->deadlines, &command->deadline);
    sl_call_done(&command->call);
    mem_free(command);
}

static void finish(struct redis_command *command, const redisReply *reply)
{
    command->done(command->owner, reply, NULL);
    redis_command_free(command);
}

static void fail(struct redis_command *command, const char *why)
{
    command->done(command->owner, NULL, why);
    redis_command_free(command);
}

/* Fails with the reason of the connection, or of the attempts to make one. */
static void fail_with_connection(struct redis_command *command)
{
    const struct redis_lane *lane = command->lane;

    if (!lane)
        fail(command, "no node of the cluster is known to have the shard");
    else
        fail(command, lane->why.text[0] ? lane->why.text : "no connection");
}

/* ---- timers ---- */

static void on_timer(uv_timer_t *timer);

void redis_lanes_arm_timer(struct redis_commands *commands)
{
    uint64_t now_ms = uv_now(commands->loop);
    uint64_t at_ms = deadline_list_next_due_ms(&commands->deadlines);

    if (commands->is_stopping)
        return;
    for (size_t i = 0; i < commands->lane_count; i++) {
        const struct redis_lane *lane = commands->lanes[i];

        if (!list_is_empty(&lane->waiting) && lane->try_ms < at_ms)
            at_ms = lane->try_ms;
    }
    if (at_ms == UINT64_MAX)
        uv_timer_stop(&commands->timer);
    else
        uv_timer_start(&commands->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

/* Schedules the next try, unless one is scheduled. */
static void try_later(struct redis_lane *lane)
{
    uint64_t now_ms = uv_now(lane->commands->loop);

    if (lane->try_ms <= now_ms || lane->try_ms == UINT64_MAX)
        lane->try_ms = now_ms + backoff_next_ms(&lane->backoff, PAUSE_MIN_MS, PAUSE_MAX_MS);
}

/* In a cluster something is not at the expected node, or not ready. */
static void doubt(struct redis_commands *commands)
{
    if (commands->doubt)
        commands->doubt(commands->doubt_context);
}

static struct redis_lane *find_lane(const struct redis_commands *commands, uint32_t shard)
{
    for (size_t i = 0; i < commands->lane_count; i++) {
        if (commands->lanes[i]->shards >> shard & 1)
            return commands->lanes[i];
    }
    return NULL;
}

/* Appends it to the commands that wait for its shard's node. */
static void wait(struct redis_command *command)
{
    struct redis_commands *commands = command->commands;

    command->is_sent = false;
    command->lane = find_lane(commands, command->call.shard);
    list_append(command->lane ? &command->lane->waiting : &commands->homeless, &command->node);
    if (!command->lane)
        doubt(commands);
}

static struct list *line_of(struct redis_command *command)
{
    return command->lane ? &command->lane->waiting : &command->commands->homeless;
}

/* ---- the connection ---- */

/* The sent commands will not be answered: each is tried again if that is allowed. */
static void settle_lost(struct redis_lane *lane)
{
    struct list_node *first;

    while ((first = list_first(&lane->lost)) != NULL) {
        struct redis_command *command = LIST_OWNER(first, struct redis_command, node);

        list_remove(&lane->lost, first);
        if (command->call.is_repeatable && deadline_is_listed(&command->deadline) &&
            !lane->commands->is_stopping)
            wait(command);
        else
            fail_with_connection(command);
    }
}

static void lose_sent(struct redis_lane *lane)
{
    struct list_node *first;

    while ((first = list_first(&lane->sent)) != NULL) {
        list_remove(&lane->sent, first);
        list_append(&lane->lost, first);
    }
    settle_lost(lane);
}

static void disconnect(struct redis_lane *lane, const char *why)
{
    failure_set(&lane->why, 0, "%s", why);
    redis_session_close(lane->session);
    lane->was_ready = false;
}

void redis_lane_give_up(struct redis_lane *lane, const char *why)
{
    disconnect(lane, why);
    lose_sent(lane);
}

void redis_lane_move(struct redis_lane *lane, const struct sl_redis_endpoint *endpoint)
{
    disconnect(lane, "another Redis is the master now");
    redis_session_set_endpoint(lane->session, endpoint);
    lose_sent(lane);
}

static void on_lost(void *context, const char *reason)
{
    struct redis_lane *lane = context;
    bool is_clustered = lane->commands->address.seed_count > 0;
    char where[SL_REDIS_ENDPOINT_TEXT_SIZE];

    sl_redis_endpoint_print(redis_session_endpoint(lane->session), where, sizeof(where));
    failure_set(&lane->why, 0, "%s%s%s: %s", lane->was_ready ? "connection lost" : "cannot connect",
                is_clustered ? " to the node " : "", is_clustered ? where : "", reason);
    lane->was_ready = false;
    try_later(lane);
    doubt(lane->commands);
    lose_sent(lane);
    redis_lanes_arm_timer(lane->commands);
}

/* ---- sending ---- */

static int send_command(struct redis_command *command)
{
    int r = redis_session_send_call(command->lane->session, &command->call);

    if (r < 0)
        return r;
    command->is_sent = true;
    list_append(&command->lane->sent, &command->node);
    return 0;
}

static void send_or_fail(struct redis_command *command)
{
    if (send_command(command) < 0)
        fail(command, "out of memory");
}

/* A caller that is told that memory is lacking may issue another command: it is sent at once and
 * does not wait. */
static void send_waiting(struct redis_lane *lane)
{
    struct list_node *first;

    while (redis_session_is_ready(lane->session) && (first = list_first(&lane->waiting)) != NULL) {
        list_remove(&lane->waiting, first);
        send_or_fail(LIST_OWNER(first, struct redis_command, node));
    }
}

static void on_ready(void *context)
{
    struct redis_lane *lane = context;

    redis_session_settle(lane->session, 0);
    lane->was_ready = true;
    lane->try_ms = UINT64_MAX;
    send_waiting(lane);
    redis_lanes_arm_timer(lane->commands);
}

void redis_lane_try(struct redis_lane *lane)
{
    lane->try_ms = UINT64_MAX;
    if (redis_session_is_ready(lane->session)) {
        send_waiting(lane);
    } else if (redis_session_is_open(lane->session)) {
        return; /* on_ready or on_lost will do so */
    } else if (lane->commands->is_endpoint_known) {
        redis_session_open(lane->session);
    } else {
        failure_set(&lane->why, 0, "the sentinels have not named a master");
    }
}

int redis_command_begin(struct redis_command *command)
{
    struct redis_lane *lane = command->lane = find_lane(command->commands, command->call.shard);

    if (lane && redis_session_is_ready(lane->session))
        return send_command(command);
    wait(command);
    if (lane && lane->try_ms == UINT64_MAX)
        redis_lane_try(lane);
    return 0;
}

/* ---- the lanes of a cluster ---- */

static void on_reply(void *context, const redisReply *reply);
static void on_turn_end(void *context);

struct redis_lane *redis_lane_make(struct redis_commands *commands,
                                   const struct sl_redis_endpoint *node)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    const struct redis_session_settings settings = {
        .loop = commands->loop,
        .address = &commands->address,
        .endpoint = node,
        .name = commands->name,
        .timeout_ms = commands->timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct redis_lane *lane =
        commands->lane_count < REDIS_LANES_MAX ? mem_zalloc(sizeof(*lane)) : NULL;

    if (!lane)
        return NULL;
    lane->session = redis_session_new(&settings, &callbacks, lane);
    if (!lane->session) {
        mem_free(lane);
        return NULL;
    }
    lane->commands = commands;
    lane->try_ms = UINT64_MAX;
    list_init(&lane->waiting);
    list_init(&lane->sent);
    list_init(&lane->lost);
    commands->lanes[commands->lane_count++] = lane;
    return lane;
}

/* Moves the commands in `line` to the lane of their shard. */
static void send_home(struct list *line)
{
    struct list strays;
    struct list_node *first;

    list_init(&strays);
    while ((first = list_first(line)) != NULL) {
        list_remove(line, first);
        list_append(&strays, first);
    }
    while ((first = list_first(&strays)) != NULL) {
        struct redis_command *command = LIST_OWNER(first, struct redis_command, node);

        list_remove(&strays, first);
        if (redis_command_begin(command) < 0)
            fail(command, "out of memory");
    }
}

void redis_lanes_follow_map(struct redis_commands *commands)
{
    for (size_t i = 0; i < commands->lane_count; i++)
        commands->lanes[i]->shards = sl_cluster_map_shards_of(
            &commands->map, redis_session_endpoint(commands->lanes[i]->session));
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        const struct sl_redis_endpoint *master = &commands->map.masters[shard];
        struct redis_lane *lane = NULL;

        if (master->host[0] && !find_lane(commands, shard))
            lane = redis_lane_make(commands, master);
        if (lane)
            lane->shards = sl_cluster_map_shards_of(&commands->map, master);
    }
    for (size_t i = 0; i < commands->lane_count; i++)
        send_home(&commands->lanes[i]->waiting);
    send_home(&commands->homeless);
}

/* ---- replies ---- */

/* A reply that only asks for another try; nothing was executed. */
static bool asks_again(const struct redis_commands *commands, const redisReply *reply)
{
    bool is_clustered = commands->address.seed_count > 0;

    return sl_reply_is_not_yet(reply) ||
           ((is_clustered || commands->address.sentinel_count > 0) && sl_reply_is_replica(reply)) ||
           (is_clustered && sl_reply_check(reply, NULL) == -EREMOTE);
}

/* A command is answered at once if the next try would come too late. */
static bool send_later(struct redis_command *command)
{
    struct redis_lane *lane = command->lane;

    try_later(lane);
    doubt(lane->commands);
    if (lane->try_ms >= command->deadline.due_ms)
        return false;
    wait(command);
    return true;
}

/* Another node has the shard: the command goes there. */
static bool follow_move(struct redis_command *command, const redisReply *reply)
{
    struct redis_commands *commands = command->commands;
    uint32_t shard = command->call.shard;
    struct sl_cluster_redirect redirect;

    if (commands->address.seed_count == 0 || command->hops == HOPS_MAX ||
        sl_cluster_redirect_reply(reply, redis_session_endpoint(command->lane->session),
                                  &redirect) < 0 ||
        redirect.is_ask || redirect.slot != sl_cluster_slot(shard))
        return false;
    command->hops++;
    commands->map.masters[shard] = redirect.endpoint;
    redis_lanes_follow_map(commands);
    doubt(commands);
    if (redis_command_begin(command) < 0)
        fail(command, "out of memory");
    return true;
}

static void on_reply(void *context, const redisReply *reply)
{
    struct redis_lane *lane = context;
    struct list_node *first = list_first(&lane->sent);
    struct redis_command *command;

    if (!first) {
        try_later(lane);
        redis_lane_give_up(lane, "Redis sent an unexpected answer");
        return;
    }
    command = LIST_OWNER(first, struct redis_command, node);
    list_remove(&lane->sent, first);
    lane->answered_ms = uv_now(lane->commands->loop);
    if (sl_reply_is_noscript(reply)) {
        sl_call_use_source(&command->call, true);
        send_or_fail(command);
        return;
    }
    if (follow_move(command, reply))
        return;
    if (!asks_again(lane->commands, reply))
        backoff_reset(&lane->backoff);
    else if (send_later(command))
        return;
    finish(command, reply);
}

static void on_turn_end(void *context)
{
    redis_lanes_arm_timer(((struct redis_lane *)context)->commands);
}

/* ---- timeouts ---- */

static void time_out(struct redis_command *command)
{
    struct redis_lane *lane = command->lane;

    if (command->is_sent) {
        try_later(lane);
        doubt(lane->commands);
        redis_lane_give_up(lane, "Redis did not answer in time");
    } else {
        list_remove(line_of(command), &command->node);
        fail_with_connection(command);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_commands *commands = timer->data;
    uint64_t now_ms = uv_now(commands->loop);
    struct deadline *due;

    while ((due = deadline_list_take_due(&commands->deadlines, now_ms)) != NULL)
        time_out(DEADLINE_OWNER(due, struct redis_command, deadline));
    for (size_t i = 0; !commands->is_stopping && i < commands->lane_count; i++) {
        struct redis_lane *lane = commands->lanes[i];

        if (lane->try_ms <= now_ms && !list_is_empty(&lane->waiting))
            redis_lane_try(lane);
    }
    redis_lanes_arm_timer(commands);
}

void redis_command_fail_all(struct list *line)
{
    struct list_node *first;

    while ((first = list_first(line)) != NULL) {
        list_remove(line, first);
        fail_with_connection(LIST_OWNER(first, struct redis_command, node));
    }
}
