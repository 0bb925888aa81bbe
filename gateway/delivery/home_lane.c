/* home_lane.c - lanes whose source is a home feed. */
#include <errno.h>

#include "gateway/delivery/deliver_parts.h"

static void on_home_match(void *watcher, struct event *event)
{
    catch_up_owe(watcher, event, SL_SLICE_NONE);
}

/* Clients that come now are sent the open window according to the changed feed, and so are all
 * others, except for what was sent at once. */
static void on_home_changed(void *watcher)
{
    struct lane *lane = watcher;

    if (!lane->question.bucket_ms || lane->question.pick.pick == PICK_FIRST)
        return;
    if (lane->counter)
        lane_recount(lane);
    catch_up_recount(lane);
}

static void on_home_loading(void *watcher)
{
    struct lane *lane = watcher;
    struct sl_cursor head;

    lane_tell_left_out(lane);
    head = lane_head(lane);
    outbox_set_incomplete(&lane->outbox, &head);
    if (lane->counter)
        lane_recount(lane); /* what passes now follows when its windows have ended */
    catch_up_wake_lane(lane);
}

static void on_home_loaded(void *watcher)
{
    struct lane *lane = watcher;

    outbox_set_complete(&lane->outbox);
    catch_up_lane_ready(lane);
}

/* The lane gets no more events; new clients get another one. */
static void on_home_failed(void *watcher, int why)
{
    struct lane *lane = watcher;

    lane_unshare(lane);
    catch_up_evict_lane(lane, why == -EDQUOT ? DISCONNECT_HOME_FULL : DISCONNECT_INTERNAL);
}

int lane_watch_home(struct lane *lane, struct sl_slice user, unsigned types)
{
    struct deliver *deliver = lane->deliver;
    int r;

    lane->watch = (struct home_watch){.types = types,
                                      .on_match = on_home_match,
                                      .on_changed = on_home_changed,
                                      .on_loading = on_home_loading,
                                      .on_loaded = on_home_loaded,
                                      .on_failed = on_home_failed,
                                      .watcher = lane};
    r = home_watch(deliver->home, user, &lane->watch);
    if (r == 0 && !home_is_loaded(&lane->watch))
        outbox_set_incomplete(&lane->outbox, &deliver->head);
    return r;
}

int lane_watch_home_of(struct lane *lane, const struct lane *other)
{
    return lane_watch_home(lane, home_watch_user(&other->watch), other->watch.types);
}
