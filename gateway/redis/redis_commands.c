/* redis_commands.c - accepts commands, and creates lanes for the nodes that have the shards.
 *
 * A lane is the connection to one Redis, with the commands that wait for it and those that it has
 * not answered (redis_lane.c). A single Redis is one lane; with sentinels it moves with the master;
 * in a cluster there is a lane for each master of the map.
 *
 * The number of commands is limited by the callers, whose number is limited, and by the time limit
 * of each command. */
#include "gateway/redis/redis_commands.h"

#include <errno.h>

#include "base/alloc.h"
#include "gateway/redis/redis_commands_parts.h"

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
        struct redis_lane *only = redis_lane_make(commands, NULL);

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
    struct redis_lane *lane = commands->lanes[0];

    commands->is_endpoint_known = endpoint != NULL;
    if (!endpoint)
        return;
    if (!sl_redis_endpoint_equals(endpoint, &commands->address.endpoint)) {
        commands->address.endpoint = *endpoint;
        redis_lane_move(lane, endpoint);
    }
    redis_commands_try_now(commands);
}

void redis_commands_set_doubt(struct redis_commands *commands, redis_doubt_fn tell, void *context)
{
    commands->doubt = tell;
    commands->doubt_context = context;
}

static void free_lane(struct redis_lane *lane)
{
    redis_session_free(lane->session);
    mem_free(lane);
}

/* Must not be called while a lane is calling. */
static void drop_idle_lanes(struct redis_commands *commands)
{
    size_t kept = 0;

    for (size_t i = 0; i < commands->lane_count; i++) {
        struct redis_lane *lane = commands->lanes[i];

        if (lane->shards == 0 && list_is_empty(&lane->sent))
            free_lane(lane);
        else
            commands->lanes[kept++] = lane;
    }
    commands->lane_count = kept;
}

void redis_commands_set_map(struct redis_commands *commands, const struct sl_cluster_map *map)
{
    if (commands->is_stopping)
        return;
    commands->map = *map;
    redis_lanes_follow_map(commands);
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

/* A lower value means that an answer can be expected sooner. */
static uint64_t expected_delay(const struct redis_lane *lane)
{
    if (!redis_session_is_ready(lane->session))
        return list_is_empty(&lane->waiting) ? UINT64_MAX - 1 : UINT64_MAX;
    return list_is_empty(&lane->sent) ? 0 : 1 + uv_now(lane->commands->loop) - lane->answered_ms;
}

uint32_t redis_commands_reached(const struct redis_commands *commands)
{
    const struct redis_lane *best = NULL;

    for (size_t i = 0; i < commands->lane_count; i++) {
        const struct redis_lane *lane = commands->lanes[i];

        if (lane->shards && (!best || expected_delay(lane) < expected_delay(best)))
            best = lane;
    }
    return best ? (uint32_t)__builtin_ctzll(best->shards) : 0;
}

void redis_commands_try_now(struct redis_commands *commands)
{
    for (size_t i = 0; !commands->is_stopping && i < commands->lane_count; i++) {
        struct redis_lane *lane = commands->lanes[i];

        if (list_is_empty(&lane->waiting))
            continue;
        backoff_reset(&lane->backoff);
        redis_lane_try(lane);
    }
    redis_lanes_arm_timer(commands);
}

int redis_commands_run_take(struct redis_commands *commands, struct sl_call *call,
                            redis_reply_fn done, void *owner)
{
    struct redis_command *command = commands->is_stopping ? NULL : mem_zalloc(sizeof(*command));

    if (!command) {
        sl_call_done(call);
        return commands->is_stopping ? -ECANCELED : -ENOMEM;
    }
    *command =
        (struct redis_command){.commands = commands, .call = *call, .done = done, .owner = owner};
    *call = SL_CALL_INIT;
    deadline_list_add(&commands->deadlines, &command->deadline, uv_now(commands->loop));
    if (redis_command_begin(command) < 0) {
        redis_command_free(command);
        return -ENOMEM;
    }
    redis_lanes_arm_timer(commands);
    return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct redis_commands *commands = handle->data;

    for (size_t i = 0; i < commands->lane_count; i++)
        mem_free(commands->lanes[i]);
    mem_free(commands);
}

/* The caller may be a callback of a command: what is on the stack exists until the next turn of the
 * loop. */
void redis_commands_free(struct redis_commands *commands)
{
    if (!commands)
        return;
    commands->is_stopping = true;
    for (size_t i = 0; i < commands->lane_count; i++) {
        redis_lane_give_up(commands->lanes[i], "the server is stopping");
        redis_command_fail_all(&commands->lanes[i]->waiting);
        redis_session_free(commands->lanes[i]->session);
    }
    redis_command_fail_all(&commands->homeless);
    uv_close((uv_handle_t *)&commands->timer, on_timer_closed);
}
