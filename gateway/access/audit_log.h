/* gateway/access/audit_log.h - the auditor's file: who opened what, for how long, how much and why
 * it ended; whom we refused; what administrators did.
 *
 *     audit_begin(audit, "stream_end", &json);       {"at":"...","event":"stream_end"
 *     audit_text(&json, "sub", subject);             ,"sub":"42"
 *     audit_end_take(audit, &json);                  }\n
 *
 * Each worker has the file open for itself and appends whole lines, many in one write(2), which the
 * kernel does one after the other (O_APPEND): lines never mix. Writing is done aside, so that the
 * loop never waits for a disk. What the disk does not take, or not soon enough, is lost and
 * counted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "gateway/metrics/metrics.h"

enum {
    AUDIT_TEXT_MAX = 2000,       /* bytes of a text in a line; what is longer is cut off */
    AUDIT_WAITING_MAX = 1 << 20, /* bytes of lines that the disk has not taken */
    AUDIT_REFUSED_PER_S = 100    /* lines of those whom we refuse: anybody can make them */
};

struct audit_log;

/* It is off. NULL: out of memory. */
struct audit_log *audit_log_new(uv_loop_t *loop, struct metrics *metrics);
/* Lines from now on go to the file at `path`, opened anew; NULL: nowhere. 0; a negative errno:
 * *reterr says why, and nothing has changed. */
int audit_log_open(struct audit_log *audit, const char *path, struct failure *reterr);
/* The same for a file that was opened by audit_file_open(); -1: none. */
void audit_log_set_file_take(struct audit_log *audit, int fd);
/* The loop has run until it is empty: everything is written, or lost. */
void audit_log_free(struct audit_log *audit);

/* false: it is off (`audit` may be NULL), and no line has begun. */
bool audit_begin(const struct audit_log *audit, const char *event, struct buffer *ret_json);
void audit_text(struct buffer *json, const char *name, struct sl_slice text);
void audit_number(struct buffer *json, const char *name, uint64_t number);
/* 4 or 16 bytes; else nothing. */
void audit_address(struct buffer *json, struct sl_slice address);
/* The line is done with. */
void audit_end_take(struct audit_log *audit, struct buffer *json);

/* May one more line be written of somebody whom we refuse? How many were held back before it stands
 * in that line, if any. As audit_begin(). */
bool audit_begin_refused(struct audit_log *audit, const char *event, struct buffer *ret_json);
