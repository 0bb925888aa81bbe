/* counter.c - one bucket that is open, and two short lists of ranges of ids: where something is
 * missing, and what must be counted again. Where a list is full its oldest range goes on to the
 * next one: more is told than must be, never less. */
#include "gateway/counts/counter.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/counts/count_bucket.h"

enum { RANGES_MAX = 16 };

struct range {
    uint64_t first, last; /* ids */
};

/* In order, apart from each other. */
struct ranges {
    size_t count;
    struct range list[RANGES_MAX + 1];
};

struct counter {
    struct count_question question;
    uint64_t first;          /* ids below are none of ours */
    uint64_t start_ms;       /* of the open bucket */
    uint64_t told;           /* buckets with ids up to this were told before we began */
    uint32_t revision;       /* of those that are told again */
    struct ranges gaps;      /* what is missing */
    struct ranges noted;     /* to be counted again */
    struct ranges retelling; /* which of the buckets up to `told` are told again */
    struct count_bucket bucket;
};

/* --- ranges --- */

static void remove_range(struct ranges *ranges, size_t i)
{
    ranges->count--;
    memmove(&ranges->list[i], &ranges->list[i + 1], (ranges->count - i) * sizeof(struct range));
}

static void add_range(struct ranges *ranges, uint64_t first, uint64_t last)
{
    struct range *list = ranges->list;
    size_t i = 0;

    while (i < ranges->count && list[i].last < first)
        i++;
    while (i < ranges->count && list[i].first <= last) {
        first = list[i].first < first ? list[i].first : first;
        last = list[i].last > last ? list[i].last : last;
        remove_range(ranges, i);
    }
    memmove(&list[i + 1], &list[i], (ranges->count - i) * sizeof(struct range));
    list[i] = (struct range){first, last};
    ranges->count++;
    if (ranges->count > RANGES_MAX) {
        list[1].first = list[0].first;
        remove_range(ranges, 0);
    }
}

static bool overlaps(const struct ranges *ranges, uint64_t first, uint64_t last)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (ranges->list[i].first <= last && ranges->list[i].last >= first)
            return true;
    }
    return false;
}

static void add_ranges(struct ranges *ranges, const struct ranges *more)
{
    for (size_t i = 0; i < more->count; i++)
        add_range(ranges, more->list[i].first, more->list[i].last);
}

/* --- buckets --- */

static uint64_t first_open(const struct counter *counter)
{
    return sl_id_first_at(counter->start_ms);
}

uint64_t counter_closed(const struct counter *counter)
{
    uint64_t first = first_open(counter);

    return first > 0 ? first - 1 : 0;
}

uint64_t counter_open(const struct counter *counter)
{
    return sl_id_first_at(counter->start_ms + counter->question.bucket_ms) - 1;
}

struct counter *counter_new(const struct count_question *question, uint64_t from)
{
    struct counter *counter = mem_zalloc(sizeof(*counter));

    if (!counter)
        return NULL;
    counter->question = *question;
    counter->start_ms = count_bucket_start_ms(question, sl_id_time_ms(from));
    counter->first = first_open(counter);
    return counter;
}

struct counter *counter_new_again(const struct counter *counter, uint64_t had)
{
    uint64_t from = counter_retell_from(counter);
    struct counter *again;

    if (from == 0 || from > had)
        from = had + 1;
    again = counter_new(&counter->question, from);
    if (!again)
        return NULL;
    again->first = again->first < counter->first ? again->first : counter->first;
    again->told = counter->told > had ? counter->told : had;
    again->revision = counter->revision + 1;
    again->gaps = counter->gaps;
    again->retelling = counter->retelling;
    add_ranges(&again->retelling, &counter->noted);
    return again;
}

void counter_free(struct counter *counter)
{
    if (!counter)
        return;
    count_bucket_done(&counter->bucket);
    mem_free(counter);
}

/* --- what comes --- */

static void note(struct counter *counter, uint64_t first, uint64_t last)
{
    uint64_t open = counter_open(counter);

    if (first < counter->first)
        first = counter->first;
    if (last > open)
        last = open;
    if (first <= last)
        add_range(&counter->noted, first, last);
}

int counter_add(struct counter *counter, const struct event *event, const struct count_keys *rules)
{
    if (event->id < counter->first)
        return 0; /* 0: published without the log */
    if (event->id > counter_open(counter))
        return -EAGAIN;
    if (event->id < first_open(counter)) {
        note(counter, event->id, event->id);
        return 0;
    }
    if (event->is_late && count_bucket_is_full(&counter->bucket))
        note(counter, event->id, event->id);
    return count_bucket_add(&counter->bucket, &counter->question, event, rules);
}

void counter_gap(struct counter *counter, uint64_t from, uint64_t to, enum gap_reason reason)
{
    if (reason == GAP_LATE || reason == GAP_UNLOGGED || from >= to)
        return;
    add_range(&counter->gaps, from + 1, to);
    if (reason == GAP_REWOUND)
        note(counter, from + 1, to);
}

uint64_t counter_retell_from(const struct counter *counter)
{
    uint64_t first;

    if (counter->noted.count == 0)
        return 0;
    first = count_bucket_before(&counter->question, counter->noted.list[0].first) + 1;
    return first > counter->first ? first : counter->first;
}

void counter_join(struct counter *counter, const struct counter *other)
{
    add_ranges(&counter->noted, &other->noted);
    if (other->revision > counter->revision)
        counter->revision = other->revision;
    if (other->first < counter->first)
        counter->first = other->first;
}

/* --- what is told --- */

/* NULL: out of memory. */
static struct event *tell(const struct counter *counter, bool is_partial)
{
    uint64_t id = counter_open(counter);
    const struct count_telling telling = {
        .start_ms = counter->start_ms,
        .end_ms = counter->start_ms + counter->question.bucket_ms,
        .revision = id <= counter->told ? counter->revision : 0,
        .has_gap = overlaps(&counter->gaps, first_open(counter), id),
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

int counter_close(struct counter *counter, struct event **ret_message)
{
    uint64_t id = counter_open(counter);
    bool is_told = id > counter->told || overlaps(&counter->retelling, first_open(counter), id);
    struct event *message = is_told ? tell(counter, false) : NULL;

    if (is_told && !message)
        return -ENOMEM;
    count_bucket_clear(&counter->bucket);
    counter->start_ms += counter->question.bucket_ms;
    *ret_message = message;
    return 0;
}

struct event *counter_partial(const struct counter *counter)
{
    return tell(counter, true);
}
