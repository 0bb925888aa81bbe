/* gateway/front/stream_parameters.h - inside stream_request: what each parameter is called, and how
 * it is read.
 *
 * Values are slices of the decoded form. They are read in the order of the calls below, and the
 * first fault is the answer: 0; -EPROTO: *refusal; -ENOMEM. */
#pragma once

#include "gateway/front/stream_request.h"

enum parameter {
    PARAMETER_ACCESS_TOKEN,
    PARAMETER_BUCKET,
    PARAMETER_BY,
    PARAMETER_CELL_DEGREES,
    PARAMETER_CURSORS,
    PARAMETER_DELIMITED,
    PARAMETER_FIELDS,
    PARAMETER_FOLLOW,
    PARAMETER_GATHER_MS,
    PARAMETER_HELLO,
    PARAMETER_LAST,
    PARAMETER_LANG,
    PARAMETER_LATEST_BY,
    PARAMETER_LIMIT,
    PARAMETER_LANGUAGE,
    PARAMETER_LOCATIONS,
    PARAMETER_OF,
    PARAMETER_ON_SLOW,
    PARAMETER_MAX,
    PARAMETER_MAX_RATE,
    PARAMETER_PARTITION,
    PARAMETER_PERCENT,
    PARAMETER_PICK,
    PARAMETER_RULE,
    PARAMETER_SINCE,
    PARAMETER_TICKET,
    PARAMETER_TRACK,
    PARAMETER_TYPES,
    PARAMETER_UNTIL,
    PARAMETER_WINDOW,
    PARAMETER_ZSTD_DICTIONARY,
    PARAMETER_REFRESH_MS, /* the last: its bit is that of no enumerator */
    PARAMETER_COUNT
};

extern const char *const stream_parameter_names[PARAMETER_COUNT];

#define PARAMETER_BIT(parameter) (1u << PARAMETER_##parameter)

enum {
    PARAMETER_RESTRICTORS = PARAMETER_BIT(LANGUAGE) | PARAMETER_BIT(PARTITION) |
                            PARAMETER_BIT(PERCENT) | PARAMETER_BIT(TYPES),
    PARAMETER_SELECTORS = PARAMETER_BIT(FOLLOW) | PARAMETER_BIT(LOCATIONS) | PARAMETER_BIT(RULE) |
                          PARAMETER_BIT(TRACK)
};

/* Nothing is there but `known`, PARAMETER_BIT()s. */
int stream_parameters_check_known(unsigned known, const struct sl_slice *values,
                                  struct http_refusal *refusal);
/* All but who asks; the filter is compiled within the limits of request->token. */
int stream_parameters_read(const struct front_settings *settings, const struct http_request *http,
                           const struct sl_slice *values, const struct stream_times *times,
                           struct stream_request *request, struct http_refusal *refusal);
/* Behind that. `last_event_id` wins over `since` and `last`: a browser that comes back repeats the
 * URL. It is never refused: that would end an EventSource for good. */
void stream_parameters_read_last_event_id(struct sl_slice last_event_id,
                                          const struct stream_times *times,
                                          struct stream_request *request);
int stream_parameters_check_until(const struct stream_request *request, uint64_t now_ms,
                                  struct http_refusal *refusal);
