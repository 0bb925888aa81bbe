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
 * A lane is the connection to one Redis, with its lines of commands. A single Redis is a lane for
 * all shards. In a cluster there is one for each master that the map names; a command for a shard
 * that nobody is known to have waits in `homeless`. What a node answers with MOVED goes to the lane
 * of the node that it names. A lane that has lost its shards stays until what was sent on it is
 * answered.
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
#include "src/model/id.h"

enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1000, CONNECT_TRIES = 4 };
enum { HOPS_MAX = 5 }; /* of a command, from node to node; then it has to wait */
enum { LANES_MAX = 2 * SL_SHARDS_MAX };

/* Of all callers together, while Redis does not read; who comes then is sent away. */
enum { UNSENT_MAX_BYTES = 64 * 1024 * 1024 };

struct command {
    struct redis_commands *commands;
    struct lane *lane; /* NULL: nobody is known to have the shard */
    struct sl_call call;
    redis_reply_fn done;
    void *owner;
    struct deadline deadline; /* in no list: its time is over */
    struct list_node node;    /* of `waiting`, `sent` or `lost` of its lane, or of `homeless` */
    bool is_sent;
    unsigned hops;
};

struct lane {
    struct redis_commands *commands;
    struct sl_redis_endpoint endpoint; /* in a cluster */
    uint64_t shards;                   /* whose commands go here, by bit */
    struct redis_session *session;
    bool was_ready;       /* the session, since it was opened */
    uint64_t answered_ms; /* when its last answer came */
    struct list waiting, sent;
    struct list lost;       /* were sent on a connection that has just ended */
    uint64_t try_ms;        /* when the waiting ones are tried next */
    struct backoff backoff; /* until something is answered */
    struct failure why;     /* the last connection ended, or none could be made */
};

struct redis_commands {
    uv_loop_t *loop;
    struct sl_redis_address address;
    const char *name;
    uint32_t timeout_ms;
    bool is_endpoint_known; /* always, without sentinels */
    bool is_stopping;
    struct deadline_list deadlines;
    struct lane *lanes[LANES_MAX];
    size_t lane_count;
    struct sl_cluster_map map;
    struct list homeless;
    redis_doubt_fn doubt; /* NULL: nobody wants to know */
    void *doubt_context;
    uv_timer_t timer;
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
    const struct lane *lane = command->lane;

    if (!lane)
        fail(command, "nobody in the cluster is known to have the shard");
    else
        fail(command, lane->why.text[0] ? lane->why.text : "no connection");
}

/* ---- time ---- */

static void on_timer(uv_timer_t *timer);

static void arm_timer(struct redis_commands *commands)
{
    uint64_t now_ms = uv_now(commands->loop);
    uint64_t at_ms = deadline_list_next_due_ms(&commands->deadlines);

    if (commands->is_stopping)
        return;
    for (size_t i = 0; i < commands->lane_count; i++) {
        const struct lane *lane = commands->lanes[i];

        if (!list_is_empty(&lane->waiting) && lane->try_ms < at_ms)
            at_ms = lane->try_ms;
    }
    if (at_ms == UINT64_MAX)
        uv_timer_stop(&commands->timer);
    else
        uv_timer_start(&commands->timer, on_timer, at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

/* The next try, unless one is arranged already. */
static void try_later(struct lane *lane)
{
    uint64_t now_ms = uv_now(lane->commands->loop);

    if (lane->try_ms <= now_ms || lane->try_ms == UINT64_MAX)
        lane->try_ms = now_ms + backoff_next_ms(&lane->backoff, PAUSE_MIN_MS, PAUSE_MAX_MS);
}

/* In a cluster something is not where it was thought to be, or not ready. */
static void doubt(struct redis_commands *commands)
{
    if (commands->doubt)
        commands->doubt(commands->doubt_context);
}

static struct lane *find_lane(const struct redis_commands *commands, uint32_t shard)
{
    for (size_t i = 0; i < commands->lane_count; i++) {
        if (commands->lanes[i]->shards >> shard & 1)
            return commands->lanes[i];
    }
    return NULL;
}

/* Behind those that wait where the shard is. */
static void wait(struct command *command)
{
    struct redis_commands *commands = command->commands;

    command->is_sent = false;
    command->lane = find_lane(commands, command->call.shard);
    list_append(command->lane ? &command->lane->waiting : &commands->homeless, &command->node);
    if (!command->lane)
        doubt(commands);
}

static struct list *line_of(struct command *command)
{
    return command->lane ? &command->lane->waiting : &command->commands->homeless;
}

/* ---- the connection ---- */

/* Those that were sent are not answered any more: each is tried again if it may be. */
static void settle_lost(struct lane *lane)
{
    struct list_node *first;

    while ((first = list_first(&lane->lost)) != NULL) {
        struct command *command = LIST_OWNER(first, struct command, node);

        list_remove(&lane->lost, first);
        if (command->call.is_repeatable && deadline_is_listed(&command->deadline) &&
            !lane->commands->is_stopping)
            wait(command);
        else
            fail_with_connection(command);
    }
}

static void lose_sent(struct lane *lane)
{
    struct list_node *first;

    while ((first = list_first(&lane->sent)) != NULL) {
        list_remove(&lane->sent, first);
        list_append(&lane->lost, first);
    }
    settle_lost(lane);
}

static void disconnect(struct lane *lane, const char *why)
{
    failure_set(&lane->why, 0, "%s", why);
    redis_session_close(lane->session);
    lane->was_ready = false;
}

static void give_up(struct lane *lane, const char *why)
{
    disconnect(lane, why);
    lose_sent(lane);
}

static void on_lost(void *context, const char *reason)
{
    struct lane *lane = context;
    char where[SL_REDIS_ENDPOINT_TEXT_SIZE];

    sl_redis_endpoint_print(&lane->endpoint, where, sizeof(where));
    failure_set(&lane->why, 0, "%s%s%s: %s", lane->was_ready ? "connection lost" : "cannot connect",
                lane->endpoint.host[0] ? " to the node " : "", lane->endpoint.host[0] ? where : "",
                reason);
    lane->was_ready = false;
    try_later(lane);
    doubt(lane->commands);
    lose_sent(lane);
    arm_timer(lane->commands);
}

/* ---- sending ---- */

static int send_command(struct command *command)
{
    int r = redis_session_send_call(command->lane->session, &command->call);

    if (r < 0)
        return r;
    command->is_sent = true;
    list_append(&command->lane->sent, &command->node);
    return 0;
}

static void send_or_fail(struct command *command)
{
    if (send_command(command) < 0)
        fail(command, "out of memory");
}

/* Who is told that there is no memory may ask again: that is sent on the spot, and waits not. */
static void send_waiting(struct lane *lane)
{
    struct list_node *first;

    while (redis_session_is_ready(lane->session) && (first = list_first(&lane->waiting)) != NULL) {
        list_remove(&lane->waiting, first);
        send_or_fail(LIST_OWNER(first, struct command, node));
    }
}

static void on_ready(void *context)
{
    struct lane *lane = context;

    redis_session_settle(lane->session, 0);
    lane->was_ready = true;
    lane->try_ms = UINT64_MAX;
    send_waiting(lane);
    arm_timer(lane->commands);
}

/* What waits is sent now, or as soon as there is a connection. */
static void try_waiting(struct lane *lane)
{
    lane->try_ms = UINT64_MAX;
    if (redis_session_is_ready(lane->session)) {
        send_waiting(lane);
    } else if (redis_session_is_open(lane->session)) {
        return; /* on_ready, or on_lost */
    } else if (lane->commands->is_endpoint_known) {
        redis_session_open(lane->session);
    } else {
        failure_set(&lane->why, 0, "the sentinels have not said which Redis is the master");
    }
}

/* Sends the command, or lets it wait for a connection. 0; -ENOMEM: it is in no list. */
static int begin_command(struct command *command)
{
    struct lane *lane = command->lane = find_lane(command->commands, command->call.shard);

    if (lane && redis_session_is_ready(lane->session))
        return send_command(command);
    wait(command);
    if (lane && lane->try_ms == UINT64_MAX)
        try_waiting(lane);
    return 0;
}

/* ---- the lanes of a cluster ---- */

/* NULL: out of memory, or too many. */
static struct lane *make_lane(struct redis_commands *commands,
                              const struct sl_redis_endpoint *endpoint);

static uint64_t shards_of(const struct sl_cluster_map *map, const struct sl_redis_endpoint *master)
{
    uint64_t shards = 0;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (sl_redis_endpoint_equals(&map->masters[shard], master))
            shards |= UINT64_C(1) << shard;
    }
    return shards;
}

/* What waits in `line` goes where its shard is now. */
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
        struct command *command = LIST_OWNER(first, struct command, node);

        list_remove(&strays, first);
        if (begin_command(command) < 0)
            fail(command, "out of memory");
    }
}

/* The lanes become those of the map. One that cannot be made is missed until the map is said again.
 */
static void follow_map(struct redis_commands *commands)
{
    for (size_t i = 0; i < commands->lane_count; i++)
        commands->lanes[i]->shards = shards_of(&commands->map, &commands->lanes[i]->endpoint);
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        const struct sl_redis_endpoint *master = &commands->map.masters[shard];
        struct lane *lane = NULL;

        if (master->host[0] && !find_lane(commands, shard))
            lane = make_lane(commands, master);
        if (lane)
            lane->shards = shards_of(&commands->map, master);
    }
    for (size_t i = 0; i < commands->lane_count; i++)
        send_home(&commands->lanes[i]->waiting);
    send_home(&commands->homeless);
}

static void free_lane(struct lane *lane)
{
    redis_session_free(lane->session);
    mem_free(lane);
}

/* Not while one of them is calling. */
static void drop_idle_lanes(struct redis_commands *commands)
{
    size_t kept = 0;

    for (size_t i = 0; i < commands->lane_count; i++) {
        struct lane *lane = commands->lanes[i];

        if (lane->shards == 0 && list_is_empty(&lane->sent))
            free_lane(lane);
        else
            commands->lanes[kept++] = lane;
    }
    commands->lane_count = kept;
}

/* ---- replies ---- */

/* A reply that only asks for another try; none of these has done anything. */
static bool asks_again(const struct redis_commands *commands, const redisReply *reply)
{
    bool is_clustered = commands->address.seed_count > 0;

    return sl_reply_is_not_yet(reply) ||
           ((is_clustered || commands->address.sentinel_count > 0) && sl_reply_is_replica(reply)) ||
           (is_clustered && sl_reply_check(reply, NULL) == -EREMOTE);
}

/* Nobody is kept waiting for a try that would come too late. */
static bool send_later(struct command *command)
{
    struct lane *lane = command->lane;

    try_later(lane);
    doubt(lane->commands);
    if (lane->try_ms >= command->deadline.due_ms)
        return false;
    wait(command);
    return true;
}

/* Another node has the shard: the command goes there. */
static bool follow_move(struct command *command, const redisReply *reply)
{
    struct redis_commands *commands = command->commands;
    uint32_t shard = command->call.shard;
    struct sl_cluster_redirect redirect;

    if (commands->address.seed_count == 0 || command->hops == HOPS_MAX ||
        sl_cluster_redirect_reply(reply, &command->lane->endpoint, &redirect) < 0 ||
        redirect.is_ask || redirect.slot != sl_cluster_slot(shard))
        return false;
    command->hops++;
    commands->map.masters[shard] = redirect.endpoint;
    follow_map(commands);
    doubt(commands);
    if (begin_command(command) < 0)
        fail(command, "out of memory");
    return true;
}

static void on_reply(void *context, const redisReply *reply)
{
    struct lane *lane = context;
    struct list_node *first = list_first(&lane->sent);
    struct command *command;

    if (!first) {
        try_later(lane);
        give_up(lane, "Redis answers what it was not asked");
        return;
    }
    command = LIST_OWNER(first, struct command, node);
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
    arm_timer(((struct lane *)context)->commands);
}

/* ---- time, again ---- */

static void time_out(struct command *command)
{
    struct lane *lane = command->lane;

    if (command->is_sent) {
        try_later(lane);
        doubt(lane->commands);
        give_up(lane, "Redis did not answer in time");
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
        time_out(DEADLINE_OWNER(due, struct command, deadline));
    for (size_t i = 0; !commands->is_stopping && i < commands->lane_count; i++) {
        struct lane *lane = commands->lanes[i];

        if (lane->try_ms <= now_ms && !list_is_empty(&lane->waiting))
            try_waiting(lane);
    }
    arm_timer(commands);
}

/* ---- from outside ---- */

static struct lane *make_lane(struct redis_commands *commands,
                              const struct sl_redis_endpoint *endpoint)
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
        .name = commands->name,
        .connect_ms = commands->timeout_ms / CONNECT_TRIES,
        .timeout_ms = commands->timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct lane *lane = commands->lane_count < LANES_MAX ? mem_zalloc(sizeof(*lane)) : NULL;

    if (!lane)
        return NULL;
    lane->session = redis_session_new(&settings, &callbacks, lane);
    if (!lane->session) {
        mem_free(lane);
        return NULL;
    }
    lane->commands = commands;
    if (endpoint) {
        lane->endpoint = *endpoint;
        redis_session_set_endpoint(lane->session, endpoint);
    }
    lane->try_ms = UINT64_MAX;
    list_init(&lane->waiting);
    list_init(&lane->sent);
    list_init(&lane->lost);
    commands->lanes[commands->lane_count++] = lane;
    return lane;
}

struct redis_commands *redis_commands_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                          const char *name, uint32_t timeout_ms)
{
    struct redis_commands *commands = mem_zalloc(sizeof(*commands));

    if (!commands)
        return NULL;
    commands->loop = loop;
    commands->address = *address;
    commands->name = name;
    commands->timeout_ms = timeout_ms;
    commands->is_endpoint_known = address->sentinel_count == 0;
    if (address->seed_count == 0) {
        struct lane *only = make_lane(commands, NULL);

        if (!only) {
            mem_free(commands);
            return NULL;
        }
        only->shards = UINT64_MAX;
    }
    deadline_list_init(&commands->deadlines, timeout_ms);
    list_init(&commands->homeless);
    uv_timer_init(loop, &commands->timer);
    commands->timer.data = commands;
    return commands;
}

void redis_commands_set_endpoint(struct redis_commands *commands,
                                 const struct sl_redis_endpoint *endpoint)
{
    struct lane *lane = commands->lanes[0];

    commands->is_endpoint_known = endpoint != NULL;
    if (!endpoint)
        return;
    if (!sl_redis_endpoint_equals(endpoint, &commands->address.endpoint)) {
        commands->address.endpoint = *endpoint;
        disconnect(lane, "another Redis is the master now");
        redis_session_set_endpoint(lane->session, endpoint);
        lose_sent(lane);
    }
    redis_commands_try_now(commands);
}

void redis_commands_set_doubt(struct redis_commands *commands, redis_doubt_fn tell, void *context)
{
    commands->doubt = tell;
    commands->doubt_context = context;
}

void redis_commands_set_map(struct redis_commands *commands, const struct sl_cluster_map *map)
{
    if (commands->is_stopping)
        return;
    commands->map = *map;
    follow_map(commands);
    drop_idle_lanes(commands);
    redis_commands_try_now(commands);
}

uint32_t redis_commands_nodes(const struct redis_commands *commands, uint64_t shards,
                              uint64_t ret_nodes[static SL_SHARDS_MAX])
{
    uint32_t count = 0;

    for (size_t i = 0; i < commands->lane_count; i++) {
        uint64_t own = commands->lanes[i]->shards & shards;

        if (own)
            ret_nodes[count++] = own;
    }
    return count;
}

/* The less, the sooner an answer may be expected. */
static uint64_t doubtfulness(const struct lane *lane)
{
    if (!redis_session_is_ready(lane->session))
        return list_is_empty(&lane->waiting) ? UINT64_MAX - 1 : UINT64_MAX;
    return list_is_empty(&lane->sent) ? 0 : 1 + uv_now(lane->commands->loop) - lane->answered_ms;
}

uint32_t redis_commands_reached(const struct redis_commands *commands)
{
    const struct lane *best = NULL;

    for (size_t i = 0; i < commands->lane_count; i++) {
        const struct lane *lane = commands->lanes[i];

        if (lane->shards && (!best || doubtfulness(lane) < doubtfulness(best)))
            best = lane;
    }
    return best ? (uint32_t)__builtin_ctzll(best->shards) : 0;
}

void redis_commands_try_now(struct redis_commands *commands)
{
    for (size_t i = 0; !commands->is_stopping && i < commands->lane_count; i++) {
        struct lane *lane = commands->lanes[i];

        if (list_is_empty(&lane->waiting))
            continue;
        backoff_reset(&lane->backoff);
        try_waiting(lane);
    }
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
    if (begin_command(command) < 0) {
        command_free(command);
        return -ENOMEM;
    }
    arm_timer(commands);
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct redis_commands *commands = handle->data;

    for (size_t i = 0; i < commands->lane_count; i++)
        mem_free(commands->lanes[i]);
    mem_free(commands);
}

static void fail_all(struct list *line)
{
    struct list_node *first;

    while ((first = list_first(line)) != NULL) {
        list_remove(line, first);
        fail_with_connection(LIST_OWNER(first, struct command, node));
    }
}

/* Whoever calls may be one who has just been answered: what is on the stack below stays until the
 * loop comes round. */
void redis_commands_free(struct redis_commands *commands)
{
    if (!commands)
        return;
    commands->is_stopping = true;
    for (size_t i = 0; i < commands->lane_count; i++) {
        give_up(commands->lanes[i], "the server is stopping");
        fail_all(&commands->lanes[i]->waiting);
        redis_session_free(commands->lanes[i]->session);
    }
    fail_all(&commands->homeless);
    uv_close((uv_handle_t *)&commands->timer, on_timer_closed);
}
