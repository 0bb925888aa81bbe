/* top_view.c - the output of `sluice top`: the parts of the page, or one line for scripts.
 *
 * Each part is text made from the snapshots (cli/snapshots.h); layout.c fits them into the window.
 * Rates are over two seconds or fifteen, never less, because CPU time is measured every two
 * seconds. A number that the server does not send is shown as unknown, so that older and newer
 * servers work. */
#include "cli/top_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "base/figure.h"

/* Seconds over which a number is computed. CPU time is measured every two seconds. */
#define SHORT_S 2.0
#define LONG_S  15.0

#define GREEN  "\033[32m"
#define RED    "\033[1;31m"
#define NORMAL "\033[0m"

enum { CELL_WIDTH = 40, LABEL_WIDTH = 14 };

static const char *const streams[] = {"filter", "sample", "firehose", "home",
                                      "counts", "trends", "many"};
static const char *const transports[] = {"websocket", "ndjson", "delimited", "sse"};

enum {
    STREAM_COUNT = sizeof(streams) / sizeof(streams[0]),
    TRANSPORT_COUNT = sizeof(transports) / sizeof(transports[0])
};

/* Events that should not occur, or rarely. */
static const struct trouble {
    const char *family;
    const char *words;
    const char *usual; /* labels that are normal, each followed by a space */
} troubles[] = {
    {"sluice_disconnects_total", "streams ended", "draining token_expired "},
    {"sluice_broken_connections_total", "connections broken", ""},
    {"sluice_streams_refused_total", "streams refused, limit", ""},
    {"sluice_tokens_refused_total", "tokens refused", ""},
    {"sluice_handshakes_dropped_total", "handshakes dropped", ""},
    {"sluice_accept_exhausted_total", "connections closed: out of file descriptors", ""},
    {"sluice_events_refused_total", "events refused", ""},
    {"sluice_event_gaps_total", "gaps in the events", ""},
    {"sluice_gaps_told_total", "gaps reported to clients", ""},
    {"sluice_redis_subscriptions_lost_total", "Redis subscriptions lost", ""},
    {"sluice_redis_master_moves_total", "failovers to another Redis (Sentinel)", ""},
    {"sluice_log_read_failures_total", "failed reads of the log", ""},
    {"sluice_event_bytes_exceeded_total", "all queues dropped: over max-shared-bytes", ""},
    {"sluice_tasks_dead", "dead letters", ""},
    {"sluice_worker_restarts_total", "workers restarted", ""},
    {"sluice_worker_hangs_total", "workers killed: not responding", ""},
    {"sluice_intake_restarts_total", "intake process restarted", ""},
    {"sluice_task_runner_restarts_total", "task process restarted", ""},
    {"sluice_key_fetcher_restarts_total", "key fetcher restarted", ""},
    {"sluice_private_redis_restarts_total", "private Redis restarted", ""},
};

static void print_member(const json_t *json, const char *member, const char *otherwise,
                         struct buffer *text)
{
    const char *value = json_string_value(json_object_get(json, member));

    cli_append_word(text, sl_slice_str(value ? value : otherwise));
}

/* --- numbers from several families --------------------------------------------------------- */

/* Each worker receives, and counts, every event. */
static double hearing(const struct snapshots *snapshots)
{
    double workers = snapshot_sum(snapshots_latest(snapshots), "sluice_worker_subscribed");

    return workers > 1 ? workers : 1;
}

static double events_in(const struct snapshots *snapshots)
{
    return snapshots_rate(snapshots, "sluice_events_received_total", SHORT_S) / hearing(snapshots);
}

static double events_out(const struct snapshots *snapshots)
{
    return snapshots_rate(snapshots, "sluice_deliveries_total", SHORT_S);
}

static double matches_per_event(const struct snapshots *snapshots)
{
    return snapshots_ratio(snapshots, "sluice_matches_total", "sluice_events_received_total",
                           SHORT_S) *
           hearing(snapshots);
}

static double cpu_per_delivery_s(const struct snapshots *snapshots)
{
    return snapshots_ratio(snapshots, "sluice_worker_cpu_seconds_total", "sluice_deliveries_total",
                           LONG_S);
}

static double dropped_streams(const json_t *snapshot)
{
    return snapshot_part(snapshot, "sluice_disconnects_total", "too_slow") +
           snapshot_sum(snapshot, "sluice_broken_connections_total");
}

static double redis_s(const struct snapshots *snapshots)
{
    return snapshots_quantile(snapshots, "sluice_redis_round_trip_seconds", 0.5, LONG_S);
}

/* --- the parts of the page ----------------------------------------------------------------- */

/* Prints the parts that fail, such as "writes, tasks"; empty: none. */
static void print_failing(const json_t *snapshot, struct buffer *text)
{
    json_t *health = json_object_get(snapshot, "health"), *part;
    size_t begin = text->size;
    const char *name;

    json_object_foreach(health, name, part)
    {
        const char *state = json_string_value(json_object_get(part, "state"));

        if (!state || strcmp(state, "failing") != 0)
            continue;
        buffer_append_str(text, text->size > begin ? ", " : "");
        cli_append_word(text, sl_slice_str(name));
    }
}

/* For a server without a verdict: what is wrong, in a few words; empty: nothing. */
static void print_trouble_now(const json_t *snapshot, struct buffer *text)
{
    double workers = snapshot_number(snapshot, "workers"),
           up = snapshot_sum(snapshot, "sluice_worker_up"),
           ready = snapshot_sum(snapshot, "sluice_worker_ready");
    struct buffer failing = BUFFER_INIT;

    print_failing(snapshot, &failing);
    if (up < workers)
        buffer_append_format(text, "%s of %s workers down", figure_count(workers - up).text,
                             figure_count(workers).text);
    else if (!(snapshot_sum(snapshot, "sluice_worker_subscribed") >= workers))
        buffer_append_str(text, "Redis is away");
    else if (failing.size > 0)
        buffer_append_format(text, "failing: %.*s", SL_SLICE_ARG(buffer_slice(&failing)));
    else if (!(ready >= workers))
        buffer_append_format(text, "%s of %s workers not ready", figure_count(workers - ready).text,
                             figure_count(workers).text);
    buffer_done(&failing);
}

/* Prints the level unless it is ok. */
static void print_level(const json_t *verdict, struct buffer *text)
{
    const char *level = json_string_value(json_object_get(verdict, "level"));

    if (!level || strcmp(level, "ok") != 0)
        cli_append_word(text, sl_slice_str(level ? level : "unknown"));
}

/* In lines of at most this many bytes, broken at spaces; 0: in one line. */
static void append_folded(struct sl_slice words, size_t width, struct buffer *text)
{
    size_t column = 0;

    while (words.size > 0) {
        const char *space = memchr(words.data, ' ', words.size);
        size_t size = space ? (size_t)(space - words.data) : words.size;
        bool breaks = column > 0 && width > 0 && column + 1 + size > width;

        if (column > 0)
            buffer_append_char(text, breaks ? '\n' : ' ');
        buffer_append_slice(text, sl_slice(words.data, size));
        column = (breaks || column == 0 ? 0 : column + 1) + size;
        words = sl_slice_from(words, space ? size + 1 : size);
    }
    buffer_append_char(text, '\n');
}

static void print_verdict(const json_t *verdict, const struct layout_form *page,
                          struct buffer *text)
{
    size_t width = page->columns < LAYOUT_COLUMN_WIDTH ? page->columns : LAYOUT_COLUMN_WIDTH;
    struct buffer words = BUFFER_INIT;

    print_member(verdict, "text", "", &words);
    append_folded(buffer_slice(&words), page->rows > 0 ? width : 0, text);
    text->failed = text->failed || words.failed;
    buffer_done(&words);
}

/* The verdict is highlighted with colours. */
static void print_heading(const struct snapshots *snapshots, const char *url,
                          const struct top_form *form, struct buffer *text)
{
    const json_t *snapshot = snapshots_latest(snapshots);
    double up_s = snapshot_number(snapshot, "now_ms") / 1000 -
                  snapshot_sum(snapshot, "sluice_start_time_seconds");
    json_t *verdict = json_object_get(snapshot, "verdict");
    struct buffer trouble = BUFFER_INIT;
    bool is_well;

    if (verdict)
        print_level(verdict, &trouble);
    else
        print_trouble_now(snapshot, &trouble);
    is_well = trouble.size == 0;
    buffer_append_str(text, "sluiced ");
    print_member(snapshot, "version", "-", text);
    buffer_append_format(text, " at %s, up %s, ", url, figure_seconds(up_s).text);
    if (form->has_colors)
        buffer_append_str(text, is_well ? GREEN : RED);
    buffer_append_slice(text, is_well ? SL_SLICE("all well") : buffer_slice(&trouble));
    buffer_append_str(text, form->has_colors ? NORMAL "\n" : "\n");
    if (verdict)
        print_verdict(verdict, &form->page, text);
    buffer_append_char(text, '\n');
    buffer_done(&trouble);
}

/* Prints a name and its value, half a line wide. */
static void cell(struct buffer *text, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void cell(struct buffer *text, const char *label, const char *format, ...)
{
    size_t begin = text->size;
    va_list args;

    buffer_append_format(text, "%-*s", LABEL_WIDTH, label);
    va_start(args, format);
    buffer_append_vformat(text, format, args);
    va_end(args);
    while (!text->failed && text->size - begin < CELL_WIDTH)
        buffer_append_char(text, ' ');
}

static void end_line(struct buffer *text)
{
    while (text->size > 0 && text->data[text->size - 1] == ' ')
        text->size--;
    buffer_append_char(text, '\n');
}

static void print_flow(const struct snapshots *snapshots, struct buffer *text)
{
    const json_t *snapshot = snapshots_latest(snapshots);

    cell(text, "events in", "%s /s", figure_count(events_in(snapshots)).text);
    cell(text, "events out", "%s /s, %s/s", figure_count(events_out(snapshots)).text,
         figure_bytes(snapshots_rate(snapshots, "sluice_delivered_bytes_total", SHORT_S)).text);
    end_line(text);
    cell(text, "matches", "%s per event", figure_count(matches_per_event(snapshots)).text);
    cell(text, "owed", "%s events, %s",
         figure_count(snapshot_sum(snapshot, "sluice_owed_events")).text,
         figure_bytes(snapshot_sum(snapshot, "sluice_owed_bytes")).text);
    end_line(text);
    cell(text, "catching up", "%s streams",
         figure_count(snapshot_sum(snapshot, "sluice_streams_catching_up")).text);
    cell(text, "socket full", "%s streams",
         figure_count(snapshot_sum(snapshot, "sluice_streams_behind")).text);
    end_line(text);
    cell(text, "dropped", "%s streams, %s events", figure_count(dropped_streams(snapshot)).text,
         figure_count(snapshot_sum(snapshot, "sluice_events_refused_total")).text);
    cell(text, "gaps", "%s, %s reported",
         figure_count(snapshot_sum(snapshot, "sluice_event_gaps_total")).text,
         figure_count(snapshot_sum(snapshot, "sluice_gaps_told_total")).text);
    end_line(text);
}

static void print_cost(const struct snapshots *snapshots, struct buffer *text)
{
    const json_t *snapshot = snapshots_latest(snapshots);

    cell(text, "Redis", "%s round trip", figure_seconds(redis_s(snapshots)).text);
    cell(text, "delivery", "p50 %s, p99 %s",
         figure_seconds(snapshots_quantile(snapshots, "sluice_delivery_seconds", 0.5, LONG_S)).text,
         figure_seconds(snapshots_quantile(snapshots, "sluice_delivery_seconds", 0.99, LONG_S))
             .text);
    end_line(text);
    cell(text, "CPU", "%s of a core",
         figure_percent(snapshots_rate(snapshots, "sluice_worker_cpu_seconds_total", LONG_S)).text);
    cell(text, "", "%s per delivery", figure_seconds(cpu_per_delivery_s(snapshots)).text);
    end_line(text);
    cell(text, "memory", "%s",
         figure_bytes(snapshot_sum(snapshot, "sluice_worker_resident_bytes")).text);
    cell(text, "", "%s in events", figure_bytes(snapshot_sum(snapshot, "sluice_event_bytes")).text);
    end_line(text);
}

static double streams_of(const json_t *snapshot, const char *stream, const char *transport)
{
    char labels[32];
    double count;

    snprintf(labels, sizeof(labels), "%s/%s", stream, transport);
    count = snapshot_part(snapshot, "sluice_streams_by_kind", labels);
    return isnan(count) ? 0 : count; /* not every kind of stream exists in every format */
}

static void print_streams_row(const char *name, const double *counts, struct buffer *text)
{
    double all = 0;

    buffer_append_format(text, "%-12s", name);
    for (size_t i = 0; i < TRANSPORT_COUNT; i++) {
        buffer_append_format(text, "%11s", figure_count(counts[i]).text);
        all += counts[i];
    }
    buffer_append_format(text, "%11s\n", figure_count(all).text);
}

static bool is_any(const double *counts)
{
    for (size_t i = 0; i < TRANSPORT_COUNT; i++) {
        if (counts[i] > 0)
            return true;
    }
    return false;
}

/* `is_short`: without kinds that nobody uses. */
static void print_streams(const json_t *snapshot, bool is_short, struct buffer *text)
{
    double all[TRANSPORT_COUNT] = {0};

    buffer_append_format(text, "%-12s", "streams");
    for (size_t i = 0; i < TRANSPORT_COUNT; i++)
        buffer_append_format(text, "%11s", transports[i]);
    buffer_append_format(text, "%11s\n", "all");
    for (size_t s = 0; s < STREAM_COUNT; s++) {
        double counts[TRANSPORT_COUNT];

        for (size_t i = 0; i < TRANSPORT_COUNT; i++) {
            counts[i] = streams_of(snapshot, streams[s], transports[i]);
            all[i] += counts[i];
        }
        if (!is_short || is_any(counts))
            print_streams_row(streams[s], counts, text);
    }
    print_streams_row("all", all, text);
    buffer_append_format(text, "open connections: %s\n",
                         figure_count(snapshot_sum(snapshot, "sluice_connections")).text);
}

/* The subject is last because its width is unknown. On 80 columns it has 15. */
static void print_slow_client(const json_t *slow, struct buffer *text)
{
    const char *stream = json_string_value(json_object_get(slow, "stream"));
    const char *transport = json_string_value(json_object_get(slow, "transport"));
    struct buffer how = BUFFER_INIT;
    char kind[64];

    snprintf(kind, sizeof(kind), "%s/%s", stream ? stream : "-", transport ? transport : "-");
    cli_append_word(&how, sl_slice_str(kind));
    buffer_append_format(text, "%-8s %-6s %7s %8s  %-9s  %-18.*s  ",
                         figure_seconds(snapshot_number(slow, "lag_ms") / 1000).text,
                         json_is_true(json_object_get(slow, "catching_up")) ? "yes" : "no",
                         figure_count(snapshot_number(slow, "owed_events")).text,
                         figure_bytes(snapshot_number(slow, "owed_bytes")).text,
                         figure_seconds(snapshot_number(slow, "connected_ms") / 1000).text,
                         SL_SLICE_ARG(buffer_slice(&how)));
    print_member(slow, "subject", "(not shown)", text);
    buffer_append_char(text, '\n');
    buffer_done(&how);
}

static void print_slowest(const json_t *snapshot, struct buffer *text)
{
    json_t *slowest = json_object_get(snapshot, "slowest"), *slow;
    size_t i;

    if (json_array_size(slowest) == 0) {
        buffer_append_str(text, "all streams keep up\n");
        return;
    }
    buffer_append_format(text, "%-8s %-6s %7s %8s  %-9s  %-18s  %s\n", "behind", "replay", "events",
                         "bytes", "connected", "stream", "slowest clients");
    json_array_foreach(slowest, i, slow) print_slow_client(slow, text);
    if (!json_is_true(json_object_get(snapshot, "subjects")))
        buffer_append_str(text, "to see their subjects, use a token with the scope admin\n");
}

/* Ready: it receives the live channels, and Redis answers its commands. */
static const char *worker_state(const json_t *snapshot, size_t worker)
{
    if (!(snapshot_worker(snapshot, "sluice_worker_up", worker) > 0))
        return "down";
    if (snapshot_worker(snapshot, "sluice_worker_ready", worker) > 0)
        return "ready";
    return snapshot_worker(snapshot, "sluice_worker_subscribed", worker) > 0 ? "not ready"
                                                                             : "Redis away";
}

static void print_workers(const struct snapshots *snapshots, struct buffer *text)
{
    const json_t *snapshot = snapshots_latest(snapshots);
    double workers = snapshot_number(snapshot, "workers");

    buffer_append_format(text, "%-8s%10s%10s%10s%8s%10s\n", "worker", "state", "CPU", "memory",
                         "files", "restarts");
    for (size_t i = 0; (double)i < workers; i++) {
        buffer_append_format(
            text, "%-8zu%10s%10s%10s%8s%10s\n", i, worker_state(snapshot, i),
            figure_percent(
                snapshots_worker_rate(snapshots, "sluice_worker_cpu_seconds_total", i, LONG_S))
                .text,
            figure_bytes(snapshot_worker(snapshot, "sluice_worker_resident_bytes", i)).text,
            figure_count(snapshot_worker(snapshot, "sluice_worker_open_files", i)).text,
            figure_count(snapshot_worker(snapshot, "sluice_worker_restarts_total", i)).text);
    }
}

static bool is_usual(const struct trouble *trouble, const char *label)
{
    const char *found = strstr(trouble->usual, label);

    return found && found[strlen(label)] == ' ';
}

static void print_trouble(const json_t *snapshot, const struct trouble *trouble,
                          struct buffer *text)
{
    json_t *family = json_object_get(json_object_get(snapshot, "metrics"), trouble->family), *count;
    const char *label;

    if (!json_is_object(family)) {
        double sum = snapshot_sum(snapshot, trouble->family);

        if (sum > 0)
            buffer_append_format(text, "%9s  %s\n", figure_count(sum).text, trouble->words);
        return;
    }
    json_object_foreach(family, label, count)
    {
        if (json_number_value(count) > 0 && !is_usual(trouble, label)) {
            buffer_append_format(text, "%9s  %s: ", figure_count(json_number_value(count)).text,
                                 trouble->words);
            cli_append_word(text, sl_slice_str(label));
            buffer_append_char(text, '\n');
        }
    }
}

static void print_troubles(const json_t *snapshot, struct buffer *text)
{
    size_t begin;

    buffer_append_str(text, "problems since the start\n");
    begin = text->size;
    for (size_t i = 0; i < sizeof(troubles) / sizeof(troubles[0]); i++)
        print_trouble(snapshot, &troubles[i], text);
    if (text->size == begin)
        buffer_append_str(text, "no problems\n");
}

void top_view_print(const struct snapshots *snapshots, const char *url, const struct top_form *form,
                    struct buffer *ret_text)
{
    enum { SUMMARY, STREAMS, SLOWEST, WORKERS, TROUBLES, PART_COUNT };
    struct layout_part parts[PART_COUNT] = {
        [SLOWEST] = {.is_list = true, .is_second = true},
        [WORKERS] = {.is_list = true, .is_second = true},
        [TROUBLES] = {.is_list = true, .is_second = true},
    };
    const json_t *snapshot = snapshots_latest(snapshots);

    print_heading(snapshots, url, form, &parts[SUMMARY].text);
    print_flow(snapshots, &parts[SUMMARY].text);
    print_cost(snapshots, &parts[SUMMARY].text);
    print_streams(snapshot, false, &parts[STREAMS].text);
    print_streams(snapshot, true, &parts[STREAMS].shorter);
    print_slowest(snapshot, &parts[SLOWEST].text);
    print_workers(snapshots, &parts[WORKERS].text);
    print_troubles(snapshot, &parts[TROUBLES].text);
    layout_print(parts, PART_COUNT, &form->page, ret_text);
    for (size_t i = 0; i < PART_COUNT; i++) {
        ret_text->failed = ret_text->failed || parts[i].text.failed || parts[i].shorter.failed;
        buffer_done(&parts[i].text);
        buffer_done(&parts[i].shorter);
    }
}

/* --- the line ------------------------------------------------------------------------------- */

static void pair(struct buffer *line, const char *name, double value)
{
    if (isnan(value))
        buffer_append_format(line, " %s=-", name);
    else
        buffer_append_format(line, " %s=%.*f", name, value == floor(value) ? 0 : 3, value);
}

void top_view_print_line(const struct snapshots *snapshots, struct buffer *ret_line)
{
    const json_t *snapshot = snapshots_latest(snapshots);
    char now[CLOCK_RFC3339_SIZE];

    clock_format_rfc3339((uint64_t)fmax(snapshot_number(snapshot, "now_ms"), 0), now);
    buffer_append_format(ret_line, "ts=%s", now);
    pair(ret_line, "streams", snapshot_sum(snapshot, "sluice_streams"));
    pair(ret_line, "connections", snapshot_sum(snapshot, "sluice_connections"));
    pair(ret_line, "events_in", events_in(snapshots));
    pair(ret_line, "events_out", events_out(snapshots));
    pair(ret_line, "matches_per_event", matches_per_event(snapshots));
    pair(ret_line, "owed_events", snapshot_sum(snapshot, "sluice_owed_events"));
    pair(ret_line, "owed_bytes", snapshot_sum(snapshot, "sluice_owed_bytes"));
    pair(ret_line, "catching_up", snapshot_sum(snapshot, "sluice_streams_catching_up"));
    pair(ret_line, "dropped", dropped_streams(snapshot));
    pair(ret_line, "gaps", snapshot_sum(snapshot, "sluice_event_gaps_total"));
    pair(ret_line, "redis_ms", redis_s(snapshots) * 1000);
    pair(ret_line, "memory_bytes", snapshot_sum(snapshot, "sluice_worker_resident_bytes"));
    pair(ret_line, "cpu_us_per_delivery", cpu_per_delivery_s(snapshots) * 1e6);
    buffer_append_char(ret_line, '\n');
}
