/* cluster_watch.c - idle -> (connect ->) CLUSTER SLOTS -> check of the database -> idle.
 *
 * There is one session and one timer, which says when to ask, or when the answer is late. After
 * ASKS questions another node is asked, so that a node that is cut off from the others and unaware
 * of changes is not used for long. */
#include "gateway/redis/cluster_watch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "gateway/redis/redis_session.h"
#include "src/call/reply.h"
#include "src/model/keys.h"

enum { EVERY_MS = 1000, DOUBT_MS = 100, ANSWER_MS = 1000, ASKS = 5 };
enum { UNSENT_MAX_BYTES = 64 * 1024 };

enum state { STATE_IDLE, STATE_CONNECT, STATE_MAP, STATE_DATABASE };

struct cluster_watch {
    uv_timer_t timer;
    uv_loop_t *loop;
    struct sl_redis_address address;
    struct redis_session *session;
    cluster_map_fn changed;
    void *context;

    enum state state;
    struct sl_redis_endpoint asked; /* the node of the session */
    unsigned asks;                  /* questions to that node since the connection was made */
    unsigned failed;                /* consecutive nodes that did not answer */
    uint64_t asked_ms;              /* when the last question was sent */
    bool is_in_doubt;               /* doubted since then */
    bool has_map;
    struct sl_cluster_map map, answer; /* as reported to the owner; as answered, before it is
                                          accepted */
    struct sl_meta expected;           /* shards == 0: any database */
    struct log_rate refused_rate;
};

static void ask(struct cluster_watch *watch);
static void on_timer(uv_timer_t *timer);

static void ask_after(struct cluster_watch *watch, uint64_t ms)
{
    watch->state = STATE_IDLE;
    uv_timer_start(&watch->timer, on_timer, ms, 0);
}

static void end_question(struct cluster_watch *watch)
{
    bool is_in_doubt = watch->is_in_doubt;

    watch->is_in_doubt = false;
    ask_after(watch, is_in_doubt ? DOUBT_MS + backoff_spread_ms(DOUBT_MS)
                                 : backoff_spread_ms(2 * EVERY_MS));
}

/* ---- choosing a node ---- */

/* The known masters, then the seeds. */
static struct sl_redis_endpoint choose(const struct cluster_watch *watch)
{
    unsigned random = (unsigned)(hash_key_random().k0 & 0xffff);

    for (unsigned i = 0; watch->failed < 3 && i < SL_SHARDS_MAX; i++) {
        const struct sl_redis_endpoint *master = &watch->map.masters[(random + i) % SL_SHARDS_MAX];

        if (master->host[0] && !sl_redis_endpoint_equals(master, &watch->asked))
            return *master;
    }
    return watch->address.seeds[(random + watch->failed) % watch->address.seed_count];
}

static void leave(struct cluster_watch *watch)
{
    redis_session_close(watch->session);
    watch->asks = 0;
}

static void fail(struct cluster_watch *watch, const char *why)
{
    char room[LOG_QUOTE_SIZE], where[SL_REDIS_ENDPOINT_TEXT_SIZE];
    uint64_t held_back;

    sl_redis_endpoint_print(&watch->asked, where, sizeof(where));
    if (log_rate_allows(&watch->refused_rate, uv_now(watch->loop), &held_back))
        log_warn("cluster_node_refused", "node=%s reason=%s held_back=%" PRIu64, where,
                 log_quote(sl_slice_str(why), room), held_back);
    leave(watch);
    watch->failed++;
    ask_after(watch, DOUBT_MS + backoff_spread_ms(DOUBT_MS));
}

/* The session has its own time limits. */
static void connect_to_asked(struct cluster_watch *watch)
{
    uv_timer_stop(&watch->timer);
    redis_session_set_endpoint(watch->session, &watch->asked);
    watch->state = STATE_CONNECT;
    redis_session_open(watch->session);
}

/* ---- replies ---- */

/* A shard without a node in the answer keeps its old one, and another node is asked next: a node
 * that is taking a slot over may be the last to know who has it. */
static void fill_missing_nodes(struct cluster_watch *watch)
{
    if (sl_cluster_map_is_full(&watch->answer, watch->expected.shards))
        return;
    sl_cluster_map_fill(&watch->answer, &watch->map);
    watch->asks = ASKS;
}

static void accept_map(struct cluster_watch *watch)
{
    bool is_new;

    fill_missing_nodes(watch);
    is_new = !watch->has_map || sl_cluster_map_difference(&watch->map, &watch->answer) != 0;
    watch->failed = 0;
    watch->map = watch->answer;
    watch->has_map = true;
    end_question(watch);
    if (is_new)
        watch->changed(watch->context, &watch->map);
}

/* A shard of the database that the node claims to have; SL_SHARDS_MAX: none. */
static uint32_t own_shard(const struct cluster_watch *watch)
{
    for (uint32_t shard = 0; shard < watch->expected.shards; shard++) {
        if (sl_redis_endpoint_equals(&watch->answer.masters[shard], &watch->asked))
            return shard;
    }
    return SL_SHARDS_MAX;
}

/* A node without any shard is accepted if it names another one that has some. */
static void ask_database(struct cluster_watch *watch)
{
    uint32_t shard = own_shard(watch);
    char key[SL_KEY_SIZE];

    if (watch->expected.shards == 0) {
        accept_map(watch);
        return;
    }
    if (shard == SL_SHARDS_MAX) {
        leave(watch);
        watch->asked = watch->answer.masters[0];
        watch->failed++;
        if (!watch->asked.host[0]) {
            ask_after(watch, DOUBT_MS);
            return;
        }
        connect_to_asked(watch);
        return;
    }
    watch->state = STATE_DATABASE;
    if (redis_session_send_words(
            watch->session,
            (const char *[]){"HGET", sl_key(shard, "meta", key), "database", NULL}) < 0)
        fail(watch, "out of memory");
}

static void take_map(struct cluster_watch *watch, const redisReply *reply)
{
    struct failure failure;

    if (sl_cluster_slots_reply(reply, &watch->asked, &watch->answer, &failure) < 0)
        fail(watch, failure.text);
    else
        ask_database(watch);
}

static void take_database(struct cluster_watch *watch, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, watch->expected.database_id) != 0)
        fail(watch, "it holds another database");
    else
        accept_map(watch); /* also if the shard has moved or is empty, which others will find out */
}

static void on_reply(void *context, const redisReply *reply)
{
    struct cluster_watch *watch = context;

    if (watch->state == STATE_MAP)
        take_map(watch, reply);
    else if (watch->state == STATE_DATABASE)
        take_database(watch, reply);
}

/* ---- calls ---- */

static void send_question(struct cluster_watch *watch)
{
    watch->state = STATE_MAP;
    watch->asks++;
    uv_timer_start(&watch->timer, on_timer, ANSWER_MS, 0);
    if (redis_session_send_words(watch->session, (const char *[]){"CLUSTER", "SLOTS", NULL}) < 0)
        fail(watch, "out of memory");
}

static void on_ready(void *context)
{
    struct cluster_watch *watch = context;

    redis_session_settle(watch->session, 0);
    send_question(watch);
}

static void on_lost(void *context, const char *reason)
{
    struct cluster_watch *watch = context;

    if (watch->state == STATE_IDLE)
        leave(watch);
    else
        fail(watch, reason);
}

static void ask(struct cluster_watch *watch)
{
    watch->asked_ms = uv_now(watch->loop);
    watch->is_in_doubt = false;
    if (watch->asks >= ASKS)
        leave(watch);
    if (redis_session_is_ready(watch->session)) {
        send_question(watch);
        return;
    }
    watch->asked = choose(watch);
    connect_to_asked(watch);
}

static void on_timer(uv_timer_t *timer)
{
    struct cluster_watch *watch = timer->data;

    if (watch->state == STATE_IDLE)
        ask(watch);
    else
        fail(watch, "it did not answer in time");
}

void cluster_watch_doubt(struct cluster_watch *watch)
{
    uint64_t since_ms;

    if (!watch || watch->is_in_doubt)
        return;
    watch->is_in_doubt = true;
    since_ms = uv_now(watch->loop) - watch->asked_ms;
    if (watch->state == STATE_IDLE)
        uv_timer_start(&watch->timer, on_timer,
                       since_ms < DOUBT_MS ? DOUBT_MS + backoff_spread_ms(DOUBT_MS) - since_ms : 0,
                       0);
}

void cluster_watch_expect(struct cluster_watch *watch, const struct sl_meta *meta)
{
    watch->expected = *meta;
}

/* ---- creating and freeing ---- */

struct cluster_watch *cluster_watch_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        cluster_map_fn changed, void *context)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_lost = on_lost,
    };
    const struct redis_session_settings settings = {
        .loop = loop,
        .address = address,
        .name = "sluiced-cluster",
        .connect_ms = ANSWER_MS,
        .timeout_ms = ANSWER_MS,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct cluster_watch *watch = mem_zalloc(sizeof(*watch));

    assert(address->seed_count > 0);
    if (!watch)
        return NULL;
    watch->session = redis_session_new(&settings, &callbacks, watch);
    if (!watch->session) {
        mem_free(watch);
        return NULL;
    }
    watch->loop = loop;
    watch->address = *address;
    watch->changed = changed;
    watch->context = context;
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    ask_after(watch, 0);
    return watch;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void cluster_watch_free(struct cluster_watch *watch)
{
    if (!watch)
        return;
    redis_session_free(watch->session);
    uv_close((uv_handle_t *)&watch->timer, on_timer_closed);
}
