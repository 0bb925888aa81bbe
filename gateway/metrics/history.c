/* history.c - one struct protected by a sequence lock, and its output as JSON.
 *
 * Readers copy all of it, about 80 kB, and print the copy; the writer never waits. If the writer
 * was stopped in the middle of a write, nothing is known. */
#include "gateway/metrics/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/figure.h"
#include "base/sequence_lock.h"
#include "base/shared_memory.h"

enum { READ_TRIES = 8 };

struct history {
    struct sequence_lock lock;
    struct history_state state;
};

static const char *const field_names[SAMPLE_FIELDS] = {
#define FIELD(name, printed) printed,
    HISTORY_FIELDS(FIELD)
#undef FIELD
};

struct history *history_new(void)
{
    return shared_memory_new(sizeof(struct history));
}

void history_free(struct history *history)
{
    shared_memory_free(history, sizeof(*history));
}

struct history_state *history_begin(struct history *history)
{
    sequence_lock_begin_write(&history->lock);
    return &history->state;
}

void history_end(struct history *history)
{
    sequence_lock_end_write(&history->lock);
}

struct history_state *history_read(const struct history *history)
{
    struct history_state *copy = mem_alloc(sizeof(*copy));

    for (unsigned i = 0; copy && i < READ_TRIES; i++) {
        uint32_t sequence = sequence_lock_read(&history->lock);

        *copy = history->state;
        if (sequence_lock_was_still(&history->lock, sequence))
            return copy;
    }
    if (copy)
        memset(copy, 0, sizeof(*copy)); /* the writer was stopped while writing */
    return copy;
}

/* --- as JSON --- */

static void print_time(const char *name, uint64_t ms, struct buffer *json)
{
    char text[CLOCK_RFC3339_SIZE];

    buffer_append_format(json, "\"%s\":", name);
    if (ms == 0) {
        buffer_append_str(json, "null");
        return;
    }
    clock_format_rfc3339(ms, text);
    buffer_append_format(json, "\"%s\"", text);
}

static void print_text(const char *name, const char *text, struct buffer *json)
{
    buffer_append_format(json, ",\"%s\":", name);
    if (text[0])
        buffer_append_json_string(json, sl_slice_str(text));
    else
        buffer_append_str(json, "null");
}

static void print_level(enum verdict_level level, struct buffer *json)
{
    buffer_append_format(json, "{\"level\":\"%s\"", verdict_level_name(level));
}

static void print_stale(const struct history_state *state, uint64_t now_ms, struct buffer *json)
{
    char text[VERDICT_TEXT_SIZE] = "Nothing is known yet: sluiced has just begun.";

    if (state->looked_ms)
        snprintf(text, sizeof(text),
                 "sluiced's parent process has not looked for %s: what is wrong is not known.",
                 figure_seconds((double)(now_ms - state->looked_ms) / 1000).text);
    print_level(VERDICT_WARNING, json);
    print_text("text", text, json);
    buffer_append_char(json, ',');
    print_time("since", state->looked_ms ? state->looked_ms : now_ms, json);
    buffer_append_str(json, ",\"parts\":[]}");
}

void history_print_verdict(const struct history_state *state, uint64_t now_ms,
                           struct buffer *ret_json)
{
    buffer_append_str(ret_json, "\"verdict\":");
    if (now_ms > state->looked_ms + HISTORY_STALE_MS) {
        print_stale(state, now_ms, ret_json);
        return;
    }
    print_level(state->level, ret_json);
    print_text("text", state->text, ret_json);
    buffer_append_char(ret_json, ',');
    print_time("since", state->since_ms, ret_json);
    buffer_append_str(ret_json, ",\"parts\":[");
    for (unsigned i = 0; i < state->line_count; i++) {
        const struct verdict_line *line = &state->lines[i];

        buffer_append_str(ret_json, i ? "," : "");
        print_level(line->level, ret_json);
        print_text("code", verdict_part_name(line->part), ret_json);
        print_text("text", line->text, ret_json);
        buffer_append_char(ret_json, ',');
        print_time("since", line->since_ms, ret_json);
        buffer_append_char(ret_json, '}');
    }
    buffer_append_str(ret_json, "]}");
}

static void print_incident(const struct incident *incident, struct buffer *json)
{
    buffer_append_format(json, "{\"number\":%" PRIu64 ",\"level\":\"%s\",\"code\":\"%s\",",
                         incident->number, verdict_level_name(incident->level), incident->name);
    print_time("begin", incident->began_ms, json);
    buffer_append_char(json, ',');
    print_time("end", incident->ended_ms, json);
    print_text("text", incident->text, json);
    print_text("consequence", incident->consequence, json);
    buffer_append_char(json, '}');
}

static void print_sample(const struct sample *sample, struct buffer *json)
{
    buffer_append_char(json, '{');
    print_time("at", sample->at_ms, json);
    for (unsigned i = 0; i < SAMPLE_FIELDS; i++) {
        buffer_append_format(json, ",\"%s\":", field_names[i]);
        if (sample->values[i] == READING_UNKNOWN)
            buffer_append_str(json, "null");
        else
            buffer_append_decimal(json, sample->values[i]);
    }
    buffer_append_char(json, '}');
}

static uint64_t oldest(uint64_t count, uint64_t size)
{
    return count > size ? count - size : 0;
}

void history_print_past(const struct history_state *state, uint64_t since_ms,
                        struct buffer *ret_json)
{
    bool is_first = true;

    buffer_append_str(ret_json, "\"incidents\":[");
    for (uint64_t i = oldest(state->incident_count, HISTORY_INCIDENTS); i < state->incident_count;
         i++) {
        const struct incident *incident = &state->incidents[i % HISTORY_INCIDENTS];

        if (incident->changed_ms <= since_ms)
            continue;
        buffer_append_str(ret_json, is_first ? "" : ",");
        print_incident(incident, ret_json);
        is_first = false;
    }
    buffer_append_str(ret_json, "],\"samples\":[");
    is_first = true;
    for (uint64_t i = oldest(state->sample_count, HISTORY_SAMPLES); i < state->sample_count; i++) {
        const struct sample *sample = &state->samples[i % HISTORY_SAMPLES];

        if (sample->at_ms <= since_ms)
            continue;
        buffer_append_str(ret_json, is_first ? "" : ",");
        print_sample(sample, ret_json);
        is_first = false;
    }
    buffer_append_char(ret_json, ']');
}
