/* shard_clocks.c - a list of shards to raise, and one outstanding call.
 *
 * A round is for the shards of one Redis, because they share its clock: all, or in a cluster those
 * of a node. A shard is asked if it must be raised, or if another one was found to be further
 * ahead. The round ends when none is left, and is then logged if it has changed anything. The
 * shards of another node have another clock, which is unrelated. */
#include "gateway/intake/shard_clocks.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "src/database/database_clock.h"
#include "src/model/id.h"

enum {
    RETRY_MIN_MS = 100,
    RETRY_MAX_MS = 5000,
    STEP_MIN_MS = 100, /* busy shards run a few milliseconds ahead of the clock, which does not mean
                          that it was set back */
    STEP_PAUSE_MS = 1000, /* between two raises of a shard */
    ROUND_LOG_MS = 60000  /* a clock that stays wrong makes its shards be raised every few
                             seconds */
};

struct shard {
    uint64_t until_ms;   /* as found last */
    uint64_t time_ms;    /* last reported by its Redis */
    uint64_t stepped_ms; /* when it was last requested to be raised, by the loop's clock; 0:
                            never */
    bool is_behind;
    uint64_t low; /* for a shard that is behind: the lowest value reported */
    bool is_wanted;
    uint64_t wanted_low, wanted_high;
};

struct shard_clocks {
    uv_timer_t timer; /* when to ask again */
    struct redis_commands *commands;
    struct metrics *metrics;
    struct sl_meta meta; /* only the number of shards is needed */
    struct shard shards[SL_SHARDS_MAX];
    bool is_asking, has_failed; /* the last call */
    uint32_t asked_shard;       /* of the last call */
    struct sl_clock_raise asked;
    uint64_t round;          /* the shards of the current round, as bits; 0: there is none */
    unsigned raised, marked; /* number of shards in this round */
    struct backoff backoff;
    struct log_rate failed_rate, round_rate;
};

static void ask(struct shard_clocks *clocks);

/* ---- requests ---- */

static void want(struct shard *shard, uint64_t low, uint64_t high)
{
    if (!shard->is_wanted || low < shard->wanted_low)
        shard->wanted_low = low;
    if (!shard->is_wanted || high > shard->wanted_high)
        shard->wanted_high = high;
    shard->is_wanted = true;
}

static void want_raised(struct shard_clocks *clocks, uint32_t number, uint64_t high)
{
    struct shard *shard = &clocks->shards[number];

    assert(number < clocks->meta.shards);
    want(shard, shard->is_behind && shard->low < high ? shard->low : high, high);
}

/* Of the shards of the round; 0: none of them is ahead of its clock. */
static uint64_t greatest_until_ms(const struct shard_clocks *clocks)
{
    uint64_t greatest = 0;

    for (uint64_t rest = clocks->round; rest; rest &= rest - 1) {
        const struct shard *shard = &clocks->shards[__builtin_ctzll(rest)];

        if (shard->until_ms > shard->time_ms && shard->until_ms > greatest)
            greatest = shard->until_ms;
    }
    return greatest;
}

/* The shards, as bits, on the same Redis as this one. */
static uint64_t shards_beside(const struct shard_clocks *clocks, uint32_t number)
{
    uint64_t bit = UINT64_C(1) << number, nodes[SL_SHARDS_MAX];
    uint64_t all = UINT64_MAX >> (SL_SHARDS_MAX - clocks->meta.shards);
    uint32_t count = redis_commands_nodes(clocks->commands, all, nodes);

    for (uint32_t i = 0; i < count; i++) {
        if (nodes[i] & bit)
            return nodes[i];
    }
    return clocks->meta.is_clustered ? bit : all; /* its node is not known */
}

static void prepare(struct shard_clocks *clocks, uint32_t number, uint64_t low, uint64_t high)
{
    clocks->asked_shard = number;
    clocks->asked = (struct sl_clock_raise){low, high, greatest_until_ms(clocks)};
}

/* The next one after the last shard asked, so that a shard that does not answer does not block the
 * others. SL_SHARDS_MAX: none. */
static uint32_t next_wanted(const struct shard_clocks *clocks)
{
    for (uint32_t k = 1; k <= clocks->meta.shards; k++) {
        uint32_t i = (clocks->asked_shard + k) % clocks->meta.shards;

        if (clocks->shards[i].is_wanted)
            return i;
    }
    return SL_SHARDS_MAX;
}

/* A round begins with its first shard, whatever is requested for the others: so of gateways that
 * ask at the same time one decides for all of them. false: there is nothing to do. */
static bool begin_round(struct shard_clocks *clocks)
{
    uint32_t first = next_wanted(clocks);
    uint64_t high = 0;

    if (first == SL_SHARDS_MAX)
        return false;
    clocks->round = shards_beside(clocks, first);
    for (uint64_t rest = clocks->round; rest; rest &= rest - 1) {
        const struct shard *shard = &clocks->shards[__builtin_ctzll(rest)];

        if (shard->is_wanted && shard->wanted_high > high)
            high = shard->wanted_high;
    }
    if (!clocks->has_failed)
        first = (uint32_t)__builtin_ctzll(clocks->round);
    prepare(clocks, first,
            clocks->shards[first].is_wanted ? clocks->shards[first].wanted_low : high, high);
    return true;
}

/* false: the round has ended. */
static bool go_on(struct shard_clocks *clocks)
{
    uint64_t until_ms = greatest_until_ms(clocks);

    for (uint32_t k = 1; k <= clocks->meta.shards; k++) {
        uint32_t i = (clocks->asked_shard + k) % clocks->meta.shards;
        const struct shard *shard = &clocks->shards[i];

        if (!(clocks->round >> i & 1) || (!shard->is_wanted && shard->until_ms >= until_ms))
            continue;
        prepare(clocks, i, shard->is_wanted ? shard->wanted_low : 0,
                shard->is_wanted ? shard->wanted_high : 0);
        return true;
    }
    return false;
}

/* ---- calls ---- */

static void on_retry(uv_timer_t *timer)
{
    ask(timer->data);
}

static void ask_later(struct shard_clocks *clocks, const char *why)
{
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    uv_timer_start(&clocks->timer, on_retry,
                   backoff_next_spread_ms(&clocks->backoff, RETRY_MIN_MS, RETRY_MAX_MS), 0);
    if (log_rate_allows(&clocks->failed_rate, clock_monotonic_ms(), &held_back))
        log_warn("clock_not_raised", "shard=%u reason=%s held_back=%" PRIu64, clocks->asked_shard,
                 log_quote(sl_slice_str(why), room), held_back);
}

/* Ids are too far ahead of the clock of Redis for it to be raised that far. What is late stays
 * late. */
static void give_up(struct shard_clocks *clocks, const char *why)
{
    char room[LOG_QUOTE_SIZE];

    log_error("clock_not_raised", "shard=%u high=%" PRIu64 " reason=%s", clocks->asked_shard,
              clocks->asked.high, log_quote(sl_slice_str(why), room));
    for (uint64_t rest = clocks->round; rest; rest &= rest - 1)
        clocks->shards[__builtin_ctzll(rest)].is_wanted = false;
}

static void end_round(struct shard_clocks *clocks)
{
    uint64_t until_ms = greatest_until_ms(clocks), ahead_ms, held_back = 0;
    uint64_t time_ms = clocks->shards[clocks->asked_shard].time_ms;
    char until[CLOCK_RFC3339_SIZE];

    if (clocks->raised + clocks->marked > 0 &&
        !log_rate_allows_in(&clocks->round_rate, ROUND_LOG_MS, clock_monotonic_ms(), &held_back))
        clocks->raised = clocks->marked = 0; /* not logged here, but counted */
    if (clocks->raised > 0) {
        clock_format_rfc3339(until_ms, until);
        ahead_ms = sl_database_clock_ms(time_ms, until_ms) - time_ms;
        log_warn("clock_stepped",
                 "shards=%u late_shards=%u ahead_ms=%" PRIu64 " ahead_until=%s held_back=%" PRIu64,
                 clocks->raised, clocks->marked, ahead_ms, until, held_back);
    } else if (clocks->marked > 0) {
        log_warn("events_late", "late_shards=%u held_back=%" PRIu64, clocks->marked, held_back);
    }
    clocks->raised = clocks->marked = 0;
    clocks->round = 0;
}

static void take(struct shard_clocks *clocks, const struct sl_clock_raised *raised)
{
    clocks->shards[clocks->asked_shard].until_ms = raised->until_ms;
    clocks->raised += raised->is_raised;
    clocks->marked += raised->is_marked;
    metric_add(clocks->metrics, METRIC_CLOCK_RAISES, raised->is_raised);
    metric_add(clocks->metrics, METRIC_LATE_MARKS, raised->is_marked);
    clocks->has_failed = false;
    backoff_reset(&clocks->backoff);
    ask(clocks);
}

/* In a cluster the node may be down: others are asked next. */
static void fail(struct shard_clocks *clocks, const char *why)
{
    want(&clocks->shards[clocks->asked_shard], clocks->asked.low, clocks->asked.high);
    clocks->has_failed = true;
    if (clocks->meta.is_clustered)
        end_round(clocks);
    ask_later(clocks, why);
}

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct shard_clocks *clocks = owner;
    struct failure failure = {""};
    struct sl_clock_raised raised;
    int r = reply ? sl_clock_raise_reply(reply, &raised, &failure) : -EPIPE;

    clocks->is_asking = false;
    if (r == 0) {
        take(clocks, &raised);
    } else if (r == -ERANGE) {
        give_up(clocks, failure.text);
        end_round(clocks);
        ask(clocks);
    } else {
        fail(clocks, reply ? failure.text : why);
    }
}

static int send_call(struct shard_clocks *clocks)
{
    struct sl_call call = SL_CALL_INIT;
    int r = sl_clock_raise_call(&call, &clocks->meta, clocks->asked_shard, &clocks->asked, NULL);

    if (r == 0)
        r = redis_commands_run_take(clocks->commands, &call, on_reply, clocks);
    else
        sl_call_done(&call);
    return r;
}

static void ask(struct shard_clocks *clocks)
{
    if (clocks->is_asking || uv_is_active((uv_handle_t *)&clocks->timer))
        return;
    if (!clocks->round || !go_on(clocks)) {
        if (clocks->round)
            end_round(clocks);
        if (!begin_round(clocks))
            return;
    }
    clocks->shards[clocks->asked_shard].is_wanted = false;
    clocks->is_asking = true;
    if (send_call(clocks) < 0) {
        clocks->is_asking = false;
        fail(clocks, "out of memory");
    }
}

/* ---- reports ---- */

void shard_clocks_begin(struct shard_clocks *clocks, const struct sl_meta *meta)
{
    clocks->meta = *meta;
}

void shard_clocks_set_until(struct shard_clocks *clocks, uint32_t shard, uint64_t until_ms)
{
    assert(shard < SL_SHARDS_MAX);
    clocks->shards[shard].until_ms = until_ms;
}

uint64_t shard_clocks_until_ms(const struct shard_clocks *clocks, uint32_t shard)
{
    assert(shard < SL_SHARDS_MAX);
    return clocks->shards[shard].until_ms;
}

static void raise_all(struct shard_clocks *clocks, uint64_t shards, uint64_t high)
{
    uint64_t now_ms = uv_now(clocks->timer.loop);

    for (uint32_t i = 0; i < clocks->meta.shards; i++) {
        struct shard *shard = &clocks->shards[i];

        if (!(shards >> i & 1) || (shard->stepped_ms && now_ms - shard->stepped_ms < STEP_PAUSE_MS))
            continue;
        shard->stepped_ms = now_ms;
        want_raised(clocks, i, high);
    }
    ask(clocks);
}

/* Of these shards, as bits. */
static uint64_t lowest_until_ms(const struct shard_clocks *clocks, uint64_t shards)
{
    uint64_t lowest = UINT64_MAX;

    for (uint32_t i = 0; i < clocks->meta.shards; i++) {
        if ((shards >> i & 1) && clocks->shards[i].until_ms < lowest)
            lowest = clocks->shards[i].until_ms;
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

uint64_t shard_clocks_take_time(struct shard_clocks *clocks, uint64_t shards, uint64_t time_ms,
                                uint64_t high)
{
    for (uint32_t i = 0; i < clocks->meta.shards; i++) {
        if (shards >> i & 1)
            clocks->shards[i].time_ms = time_ms;
    }
    time_ms = sl_database_clock_ms(time_ms, lowest_until_ms(clocks, shards));
    if (high > 0 && time_ms + STEP_MIN_MS < sl_id_time_ms(high))
        raise_all(clocks, shards, high);
    return time_ms;
}

uint64_t shard_clocks_when_ms(const struct shard_clocks *clocks, uint64_t ids_ms)
{
    return sl_database_clock_when_ms(ids_ms, lowest_until_ms(clocks, UINT64_MAX));
}

void shard_clocks_behind(struct shard_clocks *clocks, uint32_t number, uint64_t low)
{
    struct shard *shard = &clocks->shards[number];

    assert(number < clocks->meta.shards);
    if (!shard->is_behind || low < shard->low)
        shard->low = low;
    shard->is_behind = true;
}

void shard_clocks_late(struct shard_clocks *clocks, uint32_t shard, uint64_t high)
{
    want_raised(clocks, shard, high);
    ask(clocks);
}

void shard_clocks_whole(struct shard_clocks *clocks, uint32_t shard, uint64_t high)
{
    if (!clocks->shards[shard].is_behind)
        return;
    want_raised(clocks, shard, high);
    clocks->shards[shard].is_behind = false;
    ask(clocks);
}

/* ---- creating and freeing ---- */

struct shard_clocks *shard_clocks_new(uv_loop_t *loop, struct redis_commands *commands,
                                      struct metrics *metrics)
{
    struct shard_clocks *clocks = mem_zalloc(sizeof(*clocks));

    if (!clocks)
        return NULL;
    clocks->commands = commands;
    clocks->metrics = metrics;
    uv_timer_init(loop, &clocks->timer);
    clocks->timer.data = clocks;
    return clocks;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void shard_clocks_free(struct shard_clocks *clocks)
{
    if (clocks)
        uv_close((uv_handle_t *)&clocks->timer, on_closed);
}
