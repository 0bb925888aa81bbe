/* base/log.h - logging: one line on stderr, with the name of the event followed by key=value pairs.
 *
 *     log_info("client_gone", "id=%" PRIu64 " sent=%zu", client->id, client->sent);
 *
 *     ts=2026-11-21T01:02:03.456Z level=info event=client_gone id=7 sent=120
 *     {"ts":"2026-11-21T01:02:03.456Z","level":"info","event":"client_gone","id":7,"sent":120}
 *
 * Only programs log, once, where the context is known; libraries return errors. Never log tokens or
 * the text of posts. Pass values from outside through log_quote(). Level and format are
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

/* Limits the lines from one place to one a second, and counts those suppressed since the last
 * one. */
struct log_rate {
    uint64_t last_ms; /* clock_monotonic_ms(); 0: never */
    uint64_t held_back;
};

/* true: log now; *ret_held_back lines were suppressed before. */
bool log_rate_allows(struct log_rate *rate, uint64_t now_ms, uint64_t *ret_held_back);
/* The same with one line every `interval_ms`. */
bool log_rate_allows_in(struct log_rate *rate, uint64_t interval_ms, uint64_t now_ms,
                        uint64_t *ret_held_back);

#define LOG_QUOTE_SIZE 160

/* Writes `text` in quotes into `room`, truncated between two characters if too long. Quotes,
 * backslashes, ASCII control characters and bytes that are not UTF-8 become \xNN; other characters
 * that are not shown (base/printable.h) become \uNNNN. */
const char *log_quote(struct sl_slice text, char room[static LOG_QUOTE_SIZE]);
