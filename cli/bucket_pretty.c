/* bucket_pretty.c - the output of `sluice tail --pretty counts` and `trends`.
 *
 *     15:48:50      12 posts      9 users     0 deletes  en 7, fr 3, und 2
 *     15:49:00       4 posts      4 users     0 deletes  en 4 (so far)
 *
 *     15:49:00 hashtags since 15:43:50
 *         users  before  posts  score  past          term
 *            40       3     52    5.6  ▁▁▁▁▂▁▂▄▅▇▇█  #rain
 *
 * Counts begin with the start of their bucket, trends with the end of theirs. The date is printed
 * before a time of another day, and instead of seconds if times are hours apart. The largest groups
 * are printed, the rest as their sum. */
#include "cli/bucket_pretty.h"

#include <string.h>

#include "base/clock.h"
#include "cli/pretty.h"

enum { GROUPS_SHOWN = 10, DATED_FROM_MS = 3600000 };

struct interval {
    uint64_t start_ms, end_ms;
};

static bool read_interval(const json_t *message, struct interval *ret_interval)
{
    struct sl_slice start = sl_slice_str(pretty_member(message, "start"));
    struct sl_slice end = sl_slice_str(pretty_member(message, "end"));

    return clock_parse_rfc3339(start, &ret_interval->start_ms) == 0 &&
           clock_parse_rfc3339(end, &ret_interval->end_ms) == 0;
}

static void print_time(FILE *file, const struct interval *interval, uint64_t unix_ms)
{
    if (interval->end_ms - interval->start_ms >= DATED_FROM_MS)
        pretty_minute(file, unix_ms);
    else
        pretty_time(file, unix_ms);
}

/* What is special about a message, in brackets. */
static void print_notes(FILE *file, const json_t *message)
{
    const struct {
        bool is_true;
        const char *words;
    } notes[] = {
        {json_is_true(json_object_get(message, "partial")), "so far"},
        {json_is_false(json_object_get(message, "complete")), "part of the past is missing"},
        {json_is_true(json_object_get(message, "gap")), "events are missing"},
        {pretty_number(message, "revision") > 0, "counted again"},
    };
    const char *before = " (";

    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
        if (!notes[i].is_true)
            continue;
        fprintf(file, "%s%s", before, notes[i].words);
        before = ", ";
    }
    fputs(*before == ',' ? ")\n" : "\n", file);
}

static void print_groups(FILE *file, const json_t *groups, double others)
{
    const char *before = "  ";
    const json_t *group;
    size_t i;

    json_array_foreach(groups, i, group)
    {
        /* by=type counts events, everything else posts */
        double count = pretty_number(group, "posts") + pretty_number(group, "events");

        if (i >= GROUPS_SHOWN) {
            others += count;
            continue;
        }
        fputs(before, file);
        pretty_text(file, pretty_member(group, "key"));
        fprintf(file, " %.0f", count);
        before = ", ";
    }
    if (others > 0)
        fprintf(file, "%sothers %.0f", before, others);
}

static void print_counts(FILE *file, const json_t *message, const struct interval *interval)
{
    print_time(file, interval, interval->start_ms);
    fprintf(file, " %7.0f posts %6.0f users %5.0f deletes", pretty_number(message, "posts"),
            pretty_number(message, "users"), pretty_number(message, "deletes"));
    print_groups(file, json_object_get(message, "groups"), pretty_number(message, "other"));
    print_notes(file, message);
}

/* Columns whose heights are relative to the highest. */
static void print_past(FILE *file, const json_t *past)
{
    static const char *const columns[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    const size_t top = sizeof(columns) / sizeof(columns[0]) - 1;
    double highest = 1;
    const json_t *users;
    size_t i;

    json_array_foreach(past, i, users)
    {
        if (json_number_value(users) > highest)
            highest = json_number_value(users);
    }
    json_array_foreach(past, i, users)
    {
        double height = json_number_value(users) / highest * (double)top;

        fputs(columns[height > 0 ? (size_t)height : 0], file);
    }
}

static void print_trends(FILE *file, const json_t *message, const struct interval *interval)
{
    const json_t *terms = json_object_get(message, "terms"), *term;
    size_t i;

    print_time(file, interval, interval->end_ms);
    fputc(' ', file);
    pretty_text(file, pretty_member(message, "of"));
    fputs(" since ", file);
    print_time(file, interval, interval->start_ms);
    if (json_array_size(terms) == 0)
        fputs(": none is rising", file);
    print_notes(file, message);
    json_array_foreach(terms, i, term)
    {
        if (i == 0)
            fputs("    users  before   posts   score  past          term\n", file);
        fprintf(file, "  %7.0f %7.0f %7.0f %7.1f  ", pretty_number(term, "users"),
                pretty_number(term, "before"), pretty_number(term, "posts"),
                pretty_number(term, "score"));
        print_past(file, json_object_get(term, "past"));
        fputs("  ", file);
        pretty_text(file, pretty_member(term, "term"));
        fputc('\n', file);
    }
}

bool bucket_pretty_print(FILE *file, const json_t *message)
{
    const char *type = pretty_member(message, "type");
    struct interval interval;

    if (!read_interval(message, &interval))
        return false;
    if (strcmp(type, "counts") == 0)
        print_counts(file, message, &interval);
    else if (strcmp(type, "trends") == 0)
        print_trends(file, message, &interval);
    else
        return false;
    return true;
}
