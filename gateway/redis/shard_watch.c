/* shard_watch.c - a chain of calls for each node.
 *
 * The next shard of a node is asked when the one before it has answered. A failure ends the chain,
 * and with it the part of the round that concerns this node. When no chain has an outstanding call,
 * the timer begins a new round, which determines again which nodes have which shards. So a round
 * costs each node one call at a time. A node that hangs delays the next round until its call has
 * timed out, but not the results of the others in this one. */
#include "gateway/redis/shard_watch.h"

#include "base/alloc.h"

/* The shards of one node. */
struct chain {
    struct shard_watch *watch;
    uint64_t left;  /* still to be asked in this round, as bits */
    uint32_t shard; /* being asked */
};

struct shard_watch {
    uv_timer_t timer;
    struct redis_commands *commands;
    const struct shard_question *question;
    struct sl_meta meta; /* only the number of shards is needed */
    struct chain chains[SL_SHARDS_MAX];
    uint32_t asked, answered; /* shards: being asked, and answered in this round */
    _Alignas(max_align_t) unsigned char context[];
};

static void ask_next(struct chain *chain);

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct chain *chain = owner;
    struct shard_watch *watch = chain->watch;

    (void)why; /* the owner of the result reports the failure */
    watch->asked--;
    if (!reply || watch->question->take(watch->context, chain->shard, reply) < 0)
        return;
    if (++watch->answered == watch->meta.shards && watch->question->end)
        watch->question->end(watch->context);
    ask_next(chain);
}

static void ask_next(struct chain *chain)
{
    struct shard_watch *watch = chain->watch;
    struct sl_call call = SL_CALL_INIT;

    if (chain->left == 0)
        return;
    chain->shard = (uint32_t)__builtin_ctzll(chain->left);
    chain->left &= chain->left - 1;
    if (watch->question->build(&call, &watch->meta, chain->shard, NULL) < 0)
        sl_call_done(&call);
    else if (redis_commands_run_take(watch->commands, &call, on_reply, chain) == 0)
        watch->asked++;
}

static void on_timer(uv_timer_t *timer)
{
    struct shard_watch *watch = timer->data;
    uint64_t nodes[SL_SHARDS_MAX];
    uint32_t count;

    if (watch->asked > 0)
        return;
    watch->answered = 0;
    if (watch->question->begin)
        watch->question->begin(watch->context);
    count = redis_commands_nodes(watch->commands,
                                 UINT64_MAX >> (SL_SHARDS_MAX - watch->meta.shards), nodes);
    for (uint32_t i = 0; i < count; i++) {
        watch->chains[i] = (struct chain){.watch = watch, .left = nodes[i]};
        ask_next(&watch->chains[i]);
    }
}

void shard_watch_begin(struct shard_watch *watch, uint32_t shards)
{
    if (!watch)
        return;
    watch->meta.shards = shards;
    uv_timer_start(&watch->timer, on_timer, 0, watch->question->every_ms);
}

struct shard_watch *shard_watch_new(uv_loop_t *loop, struct redis_commands *commands,
                                    const struct shard_question *question, size_t context_size)
{
    struct shard_watch *watch = mem_zalloc(sizeof(*watch) + context_size);

    if (!watch)
        return NULL;
    watch->commands = commands;
    watch->question = question;
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    return watch;
}

void *shard_watch_context(struct shard_watch *watch)
{
    return watch->context;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void shard_watch_free(struct shard_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->timer, on_closed);
}
