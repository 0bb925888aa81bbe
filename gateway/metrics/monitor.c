/* monitor.c - a condition for each part of the verdict, each with its incident.
 *
 * When a condition becomes bad an incident begins, and the current totals are stored, from which
 * its consequences are computed at the end. Counting continues for ten seconds after the end,
 * because what a silent Redis held back arrives then. */
#include "gateway/metrics/monitor.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/figure.h"

enum { SETTLE_MS = 10000 };

struct condition {
    enum verdict_level level;
    uint64_t since_ms;
    uint64_t over_ms;  /* as in the last finding */
    uint64_t weight;   /* of the incident's text */
    uint64_t grown_ms; /* when it last increased */
    uint64_t incident; /* its number; 0: there is no current incident */
    uint64_t ended_ms; /* when it became well again; 0: it is not */
    struct reading_totals before;
};

struct monitor {
    struct history *history;
    struct readings *readings;
    struct condition conditions[VERDICT_PARTS];
    uint64_t well_since_ms;
    uint64_t sampled;      /* number of the last period of HISTORY_SAMPLE_MS that has a sample */
    struct sample sample;  /* of the current period: the worst values, for what is not a rate */
    uint64_t lost_streams; /* by the deaths of the current incident */
};

struct monitor *monitor_new(const struct metrics_board *board, const struct slow_board *slow_board,
                            struct history *history, bool has_intake)
{
    struct monitor *monitor = mem_zalloc(sizeof(*monitor));

    if (!monitor)
        return NULL;
    monitor->history = history;
    monitor->readings = readings_new(board, slow_board, has_intake);
    if (!monitor->readings) {
        mem_free(monitor);
        return NULL;
    }
    return monitor;
}

void monitor_free(struct monitor *monitor)
{
    if (monitor)
        readings_free(monitor->readings);
    mem_free(monitor);
}

/* --- incidents --- */

static struct incident *add_incident(struct history_state *state, enum verdict_level level,
                                     const char *name, const char *text, uint64_t began_ms,
                                     uint64_t now_ms)
{
    struct incident *incident = &state->incidents[state->incident_count % HISTORY_INCIDENTS];

    *incident = (struct incident){
        .number = ++state->incident_count,
        .began_ms = began_ms,
        .changed_ms = now_ms,
        .level = level,
        .name = name,
    };
    snprintf(incident->text, sizeof(incident->text), "%s", text);
    return incident;
}

/* NULL: it was overwritten by newer ones. */
static struct incident *find_incident(struct history_state *state, uint64_t number)
{
    struct incident *incident = &state->incidents[(number - 1) % HISTORY_INCIDENTS];

    return number && incident->number == number ? incident : NULL;
}

struct consequence {
    char *text;
    size_t size;
};

static void add(struct consequence *consequence, uint64_t n, const char *one, const char *many)
{
    size_t room = VERDICT_TEXT_SIZE - consequence->size;
    int size;

    if (n == 0)
        return;
    size =
        snprintf(consequence->text + consequence->size, room, "%s%s %s",
                 consequence->size ? ", " : "", figure_count((double)n).text, n == 1 ? one : many);
    consequence->size += size > 0 && (size_t)size < room ? (size_t)size : 0;
}

static void say_lost(struct consequence *consequence, uint64_t repaired, uint64_t told)
{
    add(consequence, repaired, "event came from the log", "events came from the log");
    add(consequence, told, "gap reported to clients", "gaps reported to clients");
    if (repaired && !told)
        consequence->size +=
            (size_t)snprintf(consequence->text + consequence->size,
                             VERDICT_TEXT_SIZE - consequence->size, ", nothing lost");
}

/* Adds the consequences of the condition to the text. */
static void say_consequence(const struct monitor *monitor, enum verdict_part part,
                            const struct reading_totals *now, const struct reading_totals *before,
                            char ret_text[static VERDICT_TEXT_SIZE])
{
    struct consequence consequence = {.text = ret_text};

    ret_text[0] = '\0';
    if (part == VERDICT_WORKERS)
        add(&consequence, monitor->lost_streams, "stream lost its connection",
            "streams lost their connections");
    if (part == VERDICT_REDIS_SILENT)
        add(&consequence, now->subscriptions_lost - before->subscriptions_lost, "subscription lost",
            "subscriptions lost");
    if (part == VERDICT_REDIS_SILENT || part == VERDICT_INTAKE || part == VERDICT_WORKERS)
        say_lost(&consequence, now->repaired - before->repaired,
                 now->gaps_told - before->gaps_told);
    if (part == VERDICT_BEHIND || part == VERDICT_OWED || part == VERDICT_MEMORY) {
        add(&consequence, now->fallen_behind - before->fallen_behind, "stream began to catch up",
            "streams began to catch up");
        add(&consequence, now->queues_dropped - before->queues_dropped, "drop of all queues",
            "drops of all queues");
        add(&consequence, now->too_slow - before->too_slow, "stream ended as too slow",
            "streams ended as too slow");
    }
    if (part == VERDICT_TOKENS)
        add(&consequence, now->tokens_refused - before->tokens_refused, "token refused",
            "tokens refused");
    if (part == VERDICT_REFUSALS)
        add(&consequence, now->streams_refused - before->streams_refused, "stream refused",
            "streams refused");
}

static void settle(struct monitor *monitor, struct history_state *state, enum verdict_part part,
                   const struct reading *reading)
{
    struct condition *condition = &monitor->conditions[part];
    struct incident *incident = find_incident(state, condition->incident);
    char text[VERDICT_TEXT_SIZE];

    if (!incident)
        return;
    say_consequence(monitor, part, &reading->totals, &condition->before, text);
    if (strcmp(text, incident->consequence) == 0)
        return;
    snprintf(incident->consequence, sizeof(incident->consequence), "%s", text);
    incident->changed_ms = reading->now_ms;
}

/* --- conditions --- */

static void begin(struct monitor *monitor, struct history_state *state, enum verdict_part part,
                  const struct finding *finding, uint64_t now_ms)
{
    struct condition *condition = &monitor->conditions[part];
    struct incident *incident = find_incident(state, condition->incident);

    condition->since_ms = finding->began_ms ? finding->began_ms : now_ms;
    if (incident && condition->ended_ms) { /* it has returned */
        condition->since_ms = incident->began_ms;
        incident->ended_ms = 0;
        incident->changed_ms = now_ms;
    } else {
        incident = add_incident(state, finding->level, verdict_part_name(part), finding->text,
                                condition->since_ms, now_ms);
        condition->incident = incident->number;
        condition->weight = finding->weight;
    }
    condition->ended_ms = 0;
    condition->grown_ms = now_ms;
}

/* The incident shows the worst state. */
static void go_on(struct monitor *monitor, struct history_state *state, enum verdict_part part,
                  const struct finding *finding, uint64_t now_ms)
{
    struct condition *condition = &monitor->conditions[part];
    struct incident *incident = find_incident(state, condition->incident);

    condition->level = finding->level;
    condition->over_ms = finding->over_ms;
    if (!incident)
        return;
    if (finding->level > incident->level ||
        (finding->level == incident->level && finding->weight > condition->weight)) {
        incident->level = finding->level;
        condition->weight = finding->weight;
        condition->grown_ms = incident->changed_ms = now_ms;
        snprintf(incident->text, sizeof(incident->text), "%s", finding->text);
    }
    if (finding->over_ms && incident->ended_ms != finding->over_ms) {
        incident->ended_ms = finding->over_ms;
        incident->changed_ms = now_ms;
    }
}

static void end(struct monitor *monitor, struct history_state *state, enum verdict_part part,
                uint64_t now_ms)
{
    struct condition *condition = &monitor->conditions[part];
    struct incident *incident = find_incident(state, condition->incident);

    condition->level = VERDICT_OK;
    condition->ended_ms = now_ms;
    if (!incident)
        return;
    if (!condition->over_ms)
        incident->ended_ms = now_ms;
    incident->changed_ms = now_ms;
}

/* Whether there is a problem that explains why events came from the log. */
static bool explains_repairs(const struct monitor *monitor)
{
    static const enum verdict_part parts[] = {VERDICT_WORKERS, VERDICT_INTAKE,
                                              VERDICT_REDIS_SILENT};

    for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (monitor->conditions[parts[i]].incident)
            return true;
    }
    return false;
}

/* A note ends when nothing has been added for a while. */
static bool has_ended(const struct condition *condition, const struct finding *finding,
                      uint64_t now_ms)
{
    return finding->level == VERDICT_OK ||
           (finding->level == VERDICT_NOTE && condition->level == VERDICT_NOTE &&
            finding->weight == condition->weight && now_ms >= condition->grown_ms + SETTLE_MS);
}

static void look_at(struct monitor *monitor, struct history_state *state, enum verdict_part part,
                    const struct reading *reading)
{
    struct condition *condition = &monitor->conditions[part];
    uint64_t now_ms = reading->now_ms;
    struct finding finding;

    if (part == VERDICT_REPAIRED && explains_repairs(monitor))
        condition->before = reading->totals;
    verdict_judge(part, reading, &condition->before, &finding);
    if (!has_ended(condition, &finding, now_ms)) {
        if (condition->level == VERDICT_OK)
            begin(monitor, state, part, &finding, now_ms);
        go_on(monitor, state, part, &finding, now_ms);
    } else if (condition->level != VERDICT_OK) {
        end(monitor, state, part, now_ms);
    }
    if (condition->incident)
        settle(monitor, state, part, reading);
    if (condition->level == VERDICT_NOTE ||
        (condition->level == VERDICT_OK && condition->incident &&
         now_ms < condition->ended_ms + SETTLE_MS && finding.level == VERDICT_OK))
        return;
    if (condition->level == VERDICT_OK) {
        condition->incident = 0;
        condition->before = reading->totals;
        if (part == VERDICT_WORKERS)
            monitor->lost_streams = 0;
    } else if (condition->level > VERDICT_NOTE) {
        struct verdict_line *line = &state->lines[state->line_count++];

        *line = (struct verdict_line){.level = condition->level,
                                      .part = part,
                                      .is_over = condition->over_ms > 0,
                                      .since_ms = condition->since_ms};
        memcpy(line->text, finding.text, sizeof(line->text));
    }
}

static bool is_worse(const struct verdict_line *line, const struct verdict_line *other)
{
    if (line->level != other->level)
        return line->level > other->level;
    return !line->is_over && other->is_over;
}

/* Lines of the same level are sorted in the order of enum verdict_part. */
static void sort_lines(struct history_state *state)
{
    for (unsigned i = 1; i < state->line_count; i++) {
        struct verdict_line line = state->lines[i];
        unsigned k = i;

        for (; k > 0 && is_worse(&line, &state->lines[k - 1]); k--)
            state->lines[k] = state->lines[k - 1];
        state->lines[k] = line;
    }
}

static void decide(struct monitor *monitor, struct history_state *state,
                   const struct reading *reading)
{
    state->looked_ms = reading->now_ms;
    if (state->line_count > 0) {
        monitor->well_since_ms = 0;
        state->level = state->lines[0].level;
        state->since_ms = state->lines[0].since_ms;
        memcpy(state->text, state->lines[0].text, sizeof(state->text));
        return;
    }
    if (!monitor->well_since_ms)
        monitor->well_since_ms = reading->now_ms;
    state->level = VERDICT_OK;
    state->since_ms = monitor->well_since_ms;
    verdict_say_well(reading, state->text);
}

/* --- samples --- */

static void keep_worst(uint64_t *value, uint64_t now)
{
    if (now != READING_UNKNOWN && (*value == READING_UNKNOWN || now > *value))
        *value = now;
}

static void take_sample(struct monitor *monitor, struct history_state *state,
                        const struct reading *reading)
{
    uint64_t period = reading->now_ms / HISTORY_SAMPLE_MS;
    uint64_t *values = monitor->sample.values;
    uint64_t redis_us = reading->redis_worst_us;

    if (monitor->sampled == 0 || period < monitor->sampled) { /* the clock was set back */
        monitor->sampled = period;
        memset(values, 0xff, sizeof(monitor->sample.values));
    }
    keep_worst(&values[SAMPLE_LATE], reading->late);
    keep_worst(&values[SAMPLE_LAG], reading->lag_ms);
    keep_worst(&values[SAMPLE_OWED], reading->owed_events);
    if (reading->redis_silent_ms > 1000 &&
        (redis_us == READING_UNKNOWN || redis_us < reading->redis_silent_ms * 1000))
        redis_us = reading->redis_silent_ms * 1000;
    keep_worst(&values[SAMPLE_REDIS], redis_us);
    if (period == monitor->sampled)
        return;
    values[SAMPLE_EVENTS_IN] = reading->events_in;
    values[SAMPLE_EVENTS_OUT] = reading->events_out;
    values[SAMPLE_BYTES_OUT] = reading->bytes_out;
    values[SAMPLE_STREAMS] = reading->streams;
    values[SAMPLE_MATCH] = reading->match_us;
    values[SAMPLE_DELIVERY] = reading->delivery_us;
    values[SAMPLE_MEMORY] = reading->memory_bytes;
    values[SAMPLE_CPU] = reading->cpu_milli;
    values[SAMPLE_BUSIEST] = reading->busiest_milli;
    monitor->sample.at_ms = period * HISTORY_SAMPLE_MS;
    state->samples[state->sample_count++ % HISTORY_SAMPLES] = monitor->sample;
    monitor->sampled = period;
    memset(values, 0xff, sizeof(monitor->sample.values));
}

/* --- for the parent --- */

void monitor_look(struct monitor *monitor, const struct reading_bounds *bounds, uint64_t now_ms,
                  uint64_t wall_ms)
{
    struct history_state *state;
    struct reading reading;

    readings_take(monitor->readings, bounds, now_ms, wall_ms, &reading);
    state = history_begin(monitor->history);
    state->line_count = 0;
    for (unsigned i = 0; i < VERDICT_PARTS; i++)
        look_at(monitor, state, (enum verdict_part)i, &reading);
    sort_lines(state);
    decide(monitor, state, &reading);
    take_sample(monitor, state, &reading);
    history_end(monitor->history);
}

void monitor_note_death(struct monitor *monitor, const char *name, const char *how,
                        uint64_t streams, uint64_t wall_ms)
{
    monitor->lost_streams += streams;
    readings_note_death(monitor->readings, name, how, wall_ms);
}

void monitor_note(struct monitor *monitor, enum verdict_level level, const char *name,
                  const char *text, uint64_t wall_ms)
{
    struct history_state *state = history_begin(monitor->history);

    add_incident(state, level, name, text, wall_ms, wall_ms)->ended_ms = wall_ms;
    history_end(monitor->history);
}
