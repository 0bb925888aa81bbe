/* outbox_entries.c - the ring of entries: what is owed, and the sums over it.
 *
 * Positions only grow, and an entry is found by its position. It holds the sums over all entries
 * before it (bytes, events left out, and for gzip a checksum), so a sum over any range is a
 * difference, which costs the same for one client or a thousand. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/outbox_parts.h"
#include "gateway/delivery/reducer.h"
#include "gateway/front/event_fields.h"
#include "src/model/id.h"

enum { FIRST_CAPACITY = 4, KEPT_CAPACITY = 64 };

/* --- sums --- */

uint64_t entries_bytes_before(const struct outbox *outbox, uint64_t position)
{
    return position == outbox->next ? outbox->bytes : entry_at(outbox, position)->bytes_before;
}

struct gzip_sum entries_sum_before(const struct outbox *outbox, uint64_t position)
{
    return (struct gzip_sum){
        .bytes = entries_bytes_before(outbox, position),
        .crc = position == outbox->next ? outbox->crc : entry_at(outbox, position)->crc_before};
}

uint64_t entries_undelivered_before(const struct outbox *outbox, uint64_t position)
{
    return position == outbox->next ? outbox->undelivered
                                    : entry_at(outbox, position)->undelivered_before;
}

uint64_t entries_events_between(const struct outbox *outbox, uint64_t from, uint64_t to)
{
    uint64_t events = to - from;

    for (; from < to && from < outbox->keepalives_end; from++)
        events -= entry_at(outbox, from)->event->kind == EVENT_KEEPALIVE;
    return events;
}

static uint64_t bytes_from(const struct outbox *outbox, uint64_t position)
{
    return outbox->bytes - entries_bytes_before(outbox, position);
}

uint64_t entries_cost_from(const struct outbox *outbox, uint64_t position)
{
    uint64_t each = outbox->settings.fields == EVENT_FIELDS_FULL ? 0 : sizeof(struct event);

    return bytes_from(outbox, position) + (outbox->next - position) * each;
}

size_t outbox_gathered_bytes(const struct outbox *outbox)
{
    return entries_cost_from(outbox, outbox->flushed);
}

/* --- adding and freeing --- */

static int make_room(struct outbox *outbox)
{
    uint64_t capacity = outbox->capacity ? outbox->capacity * 2 : FIRST_CAPACITY;
    struct outbox_entry *entries;

    if (outbox->next - outbox->first < outbox->capacity)
        return 0;
    entries = mem_alloc(mem_array_size(capacity, sizeof(*entries)));
    if (!entries)
        return -ENOMEM;
    for (uint64_t p = outbox->first; p < outbox->next; p++)
        entries[p & (capacity - 1)] = *entry_at(outbox, p);
    mem_free(outbox->entries);
    outbox->entries = entries;
    outbox->capacity = capacity;
    return 0;
}

static void entry_done(struct outbox_entry *entry)
{
    event_unref(entry->event);
    mem_free(entry->wrapping);
    mem_free(entry->compound);
}

static void release_until(struct outbox *outbox, uint64_t position)
{
    for (; outbox->first < position; outbox->first++)
        entry_done(entry_at(outbox, outbox->first));
}

void entries_free(struct outbox *outbox)
{
    release_until(outbox, outbox->next);
    mem_free(outbox->entries);
    outbox->entries = NULL;
    outbox->capacity = 0;
}

void entries_release(struct outbox *outbox, uint64_t oldest)
{
    assert(oldest <= outbox->flushed); /* unflushed entries are owed to clients in step */
    release_until(outbox, oldest);
    if (outbox->first == outbox->next && outbox->capacity > KEPT_CAPACITY)
        entries_free(outbox);
}

/* After a failover, ids may be lower than the newest. A client that resumes from before a gap is
 * told of it; so is one that has the last event of the rewound range. */
static uint64_t cursor_before(const struct event *event, uint64_t head)
{
    if (event->gap_to)
        return head ? head : event->gap_to - !event->is_rewound;
    return head && head < event->id ? head : event->id - 1;
}

/* Determines the entry's size, and over HTTP its checksum. */
static int measure(struct outbox *outbox, struct outbox_entry *entry, struct sl_slice tail)
{
    enum stream_format format = outbox->settings.format;
    struct sl_slice bytes =
        outbox->settings.encoding == ENCODING_NONE && !outbox->settings.unchunked
            ? frame_of_event(entry->event, format)
            : frame_inside(entry->event, format);

    if (!bytes.data)
        return -ENOMEM;
    entry->size = (uint32_t)(bytes.size + tail.size);
    if (entry->wrapping && outbox->settings.encoding == ENCODING_NONE)
        entry->size = (uint32_t)(entry->wrapping->head_size + entry->event->json.size - 1 +
                                 tail.size + entry->wrapping->end.size);
    entry->crc_before = outbox->crc;
    if (outbox_is_gzip(outbox)) {
        struct gzip_sum sum = {.crc = outbox->crc};

        gzip_sum_add(&sum, bytes);
        outbox->crc = sum.crc;
    }
    return 0;
}

static int make_entry(struct outbox *outbox, const struct sl_cursor *head, struct sl_slice tail,
                      struct outbox_entry *entry)
{
    if (tail.data) {
        entry->wrapping = batch_wrap(outbox, entry->event, tail);
        if (!entry->wrapping)
            return -ENOMEM;
    }
    if (!sl_cursor_is_plain(head)) {
        entry->compound = mem_copy(head, sizeof(*head));
        if (!entry->compound)
            return -ENOMEM;
    }
    return measure(outbox, entry, tail);
}

/* With these members of the event. */
static int append(struct outbox *outbox, struct event *event, uint64_t fields,
                  const struct sl_cursor *head, struct sl_slice tail, uint64_t now_ms)
{
    const struct outbox_settings *settings = &outbox->settings;
    struct outbox_entry entry = {.bytes_before = outbox->bytes,
                                 .undelivered_before = outbox->undelivered,
                                 .cursor = cursor_before(event, head->id)};

    assert(!tail.data || !settings->tail.data);
    if (!tail.data)
        tail = settings->tail;
    assert(!tail.data || settings->format == FORMAT_WEBSOCKET ||
           (settings->format == FORMAT_NDJSON && settings->encoding == ENCODING_NONE));
    if (make_room(outbox) < 0)
        return -ENOMEM;
    entry.event = fields == EVENT_FIELDS_FULL ? event_ref(event)
                                              : reducer_reduce(settings->reducer, event, fields);
    if (entry.event && entry.event->json.size == 0 && event->kind != EVENT_KEEPALIVE) {
        /* the dialect does not send it */
        outbox->undelivered += event->kind == EVENT_POST;
        entry_done(&entry);
        return 0;
    }
    if (!entry.event || make_entry(outbox, head, tail, &entry) < 0) {
        entry_done(&entry);
        return -ENOMEM;
    }
    if (outbox->next == outbox->flushed)
        outbox->first_unflushed_ms = now_ms;
    outbox->next++;
    outbox->bytes += entry.size;
    *entry_at(outbox, outbox->next - 1) = entry;
    return 0;
}

/* A client that is set aside between the two messages of an event gets both again. */
int outbox_append(struct outbox *outbox, struct event *event, const struct sl_cursor *head,
                  struct sl_slice tail, uint64_t now_ms)
{
    const struct outbox_settings *settings = &outbox->settings;
    uint64_t second = reducer_second(settings->reducer, event, settings->fields);
    int r = append(outbox, event, settings->fields, head, tail, now_ms);

    return r == 0 && second ? append(outbox, event, second, head, tail, now_ms) : r;
}

/* --- what a client is owed --- */

/* After a failover the head may be older than what the client is still owed. */
struct sl_cursor outbox_client_cursor(const struct client *client, const struct sl_cursor *head)
{
    const struct outbox *outbox = client->outbox;

    if (outbox && outbox->is_incomplete)
        head = &outbox->complete_until;
    for (uint64_t p = client->at; outbox && p < outbox->next; p++) {
        const struct outbox_entry *entry = entry_at(outbox, p);

        if (!entry->event->id && !entry->event->gap_to)
            continue;
        if (entry->compound)
            return *entry->compound;
        return (struct sl_cursor){.id = entry->cursor < head->id ? entry->cursor : head->id};
    }
    return *head;
}

void outbox_client_owed(const struct client *client, uint64_t now_ms, struct client_owed *ret_owed)
{
    const struct outbox *outbox = client->outbox;
    uint64_t received_ms;

    *ret_owed = (struct client_owed){0};
    if (!outbox || client->state == CLIENT_DETACHED || client->at >= outbox->next)
        return;
    received_ms = entry_at(outbox, client->at)->event->received_us / 1000;
    ret_owed->events = outbox->next - client->at;
    ret_owed->bytes = bytes_from(outbox, client->at);
    ret_owed->waited_ms = now_ms > received_ms ? now_ms - received_ms : 0;
}

const struct event *outbox_owed(const struct client *client, uint64_t position)
{
    return position < client->outbox->next ? entry_at(client->outbox, position)->event : NULL;
}

void outbox_owed_with(const struct client *client, uint64_t position, struct sl_cursor *ret_head,
                      struct sl_slice *ret_tail)
{
    const struct outbox *outbox = client->outbox;
    const struct outbox_entry *entry = entry_at(outbox, position);
    bool is_own = entry->wrapping && !outbox->settings.tail.data;

    *ret_head = entry->compound ? *entry->compound : (struct sl_cursor){.id = entry->cursor};
    *ret_tail = is_own ? entry->wrapping->said : SL_SLICE_NONE;
}
