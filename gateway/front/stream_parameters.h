/* gateway/front/stream_parameters.h - internal to stream_request: the names of the parameters, and
 * how they are read.
 *
 * Values are slices of the decoded form. They are read in the order of the functions below, and the
 * first error is the answer: 0; -EPROTO: *refusal; -ENOMEM. */
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
    PARAMETER_REFRESH_MS, /* the last one: it has no bit */
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

/* Checks that only parameters in `known`, PARAMETER_BIT()s, are given. */
int stream_parameters_check_known(unsigned known, const struct sl_slice *values,
                                  struct http_refusal *refusal);
/* Reads everything but the token; the filter is compiled within the limits of request->token. */
int stream_parameters_read(const struct front_settings *settings, const struct http_request *http,
                           const struct sl_slice *values, const struct stream_times *times,
                           struct stream_request *request, struct http_refusal *refusal);
/* Called after that. `last_event_id` overrides `since` and `last`, because a browser that
 * reconnects repeats the URL. It is never refused, because that would end an EventSource for
 * good. */
void stream_parameters_read_last_event_id(struct sl_slice last_event_id,
                                          const struct stream_times *times,
                                          struct stream_request *request);
int stream_parameters_check_until(const struct stream_request *request, uint64_t now_ms,
                                  struct http_refusal *refusal);
