/* cluster_subscriber.c - the meta of all shards, then for each shard: where its log ends,
 * SSUBSCRIBE.
 *
 *     away -> log end -> subscribing -> heard
 *      ^                                  |
 *      +---- moved, or its line ends -----+
 *
 * A line is the connection to a node; on it are only subscriptions and PING, for a subscribed
 * connection takes nothing else. What else is asked goes through the commands, which find the node
 * by themselves. Each shard has an SSUBSCRIBE of its own: two slots in one are CROSSSLOT. Nothing
 * is ever unsubscribed: a node tells of a shard that it has lost (`sunsubscribe`), and a line that
 * has no shard left is closed.
 *
 * One timer tries again what has failed: lines, shards, meta. */
#include "gateway/intake/cluster_subscriber.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/intake/repair.h"
#include "gateway/metrics/health.h"
#include "gateway/intake/message_rate.h"
#include "gateway/redis/redis_commands.h"
#include "gateway/redis/redis_session.h"
#include "src/call/reply.h"
#include "src/database/event_log.h"
#include "src/database/meta.h"
#include "src/model/keys.h"

enum { RETRY_MIN_MS = 100, RETRY_MAX_MS = 1000, CONNECT_TRIES = 4 };
enum { BEGIN_WAIT_MS = 2000 }; /* for the last shards, when the first ones are there */
enum { LINES_MAX = SL_SHARDS_MAX, UNSENT_MAX_BYTES = 64 * 1024 };

enum shard_state { SHARD_AWAY, SHARD_LOG_END, SHARD_SUBSCRIBING, SHARD_HEARD };

struct cluster_subscriber;

struct line {
    struct cluster_subscriber *subscriber;
    struct sl_redis_endpoint endpoint;
    struct redis_session *session;
    bool is_settled;   /* has heard something */
    uint64_t pinged;   /* its number, while a pong is awaited; else 0 */
    bool has_turn;     /* messages or pongs in this turn */
    uint32_t messages; /* the same */
};

struct shard {
    struct cluster_subscriber *subscriber;
    uint32_t number;
    enum shard_state state;
    struct line *line; /* whose it is by the map; NULL: nobody's */
    bool is_asked;     /* a command is under way: its meta, or its log's end */
    bool has_log_end;  /* that is known, and not told yet */
    uint64_t log_end;
    uint64_t guess;          /* of that, to be told before it; 0: it is not */
    uint64_t clock_until_ms; /* as its meta said */
};

struct cluster_subscriber {
    uv_timer_t timer; /* tries again */
    struct subscriber_settings settings;
    struct subscriber_callbacks callbacks;
    void *context;
    struct sl_redis_address address;
    char address_text[SL_REDIS_ADDRESS_TEXT_SIZE];

    struct line *lines[LINES_MAX];
    size_t line_count;
    struct shard shards[SL_SHARDS_MAX];
    bool has_map;
    struct sl_meta meta;
    uint64_t known;          /* shards whose meta has been read */
    uint64_t heard;          /* shards in SHARD_HEARD */
    uint64_t waits_since_ms; /* for all shards to be there; 0: it does not, or none is there yet */
    bool has_begun;          /* the log's ends of all shards have been told */
    bool is_hearing;         /* as told */
    bool is_stopping;
    bool is_closed; /* the timer is */
    size_t asked;   /* shards whose command is under way, which may outlive all else */
    uint32_t told_shards;
    struct message_rate rate; /* of all lines together */
    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE];
    struct failure why_away; /* the last reason of a shard or a line to be lost */
    struct log_rate lost_rate, dropped_rate;
};

static uint64_t bit(uint32_t shard)
{
    return UINT64_C(1) << shard;
}

static uint64_t all_shards(const struct cluster_subscriber *subscriber)
{
    uint32_t count = subscriber->meta.shards;

    return count == 0 ? 0 : UINT64_MAX >> (SL_SHARDS_MAX - count);
}

static void on_timer(uv_timer_t *timer);

static void try_later(struct cluster_subscriber *subscriber)
{
    if (!subscriber->is_stopping && !uv_is_active((uv_handle_t *)&subscriber->timer))
        uv_timer_start(&subscriber->timer, on_timer,
                       backoff_next_spread_ms(&subscriber->backoff, RETRY_MIN_MS, RETRY_MAX_MS), 0);
}

static void tell_away(struct cluster_subscriber *subscriber, const char *reason)
{
    if (subscriber->callbacks.away)
        subscriber->callbacks.away(subscriber->context, reason);
}

/* Something was not where it should be. */
static void doubt(struct cluster_subscriber *subscriber, const char *reason)
{
    char room[LOG_QUOTE_SIZE];

    failure_set(&subscriber->why_away, 0, "%s", reason);
    if (!subscriber->is_hearing && strcmp(reason, subscriber->logged_reason) != 0) {
        log_warn("redis_unavailable", "redis=%s reason=%s", subscriber->address_text,
                 log_quote(sl_slice_str(reason), room));
        snprintf(subscriber->logged_reason, sizeof(subscriber->logged_reason), "%s", reason);
        tell_away(subscriber, reason);
    }
    subscriber->callbacks.doubt(subscriber->context);
    try_later(subscriber);
}

/* ---- what is heard ---- */

/* As ranges: 0-20,43 */
static void print_shards(uint64_t shards, struct buffer *text)
{
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        uint32_t first = i;

        if (!(shards >> i & 1))
            continue;
        while (i + 1 < SL_SHARDS_MAX && shards >> (i + 1) & 1)
            i++;
        buffer_append_format(text, text->size > 0 ? ",%u" : "%u", first);
        if (i > first)
            buffer_append_format(text, "-%u", i);
    }
}

/* For /metrics and /readyz?verbose: how many are heard; and which are not, and why one was lost. */
static void show_heard(struct cluster_subscriber *subscriber, const char *why)
{
    struct metrics *metrics = subscriber->settings.metrics;
    uint64_t missing = all_shards(subscriber) & ~subscriber->heard;
    struct buffer text = BUFFER_INIT;
    struct failure failure;

    metric_set(metrics, METRIC_SHARDS_HEARD, (uint64_t)__builtin_popcountll(subscriber->heard));
    print_shards(missing, &text);
    failure_set(&failure, 0, "%d of %u are not heard (%.*s): %s", __builtin_popcountll(missing),
                subscriber->meta.shards, (int)text.size, text.data ? text.data : "", why);
    health_set(metrics, HEALTH_SHARDS, missing ? HEALTH_FAILING : HEALTH_OK, failure.text,
               clock_wall_ms());
    buffer_done(&text);
}

static void begin_hearing(struct cluster_subscriber *subscriber)
{
    struct metrics *metrics = subscriber->settings.metrics;

    subscriber->is_hearing = true;
    subscriber->waits_since_ms = 0;
    show_heard(subscriber, subscriber->why_away.text);
    subscriber->told_shards = subscriber->meta.shards;
    subscriber->logged_reason[0] = '\0';
    metric_set(metrics, METRIC_SUBSCRIBED, 1);
    metric_add(metrics, METRIC_SUBSCRIPTIONS, 1);
    log_info("redis_subscribed", "redis=%s shards=%u heard=%d nodes=%zu database=%s",
             subscriber->address_text, subscriber->meta.shards,
             __builtin_popcountll(subscriber->heard), subscriber->line_count,
             subscriber->meta.database_id);
    subscriber->callbacks.subscribed(subscriber->context, subscriber->meta.shards);
}

static bool is_ready(const struct line *line)
{
    return line && redis_session_is_ready(line->session);
}

/* With some shards, when the others do not come. */
static bool has_waited(struct cluster_subscriber *subscriber)
{
    uint64_t now_ms = uv_now(subscriber->settings.loop);

    if (subscriber->waits_since_ms == 0)
        subscriber->waits_since_ms = now_ms;
    return now_ms - subscriber->waits_since_ms >= BEGIN_WAIT_MS;
}

/* Those whose node there is a connection to. */
static uint64_t reached_shards(const struct cluster_subscriber *subscriber)
{
    uint64_t shards = 0;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        shards |= is_ready(subscriber->shards[i].line) ? bit(i) : 0;
    return shards;
}

static void begin_hearing_if_so(struct cluster_subscriber *subscriber)
{
    if (!subscriber->is_hearing && subscriber->heard &&
        (subscriber->heard == all_shards(subscriber) ||
         (subscriber->heard == reached_shards(subscriber) && has_waited(subscriber))))
        begin_hearing(subscriber);
}

static void note_heard(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->state = SHARD_HEARD;
    subscriber->heard |= bit(shard->number);
    if (subscriber->is_hearing || subscriber->heard == all_shards(subscriber))
        show_heard(subscriber, subscriber->why_away.text);
    if (subscriber->heard == all_shards(subscriber))
        backoff_reset(&subscriber->backoff);
    if (subscriber->is_hearing)
        subscriber->callbacks.heard_again(subscriber->context, shard->number);
    else
        begin_hearing_if_so(subscriber);
}

static void note_away(struct shard *shard, const char *reason)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->state = SHARD_AWAY;
    subscriber->heard &= ~bit(shard->number);
    failure_set(&subscriber->why_away, 0, "%s", reason);
    show_heard(subscriber, reason);
    if (!subscriber->is_hearing || subscriber->heard)
        return;
    subscriber->is_hearing = false;
    metric_set(subscriber->settings.metrics, METRIC_SUBSCRIBED, 0);
    metric_add(subscriber->settings.metrics, METRIC_SUBSCRIPTIONS_LOST, 1);
    tell_away(subscriber, reason);
    subscriber->callbacks.lost(subscriber->context, reason);
}

/* ---- a shard: its log's end, its subscription ---- */

static void subscribe(struct shard *shard)
{
    char channel[SL_KEY_SIZE];

    shard->state = SHARD_AWAY;
    if (!is_ready(shard->line))
        return; /* it is tried when the line stands */
    if (redis_session_send_words(
            shard->line->session,
            (const char *[]){"SSUBSCRIBE", sl_key(shard->number, "live", channel), NULL}) < 0)
        try_later(shard->subscriber);
    else
        shard->state = SHARD_SUBSCRIBING;
}

static int tell_guess(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;
    int r = 0;

    if (shard->guess > 0)
        r = subscriber->callbacks.log_end(subscriber->context, shard->number, shard->guess);
    if (r == 0)
        shard->guess = 0;
    return r;
}

static void tell_log_end(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->has_log_end = false;
    shard->state = SHARD_AWAY;
    if (tell_guess(shard) < 0 ||
        subscriber->callbacks.log_end(subscriber->context, shard->number, shard->log_end) < 0)
        try_later(subscriber);
    else
        subscribe(shard);
}

/* Where the logs of those that are away end is guessed: at the newest event of the others, or a
 * minute ago. Their events since then come when they are back. */
static uint64_t guess_log_end(const struct cluster_subscriber *subscriber)
{
    uint64_t guess = sl_id_first_at(clock_wall_ms() - REPAIR_FUTURE_MS);

    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        const struct shard *shard = &subscriber->shards[i];

        if (shard->has_log_end && shard->log_end > guess &&
            !repair_is_in_the_future(shard->log_end, 0))
            guess = shard->log_end;
    }
    return guess;
}

/* The first time all are told before anything of any shard comes, in their order. */
static void tell_first_log_ends(struct cluster_subscriber *subscriber)
{
    uint64_t guess = guess_log_end(subscriber), there = 0;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        there |= subscriber->shards[i].has_log_end ? bit(i) : 0;
    if (there == 0 || (there != all_shards(subscriber) && !has_waited(subscriber)))
        return;
    subscriber->has_begun = true;
    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        struct shard *shard = &subscriber->shards[i];

        if (there & bit(i)) {
            tell_log_end(shard);
        } else {
            shard->guess = sl_id_shard(guess) == i ? guess - 1 : guess;
            tell_guess(shard);
        }
    }
}

static void free_if_done(struct cluster_subscriber *subscriber)
{
    if (!subscriber->is_closed || subscriber->asked > 0)
        return;
    for (size_t i = 0; i < subscriber->line_count; i++)
        mem_free(subscriber->lines[i]);
    mem_free(subscriber);
}

/* False: it came too late, and what it was for may be gone. */
static bool note_answer(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->is_asked = false;
    subscriber->asked--;
    if (!subscriber->is_stopping)
        return true;
    free_if_done(subscriber);
    return false;
}

static void on_log_end(void *owner, const redisReply *reply, const char *why)
{
    struct shard *shard = owner;
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct failure failure;
    int r;

    if (!note_answer(shard))
        return;
    r = reply ? sl_event_log_end_reply(reply, shard->number, &shard->log_end, &failure)
              : failure_set(&failure, -EIO, "%s", why);
    shard->has_log_end = r == 0;
    if (r < 0) {
        shard->state = SHARD_AWAY;
        doubt(subscriber, failure.text);
    } else if (subscriber->has_begun) {
        tell_log_end(shard);
    } else {
        tell_first_log_ends(subscriber);
    }
}

static void run(struct shard *shard, int built, struct sl_call *call, redis_reply_fn done)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    if (built < 0)
        sl_call_done(call);
    if (built == 0 &&
        redis_commands_run_take(subscriber->settings.commands, call, done, shard) == 0) {
        shard->is_asked = true;
        subscriber->asked++;
    } else {
        try_later(subscriber);
    }
}

/* The next step of a shard that is away, if there is one now. */
static void advance(struct shard *shard)
{
    struct sl_call call = SL_CALL_INIT;

    if (shard->state != SHARD_AWAY || shard->is_asked || !is_ready(shard->line) ||
        !(shard->subscriber->known & bit(shard->number)))
        return;
    shard->state = SHARD_LOG_END;
    run(shard, sl_event_log_end_call(&call, shard->number, NULL), &call, on_log_end);
    if (!shard->is_asked)
        shard->state = SHARD_AWAY;
}

static void advance_all(struct cluster_subscriber *subscriber)
{
    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        advance(&subscriber->shards[i]);
}

/* ---- meta ---- */

static void on_meta(void *owner, const redisReply *reply, const char *why);

static void ask_meta(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct sl_meta wanted =
        subscriber->meta.shards > 0 ? subscriber->meta : sl_meta_wanted(SL_SHARDS_MAX);
    struct sl_call call = SL_CALL_INIT;

    wanted.is_clustered = true;
    if (!shard->is_asked)
        run(shard, sl_meta_call(&call, shard->number, &wanted, NULL), &call, on_meta);
}

static void ask_metas(struct cluster_subscriber *subscriber);
static void note_database(struct cluster_subscriber *subscriber, const struct sl_meta *meta);

static void on_look(void *owner, const redisReply *reply, const char *why)
{
    struct shard *shard = owner;
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct failure failure;
    struct sl_meta meta;
    int r;

    if (!note_answer(shard) || subscriber->meta.shards > 0)
        return;
    r = reply ? sl_meta_look_reply(reply, &meta, &failure) : failure_set(&failure, -EIO, "%s", why);
    if (r < 0) {
        doubt(subscriber, failure.text);
        return;
    }
    note_database(subscriber, &meta);
    ask_metas(subscriber);
}

/* Only shard 0 makes a database where there is none. */
static void look_for_meta(struct shard *shard)
{
    struct sl_call call = SL_CALL_INIT;

    if (!shard->is_asked)
        run(shard, sl_meta_look_call(&call, shard->number, NULL), &call, on_look);
}

/* Of shard 0, or while that does not come of another one whose node is there. */
static void ask_first_meta(struct cluster_subscriber *subscriber)
{
    ask_meta(&subscriber->shards[0]);
    if (!has_waited(subscriber))
        return;
    for (uint32_t i = 1; i < SL_SHARDS_MAX; i++) {
        if (is_ready(subscriber->shards[i].line)) {
            look_for_meta(&subscriber->shards[i]);
            return;
        }
    }
}

/* With what the first one said then of the others. */
static void ask_metas(struct cluster_subscriber *subscriber)
{
    if (subscriber->meta.shards == 0) {
        ask_first_meta(subscriber);
        return;
    }
    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        if (!(subscriber->known & bit(i)))
            ask_meta(&subscriber->shards[i]);
    }
}

static void note_database(struct cluster_subscriber *subscriber, const struct sl_meta *meta)
{
    subscriber->meta = *meta;
    subscriber->meta.is_clustered = true;
    subscriber->waits_since_ms = 0;
    if (meta->is_new)
        log_info("database_created", "redis=%s database=%s shards=%u", subscriber->address_text,
                 meta->database_id, meta->shards);
    subscriber->callbacks.database(subscriber->context, &subscriber->meta);
}

static void on_meta(void *owner, const redisReply *reply, const char *why)
{
    struct shard *shard = owner;
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct failure failure;
    struct sl_meta meta;
    int r;

    if (!note_answer(shard))
        return;
    r = reply ? sl_meta_reply(reply, &meta, &failure) : failure_set(&failure, -EIO, "%s", why);
    if (r == 0 && subscriber->meta.shards > 0)
        r = sl_meta_check_same(&subscriber->meta, &meta, &failure);
    if (r < 0) {
        doubt(subscriber, failure.text);
        return;
    }
    subscriber->known |= bit(shard->number);
    shard->clock_until_ms = meta.clock_until_ms;
    if (subscriber->meta.shards == 0) {
        note_database(subscriber, &meta);
        ask_metas(subscriber);
    }
    advance_all(subscriber);
}

/* ---- what comes on a line ---- */

static void end_turn(struct line *line)
{
    struct cluster_subscriber *subscriber = line->subscriber;

    if (!line->has_turn)
        return;
    line->has_turn = false;
    subscriber->callbacks.turn_end(subscriber->context);
}

static void note_pong(struct line *line)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    uint64_t number = line->pinged;

    line->pinged = 0;
    if (number)
        subscriber->callbacks.pong(subscriber->context, number);
}

static void lose_shards(struct line *line, const char *reason)
{
    struct cluster_subscriber *subscriber = line->subscriber;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        struct shard *shard = &subscriber->shards[i];

        if (shard->line == line && shard->state >= SHARD_SUBSCRIBING)
            note_away(shard, reason);
    }
}

static void close_line(struct line *line, const char *reason)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    char room[LOG_QUOTE_SIZE], where[SL_REDIS_ENDPOINT_TEXT_SIZE];
    struct failure failure;
    uint64_t held_back;

    sl_redis_endpoint_print(&line->endpoint, where, sizeof(where));
    failure_set(&failure, 0, "the node %s: %s", where, reason);
    if (subscriber->is_hearing &&
        log_rate_allows(&subscriber->lost_rate, uv_now(subscriber->settings.loop), &held_back))
        log_warn("cluster_node_lost", "node=%s reason=%s held_back=%" PRIu64, where,
                 log_quote(sl_slice_str(reason), room), held_back);
    redis_session_close(line->session);
    line->is_settled = false;
    end_turn(line);
    lose_shards(line, reason);
    note_pong(line); /* none will come: its shards are not heard any more */
    doubt(subscriber, failure.text);
}

static struct shard *shard_of_channel(struct cluster_subscriber *subscriber,
                                      const redisReply *channel)
{
    char expected[SL_KEY_SIZE];

    for (uint32_t i = 0; channel->type == REDIS_REPLY_STRING && i < subscriber->meta.shards; i++) {
        if (sl_slice_is(sl_slice(channel->str, channel->len), sl_key(i, "live", expected)))
            return &subscriber->shards[i];
    }
    return NULL;
}

static void take_confirmation(struct line *line, const redisReply *reply)
{
    struct shard *shard = shard_of_channel(line->subscriber, reply->element[1]);

    if (!line->is_settled)
        redis_session_settle(line->session, line->subscriber->settings.ping_ms);
    line->is_settled = true;
    if (shard && shard->line == line && shard->state == SHARD_SUBSCRIBING)
        note_heard(shard);
}

static void take_farewell(struct line *line, const redisReply *reply)
{
    struct shard *shard = shard_of_channel(line->subscriber, reply->element[1]);

    if (!shard || shard->line != line || shard->state < SHARD_SUBSCRIBING)
        return;
    note_away(shard, "the shard was moved");
    doubt(line->subscriber, "the shard was moved");
}

static void take_message(struct line *line, const redisReply *reply)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    struct live_message message = {.received_us = clock_monotonic_us()};
    struct sl_slice channel = sl_slice(reply->element[1]->str, reply->element[1]->len);
    struct sl_slice payload = sl_slice(reply->element[2]->str, reply->element[2]->len);
    uint64_t held_back;

    if (live_message_read(channel, payload, &message) == 0) {
        line->has_turn = true;
        line->messages++;
        subscriber->callbacks.message(subscriber->context, &message);
        return;
    }
    metric_add(subscriber->settings.metrics, METRIC_EVENTS_BAD_HEADER, 1);
    if (log_rate_allows(&subscriber->dropped_rate, message.received_us / 1000, &held_back))
        log_warn("event_dropped", "reason=bad_header channel=%.*s bytes=%zu held_back=%" PRIu64,
                 SL_SLICE_ARG(channel), payload.size, held_back);
}

static bool is_kind(const redisReply *reply, const char *kind, size_t elements)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == elements &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, kind) == 0 &&
           reply->element[1]->type == REDIS_REPLY_STRING;
}

/* The node does not have the shard that it was asked to speak of. */
static bool take_redirect(struct line *line, const redisReply *reply)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    struct sl_cluster_redirect redirect;

    if (sl_cluster_redirect_reply(reply, &line->endpoint, &redirect) < 0)
        return false;
    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        struct shard *shard = &subscriber->shards[i];

        if (shard->line == line && shard->state == SHARD_SUBSCRIBING &&
            sl_cluster_slot(i) == redirect.slot)
            note_away(shard, "the shard was moved");
    }
    doubt(subscriber, "the shard was moved");
    return true;
}

static void take_pong(struct line *line, const redisReply *text)
{
    uint64_t number;

    line->has_turn = true;
    if (sl_id_parse(sl_slice(text->str, text->len), &number) == 0 && number == line->pinged)
        note_pong(line);
}

static void on_reply(void *context, const redisReply *reply)
{
    struct line *line = context;
    struct failure failure;

    if (is_kind(reply, "smessage", 3) && reply->element[2]->type == REDIS_REPLY_STRING) {
        take_message(line, reply);
    } else if (is_kind(reply, "pong", 2)) {
        take_pong(line, reply->element[1]);
    } else if (reply->type == REDIS_REPLY_STRING) {
        take_pong(line, reply); /* all its shards were moved: it is not a subscribed one any more */
    } else if (is_kind(reply, "ssubscribe", 3)) {
        take_confirmation(line, reply);
    } else if (is_kind(reply, "sunsubscribe", 3)) {
        take_farewell(line, reply);
    } else if (redis_session_is_refused_ping(reply)) {
        line->has_turn = true;
        note_pong(line);
    } else if (!take_redirect(line, reply)) {
        if (sl_reply_check(reply, &failure) == 0)
            failure_set(&failure, 0, "Redis sent what no subscriber expects");
        close_line(line, failure.text);
    }
}

static void on_ready(void *context)
{
    advance_all(((struct line *)context)->subscriber);
}

static void on_turn_end(void *context)
{
    struct line *line = context;
    const struct subscriber_settings *settings = &line->subscriber->settings;
    bool is_busy =
        message_rate_is_busy(&line->subscriber->rate, line->messages, uv_now(settings->loop));

    line->messages = 0;
    end_turn(line);
    if (is_busy && settings->rest_ms > 0 && is_ready(line) && line->is_settled)
        redis_session_rest(line->session, settings->rest_ms);
}

static void on_lost(void *context, const char *reason)
{
    close_line(context, reason);
}

/* ---- lines ---- */

static struct line *find_line(struct cluster_subscriber *subscriber,
                              const struct sl_redis_endpoint *endpoint)
{
    for (size_t i = 0; i < subscriber->line_count; i++) {
        if (sl_redis_endpoint_equals(&subscriber->lines[i]->endpoint, endpoint))
            return subscriber->lines[i];
    }
    return NULL;
}

static struct line *make_line(struct cluster_subscriber *subscriber,
                              const struct sl_redis_endpoint *endpoint)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    const struct redis_session_settings settings = {
        .loop = subscriber->settings.loop,
        .address = &subscriber->address,
        .name = "sluiced",
        .connect_ms = subscriber->settings.timeout_ms / CONNECT_TRIES,
        .timeout_ms = subscriber->settings.timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct line *line = subscriber->line_count < LINES_MAX ? mem_zalloc(sizeof(*line)) : NULL;

    if (!line)
        return NULL;
    line->session = redis_session_new(&settings, &callbacks, line);
    if (!line->session) {
        mem_free(line);
        return NULL;
    }
    line->subscriber = subscriber;
    line->endpoint = *endpoint;
    redis_session_set_endpoint(line->session, endpoint);
    subscriber->lines[subscriber->line_count++] = line;
    return line;
}

static void free_line(struct line *line)
{
    redis_session_free(line->session);
    mem_free(line);
}

static bool is_needed(const struct line *line, const struct sl_cluster_map *map)
{
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        if (sl_redis_endpoint_equals(&map->masters[i], &line->endpoint))
            return true;
    }
    return false;
}

/* Lines whose node has no shards any more go. */
static void drop_lines(struct cluster_subscriber *subscriber, const struct sl_cluster_map *map)
{
    size_t kept = 0;

    for (size_t i = 0; i < subscriber->line_count; i++) {
        struct line *line = subscriber->lines[i];

        if (is_needed(line, map))
            subscriber->lines[kept++] = line;
        else
            free_line(line);
    }
    subscriber->line_count = kept;
}

static void place_shard(struct shard *shard, const struct sl_redis_endpoint *master)
{
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct line *line = master->host[0] ? find_line(subscriber, master) : NULL;

    if (!line && master->host[0])
        line = make_line(subscriber, master);
    if (shard->line != line && shard->state >= SHARD_SUBSCRIBING)
        note_away(shard, "the shard was moved");
    shard->line = line;
}

static void open_lines(struct cluster_subscriber *subscriber)
{
    for (size_t i = 0; i < subscriber->line_count; i++) {
        if (!redis_session_is_open(subscriber->lines[i]->session))
            redis_session_open(subscriber->lines[i]->session);
    }
}

/* What can be done now of what has to be done. */
static void look_round(struct cluster_subscriber *subscriber)
{
    open_lines(subscriber);
    ask_metas(subscriber);
    advance_all(subscriber);
    if (!subscriber->has_begun)
        tell_first_log_ends(subscriber);
    begin_hearing_if_so(subscriber);
    if (!subscriber->is_hearing)
        try_later(subscriber);
}

void cluster_subscriber_set_map(struct cluster_subscriber *subscriber,
                                const struct sl_cluster_map *map)
{
    for (size_t i = 0; i < subscriber->line_count; i++) {
        if (!is_needed(subscriber->lines[i], map)) {
            lose_shards(subscriber->lines[i], "the node has no shards any more");
            note_pong(subscriber->lines[i]);
        }
    }
    drop_lines(subscriber, map);
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        place_shard(&subscriber->shards[i], &map->masters[i]);
    subscriber->has_map = true;
    look_round(subscriber);
}

static void on_timer(uv_timer_t *timer)
{
    struct cluster_subscriber *subscriber = timer->data;

    if (subscriber->has_map)
        look_round(subscriber);
}

/* ---- from outside ---- */

static uint64_t heard_from(const struct line *line)
{
    const struct cluster_subscriber *subscriber = line->subscriber;
    uint64_t shards = 0;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        if (subscriber->shards[i].line == line)
            shards |= subscriber->heard & bit(i);
    }
    return shards;
}

uint64_t cluster_subscriber_ping(struct cluster_subscriber *subscriber, uint64_t shards,
                                 uint64_t number)
{
    char text[SL_ID_TEXT_SIZE];
    struct line *line;

    shards &= subscriber->heard;
    if (!subscriber->is_hearing || shards == 0)
        return 0;
    line = subscriber->shards[__builtin_ctzll(shards)].line;
    if (line->pinged ||
        redis_session_send_words(line->session,
                                 (const char *[]){"PING", sl_id_print(number, text), NULL}) < 0)
        return 0;
    line->pinged = number;
    return shards & heard_from(line);
}

bool cluster_subscriber_is_subscribed(const struct cluster_subscriber *subscriber)
{
    return subscriber->is_hearing;
}

uint64_t cluster_subscriber_heard(const struct cluster_subscriber *subscriber)
{
    return subscriber->heard;
}

uint32_t cluster_subscriber_shards(const struct cluster_subscriber *subscriber)
{
    return subscriber->told_shards;
}

const struct sl_meta *cluster_subscriber_meta(const struct cluster_subscriber *subscriber)
{
    return &subscriber->meta;
}

uint64_t cluster_subscriber_clock_until_ms(const struct cluster_subscriber *subscriber,
                                           uint32_t shard)
{
    return subscriber->shards[shard].clock_until_ms;
}

struct cluster_subscriber *cluster_subscriber_new(const struct subscriber_settings *settings,
                                                  const struct subscriber_callbacks *callbacks,
                                                  void *context)
{
    struct cluster_subscriber *subscriber = mem_zalloc(sizeof(*subscriber));

    if (!subscriber)
        return NULL;
    subscriber->settings = *settings;
    subscriber->callbacks = *callbacks;
    subscriber->context = context;
    subscriber->address = *settings->address;
    subscriber->settings.address = &subscriber->address;
    sl_redis_address_print(&subscriber->address, subscriber->address_text,
                           sizeof(subscriber->address_text));
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        subscriber->shards[i].subscriber = subscriber;
        subscriber->shards[i].number = i;
    }
    uv_timer_init(settings->loop, &subscriber->timer);
    subscriber->timer.data = subscriber;
    return subscriber;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct cluster_subscriber *subscriber = handle->data;

    subscriber->is_closed = true;
    free_if_done(subscriber);
}

void cluster_subscriber_free(struct cluster_subscriber *subscriber)
{
    if (!subscriber)
        return;
    subscriber->is_stopping = true;
    for (size_t i = 0; i < subscriber->line_count; i++)
        redis_session_free(subscriber->lines[i]->session);
    uv_close((uv_handle_t *)&subscriber->timer, on_timer_closed);
}
