#include "gateway/metrics/status.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "gateway/metrics/health.h"
#include "gateway/metrics/history.h"

/* The subject of a stream and its filter are shown to operators only. */
static void print_private(const char *text, bool is_shown, struct buffer *json)
{
    if (is_shown)
        buffer_append_json_string(json, sl_slice_str(text));
    else
        buffer_append_str(json, "null");
}

static void print_client(const struct slow_client *client, bool with_subject, struct buffer *json)
{
    buffer_append_format(json, "{\"worker\":%u,\"subject\":", client->worker);
    print_private(client->subject, with_subject, json);
    buffer_append_str(json, ",\"filter\":");
    print_private(client->filter, with_subject && client->filter[0], json);
    buffer_append_format(
        json,
        ",\"stream\":\"%s\",\"transport\":\"%s\",\"catching_up\":%s,\"lag_ms\":%" PRIu64
        ",\"owed_events\":%" PRIu64 ",\"owed_bytes\":%" PRIu64 ",\"late\":%s,\"late_ms\":%" PRIu64
        ",\"reads_bytes_per_second\":%" PRIu64 ",\"needs_bytes_per_second\":",
        stream_kind_name(client->stream), stream_format_name(client->format),
        client->is_catching_up ? "true" : "false", client->lag_ms, client->owed_events,
        client->owed_bytes, client->is_late ? "true" : "false", client->late_ms, client->reads);
    if (client->needs)
        buffer_append_decimal(json, client->needs);
    else
        buffer_append_str(json, "null");
    buffer_append_format(json, ",\"connected_ms\":%" PRIu64 "}", client->connected_ms);
}

static void print_history(const struct history *history, uint64_t since_ms, uint64_t now_ms,
                          struct buffer *json)
{
    struct history_state *state = history_read(history);

    if (!state) {
        json->failed = true;
        return;
    }
    history_print_verdict(state, now_ms, json);
    buffer_append_char(json, ',');
    history_print_past(state, since_ms, json);
    buffer_append_char(json, ',');
    mem_free(state);
}

void status_print(const struct metrics_board *metrics, const struct slow_board *slowest,
                  const struct history *history, struct status_view view, uint64_t now_ms,
                  struct buffer *ret_json)
{
    struct slow_list list;

    slow_board_read(slowest, &list);
    buffer_append_format(
        ret_json, "{\"version\":\"" SLUICE_VERSION "\",\"now_ms\":%" PRIu64 ",\"workers\":%u,",
        now_ms, metrics_workers(metrics));
    print_history(history, view.since_ms, now_ms, ret_json);
    buffer_append_str(ret_json, "\"health\":");
    health_print(metrics, view.with_reasons, ret_json);
    buffer_append_char(ret_json, ',');
    metrics_print_json(metrics, ret_json);
    buffer_append_format(ret_json, ",\"subjects\":%s,\"slowest\":[",
                         view.with_subjects ? "true" : "false");
    for (unsigned i = 0; i < list.count; i++) {
        if (i > 0)
            buffer_append_char(ret_json, ',');
        print_client(&list.clients[i], view.with_subjects, ret_json);
    }
    buffer_append_str(ret_json, "]}\n");
}
