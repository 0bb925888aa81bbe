/* outbox.c - the clients of an outbox, and sending its entries to them.
 *
 * All clients in step are at `flushed`, so one array of pieces, built once per flush, is used for
 * all of them; the cost per client is the system call. If a send ends within a frame, the rest of
 * that frame is passed to the transport (the only bytes that are ever copied for a client), and the
 * client moves to the list of those behind, each with its own position.
 *
 * If the outbox has a history (compressor.h), the clients in step are those that have everything in
 * it since its last reset. A client that has just come, or was sent anything else, is `fresh`: it
 * is at the same position and is sent blocks that refer to nothing. A reset makes both equal, so
 * there is one when some client is fresh, but not with every flush, because the others lose their
 * history. */
#include "gateway/delivery/outbox.h"

#include <assert.h>

#include "base/clock.h"
#include "gateway/delivery/compressor.h"
#include "gateway/delivery/outbox_parts.h"
#include "gateway/metrics/metrics.h"

enum { TIMED_AT_ONCE = 32 };

void outbox_init(struct outbox *outbox, const struct outbox_settings *settings,
                 struct outbox_counts *counts)
{
    *outbox = (struct outbox){.settings = *settings, .counts = counts};
    list_init(&outbox->in_step);
    list_init(&outbox->fresh);
    list_init(&outbox->joining);
    list_init(&outbox->behind);
}

void outbox_done(struct outbox *outbox)
{
    assert(!outbox_has_clients(outbox));
    entries_free(outbox);
    if (outbox->settings.has_history)
        compressor_release(outbox->settings.compressor, &outbox->history);
}

bool outbox_has_clients(const struct outbox *outbox)
{
    return outbox->members > 0;
}

static struct list *list_of(struct outbox *outbox, enum client_state state)
{
    switch (state) {
    case CLIENT_IN_STEP:
        return &outbox->in_step;
    case CLIENT_FRESH:
        return &outbox->fresh;
    case CLIENT_JOINING:
        return &outbox->joining;
    case CLIENT_BEHIND:
        return &outbox->behind;
    case CLIENT_DETACHED:
        break;
    }
    return NULL;
}

static void move_to(struct client *client, enum client_state state)
{
    struct outbox *outbox = client->outbox;

    if (client->state == state)
        return;
    if (client->state != CLIENT_DETACHED)
        list_remove(list_of(outbox, client->state), &client->node);
    client->state = state;
    if (state != CLIENT_DETACHED)
        list_append(list_of(outbox, state), &client->node);
}

/* For a client that has everything up to the last flush, but not everything in the history. */
static enum client_state state_in_step(const struct outbox *outbox)
{
    return outbox->history.deflater ? CLIENT_FRESH : CLIENT_IN_STEP;
}

/* --- sums of each client: a checksum over HTTP, and what it was not sent --- */

/* Adds what the client was sent from the outbox since the last call to its checksum, and counts
 * what it was not sent. */
static void settle_sums(struct client *client)
{
    struct outbox *outbox = client->outbox;
    struct gzip_sum now, more;
    uint64_t undelivered;

    if (client->state == CLIENT_DETACHED)
        return;
    undelivered = entries_undelivered_before(outbox, client->at);
    client->undelivered += undelivered - client->undelivered_from;
    client->undelivered_from = undelivered;
    if (!outbox_is_gzip(outbox))
        return;
    now = entries_sum_before(outbox, client->at);
    more = gzip_sum_between(&client->sum_from, &now);
    gzip_sum_join(&client->sum, &more);
    client->sum_from = now;
}

void outbox_client_sent_own(struct client *client, const struct gzip_sum *said)
{
    if (client->outbox) {
        settle_sums(client);
        if (client->state == CLIENT_IN_STEP)
            move_to(client, state_in_step(client->outbox));
    }
    gzip_sum_join(&client->sum, said);
}

uint64_t outbox_client_undelivered(struct client *client)
{
    if (client->outbox)
        settle_sums(client);
    return client->undelivered;
}

/* --- members --- */

void outbox_join(struct outbox *outbox, struct client *client)
{
    assert(!client->outbox);
    client->outbox = outbox;
    outbox->members++;
    client->at = outbox->next;
    client->undelivered_from = outbox->undelivered;
    if (outbox_is_gzip(outbox))
        client->sum_from = entries_sum_before(outbox, client->at);
    move_to(client, outbox->next == outbox->flushed ? state_in_step(outbox) : CLIENT_JOINING);
}

/* Removes the client from the lists. It remains a member, so that the outbox outlives the loop in
 * which the client was found to be broken or too far behind. */
void outbox_set_aside(struct client *client)
{
    if (!client->outbox)
        return;
    settle_sums(client);
    if (client->at == client->outbox->first)
        client->outbox->oldest_moved = true;
    move_to(client, CLIENT_DETACHED);
}

/* Between two flushes, entries are freed only when no client is behind any more: searching for the
 * oldest position each time one moves would have quadratic cost. */
static void release_when_nobody_is_behind(struct outbox *outbox)
{
    if (list_is_empty(&outbox->behind))
        entries_release(outbox, outbox->flushed);
}

void outbox_leave(struct client *client)
{
    struct outbox *outbox = client->outbox;

    if (!outbox)
        return;
    assert(outbox->members > 0);
    outbox_set_aside(client);
    outbox->members--;
    client->outbox = NULL;
    release_when_nobody_is_behind(outbox);
}

bool outbox_client_is_served(const struct client *client)
{
    if (!client->outbox)
        return true;
    return !client->outbox->is_incomplete && client->state != CLIENT_BEHIND &&
           client->state != CLIENT_DETACHED && client->at == client->outbox->next;
}

static void visit_list(const struct list *list, client_visit_fn visit, void *owner)
{
    LIST_EACH(list, node)
    visit(owner, LIST_OWNER(node, struct client, node));
}

void outbox_visit_all(const struct outbox *outbox, client_visit_fn visit, void *owner)
{
    visit_list(&outbox->in_step, visit, owner);
    visit_list(&outbox->fresh, visit, owner);
    visit_list(&outbox->joining, visit, owner);
    visit_list(&outbox->behind, visit, owner);
}

bool outbox_visit_owed(const struct outbox *outbox, client_visit_fn visit, void *owner)
{
    if (outbox->flushed < outbox->next) {
        visit_list(&outbox->in_step, visit, owner);
        visit_list(&outbox->fresh, visit, owner);
        visit_list(&outbox->joining, visit, owner);
    }
    visit_list(&outbox->behind, visit, owner);
    return outbox->flushed < outbox->next || !list_is_empty(&outbox->behind);
}

void outbox_set_incomplete(struct outbox *outbox, const struct sl_cursor *cursor)
{
    outbox->is_incomplete = true;
    outbox->complete_until = *cursor;
}

void outbox_set_complete(struct outbox *outbox)
{
    outbox->is_incomplete = false;
}

/* The client has been sent everything before `position`, or it is held for it. */
static void advance(struct client *client, uint64_t position)
{
    struct outbox *outbox = client->outbox;
    uint64_t events = entries_events_between(outbox, client->at, position);

    client->sent_events += events;
    outbox->counts->events += events;
    if (outbox->settings.encoding != ENCODING_NONE)
        outbox->counts->before_bytes[outbox->settings.encoding] +=
            entries_bytes_before(outbox, position) - entries_bytes_before(outbox, client->at);
    client->at = position;
}

/* The socket accepted `sent` bytes of the batch. The rest of a frame is held; between two frames, a
 * whole frame is held, because a transport that has accepted something only reports new room when
 * it holds something. */
static void stay_behind(struct client *client, const struct batch *batch, size_t sent)
{
    struct iovec pieces[ENTRY_MAX_PIECES];
    uint64_t position;
    int count;

    move_to(client, CLIENT_BEHIND);
    if (sent == 0)
        return;
    position = batch_rest(batch, sent, pieces, &count);
    if (client->transport->hold(client, pieces, count) < 0) {
        advance(client, position);
        outbox_set_aside(client);
        client->transport->broken(client);
        return;
    }
    advance(client, batch_behind(batch, position));
}

/* The clock is read once for several sends: the first of them appear to have taken as long as the
 * last, which is far less than a millisecond too long. */
static void time_sends(const struct outbox *outbox, struct batch *batch)
{
    if (batch->untimed > 0 && batch->is_timed && outbox->settings.metrics)
        metric_observe(outbox->settings.metrics, METRIC_HISTOGRAM_DELIVERY_TIME,
                       clock_monotonic_us() - batch->received_us, batch->untimed);
    batch->untimed = 0;
}

/* true: the client has been sent the whole batch and has room for more. */
static bool send_batch(struct client *client, struct batch *batch, uint64_t now_ms)
{
    struct outbox *outbox = client->outbox;
    ssize_t sent = client->transport->send(client, batch->pieces, batch->count);

    assert(sent < 0 || (size_t)sent <= batch->bytes);
    outbox->counts->sends++;
    if (sent < 0) {
        outbox_set_aside(client);
        client->transport->broken(client);
        return false;
    }
    client->sent_bytes += (uint64_t)sent;
    outbox->counts->bytes += (uint64_t)sent;
    if (outbox->settings.encoding != ENCODING_NONE)
        outbox->counts->after_bytes[outbox->settings.encoding] += (uint64_t)sent;
    if (sent > 0) {
        client->last_sent_ms = now_ms;
        if (++batch->untimed == TIMED_AT_ONCE)
            time_sends(outbox, batch);
    }
    if ((size_t)sent < batch->bytes) {
        stay_behind(client, batch, (size_t)sent);
        return false;
    }
    advance(client, batch->to);
    return true;
}

static void evict(struct client *client, enum disconnect_reason reason)
{
    outbox_set_aside(client);
    client->transport->evict(client, reason);
}

static void evict_list(struct list *list, enum disconnect_reason reason)
{
    LIST_EACH(list, node)
    evict(LIST_OWNER(node, struct client, node), reason);
}

/* Sends batch by batch up to `to`, as far as the socket has room. */
static void bring_to(struct client *client, uint64_t to, uint64_t now_ms)
{
    struct outbox *outbox = client->outbox;
    struct batch batch;
    bool has_room;

    while (client->at < to) {
        if (client->transport->is_blocked(client)) {
            move_to(client, CLIENT_BEHIND);
            return;
        }
        if (batch_fill(outbox, client->at, to, &batch) < 0) {
            evict(client, DISCONNECT_INTERNAL);
            return;
        }
        has_room = send_batch(client, &batch, now_ms);
        time_sends(outbox, &batch);
        if (!has_room)
            return;
    }
    move_to(client, client->at == outbox->flushed ? state_in_step(outbox) : CLIENT_JOINING);
}

/* Clients that are owed more than permitted overrun; entries that nobody is owed are freed. */
static void trim(struct outbox *outbox)
{
    uint64_t oldest = outbox->flushed;

    if (!outbox->oldest_moved &&
        entries_cost_from(outbox, outbox->first) <= outbox->settings.max_owed_bytes)
        return;
    LIST_EACH(&outbox->behind, node)
    {
        struct client *client = LIST_OWNER(node, struct client, node);

        if (entries_cost_from(outbox, client->at) > outbox->settings.max_owed_bytes) {
            outbox_set_aside(client);
            outbox->settings.overrun(client);
        } else if (client->at < oldest) {
            oldest = client->at;
        }
    }
    outbox->oldest_moved = false;
    entries_release(outbox, oldest);
}

/* From now on all clients in step are sent blocks of the history, or independent blocks. */
static void take_in_step(struct outbox *outbox)
{
    LIST_EACH(&outbox->fresh, node)
    move_to(LIST_OWNER(node, struct client, node), CLIENT_IN_STEP);
}

/* Decides who is sent what in the flush that begins. */
static void choose_history(struct outbox *outbox, uint64_t now_ms)
{
    struct compressor *compressor = outbox->settings.compressor;
    struct history *history = &outbox->history;
    bool had_one = history->deflater != NULL;

    if (!outbox->settings.has_history)
        return;
    history->clients = outbox->members;
    compressor_hold(compressor, history, outbox->settings.window_bits, now_ms);
    if (!had_one || !history->deflater) {
        take_in_step(outbox);
    } else if (!list_is_empty(&outbox->fresh) &&
               (list_is_empty(&outbox->in_step) ||
                history->flushes >= compressor_reset_flushes(compressor))) {
        compressor_reset(compressor, history);
        take_in_step(outbox);
    }
    history->flushes++;
}

static void flush_list(struct outbox *outbox, struct list *list, batch_fill_fn fill,
                       uint64_t now_ms)
{
    uint64_t target = outbox->next;
    struct batch batch;

    for (uint64_t from = outbox->flushed; from < target && !list_is_empty(list); from = batch.to) {
        if (fill(outbox, from, target, &batch) < 0) {
            evict_list(list, DISCONNECT_INTERNAL);
            return;
        }
        LIST_EACH(list, node)
        {
            struct client *client = LIST_OWNER(node, struct client, node);

            if (client->transport->is_blocked(client))
                move_to(client, CLIENT_BEHIND);
            else
                send_batch(client, &batch, now_ms);
        }
        time_sends(outbox, &batch);
    }
}

static void flush(struct outbox *outbox, uint64_t now_ms)
{
    uint64_t target = outbox->next;

    if (outbox->first == outbox->flushed)
        outbox->oldest_moved = true; /* clients in step, or joining, are the oldest */
    flush_list(outbox, &outbox->in_step,
               outbox->history.deflater ? batch_fill_with_history : batch_fill_together, now_ms);
    flush_list(outbox, &outbox->fresh, batch_fill_together, now_ms);
    outbox->flushed = target;
    LIST_EACH(&outbox->joining, node)
    bring_to(LIST_OWNER(node, struct client, node), target, now_ms);
    trim(outbox);
}

void outbox_flush(struct outbox *outbox, uint64_t now_ms)
{
    if (outbox->flushed < outbox->next)
        choose_history(outbox, now_ms);
    flush(outbox, now_ms);
    outbox->last_flush_ms = now_ms;
}

bool outbox_shares_gzip(const struct outbox *outbox)
{
    return outbox->settings.has_history && outbox_is_gzip(outbox);
}

void outbox_keep_alive(struct outbox *outbox, struct event *event, const struct sl_cursor *head,
                       uint64_t now_ms)
{
    assert(outbox->flushed == outbox->next && event->kind == EVENT_KEEPALIVE);
    if (outbox_append(outbox, event, head, SL_SLICE_NONE, now_ms) < 0)
        return;
    outbox->keepalives_end = outbox->next;
    flush(outbox, now_ms);
}

void outbox_client_writable(struct client *client, uint64_t now_ms)
{
    struct outbox *outbox = client->outbox;

    if (!outbox || client->state != CLIENT_BEHIND)
        return;
    if (client->at == outbox->first)
        outbox->oldest_moved = true;
    bring_to(client, outbox->flushed, now_ms);
    release_when_nobody_is_behind(outbox);
}

void outbox_overrun_behind(struct outbox *outbox)
{
    LIST_EACH(&outbox->behind, node)
    {
        struct client *client = LIST_OWNER(node, struct client, node);

        outbox_set_aside(client);
        outbox->settings.overrun(client);
    }
    trim(outbox);
}

void outbox_evict_all(struct outbox *outbox, enum disconnect_reason reason)
{
    evict_list(&outbox->in_step, reason);
    evict_list(&outbox->fresh, reason);
    evict_list(&outbox->joining, reason);
    evict_list(&outbox->behind, reason);
}
