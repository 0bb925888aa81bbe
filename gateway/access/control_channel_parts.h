/* gateway/access/control_channel_parts.h - inside the control channel: what its files share.
 *
 *     control_channel.c   the connection that hears, and what comes on it
 *     control_wait.c      what was asked, until it is answered */
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
    struct sl_redis_endpoint endpoint; /* of a cluster, or as sentinels say */
    bool is_endpoint_known;            /* always, of a Redis alone */
    unsigned confirmed;                /* subscriptions */
    bool is_hearing;
    uv_timer_t retry;
    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE]; /* why it is not heard, as logged last; empty: it is */

    struct deadline_list waits; /* of struct control_wait */
    uv_timer_t timer;           /* for the first of them */
    unsigned wait_count;        /* those that Redis has not answered, too */
    uint64_t numbers;
    unsigned closing; /* timers */
    bool is_freed;
};

/* --- control_wait.c --- */

static inline bool control_channel_is_clustered(const struct control_channel *channel)
{
    return channel->settings.address->seed_count > 0;
}

/* The message is done with. 0; a negative errno: it is not sent. */
int control_publish(struct control_channel *channel, const char *name, struct buffer *message,
                    void (*done)(void *owner, const redisReply *reply, const char *why),
                    void *owner);
/* What we answer ourselves; end it with control_answer_done(). */
void control_answer_own(struct control_channel *channel, const struct control_question *question,
                        struct control_answer *ret_answer);

void control_waits_take(struct control_channel *channel, const struct control_answer *answer);
/* Our own question has come round: it has been answered. */
void control_waits_heard_own(struct control_channel *channel, uint64_t number);
/* Those whose time is over. */
void control_waits_check(struct control_channel *channel);
/* All go on with what there is. */
void control_waits_end_all(struct control_channel *channel);
/* The last has gone, and so have the timers. */
void control_channel_release(struct control_channel *channel);
