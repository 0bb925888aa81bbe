/* cluster_steps.c - for each shard that holds the database: reads the end of its log, then
 * SSUBSCRIBE.
 *
 *     away -> log end -> subscribing -> heard
 *      ^                                  |
 *      +---- moved, or its line ends -----+
 *
 * Everything but the subscription uses commands, which find the node by themselves. Each shard has
 * its own SSUBSCRIBE, because two slots in one would be CROSSSLOT. */
#include "gateway/intake/cluster_subscriber_parts.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/intake/repair.h"
#include "src/database/event_log.h"
#include "src/model/keys.h"

/* ---- the steps of a shard ---- */

static void subscribe(struct shard *shard)
{
    char channel[SL_KEY_SIZE];

    shard->state = SHARD_AWAY;
    if (!cluster_line_is_ready(shard->line))
        return; /* it is subscribed when the line is ready */
    if (redis_session_send_words(
            shard->line->session,
            (const char *[]){"SSUBSCRIBE", sl_key(shard->number, "live", channel), NULL}) < 0)
        cluster_try_later(shard->subscriber);
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
        cluster_try_later(subscriber);
    else
        subscribe(shard);
}

/* Estimates where the logs of unreachable shards end: at the newest event of the others, or a
 * minute ago. Their events since then are delivered when they return. */
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

void cluster_tell_first_log_ends(struct cluster_subscriber *subscriber)
{
    uint64_t guess = guess_log_end(subscriber), there = 0;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        there |= subscriber->shards[i].has_log_end ? cluster_bit(i) : 0;
    if (there == 0 || (there != cluster_all_shards(subscriber) && !cluster_has_waited(subscriber)))
        return;
    subscriber->has_begun = true;
    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        struct shard *shard = &subscriber->shards[i];

        if (there & cluster_bit(i)) {
            tell_log_end(shard);
        } else {
            shard->guess = sl_id_shard(guess) == i ? guess - 1 : guess;
            tell_guess(shard);
        }
    }
}

void cluster_free_if_done(struct cluster_subscriber *subscriber)
{
    if (subscriber->open_handles > 0 || subscriber->asked > 0)
        return;
    for (size_t i = 0; i < subscriber->line_count; i++)
        mem_free(subscriber->lines[i]);
    mem_free(subscriber);
}

bool cluster_note_answer(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    shard->is_asked = false;
    subscriber->asked--;
    if (!subscriber->is_stopping)
        return true;
    cluster_free_if_done(subscriber);
    return false;
}

static void on_log_end(void *owner, const redisReply *reply, const char *why)
{
    struct shard *shard = owner;
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct failure failure;
    int r;

    if (!cluster_note_answer(shard))
        return;
    r = reply ? sl_event_log_end_reply(reply, shard->number, &shard->log_end, &failure)
              : failure_set(&failure, -EIO, "%s", why);
    shard->has_log_end = r == 0;
    if (r < 0) {
        shard->state = SHARD_AWAY;
        cluster_doubt(subscriber, failure.text);
    } else if (subscriber->has_begun) {
        tell_log_end(shard);
    } else {
        cluster_tell_first_log_ends(subscriber);
    }
}

void cluster_run(struct shard *shard, int built, struct sl_call *call, redis_reply_fn done)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    if (built < 0)
        sl_call_done(call);
    if (built == 0 &&
        redis_commands_run_take(subscriber->settings.commands, call, done, shard) == 0) {
        shard->is_asked = true;
        subscriber->asked++;
    } else {
        cluster_try_later(subscriber);
    }
}

/* The next step of a shard that is away, if there is one now. */
static void advance(struct shard *shard)
{
    struct sl_call call = SL_CALL_INIT;

    if (shard->state != SHARD_AWAY || shard->is_asked || !cluster_line_is_ready(shard->line) ||
        !(shard->subscriber->known & cluster_bit(shard->number)))
        return;
    shard->state = SHARD_LOG_END;
    cluster_run(shard, sl_event_log_end_call(&call, shard->number, NULL), &call, on_log_end);
    if (!shard->is_asked)
        shard->state = SHARD_AWAY;
}

void cluster_advance_all(struct cluster_subscriber *subscriber)
{
    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        advance(&subscriber->shards[i]);
}
