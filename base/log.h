/* base/log.h - one line on stderr per thing worth knowing: what happened, then key=value pairs.
 *
 *     log_info("client_gone", "id=%" PRIu64 " sent=%zu", client->id, client->sent);
 *     ts=2026-11-21T01:02:03.456Z level=info event=client_gone id=7 sent=120
 *
 *     {"ts":"2026-11-21T01:02:03.456Z","level":"info","event":"client_gone","id":7,"sent":120}
 *
 * Programs log, once, where the context is known; libraries return errors instead. No token and no
 * post text, ever. Values from outside go through log_quote(). The level and the form are
 * process-wide. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);
bool log_enabled(enum log_level level);
/* 0; -EINVAL: not one of error, warn, info, debug. */
int log_parse_level(const char *text, enum log_level *ret_level);

enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };

void log_set_format(enum log_format format);
/* 0; -EINVAL: neither logfmt nor json. */
int log_parse_format(const char *text, enum log_format *ret_format);

void log_line(enum log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_error(event, ...) log_line(LOG_LEVEL_ERROR, event, __VA_ARGS__)
#define log_warn(event, ...)  log_line(LOG_LEVEL_WARN, event, __VA_ARGS__)
#define log_info(event, ...)  log_line(LOG_LEVEL_INFO, event, __VA_ARGS__)
#define log_debug(event, ...) log_line(LOG_LEVEL_DEBUG, event, __VA_ARGS__)

/* Lets one line a second through per place; says how many were held back since the last one. */
struct log_rate {
    uint64_t last_ms; /* clock_monotonic_ms; 0: never */
    uint64_t held_back;
};

/* true: log now, and *ret_held_back lines of this kind were held back before it. */
bool log_rate_allows(struct log_rate *rate, uint64_t now_ms, uint64_t *ret_held_back);
/* The same with one line in `interval_ms`. */
bool log_rate_allows_in(struct log_rate *rate, uint64_t interval_ms, uint64_t now_ms,
                        uint64_t *ret_held_back);

#define LOG_QUOTE_SIZE 160

/* Writes `text` in quotes into `room`, cut off between two characters. Quotes, backslashes, ASCII
 * controls and bytes that are no UTF-8 become \xNN, what else is not shown (base/printable.h)
 * \uNNNN. */
const char *log_quote(struct sl_slice text, char room[static LOG_QUOTE_SIZE]);
