/* counter_trends.c - a message for each kind of term.
 *
 * The id of the bucket is that of its last message, and those before it have the ids before that:
 * a client that has some of them resumes with the next. */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "gateway/counts/counter_parts.h"

int counter_trends_begin(struct counter *counter, uint64_t from, uint64_t *start_ms)
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

void counter_trends_done(struct counter *counter)
{
    for (unsigned of = 0; of < TREND_OF_COUNT; of++)
        trends_free(counter->trends[of]);
}

/* --- adding --- */

bool counter_trends_can_add(const struct counter *counter, const struct event *post)
{
    for (unsigned of = 0; of < TREND_OF_COUNT; of++) {
        if (counter->trends[of] && !trends_can_add(counter->trends[of], post))
            return false;
    }
    return true;
}

int counter_trends_add(struct counter *counter, const struct event *post,
                       const struct sl_words *words)
{
    int r = 0;

    for (unsigned of = 0; r == 0 && of < TREND_OF_COUNT; of++) {
        if (counter->trends[of])
            r = trends_add(counter->trends[of], post, words);
    }
    return r;
}

/* --- messages --- */

/* NULL: out of memory. */
static struct event *message_of(const struct counter *counter, enum trend_of of, uint64_t id)
{
    const struct trend_question *question = &counter->question.trends;
    uint64_t end_ms = counter->start_ms + counter->question.bucket_ms;
    uint64_t needed_ms = trend_needs_from_ms(question, end_ms);
    uint64_t start_ms = needed_ms + question->window_ms;
    uint64_t last = sl_id_first_at(end_ms) - 1;
    char start[CLOCK_RFC3339_SIZE], end[CLOCK_RFC3339_SIZE], text[SL_ID_TEXT_SIZE];
    bool is_complete = !id_ranges_overlap(&counter->gaps, sl_id_first_at(needed_ms), last);
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
    if (id <= counter->told)
        buffer_append_format(&json, ",\"revision\":%" PRIu32, counter->revision);
    if (id_ranges_overlap(&counter->gaps, sl_id_first_at(start_ms), last))
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
    return r ? r
             : told_list_add(&counter->to_tell, message_of(counter, of, id), id, 0, SL_SLICE_NONE);
}

int counter_trends_close(struct counter *counter, size_t *work)
{
    uint64_t id = counter->open_last + 1 - trend_kinds(&counter->question.trends);
    int r;

    for (unsigned of = 0; of < TREND_OF_COUNT; of++) {
        if (!counter->trends[of])
            continue;
        if (of >= counter->to_tell_of) {
            r = tell_kind(counter, of, id, work);
            if (r != 0)
                return r;
            counter->to_tell_of = of + 1;
        }
        id++;
    }
    counter->to_tell_of = 0;
    return 0;
}
