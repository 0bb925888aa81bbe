/* counter_picks.c - the events of the open bucket are in a pick_bucket; an event of a closed one is
 * sent by itself at once.
 *
 * What is sent is fitted to the client: it may have come with a compound cursor, and have events
 * that others lack. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "gateway/counts/counter_parts.h"

struct sl_cursor counter_picks_cursor(const struct counter *counter)
{
    const struct sl_cursor cursor = {.id = told_to(counter)};

    return cursor.id < counter->had.id ? counter->had : cursor;
}

/* If the client came with a compound cursor, it has everything of this shard up to the event,
 * too. */
static void note_had(struct counter *counter, const struct event *event)
{
    const struct sl_cursor before = counter->had;
    struct sl_cursor had = {.id = before.id};

    for (uint32_t i = 0; i < before.group_count; i++) {
        uint64_t low = before.groups[i].low;

        for (uint64_t rest = before.groups[i].shards; rest; rest &= rest - 1) {
            uint32_t shard = (uint32_t)__builtin_ctzll(rest);

            sl_cursor_lower(&had, shard, shard == event->shard ? greater(event->id, low) : low);
        }
    }
    counter->had = had;
}

/* Afterwards the client is at `cursor`. `stray` NULL: the message is about the open bucket. */
static int tell_skipped(struct counter *counter, const struct sl_cursor *cursor, uint64_t count,
                        const struct event *stray)
{
    const char *why = !stray ? NULL : stray->id ? "late" : "unlogged";
    char json[SL_CURSOR_TEXT_SIZE + 160], text[SL_CURSOR_TEXT_SIZE];
    int size = snprintf(json, sizeof(json),
                        "{\"type\":\"skipped\",\"id\":\"%s\",\"events\":%" PRIu64 "%s%s%s}",
                        sl_cursor_print(cursor, text), count, why ? ",\"reason\":\"" : "",
                        why ? why : "", why ? "\"" : "");
    struct event *event = event_new_control(EVENT_SKIPPED, sl_slice(json, (size_t)size));

    if (event && !sl_cursor_is_plain(cursor) && event_set_cursor(event, cursor) < 0) {
        event_unref(event);
        return -ENOMEM;
    }
    if (!event)
        return -ENOMEM;
    if (stray) {
        event->is_late = true;
        event->late_to = stray->id;
        event->sequence = stray->sequence;
    } else {
        event->id = cursor->id;
    }
    return told_list_add(&counter->to_tell, event, stray ? 0 : counter->open_last, count,
                         SL_SLICE_NONE);
}

/* A copy for a client at `cursor`, which is after the event, so the event must not contain a cursor
 * of its own. NULL: out of memory. */
static struct event *as_late(struct event *event, const struct sl_cursor *cursor)
{
    struct event *copy = event_copy_with_cursor(event, cursor, true);

    if (!copy)
        return NULL;
    copy->late_to = copy->id;
    copy->id = 0;
    return copy;
}

/* The event's bucket is closed, or it has none. */
static int add_stray(struct counter *counter, struct event *event, struct sl_slice tail)
{
    struct sl_cursor cursor;

    if (event->id)
        note_had(counter, event);
    cursor = counter_picks_cursor(counter);
    if (event->kind == EVENT_POST)
        return tell_skipped(counter, &cursor, 1, event);
    return told_list_add(&counter->to_tell,
                         event->id ? as_late(event, &cursor) : event_at_cursor(event, &cursor), 0,
                         0, tail);
}

int counter_picks_add(struct counter *counter, struct event *event, struct sl_slice tail)
{
    bool is_had = event->id <= sl_cursor_of_shard(&counter->had, event->shard) &&
                  event->id <= counter->passed[event->shard];

    if (counter->question.pick.behind && event->id <= counter->question.pick.behind)
        return 0;
    if (event->id < counter->open_first) /* a client that was further has received it */
        return is_had && event->id ? 0 : add_stray(counter, event, tail);
    if (counter->goes_on && event->id <= counter->passed[event->shard])
        return 0;
    return pick_bucket_add(&counter->picks, &counter->question.pick, event, tail, is_had,
                           &counter->to_tell);
}

/* The cursor of a client that has the whole open bucket. A client that came with a compound cursor
 * of another stream may have more of some shards. */
static struct sl_cursor cursor_at_end(const struct counter *counter)
{
    const struct sl_cursor *had = &counter->had;
    uint64_t open = counter->open_last;
    struct sl_cursor end = {.id = greater(open, had->id)};

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX && !sl_cursor_is_plain(had); shard++)
        sl_cursor_lower(&end, shard, greater(open, sl_cursor_of_shard(had, shard)));
    return end;
}

int counter_picks_close(struct counter *counter)
{
    const struct sl_cursor end = cursor_at_end(counter);
    uint64_t skipped;

    if (pick_bucket_close(&counter->picks, &counter->question.pick, &counter->to_tell, &skipped) <
        0)
        return -ENOMEM;
    counter->goes_on = false;
    return skipped > 0 ? tell_skipped(counter, &end, skipped, NULL) : 0;
}

int counter_picks_place(struct counter *counter, const struct sl_cursor *before, struct told *told)
{
    bool is_late = told->id && told->id < before->id;
    struct sl_cursor cursor = {.id = told->id};
    struct event *event = told->event, *copy;

    if (event->kind == EVENT_SKIPPED) {
        if (event->cursor)
            counter->had = *event->cursor;
        return 0;
    }
    if (!told->id || (!event->cursor && !event->is_late && !is_late))
        return 0;
    if (is_late) {
        note_had(counter, event);
        cursor = counter_picks_cursor(counter);
        told->id = 0;
    }
    copy = is_late ? as_late(event, &cursor) : event_copy_with_cursor(event, &cursor, false);
    if (!copy)
        return -ENOMEM;
    event_unref(event);
    told->event = copy;
    return 0;
}
