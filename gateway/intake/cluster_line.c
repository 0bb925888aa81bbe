/* cluster_line.c - a connection to a node of a cluster, and what arrives on it.
 *
 * It carries only subscriptions and PING, because a subscribed connection accepts nothing else.
 * Nothing is ever unsubscribed: a node reports that it has lost a shard (`sunsubscribe`), and a
 * line whose node has no shards is closed. */
#include "gateway/intake/cluster_subscriber_parts.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/intake/live_channel.h"
#include "src/call/reply.h"
#include "src/model/keys.h"

enum { UNSENT_MAX_BYTES = 64 * 1024 };

uint64_t cluster_line_heard(const struct line *line)
{
    const struct cluster_subscriber *subscriber = line->subscriber;
    uint64_t shards = 0;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        if (subscriber->shards[i].line == line)
            shards |= subscriber->heard & cluster_bit(i);
    }
    return shards;
}

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
            cluster_note_away(shard, reason);
        else if (shard->line == line)
            subscriber->known &= ~cluster_bit(i);
    }
}

static void close_line(struct line *line, const char *reason)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    char room[LOG_QUOTE_SIZE], where[SL_REDIS_ENDPOINT_TEXT_SIZE];
    struct failure failure;
    uint64_t held_back;

    sl_redis_endpoint_print(redis_session_endpoint(line->session), where, sizeof(where));
    failure_set(&failure, 0, "the node %s: %s", where, reason);
    if (subscriber->is_hearing &&
        log_rate_allows(&subscriber->lost_rate, uv_now(subscriber->settings.loop), &held_back))
        log_warn("cluster_node_lost", "node=%s reason=%s held_back=%" PRIu64, where,
                 log_quote(sl_slice_str(reason), room), held_back);
    redis_session_close(line->session);
    line->is_settled = false;
    end_turn(line);
    lose_shards(line, reason);
    note_pong(line); /* no pong will come: its shards are no longer received */
    cluster_classic_lose(line, failure.text);
    cluster_classic_seek(subscriber);
    cluster_doubt(subscriber, failure.text);
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

static void settle(struct line *line)
{
    if (!line->is_settled)
        redis_session_settle(line->session, line->subscriber->settings.ping_ms);
    line->is_settled = true;
}

static void take_confirmation(struct line *line, const redisReply *reply)
{
    struct shard *shard = shard_of_channel(line->subscriber, reply->element[1]);

    settle(line);
    if (shard && shard->line == line && shard->state == SHARD_SUBSCRIBING)
        cluster_note_heard(shard);
    cluster_classic_seek(line->subscriber);
}

static void take_unsubscribed(struct line *line, const redisReply *reply)
{
    struct shard *shard = shard_of_channel(line->subscriber, reply->element[1]);

    if (!shard || shard->line != line || shard->state < SHARD_SUBSCRIBING)
        return;
    cluster_note_away(shard, "the shard was moved");
    cluster_doubt(line->subscriber, "the shard was moved");
}

static void take_message(struct line *line, const redisReply *reply, bool is_sharded)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    struct metrics *metrics = subscriber->settings.metrics;
    struct live_message message;

    if (!is_sharded && line != subscriber->classic)
        return; /* a line that was given up; another one receives the same */
    if (live_channel_read(reply, metrics, &subscriber->dropped_rate, &message) < 0)
        return;
    if (is_sharded && !(subscriber->heard & cluster_bit(message.shard)))
        return; /* of another database; or it is in the log, which is read later */
    if (message.id == 0 && heard_twice_take(&subscriber->twice, &message,
                                            is_sharded ? 0 : subscriber->classic_number)) {
        metric_add(metrics, METRIC_EVENTS_DUPLICATE, 1);
        return;
    }
    line->has_turn = true;
    line->messages++;
    subscriber->callbacks.message(subscriber->context, &message);
}

static bool is_kind(const redisReply *reply, const char *kind, size_t elements)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == elements &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, kind) == 0 &&
           reply->element[1]->type == REDIS_REPLY_STRING;
}

/* The node does not have the shard that was subscribed. */
static bool take_redirect(struct line *line, const redisReply *reply)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    struct sl_cluster_redirect redirect;

    if (sl_cluster_redirect_reply(reply, redis_session_endpoint(line->session), &redirect) < 0)
        return false;
    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        struct shard *shard = &subscriber->shards[i];

        if (shard->line == line && shard->state == SHARD_SUBSCRIBING &&
            sl_cluster_slot(i) == redirect.slot)
            cluster_note_away(shard, "the shard was moved");
    }
    cluster_doubt(subscriber, "the shard was moved");
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
        take_message(line, reply, true);
    } else if (is_kind(reply, "message", 3) && reply->element[2]->type == REDIS_REPLY_STRING) {
        take_message(line, reply, false);
    } else if (is_kind(reply, "pong", 2)) {
        take_pong(line, reply->element[1]);
    } else if (reply->type == REDIS_REPLY_STRING) {
        take_pong(line, reply); /* all its shards were moved: the connection is no longer in
                                   subscribed mode */
    } else if (is_kind(reply, "ssubscribe", 3)) {
        take_confirmation(line, reply);
    } else if (is_kind(reply, "subscribe", 3)) {
        settle(line);
        cluster_classic_confirm(line);
    } else if (is_kind(reply, "sunsubscribe", 3)) {
        take_unsubscribed(line, reply);
    } else if (redis_session_is_refused_ping(reply)) {
        line->has_turn = true;
        note_pong(line);
    } else if (!take_redirect(line, reply)) {
        if (sl_reply_check(reply, &failure) == 0)
            failure_set(&failure, 0, "Redis sent an unexpected message");
        if (!cluster_classic_is_refused(line, failure.text))
            close_line(line, failure.text);
    }
}

static void on_ready(void *context)
{
    struct line *line = context;

    cluster_look(line->subscriber);
    cluster_advance_all(line->subscriber);
}

static void on_turn_end(void *context)
{
    struct line *line = context;
    const struct subscriber_settings *settings = &line->subscriber->settings;
    bool is_busy =
        message_rate_is_busy(&line->subscriber->rate, line->messages, uv_now(settings->loop));

    line->messages = 0;
    end_turn(line);
    if (is_busy && settings->rest_ms > 0 && cluster_line_is_ready(line) && line->is_settled)
        redis_session_rest(line->session, settings->rest_ms);
}

static void on_lost(void *context, const char *reason)
{
    close_line(context, reason);
}

/* ---- lines ---- */

struct line *cluster_line_find(struct cluster_subscriber *subscriber,
                               const struct sl_redis_endpoint *endpoint)
{
    for (size_t i = 0; i < subscriber->line_count; i++) {
        if (sl_redis_endpoint_equals(redis_session_endpoint(subscriber->lines[i]->session),
                                     endpoint))
            return subscriber->lines[i];
    }
    return NULL;
}

struct line *cluster_line_make(struct cluster_subscriber *subscriber,
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
        .endpoint = endpoint,
        .name = "sluiced",
        .timeout_ms = subscriber->settings.timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct line *line =
        subscriber->line_count < CLUSTER_LINES_MAX ? mem_zalloc(sizeof(*line)) : NULL;

    if (!line)
        return NULL;
    line->session = redis_session_new(&settings, &callbacks, line);
    if (!line->session) {
        mem_free(line);
        return NULL;
    }
    line->subscriber = subscriber;
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
    return sl_cluster_map_shards_of(map, redis_session_endpoint(line->session)) != 0;
}

void cluster_lines_drop(struct cluster_subscriber *subscriber, const struct sl_cluster_map *map)
{
    size_t kept = 0;

    for (size_t i = 0; i < subscriber->line_count; i++) {
        struct line *line = subscriber->lines[i];

        if (!is_needed(line, map)) {
            lose_shards(line, "the node no longer has shards");
            note_pong(line);
            cluster_classic_lose(line, "its node no longer has shards");
        }
    }
    for (size_t i = 0; i < subscriber->line_count; i++) {
        struct line *line = subscriber->lines[i];

        if (is_needed(line, map))
            subscriber->lines[kept++] = line;
        else
            free_line(line);
    }
    subscriber->line_count = kept;
}

void cluster_lines_open(struct cluster_subscriber *subscriber)
{
    for (size_t i = 0; i < subscriber->line_count; i++) {
        if (!redis_session_is_open(subscriber->lines[i]->session))
            redis_session_open(subscriber->lines[i]->session);
    }
}
