/* gateway/access/audit_log.h - the audit log: streams that began and ended, with duration, amount
 * and reason; refused requests; what administrators did.
 *
 *     audit_begin(audit, "stream_end", &json);       {"at":"...","event":"stream_end"
 *     audit_text(&json, "sub", subject);             ,"sub":"42"
 *     audit_end_take(audit, &json);                  }\n
 *
 * Each worker opens the file itself and appends whole lines, many with one writev(2). Because of
 * O_APPEND the kernel executes these one after the other, so lines of different workers never mix.
 * A thread of libuv's pool writes, so that the loop never waits for a disk. Lines that the disk
 * does not accept, or not fast enough, are lost and counted. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "gateway/metrics/metrics.h"

enum {
    AUDIT_TEXT_MAX = 2000,       /* bytes of a text; longer texts are cut */
    AUDIT_WAITING_MAX = 1 << 20, /* bytes of lines that wait for the disk; more are lost */
    AUDIT_REFUSED_PER_S = 100    /* lines about refused requests, because anybody can cause them */
};

struct audit_log;

/* Writes nothing until audit_log_open() is called. NULL: out of memory. */
struct audit_log *audit_log_new(uv_loop_t *loop, struct metrics *metrics);
/* Opens the file at `path`, also if it is open already, and writes to it from now on; NULL: the log
 * is off. 0; a negative errno: *reterr says why, and nothing has changed. */
int audit_log_open(struct audit_log *audit, const char *path, struct failure *reterr);
/* The same for a file opened with audit_file_open(), whose descriptor it takes; -1: the log is
 * off. */
void audit_log_set_file_take(struct audit_log *audit, int fd);
/* Only after the loop has run until nothing is left to do: then all lines are written or lost. */
void audit_log_free(struct audit_log *audit);

/* Begins a line. false: the log is off (`audit` may be NULL), and *ret_json is not set. */
bool audit_begin(const struct audit_log *audit, const char *event, struct buffer *ret_json);
void audit_text(struct buffer *json, const char *name, struct sl_slice text);
void audit_number(struct buffer *json, const char *name, uint64_t number);
/* Adds the member "address" for 4 or 16 bytes; for any other size, nothing. */
void audit_address(struct buffer *json, struct sl_slice address);
/* Ends the line, queues it for the disk, and frees `json`. */
void audit_end_take(struct audit_log *audit, struct buffer *json);

/* Like audit_begin(), for a refused request: at most AUDIT_REFUSED_PER_S lines are written in a
 * second. The next line that is written contains the number of those left out. */
bool audit_begin_refused(struct audit_log *audit, const char *event, struct buffer *ret_json);
