/* control_channel.c - a connection to Redis that is subscribed to two channels and reconnects
 * whenever it is lost.
 *
 * In a cluster it uses SSUBSCRIBE on the master of shard 0, because SPUBLISH there returns the
 * number of that node's subscribers. When the shard moves, the node ends the subscription, and the
 * next map names the new master. */
#include "gateway/access/control_channel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "gateway/access/control_channel_parts.h"
#include "src/call/reply.h"
#include "src/model/id.h"

enum { SUBSCRIPTIONS = 2, RETRY_MIN_MS = 100, RETRY_MAX_MS = 1000, UNSENT_MAX_BYTES = 16 * 1024 };

/* --- the connection ------------------------------------------------------------------------ */

static void begin(struct control_channel *channel)
{
    channel->confirmed = 0;
    if (channel->is_freed || !channel->is_endpoint_known || redis_session_is_open(channel->session))
        return;
    uv_timer_stop(&channel->retry);
    if (channel->settings.address->sentinel_count > 0 || control_channel_is_clustered(channel))
        redis_session_set_endpoint(channel->session, &channel->endpoint);
    redis_session_open(channel->session);
}

static void on_retry(uv_timer_t *timer)
{
    begin(timer->data);
}

static void lose(struct control_channel *channel, const char *reason)
{
    char room[LOG_QUOTE_SIZE];

    redis_session_close(channel->session);
    channel->is_hearing = false;
    uv_timer_start(&channel->retry, on_retry,
                   backoff_next_spread_ms(&channel->backoff, RETRY_MIN_MS, RETRY_MAX_MS), 0);
    if (strcmp(reason, channel->logged_reason) == 0)
        return;
    snprintf(channel->logged_reason, sizeof(channel->logged_reason), "%s", reason);
    log_warn("control_lost", "worker=%u reason=%s", channel->settings.worker,
             log_quote(sl_slice_str(reason), room));
}

static void on_lost(void *context, const char *reason)
{
    lose(context, reason);
}

static void on_ready(void *context)
{
    struct control_channel *channel = context;
    char all[SL_KEY_SIZE];
    const char *const words[] = {control_channel_is_clustered(channel) ? "SSUBSCRIBE" : "SUBSCRIBE",
                                 sl_key(0, "control", all), channel->own_channel, NULL};

    if (redis_session_send_words(channel->session, words) < 0)
        lose(channel, "out of memory");
}

static void note_confirmed(struct control_channel *channel)
{
    if (++channel->confirmed != SUBSCRIPTIONS)
        return;
    redis_session_settle(channel->session, channel->settings.ping_ms);
    channel->is_hearing = true;
    backoff_reset(&channel->backoff);
    if (channel->logged_reason[0])
        log_info("control_heard", "worker=%u", channel->settings.worker);
    channel->logged_reason[0] = '\0';
}

/* --- messages ------------------------------------------------------------------------------ */

static void on_answered(void *owner, const redisReply *reply, const char *why)
{
    (void)owner;
    (void)reply;
    (void)why; /* if the answer is lost, the asking worker continues without it */
}

static void answer(struct control_channel *channel, const struct control_question *question)
{
    char name[SL_KEY_SIZE], suffix[sizeof("control:") + WORKER_NAME_SIZE];
    struct control_answer own;
    struct buffer message = BUFFER_INIT;

    control_answer_own(channel, question, &own);
    control_answer_print(&own, &message);
    control_answer_done(&own);
    snprintf(suffix, sizeof(suffix), "control:%s", question->from);
    control_publish(channel, sl_key(0, suffix, name), &message, on_answered, NULL);
}

static void take_message(struct control_channel *channel, const redisReply *text)
{
    struct control_message message;

    if (control_message_read(sl_slice(text->str, text->len), &message) < 0)
        return;
    if (message.is_answer)
        control_waits_take(channel, &message.answer);
    else if (strcmp(message.question.from, channel->name) == 0)
        control_waits_heard_own(channel, message.question.number);
    else
        answer(channel, &message.question);
    control_message_done(&message);
}

static bool is_kind(const redisReply *reply, const char *kind, size_t elements)
{
    struct sl_slice text;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != elements ||
        reply->element[0]->type != REDIS_REPLY_STRING)
        return false;
    text = sl_slice(reply->element[0]->str, reply->element[0]->len);
    return sl_slice_is(text, kind) ||
           (text.size > 0 && text.data[0] == 's' && sl_slice_is(sl_slice_from(text, 1), kind));
}

static void on_reply(void *context, const redisReply *reply)
{
    struct control_channel *channel = context;
    struct failure failure;

    if (is_kind(reply, "message", 3) && reply->element[2]->type == REDIS_REPLY_STRING)
        take_message(channel, reply->element[2]);
    else if (is_kind(reply, "subscribe", 3))
        note_confirmed(channel);
    else if (is_kind(reply, "unsubscribe", 3))
        lose(channel, "the shard was moved");
    else if (sl_reply_check(reply, &failure) < 0)
        lose(channel, failure.text);
}

/* --- the address of Redis ------------------------------------------------------------------ */

static void move_to(struct control_channel *channel, const struct sl_redis_endpoint *endpoint)
{
    bool is_other =
        !channel->is_endpoint_known || !sl_redis_endpoint_equals(endpoint, &channel->endpoint);

    if (channel->is_freed)
        return;
    channel->endpoint = *endpoint;
    channel->is_endpoint_known = true;
    if (is_other) {
        redis_session_close(channel->session);
        channel->is_hearing = false;
        backoff_reset(&channel->backoff);
    }
    begin(channel);
}

void control_channel_set_endpoint(struct control_channel *channel,
                                  const struct sl_redis_endpoint *endpoint)
{
    if (endpoint)
        move_to(channel, endpoint);
}

void control_channel_set_map(struct control_channel *channel, const struct sl_cluster_map *map)
{
    if (map->masters[0].host[0])
        move_to(channel, &map->masters[0]);
}

/* --- creating and freeing ------------------------------------------------------------------ */

void control_channel_set_asked(struct control_channel *channel, control_asked_fn asked,
                               void *context)
{
    channel->asked = asked;
    channel->context = context;
}

void control_channel_set_draining(struct control_channel *channel)
{
    channel->is_draining = true;
}

const char *control_channel_worker_name(const struct control_channel *channel)
{
    return channel->name;
}

static struct redis_session *make_session(struct control_channel *channel)
{
    static const struct redis_session_callbacks callbacks = {
        .on_ready = on_ready, .on_reply = on_reply, .on_lost = on_lost};
    const struct control_channel_settings *settings = &channel->settings;
    const struct redis_session_settings session = {
        .loop = settings->loop,
        .address = settings->address,
        .name = "sluiced-control",
        .timeout_ms = settings->timeout_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };

    return redis_session_new(&session, &callbacks, channel);
}

struct control_channel *control_channel_new(const struct control_channel_settings *settings)
{
    struct control_channel *channel = mem_zalloc(sizeof(*channel));
    char suffix[sizeof("control:") + WORKER_NAME_SIZE];

    if (!channel)
        return NULL;
    channel->settings = *settings;
    channel->numbers = hash_key_random().k0;
    channel->is_endpoint_known =
        settings->address->sentinel_count == 0 && settings->address->seed_count == 0;
    worker_name_print(settings->gateway, settings->worker, channel->name);
    snprintf(suffix, sizeof(suffix), "control:%s", channel->name);
    sl_key(0, suffix, channel->own_channel);
    deadline_list_init(&channel->waits, CONTROL_ANSWER_MS);
    channel->session = make_session(channel);
    if (!channel->session) {
        mem_free(channel);
        return NULL;
    }
    uv_timer_init(settings->loop, &channel->retry);
    uv_timer_init(settings->loop, &channel->timer);
    channel->retry.data = channel->timer.data = channel;
    begin(channel);
    return channel;
}

static void on_timer_closed(uv_handle_t *timer)
{
    struct control_channel *channel = timer->data;

    channel->closing--;
    control_channel_release(channel);
}

void control_channel_free(struct control_channel *channel)
{
    if (!channel)
        return;
    channel->is_freed = true;
    channel->asked = NULL;
    control_waits_end_all(channel);
    redis_session_free(channel->session);
    channel->closing = 2;
    uv_close((uv_handle_t *)&channel->retry, on_timer_closed);
    uv_close((uv_handle_t *)&channel->timer, on_timer_closed);
}
