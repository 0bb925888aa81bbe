/* counter.c - one open bucket, the messages to be sent, and two short lists of ranges of ids: the
 * missing ones, and those that must be counted again. If a list is full, its oldest range is merged
 * with the next one, so more than necessary may be counted again, never less. */
#include "gateway/counts/counter.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/counts/count_bucket.h"
#include "gateway/counts/pick_bucket.h"
#include "gateway/counts/trends.h"

enum { RANGES_MAX = 16 };

struct range {
    uint64_t first, last; /* ids */
};

/* Sorted and disjoint. */
struct ranges {
    struct range list[RANGES_MAX + 1];
    size_t count;
};

enum kind { COUNTS, PICKS, TRENDS };

/* The members that every event needs are next to each other, from noted.count to `question`,
 * because with a thousand other counters they are not in the cache. */
struct counter {
    struct ranges gaps;             /* missing ids */
    struct ranges retelling;        /* the buckets up to `told` that are sent again */
    struct ranges noted;            /* to be counted again, from the first id that is needed */
    uint64_t open_first, open_last; /* ids of the open bucket */
    uint64_t first;                 /* lower ids are ignored */
    uint64_t told;                  /* buckets with ids up to this were sent before */
    enum kind kind;
    uint32_t revision; /* of buckets that are sent again */
    struct count_bucket bucket;
    struct count_question question;
    uint64_t start_ms;        /* of the open bucket */
    uint64_t told_to;         /* id up to which a client has everything after taking all messages */
    uint64_t until;           /* when picking; 0: no end */
    struct told_list to_tell; /* in order */
    struct pick_bucket picks; /* for picking */
    struct trends *trends[TREND_OF_COUNT]; /* for trends; NULL: not requested */
    unsigned to_tell_of;   /* for trends: the kind that is printed next for the closing bucket */
    uint64_t silent_until; /* for trends: nothing is printed up to this id; else 0 */
    struct sl_cursor had;  /* when picking, nothing up to here is sent, */
    bool goes_on;          /* events of the open bucket up to `passed` were picked from before */
    uint64_t passed[SL_SHARDS_MAX]; /* later events are new to the client, even up to `had` or
                                       `told` */
};

static bool picks(const struct counter *counter)
{
    return counter->kind == PICKS;
}

static bool is_first(const struct counter *counter)
{
    return counter->question.pick.pick == PICK_FIRST && !counter->question.pick.behind;
}

static bool has_trends(const struct counter *counter)
{
    return counter->kind == TRENDS;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

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
    return counter->open_first > 0 ? counter->open_first - 1 : 0;
}

uint64_t counter_open(const struct counter *counter)
{
    return counter->open_last;
}

/* Picked events are sent within a bucket, too. */
static uint64_t told_to(const struct counter *counter)
{
    uint64_t before = counter_before(counter);

    if (!told_list_is_empty(&counter->to_tell))
        return counter->told_to;
    if (counter->until && before > counter->until)
        before = counter->until;
    return greater(counter->told_to, before);
}

struct sl_cursor counter_cursor(const struct counter *counter)
{
    const struct sl_cursor cursor = {.id = told_to(counter)};

    return picks(counter) && cursor.id < counter->had.id ? counter->had : cursor;
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

/* `*start_ms`: in: the first bucket that is printed; out: the first that is read. 0; -ENOMEM. */
static int begin_trends(struct counter *counter, uint64_t from, uint64_t *start_ms)
{
    const struct count_question *question = &counter->question;
    uint64_t end_ms = *start_ms + question->bucket_ms;

    counter->silent_until = from - 1;
    *start_ms = count_bucket_start_ms(question, trend_needs_from_ms(&question->trends, end_ms));
    for (unsigned of = 0; of < TREND_OF_COUNT; of++) {
        if (!(question->trends.of & 1u << of))
            continue;
        counter->trends[of] = trends_new(&question->trends, (enum trend_of)of);
        if (!counter->trends[of])
            return -ENOMEM;
    }
    return 0;
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
    counter->kind = question->pick.posts > 0 ? PICKS : question->trends.window_ms ? TRENDS : COUNTS;
    counter->had = *had;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        counter->passed[shard] = sl_cursor_of_shard(had, shard);
    counter->until = until;
    if (has_trends(counter) && begin_trends(counter, from, &start_ms) < 0) {
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
    add_range(&counter->gaps, from + 1, to);
    add_range(&counter->retelling, from + 1, to);
    return counter;
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
    add_ranges(&again->retelling, &counter->noted);
    return again;
}

void counter_free(struct counter *counter)
{
    if (!counter)
        return;
    count_bucket_done(&counter->bucket);
    pick_bucket_done(&counter->picks);
    for (unsigned of = 0; of < TREND_OF_COUNT; of++)
        trends_free(counter->trends[of]);
    told_list_done(&counter->to_tell);
    mem_free(counter);
}

/* --- late and lost events --- */

static void note(struct counter *counter, uint64_t first, uint64_t last)
{
    uint64_t open = counter_open(counter);

    if (has_trends(counter)) { /* everything printed since, and the next message */
        first = greater(first, counter->silent_until + 1);
        add_range(&counter->noted, first, greater(open, first));
        return;
    }
    if (first < counter->first)
        first = counter->first;
    if (last > open)
        last = open;
    if (first <= last)
        add_range(&counter->noted, first, last);
}

/* The event was not known when its bucket was sent. */
static void retell(struct counter *counter, uint64_t id)
{
    add_range(&counter->retelling, id, has_trends(counter) ? counter->told : id);
}

/* --- picking --- */

static int tell_event(struct counter *counter, struct event *event, uint64_t id, uint64_t skipped,
                      struct sl_slice tail)
{
    struct told told = {.event = event, .id = id, .skipped = skipped};

    if (!event)
        return -ENOMEM;
    if (told_set_tail(&told, tail) < 0) {
        told_done(&told);
        return -ENOMEM;
    }
    return told_list_append(&counter->to_tell, &told);
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
    return tell_event(counter, event, stray ? 0 : counter_open(counter), count, SL_SLICE_NONE);
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
    const struct sl_cursor cursor = {.id = counter->told_to};

    if (event->kind == EVENT_POST)
        return tell_skipped(counter, &cursor, 1, event);
    return tell_event(
        counter, event->id ? as_late(event, &cursor) : event_at_cursor(event, &cursor), 0, 0, tail);
}

static int add_to_picks(struct counter *counter, struct event *event, struct sl_slice tail)
{
    bool is_had = event->id <= sl_cursor_of_shard(&counter->had, event->shard) &&
                  event->id <= counter->passed[event->shard];

    if (!told_list_is_empty(&counter->to_tell))
        return -EAGAIN;
    counter->told_to = told_to(counter);
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
    uint64_t open = counter_open(counter);
    struct sl_cursor end = {.id = greater(open, had->id)};

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX && !sl_cursor_is_plain(had); shard++)
        sl_cursor_lower(&end, shard, greater(open, sl_cursor_of_shard(had, shard)));
    return end;
}

static int close_picks(struct counter *counter)
{
    const struct sl_cursor end = cursor_at_end(counter);
    uint64_t skipped;

    if (pick_bucket_close(&counter->picks, &counter->question.pick, &counter->to_tell, &skipped) <
        0)
        return -ENOMEM;
    counter->goes_on = false;
    return skipped > 0 ? tell_skipped(counter, &end, skipped, NULL) : 0;
}

/* If the client came with a compound cursor, it has everything of this shard up to the event,
 * too. */
static void note_had(struct counter *counter, const struct event *event)
{
    const struct sl_cursor before = counter->had;
    struct sl_cursor had = {.id = before.id};

    for (uint32_t i = 0; i < before.group_count; i++) {
        for (uint64_t rest = before.groups[i].shards; rest; rest &= rest - 1) {
            uint32_t shard = (uint32_t)__builtin_ctzll(rest);

            sl_cursor_lower(&had, shard, shard == event->shard ? event->id : before.groups[i].low);
        }
    }
    counter->had = had;
}

/* Replaces the cursor in the event if it was late elsewhere, or does not fit this client. `before`:
 * the client's position. 0; -ENOMEM. */
static int put_in_place(struct counter *counter, const struct sl_cursor *before, struct told *told)
{
    bool is_late = picks(counter) && told->id && told->id < before->id;
    struct sl_cursor cursor = {.id = told->id};
    struct event *event = told->event, *copy;

    if (!told->id || event->kind == EVENT_SKIPPED ||
        (!event->cursor && !event->is_late && !is_late))
        return 0;
    if (is_late) {
        note_had(counter, event);
        cursor = counter_cursor(counter);
        told->id = 0;
    }
    copy = is_late ? as_late(event, &cursor) : event_copy_with_cursor(event, &cursor, false);
    if (!copy)
        return -ENOMEM;
    event_unref(event);
    told->event = copy;
    return 0;
}

/* --- trends --- */

static bool can_add(const struct counter *counter, const struct event *event)
{
    for (unsigned of = 0; of < TREND_OF_COUNT; of++) {
        if (counter->trends[of] && !trends_can_add(counter->trends[of], event))
            return false;
    }
    return true;
}

/* 0; -ENOMEM. */
static int add_to_trends(struct counter *counter, const struct event *event,
                         const struct sl_words *words)
{
    int r = 0;

    if (event->kind != EVENT_POST)
        return 0; /* the text of a deleted post still counts */
    if (!can_add(counter, event)) {
        note(counter, event->id, event->id);
        return 0;
    }
    for (unsigned of = 0; r == 0 && of < TREND_OF_COUNT; of++) {
        if (counter->trends[of])
            r = trends_add(counter->trends[of], event, words);
    }
    return r;
}

/* --- adding --- */

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
    add_range(&counter->gaps, from + 1, to);
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
    add_ranges(&counter->noted, &other->noted);
    if (other->revision > counter->revision)
        counter->revision = other->revision;
    if (other->first < counter->first)
        counter->first = other->first;
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
        .has_gap = overlaps(&counter->gaps, counter->open_first, id),
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

/* NULL: out of memory. */
static struct event *tell_trends(const struct counter *counter, enum trend_of of, uint64_t id)
{
    const struct trend_question *question = &counter->question.trends;
    uint64_t end_ms = counter->start_ms + counter->question.bucket_ms;
    uint64_t needed_ms = trend_needs_from_ms(question, end_ms);
    uint64_t start_ms = needed_ms + question->window_ms;
    uint64_t last = sl_id_first_at(end_ms) - 1;
    char start[CLOCK_RFC3339_SIZE], end[CLOCK_RFC3339_SIZE], text[SL_ID_TEXT_SIZE];
    bool is_complete = !overlaps(&counter->gaps, sl_id_first_at(needed_ms), last);
    struct buffer json = BUFFER_INIT;
    struct event *event = NULL;

    clock_format_rfc3339(start_ms, start);
    clock_format_rfc3339(end_ms, end);
    buffer_append_format(&json,
                         "{\"type\":\"trends\",\"id\":\"%s\",\"start\":\"%s\",\"end\":\"%s\","
                         "\"of\":\"%s\",\"complete\":%s,",
                         sl_id_print(id, text), start, end, trend_of_name(of),
                         is_complete ? "true" : "false");
    trends_print(counter->trends[of], end_ms, &json);
    if (last <= counter->told)
        buffer_append_format(&json, ",\"revision\":%" PRIu32, counter->revision);
    if (overlaps(&counter->gaps, sl_id_first_at(start_ms), last))
        buffer_append_str(&json, ",\"gap\":true");
    buffer_append_char(&json, '}');
    if (!json.failed)
        event = event_new_control(EVENT_TRENDS, buffer_slice(&json));
    buffer_done(&json);
    if (event)
        event->id = id;
    return event;
}

/* 0; 1: not finished; -ENOMEM. */
static int tell_kind(struct counter *counter, enum trend_of of, uint64_t id, size_t *work)
{
    uint64_t end_ms = counter->start_ms + counter->question.bucket_ms;
    int r;

    if (id <= counter->silent_until)
        return 0;
    r = trends_survey(counter->trends[of], end_ms, work);
    return r ? r : tell_event(counter, tell_trends(counter, of, id), id, 0, SL_SLICE_NONE);
}

/* The id of the bucket is that of its last message; a client that has some of them resumes with the
 * next. 0; 1: not finished; -ENOMEM. */
static int tell_all_trends(struct counter *counter, size_t *work)
{
    uint64_t id = counter_open(counter) + 1 - trend_kinds(&counter->question.trends);

    for (unsigned of = 0; of < TREND_OF_COUNT; of++) {
        int r = 0;

        if (!counter->trends[of])
            continue;
        if (of >= counter->to_tell_of)
            r = tell_kind(counter, of, id, work);
        if (r != 0)
            return r;
        if (of >= counter->to_tell_of)
            counter->to_tell_of = of + 1;
        id++;
    }
    counter->to_tell_of = 0;
    return 0;
}

static int close_counted(struct counter *counter, size_t *work)
{
    uint64_t id = counter_open(counter);

    if (id <= counter->told && !overlaps(&counter->retelling, counter->open_first, id))
        return 0;
    if (has_trends(counter))
        return id > counter->silent_until ? tell_all_trends(counter, work) : 0;
    return tell_event(counter, tell(counter, false), id, 0, SL_SLICE_NONE);
}

int counter_close(struct counter *counter, uint64_t id, size_t *work)
{
    const struct count_question *question = &counter->question;
    uint64_t start_ms = counter->start_ms;
    int r;

    assert(told_list_is_empty(&counter->to_tell) && counter_open(counter) < id);
    counter->told_to = told_to(counter);
    r = picks(counter) ? close_picks(counter) : close_counted(counter, work);
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
    if (put_in_place(counter, ret_before, ret_told) < 0) {
        told_done(ret_told);
        return -ENOMEM;
    }
    counter->told_to = greater(counter->told_to, ret_told->id);
    if (ret_told->event->kind == EVENT_SKIPPED && ret_told->event->cursor)
        counter->had = *ret_told->event->cursor;
    return 1;
}

struct event *counter_partial(const struct counter *counter)
{
    return tell(counter, true);
}
