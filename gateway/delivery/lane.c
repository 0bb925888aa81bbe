/* lane.c - creates lanes, finds them by key, owes them events, and frees them with their last
 * client.
 *
 * A lane is an outbox with a source of events. Owing an event does not send it: pace.c does this at
 * the end of the turn or when enough is gathered. Only when waiting saves nothing more, a lane is
 * written to at once. The outbox limits what a client may be owed. */
#include "gateway/delivery/lane.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/delivery/frame.h"

/* At this size a lane is written to at once, because more saves nothing. */
enum { MAX_GATHERED_BYTES = 64 << 10 };

struct lane *lane_new(struct deliver *deliver, const struct client *client, int gather_ms)
{
    struct outbox_settings settings = {
        .format = client->format,
        .unchunked = client->unchunked,
        .encoding = client->encoding,
        .dictionary = client->dictionary,
        .window_bits = client->window_bits,
        .compressor = deliver->compressor,
        .fields = client->fields,
        .reducer = &deliver->reducer,
        .gather_ms = gather_ms < 0 ? deliver->settings.gather_ms : (uint32_t)gather_ms,
        .max_owed_bytes = deliver->settings.max_owed_bytes,
        .overrun = deliver->overrun,
        .metrics = client->question.pick.posts ? NULL : deliver->settings.metrics,
    };
    struct lane *lane = mem_zalloc(sizeof(*lane));

    if (lane && client->tail.data) {
        lane->tail = mem_strndup(client->tail.data, client->tail.size);
        settings.tail = sl_slice(lane->tail, client->tail.size);
    }
    if (!lane || (client->tail.data && !lane->tail)) {
        mem_free(lane);
        return NULL;
    }
    assert(client->encoding == ENCODING_NONE || deliver->compressor);
    lane->deliver = deliver;
    lane->until = client->until;
    lane->question = client->question;
    lane->number = ++deliver->lanes_made;
    lane->percent = 100;
    list_init(&lane->catchers);
    list_init(&lane->outlets);
    outbox_init(&lane->outbox, &settings, &deliver->counts);
    list_append(&deliver->all_lanes, &lane->node);
    return lane;
}

void lane_unshare(struct lane *lane)
{
    if (!lane->key)
        return;
    hash_map_remove(lane->deliver->lanes, sl_slice(lane->key, lane->key_size));
    lane->deliver->key_bytes -= lane_key_bytes(lane->key_size);
    mem_free(lane->key);
    lane->key = NULL;
}

void lane_free(struct lane *lane)
{
    struct deliver *deliver;

    if (!lane)
        return;
    assert(list_is_empty(&lane->catchers));
    deliver = lane->deliver;
    lane_unshare(lane);
    if (lane->is_subscribed)
        binding_remove(deliver, lane->subscription);
    rule_set_free(lane->rules);
    if (lane->counter)
        list_remove(&deliver->counting, &lane->counting);
    if (list_contains(&lane->closing))
        list_remove(&deliver->closing, &lane->closing);
    if (list_contains(&lane->miscounted))
        list_remove(&deliver->miscounted, &lane->miscounted);
    if (list_contains(&lane->sampled))
        list_remove(&deliver->sampled_lanes, &lane->sampled);
    counter_free(lane->counter);
    told_list_done(&lane->held);
    home_unwatch(deliver->home, &lane->watch);
    pace_unqueue(deliver, &lane->outbox);
    if (list_contains(&lane->owing))
        list_remove(&deliver->owing, &lane->owing);
    outbox_done(&lane->outbox);
    list_remove(&deliver->all_lanes, &lane->node);
    mem_free(lane->tail);
    mem_free(lane);
}

int lane_share(struct lane *lane, struct sl_slice key)
{
    assert(!lane->key);
    lane->key = mem_strndup(key.data, key.size);
    if (!lane->key)
        return -ENOMEM;
    lane->key_size = key.size;
    if (hash_map_add(lane->deliver->lanes, key, lane) < 0) {
        mem_free(lane->key);
        lane->key = NULL;
        return -ENOMEM;
    }
    lane->deliver->key_bytes += lane_key_bytes(lane->key_size);
    /* A client that never shares its lane gains less from a history than it costs. */
    lane->outbox.settings.has_history =
        lane->outbox.settings.encoding == ENCODING_DEFLATE && lane->outbox.settings.window_bits > 0;
    return 0;
}

/* Gathered bytes count as owed, so they must stay well below the limit for a client: clients in
 * step are sent them before that. */
static bool has_gathered_enough(const struct outbox *outbox)
{
    size_t gathered = outbox_gathered_bytes(outbox);

    return gathered >= MAX_GATHERED_BYTES || gathered >= outbox->settings.max_owed_bytes / 2;
}

static void owe(struct lane *lane)
{
    if (!list_contains(&lane->owing))
        list_append(&lane->deliver->owing, &lane->owing);
}

/* 0; -ENOMEM. */
static int append(struct lane *lane, struct event *event, const struct sl_cursor *head,
                  struct sl_slice tail)
{
    owe(lane);
    return outbox_append(&lane->outbox, event, head, tail, uv_now(lane->deliver->settings.loop));
}

/* 0; -ENOMEM: they remain to be reported. */
static int append_left_out(struct lane *lane)
{
    struct left_out *left_out = &lane->left_out;
    struct event *event;
    int r;

    if (left_out->posts == 0)
        return 0;
    event =
        left_out_message(left_out, &lane->deliver->head, lane->passed, lane->deliver->ring.shards);
    if (!event)
        return -ENOMEM;
    r = append(lane, event, &left_out->before, SL_SLICE_NONE);
    event_unref(event);
    if (r < 0)
        return r;
    metric_add(lane->deliver->settings.metrics, METRIC_POSTS_SKIPPED, left_out->posts);
    left_out->posts = 0;
    return 0;
}

void lane_send(struct lane *lane)
{
    struct outbox *outbox = &lane->outbox;

    if (has_gathered_enough(outbox)) {
        pace_unqueue(lane->deliver, outbox);
        outbox_flush(outbox, uv_now(lane->deliver->settings.loop));
    } else {
        pace_queue(lane->deliver, outbox);
    }
}

int lane_tell_left_out(struct lane *lane)
{
    if (lane->left_out.posts == 0)
        return 0;
    if (append_left_out(lane) < 0) {
        outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
        return -ENOMEM;
    }
    lane_send(lane);
    return 0;
}

void lane_owe_some(struct lane *lane, struct event *event, const struct sl_cursor *head,
                   struct sl_slice tail)
{
    if (append_left_out(lane) < 0 || append(lane, event, head, tail) < 0)
        outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
}

void lane_owe(struct lane *lane, struct event *event, const struct sl_cursor *head,
              struct sl_slice tail)
{
    lane_owe_some(lane, event, head, tail);
    lane_send(lane);
}

/* A client that falls behind because of this continues in the ring with what passes from now on.
 * Out of memory: the keep-alive is left out. */
void lane_keep_alive(struct lane *lane, bool says_cursor, const struct sl_cursor *cursor)
{
    struct deliver *deliver = lane->deliver;
    struct outbox *outbox = &lane->outbox;
    struct sl_cursor head;
    struct event *event;

    lane_tell_left_out(lane);
    head = lane_head(lane);
    if (outbox_gathered_bytes(outbox) > 0)
        return;
    event = frame_keepalive_event(outbox->settings.format, cursor, says_cursor);
    if (!event)
        return;
    event_charge(event, &deliver->event_bytes);
    event->sequence = deliver->ring.next;
    owe(lane);
    outbox_keep_alive(outbox, event, &head, uv_now(deliver->settings.loop));
    event_unref(event);
}

static void leave_out(struct lane *lane, const struct event *event)
{
    if (lane->left_out.posts == 0)
        memcpy(lane->passed, lane->deliver->ring.passed, sizeof(lane->passed));
    left_out_add(&lane->left_out, event, &lane->deliver->head);
}

/* The cursor of a client that has everything before this event, which has waited for its home feed:
 * others have passed since. */
static struct sl_cursor before_waiting(const struct lane *lane, const struct event *event)
{
    const struct sl_cursor id = {.id = event->id};
    struct position position;

    if (!event->id) /* a gap has none; all that passed before an unlogged event has been owed */
        return event->cursor ? *event->cursor : lane->outbox.complete_until;
    if (lane->deliver->ring.shards == 1)
        return id; /* an entry's cursor is less than its id */
    position_set(&position, event->cursor ? event->cursor : &id);
    position_lower_shard(&position, event->shard, event->previous);
    return position_cursor(&position);
}

/* Whoever is sent it has everything up to it, and may fall behind before the others follow. */
static void owe_waiting(struct lane *lane, struct event *event, struct sl_slice tail)
{
    const struct sl_cursor before = before_waiting(lane, event), id = {.id = event->id};

    lane_owe_some(lane, event, &before, tail);
    if (event->cursor || event->id)
        lane->outbox.complete_until = event->cursor ? *event->cursor : id;
    lane_send(lane);
}

void lane_append(struct lane *lane, struct event *event, struct sl_slice tail)
{
    if (client_is_beyond(lane->until, event->id))
        return;
    if (lane->outbox.is_incomplete)
        owe_waiting(lane, event, tail);
    else if (lane_leaves_out(lane, event))
        leave_out(lane, event);
    else
        lane_owe(lane, event, &lane->deliver->head, tail);
}

void lane_add_catcher(struct lane *lane, struct list_node *node)
{
    list_append(&lane->catchers, node);
    if (lane->is_subscribed && !list_contains(&lane->judging))
        list_append(&lane->deliver->judging, &lane->judging);
}

void lane_remove_catcher(struct lane *lane, struct list_node *node)
{
    list_remove(&lane->catchers, node);
    if (list_is_empty(&lane->catchers) && list_contains(&lane->judging))
        list_remove(&lane->deliver->judging, &lane->judging);
}
