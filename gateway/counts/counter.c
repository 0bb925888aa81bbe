/* counter.c - one open bucket, the messages to be sent, and short lists of ranges of ids: the
 * missing ones, those that must be counted again, and those that are sent again.
 *
 * Counts are made here; what is special about picking and trends is in counter_parts.h. */
#include "gateway/counts/counter.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/counts/counter_parts.h"

static bool picks(const struct counter *counter)
{
    return counter->kind == COUNTER_PICKS;
}

static bool has_trends(const struct counter *counter)
{
    return counter->kind == COUNTER_TRENDS;
}

/* --- buckets --- */

static void open_bucket(struct counter *counter, uint64_t start_ms)
{
    uint64_t first = sl_id_first_at(start_ms);
    uint64_t last = sl_id_first_at(start_ms + counter->question.bucket_ms) - 1;
    bool is_cut = counter->until >= first && counter->until < last;

    counter->start_ms = start_ms;
    counter->open_first = first;
    counter->open_last = picks(counter) && is_cut ? counter->until : last;
}

uint64_t counter_before(const struct counter *counter)
{
    return before_open(counter);
}

uint64_t counter_open(const struct counter *counter)
{
    return counter->open_last;
}

struct sl_cursor counter_cursor(const struct counter *counter)
{
    if (picks(counter))
        return counter_picks_cursor(counter);
    return (struct sl_cursor){.id = told_to(counter)};
}

uint64_t counter_passed(const struct counter *counter, uint32_t shard)
{
    return counter->passed[shard];
}

bool counter_is_in_step(const struct counter *counter, uint64_t closed)
{
    uint64_t before = counter_before(counter);

    return before <= closed && counter->silent_until <= before &&
           (!picks(counter) || counter->had.id <= before);
}

uint64_t counter_silent_until(const struct counter *counter)
{
    return counter->silent_until;
}

/* The id up to which events of all shards are included. */
static uint64_t lowest_id(const struct sl_cursor *cursor)
{
    uint64_t id = cursor->id;

    for (uint32_t i = 0; i < cursor->group_count; i++)
        id = cursor->groups[i].low < id ? cursor->groups[i].low : id;
    return id;
}

/* Begins with the bucket of the event `from`. */
static struct counter *new_from(const struct count_question *question, uint64_t from,
                                const struct sl_cursor *had, uint64_t until)
{
    struct counter *counter = mem_zalloc(sizeof(*counter));
    uint64_t start_ms = question->pick.behind
                            ? sl_id_time_ms(question->pick.behind + 1)
                            : count_bucket_start_ms(question, sl_id_time_ms(from));

    if (!counter)
        return NULL;
    counter->question = *question;
    counter->kind = question->pick.posts > 0     ? COUNTER_PICKS
                    : question->trends.window_ms ? COUNTER_TRENDS
                                                 : COUNTER_COUNTS;
    counter->had = *had;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        counter->passed[shard] = sl_cursor_of_shard(had, shard);
    counter->until = until;
    if (has_trends(counter) && counter_trends_begin(counter, from, &start_ms) < 0) {
        counter_free(counter);
        return NULL;
    }
    open_bucket(counter, start_ms);
    counter->first = counter->open_first;
    counter->told_to = greater(counter_before(counter), counter->silent_until);
    return counter;
}

struct counter *counter_new(const struct count_question *question, const struct sl_cursor *had,
                            uint64_t until)
{
    return new_from(question, lowest_id(had) + 1, had, until);
}

struct counter *counter_new_rewound(const struct count_question *question,
                                    const struct sl_cursor *had, uint64_t until, uint64_t from,
                                    uint64_t to)
{
    uint64_t begin = question->pick.posts == 0 && from < lowest_id(had) ? from : lowest_id(had);
    struct counter *counter = new_from(question, begin + 1, had, until);

    if (!counter)
        return NULL;
    counter->told = had->id;
    counter->revision = 1;
    id_ranges_add(&counter->gaps, from + 1, to);
    id_ranges_add(&counter->retelling, from + 1, to);
    return counter;
}

static bool is_first(const struct counter *counter)
{
    return counter->question.pick.pick == PICK_FIRST && !counter->question.pick.behind;
}

static struct counter *pick_again(const struct counter *counter, const struct sl_cursor *had,
                                  const uint64_t *passed)
{
    struct counter *again = counter_new(
        &counter->question, had->id < counter->had.id ? &counter->had : had, counter->until);

    if (!again || had->id < counter->had.id)
        return again;
    memcpy(again->passed, passed, sizeof(again->passed));
    if (is_first(counter) && again->open_first == counter->open_first &&
        had->id >= again->open_first) {
        again->picks.matched = counter->picks.matched;
        again->goes_on = true;
    }
    return again;
}

struct counter *counter_new_again(const struct counter *counter, const struct sl_cursor *had,
                                  const uint64_t *passed)
{
    uint64_t from = counter_retell_from(counter);
    struct counter *again;

    if (picks(counter))
        return pick_again(counter, had, passed);
    if (from == 0 || from > had->id)
        from = had->id + 1;
    if (from <= counter->silent_until)
        from = counter->silent_until + 1;
    again = new_from(&counter->question, from, had, counter->until);
    if (!again)
        return NULL;
    if (!has_trends(counter) && counter->first < again->first)
        again->first = counter->first;
    memcpy(again->passed, passed, sizeof(again->passed));
    again->told = greater(counter->told, had->id);
    again->revision = counter->revision + 1;
    again->gaps = counter->gaps;
    again->retelling = counter->retelling;
    id_ranges_add_all(&again->retelling, &counter->noted);
    return again;
}

void counter_free(struct counter *counter)
{
    if (!counter)
        return;
    count_bucket_done(&counter->bucket);
    pick_bucket_done(&counter->picks);
    counter_trends_done(counter);
    told_list_done(&counter->to_tell);
    mem_free(counter);
}

/* --- late and lost events --- */

static void note(struct counter *counter, uint64_t first, uint64_t last)
{
    uint64_t open = counter_open(counter);

    if (has_trends(counter)) { /* everything printed since, and the next message */
        first = greater(first, counter->silent_until + 1);
        id_ranges_add(&counter->noted, first, greater(open, first));
        return;
    }
    if (first < counter->first)
        first = counter->first;
    if (last > open)
        last = open;
    if (first <= last)
        id_ranges_add(&counter->noted, first, last);
}

/* The event was not known when its bucket was sent. */
static void retell(struct counter *counter, uint64_t id)
{
    id_ranges_add(&counter->retelling, id, has_trends(counter) ? counter->told : id);
}

/* --- adding --- */

static int add_to_picks(struct counter *counter, struct event *event, struct sl_slice tail)
{
    if (!told_list_is_empty(&counter->to_tell))
        return -EAGAIN;
    counter->told_to = told_to(counter);
    return counter_picks_add(counter, event, tail);
}

/* The text of a deleted post still counts. */
static int add_to_trends(struct counter *counter, const struct event *event,
                         const struct sl_words *words)
{
    if (event->kind != EVENT_POST)
        return 0;
    if (counter_trends_can_add(counter, event))
        return counter_trends_add(counter, event, words);
    note(counter, event->id, event->id);
    return 0;
}

int counter_add(struct counter *counter, struct event *event, const struct count_keys *rules,
                struct sl_slice tail)
{
    if (event->id > counter_open(counter))
        return -EAGAIN;
    if (picks(counter))
        return add_to_picks(counter, event, tail);
    if (event->id < counter->first)
        return 0; /* 0: published without the log */
    if (event->id < counter->open_first) {
        note(counter, event->id, event->id);
        return 0;
    }
    if (event->id <= counter->told && event->id > counter->passed[event->shard])
        retell(counter, event->id);
    if (has_trends(counter))
        return add_to_trends(counter, event, rules->words);
    if (event->is_late && count_bucket_is_full(&counter->bucket))
        note(counter, event->id, event->id);
    return count_bucket_add(&counter->bucket, &counter->question, event, rules);
}

/* What was sent remains, and so do events that were picked at once. */
static void note_rewound(struct counter *counter, uint32_t shard, uint64_t from, uint64_t to)
{
    if (counter->passed[shard] > from)
        counter->passed[shard] = from;
    if (!picks(counter))
        note(counter, from + 1, to);
    else if (counter->question.pick.pick != PICK_FIRST)
        note(counter, greater(from + 1, counter->open_first), to);
}

void counter_gap(struct counter *counter, uint32_t shard, uint64_t from, uint64_t to,
                 enum gap_reason reason)
{
    if (reason == GAP_LATE || reason == GAP_UNLOGGED || from >= to)
        return;
    id_ranges_add(&counter->gaps, from + 1, to);
    if (reason == GAP_REWOUND)
        note_rewound(counter, shard, from, to);
}

uint64_t counter_retell_from(const struct counter *counter)
{
    uint64_t first;

    if (counter->noted.count == 0)
        return 0;
    first = count_bucket_before(&counter->question, counter->noted.list[0].first) + 1;
    return first > counter->first ? first : counter->first;
}

void counter_share(struct counter *counter, const uint64_t *passed)
{
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (counter->passed[shard] > passed[shard])
            counter->passed[shard] = passed[shard];
    }
}

void counter_join(struct counter *counter, const struct counter *other)
{
    id_ranges_add_all(&counter->noted, &other->noted);
    if (other->revision > counter->revision)
        counter->revision = other->revision;
    if (other->first < counter->first)
        counter->first = other->first;
    if (picks(counter))
        counter->told_to = greater(counter->told_to, other->told_to);
}

/* --- messages --- */

/* NULL: out of memory. */
static struct event *tell(const struct counter *counter, bool is_partial)
{
    uint64_t id = counter_open(counter);
    const struct count_telling telling = {
        .start_ms = counter->start_ms,
        .end_ms = counter->start_ms + counter->question.bucket_ms,
        .revision = id <= counter->told ? counter->revision : 0,
        .has_gap = id_ranges_overlap(&counter->gaps, counter->open_first, id),
        .is_partial = is_partial,
    };
    struct buffer json = BUFFER_INIT;
    struct event *event = NULL;

    count_bucket_print(&counter->bucket, &counter->question, &telling, &json);
    if (!json.failed)
        event = event_new_control(EVENT_COUNTS, buffer_slice(&json));
    buffer_done(&json);
    if (event && !is_partial)
        event->id = id;
    return event;
}

static int close_counted(struct counter *counter, size_t *work)
{
    uint64_t id = counter_open(counter);

    if (id <= counter->told && !id_ranges_overlap(&counter->retelling, counter->open_first, id))
        return 0;
    if (has_trends(counter))
        return counter_trends_close(counter, work);
    return told_list_add(&counter->to_tell, tell(counter, false), id, 0, SL_SLICE_NONE);
}

int counter_close(struct counter *counter, uint64_t id, size_t *work)
{
    const struct count_question *question = &counter->question;
    uint64_t start_ms = counter->start_ms;
    int r;

    assert(told_list_is_empty(&counter->to_tell) && counter_open(counter) < id);
    counter->told_to = told_to(counter);
    r = picks(counter) ? counter_picks_close(counter) : close_counted(counter, work);
    if (r != 0)
        return r;
    count_bucket_clear(&counter->bucket);
    start_ms += question->bucket_ms;
    if (picks(counter))
        start_ms = greater(start_ms, count_bucket_start_ms(question, sl_id_time_ms(id)));
    open_bucket(counter, start_ms);
    return 0;
}

int counter_next(struct counter *counter, struct told *ret_told, struct sl_cursor *ret_before)
{
    if (told_list_is_empty(&counter->to_tell))
        return 0;
    *ret_before = counter_cursor(counter);
    if (!told_list_take(&counter->to_tell, ret_told))
        return 0;
    if (picks(counter) && counter_picks_place(counter, ret_before, ret_told) < 0) {
        told_done(ret_told);
        return -ENOMEM;
    }
    counter->told_to = greater(counter->told_to, ret_told->id);
    return 1;
}

struct event *counter_partial(const struct counter *counter)
{
    return tell(counter, true);
}
