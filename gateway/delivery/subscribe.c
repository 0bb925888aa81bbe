/* subscribe.c - a new client joins the lane with the same key, or gets a new one.
 *
 * The key of a lane consists of the framing and compression, shared keep-alives, members of events,
 * gather window, end, question about buckets, and the filter, in bytes; named rules are never
 * shared. A client that resumes goes to catch_up.c, and comes back from there. With its last
 * client, live or catching up, a lane is freed, together with its subscriptions. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/delivery/dictionary.h"

/* --- joining --- */

static void append_question(struct buffer *key, const struct count_question *question)
{
    buffer_append_format(
        key, "%" PRIu64 ",%d,%" PRIu32 ",%" PRIu32 ",%" PRIu32 ",%d,%" PRIu32 ",%" PRIu64 "?",
        question->bucket_ms, (int)question->by, question->cell_millidegrees, question->refresh_ms,
        question->pick.posts, (int)question->pick.pick, question->pick.cell_millidegrees,
        question->pick.behind);
    buffer_append_format(key, "%" PRIu64 ",%x,%" PRIu32 "?", question->trends.window_ms,
                         question->trends.of, question->trends.limit);
}

/* Clients with equal keys can share a lane: same framing, members of events, gather window,
 * question, tail and filter. */
static void lane_key(const struct client *client, int gather_ms, char kind, struct sl_slice what,
                     struct buffer *ret_key)
{
    bool shares_cursors = client->says_cursors && client->encoding == ENCODING_DEFLATE &&
                          client->format != FORMAT_WEBSOCKET;

    buffer_append_format(ret_key, "%c%d%d%d,%d,%" PRIu32 ",%d,%" PRIx64 ",%d,%" PRIu64 ",%zu,",
                         kind, (int)client->format, (int)client->unchunked, (int)client->encoding,
                         (int)client->window_bits,
                         client->dictionary ? client->dictionary->known.id : 0, (int)shares_cursors,
                         client->fields, gather_ms, client->until, client->tail.size);
    buffer_append_slice(ret_key, client->tail);
    if (client->question.bucket_ms)
        append_question(ret_key, &client->question);
    buffer_append_slice(ret_key, what);
}

static struct lane *shared_lane_new(struct deliver *deliver, const struct client *client,
                                    struct sl_filter *filter, int gather_ms, struct sl_slice key)
{
    struct lane *lane = lane_new(deliver, client, gather_ms);

    if (!lane)
        return NULL;
    if (lane_share(lane, key) < 0 ||
        binding_add(deliver, filter, lane, NULL, &lane->subscription) < 0) {
        lane_free(lane);
        return NULL;
    }
    lane->is_subscribed = true;
    return lane;
}

/* A lane that is sent trends by the lane that computes them. */
static struct lane *outlet_new(struct deliver *deliver, const struct client *client,
                               struct sl_filter *filter, int gather_ms, struct sl_slice key)
{
    struct lane *lane = shared_lane_new(deliver, client, filter, gather_ms, key);
    struct lane *source = lane ? trend_source_find(deliver, filter, &client->question) : NULL;

    if (!source) {
        lane_free(lane);
        return NULL;
    }
    trend_source_add_outlet(source, lane);
    return lane;
}

int deliver_subscribe(struct deliver *deliver, struct client *client, struct sl_filter *filter,
                      int gather_ms)
{
    struct buffer key = BUFFER_INIT;
    struct lane *lane = NULL;

    lane_key(client, gather_ms, 'f', sl_filter_key(filter), &key);
    if (!key.failed) {
        lane = hash_map_get(deliver->lanes, buffer_slice(&key));
        if (!lane && client->question.trends.window_ms)
            lane = outlet_new(deliver, client, filter, gather_ms, buffer_slice(&key));
        else if (!lane)
            lane = shared_lane_new(deliver, client, filter, gather_ms, buffer_slice(&key));
    }
    buffer_done(&key);
    if (!lane)
        return -ENOMEM;
    outbox_join(&lane->outbox, client);
    sampling_join(deliver, client);
    return 0;
}

static struct lane *home_lane_new(struct deliver *deliver, const struct client *client,
                                  struct sl_slice user, unsigned types, int gather_ms,
                                  struct sl_slice key)
{
    struct lane *lane = lane_new(deliver, client, gather_ms);

    if (!lane)
        return NULL;
    if (lane_share(lane, key) < 0 || lane_watch_home(lane, user, types) < 0) {
        lane_free(lane);
        return NULL;
    }
    return lane;
}

bool deliver_has_home_room(const struct deliver *deliver, struct sl_slice user)
{
    return home_has_room(deliver->home, user);
}

int deliver_subscribe_home(struct deliver *deliver, struct client *client, struct sl_slice user,
                           unsigned types, int gather_ms)
{
    struct buffer key = BUFFER_INIT;
    struct lane *lane = NULL;

    lane_key(client, gather_ms, 'h', user, &key);
    buffer_append_format(&key, " %x", types);
    if (!key.failed) {
        lane = hash_map_get(deliver->lanes, buffer_slice(&key));
        if (!lane)
            lane = home_lane_new(deliver, client, user, types, gather_ms, buffer_slice(&key));
    }
    buffer_done(&key);
    if (!lane)
        return -ENOMEM;
    outbox_join(&lane->outbox, client);
    sampling_join(deliver, client);
    return 0;
}

int deliver_subscribe_rules(struct deliver *deliver, struct client *client, int gather_ms,
                            struct rule_set **ret_rules)
{
    struct lane *lane = lane_new(deliver, client, gather_ms);

    if (!lane)
        return -ENOMEM;
    lane->rules = rule_set_new(lane);
    if (!lane->rules) {
        lane_free(lane);
        return -ENOMEM;
    }
    outbox_join(&lane->outbox, client);
    sampling_join(deliver, client);
    *ret_rules = lane->rules;
    return 0;
}

void deliver_set_fields(struct client *client, uint64_t fields)
{
    struct lane *lane = catch_up_lane_of(client);

    assert(!lane->key);
    client->fields = lane->outbox.settings.fields = fields;
    if (client->catcher)
        client->outbox->settings.fields = fields;
}

void deliver_rules_changed(struct client *client)
{
    struct lane *lane = catch_up_lane_of(client);

    if (!lane || !lane_counts(lane))
        return;
    if (lane->counter)
        lane_recount(lane);
    catch_up_recount(lane);
}

/* --- resuming and leaving --- */

int deliver_resume(struct deliver *deliver, struct client *client, const struct sl_cursor *cursor)
{
    struct lane *lane = catch_up_lane_of(client);

    if (lane->source && trend_source_goes_on_from(lane->source, cursor))
        return 0;
    lane->awaits_rules = lane->rules != NULL;
    return catch_up_begin(deliver->catch_up, lane, client, cursor);
}

int deliver_begin_last(struct deliver *deliver, struct client *client, uint32_t last,
                       bool keeps_deletions)
{
    struct lane *lane = catch_up_lane_of(client);

    lane->awaits_rules = lane->rules != NULL;
    return catch_up_begin_last(deliver->catch_up, lane, client, last, keeps_deletions);
}

void deliver_rules_ready(struct client *client)
{
    struct lane *lane = catch_up_lane_of(client);

    if (!lane || !lane->awaits_rules)
        return;
    lane->awaits_rules = false;
    catch_up_lane_ready(lane);
}

void deliver_suspend(struct client *client)
{
    if (client->catcher)
        catch_up_suspend(client->catcher);
    else
        outbox_set_aside(client);
}

void deliver_leave(struct client *client)
{
    struct lane *lane = catch_up_lane_of(client);

    if (!lane)
        return;
    sampling_leave(lane->deliver, client);
    if (client->catcher)
        catch_up_leave(client->catcher);
    else
        outbox_leave(client);
    lane_forget_client(lane);
}
