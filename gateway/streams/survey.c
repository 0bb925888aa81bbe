/* survey.c - once a second, looks at the streams that have unsent events: how many events in total,
 * and which streams have waited longest.
 *
 * Counting this at each event would slow down every event. Streams that have been sent everything
 * are not looked at; for 10,000 of them that would take 9 ms. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "filters/filter_describe.h"
#include "gateway/delivery/catch_up.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/metrics/slow_board.h"
#include "gateway/streams/kept_rules.h"
#include "gateway/streams/late_answer.h"
#include "gateway/streams/stream.h"

enum { SURVEY_EVERY_MS = 1000 };

struct survey {
    uint64_t now_ms;
    uint64_t owed_events, owed_bytes;
    uint64_t behind, late;
    struct slow_list slowest;
};

/* Empty if out of memory. */
static void describe(const struct channel *channel, char *ret_words)
{
    struct buffer words = BUFFER_INIT;

    if (channel->rules)
        buffer_append_format(&words, "%zu named filters", rule_set_count(channel->rules));
    else if (channel->request.filter)
        sl_filter_describe(channel->request.filter, SLOW_CLIENT_FILTER_BYTES - strlen("..."),
                           &words);
    if (!words.failed && words.size > 0 && words.size <= SLOW_CLIENT_FILTER_BYTES)
        memcpy(ret_words, words.data, words.size);
    buffer_done(&words);
}

static void look_at(void *owner, struct client *client)
{
    const struct channel *channel = channel_of(client);
    struct survey *survey = owner;
    uint64_t now_ms = survey->now_ms;
    struct slow_client slow = {0}, *place;
    struct client_owed owed;

    if (!channel || channel->stream->stage != STREAM_LIVE)
        return;
    outbox_client_owed(client, now_ms, &owed);
    survey->behind += client->state == CLIENT_BEHIND;
    slow.stream = channel->request.stream;
    slow.format = channel->request.format;
    slow.connected_ms = now_ms - channel->opened_ms;
    slow.lag_ms = owed.waited_ms;
    slow.owed_events = owed.events;
    slow.owed_bytes = owed.bytes;
    slow.is_catching_up = client->catcher != NULL;
    if (slow.is_catching_up)
        catch_up_distance(client->catcher, clock_wall_ms(), &slow.owed_events, &slow.lag_ms);
    else if (owed.events == 0)
        return;
    client_progress_note(&client->progress, now_ms, client->sent_bytes, slow.lag_ms);
    slow.is_late = client->progress.late_from_ms > 0;
    slow.late_ms = slow.is_late ? now_ms - client->progress.late_from_ms : 0;
    slow.reads = (uint64_t)client->progress.reads;
    slow.needs = client_progress_needs(&client->progress);
    survey->late += slow.is_late;
    survey->owed_events += slow.owed_events;
    survey->owed_bytes += slow.owed_bytes;
    static_assert(sizeof(slow.subject) == TOKEN_SUBJECT_SIZE, "a token's subject fits");
    memcpy(slow.subject, channel->request.token.subject, sizeof(slow.subject));
    place = slow_list_add(&survey->slowest, &slow);
    if (place)
        describe(channel, place->filter);
}

static void on_survey(uv_timer_t *timer)
{
    struct streams *streams = timer->data;
    const struct streams_settings *settings = &streams->settings;
    struct survey survey = {.now_ms = uv_now(settings->loop)};

    late_answers_check(streams);
    streams_add_use(streams);
    kept_rules_check(streams);
    deliver_visit_owed(settings->deliver, look_at, &survey);
    metric_set(settings->metrics, METRIC_OWED_EVENTS, survey.owed_events);
    metric_set(settings->metrics, METRIC_OWED_BYTES, survey.owed_bytes);
    metric_set(settings->metrics, METRIC_STREAMS_BEHIND, survey.behind);
    metric_set(settings->metrics, METRIC_STREAMS_LATE, survey.late);
    metric_set(settings->metrics, METRIC_SLOWEST_CLIENT,
               survey.slowest.count > 0 ? survey.slowest.clients[0].lag_ms * 1000 : 0);
    slow_board_write(settings->slow_board, settings->worker, &survey.slowest);
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

int survey_start(struct streams *streams)
{
    streams->survey_timer = mem_zalloc(sizeof(*streams->survey_timer));
    if (!streams->survey_timer)
        return -ENOMEM;
    uv_timer_init(streams->settings.loop, streams->survey_timer);
    streams->survey_timer->data = streams;
    return uv_timer_start(streams->survey_timer, on_survey, SURVEY_EVERY_MS, SURVEY_EVERY_MS);
}

void survey_stop(struct streams *streams)
{
    if (streams->survey_timer)
        uv_close((uv_handle_t *)streams->survey_timer, free_handle);
    streams->survey_timer = NULL;
}
