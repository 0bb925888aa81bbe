/* verdict.c - a function for each part, which compares a reading with its limits.
 *
 * The functions have no state; the monitor knows the earlier state of a part. A sentence that is
 * too long is truncated. */
#include "gateway/metrics/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/figure.h"

enum {
    SILENT_MS = 400,
    VERY_SILENT_MS = 2000,
    SLOW_US = 50000,
    VERY_SLOW_US = 500000,
    DEATH_RECENT_MS = 20000,
    GAP_RECENT_MS = 15 * 60000,
    START_MS = 5000, /* the time within which Redis must be reached */
    RISING_MS = 30000,
    BUSY_MILLI = 800,
    VERY_BUSY_MILLI = 950,
    FULL_PERCENT = 80,
    VERY_FULL_PERCENT = 95,
    REFUSED_MILLI = 1000
};

static const char *const part_names[VERDICT_PARTS] = {
    [VERDICT_WORKERS] = "workers",
    [VERDICT_INTAKE] = "intake",
    [VERDICT_REDIS_SILENT] = "redis_silent",
    [VERDICT_STREAMS] = "streams",
    [VERDICT_READS] = "reads",
    [VERDICT_WRITES] = "writes",
    [VERDICT_SHARDS] = "shards",
    [VERDICT_BEHIND] = "behind",
    [VERDICT_MEMORY] = "memory",
    [VERDICT_CPU] = "cpu",
    [VERDICT_GAPS] = "gaps",
    [VERDICT_REDIS_SLOW] = "redis_slow",
    [VERDICT_OWED] = "owed",
    [VERDICT_TOKENS] = "tokens",
    [VERDICT_REFUSALS] = "refusals",
    [VERDICT_TASKS] = "tasks",
    [VERDICT_ARCHIVE] = "archive",
    [VERDICT_KEYS] = "keys",
    [VERDICT_CATCHING_UP] = "catching_up",
    [VERDICT_REPAIRED] = "repaired",
};

const char *verdict_part_name(enum verdict_part part)
{
    return part_names[part];
}

const char *verdict_level_name(enum verdict_level level)
{
    static const char *const names[] = {"ok", "note", "warning", "critical"};

    return names[level];
}

__attribute__((format(printf, 3, 4))) static void
find(struct finding *finding, enum verdict_level level, const char *format, ...)
{
    va_list args;

    finding->level = level;
    va_start(args, format);
    vsnprintf(finding->text, sizeof(finding->text), format, args);
    va_end(args);
}

static struct figure count(uint64_t n)
{
    return figure_count((double)n);
}

static struct figure seconds(uint64_t ms)
{
    return figure_seconds((double)ms / 1000);
}

/* "1 stream is", "2 streams are" */
static const char *is_or_are(uint64_t n)
{
    return n == 1 ? "is" : "are";
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* --- processes --- */

static bool died_lately(const struct reading *reading)
{
    return reading->death_ms &&
           (!reading->back_ms || reading->now_ms < reading->back_ms + DEATH_RECENT_MS);
}

static bool intake_died(const struct reading *reading)
{
    return strncmp(reading->death, "The intake", strlen("The intake")) == 0;
}

static void judge_death(const struct reading *reading, struct finding *finding)
{
    finding->began_ms = reading->death_ms;
    finding->over_ms = reading->back_ms;
    finding->weight = reading->back_ms ? 1 : 0; /* it is mentioned at the end */
    if (reading->back_ms)
        find(finding, VERDICT_WARNING, "%s; it was restarted, and was ready after %s.",
             reading->death, seconds(reading->back_ms - reading->death_ms).text);
    else
        find(finding, VERDICT_WARNING, "%s; it is being restarted.", reading->death);
}

static void judge_workers(const struct reading *reading, struct finding *finding)
{
    unsigned down = reading->workers - reading->up;
    bool is_recent = died_lately(reading) && !intake_died(reading);

    if (!reading->was_ready)
        return; /* they are being started */
    if (is_recent)
        judge_death(reading, finding);
    if (down == 0)
        return;
    finding->weight = down;
    find(finding, VERDICT_CRITICAL, "%u of %u workers %s down%s%s; restarted within 5 s.", down,
         reading->workers, is_or_are(down), is_recent ? ": " : "", is_recent ? reading->death : "");
}

static void judge_intake(const struct reading *reading, struct finding *finding)
{
    if (!reading->was_ready || !reading->has_intake)
        return;
    if (died_lately(reading) && intake_died(reading))
        judge_death(reading, finding);
    if (!reading->intake_is_up)
        find(finding, VERDICT_CRITICAL,
             "The intake process is down: the workers read the log instead.");
}

/* --- Redis --- */

static void judge_silence(const struct reading *reading, struct finding *finding)
{
    uint64_t silent_ms = reading->redis_silent_ms;
    unsigned deaf =
        reading->up - (reading->subscribed < reading->up ? reading->subscribed : reading->up);
    bool is_starting = !reading->was_ready && reading->now_ms < reading->since_ms + START_MS;

    if (is_starting || (silent_ms < SILENT_MS && deaf == 0))
        return;
    finding->weight = silent_ms;
    if (silent_ms >= SILENT_MS) {
        finding->began_ms = reading->now_ms - silent_ms;
        find(finding, silent_ms >= VERY_SILENT_MS || deaf ? VERDICT_CRITICAL : VERDICT_WARNING,
             "Redis silent for %s: nothing comes in, nothing is written.", seconds(silent_ms).text);
    } else if (!died_lately(reading)) {
        find(finding, VERDICT_CRITICAL,
             "Redis is away for %u of %u workers: they receive no events.", deaf, reading->workers);
    }
}

static void judge_slowness(const struct reading *reading, struct finding *finding)
{
    uint64_t us = reading->redis_slow_us;

    if (us == READING_UNKNOWN || us <= SLOW_US)
        return;
    finding->weight = us;
    find(finding, us > VERY_SLOW_US ? VERDICT_CRITICAL : VERDICT_WARNING,
         "Redis answers slowly: PING took up to %s in the last %d s; more than %s is slow.",
         seconds(us / 1000).text, READING_LONG_S, seconds(SLOW_US / 1000).text);
}

/* --- parts of the server --- */

/* The first words of an error of Redis are its kind, which names nobody. */
static const char *why_not_written(const struct health *health)
{
    static const struct {
        const char *word, *why;
    } reasons[] = {
        {"OOM ", ": its memory is full. Raise maxmemory, or trim the log"},
        {"MISCONF ", ": it cannot save to its disk"},
        {"READONLY ", ": it is a replica"},
        {"NOREPLICAS ", ": it has too few replicas"},
        {"NOPERM ", ": its ACL does not permit it"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (strstr(health->why, reasons[i].word))
            return reasons[i].why;
    }
    return "";
}

static void judge_health(const struct reading *reading, enum health_part part,
                         enum verdict_level level, const char *words, struct finding *finding)
{
    const struct health *health = &reading->health[part];
    bool is_said = part != HEALTH_TASKS && part != HEALTH_ARCHIVE && part != HEALTH_KEYS &&
                   (reading->redis_silent_ms >= SILENT_MS || reading->subscribed < reading->up ||
                    !reading->was_ready);

    if (health->state != HEALTH_FAILING || is_said)
        return;
    finding->began_ms = health->since_ms;
    find(finding, level, "%s%s.", words, part == HEALTH_WRITES ? why_not_written(health) : "");
}

/* The process that fetches keys reports first if it never got any. */
static const char *words_of_keys(const struct reading *reading)
{
    return strncmp(reading->health[HEALTH_KEYS].why, "no keys", strlen("no keys")) == 0
               ? "The keys of an identity provider were never received: its tokens are refused"
               : "The keys of an identity provider cannot be fetched: the last ones stay in use";
}

/* --- clients --- */

static void say_rates(const struct slow_client *slow, bool is_one, struct figure *needs,
                      char text[static VERDICT_TEXT_SIZE])
{
    const char *it = is_one ? "it" : "the slowest";

    if (slow->reads == 0)
        snprintf(text, VERDICT_TEXT_SIZE, ": %s reads nothing", it);
    else if (slow->needs == 0)
        snprintf(text, VERDICT_TEXT_SIZE, ": %s reads %s/s", it,
                 figure_bytes((double)slow->reads).text);
    else
        snprintf(text, VERDICT_TEXT_SIZE, ": %s reads %s/s, the stream brings %s/s", it,
                 figure_bytes((double)slow->reads).text, needs->text);
}

static void judge_behind(const struct reading *reading, struct finding *finding)
{
    struct figure needs = figure_bytes((double)reading->slowest.needs);
    uint64_t streams = reading->streams > reading->late ? reading->streams : reading->late;
    uint64_t lag_ms = reading->has_slowest ? reading->slowest.lag_ms : SLOW_CLIENT_LATE_MS;
    char rates[VERDICT_TEXT_SIZE] = "";

    if (reading->late == 0)
        return;
    if (reading->has_slowest)
        say_rates(&reading->slowest, reading->late == 1, &needs, rates);
    finding->weight = lag_ms;
    find(finding, lag_ms >= VERDICT_VERY_LATE_MS ? VERDICT_CRITICAL : VERDICT_WARNING,
         "%s of %s streams %s behind, by %s%s%s.", count(reading->late).text, count(streams).text,
         is_or_are(reading->late), seconds(lag_ms).text, reading->late == 1 ? "" : " at most",
         rates);
}

static void judge_owed(const struct reading *reading, struct finding *finding)
{
    if (reading->owed_rising_ms < RISING_MS)
        return;
    finding->weight = reading->owed_events;
    finding->began_ms = reading->now_ms - reading->owed_rising_ms;
    find(finding, VERDICT_WARNING,
         "Clients are owed %s events, rising for %s; %s events a second go out.",
         count(reading->owed_events).text, seconds(reading->owed_rising_ms).text,
         count(reading->events_out == READING_UNKNOWN ? 0 : reading->events_out).text);
}

static void judge_gaps(const struct reading *reading, struct finding *finding)
{
    if (!reading->gap_ms || reading->now_ms >= reading->gap_ms + GAP_RECENT_MS)
        return;
    finding->weight = reading->gaps_recent;
    finding->over_ms = reading->gap_ms;
    find(finding, VERDICT_WARNING,
         "%s gap%s reported to clients in the last 15 minutes (the last one: %s): they miss those "
         "events.",
         count(reading->gaps_recent).text, reading->gaps_recent == 1 ? " was" : "s were",
         reading->gap_reason);
}

static void judge_tokens(const struct reading *reading, struct finding *finding)
{
    uint64_t milli = reading->tokens_refused_milli;

    if (milli < REFUSED_MILLI)
        return;
    finding->weight = milli;
    find(finding, VERDICT_WARNING, "%s tokens a second are refused, most as %s%s",
         figure_count((double)milli / 1000).text, reading->token_fault,
         strcmp(reading->token_fault, "expired") == 0 ? ": clients do not renew them."
         : strcmp(reading->token_fault, "unknown_key") == 0 ||
                 strcmp(reading->token_fault, "bad_signature") == 0
             ? ". Was a key changed?"
             : ".");
}

static void judge_refusals(const struct reading *reading, struct finding *finding)
{
    uint64_t milli = reading->streams_refused_milli;

    if (milli < REFUSED_MILLI)
        return;
    finding->weight = milli;
    find(finding, VERDICT_WARNING, "%s streams a second are refused because of a limit.",
         figure_count((double)milli / 1000).text);
}

/* --- the machine --- */

static void judge_cpu(const struct reading *reading, struct finding *finding)
{
    uint64_t milli = reading->busiest_milli;
    char who[32] = "The intake process";

    if (milli == READING_UNKNOWN || milli < BUSY_MILLI)
        return;
    if (reading->busiest < reading->workers)
        snprintf(who, sizeof(who), "Worker %u", reading->busiest);
    finding->weight = milli;
    find(finding, milli >= VERY_BUSY_MILLI ? VERDICT_CRITICAL : VERDICT_WARNING,
         "%s uses %s of a core%s.", who, figure_percent((double)milli / 1000).text,
         reading->busiest < reading->workers ? ": more workers or machines would take their share"
                                             : "");
}

static void judge_memory(const struct reading *reading, struct finding *finding)
{
    static const struct {
        const char *what, *option;
    } kinds[MEMORY_COUNT] = {
        [MEMORY_EVENTS] = {"Events that clients are owed take", "max-shared-bytes"},
        [MEMORY_FILTERS] = {"Filters take", "max-filter-bytes"},
        [MEMORY_HOME] = {"Home streams take", "max-home-bytes"},
        [MEMORY_STREAMS] = {"There are", "max-connections"},
    };
    uint64_t worst = 0;

    for (unsigned i = 0; i < MEMORY_COUNT; i++) {
        uint64_t used = reading->used[i], most = reading->bounds.most[i];
        uint64_t percent = most ? used * 100 / most : 0;
        struct figure of = i == MEMORY_STREAMS ? count(most) : figure_bytes((double)most);

        if (percent < FULL_PERCENT || percent <= worst)
            continue;
        worst = finding->weight = percent;
        find(finding, percent >= VERY_FULL_PERCENT ? VERDICT_CRITICAL : VERDICT_WARNING,
             "%s %s%s of %s (%s).", kinds[i].what,
             (i == MEMORY_STREAMS ? count(used) : figure_bytes((double)used)).text,
             i == MEMORY_STREAMS ? " streams" : " in one worker", of.text, kinds[i].option);
    }
}

/* --- notes --- */

static void judge_falling(const struct reading *reading, const struct reading_totals *before,
                          struct finding *finding)
{
    uint64_t fell = reading->totals.fallen_behind - before->fallen_behind;

    if (fell == 0)
        return;
    finding->weight = fell;
    find(finding, VERDICT_NOTE, "%s stream%s began to catch up: %s owed too much.",
         count(fell).text, plural(fell), fell == 1 ? "it was" : "they were");
}

static void judge_repairs(const struct reading *reading, const struct reading_totals *before,
                          struct finding *finding)
{
    uint64_t repaired = reading->totals.repaired - before->repaired;

    if (repaired == 0)
        return;
    finding->weight = repaired;
    find(finding, VERDICT_NOTE, "%s missed event%s came from the log.", count(repaired).text,
         plural(repaired));
}

void verdict_judge(enum verdict_part part, const struct reading *reading,
                   const struct reading_totals *before, struct finding *ret_finding)
{
    *ret_finding = (struct finding){.level = VERDICT_OK};
    switch (part) {
    case VERDICT_WORKERS:
        judge_workers(reading, ret_finding);
        break;
    case VERDICT_INTAKE:
        judge_intake(reading, ret_finding);
        break;
    case VERDICT_REDIS_SILENT:
        judge_silence(reading, ret_finding);
        break;
    case VERDICT_STREAMS:
        judge_health(reading, HEALTH_STREAMS, VERDICT_CRITICAL,
                     "Streams fail: the live channels or the log cannot be read", ret_finding);
        break;
    case VERDICT_READS:
        judge_health(reading, HEALTH_READS, VERDICT_CRITICAL, "Reads of the API fail", ret_finding);
        break;
    case VERDICT_WRITES:
        judge_health(reading, HEALTH_WRITES, VERDICT_CRITICAL, "Redis refuses writes", ret_finding);
        break;
    case VERDICT_SHARDS:
        judge_health(reading, HEALTH_SHARDS, VERDICT_CRITICAL,
                     "Some shards of the cluster are not subscribed to", ret_finding);
        break;
    case VERDICT_BEHIND:
        judge_behind(reading, ret_finding);
        break;
    case VERDICT_MEMORY:
        judge_memory(reading, ret_finding);
        break;
    case VERDICT_CPU:
        judge_cpu(reading, ret_finding);
        break;
    case VERDICT_GAPS:
        judge_gaps(reading, ret_finding);
        break;
    case VERDICT_REDIS_SLOW:
        judge_slowness(reading, ret_finding);
        break;
    case VERDICT_OWED:
        judge_owed(reading, ret_finding);
        break;
    case VERDICT_TOKENS:
        judge_tokens(reading, ret_finding);
        break;
    case VERDICT_REFUSALS:
        judge_refusals(reading, ret_finding);
        break;
    case VERDICT_TASKS:
        judge_health(reading, HEALTH_TASKS, VERDICT_WARNING,
                     "A task has waited for more than a minute: no task worker runs, or too few",
                     ret_finding);
        break;
    case VERDICT_ARCHIVE:
        judge_health(reading, HEALTH_ARCHIVE, VERDICT_WARNING, "The archive cannot be read",
                     ret_finding);
        break;
    case VERDICT_KEYS:
        judge_health(reading, HEALTH_KEYS, VERDICT_WARNING, words_of_keys(reading), ret_finding);
        break;
    case VERDICT_CATCHING_UP:
        judge_falling(reading, before, ret_finding);
        break;
    case VERDICT_REPAIRED:
        judge_repairs(reading, before, ret_finding);
        break;
    case VERDICT_PARTS:
        break;
    }
}

void verdict_say_well(const struct reading *reading, char ret_text[static VERDICT_TEXT_SIZE])
{
    char redis[64] = "";

    if (!reading->was_ready) {
        snprintf(ret_text, VERDICT_TEXT_SIZE, "Starting: %u of %u workers are ready.",
                 reading->ready, reading->workers);
        return;
    }
    if (reading->redis_worst_us != READING_UNKNOWN)
        snprintf(redis, sizeof(redis), "; Redis answers within %s",
                 figure_seconds((double)reading->redis_worst_us / 1e6).text);
    snprintf(ret_text, VERDICT_TEXT_SIZE,
             "All is well: %s stream%s, %s event%s a second in, %s out%s.",
             count(reading->streams).text, plural(reading->streams),
             reading->events_in == READING_UNKNOWN ? "-" : count(reading->events_in).text,
             plural(reading->events_in),
             reading->events_out == READING_UNKNOWN ? "-" : count(reading->events_out).text, redis);
}
