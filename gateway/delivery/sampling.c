/* sampling.c - sends a sample of the posts to clients that would fall behind, and more of them
 * while a client keeps up.
 *
 * Each sample is a lane of its own next to that of all posts, shared by clients with the same
 * filter and percentage, so a post is selected once. A timer looks at these clients four times a
 * second. A client whose socket has been full for a second, with something to send, goes one step
 * down, and again while what it is sent is still old. A client whose socket has not been full for
 * some seconds goes one step up. If it has to go down again at once, it stays there twice as
 * long. */
#include <errno.h>
#include <inttypes.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "gateway/delivery/deliver_parts.h"

enum {
    TICK_MS = 250,
    LATE_MS = 1000,  /* less, if what is sent is older than this */
    SETTLE_MS = 500, /* minimum time after the last change */
    HOLD_MS = 2000,  /* more, after keeping up for this time */
    HOLD_MAX_MS = 60000,
    FORGET_MS = 60000 /* after keeping up with all posts for this time, starts anew */
};

static const uint32_t steps[] = {100, 50, 25, 10, 5, 1};
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

/* --- lanes --- */

static void set_percent(struct lane *lane, uint32_t percent)
{
    struct deliver *deliver = lane->deliver;
    uint32_t all_ppm = SL_SAMPLE_ALL;

    if (lane->is_subscribed)
        all_ppm = sl_filter_sample_ppm(sl_filter_index_filter(deliver->index, lane->subscription));
    lane->percent = percent;
    lane->sample_ppm = (uint32_t)((uint64_t)all_ppm * percent / 100);
    if (lane->sample_ppm == 0)
        lane->sample_ppm = 1;
    if (list_contains(&lane->sampled))
        list_remove(&deliver->sampled_lanes, &lane->sampled);
    if (percent < 100)
        list_append(&deliver->sampled_lanes, &lane->sampled);
}

static int subscribe_like(struct lane *lane, const struct lane *other)
{
    struct deliver *deliver = lane->deliver;
    int r;

    if (!other->is_subscribed)
        return lane_watch_home_of(lane, other);
    r = binding_add(deliver, sl_filter_index_filter(deliver->index, other->subscription), lane,
                    NULL, &lane->subscription);
    lane->is_subscribed = r == 0;
    return r;
}

/* The key of the lane of all posts, preceded by the percentage. */
static void part_key(const struct lane *lane, uint32_t percent, struct buffer *ret_key)
{
    struct sl_slice key = sl_slice(lane->key, lane->key_size);

    while (key.size > 0 && key.data[0] >= '0' && key.data[0] <= '9')
        key = sl_slice(key.data + 1, key.size - 1);
    if (percent < 100)
        buffer_append_format(ret_key, "%" PRIu32, percent);
    buffer_append_slice(ret_key, key);
}

/* NULL: out of memory. */
static struct lane *part_new(const struct lane *lane, const struct client *client, uint32_t percent,
                             struct sl_slice key)
{
    struct lane *part = lane_new(lane->deliver, client, (int)lane->outbox.settings.gather_ms);

    if (!part)
        return NULL;
    if (lane_share(part, key) < 0 || subscribe_like(part, lane) < 0) {
        lane_free(part);
        return NULL;
    }
    set_percent(part, percent);
    return part;
}

/* NULL: out of memory, or the lane is no longer shared. */
static struct lane *part_of(struct lane *lane, const struct client *client, uint32_t percent)
{
    struct buffer key = BUFFER_INIT;
    struct lane *part = NULL;

    if (lane->rules)
        return lane;
    if (!lane->key)
        return NULL;
    part_key(lane, percent, &key);
    if (!key.failed)
        part = hash_map_get(lane->deliver->lanes, buffer_slice(&key));
    if (!key.failed && !part)
        part = part_new(lane, client, percent, buffer_slice(&key));
    buffer_done(&key);
    return part;
}

/* --- clients --- */

struct look {
    uint64_t now_ms, lag_ms;
    bool is_live, is_blocked, is_resuming;
};

/* -1: less; 1: more; 0: no change. */
static int judge(struct client_sampling *sampling, uint32_t percent, uint64_t sent_bytes,
                 const struct look *look)
{
    uint64_t calm_from_ms;

    if (look->is_blocked || sampling->blocked_ms == 0)
        sampling->blocked_ms = look->now_ms;
    calm_from_ms =
        sampling->blocked_ms > sampling->changed_ms ? sampling->blocked_ms : sampling->changed_ms;
    if (look->is_blocked)
        return look->lag_ms >= LATE_MS && !look->is_resuming && percent > steps[STEPS - 1] &&
                       look->now_ms >= sampling->changed_ms + SETTLE_MS &&
                       (percent == 100 || sent_bytes != sampling->sent_bytes)
                   ? -1
                   : 0;
    if (percent == 100 && look->now_ms >= calm_from_ms + FORGET_MS)
        sampling->hold_ms = 0;
    if (sampling->hold_ms < HOLD_MS)
        sampling->hold_ms = HOLD_MS;
    return percent < 100 && look->is_live && look->now_ms >= calm_from_ms + sampling->hold_ms;
}

static void note_change(struct client *client, bool is_up, uint64_t now_ms)
{
    struct client_sampling *sampling = &client->sampling;

    if (!is_up && sampling->went_up && sampling->hold_ms < HOLD_MAX_MS)
        sampling->hold_ms *= 2;
    sampling->went_up = is_up;
    sampling->changed_ms = now_ms;
    sampling->sent_bytes = client->sent_bytes;
}

static uint32_t step_from(uint32_t percent, int direction)
{
    int i = 0;

    while (steps[i] != percent)
        i++;
    return steps[i - direction];
}

static void move(struct deliver *deliver, struct client *client, int direction)
{
    struct lane *from = catch_up_lane_of(client);
    uint32_t percent = step_from(from->percent, direction);
    bool was_sampled = from->percent < 100;
    struct lane *to = part_of(from, client, percent);

    if (!to)
        return; /* no change; it may fall behind */
    if (catch_up_sample(deliver->catch_up, from, to, client, percent) < 0) {
        lane_forget_client(to);
        return;
    }
    note_change(client, direction > 0, uv_now(deliver->settings.loop));
    if (to == from)
        set_percent(to, percent);
    else
        lane_forget_client(from);
    metric_add(deliver->settings.metrics, METRIC_SAMPLED, percent < 100);
    metric_sub(deliver->settings.metrics, METRIC_SAMPLED, was_sampled);
}

static bool look_at(const struct client *client, uint64_t now_ms, struct look *ret_look)
{
    const struct lane *lane = catch_up_lane_of(client);
    struct client_owed owed;
    uint64_t events;

    *ret_look = (struct look){.now_ms = now_ms, .is_live = !client->catcher};
    if (client->state == CLIENT_DETACHED)
        return false;
    if (!client->catcher) {
        outbox_client_owed(client, clock_monotonic_ms(), &owed);
        ret_look->lag_ms = owed.waited_ms;
        ret_look->is_blocked = client->state == CLIENT_BEHIND;
        return lane_is_ready(lane) && !lane->outbox.is_incomplete;
    }
    catch_up_distance(client->catcher, clock_wall_ms(), &events, &ret_look->lag_ms);
    ret_look->is_blocked = catch_up_waits_for_socket(client->catcher);
    ret_look->is_resuming =
        catch_up_is_resuming(client->catcher) && client->progress.late_from_ms == 0;
    return catch_up_may_sample(client->catcher);
}

void sampling_tell(struct deliver *deliver)
{
    LIST_EACH(&deliver->sampled_lanes, node)
    lane_tell_left_out(LIST_OWNER(node, struct lane, sampled));
}

void sampling_move(struct deliver *deliver, struct client *client, int direction)
{
    const uint32_t percent = catch_up_lane_of(client)->percent;
    struct look look;

    if (percent != (direction < 0 ? steps[STEPS - 1] : 100) &&
        look_at(client, uv_now(deliver->settings.loop), &look))
        move(deliver, client, direction);
}

static void on_tick(uv_timer_t *timer)
{
    struct deliver *deliver = timer->data;
    uint64_t now_ms = uv_now(deliver->settings.loop);

    sampling_tell(deliver);
    LIST_EACH(&deliver->sampling, node)
    {
        struct client *client = LIST_OWNER(node, struct client, sampling.sampling);
        struct look look;
        int direction;

        if (!look_at(client, now_ms, &look))
            continue;
        direction =
            judge(&client->sampling, catch_up_lane_of(client)->percent, client->sent_bytes, &look);
        if (direction != 0)
            move(deliver, client, direction);
    }
    pace_turn_end(deliver);
}

void sampling_join(struct deliver *deliver, struct client *client)
{
    if (!client->sampling.is_wanted)
        return;
    if (list_is_empty(&deliver->sampling))
        uv_timer_start(deliver->sampler, on_tick, TICK_MS, TICK_MS);
    list_append(&deliver->sampling, &client->sampling.sampling);
}

void sampling_leave(struct deliver *deliver, struct client *client)
{
    const struct lane *lane = catch_up_lane_of(client);

    if (!list_contains(&client->sampling.sampling))
        return;
    list_remove(&deliver->sampling, &client->sampling.sampling);
    if (list_is_empty(&deliver->sampling))
        uv_timer_stop(deliver->sampler);
    metric_sub(deliver->settings.metrics, METRIC_SAMPLED, lane->percent < 100);
}
