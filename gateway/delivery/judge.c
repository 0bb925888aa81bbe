/* judge.c - matches a segment once for all lanes with one filter that have clients catching up.
 *
 * The results are kept with the segment. Named rules and home feeds change, so lanes with these
 * match events separately, as they are now. */
#include <assert.h>
#include <errno.h>

#include "gateway/delivery/deliver_parts.h"

enum { JUDGED_AT_ONCE = 32 /* events of a segment */ };

bool lane_is_ready(const struct lane *lane)
{
    if (lane->rules)
        return !lane->awaits_rules;
    return lane->is_subscribed || home_is_loaded(&lane->watch);
}

static void note_all(struct deliver *deliver, struct segment *segment, size_t index)
{
    LIST_EACH(&deliver->judging, node)
    verdict_want(segment_verdict(segment, LIST_OWNER(node, struct lane, judging)->number), index);
}

static void note_matches(struct deliver *deliver, struct segment *segment, size_t index)
{
    size_t count = sl_match_set_count(deliver->matches);
    const uint32_t *subscriptions = sl_match_set_subscriptions(deliver->matches);

    for (size_t i = 0; i < count; i++) {
        struct binding *binding = &deliver->bindings[subscriptions[i]];
        struct verdict *verdict;

        if (!binding->lane || !list_contains(&binding->lane->judging))
            continue;
        verdict = segment_verdict(segment, binding->lane->number);
        if (verdict)
            verdict_want(verdict, index);
    }
}

/* Matches events from the first one that was not matched for `lane`. Other lanes that catch up are
 * nearly always at the same point; for those that are not, it is repeated. 0; -ENOMEM. */
static int judge(struct deliver *deliver, struct lane *lane, struct segment *segment)
{
    struct verdict *verdict = segment_add_verdict(segment, lane->number);
    size_t from, to;

    if (!verdict)
        return -ENOMEM;
    assert(verdict->count <= segment->count);
    from = verdict->count;
    to = segment->count - from < JUDGED_AT_ONCE ? segment->count : from + JUDGED_AT_ONCE;
    LIST_EACH(&deliver->judging, node)
    {
        if (!segment_add_verdict(segment, LIST_OWNER(node, struct lane, judging)->number))
            return -ENOMEM;
    }
    for (size_t index = from; index < to; index++) {
        const struct event *event = segment->entries[index].event;

        if (!event || event->kind == EVENT_LATE)
            continue;
        if (event_is_for_all(event)) {
            note_all(deliver, segment, index);
            continue;
        }
        if (sl_words_read(deliver->words, &event->view) < 0 ||
            sl_filter_index_match(deliver->index, &event->view, deliver->words, deliver->matches) <
                0)
            return -ENOMEM;
        note_matches(deliver, segment, index);
    }
    LIST_EACH(&deliver->judging, node)
    {
        verdict = segment_verdict(segment, LIST_OWNER(node, struct lane, judging)->number);
        if (verdict->count >= from && verdict->count < to)
            verdict->count = (uint32_t)to;
    }
    return 0;
}

static int filter_next(struct lane *lane, struct segment *segment, size_t index, size_t *ret_index)
{
    for (;;) {
        const struct verdict *verdict = segment_verdict(segment, lane->number);
        size_t next = verdict ? verdict_next(verdict, index) : 0;
        int r;

        if (verdict && (next < verdict->count || verdict->count == segment->count)) {
            *ret_index = next;
            return 0;
        }
        r = judge(lane->deliver, lane, segment);
        if (r < 0)
            return r;
    }
}

/* 1: yes; 0: no; -ENOMEM. */
static int wants_now(struct lane *lane, const struct event *event, struct sl_slice *ret_tail)
{
    *ret_tail = SL_SLICE_NONE;
    if (!event || event->kind == EVENT_LATE)
        return 0;
    if (event_is_for_all(event))
        return 1;
    if (!lane->rules)
        return home_wants(&lane->watch, event);
    if (sl_words_read(lane->deliver->words, &event->view) < 0)
        return -ENOMEM;
    return rule_set_wants(lane->rules, event, lane->deliver->words, ret_tail);
}

int lane_next_wanted(struct lane *lane, struct segment *segment, size_t index, size_t *ret_index,
                     struct sl_slice *ret_tail)
{
    int r = 0;

    *ret_tail = SL_SLICE_NONE;
    if (lane->is_subscribed)
        return filter_next(lane, segment, index, ret_index);
    while (index < segment->count &&
           (r = wants_now(lane, segment->entries[index].event, ret_tail)) == 0)
        index++;
    *ret_index = index;
    return r < 0 ? r : 0;
}
