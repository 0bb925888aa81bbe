/* gateway/access/control_channel_parts.h - internal to the control channel: what its files share.
 *
 *     control_channel.c   the subscription and the messages that arrive
 *     control_wait.c      outstanding questions */
#pragma once

#include "base/backoff.h"
#include "base/deadline_list.h"
#include "base/failure.h"
#include "gateway/access/control_channel.h"
#include "gateway/redis/redis_session.h"
#include "src/model/keys.h"

struct control_channel {
    struct control_channel_settings settings;
    char name[WORKER_NAME_SIZE];
    char own_channel[SL_KEY_SIZE];
    control_asked_fn asked;
    void *context;
    bool is_draining;

    struct redis_session *session;
    struct sl_redis_endpoint endpoint; /* in a cluster, or with sentinels */
    bool is_endpoint_known;            /* always true for a single Redis */
    unsigned confirmed;                /* number of confirmed subscriptions */
    bool is_hearing;
    uv_timer_t retry;
    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE]; /* the last logged reason why it is not subscribed;
                                              empty: it is */

    struct deadline_list waits; /* of struct control_wait */
    uv_timer_t timer;           /* for the earliest deadline in `waits` */
    unsigned wait_count; /* includes those that are finished, but whose PUBLISH has no reply yet */
    uint64_t numbers;
    unsigned closing; /* timers that are being closed */
    bool is_freed;
};

/* --- control_wait.c --- */

static inline bool control_channel_is_clustered(const struct control_channel *channel)
{
    return channel->settings.address->seed_count > 0;
}

/* Frees the message. 0; a negative errno: nothing is sent, and `done` is not called. */
int control_publish(struct control_channel *channel, const char *name, struct buffer *message,
                    void (*done)(void *owner, const redisReply *reply, const char *why),
                    void *owner);
/* The answer of this worker; free it with control_answer_done(). */
void control_answer_own(struct control_channel *channel, const struct control_question *question,
                        struct control_answer *ret_answer);

void control_waits_take(struct control_channel *channel, const struct control_answer *answer);
/* The question has come back on the subscription. It counts as an answer, because this worker is
 * among the subscribers that Redis counted. */
void control_waits_heard_own(struct control_channel *channel, uint64_t number);
/* Finishes the questions whose time is over. */
void control_waits_check(struct control_channel *channel);
/* Finishes all questions. */
void control_waits_end_all(struct control_channel *channel);
/* Frees a freed channel after its last question and its timers are gone. */
void control_channel_release(struct control_channel *channel);
