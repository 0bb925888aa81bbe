/* catch_up_sample.c - a client continues with another part of its posts.
 *
 * The old part ends at its position: what it is owed and was not sent is read and selected again. A
 * message between the two announces the change. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "gateway/delivery/catcher.h"

bool catch_up_may_sample(const struct catcher *catcher)
{
    return !catcher->look_back && !catcher->counter && catcher->state != CATCHER_LEAVES &&
           catcher->state != CATCHER_WAITS_FOR_LANE;
}

bool catch_up_is_resuming(const struct catcher *catcher)
{
    return catcher->has_come && !catcher->has_fallen && catcher->lane->percent == 100;
}

bool catch_up_waits_for_socket(const struct catcher *catcher)
{
    return catcher->state == CATCHER_WAITS_FOR_SOCKET;
}

/* NULL: out of memory. */
static struct event *announcement(uint32_t percent)
{
    char json[64];
    int size =
        snprintf(json, sizeof(json), "{\"type\":\"sampling\",\"percent\":%" PRIu32 "}", percent);

    return event_new_control(EVENT_SAMPLING, sl_slice(json, (size_t)size));
}

static void change_lane(struct catcher *catcher, struct lane *to)
{
    lane_remove_catcher(catcher->lane, &catcher->in_lane);
    catcher->lane = to;
    lane_add_catcher(to, &catcher->in_lane);
}

/* For a client that catches up. */
static int move(struct catcher *catcher, struct lane *to, struct event *message)
{
    int r = catcher_give_control_take(catcher, message);

    if (r == 0 && catcher->lane != to)
        change_lane(catcher, to);
    return r;
}

/* For a live client. */
static int take_out(struct catch_up *catch_up, struct lane *from, struct lane *to,
                    struct client *client, struct event *message)
{
    bool is_behind = client->state == CLIENT_BEHIND;
    struct catcher *catcher;

    lane_tell_left_out(from);
    if (client->state == CLIENT_DETACHED) { /* out of memory, or the connection is broken */
        event_unref(message);
        return 0;
    }
    catcher = client->catcher ? client->catcher
                              : catcher_take_over(catch_up, to, client, catch_up->ring->next);
    if (!catcher) {
        event_unref(message);
        return -ENOMEM;
    }
    if (client->catcher) /* it was owed too much because of that */
        return move(catcher, to, message);
    catcher_start(catcher);
    catcher_enter(catcher, is_behind ? CATCHER_WAITS_FOR_SOCKET : CATCHER_RUNS);
    if (catcher_give_control_take(catcher, message) < 0)
        catcher_evict(catcher, DISCONNECT_INTERNAL);
    return 0;
}

int catch_up_sample(struct catch_up *catch_up, struct lane *from, struct lane *to,
                    struct client *client, uint32_t percent)
{
    struct event *message = announcement(percent);

    if (!message)
        return -ENOMEM;
    return client->catcher ? move(client->catcher, to, message)
                           : take_out(catch_up, from, to, client, message);
}
